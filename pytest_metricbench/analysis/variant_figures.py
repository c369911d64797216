"""What is known of each variant: verdicts, pass@k and pass^k, and the entries behind them."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Literal

from pytest_metricbench.analysis.figures import Interval, MeanFigure, RateFigure
from pytest_metricbench.analysis.outcomes import CaseOutcomes, Cell
from pytest_metricbench.analysis.pass_at_k import Estimator, mean_over_tasks, pass_at_k, pass_hat_k, task_intervals
from pytest_metricbench.analysis.proportions import wilson
from pytest_metricbench.analysis.unavailable import missing, outside
from pytest_metricbench.analysis.variant_models import Counts, TaskResult, VariantSummary, Verdict, Verdicts
from pytest_metricbench.definition.experiment import AnalysisSettings, Variant
from pytest_metricbench.messages import counted

_ESTIMATORS: Mapping[str, Estimator] = {"pass_at_k": pass_at_k, "pass_hat_k": pass_hat_k}


@dataclass(frozen=True, slots=True)
class _Mean:
    """One mean to report: of an estimator of a score under a variant, at one k."""

    variant: str
    figure: str
    score: str
    k: int


def verdict(n: int, passed: int) -> Literal["solved", "flaky", "failed", "unmeasured"]:
    """What ``n`` entries with ``passed`` passes say of a task: all, some, none, or nothing known.

    Raises:
        ValueError: ``passed`` is not in 0..n.
    """
    if not 0 <= passed <= n:
        raise ValueError(f"{passed} passes in {n} entries")
    if n == 0:
        return "unmeasured"
    if passed == n:
        return "solved"
    return "flaky" if passed else "failed"


def counts(cells: Iterable[Cell]) -> Counts:
    """Attempts of some cells by what they count as."""
    names = (
        "declared",
        "passed",
        "n",
        "died",
        "not_reached",
        "not_needed",
        "unmeasured",
        "missing",
        "outside",
        "reused",
    )
    totals = dict.fromkeys(names, 0)
    for cell in cells:
        for name in totals:
            totals[name] += getattr(cell, name)
    entries = totals.pop("n")
    return Counts(missed=entries - totals["passed"] - totals["died"], **totals)


def add_counts(parts: Sequence[Counts]) -> Counts:
    """The sum of counts."""
    return Counts(**{name: sum(getattr(part, name) for part in parts) for name in Counts.model_fields})


def task_result(cell: Cell) -> TaskResult:
    """One task under one variant, by the primary score."""
    word: Verdict = "outside" if cell.outside else verdict(cell.n, cell.passed)
    not_run = cell.not_reached + cell.not_needed
    if not cell.n and not_run and not_run == cell.declared:
        word = "not_run"
    if cell.outside:
        rate = RateFigure(**outside(cell.outside, cell.declared))
    elif cell.n:
        rate = RateFigure(value=cell.passed / cell.n, interval=wilson(cell.passed, cell.n))
    else:
        why = "none was run" if word == "not_run" else "no entry"
        rate = RateFigure(**missing(f"{counted(cell.declared, 'attempt')} and {why}"))
    return TaskResult(
        verdict=word,
        n=cell.n,
        passed=cell.passed,
        died=cell.died,
        unmeasured=cell.unmeasured + cell.missing,
        outside=cell.outside,
        pass_rate=rate,
    )


def variant_summaries(
    outcomes: CaseOutcomes, valid: Mapping[str, bool], settings: AnalysisSettings, ks: Sequence[int]
) -> dict[str, VariantSummary]:
    """Every variant of a case, in the order of the file.

    Args:
        outcomes: the case.
        valid: mutant -> whether it is valid.
        settings: resamples and seed of the intervals.
        ks: the k of pass@k and pass^k.
    """
    means = _means(outcomes, settings, ks)
    results: dict[tuple[int, ...], TaskResult] = {}
    return {
        variant.id: _variant(outcomes, variant, valid.get(variant.id, True), means[variant.id], results)
        for variant in outcomes.case.variants
    }


def _variant(
    outcomes: CaseOutcomes,
    variant: Variant,
    valid: bool,
    means: Mapping[str, dict[str, dict[str, MeanFigure]]],
    results: dict[tuple[int, ...], TaskResult],
) -> VariantSummary:
    """``results`` shares what is equal: most cells of an experiment have one of a few tallies."""
    cells = outcomes.cells[variant.id]
    tasks: dict[str, TaskResult] = {}
    for task, cell in cells.items():
        tally = (cell.n, cell.passed, cell.died, cell.unmeasured, cell.missing, cell.outside, cell.declared)
        if tally not in results:
            results[tally] = task_result(cell)
        tasks[task] = results[tally]
    words: list[str] = [result.verdict for result in tasks.values()]
    return VariantSummary(
        kind=variant.kind,
        description=variant.description,
        valid=valid,
        control=variant.control,
        equivalent=variant.equivalent,
        counts=counts(cells.values()),
        verdicts=Verdicts(**{word: words.count(word) for word in Verdicts.model_fields}),
        pass_at_k=means["pass_at_k"],
        pass_hat_k=means["pass_hat_k"],
        tasks=tasks,
        attempts={task: cell.values for task, cell in cells.items()},
    )


# ---------------------------------------------------------------- means over tasks


def _means(
    outcomes: CaseOutcomes, settings: AnalysisSettings, ks: Sequence[int]
) -> dict[str, dict[str, dict[str, dict[str, MeanFigure]]]]:
    """Variant -> figure -> score -> k -> mean."""
    wanted = [
        _Mean(variant.id, figure, score, k)
        for variant in outcomes.case.variants
        for figure in _ESTIMATORS
        for score in outcomes.scores
        for k in ks
    ]
    values = {mean: _task_values(outcomes, mean) for mean in wanted}
    intervals = _intervals(values, settings)
    found: dict[str, dict[str, dict[str, dict[str, MeanFigure]]]] = {
        variant.id: {figure: {score: {} for score in outcomes.scores} for figure in _ESTIMATORS}
        for variant in outcomes.case.variants
    }
    for mean in wanted:
        found[mean.variant][mean.figure][mean.score][str(mean.k)] = _mean_figure(
            outcomes, mean, len(values[mean]), intervals[mean]
        )
    return found


def _tallies(outcomes: CaseOutcomes, mean: _Mean) -> list[tuple[int, int]]:
    """Entries and passes of the score at the tasks where it counts, in the order of their ids."""
    found = (cell.tallies.get(mean.score) for cell in outcomes.cells[mean.variant].values())
    return [(tally.n, tally.passed) for tally in found if tally is not None]


def _task_values(outcomes: CaseOutcomes, mean: _Mean) -> list[float]:
    estimates = (_ESTIMATORS[mean.figure](n, c, mean.k) for n, c in _tallies(outcomes, mean))
    return [_float(estimate) for estimate in estimates if estimate is not None]


def _intervals(
    values: Mapping[_Mean, list[float]], settings: AnalysisSettings
) -> dict[_Mean, tuple[Interval | None, str | None]]:
    """The interval of each mean, or why it has none. Means over equally many tasks share their draws."""
    found: dict[_Mean, tuple[Interval | None, str | None]] = {}
    by_count: dict[int, list[_Mean]] = {}
    for mean, row in values.items():
        by_count.setdefault(len(row), []).append(mean)
    for count, means in by_count.items():
        rows = [values[mean] for mean in means]
        intervals = task_intervals(rows, resamples=settings.bootstrap, seed=settings.seed)
        for mean, interval in zip(means, intervals, strict=True):
            found[mean] = (interval, None if interval is not None else _no_spread(count))
    return found


def _no_spread(count: int) -> str:
    if count == 0:
        return "there is no value"
    if count == 1:
        return "redrawing 1 task shows no spread"
    return f"all {count} tasks have the same value: redrawing them shows no spread"


def _mean_figure(
    outcomes: CaseOutcomes, mean: _Mean, count: int, interval: tuple[Interval | None, str | None]
) -> MeanFigure:
    tallies = _tallies(outcomes, mean)
    over_tasks = mean_over_tasks(_ESTIMATORS[mean.figure], tallies, mean.k)
    cells = [cell for cell in outcomes.cells[mean.variant].values() if mean.score in cell.tallies]
    absent = sum(cell.outside for cell in cells)
    declared = sum(cell.declared for cell in cells)
    rests_on: dict[str, Any] = {
        "count": over_tasks.count,
        "nan_count": over_tasks.nan_count,
        "excluded": len(outcomes.tasks) - len(cells),
        "attempts_unmeasured": declared - absent - sum(n for n, _ in tallies),
    }
    if absent:
        return MeanFigure(**outside(absent, declared), **rests_on, interval=None, interval_reason="there is no value")
    if over_tasks.value is None:
        reason = f"no task has {mean.k} or more entries" if mean.k > 1 else "no task has an entry"
        return MeanFigure(**missing(reason), **rests_on, interval=None, interval_reason="there is no value")
    value, (bounds, why) = _float(over_tasks.value), interval
    if bounds is None:
        return MeanFigure(value=value, **rests_on, interval=None, interval_reason=why)
    return MeanFigure(value=value, **rests_on, interval=bounds)


def _float(fraction: Fraction) -> float:
    """The nearest float: equal fractions become equal floats."""
    return fraction.numerator / fraction.denominator
