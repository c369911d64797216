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


class PassingText:
    """Text on a terminal that says what goes on, and gives way; nothing where output is not a terminal."""

    def __init__(self, config: pytest.Config) -> None:
        """Nothing is shown yet."""
        self._reporter: Final[Any] = config.pluginmanager.get_plugin("terminalreporter")
        self._beside = 0
        self._own_line = False

    def show(self, text: str) -> None:
        """Show this instead of what was shown before, behind the letters of a line that goes on, if there is one.

        Letters that had to begin a new line after every text would each be a line; so where the rest of theirs has
        no room, nothing is shown until the next one.
        """
        reporter = self._reporter
        if reporter is None or not reporter.isatty or reporter.verbosity < 0:
            return
        self.clear()
        writer = reporter.config.get_terminal_writer()
        used = writer.width_of_current_line
        if reporter.verbosity == 0 and 0 < used < writer.fullwidth and not hasattr(reporter, "tests_count"):
            self._show_beside(f"  {text}", writer.fullwidth - used)
            return
        reporter.ensure_newline()
        reporter.rewrite(text, erase=True)
        self._own_line = True

    def _show_beside(self, text: str, room: int) -> None:
        if len(text) < room:
            self._write(text + "\b" * len(text))
            self._beside = len(text)

    def clear(self) -> None:
        """Take the text away before something else is printed."""
        if self._beside:
            self._write(" " * self._beside + "\b" * self._beside)
            self._beside = 0
        if self._own_line:
            self._reporter.rewrite("", erase=True)
            self._own_line = False

    def _write(self, text: str) -> None:
        """Write without pytest's count of what stands on the line, which has to be as if nothing had been."""
        writer = self._reporter.config.get_terminal_writer()
        raw = getattr(writer, "write_raw", None)  # since pytest 9
        if raw is None:
            writer._file.write(text)
        else:
            raw(text)
        writer.flush()
