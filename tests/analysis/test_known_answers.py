"""Every figure of an experiment whose answers were computed without the product, for the kept seed and for others."""

import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary_json import summary_to_json
from tests.analysis.results_builder import UNMEASURED, CaseTable, build

FOLDER = Path(__file__).parents[1] / "known_answers"


def script(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"known_answers_{name}", FOLDER / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def summary_of(outcomes: dict[str, Any], goals: dict[str, list[int]], subsets: dict[str, list[str]]) -> dict[str, Any]:
    sets = {**subsets, "pool": list(goals)}
    covered = {s: len(set().union(*(goals[task] for task in tasks))) / 20 for s, tasks in sets.items()}
    table = CaseTable(outcomes, subsets, {"goals": covered})
    summary: dict[str, Any] = json.loads(summary_to_json(summarize(build({"alpha": table}, ks=[1, 2, 4]))))
    return summary


def test_the_kept_answers() -> None:
    kept = json.loads((FOLDER / "outcomes.json").read_text())
    expected = json.loads((FOLDER / "expected.json").read_text())
    _, goals, subsets = script("make").tables(11)
    assert goals == kept["goals"]
    summary = summary_of(kept["outcomes"], goals, subsets)
    assert script("check_summary").differences(summary, expected) == []
    assert summary["counts"]["declared"] == expected["attempts"]
    assert summary["counts"]["unmeasured"] == expected["unmeasured_attempts"]
    assert summary["counts"]["died"] == expected["died_attempts"]


@pytest.mark.parametrize("seed", range(20))
def test_answers_of_other_seeds(seed: int) -> None:
    make = script("make")
    outcomes, goals, subsets = make.tables(seed)
    assert any(UNMEASURED in row for by_task in outcomes.values() for row in by_task.values())
    expected = make.expected(outcomes, goals, subsets)
    assert script("check_summary").differences(summary_of(outcomes, goals, subsets), expected) == []


def test_the_check_sees_a_difference() -> None:
    make, check = script("make"), script("check_summary")
    outcomes, goals, subsets = make.tables(11)
    expected = make.expected(outcomes, goals, subsets)
    outcomes["m01"]["t02"] = [0, 0, 0, 0]
    assert any("kill m01 t02" in line for line in check.differences(summary_of(outcomes, goals, subsets), expected))
