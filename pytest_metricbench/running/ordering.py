"""The order of a run: baselines first, then mutants, the longest known first within each.

So a run cut short still says something, and no long attempt starts last. Attempts of unknown length go before those
of known length: they may be long.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Final

from pytest_metricbench.contracts import AttemptKey, AttemptRecord
from pytest_metricbench.definition.experiment import BASELINE


class Order:
    """Ranks attempts by what a store knows of their durations."""

    def __init__(self, records: Mapping[AttemptKey, AttemptRecord]) -> None:
        """Durations of ``records``, and their mean for each task."""
        self._known: Final = {key: record.duration for key, record in records.items()}
        sums: dict[tuple[str, str], tuple[float, int]] = {}
        for (case, _, task, _), duration in self._known.items():
            total, count = sums.get((case, task), (0.0, 0))
            sums[case, task] = (total + duration, count + 1)
        self._means: Final = {task: total / count for task, (total, count) in sums.items()}

    def duration(self, key: AttemptKey) -> float:
        """Seconds that an attempt is expected to take: as last time, else as its task does; else infinite."""
        known = self._known.get(key)
        return known if known is not None else self._means.get((key[0], key[2]), math.inf)

    def rank(self, key: AttemptKey) -> tuple[int, float]:
        """The smaller goes first; equal ranks keep the order of the file."""
        return (int(key[1] != BASELINE), -self.duration(key))

    def rank_together(self, keys: Sequence[AttemptKey]) -> tuple[int, float]:
        """The rank of attempts of one variant that are made one after the other, as one."""
        if len(keys) == 1:
            return self.rank(keys[0])
        return (int(keys[0][1] != BASELINE), -math.fsum(map(self.duration, keys)))
