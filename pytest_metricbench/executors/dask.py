"""The executor ``dask``: attempts and coverage requests on the workers of a Dask cluster.

A worker does one job at a time in each of its threads, in a process of the run; this process keeps the journal. What
attempts leave lies in the store at once where workers see it, and travels with the answers where they do not.
"""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import Final

from pytest_metricbench.budget import AllowanceError, BudgetReachedError
from pytest_metricbench.contracts import AttemptRecord, CoverageRecord
from pytest_metricbench.executor_settings import DaskSettings
from pytest_metricbench.executors.base import Completed, Executor, ExecutorError
from pytest_metricbench.executors.dask_coverage import job_of, keep_answer
from pytest_metricbench.executors.dask_lookout import Watched
from pytest_metricbench.executors.dask_messages import AttemptJob, AttemptMade, CoverageMeasured, Failed, Lost
from pytest_metricbench.executors.dask_packs import PackError, pack, unpack
from pytest_metricbench.executors.dask_pool import FEW_TOGETHER, MANY_TOGETHER, Answer, Pool, Ticket
from pytest_metricbench.executors.dask_site import forget_token, site_of
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.attempts import Performed
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.coverage_plan import PlannedRequest
from pytest_metricbench.running.crashes import unmeasured_record
from pytest_metricbench.running.runs import CACHED_ONLY
from pytest_metricbench.store.files import no_room
from pytest_metricbench.store.records import RecordError, attempt_from_line, attempt_to_json, to_line

IN_FLIGHT: Final = 10_000
"""Attempts that the scheduler is told of at a time: enough for it to spread them, and to ask for more machines."""
_COLLECTING: Final = 1.0
"""Seconds in which answers are fetched once the run has ended: workers go on meanwhile."""


@dataclass(eq=False, slots=True)
class _Served:
    """An experiment whose attempts are made here."""

    bench: Bench
    watched: Watched
    waiting: deque[Planned] = field(default_factory=deque)
    """Not sent yet."""
    sent: int = 0
    carried: int = 0
    """Of those that were sent, how many carry files."""

    @property
    def carries(self) -> bool:
        """Whether files travel with jobs, since workers do not see the store."""
        return not self.watched.shares_store


class DaskExecutor(Executor):
    """Has attempts made, and coverage measured, by a Dask cluster."""

    def __init__(self, settings: DaskSettings) -> None:
        """Nothing is connected yet."""
        self._settings: Final = settings
        self._pool: Pool | None = None
        self._served: Final[dict[Bench, _Served]] = {}
        self._subjects: Final[dict[Ticket, tuple[_Served, Planned]]] = {}
        """The attempts that were sent."""
        self._ready: list[Completed] = []
        self._answers: Final[dict[Ticket, Answer]] = {}
        """To coverage requests, not looked at yet."""
        self._stopped = False

    def accept(self, bench: Bench) -> None:
        """Connect to the cluster, and have its workers take up the experiment.

        Raises:
            ExecutorError: its runner needs another executor, there is no cluster, or no worker there is fit.
        """
        if bench.cached == CACHED_ONLY:
            return
        _refuse_runner(bench)
        if self._pool is None:
            self._pool = Pool(self._settings)
        site, bundle = site_of(bench, self._settings)
        try:
            self._served[bench] = _Served(bench, self._pool.take_up(site, bundle))
        except BaseException:
            forget_token(site)
            self.close()
            raise
        carries = any(served.carries for served in self._served.values())
        self._pool.together = FEW_TOGETHER if carries else MANY_TOGETHER

    @property
    def warning(self) -> str | None:
        """That the attempts wait for workers, where none is there yet."""
        if self._pool is None or self._pool.threads:
            return None
        seconds = f"{self._settings.wait:g} s"
        return f"the Dask scheduler at {self._pool.address} has no worker yet; attempts wait for one up to {seconds}"

    @property
    def notes(self) -> Sequence[str]:
        """What is to be said of the cluster beside the attempts: the workers that cannot make them, and why."""
        if self._pool is None:
            return []
        return [f"a worker cannot make attempts: {why}" for why in sorted(set(self._pool.unfit().values()))]

    # ------------------------------------------------------------ attempts

    def submit(self, bench: Bench, planned: Sequence[Planned]) -> None:
        """Take attempts on; all of them are sent at once, but as :meth:`_room` says.

        Raises:
            ExecutorError: nothing can be sent any more.
        """
        if self._stopped:
            raise ExecutorError("the run has ended, and no further attempt is started")
        self._served[bench].waiting.extend(planned)
        self._send_waiting()

    def _send_waiting(self) -> None:
        for served in self._served.values():
            while served.waiting and not self._stopped:
                if not self._send_next(served):
                    break

    def _send_next(self, served: _Served) -> bool:
        """Send the next attempt; False where that has to wait."""
        assert self._pool is not None
        bench, planned = served.bench, served.waiting[0]
        few = max(self._pool.threads, 1)
        if served.sent >= (few if bench.allowance is not None else IN_FLIGHT):
            return False
        standing = bench.attempts.standing(planned.case, planned.variant, planned.task, planned.slot)
        carries = standing.state == "rescorable" and served.carries
        if carries and served.carried >= few:
            return False
        served.waiting.popleft()
        try:
            if bench.allowance is not None and (reached := bench.allowance.take()) is not None:
                raise BudgetReachedError(reached)
            job = self._job(served, planned, standing.record, carries=carries)
        except (BudgetReachedError, AllowanceError) as error:
            self._ready.append(Completed(bench, planned.key, None, error))
            return True
        except PackError:  # its agent's work is paid for: it is scored here, where that work is
            self._ready.append(_made_here(bench, planned))
            return True
        ticket = self._pool.send(served.watched.site, job, 1 + bench.experiment.retries)
        self._subjects[ticket] = (served, planned)
        served.sent += 1
        served.carried += carries
        ticket.carries = carries
        return True

    def _job(self, served: _Served, planned: Planned, record: AttemptRecord | None, *, carries: bool) -> AttemptJob:
        line = None if record is None else to_line(attempt_to_json(record))
        work = None
        if carries and record is not None:
            folder = served.bench.layout.left_by(record)
            files = {name: folder / name for name in record.files}
            work = pack(files, served.watched.site.limit, "what the attempt left")
        return AttemptJob(planned.key, line, work)

    def completed(self, seconds: float) -> Sequence[Completed]:
        """What has ended since this was asked last; waits at most so long for the first of it.

        Raises:
            ExecutorError: the cluster is gone, or had no worker for too long.
        """
        if self._pool is None:
            return []
        if not self._stopped:
            self._send_waiting()
            self._collect(self._pool, 0.0 if self._ready else seconds)
            self._send_waiting()
        found, self._ready = self._ready, []
        return found

    def _collect(self, pool: Pool, seconds: float) -> bool:
        """Sort what was answered into attempts and requests; False where nothing was.

        Raises:
            ExecutorError: the cluster is gone, or had no worker for too long.
        """
        answered = pool.answered(seconds)
        for ticket, answer in answered:
            if ticket in self._subjects:
                self._ready.append(self._received(ticket, answer))
            else:
                self._answers[ticket] = answer
        return bool(answered)

    def _received(self, ticket: Ticket, answer: Answer) -> Completed:
        served, planned = self._subjects.pop(ticket)
        served.sent -= 1
        with suppress(OSError):
            (served.watched.site.answers / str(ticket.number)).unlink()
        served.carried -= ticket.carries
        performed = self._performed(served, planned, answer, 1 + served.bench.experiment.retries)
        if performed.record.outcome in ("not_reached", "not_needed") and served.bench.allowance is not None:
            served.bench.allowance.give_back()
        return Completed(served.bench, planned.key, performed)

    def _performed(self, served: _Served, planned: Planned, answer: Answer, times: int) -> Performed:
        """What came of an attempt, with what it left in the store; a broken answer leaves it unmeasured."""
        bench = served.bench
        if isinstance(answer, AttemptMade):
            try:
                return _kept(bench, planned, answer, served.watched.site.limit)
            except (RecordError, PackError, OSError) as error:
                room = no_room(bench.layout.root)
                kind, message = (
                    ("NoRoom", f"{room}; make room and run the same command again")
                    if room
                    else ("EvidenceDamaged", f"what the worker answered cannot be kept: {error}")
                )
        elif isinstance(answer, Lost):
            kind, message = "WorkerLost", _lost_words(answer, times)
        elif isinstance(answer, Failed):
            kind, message = "WorkerCrashed" if answer.crashed else "WorkerFailed", answer.message
        else:
            kind, message = "WorkerFailed", "a worker answered something else"
        record = unmeasured_record(bench, planned, kind, message)
        return Performed(record, (record,))

    # ------------------------------------------------------------ coverage

    def measure(
        self, bench: Bench, requests: Sequence[PlannedRequest], waiting: Callable[[int], None]
    ) -> Generator[tuple[PlannedRequest, CoverageRecord]]:
        """Measure coverage requests on the workers, and keep what each left here.

        Raises:
            StoreError: the store cannot be written.
            OSError: the folder for temporary files cannot be written.
            ExecutorError: the cluster is gone, or had no worker for too long.
        """
        assert self._pool is not None
        served = self._served[bench]
        measured: dict[int, CoverageRecord] = {}
        open_tickets: dict[Ticket, int] = {}
        to_send = deque(number for number, planned in enumerate(requests) if planned.kept is None)
        try:
            for number, planned in enumerate(requests):
                while planned.kept is None and number not in measured:
                    self._send_requests(served, requests, to_send, open_tickets, measured)
                    if number in measured:
                        break
                    if not self._collect(self._pool, 0.2):
                        waiting(number)
                    for ticket in [ticket for ticket in open_tickets if ticket in self._answers]:
                        position, answer = open_tickets.pop(ticket), self._answers.pop(ticket)
                        measured[position] = self._measured(served, requests[position], answer)
                yield planned, planned.kept or measured.pop(number)
        except BaseException:
            self._pool.cancel(list(open_tickets))
            raise

    def _send_requests(
        self,
        served: _Served,
        requests: Sequence[PlannedRequest],
        to_send: deque[int],
        open_tickets: dict[Ticket, int],
        measured: dict[int, CoverageRecord],
    ) -> None:
        assert self._pool is not None
        most = 2 * max(self._pool.threads, 1)  # each holds its evidence, or an answer that is not read yet
        while to_send and len(open_tickets) < most:
            number = to_send.popleft()
            try:
                job = job_of(requests[number], served.watched.site.limit, carries=served.carries)
            except PackError as error:
                advice = f"{error}; raise evidence_limit, or have the workers see the store"
                measured[number] = self._measured(served, requests[number], Failed(advice))
                continue
            times = 1 + served.bench.experiment.retries
            open_tickets[self._pool.send(served.watched.site, job, times)] = number

    def _measured(self, served: _Served, planned: PlannedRequest, answer: Answer) -> CoverageRecord:
        if not isinstance(answer, CoverageMeasured | Failed | Lost):
            answer = Failed("a worker answered something else")
        return keep_answer(planned, answer, served.bench.layout, served.watched.site.limit)

    # ------------------------------------------------------------ the end

    def stop(self) -> None:
        """Send nothing more; what has not begun never begins, and workers end what runs, with all its processes."""
        if self._stopped:
            return
        if self._pool is not None:
            until = monotonic() + _COLLECTING
            with suppress(ExecutorError):  # what was answered before the end is handed out yet
                while self._collect(self._pool, 0.0) and monotonic() < until:
                    pass
            self._pool.stop([served.watched.site for served in self._served.values()])
        self._stopped = True

    def close(self) -> None:
        """Leave the cluster; end it where it was started here."""
        for served in self._served.values():
            forget_token(served.watched.site)
        if self._pool is not None:
            self._pool.close()


def _refuse_runner(bench: Bench) -> None:
    runner = bench.experiment.runner
    if runner.baseline_first:
        raise ExecutorError(
            f"the runner {runner.kind!r} builds the attempts of mutants on those of the baseline, which it keeps in "
            "warm processes of this machine; run it with the executor local and pytest -n (pytest-xdist)"
        )
    if runner.ahead:
        raise ExecutorError(
            f"the runner {runner.kind!r} hands its attempts to a cluster of its own; run it with the executor local or "
            "threads"
        )


def _made_here(bench: Bench, planned: Planned) -> Completed:
    try:
        made = bench.attempts.perform(planned.case, planned.variant, planned.task, planned.slot)
    except Exception as error:
        return Completed(bench, planned.key, None, error)
    return Completed(bench, planned.key, made)


def _lost_words(answer: Lost, times: int) -> str:
    where = ", ".join(answer.begun_on)
    if times == 1:
        return f"its worker ({where}) was lost while it ran; retries: 1 or more has it run again elsewhere"
    return f"it was begun {times} times and its worker was lost each time ({where})"


def _kept(bench: Bench, planned: Planned, answer: AttemptMade, limit: int) -> Performed:
    """What a worker made of an attempt, checked, with what it left in the store.

    Raises:
        RecordError: what arrived is no record of that attempt.
        PackError: the files are not those of the record.
        OSError: they cannot be written.
    """
    fingerprint = bench.fingerprints.attempt(planned.case, planned.variant, planned.task)
    records = [attempt_from_line(line) for line in answer.records]
    for record, left in zip(records, answer.left, strict=True):
        if record.key != planned.key or record.fingerprint != fingerprint:
            raise RecordError(f"it is about another attempt: {'::'.join(map(str, record.key))}")
        if left is not None:
            unpack(left, bench.layout.left_by(record), record.files, limit)
    if not records:
        raise RecordError("the worker says that the store has it, which it was not told")
    return Performed(records[-1], tuple(records), answer.interrupted)
