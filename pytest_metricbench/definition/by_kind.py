"""What an experiment names by its kind: the runner, the executor and the coverage systems, checked by their classes."""

from collections.abc import Mapping
from typing import TypeVar

from pydantic import BaseModel

from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.definition.cases import check_unique
from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.experiment import CoverageEntry
from pytest_metricbench.definition.models import CoverageForm
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.definition.wording import described
from pytest_metricbench.executor_settings import SETTINGS, ExecutorSettings, ExecutorTextError, settings_of_text
from pytest_metricbench.messages import joined

Entry = TypeVar("Entry", bound=BaseModel)


def runner_of(root: Place, kinds: Mapping[str, type[Runner]], checker: Checker) -> Runner | None:
    """The runner of an experiment; None where it is not right, which the checker's problems tell."""
    place = root.child("runner")
    if place is None or not isinstance(place.value, dict):
        return None
    return _entry(place, kinds, "runner", checker)


def executor_of(root: Place, checker: Checker) -> ExecutorSettings | None:
    """The executor of an experiment, a mapping or a short text; None where there is none or it is not right."""
    place = root.child("executor")
    if place is not None and isinstance(place.value, dict):
        return _entry(place, SETTINGS, "executor", checker)
    if place is not None and isinstance(place.value, str) and place.value:
        try:
            return settings_of_text(place.value)
        except ExecutorTextError as error:
            hint = checker.problems.hint(error.unknown, SETTINGS) if error.unknown else ""
            checker.problems.add(place.problem(error.message, joined(hint, error.remedy)))
    return None


def coverage_of(root: Place, kinds: Mapping[str, type[CoverageSystem]], checker: Checker) -> list[CoverageEntry]:
    """The coverage systems of an experiment that are right, in the order of the file."""
    found = []
    entries = root.entries("coverage")
    for place in entries:
        if not isinstance(place.value, dict):
            remedy = "a coverage system is a mapping with id and kind"
            checker.problems.add(place.problem(f"is {described(place.value)}", remedy))
            continue
        named = {key: value for key, value in place.value.items() if key == "id"}
        form = checker.check(CoverageForm, Place(place.document, place.keys, named))
        system = _entry(place, kinds, "coverage system", checker)
        if form is not None and system is not None:
            found.append(CoverageEntry(form.id, system))
    check_unique(entries, "coverage system", checker.problems)
    return found


def _entry(place: Place, kinds: Mapping[str, type[Entry]], what: str, checker: Checker) -> Entry | None:
    """A mapping as the class that its ``kind`` names."""
    problems = checker.problems
    listed = f"the kinds are {', '.join(sorted(kinds))}" if kinds else ""
    kind = place.child("kind")
    if kind is None:
        problems.add(place.missing("kind", joined(f"it says which {what} this is", listed)))
    elif not isinstance(kind.value, str):
        problems.add(kind.problem(f"is {described(kind.value)}", joined("a text is expected", listed)))
    elif kind.value not in kinds:
        hint = joined(problems.hint(kind.value, kinds), listed)
        problems.add(kind.problem(f"there is no {what} {kind.value!r}", hint))
    else:
        return checker.check_plugin(kinds[kind.value], place, without="id" if what == "coverage system" else None)
    return None
