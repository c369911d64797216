"""Estimates beside pass@k, for a notebook: comparing two agent versions, posterior means, other intervals.

No figure of the summary is one of these; they answer questions that users of a summary ask next. scipy is needed.
"""

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import special, stats

from pytest_metricbench.analysis.proportions import check_confidence, check_proportion
from pytest_metricbench.messages import counted


@dataclass(frozen=True, slots=True)
class PairedDifference:
    """Two versions on the same tasks: the mean difference and its standard error."""

    mean: float
    error: float
    """Of the differences: smaller than ``unpaired`` where the versions find the same tasks hard."""
    unpaired: float
    """What the error would be if the tasks were not the same."""


def paired_difference(first: Sequence[float], second: Sequence[float]) -> PairedDifference:
    """The mean of first minus second over tasks, task by task (Miller 2024, "Adding Error Bars to Evals", section 4).

    Raises:
        ValueError: lists of different lengths, or fewer than 2 tasks.
    """
    if len(first) != len(second) or len(first) < 2:
        raise ValueError(f"{counted(len(first), 'task')} against {len(second)}: two or more tasks of both are needed")
    a, b = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    tasks = len(a)
    error = float((a - b).std(ddof=1)) / math.sqrt(tasks)
    unpaired = math.sqrt((float(a.var(ddof=1)) + float(b.var(ddof=1))) / tasks)
    return PairedDifference(float((a - b).mean()), error, unpaired)


@dataclass(frozen=True, slots=True)
class ClusteredError:
    """The standard error of a mean when tasks come in families."""

    mean: float
    naive: float
    clustered: float
    finite: float
    """``clustered`` times the root of G/(G-1), with G families."""


def clustered_error(scores: Sequence[float], clusters: Sequence[Hashable]) -> ClusteredError:
    """Standard errors of the mean of ``scores`` that allow for families of tasks (Miller 2024, section 2.2).

    Raises:
        ValueError: lists of different lengths, or fewer than 2 families.
    """
    families = list(dict.fromkeys(clusters))
    if len(scores) != len(clusters):
        raise ValueError(f"{counted(len(scores), 'score')}, {len(clusters)} of them with a family: each needs one")
    if len(families) < 2:
        noun = "family" if len(families) == 1 else "families"
        raise ValueError(f"{counted(len(scores), 'score')} in {len(families)} {noun}: two or more families are needed")
    values = np.asarray(scores, dtype=np.float64)
    off = values - values.mean()
    index = np.array([families.index(cluster) for cluster in clusters])
    sums = np.bincount(index, weights=off)
    clustered = math.sqrt(float((sums**2).sum())) / len(values)
    naive = float(values.std(ddof=1)) / math.sqrt(len(values))
    groups = len(families)
    return ClusteredError(float(values.mean()), naive, clustered, clustered * math.sqrt(groups / (groups - 1)))


def bayes_at_n(tallies: Sequence[tuple[int, int]]) -> tuple[float, float]:
    """Posterior mean and standard deviation of the mean pass rate, with a uniform prior for each task.

    Args:
        tallies: entries and passes of each task (Hariri et al. 2025, "Don't Pass@k"). A task without an entry has the
            prior's mean, 1/2.

    Raises:
        ValueError: no task, or more passes than entries.
    """
    if not tallies:
        raise ValueError("0 tasks: at least one is needed")
    for n, passed in tallies:
        if not 0 <= passed <= n:
            raise ValueError(f"{passed} passes of {counted(n, 'attempt')}")
    shares = [(passed + 1) / (n + 2) for n, passed in tallies]
    variance = sum(share * (1 - share) / (n + 3) for share, (n, _) in zip(shares, tallies, strict=True))
    return math.fsum(shares) / len(shares), math.sqrt(variance) / len(shares)


def beta_interval(successes: int, n: int, prior: float = 1.0, confidence: float = 0.95) -> tuple[float, float]:
    """The equal-tailed credible interval of a proportion with a Beta(prior, prior): 1 is uniform, 1/2 Jeffreys'.

    The bounds at 0 and ``n`` successes are those of the distribution; Brown, Cai and DasGupta (2001) set them to 0 and
    1 in Jeffreys' case. With ``n`` of 0 it is the prior's.

    Raises:
        ValueError: ``successes`` is not in 0..n, ``prior`` is not above 0 and finite, or ``confidence`` is not between
            0 and 1.
    """
    check_proportion(successes, n, least=0)
    check_confidence(confidence)
    if not 0 < prior < math.inf:
        raise ValueError(f"prior is {prior}; a number above 0 is expected")
    tail = (1 - confidence) / 2
    a, b = successes + prior, n - successes + prior
    return float(special.betaincinv(a, b, tail)), float(special.betaincinv(a, b, 1 - tail))


def clopper_pearson(successes: int, n: int, confidence: float = 0.95) -> tuple[float, float]:
    """The exact interval of a proportion (Clopper and Pearson 1934): never too short, often too long.

    Raises:
        ValueError: ``n`` is below 1, ``successes`` is not in 0..n, or ``confidence`` is not between 0 and 1.
    """
    check_proportion(successes, n)
    check_confidence(confidence)
    found = stats.binomtest(successes, n).proportion_ci(confidence, method="exact")
    return float(found.low), float(found.high)


def detection_probability(by_task: Sequence[float]) -> float:
    """The chance that some task of a subset detects a mutant, from the chance of each, tasks independent.

    0 for a subset without tasks.

    Raises:
        ValueError: a chance that is not in [0, 1].
    """
    for chance in by_task:
        if not 0 <= chance <= 1:
            raise ValueError(f"{chance} is no probability; a number from 0 to 1 is expected")
    return 1 - math.prod(1 - chance for chance in by_task)
