"""The part of a Dask worker in making attempts: it keeps processes for each run and hands jobs to them.

Nothing of an experiment is imported into the worker's own process, which is shared with other runs and other users.
"""

import asyncio
import errno
import json
import os
import secrets
import shutil
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from time import monotonic
from typing import Any, Final

from pytest_metricbench.executors.dask_messages import (
    PACKAGE,
    AttemptJob,
    AttemptMade,
    CoverageJob,
    CoverageMeasured,
    Failed,
    Greeting,
    Lost,
    Site,
    own_version,
    resource_of,
)
from pytest_metricbench.executors.dask_packs import PackError, unpack
from pytest_metricbench.executors.dask_process import Child, GoneError
from pytest_metricbench.plain_files import write_whole

FORSAKEN: Final = 3600.0
"""Seconds without a job after which a site is given up when another is taken up."""
OPENING: Final = 300.0
"""Seconds that a process is given to load the experiment, and to read all its inputs."""
CLAIMS: Final = "metricbench"
"""The key of the scheduler's metadata under which workers note which jobs they began."""


class Post:
    """A site on this worker: its files, and the processes that have loaded it."""

    def __init__(self, site: Site, bundle: bytes | None, scratch: Path) -> None:
        """Unpack the bundle, if there is one.

        Raises:
            PackError: it arrived damaged.
            OSError: this worker cannot write.
        """
        self._site: Final = site
        self._scratch: Final = scratch
        self._lock: Final = threading.Lock()
        self._idle: Final[list[Child]] = []
        self._all: Final[set[Child]] = set()
        self._ended = False
        self._busy = 0
        self._used = monotonic()
        self._number = 0
        self._folder: Path | None = None
        scratch.mkdir(parents=True)
        if site.bundle is not None and bundle is not None:
            self._folder = scratch / "bundle"
            unpack(bundle, self._folder, site.bundle, site.limit)
        self.shares_store, self.store_problem = _look_at_store(site)

    def open(self) -> Greeting:
        """Load the experiment in a process, which is kept for the first job."""
        if self.store_problem is not None:
            return Greeting(problem=self.store_problem)
        try:
            self._give(self._new())
        except _UnfitError as error:
            return Greeting(problem=str(error))
        except (GoneError, OSError) as error:
            return Greeting(problem=f"no process can be started there: {error}")
        return Greeting(shares_store=self.shares_store)

    def do(
        self, job: AttemptJob | CoverageJob, begin: Callable[[], None], wanted: Callable[[], bool]
    ) -> AttemptMade | CoverageMeasured | Failed:
        """Do a job in a process that is free, or in a new one.

        Args:
            job: what to do.
            begin: called once there is a process for it, before it is told.
            wanted: whether the answer is still wanted; the process is ended when it is not.
        """
        with self._lock:
            self._busy += 1
        try:
            return self._do(job, begin, wanted)
        finally:
            with self._lock:
                self._busy -= 1
                self._used = monotonic()

    @property
    def is_forsaken(self) -> bool:
        """Whether nothing has been asked here for so long that its run must be gone without a word."""
        with self._lock:
            return not self._busy and monotonic() - self._used > FORSAKEN

    def _do(
        self, job: AttemptJob | CoverageJob, begin: Callable[[], None], wanted: Callable[[], bool]
    ) -> AttemptMade | CoverageMeasured | Failed:
        try:
            child = self._take()
        except _UnfitError as error:
            return Failed(str(error), unfit=True)
        except (GoneError, OSError) as error:
            return Failed(f"no process can be started there: {error}", crashed=True)
        try:
            begin()
        except BaseException:
            self._give(child)
            raise
        try:
            answer: AttemptMade | CoverageMeasured | Failed
            answer = child.ask("make" if isinstance(job, AttemptJob) else "measure", job, wanted=wanted)
        except GoneError as error:
            self._forget(child)
            return Failed(str(error), crashed=True)
        self._give(child)
        return answer

    def keep(self, number: int, answer: object) -> None:
        """Keep an answer where other workers see it too, until the run has it: this one may be lost before."""
        if self.shares_store and isinstance(answer, AttemptMade):
            with suppress(OSError):  # then it is lost with this worker, like any other
                write_whole(self._site.answers / str(number), json.dumps([answer.records, answer.interrupted]))

    def kept(self, number: int) -> AttemptMade | None:
        """What another worker answered before it was lost."""
        if not self.shares_store:
            return None
        try:
            records, interrupted = json.loads((self._site.answers / str(number)).read_text("ascii"))
        except (OSError, ValueError):
            return None
        return AttemptMade(tuple(records), (None,) * len(records), interrupted)

    def end(self) -> None:
        """End every process, at once, and remove what is here."""
        with self._lock:
            self._ended = True
            for child in self._all:
                child.kill()
            for child in self._idle:
                child.end()
            self._idle.clear()
        shutil.rmtree(self._scratch, ignore_errors=True)

    def _take(self) -> Child:
        with self._lock:
            while self._idle:
                child = self._idle.pop()
                if child.lives:
                    return child
                self._all.discard(child)
                child.end()
        return self._new()

    def _new(self) -> Child:
        self._refuse_when_ended()
        with self._lock:
            self._number += 1
            scratch = self._scratch / str(self._number)
        scratch.mkdir(parents=True, exist_ok=True)
        folder = Path(self._site.experiment).parent if self._folder is None else self._folder
        child = Child(folder if folder.is_dir() else scratch)
        with self._lock:
            self._all.add(child)
            if self._ended:
                child.kill()
        until = monotonic() + OPENING
        told = (self._site, self._folder, scratch, self.shares_store)
        try:
            greeting = child.ask("open", *told, wanted=lambda: monotonic() < until)
        except GoneError:
            self._forget(child)
            self._refuse_when_ended()
            if monotonic() >= until:
                raise _UnfitError(f"the experiment was not loaded there within {OPENING:g} s") from None
            raise
        if isinstance(greeting, Failed) or greeting.problem is not None:
            self._forget(child)
            child.end()
            raise _UnfitError(greeting.message if isinstance(greeting, Failed) else greeting.problem)
        return child

    def _refuse_when_ended(self) -> None:
        with self._lock:
            if self._ended:
                raise _UnfitError("the experiment was given up there")

    def _give(self, child: Child) -> None:
        with self._lock:
            if not self._ended:
                self._idle.append(child)
                return
        child.end()

    def _forget(self, child: Child) -> None:
        with self._lock:
            self._all.discard(child)


class _UnfitError(Exception):
    """The process says that this machine can make no attempts of the experiment."""


def _look_at_store(site: Site) -> tuple[bool, str | None]:
    """Whether this worker sees the store of the run, and what is wrong where it sees it and cannot write it."""
    token = Path(site.store) / site.token
    try:
        if token.read_text("ascii") != site.token:
            return False, None
    except (OSError, ValueError):
        return False, None
    answer = token.with_name(f"{site.token}.{secrets.token_hex(4)}")
    try:
        answer.write_text(site.token, "ascii")
        answer.unlink()
        site.answers.mkdir(exist_ok=True)
        (Path(site.store) / "attempts").mkdir(exist_ok=True)
        if not os.access(Path(site.store) / "attempts", os.W_OK | os.X_OK):  # another user's run made it
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        return False, (
            f"it sees the store {site.store} and cannot write it ({error.strerror}); let its user write there, or pass "
            "another folder with --metricbench-store that the workers write, or do not see at all"
        )
    return True, None


# ---------------------------------------------------------------- what the run calls

_posts: Final[dict[str, Post]] = {}
_posts_lock: Final = threading.Lock()


_VERSION: Final = own_version()
"""Of what this process runs; another may have been installed since it started."""


async def greet(site: Site, bundle: bytes | None, dask_worker: Any) -> Greeting:
    """Take up a site: see that this worker can make its attempts, and let the scheduler send them.

    Jobs ask for a resource of the site, and only workers that were found fit have it.
    """
    if site.version != _VERSION:
        return Greeting(problem=f"{PACKAGE} {_VERSION} is loaded there, and {site.version} here; restart the worker")
    scratch = Path(dask_worker.local_directory) / f"metricbench-{site.id}-{secrets.token_hex(4)}"
    greeting = await asyncio.to_thread(_take_up, site, bundle, scratch)
    if greeting.problem is None:
        await dask_worker.set_resources(**{site.resource: dask_worker.state.nthreads})
    return greeting


def _take_up(site: Site, bundle: bytes | None, scratch: Path) -> Greeting:
    with _posts_lock:
        post = _posts.get(site.id)
    if post is not None:  # greeted again: what it does for the run goes on
        return post.open()
    try:
        post = Post(site, bundle, scratch)
    except (PackError, OSError) as error:
        shutil.rmtree(scratch, ignore_errors=True)
        return Greeting(problem=f"its files cannot be put down there: {error}")
    greeting = post.open()
    if greeting.problem is not None:
        post.end()
        return greeting
    with _posts_lock:
        former = [name for name, other in _posts.items() if other.is_forsaken]
        ended = [_posts.pop(name) for name in former]
        if _posts.setdefault(site.id, post) is not post:  # greeted twice at a time
            ended.append(post)
    for other in ended:
        other.end()
    return greeting


async def dismiss(site_id: str) -> None:
    """Give up a site: end what runs of it, with every process, and remove its files."""
    with _posts_lock:
        post = _posts.pop(site_id, None)
    if post is not None:
        await asyncio.to_thread(post.end)


def do(site_id: str, number: int, times: int, job: AttemptJob | CoverageJob) -> Any:
    """Do a job, unless it was begun ``times`` times already. Runs in a thread of the worker.

    The scheduler sends a job whose worker was lost to another one, by itself. That the job was begun is noted with
    the scheduler first, so that no attempt is run more often than it may be.

    Returns:
        AttemptMade, CoverageMeasured, :class:`Failed` or :class:`Lost`.
    """
    from distributed import get_worker

    with _posts_lock:
        post = _posts.get(site_id)
    worker = get_worker()
    if post is None:
        _send_no_more(worker, site_id)
        return Failed(f"the worker {worker.address} was not told of the experiment", unfit=True)
    begun = _claimed(worker, site_id, number)
    if begun and (kept := post.kept(number)) is not None:
        return kept
    if len(begun) >= times:
        return Lost(tuple(begun))
    begin = partial(_claim, worker, site_id, number, [*begun, worker.address])
    answer = post.do(job, begin, partial(_is_wanted, worker, worker.get_current_task()))
    if isinstance(answer, Failed) and answer.unfit:
        _send_no_more(worker, site_id)
        return answer
    post.keep(number, answer)
    return answer


def _is_wanted(worker: Any, key: str) -> bool:
    """Whether the task is still to be done: its run may have cancelled it, or be gone."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state != "cancelled"


def _claimed(worker: Any, site_id: str, number: int) -> list[str]:
    from distributed.utils import sync

    keys = [CLAIMS, site_id, str(number)]
    return list(sync(worker.loop, worker.scheduler.get_metadata, keys=keys, default=[]))


def _claim(worker: Any, site_id: str, number: int, begun: list[str]) -> None:
    from distributed.utils import sync

    sync(worker.loop, worker.scheduler.set_metadata, keys=[CLAIMS, site_id, str(number)], value=begun)


def _send_no_more(worker: Any, site_id: str) -> None:
    """Have the scheduler send no more jobs of a site until the run has greeted this worker again.

    The worker's own count stays: jobs that wait here already are answered, and not held back for ever.
    """
    from distributed.utils import sync

    none = {resource_of(site_id): 0}
    sync(worker.loop, worker.scheduler.set_resources, resources=none, worker=worker.contact_address)
