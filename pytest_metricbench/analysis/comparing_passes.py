"""Differences of pass@k between two runs, paired by task, with clustered standard errors.

Miller 2024, "Adding Error Bars to Evals" (arXiv 2411.00640): two runs of one evaluation share its tasks, so their
difference is taken task by task, and its standard error is that of the mean of the differences. What is measured in
clusters is no independent sample: deviations are summed within each cluster first. A task is a cluster of its attempts,
a case one of its tasks.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pytest_metricbench.analysis.comparing_models import PairedDifference
from pytest_metricbench.analysis.figures import DECIMALS, Interval
from pytest_metricbench.analysis.pass_at_k import Estimator
from pytest_metricbench.messages import counted

Tally = tuple[int, int]
"""Entries and passes of a task."""


def clustered_se(differences: Sequence[float], clusters: Sequence[str]) -> float | None:
    """Standard error of the mean of ``differences`` whose members of one cluster move together.

    sqrt(G/(G-1) * sum over clusters of (sum of deviations from the mean in it)^2) / n, with G clusters: Miller 2024,
    with the factor for few clusters of Cameron and Miller 2015 ("A Practitioner's Guide to Cluster-Robust Inference").
    With every difference a cluster of its own it is the standard deviation over sqrt(n). None for fewer than two
    clusters.
    """
    count = len(set(clusters))
    if count < 2:
        return None
    mean = math.fsum(differences) / len(differences)
    by_cluster: dict[str, list[float]] = {}
    for difference, cluster in zip(differences, clusters, strict=True):
        by_cluster.setdefault(cluster, []).append(difference - mean)
    squares = math.fsum(math.fsum(deviations) ** 2 for deviations in by_cluster.values())
    return math.sqrt(count / (count - 1) * squares) / len(differences)


def paired_difference(
    then: Mapping[str, Tally], now: Mapping[str, Tally], estimator: Estimator, k: int
) -> PairedDifference:
    """The change of a mean over the tasks of both runs, each task a cluster of its attempts.

    Args:
        then: task -> entries and passes in the earlier run.
        now: the same in this run, of the same tasks.
        estimator: pass@k or pass^k.
        k: of it; tasks with fewer entries in either run are left out.
    """
    return paired_over_cases({"": then}, {"": now}, estimator, k, by_case=False)


def paired_over_cases(
    then: Mapping[str, Mapping[str, Tally]],
    now: Mapping[str, Mapping[str, Tally]],
    estimator: Estimator,
    k: int,
    *,
    by_case: bool = True,
) -> PairedDifference:
    """The change over the tasks of several cases; a cluster is a case, or a task with ``by_case=False``."""
    befores, afters, clusters, left_out = [], [], [], 0
    for case, tallies in then.items():
        for task, tally in tallies.items():
            before, after = estimator(*tally, k), estimator(*now[case][task], k)
            if before is None or after is None:
                left_out += 1
                continue
            befores.append(before)
            afters.append(after)
            clusters.append(case if by_case else f"{case}\0{task}")
    found = [after - before for before, after in zip(befores, afters, strict=True)]
    rests_on: dict[str, Any] = {
        "clusters": len(set(clusters)),
        "tasks": len(found),
        "left_out": left_out,
        "better": sum(difference > 0 for difference in found),
        "worse": sum(difference < 0 for difference in found),
    }
    if not found:
        reason = f"no task has {counted(k, 'entry') if k == 1 else f'{k} entries'} in both runs"
        return PairedDifference(value=None, reason=reason, then=None, now=None, se=None, **rests_on)
    value, differences = float(sum(found) / len(found)), [float(difference) for difference in found]
    se = clustered_se(differences, clusters)
    interval, why = _interval(value, se, differences, len(set(clusters)), "case" if by_case else "task")
    return PairedDifference(
        value=value,
        then=float(sum(befores) / len(befores)),
        now=float(sum(afters) / len(afters)),
        interval=interval,
        interval_reason=why,
        se=None if se is None else round(se, DECIMALS),
        **rests_on,
    )


def _interval(
    value: float, se: float | None, differences: Sequence[float], clusters: int, noun: str
) -> tuple[Interval | None, str | None]:
    """Student's t with one degree of freedom less than clusters, within [-1, 1]; or why there is none."""
    if se is None:
        return None, f"{counted(clusters, noun)}: an interval needs two"
    if len(set(differences)) == 1:
        alike = "no task changed" if differences[0] == 0 else f"all {len(differences)} tasks changed alike"
        return None, f"{alike}: there is no spread to judge by"
    if round(se, DECIMALS) == 0:
        return None, "the cases changed alike: there is no spread to judge by"
    reach = student_quantile(clusters - 1) * se
    return (round(max(-1.0, value - reach), DECIMALS), round(min(1.0, value + reach), DECIMALS)), None


def student_quantile(df: int) -> float:
    """How many standard errors a two-sided 95 % interval by Student's t with ``df`` degrees of freedom reaches."""
    from scipy.special import stdtrit  # costs a run that compares nothing 0.1 s

    quantile: Callable[[int, float], float] = stdtrit
    return float(quantile(df, 0.975))
