"""What docs/helix.md shows is run, not believed."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_metricbench.runners.helix.forms import Executor
from pytest_metricbench.runners.helix.results import WORKSPACE_LIMIT
from pytest_metricbench.runners.helix.runner import HelixRunner
from tests.helix.helix_lab import without_others
from tests.helix.helix_server import HelixServer

PAGE = Path(__file__).parents[2].joinpath("docs", "helix.md").read_text("utf-8")
CODE = Path(__file__).parents[2].joinpath("pytest_metricbench", "runners", "helix")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


def keys_after(heading: str) -> dict[str, str]:
    """The keys in the first column of the table after a line, and its rows."""
    table = PAGE.partition(heading)[2].partition("\n|---")[2].partition("\n\n")[0]
    return {key: row for row in table.splitlines() for key in re.findall(r"`(\w+)`", row.partition(" | ")[0])}


def test_the_experiment_runs(pytester: pytest.Pytester, server: HelixServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_ADDOPTS", raising=False)
    experiment, *_ = blocks("yaml")
    text = experiment.replace("http://127.0.0.1:18080", server.url)
    assert text != experiment
    (pytester.path / "experiment.yml").write_text(text)
    for name, source in zip(("agent.py", "verify.py"), blocks("python"), strict=True):
        assert source.startswith(f"# {name}:")
        (pytester.path / name).write_text(source)
    result = pytester.runpytest_inprocess(*without_others(), "experiment.yml")
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines(["*9 passed, 3 missed in*"])


def test_every_key_is_on_the_page_with_its_default() -> None:
    described = keys_after("## The keys")
    assert set(described) == set(HelixRunner.model_fields) - {"kind"}
    for name, info in HelixRunner.model_fields.items():
        if isinstance(info.default, int | float | str) and name != "kind":
            default = str(info.default).lower()
            assert re.search(rf"\| `?{re.escape(default)}`? \|$", described[name]), name
    assert set(keys_after("`executor`:\n")) == set(Executor.model_fields)


def test_every_kind_of_error_is_on_the_page() -> None:
    sources = [path.read_text("utf-8") for path in CODE.glob("*.py")]
    kinds = {kind for source in sources for kind in re.findall(r'(?:HelixError|unmeasured)\(\s*"(\w+)"', source)}
    kinds |= set(re.findall(r'"(JobCancelled|ResultMissing|JobFailed)"', "".join(sources)))
    rare = {"MissingVariableError", "SentFileError", "TooManyJobs", "UnexpectedAnswer", "ResultTooLarge"}
    assert len(kinds) > 12
    assert {kind for kind in kinds - rare if f"`{kind}`" not in PAGE} == set()
    assert f"{WORKSPACE_LIMIT >> 20} MiB" in PAGE


def test_the_executor_of_a_cluster_is_one(tmp_path: Path) -> None:
    keys: dict[str, Any] = yaml.safe_load(blocks("yaml")[1])
    HelixRunner.model_validate(keys | {"base_url": "http://x"}, context={"folder": tmp_path})


def test_the_platforms_configuration_has_the_backend() -> None:
    platform = yaml.safe_load(blocks("yaml")[2])
    (profile,) = platform["jobs"]["executors"]
    assert (profile["provider"], profile["profile"], profile["backend"]) == ("subprocess", "default", "subprocess")
