"""Jobs on a Dask cluster: sent, sent again where their worker was lost, and answered.

The scheduler sends the jobs of a lost worker to others by itself, as often as its own configuration says; how often a
job may begin is held by the workers (:func:`.dask_worker.do`). What the scheduler gives up, or does not see, is sent
again from here, under another key and with the same claims.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from pytest_metricbench.executor_settings import DaskSettings
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.executors.dask_connection import Cluster, within
from pytest_metricbench.executors.dask_lookout import Lookout, Watched
from pytest_metricbench.executors.dask_messages import (
    AttemptJob,
    AttemptMade,
    CoverageJob,
    CoverageMeasured,
    Failed,
    Lost,
    Site,
)
from pytest_metricbench.executors.dask_worker import CLAIMS, dismiss, do

if TYPE_CHECKING:
    from distributed import Future

Answer: TypeAlias = AttemptMade | CoverageMeasured | Failed | Lost

_AGAIN: Final = 20
"""Times that a job is sent again which never began."""
FEW_TOGETHER: Final = 4
"""Answers that are fetched at a time where each may hold files."""
MANY_TOGETHER: Final = 256
"""Likewise where what they left lies in the store."""
_WAIT_BESIDE_UNFIT: Final = 30.0
"""Seconds that work waits at most where workers are there, and none of them can do it."""
_STOPPING: Final = 1.5
"""Seconds that workers are given to end what runs."""


@dataclass(eq=False, slots=True)
class Ticket:
    """A job that was sent."""

    site: Site
    number: int
    """Of the job, in its site."""
    times: int
    """How often it may begin."""
    job: AttemptJob | CoverageJob | None
    sent: int = 0
    crashes: int = 0
    unfit: str = ""
    """Why the worker could not that it was sent to last; empty where none said so."""
    carries: bool = False
    """Files travel with it."""
    future: "Future[Any] | None" = field(default=None, repr=False)

    @property
    def key(self) -> str:
        """Of its present task; the part before the first number names the group on Dask's dashboard."""
        what = "coverage" if isinstance(self.job, CoverageJob) else "attempt"
        return f"metricbench-{what}-{self.site.id}-{self.number}-{self.sent}"


class Pool:
    """A Dask cluster that does jobs. Used by one thread."""

    def __init__(self, settings: DaskSettings) -> None:
        """Connect.

        Raises:
            ExecutorError: there is no cluster.
        """
        self._wait: Final = settings.wait
        self._cluster: Final = Cluster(settings)
        self._tickets: Final[dict[str, Ticket]] = {}
        """Of the tasks that have not ended, by key."""
        self._ended: Final[SimpleQueue[str]] = SimpleQueue()
        self._number = 0
        self._idle_since = monotonic()
        self._stopped = False
        self._cannot: ExecutorError | None = None
        """Why nothing more can be sent, where answers had to be handed out first."""
        self.together = FEW_TOGETHER
        """How many answers are fetched at a time."""
        try:
            self._lookout: Final = Lookout(self._cluster, lambda: list(self._tickets))
        except OSError as error:
            self._cluster.close()
            raise ExecutorError(f"the Dask scheduler at {self.address} is gone: {error}") from None
        except BaseException:
            self._cluster.close()
            raise

    @property
    def address(self) -> str:
        """Of the scheduler."""
        return self._cluster.address

    @property
    def threads(self) -> int:
        """How many jobs can be done at a time, now."""
        return self._lookout.threads()

    def __len__(self) -> int:
        """How many jobs have not been answered."""
        return len(self._tickets)

    def take_up(self, site: Site, bundle: bytes | None) -> Watched:
        """Have workers take up a site, now and as they come.

        Raises:
            ExecutorError: there are workers, and none of them is fit.
        """
        watched = self._lookout.watch(site, bundle)
        if self._lookout.gone is not None:
            raise ExecutorError(self._lookout.gone)
        if watched.unfit and not watched.fit:
            raise ExecutorError(f"no worker of {self.address} can make attempts: {_reasons(watched.unfit)}")
        self._lookout.start()
        self._idle_since = monotonic()
        return watched

    # ------------------------------------------------------------ jobs

    def send(self, site: Site, job: AttemptJob | CoverageJob, times: int) -> Ticket:
        """Send a job, after all that were sent before.

        Raises:
            ExecutorError: nothing can be sent any more.
        """
        self._number += 1
        ticket = Ticket(site, self._number, times, job)
        self._send(ticket)
        return ticket

    def _send(self, ticket: Ticket) -> None:
        if self._stopped:
            raise ExecutorError("the run has ended, and nothing further is sent")
        ticket.sent += 1
        key = ticket.key
        try:
            ticket.future = self._cluster.submit(
                do,
                *(ticket.site.id, ticket.number, ticket.times, ticket.job),
                key=key,
                priority=-ticket.number,
                resources={ticket.site.resource: 1},
            )
        except Exception as error:
            raise ExecutorError(
                f"nothing can be sent to the Dask scheduler at {self.address}: {type(error).__name__}: {error}"
            ) from None
        self._tickets[key] = ticket
        ticket.future.add_done_callback(lambda future: self._ended.put(str(future.key)))

    def _send_again(self, ticket: Ticket) -> Failed | None:
        """Send a job again that its worker did not answer; what it is told where that happened too often."""
        if ticket.sent >= _AGAIN + ticket.times:
            if ticket.unfit:
                return Failed(f"it was sent {ticket.sent} times, and no worker could do it: {ticket.unfit}")
            return Failed(f"the scheduler lost it {ticket.sent} times, though no worker began it")
        if ticket.future is not None:
            ticket.future.release()
        self._send(ticket)
        return None

    def answered(self, seconds: float) -> list[tuple[Ticket, Answer]]:
        """What was answered since this was asked last; waits at most so long for the first of it.

        Raises:
            ExecutorError: the cluster is gone, or no worker has been there for too long.
        """
        if self._cannot is not None:
            raise self._cannot
        tickets = self._take_ended(seconds)
        results = self._fetched(tickets)
        answers = [(ticket, self._read(ticket, results)) for ticket in tickets]
        found = [(ticket, answer) for ticket, answer in answers if answer is not None]
        try:
            for ticket, answer in answers:
                if answer is None and (failed := self._send_again(ticket)) is not None:
                    found.append((ticket, failed))
            self._send_held()
        except ExecutorError as error:
            self._cannot = error
            if not found:
                raise
        for ticket, _ in found:
            if ticket.future is not None:
                ticket.future.release()
            ticket.future = ticket.job = None
        if not self._stopped and not found:
            self._refuse_without_scheduler()
            self._refuse_without_workers()
        return found

    def _take_ended(self, seconds: float) -> list[Ticket]:
        """The jobs whose task has ended; waits at most so long for the first of them."""
        tickets: list[Ticket] = []
        until = monotonic() + seconds
        while len(tickets) < self.together:
            left = 0.0 if tickets else until - monotonic()
            try:
                key = self._ended.get(timeout=left) if left > 0 else self._ended.get_nowait()
            except Empty:
                break
            if key in self._tickets and not self._lookout_says_gone():  # else of a job that was sent again
                tickets.append(self._tickets.pop(key))
        return tickets

    def _fetched(self, tickets: Sequence[Ticket]) -> dict[Ticket, Any]:
        """What the tasks that ended well returned, fetched together; nothing where that fails for one of them."""
        ended = [ticket for ticket in tickets if ticket.future is not None and ticket.future.status == "finished"]
        if len(ended) < 2:
            return {}
        try:
            results = self._cluster.client.gather([ticket.future for ticket in ended])
        except Exception:  # then each is asked for, and says for itself what is wrong
            return {}
        return dict(zip(ended, results, strict=True))

    def _read(self, ticket: Ticket, results: Mapping[Ticket, Any]) -> Answer | None:
        """The answer of a task that has ended; None where the job is to be sent again."""
        from distributed import KilledWorker

        future = ticket.future
        assert future is not None
        if future.status not in ("finished", "error"):
            return None  # cancelled by somebody else, or forgotten with its worker
        try:
            answer: Answer = results[ticket] if ticket in results else future.result(timeout=60)
        except KilledWorker:
            return None
        except Exception as error:
            if future.status != "error":
                return None  # its worker went while it was fetched
            return Failed(f"the worker failed: {type(error).__name__}: {error}")
        if isinstance(answer, Failed) and answer.unfit:
            ticket.unfit = answer.message
            return None
        if isinstance(answer, Failed) and answer.crashed:
            ticket.crashes += 1
            return answer if ticket.crashes >= ticket.times else None
        return answer

    # ------------------------------------------------------------ the cluster

    def _lookout_says_gone(self) -> bool:
        if self._lookout.gone is None and self._cluster.client.status != "running":
            self._lookout.look()
        return self._lookout.gone is not None

    def _refuse_without_scheduler(self) -> None:
        if self._lookout_says_gone():
            raise ExecutorError(
                f"{self._lookout.gone}: {len(self._tickets):,} jobs have no answer. What was answered is kept; "
                "run the same command again to go on"
            )

    def _send_held(self) -> None:
        """Send again what the scheduler holds back."""
        while self._lookout.to_send_again and not self._stopped and not self._lookout_says_gone():
            ticket = self._tickets.pop(self._lookout.to_send_again.pop(), None)
            if ticket is not None and ticket.future is not None:
                ticket.future.cancel()
                self._send(ticket)

    def _refuse_without_workers(self) -> None:
        """Raise where work waits and no worker has been there that could do it, for as long as may be waited."""
        without = {watched.site.id: watched for watched in self._lookout.watched if not watched.fit}
        waiting = {ticket.site.id for ticket in self._tickets.values()} if without else set()
        if not waiting & without.keys():
            self._idle_since = monotonic()
            return
        for site_id in waiting & without.keys():
            unfit = without[site_id].unfit
            wait = min(self._wait, _WAIT_BESIDE_UNFIT) if unfit else self._wait
            if monotonic() - max(self._idle_since, without[site_id].served) > wait:
                raise ExecutorError(
                    f"the Dask scheduler at {self.address} has had no worker that can make attempts for {wait:g} s: "
                    f"{self._why_without(unfit)}, or raise wait"
                    + (f" (last trouble: {self._lookout.trouble})" if self._lookout.trouble else "")
                )

    def _why_without(self, unfit: Mapping[str, str]) -> str:
        if unfit:
            return f"the workers there cannot: {_reasons(unfit)}"
        if self._lookout.workers:
            return f"those there ({len(self._lookout.workers):,}) have not answered that they can; see their logs"
        return "there is no worker; start some"

    def unfit(self) -> Mapping[str, str]:
        """Instances of workers that make no attempts -> address and why."""
        return {name: why for watched in self._lookout.watched for name, why in watched.unfit.items()}

    # ------------------------------------------------------------ the end

    def cancel(self, tickets: "list[Ticket]") -> None:
        """Forget jobs: those that have not begun never begin, and nobody waits for the others."""
        futures = [ticket.future for ticket in tickets if ticket.future is not None]
        for ticket in tickets:
            self._tickets.pop(ticket.key, None)
        if futures:
            self._quietly(lambda: self._cluster.client.cancel(futures))

    def stop(self, sites: list[Site]) -> None:
        """Send nothing more, forget what has not been answered, and have workers end what runs of these sites."""
        self._stopped = True
        self._lookout.stop()
        self.cancel([ticket for ticket in self._tickets.values() if _is_open(ticket)])
        for site in sites:
            self._quietly(lambda site=site: self._leave(site))  # type: ignore[misc]

    def _leave(self, site: Site) -> None:
        self._cluster.client.run(dismiss, site.id, on_error="ignore")
        self._cluster.client.set_metadata([CLAIMS, site.id], None)

    def _quietly(self, function: Callable[[], Any]) -> None:
        """Do something that is not worth an error when the cluster is gone, nor a long wait."""
        if self._cluster.client.status == "running":
            try:
                within(_STOPPING, function)
            except Exception as error:
                self._lookout.trouble = str(error)

    def close(self) -> None:
        """Leave the cluster."""
        self._cluster.close()


def _is_open(ticket: Ticket) -> bool:
    return ticket.future is None or ticket.future.status == "pending"


def _reasons(unfit: Mapping[str, str]) -> str:
    """Why workers are unfit, each reason once."""
    lines = sorted(set(unfit.values()))
    more = f"; and {len(lines) - 3} more" if len(lines) > 3 else ""
    return "; ".join(lines[:3]) + more
