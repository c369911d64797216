"""The scheduler is what pytest-xdist asks of one: its protocol is typed, and the package is not."""

import inspect
from collections.abc import Mapping

import pytest
from xdist.scheduler import LoadScheduling
from xdist.scheduler.protocol import Scheduling

from pytest_metricbench.pytest_side.scheduling import ExperimentScheduling

MEMBERS = sorted(name for name in vars(Scheduling) if not name.startswith("_"))


def parameters(cls: type, name: str) -> Mapping[str, object]:
    """Name -> default of what a method takes."""
    taken = inspect.signature(getattr(cls, name)).parameters.values()
    return {parameter.name: parameter.default for parameter in taken}


def test_the_protocol_is_what_it_was() -> None:
    """A new member would be inherited from ``LoadScheduling``, which may not know how items are held here."""
    assert MEMBERS == [
        "add_node",
        "add_node_collection",
        "collection_is_completed",
        "has_pending",
        "mark_test_complete",
        "mark_test_pending",
        "nodes",
        "remove_node",
        "remove_pending_tests_from_node",
        "schedule",
        "tests_finished",
    ]


@pytest.mark.parametrize("name", MEMBERS)
def test_every_member_is_there_as_the_protocol_has_it(name: str) -> None:
    wanted, found = getattr(Scheduling, name), getattr(ExperimentScheduling, name)
    assert isinstance(found, property) == isinstance(wanted, property)
    if not isinstance(wanted, property):
        assert parameters(ExperimentScheduling, name) == parameters(Scheduling, name)


def test_what_is_inherited_knows_nothing_of_held_items() -> None:
    """Three look at the workers and their collections alone; the last is for a scheduler that steals."""
    inherited = [name for name in MEMBERS if name not in vars(ExperimentScheduling)]
    assert inherited == ["add_node", "collection_is_completed", "nodes", "remove_pending_tests_from_node"]
    assert all(getattr(ExperimentScheduling, name) is getattr(LoadScheduling, name) for name in inherited)
