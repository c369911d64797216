"""Annotations of GitHub and GitLab: where they point, what they escape, and how many there are."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.analysis.comparing import compared
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.reporting.annotations import (
    Annotation,
    AnnotationError,
    CodeQualityReport,
    annotations,
    asks_github,
    github_lines,
)
from tests.analysis.results_builder import build
from tests.comparing.comparing_lab import BASE, resolved, table
from tests.reporting_markdown.markdown_lab import after, before

YAML = """\
metricbench: 1
gates:
  - baseline pass@1 >= 0.99
  - "no new survivors"
"""
GATES = ["baseline pass@1 >= 0.99", "no new survivors", "pass@1 >= 0.1"]


def found(folder: Path, then: Any = None, now: Any = None) -> list[Annotation]:
    """Of two runs whose experiment file stands in a folder; mutants stand at lines 10, 11.."""
    (folder / "experiment.yml").write_text(YAML)
    results = build(after() if now is None else now, gates=[resolved(gate) for gate in GATES], permutation=999)
    (case,) = results.experiment.cases
    variants = tuple(replace(variant, line=9 + number) for number, variant in enumerate(case.variants))
    experiment = replace(results.experiment, path=folder / "experiment.yml", cases=(replace(case, variants=variants),))
    results = replace(results, experiment=experiment)
    earlier = summarize(build(before() if then is None else then, permutation=999))
    return annotations(experiment, compared(summarize(results), earlier, "before", experiment.gates))


def test_broken_gates_then_new_survivors_then_the_others(tmp_path: Path) -> None:
    shown = found(tmp_path)
    assert [(one.level, one.title, one.line) for one in shown] == [
        ("error", "gate does not hold: baseline pass@1 >= 0.99", 3),
        ("error", "gate does not hold: no new survivors", 4),
        ("warning", "new survivor: c::m", 10),
        ("warning", "survivor: c::added", 13),
    ]
    assert shown[0].message == "0.8 is not >= 0.99"
    assert shown[2].message == "Never checks | the <b>date</b>; none of 3 tasks tells it from the baseline"


def test_a_case_in_a_file_of_its_own(tmp_path: Path) -> None:
    results = build(table({"m": BASE}))
    (case,) = results.experiment.cases
    other = replace(results.experiment, cases=(replace(case, file=tmp_path / "case.yml"),))
    (one,) = annotations(other, summarize(results))
    assert one.file == tmp_path / "case.yml"


def test_a_gate_in_a_file_that_is_gone_is_at_its_first_line(tmp_path: Path) -> None:
    results = build(table(), gates=[resolved("pass@1 >= 1")])
    experiment = replace(results.experiment, path=tmp_path / "gone.yml")
    (one,) = annotations(experiment, summarize(results))
    assert one.line == 1


def test_workflow_commands(tmp_path: Path) -> None:
    lines = github_lines(found(tmp_path), tmp_path.parent)
    file = f"{tmp_path.name}/experiment.yml"
    assert lines == [
        f"::error file={file},line=3,title=gate does not hold%3A baseline pass@1 >= 0.99::0.8 is not >= 0.99",
        f"::error file={file},line=4,title=gate does not hold%3A no new survivors::1 new survivor: m",
        f"::warning file={file},line=10,title=new survivor%3A c%3A%3Am::Never checks | the <b>date</b>; none of 3 "
        "tasks tells it from the baseline",
        f"::warning file={file},line=13,title=survivor%3A c%3A%3Aadded::Is new; none of 3 tasks tells it from the "
        "baseline",
    ]


def one(title: str = "t", message: str = "m", level: Any = "warning", key: str = "k") -> Annotation:
    return Annotation(level, "metricbench-survivor", key, title, message, Path("/r/a.yml"), 1)


def test_what_would_end_a_command_is_escaped() -> None:
    (line,) = github_lines([one("a,b: 100%\n::error::x", "50%\r\n::set-env name=x::y")], Path("/r"))
    assert line == (
        "::warning file=a.yml,line=1,title=a%2Cb%3A 100%25%0A%3A%3Aerror%3A%3Ax::50%25%0D%0A::set-env name=x::y"
    )
    assert "\n" not in line


def test_text_of_the_experiments_cannot_start_a_command_of_its_own(tmp_path: Path) -> None:
    evil = "x\n::error::owned\r\n%0A"
    shown = found(tmp_path, table({"m": BASE}), table({"m": BASE}, descriptions={"m": evil}))
    for line in github_lines(shown, tmp_path):
        assert re.fullmatch(r"::(error|warning) [^\r\n]*", line)
        assert line.count("%250A") <= 1


def test_more_than_are_shown_are_counted() -> None:
    many = [one(f"number {number}") for number in range(12)] + [one(level="error")] * 10
    lines = github_lines(many, Path("/r"))
    assert sum(line.startswith("::error") for line in lines) == 10
    warnings = [line for line in lines if line.startswith("::warning")]
    assert len(warnings) == 10
    assert warnings[-1] == "::warning title=metricbench::and 3 more: see summary.json"


@pytest.mark.parametrize(
    ("environment", "asked"),
    [({"GITHUB_ACTIONS": "true"}, True), ({"GITHUB_ACTIONS": ""}, False), ({"CI": "true"}, False), ({}, False)],
)
def test_only_a_github_runner_is_told(environment: dict[str, str], asked: bool) -> None:
    assert asks_github(environment) is asked


# ---------------------------------------------------------------- GitLab


def test_a_code_quality_report(tmp_path: Path) -> None:
    report = CodeQualityReport(tmp_path / "gl.json", tmp_path)
    report.check()
    assert not (tmp_path / "gl.json").exists()
    assert report.write("built", found(tmp_path)) == f"wrote {tmp_path / 'gl.json'}"
    text = (tmp_path / "gl.json").read_bytes()
    assert not text.startswith(b"\xef\xbb\xbf"), "GitLab refuses a byte order mark"
    entries = json.loads(text)
    assert entries[2] == {
        "description": "new survivor: c::m: Never checks | the <b>date</b>; none of 3 tasks tells it from the baseline",
        "check_name": "metricbench-survivor",
        "fingerprint": entries[2]["fingerprint"],
        "severity": "minor",
        "location": {"path": "experiment.yml", "lines": {"begin": 10}},
    }
    assert [entry["severity"] for entry in entries] == ["major", "major", "minor", "minor"]
    assert all(set(entry) == set(entries[0]) for entry in entries)
    assert len({entry["fingerprint"] for entry in entries}) == 4


def test_a_finding_is_the_same_one_in_the_next_run_wherever_it_stands(tmp_path: Path) -> None:
    first, second = (tmp_path / name for name in ("a.json", "b.json"))
    CodeQualityReport(first, Path("/r")).write("e", [one("new survivor: m", "text")])
    CodeQualityReport(second, Path("/r")).write("e", [replace(one("survivor: m", "other"), line=9)])
    prints = [json.loads(path.read_text())[0]["fingerprint"] for path in (first, second)]
    assert prints[0] == prints[1]


def test_several_experiments_in_one_report_and_none_is_an_empty_list(tmp_path: Path) -> None:
    report = CodeQualityReport(tmp_path / "gl.json", Path("/r"))
    report.write("one", [])
    assert json.loads((tmp_path / "gl.json").read_text()) == []
    report.write("two", [one()])
    report.write("three", [one()])
    entries = json.loads((tmp_path / "gl.json").read_text())
    assert len({entry["fingerprint"] for entry in entries}) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [
        (".", "{root} is no file; name another one"),
        ("gone/gl.json", "there is no folder {root}/gone; make it, or name another file"),
    ],
)
def test_a_report_that_cannot_be_written(tmp_path: Path, name: str, said: str) -> None:
    with pytest.raises(AnnotationError) as raised:
        CodeQualityReport(tmp_path / name, tmp_path).check()
    assert str(raised.value) == said.format(root=tmp_path)
