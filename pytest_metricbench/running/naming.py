"""Which attempts an item is about, by its name below the experiment file.

What an item is, the experiment's ``items`` says: one attempt, all attempts of a variant at a task, or all attempts of
a variant. Names and their attempts are a function of the experiment alone.
"""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Final, TypeAlias

from pytest_metricbench.contracts import AttemptKey
from pytest_metricbench.definition.experiment import Experiment, ItemUnit

ItemName: TypeAlias = tuple[str | int, ...]
"""Case and variant of an item, with the task and the slot where it has one."""

_PARTS: Final[Mapping[ItemUnit, int]] = {"attempt": 4, "task": 3, "variant": 2}


class ItemNames:
    """The names of an experiment's items."""

    def __init__(self, experiment: Experiment) -> None:
        """Nothing is read through yet."""
        self._experiment: Final = experiment
        self._parts: Final = _PARTS[experiment.items]

    def of(self, key: AttemptKey) -> ItemName:
        """The name of the item that an attempt is part of."""
        return key[: self._parts]

    @cached_property
    def groups(self) -> Mapping[ItemName, tuple[AttemptKey, ...]]:
        """Item -> its attempts, both in the order of the file; an item without attempts does not exist."""
        found: dict[ItemName, list[AttemptKey]] = {}
        for case, variant, task, slot in self._experiment.attempts():
            key = (case.id, variant.id, task.id, slot)
            found.setdefault(self.of(key), []).append(key)
        return {name: tuple(keys) for name, keys in found.items()}

    def attempts(self, path: Sequence[str]) -> tuple[AttemptKey, ...] | None:
        """The attempts that a node id names, given its parts below the file; None where it names no item.

        An item of one attempt is told by the form of its name alone.
        """
        if self._experiment.items != "attempt":
            return self.groups.get(tuple(path))
        if len(path) != 3:
            return None
        task, _, slot = path[2].removesuffix("]").rpartition("[")
        return ((path[0], path[1], task, int(slot)),) if slot.isdecimal() else None
