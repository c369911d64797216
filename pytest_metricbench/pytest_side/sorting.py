"""The order of a run: of the items, where this process runs them all, or of the ids that the scheduler sends."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

import pytest

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import AttemptKey
from pytest_metricbench.pytest_side.items import ExperimentItem
from pytest_metricbench.pytest_side.ready_items import Slot
from pytest_metricbench.running.bench import Bench, affinity_of
from pytest_metricbench.running.ordering import Order

Find: TypeAlias = Callable[[str], tuple[Bench, Sequence[AttemptKey]] | None]
"""The experiment and the attempts that a node id names."""


def sort_items(items: list[pytest.Item]) -> None:
    """Put our items in the order of a run, among the places they take; others stay where they are."""
    places = [index for index, item in enumerate(items) if isinstance(item, ExperimentItem)]
    ours = [item for index in places if isinstance(item := items[index], ExperimentItem)]
    orders = {bench: Order(bench.stored or {}) for bench in {item.bench for item in ours}}
    if all(type(bench.experiment.runner).affinity is Runner.affinity for bench in orders):
        ours.sort(key=lambda item: orders[item.bench].rank_together(item.keys))
    else:
        ours = _in_groups(ours, orders)
    for index, item in zip(places, ours, strict=True):
        items[index] = item


def _in_groups(ours: list[ExperimentItem], orders: Mapping[Bench, Order]) -> list[ExperimentItem]:
    """In the order of a run, items that share a costly set-up one after the other."""
    ranks = {item: orders[item.bench].rank_together(item.keys) for item in ours}
    groups = {item: _group(item) for item in ours}
    leads: dict[Any, tuple[int, float]] = {}
    for item in ours:
        leads[groups[item]] = min(ranks[item], leads.get(groups[item], ranks[item]))
    first = {group: position for position, group in enumerate(leads)}
    return sorted(ours, key=lambda item: (*leads[groups[item]], first[groups[item]], ranks[item]))


def _group(item: ExperimentItem) -> tuple[Any, ...]:
    """What stays together in the order of a run: items of the baseline or of mutants that share a costly set-up."""
    key = affinity_of(item.bench, item.keys)
    return (item,) if key is None else (item.bench, item.variant.kind, key)


def slots_of(nodeids: Sequence[str], find: Find) -> list[Slot] | None:
    """The scheduler's slot for each id; None when none is an item of ours."""
    found = [find(nodeid) for nodeid in nodeids]
    orders = {bench: Order(bench.stored or {}) for bench in {entry[0] for entry in found if entry is not None}}
    if not orders:
        return None
    last = (2, 0.0)
    slots = []
    for nodeid, entry in zip(nodeids, found, strict=True):
        if entry is None:
            slots.append(Slot(last, affinity=nodeid.partition("::")[0]))  # its fixtures stay on one worker
            continue
        bench, keys = entry
        is_mutant, _ = rank = orders[bench].rank_together(keys)
        gate, affinity = _gate(bench, keys[0]), affinity_of(bench, keys)
        slots.append(Slot(rank, affinity, None if is_mutant else gate, gate if is_mutant else None))
    return slots


def _gate(bench: Bench, key: AttemptKey) -> str | None:
    """What an item of a mutant waits for, and an item of the baseline opens, where the runner wants that.

    An item of one task waits for the baseline's items of that task; one of all tasks, for the baseline's.
    """
    if not bench.experiment.runner.baseline_first:
        return None
    about = key[:1] if bench.experiment.items == "variant" else (key[0], key[2])
    return "::".join((str(bench.experiment.path), *about))
