"""What became of an attempt or a coverage request, as pytest's reporters show it: letters, words, a column."""

from typing import Any, Final

import pytest

_STATUSES: Final = {
    "missed": ("missed", "m", ("MISSED", {"yellow": True})),
    "died": ("died", "d", ("DIED", {"purple": True})),
    "not_reached": ("not reached", "-", ("NOT REACHED", {"light": True})),
    "not_needed": ("not needed", "-", ("NOT NEEDED", {"light": True})),
    "reused": ("reused", "r", ("REUSED", {"cyan": True})),
    "left": ("left", "l", ("LEFT", {"yellow": True})),
}
_WORDS: Final = frozenset({"passed", "unmeasured", "measured", "failed", *_STATUSES})


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
        return None if report.failed else _STATUSES.get(self._word(report))

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
