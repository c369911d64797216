"""The executor ``threads``: many attempts at a time in one process, for runners that wait for a program or a network.

A thread makes an attempt whole, with its retries. Threads are daemons, since one that is left behind in an agent's
code, which nobody can end, must not keep the process; what they have running is ended by :meth:`ThreadsExecutor.stop`.
"""

import resource
import threading
from collections import deque
from collections.abc import Callable, Generator, Sequence
from queue import Empty, SimpleQueue
from time import monotonic, sleep
from typing import Final

from pytest_metricbench.contracts import CoverageRecord
from pytest_metricbench.executor_settings import ThreadsSettings
from pytest_metricbench.executors.base import Completed, Executor, ExecutorError
from pytest_metricbench.process_groups import STOPPING, StoppedError, any_running, kill_running
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.coverage_plan import PlannedRequest
from pytest_metricbench.running.measuring import measure_requests

FILES_EACH: Final = 6
"""Open files of an attempt that runs a program: two logs, the program's exit, and what starting it takes."""
FILES_BESIDE: Final = 64
"""Open files that the rest of the process may have."""
_PATIENCE: Final = 1.5
"""Seconds that threads are given to end where none of them has a process running."""


class ThreadsExecutor(Executor):
    """Makes up to ``workers`` attempts at a time, each in a thread; threads start as they are needed."""

    def __init__(self, settings: ThreadsSettings) -> None:
        """No thread is started yet."""
        self._workers: Final = settings.workers
        self._waiting: Final[deque[tuple[Bench, Planned]]] = deque()
        self._changed: Final = threading.Condition()
        """Guards ``_waiting``, ``_idle``, ``_busy`` and ``_threads``."""
        self._idle = 0
        self._busy = 0
        self._threads = 0
        self._stopping: Final = threading.Event()
        self._ended: Final[SimpleQueue[Completed]] = SimpleQueue()

    def accept(self, bench: Bench) -> None:
        """Check that the runner may be used by several threads, and that there are files enough for so many.

        Raises:
            ExecutorError: it may not, or there are not.
        """
        runner = bench.experiment.runner
        if not runner.concurrent and not bench.cached:
            raise ExecutorError(
                f"the runner {runner.kind!r} makes one attempt at a time in a process; {runner.serial_advice}, "
                "or use the executor local"
            )
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        room = self._workers if soft == resource.RLIM_INFINITY else (soft - FILES_BESIDE) // FILES_EACH
        if room < self._workers:
            raise ExecutorError(
                f"{self._workers:,} attempts at a time need about {self._workers * FILES_EACH + FILES_BESIDE:,} open "
                f"files, and this process may have {soft:,}; raise that (ulimit -n), or take threads:{max(room, 1)}"
            )

    def submit(self, bench: Bench, planned: Sequence[Planned]) -> None:
        """Queue attempts, and start as many threads as can be busy with them.

        Raises:
            ExecutorError: the executor was stopped, or the system has no thread left.
        """
        if self._stopping.is_set():
            raise ExecutorError("the run has ended, and no further attempt is started")
        bench.attempts  # noqa: B018  # made here and not by several threads at once
        with self._changed:
            self._waiting.extend((bench, one) for one in planned)
            wanted = min(self._workers - self._threads, len(self._waiting) - self._idle)
            self._changed.notify(len(planned))
            for _ in range(wanted):
                self._start_thread()

    def _start_thread(self) -> None:
        thread = threading.Thread(target=self._work, name=f"metricbench-attempts-{self._threads + 1}", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            if not self._threads:
                raise ExecutorError(f"no thread can be started: {error}; take fewer at a time") from None
            return  # those that there are do all the work
        self._threads += 1

    def _work(self) -> None:
        STOPPING.set(self._stopping)
        while (taken := self._take()) is not None:
            try:
                self._make(*taken)
            finally:
                with self._changed:
                    self._busy -= 1
                    self._changed.notify_all()

    def _take(self) -> tuple[Bench, Planned] | None:
        """The next attempt, waited for; None when the executor stops."""
        with self._changed:
            self._idle += 1
            self._changed.wait_for(lambda: self._waiting or self._stopping.is_set())
            self._idle -= 1
            if self._stopping.is_set():
                return None
            self._busy += 1
            return self._waiting.popleft()

    def _make(self, bench: Bench, planned: Planned) -> None:
        """Make an attempt and hand it out; whatever goes wrong is its item's to tell."""
        try:
            completed = Completed(bench, planned.key, bench.make(planned))
        except StoppedError:
            return  # as if it had not begun; what it left is set aside by the next run
        except BaseException as error:  # SystemExit and KeyboardInterrupt of an agent's making end no run
            completed = Completed(bench, planned.key, None, error)
        self._ended.put(completed)

    def completed(self, seconds: float) -> Sequence[Completed]:
        """What has ended since this was asked last; waits at most so long for the first of them."""
        found = []
        try:
            found.append(self._ended.get(timeout=seconds) if seconds > 0 else self._ended.get_nowait())
            while True:
                found.append(self._ended.get_nowait())
        except Empty:
            return found

    def measure(
        self, bench: Bench, requests: Sequence[PlannedRequest], waiting: Callable[[int], None]
    ) -> Generator[tuple[PlannedRequest, CoverageRecord]]:
        """Measure coverage requests, as many at a time as attempts where their systems may be used by several threads.

        Raises:
            StoreError: the store cannot be written.
            OSError: the folder for temporary files cannot be written.
        """
        return measure_requests(requests, bench.layout, workers=self._workers, waiting=waiting)

    def stop(self) -> None:
        """Begin nothing more and end what runs: programs with their whole groups, agents in Python as far as they heed.

        An interrupt while it waits for programs that clean up kills them.
        """
        with self._changed:
            self._waiting.clear()
            self._stopping.set()
            self._changed.notify_all()
        patience = monotonic() + _PATIENCE
        try:
            while self._busy and (monotonic() < patience or any_running(self._stopping)):
                sleep(0.01)
        except BaseException:
            kill_running()
            raise

    def close(self) -> None:
        """Nothing is held but the threads, which have ended or will when the agents in them return."""
        self.stop()
