"""What became of an attempt or a coverage request, as pytest's reporters show it: letters, words, a column."""

from collections.abc import Collection
from typing import Any, Final, Literal, TypeAlias, get_args

import pytest

from pytest_metricbench.definition.scoring import Status
from pytest_metricbench.running.wire import GroupWord

GroupUnit: TypeAlias = Literal["task", "variant"]
"""What a group of attempts is about: a variant at a task, or all of a variant."""

_STATUSES: Final = {
    "missed": ("missed", "m", ("MISSED", {"yellow": True})),
    "died": ("died", "d", ("DIED", {"purple": True})),
    "not_reached": ("not reached", "-", ("NOT REACHED", {"light": True})),
    "not_needed": ("not needed", "-", ("NOT NEEDED", {"light": True})),
    "reused": ("reused", "r", ("REUSED", {"cyan": True})),
    "left": ("left", "l", ("LEFT", {"yellow": True})),
}
_OF_GROUPS: Final = {
    **_STATUSES,
    "solved": ("solved", ".", ("SOLVED", {"green": True})),
    "flaky": ("flaky", "~", ("FLAKY", {"yellow": True})),
    "mixed": ("mixed", "~", ("MIXED", {"yellow": True})),
}
_SHOWN: Final[dict[str, Any]] = dict(_STATUSES)
for _unit in get_args(GroupUnit):  # counted with their unit, so that nobody takes them for attempts
    for _word, (_label, _letter, _long) in _OF_GROUPS.items():
        _SHOWN[f"{_unit} {_word}"] = (f"{_label} ({_unit}s)", _letter, _long)
_WORDS: Final = frozenset(
    {"passed", "unmeasured", "measured", "failed", "task unmeasured", "variant unmeasured", *_SHOWN}
)


def group_word(unit: GroupUnit, statuses: Collection[Status], *, is_reused: bool, lacks: bool, left: bool) -> GroupWord:
    """What became of a group of attempts.

    Args:
        unit: what it is about.
        statuses: of the attempts that have an outcome.
        is_reused: all of those were taken from the store.
        lacks: some attempt could not be measured.
        left: some attempt is left for the next run.
    """
    if lacks:
        return "unmeasured"
    if left:
        return "left"
    if is_reused:
        return "reused"
    made = [status for status in statuses if status not in ("not_reached", "not_needed")]
    if not made:
        return "not_reached" if "not_reached" in statuses else "not_needed"
    if all(status == "passed" for status in made):
        return "solved"
    if "passed" in made:
        return "flaky" if unit == "task" else "mixed"
    return "missed" if "missed" in made else "died"


class Words:
    """Gives reporters the words. ``report.outcome`` stays what pytest and its other plugins know."""

    NAME: Final = "metricbench-words"

    def __init__(self, attribute: str) -> None:
        """``attribute`` is the one of a test report that carries the word."""
        self._attribute: Final = attribute
        self._has_column = False

    def _word(self, report: pytest.CollectReport | pytest.TestReport) -> str:
        word = getattr(report, self._attribute, None) if report.when == "call" else None
        return word if isinstance(word, str) and word in _WORDS else ""

    def pytest_report_teststatus(self, report: pytest.CollectReport | pytest.TestReport) -> Any:
        """Letters and words on the terminal for what was measured."""
        return None if report.failed else _SHOWN.get(self._word(report))

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_header(self, cells: list[str]) -> None:
        """A column of pytest-html's report: it knows and counts no outcomes but pytest's."""
        cells.append("<th>Outcome</th>")
        self._has_column = True

    @pytest.hookimpl(optionalhook=True)
    def pytest_html_results_table_row(self, report: pytest.CollectReport | pytest.TestReport, cells: list[str]) -> None:
        """The word of a row; without the column, made before an experiment was found, there is none."""
        if self._has_column and cells:
            cells.append(f"<td>{self._word(report)}</td>")
