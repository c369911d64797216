"""Of which kind each score of a task is: as declared, or as its values say."""

from collections.abc import Iterable
from typing import Final

from pytest_metricbench.contracts import AttemptRecord, OutputKind
from pytest_metricbench.definition.experiment import ScorePolicy, Task

UNCOUNTED: Final[tuple[OutputKind, ...]] = ("label", "measurement")
"""Kinds that are kept and say nothing of whether an attempt passed."""


def output_kinds(policy: ScorePolicy, task: Task, records: Iterable[AttemptRecord]) -> dict[str, OutputKind]:
    """The scores of a task with their kinds: declared ones, the primary, and those that any attempt has there; sorted.

    Where no kind is declared, text makes a label, booleans alone a boolean, anything else is continuous. The primary
    always counts.

    Args:
        policy: its ``outputs`` hold at every task.
        task: its own ``outputs`` hold over those.
        records: of the task, under every variant.
    """
    kinds: dict[str, OutputKind] = {**policy.outputs, **task.outputs}
    inferred: dict[str, set[str]] = {}
    for record in records:
        for name, value in record.scores.items():
            if name not in kinds:
                inferred.setdefault(name, set()).add(type(value).__name__)
    for name in sorted(inferred):
        types = inferred[name] - {"NoneType"}
        kinds[name] = "label" if "str" in types else "boolean" if types == {"bool"} else "continuous"
    if policy.primary is not None and kinds.get(policy.primary, "label") in UNCOUNTED:
        kinds[policy.primary] = "continuous"
    return dict(sorted(kinds.items()))
