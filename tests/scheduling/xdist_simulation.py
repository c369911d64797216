"""A session of pytest-xdist without processes: the real controller, simulated workers, a simulated clock.

``DSession`` and ``WorkerController`` are pytest-xdist's own; only what is behind the channel is modelled, after
``xdist.remote.WorkerInteractor``: a worker takes an index, waits until it knows the next one or was told to shut
down, and only then starts the first. Time passes while ``DSession`` waits for its queue; when it waits and nothing
can happen any more, the session hangs, and that is an error.
"""

import heapq
import itertools
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

from xdist.dsession import DSession, Interrupted
from xdist.workermanage import Marker, WorkerController

SHUTDOWN = "shutdown"


class HangError(AssertionError):
    """The controller waits for an event and nobody can move."""


@dataclass(frozen=True)
class World:
    """What is simulated: the collection and everything that happens to it.

    Attributes:
        ids: the collection.
        durations: seconds that each item takes.
        workers: how many there are at the start.
        latency: seconds that a message takes in either direction.
        boot: seconds until a worker, the first or a replacement, has collected.
        crashes: items that take their worker with them when they are half done.
        kills: (number of the worker in the order they were made, time) at which it dies, whatever it does, if it
            has collected by then.
        deaf: whether sending to a worker that died raises before its end was noticed, as a broken pipe does.
        failures: items that fail, which only matters with ``maxfail``.
        maxfail: as ``--maxfail``.
        max_restart: as ``--max-worker-restart``.
        maxschedchunk: as ``--maxschedchunk``.
        other_ids: what workers of these numbers collect instead.
        rerun: whether a plugin has crashed items run again, once, as pytest-rerunfailures does.
    """

    ids: Sequence[str]
    durations: Sequence[float]
    workers: int = 2
    latency: float = 0.0
    boot: float = 0.0
    crashes: frozenset[int] = frozenset()
    kills: Sequence[tuple[int, float]] = ()
    deaf: bool = True
    failures: frozenset[int] = frozenset()
    maxfail: int = 0
    max_restart: int | None = None
    maxschedchunk: int | None = None
    other_ids: Mapping[int, Sequence[str]] = field(default_factory=dict)
    rerun: bool = False


@dataclass(frozen=True)
class Start:
    """An item began."""

    time: float
    worker: int
    item: int


@dataclass
class History:
    """What happened in a simulated session.

    Attributes:
        starts: in order.
        ends: item -> when it ended; a crashed item has none.
        cut: items that were running when their worker died.
        calls: what was sent to each worker, and when it was told to shut down.
        blamed: items that the controller reported as crashed.
        settled: items whose end or crash the controller knows.
        collect_reports: failed collection reports of the controller.
        stopped: when ``DSession`` told all workers to shut down although there was more to do.
        interrupted: why the session was stopped, if it was.
    """

    starts: list[Start] = field(default_factory=list)
    ends: dict[int, float] = field(default_factory=dict)
    cut: list[int] = field(default_factory=list)
    calls: list[tuple[int, str, tuple[int, ...]]] = field(default_factory=list)
    blamed: list[int] = field(default_factory=list)
    settled: set[int] = field(default_factory=set)
    collect_reports: list[Any] = field(default_factory=list)
    stopped: float | None = None
    interrupted: str | None = None

    @property
    def order(self) -> list[int]:
        """Items in the order they began."""
        return [start.item for start in self.starts]

    @property
    def makespan(self) -> float:
        """When the last item ended."""
        return max(self.ends.values(), default=0.0)

    def workers_of(self, items: Sequence[int]) -> set[int]:
        """The workers on which these items ran."""
        wanted = set(items)
        return {start.worker for start in self.starts if start.item in wanted}


class Clock:
    """The queue that ``DSession`` reads: simulated time passes while it waits."""

    def __init__(self) -> None:
        self.now = 0.0
        self._arrived: deque[Any] = deque()
        self._later: list[tuple[float, int, Callable[[], None]]] = []
        self._number = itertools.count()

    def put(self, event: Any) -> None:
        self._arrived.append(event)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        heapq.heappush(self._later, (self.now + seconds, next(self._number), action))

    def get(self, timeout: float) -> Any:
        while not self._arrived:
            if not self._later:
                raise HangError("the controller waits and nobody can move")
            self.now, _, action = heapq.heappop(self._later)
            action()
        return self._arrived.popleft()


class Worker:
    """The far side of a channel, as ``xdist.remote.WorkerInteractor`` behaves."""

    def __init__(self, simulation: "Simulation", number: int) -> None:
        self.simulation = simulation
        self.number = number
        self.world = simulation.world
        self.clock = simulation.clock
        self.history = simulation.history
        self.alive = True
        self.finished = False
        self.told_to_end = False
        self.queue: deque[int | str] = deque()
        self.held: int | str | None = None
        self.running: int | None = None
        self.controller: WorkerController

    def boot(self) -> None:
        self.tell("workerready", workerinfo={})
        ids = self.world.other_ids.get(self.number, self.world.ids)
        self.tell("collectionfinish", ids=list(ids), topdir="")
        for number, time in self.world.kills:
            if number == self.number and time > self.clock.now:
                self.clock.after(time - self.clock.now, self.die)

    # ------------------------------------------------ the channel

    def send(self, command: tuple[str, dict[str, Any]]) -> None:
        """What ``WorkerController`` calls to send a command."""
        name, arguments = command
        indices = tuple(arguments.get("indices", ()))
        if not self.alive and self.world.deaf:
            raise OSError("cannot send (already closed?)")
        self.history.calls.append((self.number, name, indices))
        if name == SHUTDOWN:
            self.told_to_end = True
        else:
            assert name == "runtests"
            assert indices, "nothing sent"
            assert not self.told_to_end, "sent to a worker that will not run it"
        self.clock.after(self.world.latency, lambda: self.receive(indices or (SHUTDOWN,)))

    def _getremoteerror(self) -> None:
        return None

    def tell(self, name: str, **arguments: Any) -> None:
        """Send an event to the controller."""

        def arrive() -> None:
            self.controller.process_from_remote((name, arguments))

        self.clock.after(self.world.latency, arrive)

    # ------------------------------------------------ the main loop

    def receive(self, entries: Sequence[int | str]) -> None:
        if self.alive and not self.finished:
            self.queue.extend(entries)
            self.advance()

    def advance(self) -> None:
        if self.running is not None:
            return
        if self.held is None and self.queue:
            self.held = self.queue.popleft()
        if self.held == SHUTDOWN:
            self.finish()
        elif isinstance(self.held, int) and self.queue:
            item, self.held = self.held, self.queue.popleft()
            self.start(item)

    def start(self, item: int) -> None:
        self.running = item
        self.history.starts.append(Start(self.clock.now, self.number, item))
        duration = self.world.durations[item]
        if item in self.world.crashes and item not in self.history.cut:
            self.clock.after(duration / 2, self.die)
        else:
            self.clock.after(duration, lambda: self.end(item))

    def end(self, item: int) -> None:
        if not self.alive:
            return
        self.running = None
        assert item not in self.history.ends, f"item {item} ended twice"
        self.history.ends[item] = self.clock.now
        failed = item in self.world.failures
        self.tell("testreport", data={"failed": failed})
        self.tell("runtest_protocol_complete", item_index=item, duration=self.world.durations[item])
        if failed and self.world.maxfail == 1:
            self.finish(shouldfail="stopping after 1 failures")
        else:
            self.advance()

    def finish(self, shouldfail: str | bool = False) -> None:
        self.finished = True
        output = {"exitstatus": 1 if shouldfail else 0, "shouldfail": shouldfail, "shouldstop": False}
        self.tell("workerfinished", workeroutput=output)

    def die(self) -> None:
        if not self.alive or self.finished:
            return
        self.alive = False
        if self.running is not None:
            self.history.cut.append(self.running)
        self.clock.after(self.world.latency, lambda: self.controller.process_from_remote(Marker.END))


class Hooks:
    """The hooks that ``DSession`` calls."""

    def __init__(self, scheduler: Callable[[Any, Any], Any], world: World, history: History) -> None:
        self._scheduler = scheduler
        self._world = world
        self._history = history

    def pytest_xdist_make_scheduler(self, config: Any, log: Any) -> Any:
        return self._scheduler(config, log)

    def pytest_report_from_serializable(self, config: Any, data: dict[str, Any]) -> Any:
        return SimpleNamespace(**data)

    def pytest_handlecrashitem(self, crashitem: str, report: Any, sched: Any) -> None:
        item = self._world.ids.index(crashitem)
        again = self._world.rerun and item not in self._history.blamed
        self._history.blamed.append(item)
        if again:
            sched.mark_test_pending(crashitem)
        else:
            self._history.settled.add(item)

    def pytest_collectreport(self, report: Any) -> None:
        self._history.collect_reports.append(report)

    def __getattr__(self, name: str) -> Callable[..., None]:
        return lambda **arguments: None


class Config:
    """As much of a ``pytest.Config`` as pytest-xdist asks for."""

    def __init__(self, world: World, hook: Any = None) -> None:
        self.hook = hook
        self.option = SimpleNamespace(
            debug=False,
            verbose=-1,
            maxworkerrestart=world.max_restart,
            numprocesses=None,
            maxfail=world.maxfail,
            maxschedchunk=world.maxschedchunk,
            tx=[f"{world.workers}*popen"],
        )
        self.pluginmanager = SimpleNamespace(getplugin=lambda name: None, register=lambda plugin, name=None: None)

    def getoption(self, name: str) -> Any:
        return getattr(self.option, name)

    getvalue = getoption


class Session(DSession):  # type: ignore[misc]  # pytest-xdist has no types
    """The real controller, with a look at the scheduler after each event."""

    clock: Clock
    history: History
    look: Callable[[Any, History], None]

    def loop_once(self) -> None:
        super().loop_once()
        self.look(self.sched, self.history)

    def triggershutdown(self) -> None:
        assert self.sched is not None
        if self.history.stopped is None and not self.sched.tests_finished:
            self.history.stopped = self.clock.now
        super().triggershutdown()

    def worker_runtest_protocol_complete(self, node: WorkerController, item_index: int, duration: float) -> None:
        self.history.settled.add(item_index)
        super().worker_runtest_protocol_complete(node, item_index, duration)


class Simulation:
    """One simulated session.

    Args:
        world: what happens.
        scheduler: makes the scheduler from a config and a log, as ``pytest_xdist_make_scheduler`` does.
        look: called after each event that the controller has dealt with.
    """

    specs: Sequence[str] = ()
    testrunuid = "uid"

    def __init__(
        self,
        world: World,
        scheduler: Callable[[Any, Any], Any],
        look: Callable[[Any, History], None] = lambda scheduler, history: None,
    ) -> None:
        self.world = world
        self.clock = Clock()
        self.history = History()
        self._numbers = itertools.count()
        self.group = SimpleNamespace(allocate_id=lambda spec: None)
        self.config = Config(world, Hooks(scheduler, world, self.history))
        self.session = Session(self.config)
        self.session.clock, self.session.history, self.session.look = self.clock, self.history, look
        self.session.queue = self.clock
        self.session.nodemanager = self
        self.session._session = SimpleNamespace(testscollected=0)

    def setup_node(self, spec: Any, putevent: Callable[[Any], None]) -> WorkerController:
        """Make a worker, as ``NodeManager`` does for the first and ``DSession`` for a replacement."""
        worker = Worker(self, next(self._numbers))
        gateway = SimpleNamespace(id=f"gw{worker.number}", spec=SimpleNamespace(id=None))
        worker.controller = WorkerController(self, gateway, self.config, putevent)
        worker.controller.channel = worker
        self.clock.after(self.world.boot, worker.boot)
        return worker.controller

    def run(self) -> History:
        """Run the session to its end.

        Raises:
            HangError: nobody can move any more.
        """
        nodes = [self.setup_node(None, self.clock.put) for _ in range(self.world.workers)]
        self.session._active_nodes.update(nodes)
        try:
            self.session.pytest_runtestloop()
        except Interrupted as error:
            self.history.interrupted = str(error)
        except HangError as error:
            scheduler: Any = self.session.sched
            raise HangError(f"{error}; queues: {scheduler.node2pending}") from None
        return self.history
