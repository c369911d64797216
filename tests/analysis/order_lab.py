"""The same results in another order, for tests that no order changes what an analysis says."""

import random
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.contracts import CoverageRecord


def shuffled(given: Results, seed: int) -> Results:
    """Tasks, subsets, their members, records and the goals of records in another order."""
    draw = random.Random(seed)

    def mixed(items: Iterable[Any]) -> list[Any]:
        listed = list(items)
        draw.shuffle(listed)
        return listed

    def with_mixed_goals(record: CoverageRecord) -> CoverageRecord:
        if record.goals is None:
            return record
        return replace(record, goals=replace(record.goals, by_task=dict(mixed(record.goals.by_task.items()))))

    cases = tuple(
        replace(
            case,
            tasks=tuple(mixed(case.tasks)),
            subsets=tuple(mixed(replace(subset, tasks=tuple(mixed(subset.tasks))) for subset in case.subsets)),
        )
        for case in given.experiment.cases
    )
    return replace(
        given,
        experiment=replace(given.experiment, cases=cases),
        attempts=dict(mixed(given.attempts.items())),
        coverage={key: with_mixed_goals(record) for key, record in mixed(given.coverage.items())},
    )
