"""The executors of a session: what they do for its items and its coverage requests."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Final

import pytest

from pytest_metricbench.executor_settings import ExecutorSettings
from pytest_metricbench.executors import EXECUTORS
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.executors.dispatcher import Dispatcher
from pytest_metricbench.pytest_side.items import ExperimentItem
from pytest_metricbench.running.bench import Bench, Measure


class Executing:
    """The executors of a session, one for each of the different settings that its experiments have."""

    NAME: Final = "metricbench-executing"

    def __init__(self, session: pytest.Session) -> None:
        """None is made yet."""
        self._session: Final = session
        self._dispatchers: Final[dict[ExecutorSettings, Dispatcher]] = {}

    def accept(self, benches: Iterable[Bench]) -> None:
        """Make the executors that experiments choose.

        Raises:
            UsageError: one cannot serve an experiment.
        """
        for bench in benches:
            if bench.executor is None:
                continue
            try:
                self._dispatcher(bench.executor).accept(bench)
            except ExecutorError as error:
                raise pytest.UsageError(f"metricbench: {bench.experiment.path}: executor: {error}") from None

    def _dispatcher(self, settings: ExecutorSettings) -> Dispatcher:
        if settings not in self._dispatchers:
            make: Callable[[ExecutorSettings], Any] = EXECUTORS[settings.kind]
            self._dispatchers[settings] = Dispatcher(make(settings), self._why_ended)
        return self._dispatchers[settings]

    def begin(self, benches: Iterable[Bench], items: Iterable[pytest.Item]) -> None:
        """Have the attempts of these items made by the executors of their experiments, which were accepted.

        Call it once ``deliver`` of each bench is set.
        """
        for bench in benches:
            if bench.executor is not None and not bench.cached:
                self._dispatchers[bench.executor].serve(bench)
        ours: list[ExperimentItem] = []
        if self._dispatchers:  # what may be skipped is not paid for before its turn
            ours = [item for item in items if isinstance(item, ExperimentItem) and not item.may_be_skipped]
        for dispatcher in self._dispatchers.values():
            served = (item for item in ours if dispatcher.serves(item.bench))
            dispatcher.expect((item.bench, planned) for item in served for planned in item.planned)
        if self._dispatchers:
            self._session.config.pluginmanager.register(self, self.NAME)

    def _why_ended(self) -> str | None:
        """Why nobody waits for attempts any more; None while somebody does."""
        ended = self._session.shouldfail or self._session.shouldstop
        return f"the run ends: {ended}" if ended else None

    def warnings(self) -> list[str]:
        """What the executors have to say before the first attempt."""
        return [text for one in self._dispatchers.values() if (text := one.warning) is not None]

    def notes(self, bench: Bench) -> Sequence[str]:
        """What the executor of an experiment has to say beside its answer."""
        dispatcher = None if bench.executor is None else self._dispatchers.get(bench.executor)
        return () if dispatcher is None else dispatcher.notes

    def measure(self, bench: Bench) -> Measure | None:
        """What measures the coverage of an experiment; None where no executor does."""
        return None if bench.executor is None else self._dispatchers[bench.executor].measure

    # ------------------------------------------------ hooks

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Have a report tell how long its attempts took, and not how long it waited; keep what ended beside it.

        A session that nothing answers any more ends here.
        """
        for dispatcher in self._dispatchers.values():
            seconds = dispatcher.take_seconds() if report.when == "call" else None
            if seconds is not None:
                report.duration = seconds
            dispatcher.take_completed()
            if dispatcher.broken is not None and not self._session.shouldfail:
                self._session.shouldfail = f"metricbench: {dispatcher.broken}"

    def end(self) -> None:
        """Start nothing more, end what runs, and keep what had ended; before the stores are closed."""
        for dispatcher in self._dispatchers.values():
            dispatcher.end()
