"""``docs/mutants.md``: what it shows is run, and what there is stands in it."""

import json
import re
from pathlib import Path

import pytest
import yaml

from pytest_metricbench.generating.builtin import BUILTIN, known_makers

PAGE = (Path(__file__).parents[2] / "docs/mutants.md").read_text("utf-8")

EXPERIMENT = """\
metricbench: 1
name: shown
runner: {kind: python, agent: "shown:agent"}
cases:
  - id: refunds
    tasks: [{id: a}]
    baseline: {params: {temperature: 0.2, max_steps: 10}}
"""


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)


@pytest.fixture
def shown(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    monkeypatch.setenv("PYTHONDONTWRITEBYTECODE", "1")
    agent, conftest = blocks("python")
    (pytester.path / "shown.py").write_text(agent)
    (pytester.path / "conftest.py").write_text(conftest)
    (pytester.path / "policy.md").write_text("- You must ask.\n- Be polite.\n- Er muss fragen.\n")
    (pytester.path / "tools.json").write_text('[{"name": "find_order", "description": "Look up."}]\n')
    return pytester


def run(shown: pytest.Pytester, mutants: object) -> pytest.RunResult:
    (shown.path / "experiment.yml").write_text(f"{EXPERIMENT}    mutants: {json.dumps(mutants)}\n")
    return shown.runpytest_subprocess("experiment.yml", "-v")


def test_the_experiment_and_the_agent_of_the_page(shown: pytest.Pytester) -> None:
    (case,) = yaml.safe_load(blocks("yaml")[0])["cases"]
    result = run(shown, case["mutants"])
    assert result.ret == 0, result.stderr.str()
    result.stdout.fnmatch_lines_random(
        [
            "*::refunds::baseline::a?1? PASSED*",
            "*::refunds::weaken-modal-must-ask::a?1? MISSED*",
            "*::refunds::remove-tool-find-order::a?1? MISSED*",
            "*::refunds::return-error-find-order::a?1? MISSED*",
            "*::refunds::zero-param-temperature::a?1? PASSED*",
        ],
    )


def test_the_operator_and_the_generator_of_the_page(shown: pytest.Pytester) -> None:
    text = {"from": "text", "files": ["policy.md"], "operators": ["german-modal"]}
    result = run(shown, {"generate": [{"from": "personas", "names": ["a pirate"]}, text]})
    assert result.ret == 0
    result.stdout.fnmatch_lines_random(
        ["*::refunds::persona-a-pirate::a?1? PASSED*", "*::refunds::german-modal-muss-fragen::a?1? PASSED*"]
    )


def test_every_generator_key_and_operator_is_told() -> None:
    told = set(re.findall(r"`([a-z-]+)`", PAGE)) | set(re.findall(r"`([a-z]+): ", PAGE))
    assert set(known_makers().operators) - told == set()
    for origin, cls in BUILTIN.items():
        if origin in ("text", "tools", "params"):
            assert f"## `from: {origin}`" in PAGE
            assert set(cls.model_fields) - told == set()
