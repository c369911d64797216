"""The figures of an evaluator bundle, computed as the released SDK computes them from the same trials.

What ``AgentEvalSummary.from_scores`` of ``nhx_evals_sdk`` 0.8.1 does, with its own rules, which are not all ours: a
value passes from 1.0 on whatever the experiment says, k goes up to the largest number of trials of a task, discrete
outputs have no pass@k, and booleans are in no mean.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from pytest_metricbench.score_values import ScoreValue, value_to_json, value_type

State: TypeAlias = Literal["observed", "missing", "metric_failed", "trial_failed"]
"""What became of one output for one trial."""

PASS_VALUE: Final = 1.0
VALUE_SCHEMAS: Final = frozenset({"ContinuousScore", "DiscreteScore", "BooleanValue", "Label"})
"""Schemas whose values the summary keeps trial by trial."""
PASSING_SCHEMAS: Final = frozenset({"ContinuousScore", "BooleanValue"})
"""Schemas that have pass@k."""
PERCENTILES: Final = (10, 20, 30, 40, 50, 60, 70, 80, 90, 100)


@dataclass(frozen=True, slots=True)
class Observation:
    """One declared output on one trial."""

    task: str
    trial: str
    metric: str
    output: str
    state: State
    value: ScoreValue = None

    @property
    def name(self) -> str:
        """The full name of the output."""
        return f"{self.metric}.{self.output}"


@dataclass(frozen=True, slots=True)
class Declared:
    """One output that a task declares."""

    task: str
    metric: str
    output: str
    schema: str


@dataclass(frozen=True, slots=True)
class Counted:
    """What a summary states beside the values."""

    tasks: int
    trials: int
    scores: int
    errors: Sequence[tuple[str, str]]
    """Type of the error and id of the trial, in the order of the trials."""


def bundle_summary(
    declared: Sequence[Declared], observations: Sequence[Observation], counted: Counted
) -> dict[str, Any]:
    """What ``summary.json`` holds.

    Args:
        declared: every output of every task.
        observations: one for every output and trial of its task, trials in their order.
        counted: the rest.
    """
    by_output: dict[tuple[str, str], list[Observation]] = {}
    for observation in observations:
        by_output.setdefault((observation.metric, observation.output), []).append(observation)
    errors: dict[str, list[str]] = {}
    for kind, trial in counted.errors:
        errors.setdefault(kind, []).append(trial)
    return {
        "scores": {"scores": [*_means(by_output), *_pass_at_k(declared, observations)]},
        "metric_coverage": _coverage(by_output),
        "task_metric_values": _values(declared, observations),
        "error_trial_ids": errors,
        "error_count": len(counted.errors),
        "task_count": counted.tasks,
        "trial_count": counted.trials,
        "score_count": counted.scores,
    }


# ---------------------------------------------------------------- values


def _values(declared: Sequence[Declared], observations: Iterable[Observation]) -> dict[str, Any]:
    """Task -> output -> records: null of a failed trial, nothing of a failed metric."""
    found: dict[str, dict[str, list[dict[str, Any]]]] = {}
    for output in sorted(declared, key=lambda output: (output.metric, output.output)):
        of_task = found.setdefault(output.task, {})
        if output.schema in VALUE_SCHEMAS:
            of_task[f"{output.metric}.{output.output}"] = []
    for observation in observations:
        records = found[observation.task].get(observation.name)
        if records is not None and observation.state in ("observed", "trial_failed"):
            value = observation.value
            records.append(
                {"trial_id": observation.trial, "value_type": value_type(value), "value": value_to_json(value)}
            )
    return found


def _coverage(by_output: Mapping[tuple[str, str], Sequence[Observation]]) -> dict[str, Any]:
    found: dict[str, dict[str, dict[str, int]]] = {}
    for (metric, output), observations in by_output.items():
        states = [observation.state for observation in observations]
        found.setdefault(metric, {})[output] = {
            "total": len(states),
            "scored": states.count("observed"),
            "failed": states.count("metric_failed") + states.count("trial_failed"),
            "missing": states.count("missing"),
        }
    return found


# ---------------------------------------------------------------- aggregates


def _means(by_output: Mapping[tuple[str, str], Sequence[Observation]]) -> list[dict[str, Any]]:
    """Of every output over all trials; booleans and labels are no numbers here."""
    return [
        range_score(
            f"{metric}.{output}",
            [_float(seen.value) for seen in observations if _is_number(seen.value)],
            len(observations),
        )
        for (metric, output), observations in sorted(by_output.items())
    ]


def _pass_at_k(declared: Sequence[Declared], observations: Iterable[Observation]) -> list[dict[str, Any]]:
    """Over the tasks that declare an output: a failed trial counts and does not pass, a failed metric is no entry."""
    tasks: dict[tuple[str, str], list[str]] = {}
    for one in declared:
        if one.schema in PASSING_SCHEMAS:
            tasks.setdefault((one.metric, one.output), []).append(one.task)
    seen: dict[tuple[str, str, str], list[Observation]] = {}
    for observation in observations:
        seen.setdefault((observation.task, observation.metric, observation.output), []).append(observation)
    found = []
    for (metric, output), declaring in sorted(tasks.items()):
        rows = [seen.get((task, metric, output), []) for task in sorted(declaring)]
        tallies = [_tally(row) for row in rows]
        for k in range(1, max(map(len, rows), default=0) + 1):
            estimates = [sdk_pass_at_k(n, c, k) for n, c in tallies if n >= k]
            found.append(range_score(f"{metric}.{output}.pass@{k}", estimates, len(declaring)))
    return found


def _tally(row: Sequence[Observation]) -> tuple[int, int]:
    """Entries and passes of one output at one task; NaN is an entry that does not pass."""
    n = c = 0
    for observation in row:
        value = observation.value
        if observation.state == "trial_failed":
            n += 1
        elif observation.state == "observed" and isinstance(value, bool | int | float):
            n += 1
            c += _float(value) >= PASS_VALUE
    return n, c


def sdk_pass_at_k(n: int, c: int, k: int) -> float:
    """1 - C(n-c, k) / C(n, k) for 1 <= k <= n, by the product that the SDK uses, so that the floats are its own."""
    if n - c < k:
        return 1.0
    product = 1.0
    for i in range(n - c + 1, n + 1):
        product *= 1.0 - k / i
    return 1.0 - product


def range_score(name: str, values: Sequence[float], total: int) -> dict[str, Any]:
    """The aggregate of some values out of ``total``; those that are not finite count as absent (``nan_count``)."""
    finite = [value for value in values if math.isfinite(value)]
    count = len(finite)
    score: dict[str, Any] = {
        "score_type": "range",
        "name": name,
        "count": count,
        "nan_count": max(total - count, 0),
        "histogram": None,
        **dict.fromkeys(("sum", "mean", "min", "max", "median", "percentiles")),
        **dict.fromkeys(("variance", "std_dev", "sample_variance", "sample_std_dev")),
    }
    if not finite:
        return score
    total_sum = compensated_sum(finite)
    mean = total_sum / count
    squares = compensated_sum(_square(value - mean) for value in finite)
    variance, sample = squares / count, squares / (count - 1) if count > 1 else math.nan
    percentiles = {f"p{percent}": _percentile(sorted(finite), percent) for percent in PERCENTILES}
    return score | {
        "sum": _known(total_sum),
        "mean": _known(mean),
        "min": min(finite),
        "max": max(finite),
        "median": _known(percentiles["p50"]),
        "percentiles": percentiles if all(map(math.isfinite, percentiles.values())) else None,
        "variance": _known(variance),
        "std_dev": _known(math.sqrt(variance)),
        "sample_variance": _known(sample),
        "sample_std_dev": _known(math.sqrt(sample)),
    }


def compensated_sum(values: Iterable[float]) -> float:
    """The sum as ``sum`` of Python 3.12 gives it (Neumaier 1974), on which the SDK runs; that of 3.11 adds plainly."""
    total = lost = 0.0
    for value in values:
        added = total + value
        lost += (total - added) + value if abs(total) >= abs(value) else (value - added) + total
        total = added
    return total + lost if lost and math.isfinite(lost) else total


def _square(value: float) -> float:
    try:
        return value**2
    except OverflowError:
        return math.inf


def _percentile(ordered: Sequence[float], percent: int) -> float:
    """Interpolated at rank p (n + 1) / 100, counted from 1."""
    position = (percent / 100.0) * (len(ordered) + 1) - 1
    if position <= 0:
        return ordered[0]
    if position >= len(ordered) - 1:
        return ordered[-1]
    below = int(position)
    return ordered[below] + (position - below) * (ordered[below + 1] - ordered[below])


def _known(value: float) -> float | None:
    """None for what is not defined, or too large to write."""
    return value if math.isfinite(value) else None


def _is_number(value: ScoreValue) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _float(value: ScoreValue) -> float:
    return float(value) if isinstance(value, bool | int | float) else math.nan
