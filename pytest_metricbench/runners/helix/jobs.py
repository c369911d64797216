"""Jobs in flight on a Helix server: submitted ahead, found again under their names, looked at until they end.

Everything happens in the calls of those who wait; there is no thread of its own. While one job is waited for, all
others are looked at too and those that wait for room are submitted, so that the cluster is busy. Several threads may
wait, each for a job of its own.
"""

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final

from pytest_metricbench.contracts import Json
from pytest_metricbench.process_groups import pause
from pytest_metricbench.runners.helix.client import HelixClient, HelixError

RESULT: Final = "metricbench"
"""Name of the result that the program in the job registers."""
TAKEN: Final = "metricbench-taken"
"""Name of the result that marks a job whose result was taken, registered by the one who took it. It is registered
once only, so that of several runs that wait for one job exactly one gets it."""
GENERATIONS: Final = 1000
"""Jobs of one attempt that a workspace may hold."""
REFUSALS: Final = 3
"""Names in a row that the server refuses as taken although it has no such job: files of deleted ones keep some from
being used again, but not all; then it is something else that it refuses."""
SLOWER: Final = 15
"""How many times as long as at first the pause between two looks at a job grows."""
_UNTIL_FREE: Final = 2.0
"""Seconds that the end of a run waits for a thread that speaks with the server."""
_RUNNING: Final = frozenset({"created", "pending", "active", "pausing", "paused", "resuming"})
_STOPPED: Final = frozenset({"cancelling", "cancelled"})
_ENDED: Final = frozenset({"completed", "error", "cancelled"})
_KNOWN: Final = _RUNNING | _STOPPED | _ENDED


@dataclass(slots=True, eq=False)
class Job:
    """A job of an attempt."""

    base: str
    """What its name begins with: it says which attempt the job is of."""
    content: Callable[[], Mapping[str, Json]]
    """Makes what is submitted, without the name."""
    name: str = ""
    """Empty until it is submitted."""
    tried: str = ""
    """The name that it is being submitted under: an interrupted request may have got through."""
    status: str = ""
    details: dict[str, Json] = field(default_factory=dict)
    """The server's last answer about it."""
    since: float = 0.0
    """When it was submitted or found, by the monotonic clock."""
    next_look: float = 0.0
    pause: float = 0.0
    is_lost: bool = False

    @property
    def is_running(self) -> bool:
        """Whether it takes up one of the places."""
        return bool(self.name) and not self.is_lost and self.status in _RUNNING | {"cancelling"}

    @property
    def exit_code(self) -> int | None:
        """The exit status of its process, where the server tells it."""
        details = self.details.get("status_details")
        code = details.get("exit_code") if isinstance(details, dict) else None
        return code if isinstance(code, int) and not isinstance(code, bool) else None


class Jobs:
    """The jobs of one process, at most ``limit`` of them running at a time."""

    def __init__(
        self,
        client: HelixClient,
        *,
        limit: int,
        poll: float,
        patience: float | None,
    ) -> None:
        """Nothing is submitted yet.

        Args:
            client: of the workspace.
            limit: how many jobs may be running.
            poll: seconds between two looks at a job, at first.
            patience: seconds after which a job is given up; None: as long as the server lets it.
        """
        self._client = client
        self._limit = limit
        self._poll = poll
        self._patience = patience
        self._jobs: dict[str, Job] = {}
        self._waiting: deque[Job] = deque()
        self._lock = threading.RLock()
        """Held while jobs are submitted and looked at: of those who wait, one speaks with the server."""
        self._waiters = 0
        self._not_before = 0.0
        """When jobs may be submitted ahead again, after the server was out of reach."""

    def expect(self, job: Job) -> Job:
        """The job of an attempt: the one that was begun, or else this one from now on."""
        with self._lock:
            return self._jobs.setdefault(job.base, job)

    def begin(self, job: Job) -> None:
        """Submit a job as soon as there is room, without waiting for it."""
        with self._lock:
            if self.expect(job) is job:
                self._waiting.append(job)
            self._fill(patient=False)

    def wait(self, job: Job) -> None:
        """Wait until a job has ended, submitting it before all others that wait where that is still to be done.

        Raises:
            HelixError: the server refuses it, loses it, or it is given up.
        """
        with self._lock:
            self._waiters += 1
            if job in self._waiting:
                self._waiting.remove(job)
        try:
            while (seconds := self._step(job)) is not None:
                pause(seconds)
        finally:
            with self._lock:
                self._waiters -= 1

    def _step(self, job: Job) -> float | None:
        """Do what is to be done now; gives the seconds until there is more, None when the wanted job has ended."""
        with self._lock:
            if not job.name and job not in self._waiting:  # or who waits for another found it refused
                self._waiting.appendleft(job)
            self._fill(patient=True, wanted=job)
            self._look_around(job)
            if job.status in _ENDED:
                return None
            self._check(job)
            seconds = self._pause(job)
            return seconds if self._waiters == 1 else min(seconds, self._poll)  # another may see this one end

    def forget(self, job: Job) -> None:
        """Let go of a job: what it left was taken, or there is nothing to take."""
        with self._lock:
            self._jobs.pop(job.base, None)
            if job in self._waiting:
                self._waiting.remove(job)

    def drop(self, job: Job) -> None:
        """Let go of a job and have it cancelled, if it is running.

        Raises:
            HelixError: the server does not do it.
        """
        self.forget(job)
        if job.tried and not job.is_lost and job.status not in _STOPPED | _ENDED:
            self._client.cancel(job.tried)

    def close(self) -> None:
        """Have all jobs cancelled that are still running; where the server is out of reach they run on."""
        if not self._lock.acquire(timeout=_UNTIL_FREE):
            return  # a thread that was left behind waits for a server that does not answer
        try:
            self._waiting.clear()
            with suppress(HelixError):
                for job in list(self._jobs.values()):
                    self.drop(job)
            self._jobs.clear()
        finally:
            self._lock.release()

    # ------------------------------------------------------------ submitting

    def _fill(self, *, patient: bool, wanted: Job | None = None) -> None:
        """Submit what waits, while there is room; trouble with a job is told when it is asked for."""
        while self._waiting and sum(job.is_running for job in self._jobs.values()) < self._limit:
            job = self._waiting[0]
            if job is not wanted and time.monotonic() < self._not_before:
                return
            try:
                self._submit(job, patient=patient and job is wanted)
            except HelixError as error:
                if job is wanted:
                    raise
                if error.kind == "HelixUnreachable":
                    self._not_before = time.monotonic() + self._poll * SLOWER
                    return
            self._waiting.popleft()

    def _submit(self, job: Job, *, patient: bool) -> None:
        """Submit a job under the first name that is free, unless one under such a name may be had.

        A job of the attempt that is running, or has ended and left a result that nobody has taken, is as good as a
        new one: the run that submitted it was killed, or lost its connection, before it could take it.
        """
        content, refusals = job.content(), 0
        for generation in range(1, GENERATIONS + 1):
            name = job.tried = job.base if generation == 1 else f"{job.base}-r{generation}"
            refusal = self._client.create({"name": name, **content}, patient=patient)
            if refusal is None:
                self._adopt(job, name, {"status": "created"})
                return
            status = self._client.status(name, patient=patient)
            refusals = refusals + 1 if status is None else 0
            if refusals == REFUSALS:
                raise HelixError("HelixRefused", refusal)
            if status is not None and self._may_be_had(name, str(status.get("status"))):
                self._adopt(job, name, status)
                return
        raise HelixError("TooManyJobs", f"there are {GENERATIONS} jobs {job.base}-r...; delete those of earlier runs")

    def _may_be_had(self, name: str, status: str) -> bool:
        if status in ("completed", "error"):
            results = self._client.results(name) or {}
            return RESULT in results and TAKEN not in results
        return status in _RUNNING

    def _adopt(self, job: Job, name: str, details: dict[str, Json]) -> None:
        job.name, job.since, job.pause = name, time.monotonic(), self._poll
        job.next_look = job.since + job.pause
        job.status, job.details = str(details.get("status")), details

    # ------------------------------------------------------------ looking

    def _look_around(self, wanted: Job) -> None:
        """Look at every job whose time has come; trouble with another than the wanted one is told in its turn."""
        now = time.monotonic()
        for job in list(self._jobs.values()):
            if job.is_running and job.next_look <= now:
                try:
                    self._look(job, patient=job is wanted)
                except HelixError:
                    if job is wanted:
                        raise
                    self._later(job)

    def _look(self, job: Job, *, patient: bool) -> None:
        answer = self._client.status(job.name, patient=patient)
        if answer is None:
            job.is_lost = True
            return
        before, job.status, job.details = job.status, str(answer.get("status")), answer
        self._later(job, changed=job.status != before)

    def _later(self, job: Job, *, changed: bool = False) -> None:
        job.pause = self._poll if changed else min(job.pause * 1.5, self._poll * SLOWER)
        job.next_look = time.monotonic() + job.pause

    def _pause(self, wanted: Job) -> float:
        """Seconds until the next look at any job, or until the wanted one is given up."""
        times = [job.next_look for job in self._jobs.values() if job.is_running]
        if self._patience is not None and wanted.name:
            times.append(wanted.since + self._patience)
        return max(0.0, min(times) - time.monotonic()) if times else self._poll

    def _check(self, job: Job) -> None:
        """Say what is wrong with a job that is waited for; one that need not run on is cancelled.

        Raises:
            HelixError: it is lost, has a status of an unknown kind, or has had all the time that it may have.
        """
        if job.is_lost:
            message = f"the job {job.name} is gone from the server: it was deleted there, or the server lost it"
            raise HelixError("JobLost", message)
        if not job.name:
            return
        trouble = None
        if job.status not in _KNOWN:
            known = ", ".join(sorted(_KNOWN))
            message = f"the job {job.name} has the status {job.status[:60]!r}, which is none of {known}"
            trouble = HelixError("UnknownStatus", message)
        elif self._patience is not None and time.monotonic() >= job.since + self._patience:
            message = f"the job {job.name} was {job.status} after {self._patience:g} s, and was given up (job_timeout)"
            trouble = HelixError("JobTimeOut", message)
        if trouble is not None:
            with suppress(HelixError):
                self.drop(job)
            raise trouble
