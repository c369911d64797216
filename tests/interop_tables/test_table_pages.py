"""What docs/tables.md shows is run, not believed."""

import re
import sys
from pathlib import Path

import pytest
import yaml

from pytest_metricbench.interop.recordings import ReadOptions
from pytest_metricbench.interop.table import reading as tables
from pytest_metricbench.interop.table.columns import Columns, read_columns

PAGE = (Path(__file__).parents[2] / "docs" / "tables.md").read_text("utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def test_one_file_and_ten_lines(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, workers: list[str]) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    experiment = blocks("yaml")[0]
    assert len(experiment.splitlines()) == 10
    (pytester.path / "results.csv").write_text(blocks("csv")[0])
    (pytester.path / "experiment.yml").write_text(experiment)
    ended = pytester.runpytest_inprocess("experiment.yml", "-p", "no:sugar", "-p", "no:randomly", *workers)
    assert ended.ret == 0
    assert ended.parseoutcomes() == {"passed": 17, "missed": 7, "died": 3}
    shown = iter(line.rstrip() for line in ended.outlines)
    for line in blocks("text")[0].splitlines():
        assert any(line == other for other in shown), f"not shown, or not in this order: {line}"
    whole, described = yaml.safe_load(experiment), yaml.safe_load(blocks("yaml")[1])
    whole["cases"][0] |= described["cases"][0]
    (pytester.path / "experiment.yml").write_text(yaml.safe_dump(whole))
    again = pytester.runpytest_inprocess("experiment.yml", "-p", "no:sugar", "-p", "no:randomly", "-m", "policy")
    assert again.ret == 0
    assert again.parseoutcomes() == {"reused": 9, "deselected": 18}


def test_the_mapping_that_is_shown(tmp_path: Path) -> None:
    runner = yaml.safe_load(blocks("yaml")[2])["runner"]
    (tmp_path / "r.csv").write_text(
        "model,question_id,run,status,message,correct,usd,result\n"
        "gpt-4o,q,1,scored,,1,0.5,PASS\ngpt-4o,q,2,TIMEOUT,slow,0,,\ngpt-4o,q,3,,,,,CRASH\ngpt-4o,q,4,sandbox_lost,,0,,FAIL\n"
    )
    options = ReadOptions("case", columns=runner["columns"], outcomes=runner["outcomes"])
    found = tables.read({"r.csv": tmp_path / "r.csv"}, options).attempts
    assert [attempt.outcome.kind for attempt in found] == ["scored", "died", "died", "unmeasured"]
    assert found[0].outcome.scores == {"reward": 1, "cost": 0.5, "verdict": True}


def test_the_table_with_a_column_a_variant(tmp_path: Path) -> None:
    (tmp_path / "wide.csv").write_text(blocks("csv")[1])
    runner = yaml.safe_load(blocks("yaml")[3])["runner"]
    found = tables.read({"wide.csv": tmp_path / "wide.csv"}, ReadOptions("case", columns=runner["columns"])).attempts
    assert [(attempt.variant, attempt.task, attempt.outcome.kind) for attempt in found[2:4]] == [
        ("agent-1.4", "cancel", "scored"),
        ("no-tools", "cancel", "died"),
    ]


def test_every_key_of_a_mapping_is_on_the_page() -> None:
    for key in Columns.model_fields:
        assert f"| `{key}` |" in PAGE
    assert read_columns({}).named_scores.keys() == {"reward"}
