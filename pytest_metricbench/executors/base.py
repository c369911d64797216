"""What makes attempts beneath the items of pytest, many at a time, and measures coverage.

An executor knows neither pytest nor the items: it is given attempts in the order in which they are to be started, and
hands out what became of them as they end, in any order. :class:`~pytest_metricbench.executors.dispatcher.Dispatcher`
stands between it and the items.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass

from pytest_metricbench.contracts import AttemptKey, CoverageRecord
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.attempts import Performed
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.coverage_plan import PlannedRequest


class ExecutorError(Exception):
    """An executor cannot serve an experiment, or cannot go on. The message says why and what to do."""


@dataclass(frozen=True, slots=True)
class Completed:
    """What became of a submitted attempt: exactly one of ``performed`` and ``error`` is given."""

    bench: Bench
    key: AttemptKey
    performed: Performed | None
    error: BaseException | None = None
    """What :meth:`Bench.make` raised, which the attempt's item is to raise: the budget is spent, or a fault."""


class Executor(ABC):
    """Makes attempts of one or more experiments, and measures their coverage.

    All methods are called by one thread, that of pytest. The order of calls: :meth:`accept` for each experiment,
    :meth:`submit` and :meth:`completed` in any number, :meth:`measure` for each experiment where the run was not
    interrupted, :meth:`stop`, :meth:`completed` once more, :meth:`close`.
    """

    @property
    def warning(self) -> str | None:
        """What is to be said before the first attempt, once every experiment was accepted; None where all is well."""
        return None

    @property
    def notes(self) -> Sequence[str]:
        """What is to be said beside the answer, at the end."""
        return ()

    @abstractmethod
    def accept(self, bench: Bench) -> None:
        """Check that this executor can make the attempts of an experiment; called before anything is submitted.

        Raises:
            ExecutorError: it cannot; the message says what to do.
        """

    @abstractmethod
    def submit(self, bench: Bench, planned: Sequence[Planned]) -> None:
        """Take attempts on, to be started in this order and after all that were submitted before. Does not wait.

        None of them is in the store, and none is in flight. An attempt that has ended may be submitted again.

        Raises:
            ExecutorError: nothing can be submitted any more.
        """

    @abstractmethod
    def completed(self, seconds: float) -> Sequence[Completed]:
        """What has ended since this was asked last, each once; waits at most so long for the first of them.

        After :meth:`stop` it does not wait for what was ended or never begun, of which nothing is handed out.

        Raises:
            ExecutorError: what was submitted cannot be answered any more. What had ended was handed out before.
        """

    @abstractmethod
    def measure(
        self, bench: Bench, requests: Sequence[PlannedRequest], waiting: Callable[[int], None]
    ) -> Generator[tuple[PlannedRequest, CoverageRecord]]:
        """Measure coverage requests and yield each record in the given order, as ``measuring.measure_requests`` does.

        Closing the iterator, or an interrupt, ends what is running and starts nothing more. ``waiting`` is called
        with the number of requests done about five times a second while one is awaited.

        Raises:
            StoreError: the store cannot be written.
            OSError: the folder for temporary files cannot be written.
            ExecutorError: they cannot be measured any more.
        """

    @abstractmethod
    def stop(self) -> None:
        """Start no further attempt, and end those that run, with every process that they started.

        Returns when that is done, within two seconds unless a runner needs longer to clean up. What has ended before
        can still be asked for. Stopping again does nothing.
        """

    @abstractmethod
    def close(self) -> None:
        """Let go of everything. Called once, after :meth:`stop`."""
