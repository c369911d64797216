"""What was checked stays as it was checked: frozen, without room for more, with defaults that mean what they say."""

import importlib
import pkgutil
from dataclasses import FrozenInstanceError, fields, is_dataclass
from typing import Any

import pytest

from pytest_metricbench import definition
from pytest_metricbench.definition.experiment import Case, Gate, Subset, Task, Variant

MADE_STEP_BY_STEP = {"CaseDraft", "Parts", "CaseMaker", "Fingerprints"}
"""What grows while an experiment is read, or remembers what it worked out."""


def dataclasses_of_the_definition() -> dict[str, type]:
    modules = [
        importlib.import_module(f"{definition.__name__}.{found.name}")
        for found in pkgutil.iter_modules(definition.__path__)
    ]
    return {
        name: value
        for module in modules
        for name, value in vars(module).items()
        if isinstance(value, type) and value.__module__ == module.__name__ and is_dataclass(value)
    }


FIXED = {name: cls for name, cls in dataclasses_of_the_definition().items() if name not in MADE_STEP_BY_STEP}


@pytest.mark.parametrize("name", sorted(FIXED))
def test_a_checked_value_is_not_changed_by_mistake(name: str) -> None:
    value: Any = object.__new__(FIXED[name])
    with pytest.raises(FrozenInstanceError):
        setattr(value, fields(FIXED[name])[0].name, None)
    assert not hasattr(value, "__dict__"), "a misspelt attribute finds no place, and a hundred thousand take little"


def test_every_part_of_an_experiment_is_such_a_value() -> None:
    assert {
        "Experiment", "Case", "Task", "Variant", "Subset", "InputFile", "Note", "ScorePolicy", "KillRule",
        "AnalysisSettings", "Gate", "CoverageEntry", "LockState", "Scope", "CaseScope", "Claim", "Document", "Place",
        "Problem", "InputFinder", "Expansion", "Expanded", "Checker", "Generated", "MutantGeneration",
    } <= FIXED.keys()  # fmt: skip


def test_what_says_nothing_has_these_values() -> None:
    """Plugins and tests make them by hand; lines count from 1."""
    task = Task("t", 1, {})
    assert (task.tags, task.description, task.name, task.outputs, task.line) == ((), "", "", {}, 1)
    mutant = Variant("m", "mutant", {})
    assert (mutant.tags, mutant.description, mutant.name, mutant.request_id, mutant.line) == ((), "", "", "", 1)
    assert (mutant.control, mutant.equivalent) == (False, None)
    case = Case("c", "", (), (task,), (mutant,), ())
    assert (case.line, case.file, case.recorded, case.notes) == (1, None, None, ())


def test_slots_count_from_one_and_are_those_recorded_where_there_are_records() -> None:
    task, other = Task("t", 3, {}), Task("u", 2, {})
    case = Case("c", "", (), (task, other), (Variant("baseline", "baseline", {}),), (Subset("s", ("t",)),))
    assert (list(case.slots("baseline", task)), list(case.slots("m", other))) == ([1, 2, 3], [1, 2])
    recorded = Case("c", "", (), (task,), (), (), recorded={("m", "t"): 1})
    assert (list(recorded.slots("m", task)), list(recorded.slots("baseline", task))) == ([1], [])


@pytest.mark.parametrize(
    ("changed", "compares"),
    [({}, False), ({"drop": True}, True), ({"figure": "new_survivors"}, True), ({"significant": True}, False)],
)
def test_which_gates_need_an_earlier_run(changed: dict[str, Any], compares: bool) -> None:
    values: dict[str, Any] = {"text": "", "case": None, "subject": None, "figure": "mean_drop", "k": None}
    assert Gate(**{**values, "op": "<=", "number": 0.0, **changed}).compares is compares
