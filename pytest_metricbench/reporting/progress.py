"""Progress on the terminal: how many tests there will be, and a counter while a coverage request is awaited."""

from typing import Any, Final

import pytest


class Progress:
    """Tells pytest, and pytest-sugar, how many tests there will be."""

    def __init__(self, session: pytest.Session) -> None:
        """Of this session."""
        self._session: Final = session
        self._reporter: Final[Any] = session.config.pluginmanager.get_plugin("terminalreporter")
        self._counts_itself: Final = hasattr(self._reporter, "tests_count")  # pytest-sugar's does

    def expect(self, tests: int) -> None:
        """Say how many there will be, from the first to the last."""
        self._session.testscollected = tests
        if self._counts_itself:
            self._reporter.tests_count = tests


class PassingLine:
    """A line on a terminal that says what goes on, and gives way; nothing where output is not a terminal."""

    def __init__(self, config: pytest.Config) -> None:
        """Nothing is shown yet."""
        self._reporter: Final = config.pluginmanager.get_plugin("terminalreporter")
        self._shown = False

    def show(self, text: str) -> None:
        """Show this instead of what was shown before."""
        reporter = self._reporter
        if reporter is None or not reporter.isatty or reporter.verbosity < 0:
            return
        if not self._shown:
            reporter.ensure_newline()
        reporter.rewrite(text, erase=True)
        self._shown = True

    def clear(self) -> None:
        """Take the line away before something else is printed."""
        if self._shown and self._reporter is not None:
            self._reporter.rewrite("", erase=True)
            self._shown = False
