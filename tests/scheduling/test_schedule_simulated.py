"""Whole sessions with pytest-xdist's own controller, simulated workers and everything that may happen to them."""

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from xdist.scheduler import LoadScheduling

from pytest_metricbench.pytest_side.ready_items import Slot
from pytest_metricbench.pytest_side.scheduling import LONGEST_QUEUE, QUEUE_SECONDS
from tests.scheduling.slot_plans import Plan, experiment, lognormal
from tests.scheduling.xdist_simulation import HangError, History, Simulation, World

thorough = settings(max_examples=300)
usual = settings(thorough, max_examples=100)


def spread(mean: float, sigma: float) -> Callable[[random.Random], Callable[[], float]]:
    return lambda rng: lognormal(rng, mean=mean, sigma=sigma)


@st.composite
def plans(draw: st.DrawFn, *, gates: bool | None = None, affinity: bool = True, phases: bool = True) -> Plan:
    """Experiments of up to about 500 items, with foreign tests beside them; never without an attempt."""
    tasks = draw(st.integers(1, 12))
    return experiment(
        tasks=tasks,
        mutants=draw(st.integers(0, 8)) if phases else 0,
        attempts=draw(st.integers(1, 4)),
        gates=draw(st.booleans()) if gates is None else gates,
        affinity=draw(st.sampled_from([None, "variant", "task"])) if affinity else None,
        known=draw(st.booleans()),
        foreign=draw(st.sampled_from([0, 0, 1, 40])) if phases else 0,
        seed=draw(st.integers(0, 10_000)),
        duration=spread(draw(st.sampled_from([0.0, 0.001, 0.05, 1.0, 60.0])), draw(st.sampled_from([0.0, 1.0, 2.0]))),
    )


@st.composite
def worlds(draw: st.DrawFn, plan: Plan, *, calm: bool = False) -> World:
    """What happens to a plan: nothing bad when calm."""
    items = st.integers(0, len(plan.ids) - 1)
    total = sum(plan.durations)
    some = st.frozensets(items, max_size=3)
    kills = st.tuples(st.integers(0, 9), st.floats(0, 1.5).map(lambda share: share * total))
    return World(
        ids=plan.ids,
        durations=plan.durations,
        workers=draw(st.integers(1, 8)),
        latency=draw(st.sampled_from([0.0, 0.002, 0.3])),
        boot=draw(st.sampled_from([0.0, 1.0])),
        crashes=frozenset() if calm else draw(some),
        kills=() if calm else draw(st.lists(kills, max_size=4)),
        deaf=draw(st.booleans()),
        failures=frozenset() if calm else draw(some),
        maxfail=0 if calm else draw(st.sampled_from([0, 0, 1, 2])),
        max_restart=None if calm else draw(st.sampled_from([None, None, 0, 1])),
        maxschedchunk=draw(st.sampled_from([None, None, 1, 5])),
        rerun=False if calm else draw(st.booleans()),
    )


sessions = plans().flatmap(lambda plan: worlds(plan).map(lambda world: (plan, world)))
calm_sessions = plans().flatmap(lambda plan: worlds(plan, calm=True).map(lambda world: (plan, world)))


class Honesty:
    """Looks at the scheduler after each event and holds what it says against what is left to do."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.openers: dict[str | None, set[int]] = {}
        for index, slot in enumerate(plan.slots):
            if slot.opens is not None:
                self.openers.setdefault(slot.opens, set()).add(index)

    def gate_is_open(self, index: int, history: History) -> bool:
        openers = self.openers.get(self.plan.slots[index].gate, set())
        return openers <= history.settled | set(history.blamed)

    def __call__(self, scheduler: Any, history: History) -> None:
        if scheduler.collection is None:
            assert not scheduler.tests_finished
            return
        left = set(range(len(self.plan.ids))) - history.settled
        assert scheduler.has_pending == bool(left)
        queues = list(scheduler.node2pending.values())
        queued = [index for queue in queues for index in queue]
        assert len(queued) == len(set(queued)), "an item is in two queues"
        assert set(queued) <= left
        for queue in queues:
            closed = [not self.gate_is_open(index, history) for index in queue]
            assert not any(closed[:-1]), "something follows an item whose gate is closed"
            assert sum(closed) == 0 or len(queue) <= 2
        finished = set(queued) == left and all(
            len(queue) < 2 and all(self.gate_is_open(index, history) for index in queue) for queue in queues
        )
        assert scheduler.tests_finished == finished


def simulate(plan: Plan, world: World) -> History:
    return Simulation(world, plan.scheduler, Honesty(plan)).run()


def assert_gates_held(plan: Plan, history: History) -> None:
    """No gated item began before its gate's items had ended or crashed, unless everything was told to shut down."""
    openers = Honesty(plan).openers
    for start in history.starts:
        if history.stopped is not None and start.time >= history.stopped:
            continue
        for opener in openers.get(plan.slots[start.item].gate, ()):
            ended = history.ends.get(opener, float("inf"))
            assert ended <= start.time or opener in history.blamed, (
                f"{plan.ids[start.item]} began at {start.time} and {plan.ids[opener]} ended at {ended}"
            )


# ---------------------------------------------------------------- nothing lost, nothing twice, no hang


@thorough
@given(sessions)
def test_every_item_runs_once_and_the_session_ends(session: tuple[Plan, World]) -> None:
    plan, world = session
    history = simulate(plan, world)
    order, blamed = history.order, history.blamed
    reruns = len(set(blamed)) if world.rerun else 0
    assert len(order) - len(set(order)) <= reruns
    assert set(history.cut) <= set(blamed) or history.stopped is not None
    if history.stopped is None:
        assert set(history.ends) | set(blamed) == set(range(len(plan.ids)))
    if not world.rerun:
        assert not set(history.ends) & set(blamed)
    assert_gates_held(plan, history)


@usual
@given(calm_sessions)
def test_without_mishaps_every_item_ends(session: tuple[Plan, World]) -> None:
    plan, world = session
    history = simulate(plan, world)
    assert sorted(history.order) == sorted(history.ends) == list(range(len(plan.ids)))
    assert history.blamed == []
    assert history.stopped is None
    assert_gates_held(plan, history)


@usual
@given(st.integers(1, 8), st.integers(0, 5), st.booleans(), st.integers(1, 6), st.data())
def test_only_what_was_running_is_blamed(tasks: int, mutants: int, gates: bool, workers: int, data: Any) -> None:
    """When nothing is under way on the wire: an item that a worker held when it died runs elsewhere."""
    plan = experiment(tasks=tasks, mutants=mutants, attempts=2, gates=gates, seed=workers)
    times = st.floats(0.001, 0.999).map(lambda share: share * sum(plan.durations))
    kills = data.draw(st.lists(st.tuples(st.integers(0, 9), times), max_size=6, unique_by=lambda kill: kill[1]))
    history = simulate(plan, World(plan.ids, plan.durations, workers=workers, kills=kills, deaf=False))
    assert sorted(history.blamed) == sorted(history.cut)
    assert set(history.ends) == set(range(len(plan.ids))) - set(history.cut)


@usual
@given(sessions, st.lists(st.integers(0, 3), min_size=1, max_size=3), st.booleans())
def test_replacements_that_collect_something_else_do_not_hang_a_session(
    session: tuple[Plan, World], odd: list[int], fewer: bool
) -> None:
    plan, world = session
    other = plan.ids[1:] if fewer else [*plan.ids, "test_new.py::test_it"]
    world = replace(world, other_ids={world.workers + number: other for number in odd})
    history = Simulation(world, plan.scheduler).run()
    odd_ones = {number for number in world.other_ids if any(worker == number for worker, _, _ in history.calls)}
    assert not odd_ones & {start.worker for start in history.starts}
    assert len(history.order) - len(set(history.order)) <= (len(set(history.blamed)) if world.rerun else 0)
    if not odd_ones and history.stopped is None:
        assert set(history.ends) | set(history.blamed) == set(range(len(plan.ids)))


def test_the_simulation_knows_a_hang() -> None:
    """A scheduler that never has the last items flushed: each worker waits to learn what follows."""

    class Unreleased(LoadScheduling):  # type: ignore[misc]
        tests_finished = False

        def check_schedule(self, node: Any, duration: float = 0) -> None:
            if self.pending:
                super().check_schedule(node, duration)

    world = World([f"test_x.py::test_{number}" for number in range(20)], [1.0] * 20)
    with pytest.raises(HangError, match="nobody can move"):
        Simulation(world, Unreleased).run()


# ---------------------------------------------------------------- order


def sends(history: History) -> list[int]:
    return [index for _, name, indices in history.calls if name == "runtests" for index in indices]


@usual
@given(calm_sessions)
def test_all_baselines_are_sent_before_a_mutant_that_need_not_wait(session: tuple[Plan, World]) -> None:
    plan, world = session
    phases = [plan.slots[index].rank[0] for index in sends(simulate(plan, world)) if plan.slots[index].gate is None]
    assert phases == sorted(phases)


@usual
@given(plans(gates=True), st.integers(1, 8))
def test_no_baseline_is_sent_after_a_mutant(plan: Plan, workers: int) -> None:
    history = simulate(plan, World(plan.ids, plan.durations, workers=workers))
    phases = [plan.slots[index].rank[0] for index in sends(history)]
    assert 0 not in phases[phases.index(1) if 1 in phases else len(phases) :]


@usual
@given(plans(gates=False, affinity=False), st.integers(1, 8))
def test_each_worker_is_sent_the_longest_first(plan: Plan, workers: int) -> None:
    history = simulate(plan, World(plan.ids, plan.durations, workers=workers))
    order = sorted(range(len(plan.ids)), key=lambda index: plan.slots[index].rank)
    place = {index: number for number, index in enumerate(order)}
    for worker in range(workers):
        places = [place[start.item] for start in history.starts if start.worker == worker]
        assert places == sorted(places)
    for number, index in enumerate(sends(history)):
        assert abs(place[index] - number) <= workers * LONGEST_QUEUE


@pytest.mark.parametrize("workers", [1, 2, 5])
def test_a_run_cut_short_says_something_of_every_baseline(workers: int) -> None:
    """Stopped after a third, all baselines are in, but for what the queues held."""
    plan = experiment(tasks=20, mutants=8, seed=3)
    order = simulate(plan, World(plan.ids, plan.durations, workers=workers)).order
    third = {plan.slots[index].rank[0] for index in order[: 20 - 2 * workers]}
    assert third == {0}
    assert {index for index in order[: 20 + 2 * workers] if plan.slots[index].rank[0] == 0} == {
        index for index, slot in enumerate(plan.slots) if slot.rank[0] == 0
    }


# ---------------------------------------------------------------- time


@usual
@given(
    st.lists(st.floats(QUEUE_SECONDS / 2, 1000), min_size=1, max_size=120),
    st.integers(1, 8),
    st.booleans(),
)
def test_no_worker_waits_behind_a_queue(durations: list[float], workers: int, known: bool) -> None:
    """When the first worker finds nothing to do, each other has an item in work and at most one behind it."""
    ids = [f"e.yml::c::v::t[{number}]" for number in range(len(durations))]
    plan = Plan(ids, [Slot((1, -seconds if known else 0.0)) for seconds in durations], durations)
    history = simulate(plan, World(ids, durations, workers=workers))
    assert history.makespan <= sum(durations) / workers + 2 * max(durations) + 1e-6


def ratio(plan: Plan, workers: int, scheduler: Callable[[Any, Any], Any] | None = None) -> float:
    """The makespan in terms of the best that any schedule could do without knowing of phases."""
    world = World(plan.ids, plan.durations, workers=workers)
    best = max(sum(plan.durations) / workers, max(plan.durations))
    return Simulation(world, scheduler or plan.scheduler).run().makespan / best


SEEDS = range(10)


@pytest.mark.parametrize("mean", [0.001, 0.02, 0.5, 30.0])
@pytest.mark.parametrize("workers", [2, 4, 8])
@pytest.mark.parametrize("gates", [False, True])
def test_longest_first_is_within_a_tenth_of_the_ideal(workers: int, mean: float, gates: bool) -> None:
    """Lognormal durations (sigma 1) that are known, 40 items a worker."""
    ratios = [
        ratio(experiment(tasks=16, mutants=19, gates=gates, seed=seed, duration=spread(mean, 1.0)), workers)
        for seed in SEEDS
    ]
    assert max(ratios) <= 1.1


@pytest.mark.parametrize("mean", [0.001, 0.5, 30.0])
@pytest.mark.parametrize("workers", [2, 8])
def test_unknown_durations_are_no_worse_than_with_dist_load(workers: int, mean: float) -> None:
    made = [experiment(tasks=16, mutants=19, known=False, seed=seed, duration=spread(mean, 1.0)) for seed in SEEDS]
    ours = sum(ratio(plan, workers) for plan in made) / len(made)
    load = sum(ratio(plan, workers, LoadScheduling) for plan in made) / len(made)
    assert ours <= load + 0.02
    assert ours <= 1.15


def test_one_long_item_that_is_declared_last() -> None:
    """It starts first when its length is known; ``--dist load`` has it wait."""
    ids = [f"e.yml::c::v::t[{number}]" for number in range(101)]
    durations = [0.04] * 100 + [2.0]
    plan = Plan(ids, [Slot((1, -seconds)) for seconds in durations], durations)
    assert ratio(plan, 2) <= 1.03
    assert ratio(plan, 2, LoadScheduling) >= 1.2


@pytest.mark.parametrize("workers", [2, 4])
def test_few_long_items_among_many_that_are_taken_from_the_store(workers: int) -> None:
    """A resumed run: most items take no time, some take a while, and no one can tell which.

    A worker that was sent many at a time would sit on several of the long ones while others are idle.
    """
    ratios = []
    for seed in SEEDS:
        rng = random.Random(seed)
        durations = [rng.uniform(5, 15) if rng.random() < 0.1 else 0.0002 for _ in range(600)]
        ids = [f"e.yml::c::v::t[{number}]" for number in range(600)]
        ratios.append(ratio(Plan(ids, [Slot((1, 0.0)) for _ in ids], durations), workers))
    assert max(ratios) <= 1.25


# ---------------------------------------------------------------- affinity


@usual
@given(st.integers(1, 20), st.integers(1, 12), st.integers(1, 8), st.integers(0, 10_000))
def test_an_affinity_goes_to_few_workers(affinities: int, each: int, workers: int, seed: int) -> None:
    """Every affinity has one worker while others are free; the last ones, at most one a worker, may get help."""
    rng = random.Random(seed)
    keys = [f"m{number % affinities}" for number in range(affinities * each)]
    durations = [rng.lognormvariate(0, 1) for _ in keys]
    ids = [f"e.yml::c::{key}::t[{number}]" for number, key in enumerate(keys)]
    slots = [Slot((1, -seconds), key) for key, seconds in zip(keys, durations, strict=True)]
    plan = Plan(ids, slots, durations)
    history = simulate(plan, World(ids, durations, workers=workers))
    pairs = {(start.worker, keys[start.item]) for start in history.starts}
    assert len(pairs) <= affinities + workers * (workers - 1)


def test_with_many_affinities_hardly_any_is_shared() -> None:
    plan = experiment(tasks=20, mutants=40, affinity="variant", seed=5)
    history = simulate(plan, World(plan.ids, plan.durations, workers=4))
    by_variant: dict[str | None, list[int]] = {}
    for index, slot in enumerate(plan.slots):
        if slot.rank[0] == 1:
            by_variant.setdefault(slot.affinity, []).append(index)
    shared = [variant for variant, items in by_variant.items() if len(history.workers_of(items)) > 1]
    assert len(by_variant) == 40
    assert len(shared) <= 4
    assert ratio(plan, 4) <= 1.1
