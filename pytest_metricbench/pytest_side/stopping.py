"""Tells the workers of pytest-xdist that the run stops: it lets them run all items that they were sent already."""

from collections.abc import Iterable
from typing import Final

import pytest

from pytest_metricbench.running.bench import Bench


class WorkerStops:
    """The controller's side: notes in the stores that the run stops. A plugin where items are sent to workers."""

    NAME: Final = "metricbench-worker-stops"

    def __init__(self, session: pytest.Session, benches: Iterable[Bench]) -> None:
        """Of this session.

        Args:
            session: the one whose workers are told.
            benches: the experiments that are under way when they are.
        """
        self._session: Final = session
        self._benches: Final = benches
        self._has_workers: Final = session.config.pluginmanager.has_plugin("dsession")

    def begin(self) -> None:
        """Heed from now on what stops the run."""
        if self._has_workers and not self._session.config.pluginmanager.has_plugin(self.NAME):
            self._session.config.pluginmanager.register(self, self.NAME)

    def tell(self, reason: str) -> None:
        """Have workers start no further attempt."""
        if self._has_workers:
            for bench in self._benches:
                bench.stop_note.write(reason)

    @pytest.hookimpl(trylast=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Tell of ``-x`` and ``--maxfail``: pytest has counted the failure by now."""
        if report.failed and self._session.shouldfail:
            self.tell(str(self._session.shouldfail))

    def pytest_unconfigure(self) -> None:
        """The last worker is gone."""
        for bench in self._benches:
            bench.stop_note.clear()
