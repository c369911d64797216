"""The items of a session in the order of a run, where this process runs them all; else the scheduler sorts them."""

from collections.abc import Mapping
from typing import Any

import pytest

from pytest_metricbench.bases import Runner
from pytest_metricbench.collection import AttemptItem
from pytest_metricbench.ordering import Order
from pytest_metricbench.runs import Bench


def sort_items(items: list[pytest.Item]) -> None:
    """Put our items in the order of a run, among the places they take; others stay where they are."""
    places = [index for index, item in enumerate(items) if isinstance(item, AttemptItem)]
    ours = [item for index in places if isinstance(item := items[index], AttemptItem)]
    orders = {bench: Order(bench.stored or {}) for bench in {item.spec.bench for item in ours}}
    if all(type(bench.experiment.runner).affinity is Runner.affinity for bench in orders):
        ours.sort(key=lambda item: orders[item.spec.bench].rank(item.spec.key))
    else:
        ours = _in_groups(ours, orders)
    for index, item in zip(places, ours, strict=True):
        items[index] = item


def _in_groups(ours: list[AttemptItem], orders: Mapping[Bench, Order]) -> list[AttemptItem]:
    """In the order of a run, attempts that share a costly set-up one after the other."""
    ranks = {item: orders[item.spec.bench].rank(item.spec.key) for item in ours}
    groups = {item: _group(item) for item in ours}
    leads: dict[Any, tuple[int, float]] = {}
    for item in ours:
        leads[groups[item]] = min(ranks[item], leads.get(groups[item], ranks[item]))
    first = {group: position for position, group in enumerate(leads)}
    return sorted(ours, key=lambda item: (*leads[groups[item]], first[groups[item]], ranks[item]))


def _group(item: AttemptItem) -> tuple[Any, ...]:
    """What stays together in the order of a run: baseline or mutant attempts that share a costly set-up."""
    spec = item.spec
    key = spec.bench.experiment.runner.affinity(*spec.key[:3])
    return (item,) if key is None else (spec.bench, spec.variant.kind, key)
