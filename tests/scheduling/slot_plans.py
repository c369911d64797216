"""Collections for the scheduler: ids, slots and durations of experiments of any shape."""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from pytest_metricbench.pytest_side.ready_items import Slot
from pytest_metricbench.pytest_side.scheduling import ExperimentScheduling


@dataclass(frozen=True)
class Plan:
    """A collection: for each id its slot and how long it takes."""

    ids: Sequence[str]
    slots: Sequence[Slot]
    durations: Sequence[float]

    def planner(self, ids: Sequence[str]) -> Sequence[Slot] | None:
        """What the scheduler is given; None when no id is an attempt."""
        assert list(ids) == list(self.ids)
        return self.slots if any(".yml::" in nodeid for nodeid in ids) else None

    def scheduler(self, config: Any, log: Any) -> ExperimentScheduling:
        """As ``pytest_xdist_make_scheduler`` makes it."""
        return ExperimentScheduling(config, log, self.planner)


def lognormal(rng: random.Random, *, mean: float = 1.0, sigma: float = 1.0) -> Callable[[], float]:
    """Durations as agents have them: most short, some very long."""
    return lambda: mean * rng.lognormvariate(-sigma * sigma / 2, sigma)


def experiment(
    *,
    tasks: int,
    mutants: int,
    attempts: int = 1,
    gates: bool = False,
    affinity: str | None = None,
    known: bool = True,
    foreign: int = 0,
    seed: int = 0,
    duration: Callable[[random.Random], Callable[[], float]] = lognormal,
) -> Plan:
    """The plan of one experiment as the controller makes it.

    Args:
        tasks: how many.
        mutants: how many, beside the baseline.
        attempts: of each task under each variant.
        gates: whether mutants wait for the baseline's attempts of their task.
        affinity: ``variant`` or ``task``, or None for none.
        known: whether the order knows the durations.
        foreign: how many ids of other tests there are beside.
        seed: of durations and of the order of the collection.
        duration: makes the source of durations.
    """
    rng = random.Random(seed)
    draw = duration(rng)
    rows: list[tuple[str, Slot, float]] = []
    for variant in range(mutants + 1):
        for task in range(tasks):
            for attempt in range(attempts):
                seconds = draw()
                rank = (int(variant > 0), -seconds if known else float("-inf"))
                gate = f"t{task}" if gates else None
                key = {"variant": f"v{variant}", "task": f"t{task}", None: None}[affinity]
                slot = Slot(rank, key, None if variant else gate, gate if variant else None)
                rows.append((f"e.yml::c::v{variant}::t{task}[{attempt}]", slot, seconds))
    rows += [(f"test_x.py::test_{number}", Slot((2, 0.0)), draw()) for number in range(foreign)]
    if seed % 2:
        rng.shuffle(rows)
    return Plan([row[0] for row in rows], [row[1] for row in rows], [row[2] for row in rows])
