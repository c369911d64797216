"""What an experiment's ``score`` key says of an attempt: of which kind scores are, which counts, whether it passed.

No part of a fingerprint: a changed threshold reads kept attempts anew and runs nothing.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final, Literal, TypeAlias

from pytest_metricbench.contracts import AttemptRecord, OutputKind
from pytest_metricbench.definition.experiment import ScorePolicy, Task
from pytest_metricbench.score_values import ScoreValue

Status: TypeAlias = Literal["passed", "missed", "died", "unmeasured", "not_reached", "not_needed"]

UNCOUNTED: Final[tuple[OutputKind, ...]] = ("label", "measurement")
"""Kinds that are kept and say nothing of whether an attempt passed."""
_EXPECTED: Final[Mapping[OutputKind, str]] = {
    "continuous": "a number",
    "discrete": "a whole number",
    "boolean": "true or false",
    "label": "a text",
    "measurement": "a number",
}


def policy_at(policy: ScorePolicy, task: Task) -> ScorePolicy:
    """The policy with the kinds that hold at a task."""
    return replace(policy, outputs={**policy.outputs, **task.outputs}) if task.outputs else policy


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


def primary_score(policy: ScorePolicy, names: Mapping[str, object]) -> str | None:
    """The name of the score that decides; None if it is absent.

    The declared one, else the only one that counts, else ``reward``. Scores that are declared count in that even where
    an attempt lacks them: what is left of several never decides by being the only one there.
    """
    if policy.primary is not None:
        return policy.primary if policy.primary in names else None
    counting = {name for name in (*names, *policy.outputs) if policy.outputs.get(name) not in UNCOUNTED}
    if len(counting) == 1:
        return next((name for name in counting if name in names), None)
    return "reward" if "reward" in names else None


def status(policy: ScorePolicy, record: AttemptRecord) -> Status:
    """What became of an attempt under this policy.

    A scored attempt whose primary score is null died before that score; one without it is unmeasured. A boolean
    passes when it is true, whatever the threshold; NaN passes none.
    """
    if record.outcome != "scored":
        return record.outcome
    name = primary_score(policy, record.scores)
    if name is None:
        return "unmeasured"
    value = record.scores[name]
    if value is None:
        return "died"
    if isinstance(value, str):
        return "unmeasured"
    passes = value if isinstance(value, bool) else value >= policy.pass_at_least
    return "passed" if passes else "missed"


def kind_problem(policy: ScorePolicy, scores: Mapping[str, ScoreValue]) -> str | None:
    """Which score is not of the kind that it is declared as; None when all are."""
    for name, kind in policy.outputs.items():
        value = scores.get(name)
        if value is not None and not fits_kind(kind, value):
            return f"score {name!r} is {value!r}; it is declared as {kind}, which is {_EXPECTED[kind]}"
    return None


def primary_problem(policy: ScorePolicy, scores: Mapping[str, ScoreValue]) -> str | None:
    """Why the score that decides says nothing; None when it does."""
    primary = primary_score(policy, scores)
    if primary is None:
        return _no_primary(policy, scores)
    if isinstance(scores[primary], str):
        return f"the primary score {primary!r} is the text {scores[primary]!r}; a number or a boolean is expected"
    return None


def fits_kind(kind: OutputKind, value: ScoreValue) -> bool:
    """Whether a value that is not null is of the kind that its score is declared as."""
    if kind == "label":
        return isinstance(value, str)
    if kind == "boolean":
        return isinstance(value, bool)
    if isinstance(value, bool | str):
        return False
    return kind != "discrete" or isinstance(value, int) or (isinstance(value, float) and value.is_integer())


def _no_primary(policy: ScorePolicy, scores: Mapping[str, ScoreValue]) -> str:
    given = ", ".join(sorted(scores))
    if policy.primary is not None:
        return f"the primary score {policy.primary!r} is missing; the verifier gave {given}"
    return f"there are several scores ({given}) and none is called 'reward'; name one in score.primary"
