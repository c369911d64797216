"""Watches the workers of a Dask cluster: greets those that come, and tells what became of the others.

A worker is sent attempts of a site when it was greeted and found fit: it has this plugin in this version, sees the
same experiment, and can write what it has to write. Others are left alone, by name and reason.
"""

import importlib.metadata
import platform
import threading
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import Any, Final

from pytest_metricbench.executors.dask_connection import Cluster
from pytest_metricbench.executors.dask_messages import PACKAGE, Greeting, Site, own_version
from pytest_metricbench.executors.dask_worker import greet

_LOOK_EVERY: Final = 0.5
_LOOKS_FOR_HELD: Final = 12
"""Looks at what the scheduler holds back, after a worker came."""


@dataclass(slots=True)
class Watched:
    """A site, as far as workers took it up."""

    site: Site
    bundle: bytes | None
    fit: dict[str, int] = field(default_factory=dict)
    """Instance of a worker -> its threads."""
    unfit: dict[str, str] = field(default_factory=dict)
    """Instance of a worker -> its address and why it can make no attempts."""
    served: float = field(default_factory=monotonic)
    """When a fit worker was there last, of ``time.monotonic``; from the beginning where none was."""
    shares_store: bool | None = None
    """Whether workers see the store; None while nobody was greeted."""


class Lookout:
    """A thread that looks at the cluster about twice a second, once :meth:`start` was called."""

    def __init__(self, cluster: Cluster, waiting: Callable[[], Collection[str]]) -> None:
        """Nothing is watched yet.

        Args:
            cluster: what to look at.
            waiting: gives the keys of the tasks that have not ended.
        """
        self._cluster: Final = cluster
        self._waiting: Final = waiting
        self.watched: Final[list[Watched]] = []
        """The sites that workers are to take up."""
        self._scheduler: Final[str] = str(cluster.identity().get("id"))
        self._stopping: Final = threading.Event()
        self._looking: Final = threading.Lock()
        self._thread: threading.Thread | None = None
        self._looks_for_held = 0
        self.workers: Mapping[str, str] = {}
        """Instance of each worker that is there -> its address."""
        self.gone: str | None = None
        """Why the cluster cannot be used any more."""
        self.trouble: str | None = None
        """What went wrong when the cluster was looked at last, though it is there."""
        self.to_send_again: set[str] = set()
        """Keys of tasks that the scheduler has for no worker, though one came that could do them."""

    def watch(self, site: Site, bundle: bytes | None) -> Watched:
        """Have workers take up a site from now on, and look once for those that are there."""
        watched = Watched(site, bundle)
        self.watched.append(watched)
        self.look()
        return watched

    def start(self) -> None:
        """Begin to look by itself; starting again does nothing."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="metricbench-dask-lookout", daemon=True)
            self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stopping.set()

    def threads(self) -> int:
        """How many jobs the fit workers can do at a time."""
        fit: dict[str, int] = {}
        for watched in self.watched:
            fit.update(watched.fit)
        return sum(fit.values())

    def _run(self) -> None:
        while not self._stopping.wait(_LOOK_EVERY) and self.gone is None:
            self.look()

    def look(self) -> None:
        """Look at the cluster once."""
        with self._looking:
            try:
                self._look()
            except Exception as error:  # of the connection; its state says what it means
                if self._cluster.client.status not in ("running", "closing", "closed"):
                    self.gone = self._lost_words()
                else:
                    self.trouble = f"{type(error).__name__}: {error}"

    def _look(self) -> None:
        if self._cluster.client.status != "running":
            if not self._stopping.is_set():
                self.gone = self._lost_words()
            return
        identity = self._cluster.identity()
        if str(identity.get("id")) != self._scheduler:
            self.gone = f"{self._lost_words()} and another one is there now"
            return
        there = {f"{info['id']} {address}": (address, info) for address, info in identity["workers"].items()}
        self.workers = {instance: address for instance, (address, _) in there.items()}
        for watched in self.watched:
            for instance in [name for name in watched.fit if not _serves(watched.site, there.get(name))]:
                del watched.fit[instance]
            fresh = [name for name in there if name not in watched.fit and name not in watched.unfit]
            if fresh:
                self._greet(watched, {there[name][0]: name for name in fresh}, there)
            if watched.fit:
                watched.served = monotonic()
        self._look_for_held()

    def _lost_words(self) -> str:
        return f"the Dask scheduler at {self._cluster.address} is gone"

    # ------------------------------------------------------------ greeting

    def _greet(self, watched: Watched, instances: Mapping[str, str], there: Mapping[str, tuple[str, Any]]) -> None:
        """Have workers (address -> instance) take up a site."""
        right = self._of_our_version(watched, instances)
        if not right:
            return
        answers = self._cluster.client.run(greet, watched.site, watched.bundle, workers=list(right), on_error="return")
        if self._stopping.is_set():
            return  # the run has ended, and the workers may have been told so in the middle of it
        if watched.shares_store is None:
            greetings = [one for one in answers.values() if isinstance(one, Greeting) and one.problem is None]
            if greetings:
                watched.shares_store = all(one.shares_store for one in greetings)
        for address, answer in answers.items():
            instance = instances[address]
            problem = _problem(answer, watched)
            if problem == "":
                watched.fit[instance] = int(there[instance][1]["nthreads"])
                self._looks_for_held = _LOOKS_FOR_HELD
            elif problem is not None:
                watched.unfit[instance] = f"{address}: {problem}"

    def _of_our_version(self, watched: Watched, instances: Mapping[str, str]) -> list[str]:
        """The addresses of those that have this plugin in this version, under this version of Python."""
        run = self._cluster.client.run  # functions of the standard library: every worker knows them
        plugins = run(importlib.metadata.version, PACKAGE, workers=list(instances), on_error="return")
        pythons = run(platform.python_version, workers=list(instances), on_error="return")
        right = []
        for address, instance in instances.items():
            plugin, python = plugins.get(address), pythons.get(address)
            if isinstance(plugin, importlib.metadata.PackageNotFoundError):
                problem = f"{PACKAGE} is not installed there; install version {own_version()}"
            elif not isinstance(plugin, str) or not isinstance(python, str):
                continue  # it does not answer: it is looked at again while it is there
            elif plugin != own_version():
                problem = f"{PACKAGE} {plugin} is installed there, and {own_version()} here; install the same"
            elif _minor(python) != _minor(platform.python_version()):
                problem = f"it runs Python {python}, and this is {platform.python_version()}; the first two must agree"
            else:
                right.append(address)
                continue
            watched.unfit[instance] = f"{address}: {problem}"
        return right

    # ------------------------------------------------------------ held back

    def _look_for_held(self) -> None:
        """Find tasks that no worker has and none will be given: the scheduler looks only when a worker is new to it.

        It was new before it was found fit.
        """
        keys = self._waiting() if self._looks_for_held else ()
        self._looks_for_held = max(0, self._looks_for_held - 1)
        if keys:
            client = self._cluster.client
            states = client.sync(client.scheduler.get_task_status, keys=list(keys))
            self.to_send_again |= {str(key) for key, state in states.items() if state == "no-worker"}


def _serves(site: Site, worker: tuple[str, Any] | None) -> bool:
    """Whether a worker is there and has taken the site up: not another one that came in its place under its name."""
    return worker is not None and bool(worker[1].get("resources", {}).get(site.resource))


def _problem(answer: object, watched: Watched) -> str | None:
    """Why a worker is not fit; empty where it is, None where it did not answer."""
    if isinstance(answer, ModuleNotFoundError | ImportError | AttributeError):
        return f"{PACKAGE} cannot be used there: {answer}"
    if not isinstance(answer, Greeting):
        return None
    if answer.problem is not None:
        return answer.problem
    if watched.shares_store and not answer.shares_store:
        return f"it does not see the store {watched.site.store}, which the workers before it see"
    return ""


def _minor(version: str) -> list[str]:
    return version.split(".")[:2]
