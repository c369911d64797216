"""Tasks of two runs of a case: verdicts that changed with the attempts behind them, and changes of pass@k."""

import math
from collections.abc import Mapping, Sequence
from functools import lru_cache

from pytest_metricbench.analysis.comparing_cells import common, passes, same_entries, tally
from pytest_metricbench.analysis.comparing_models import PairedDifference, SameAttempts, TaskThenOrNow, VerdictChange
from pytest_metricbench.analysis.comparing_passes import Tally, paired_difference
from pytest_metricbench.analysis.pass_at_k import Estimator
from pytest_metricbench.analysis.summary import CaseSummary, Settings
from pytest_metricbench.analysis.unavailable import outside_reason
from pytest_metricbench.analysis.variant_models import TaskResult, VariantSummary
from pytest_metricbench.definition.experiment import BASELINE

_SIDES = "the earlier run", "this run"


def verdict_changes(then: CaseSummary, now: CaseSummary, settings: Settings) -> tuple[VerdictChange, ...]:
    """Tasks of both runs whose verdict under a variant of both is another one; the baseline's first.

    A task without an entry in one of the runs has no verdict that could have changed.
    """
    found = []
    variants, tasks = common(then.variants, now.variants), common(then.tasks, now.tasks)
    for variant in sorted(variants, key=lambda name: name != BASELINE):
        before, after = then.variants[variant], now.variants[variant]
        for task in tasks:
            if before.tasks[task].verdict == after.tasks[task].verdict:
                continue
            one, other = _seen(before, task, settings), _seen(after, task, settings)
            if one is not None and other is not None:
                p = fisher_two_sided(one.passed, one.n, other.passed, other.n)
                found.append(VerdictChange(variant=variant, task=task, then=one, now=other, p=p))
    return tuple(found)


def _seen(variant: VariantSummary, task: str, settings: Settings) -> TaskThenOrNow | None:
    result = variant.tasks[task]
    if result.verdict not in ("solved", "flaky", "failed"):
        return None
    entries = variant.attempts.get(task, {}).get(settings.primary, ())
    died = tuple(entry.trial_id for entry in entries if entry.value_type == "missing")
    scored = [entry for entry in entries if entry.value_type == "number"]
    return TaskThenOrNow(
        verdict=result.verdict,
        n=result.n,
        passed=result.passed,
        died=result.died,
        passed_trials=tuple(entry.trial_id for entry in scored if passes(entry, settings)),
        missed_trials=tuple(entry.trial_id for entry in scored if not passes(entry, settings)),
        died_trials=died,
    )


@lru_cache(maxsize=65536)
def fisher_two_sided(passed: int, n: int, other_passed: int, other_n: int) -> float:
    """Two-sided p of Fisher's exact test: the chance of all tables that are no likelier than this one (Fisher 1935).

    Raises:
        ValueError: passes that are not in 0..n.
    """
    if not (0 <= passed <= n and 0 <= other_passed <= other_n):
        raise ValueError(f"{passed}/{n} against {other_passed}/{other_n}")
    total, failed = passed + other_passed, n + other_n - passed - other_passed
    ways = {x: math.comb(total, x) * math.comb(failed, n - x) for x in range(max(0, n - failed), min(n, total) + 1)}
    return sum(way for way in ways.values() if way <= ways[passed]) / math.comb(n + other_n, n)


def attempts_compared(then: CaseSummary, now: CaseSummary, settings: Settings) -> SameAttempts:
    """Entries of the common tasks under the common variants, and how many are the same measurement."""
    cells = [
        (variant, task) for variant in common(then.variants, now.variants) for task in common(then.tasks, now.tasks)
    ]
    return SameAttempts(
        then=sum(then.variants[variant].tasks[task].n for variant, task in cells),
        now=sum(now.variants[variant].tasks[task].n for variant, task in cells),
        same=sum(same_entries(then, now, variant, task, settings)[0] for variant, task in cells),
    )


# ---------------------------------------------------------------- pass@k


def pass_changes(
    then: CaseSummary, now: CaseSummary, estimator: Estimator, ks: Sequence[int]
) -> dict[str, dict[str, PairedDifference]]:
    """Variant -> k -> the change over the common tasks, for the variants of both runs."""
    return {
        variant: {str(k): _pass_change(then, now, variant, estimator, k) for k in ks}
        for variant in common(then.variants, now.variants)
    }


def tallies_of(then: CaseSummary, now: CaseSummary, variant: str) -> tuple[dict[str, Tally], dict[str, Tally]]:
    """Task -> entries and passes of the common tasks in both runs."""
    tasks = common(then.tasks, now.tasks)
    one, other = ({task: tally(case.variants[variant].tasks[task]) for task in tasks} for case in (then, now))
    return one, other


def why_outside(then: CaseSummary, now: CaseSummary, variants: Sequence[str]) -> str | None:
    """Why figures of these variants at the common tasks are not known: attempts outside a part. None: they are."""
    tasks = common(then.tasks, now.tasks)
    for case, side in zip((then, now), _SIDES, strict=True):
        results = [case.variants[variant].tasks[task] for variant in variants for task in tasks]
        away = sum(result.outside for result in results)
        if away:
            return f"{side}: {outside_reason(away, sum(map(_declared, results)))}"
    return None


def _declared(result: TaskResult) -> int:
    return result.n + result.unmeasured + result.outside


def _pass_change(then: CaseSummary, now: CaseSummary, variant: str, estimator: Estimator, k: int) -> PairedDifference:
    why = why_outside(then, now, [variant])
    if why is not None:
        return no_difference(why, outside=True)
    return paired_difference(*tallies_of(then, now, variant), estimator, k)


def no_difference(reason: str, *, outside: bool | None) -> PairedDifference:
    """A change that is not known."""
    nothing: Mapping[str, int] = dict.fromkeys(("clusters", "tasks", "left_out", "better", "worse"), 0)
    return PairedDifference(
        value=None,
        reason=reason,
        outside=outside,
        then=None,
        now=None,
        se=None,
        **nothing,
    )
