"""A gate says nothing while there are no cases to say it of: one mistake, one message."""

from pathlib import Path

import pytest

from pytest_metricbench import load_experiment
from pytest_metricbench.definition.problems import DefinitionError

HEAD = """metricbench: 1
name: e
runner: {kind: python, agent: "json:dumps"}
gates: ["baseline pass@1 >= 0.5"]
"""


@pytest.mark.parametrize(
    "cases", ["", "cases: {id: c, tasks: [{id: t}]}\n", "cases: []\n"], ids=["none", "map", "empty"]
)
def test_only_the_cases_are_wrong(tmp_path: Path, cases: str) -> None:
    path = tmp_path / "experiment.yml"
    path.write_text(HEAD + cases)
    with pytest.raises(DefinitionError) as raised:
        load_experiment(path)
    assert [line.split(": ")[1] for line in str(raised.value).splitlines()] == ["cases"]


def test_pass_without_its_k(tmp_path: Path) -> None:
    path = tmp_path / "experiment.yml"
    path.write_text(HEAD.replace("pass@1", "pass") + "cases: [{id: c, tasks: [{id: t}]}]\n")
    with pytest.raises(DefinitionError, match="pass names no k; write pass@1"):
        load_experiment(path)
