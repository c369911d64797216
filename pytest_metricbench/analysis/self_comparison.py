"""The baseline against itself (A/A): what the rule kills there, and by how much the pass rate drops, is noise.

The baseline's attempts at each task are split at random into floor(n/2) and the rest, and the rest is judged like a
mutant, 200 times. Kills by luck grow with the size of a subset, as any coverage does: a correlation made by the score
itself would show here.
"""

from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, FloatArray, IntArray
from pytest_metricbench.analysis.draws import stream
from pytest_metricbench.analysis.figures import rounded
from pytest_metricbench.analysis.kill_matrix import KillMatrix
from pytest_metricbench.analysis.kill_models import NoiseFigure, SelfComparison, SelfKills
from pytest_metricbench.analysis.redraws import Judge
from pytest_metricbench.analysis.strata import OVERALL, strata_of
from pytest_metricbench.analysis.unavailable import missing, outside

SPLITS: Final = 200


def self_comparison(matrix: KillMatrix, members: BoolArray, seed: int, purpose: str) -> SelfComparison:
    """The A/A control of a case: for the pool, and for the subsets of each size.

    Args:
        matrix: the baseline's tallies and the rule.
        members: the subsets, shape (subsets, tasks).
        seed: of the splits.
        purpose: what the stream of random numbers is for.
    """
    tallies = matrix.tallies
    split = tallies.base_n >= 2
    cells = int(np.count_nonzero(split))
    reason = _why_none(matrix, cells)
    strata = strata_of(members.sum(axis=1).tolist(), [True] * len(members))
    if reason is not None:
        nothing = SelfKills(false_kills=reason, kill_share=reason, mean_drop=reason)
        sizes = {name: nothing for name in strata if name != OVERALL}
        return SelfComparison(splits=0, cells=cells, pool=nothing, sizes=sizes)
    first_n = tallies.base_n // 2
    noisy = split & (tallies.base_passed > 0) & (tallies.base_passed < tallies.base_n)
    first = _split(tallies.base_passed, tallies.base_n, noisy, seed, purpose)
    second, second_n = tallies.base_passed - first, tallies.base_n - first_n
    judge = Judge(matrix.rule, matrix.threshold, first_n * split, (second_n * split)[None, :])
    killed = judge.kills(first, second[:, None, :])[:, 0, :]
    drop = np.where(split, first / np.maximum(first_n, 1) - second / np.maximum(second_n, 1), 0.0)
    everything = np.ones((1, len(tallies.base_n)), dtype=np.bool_)
    return SelfComparison(
        splits=len(first) if noisy.any() else 0,
        cells=cells,
        pool=_kills(everything, split, killed, drop),
        sizes={name: _kills(members[rows], split, killed, drop) for name, rows in strata.items() if name != OVERALL},
    )


def _why_none(matrix: KillMatrix, cells: int) -> NoiseFigure | None:
    away = int(matrix.outside.base.sum())
    if away:
        return NoiseFigure(**outside(away, int(matrix.outside.base_declared.sum())))
    if not cells:
        return NoiseFigure(**missing("no task has two attempts of the baseline to compare"))
    return None


def _split(passed: IntArray, n: IntArray, noisy: BoolArray, seed: int, purpose: str) -> IntArray:
    """Passes of the first half, shape (splits, tasks); one split says everything where no task is noisy."""
    half = n // 2
    steady = np.where(passed == n, half, 0)
    found = np.broadcast_to(steady, (SPLITS if noisy.any() else 1, len(n))).copy()
    if noisy.any():
        rng = stream(seed, "against itself", purpose)
        found[:, noisy] = rng.hypergeometric(
            passed[noisy], n[noisy] - passed[noisy], half[noisy], (SPLITS, int(np.count_nonzero(noisy)))
        )
    return found


def _kills(members: BoolArray, split: BoolArray, killed: BoolArray, drop: FloatArray) -> SelfKills:
    """Means over the sets that hold a task which can be split, split by split."""
    usable = members[(members & split).any(axis=1)].astype(np.float64)
    if not len(usable):
        reason = NoiseFigure(**missing("no task here has two attempts of the baseline to compare"))
        return SelfKills(false_kills=reason, kill_share=reason, mean_drop=reason)
    kills = usable @ killed.T.astype(np.float64)
    drops = (usable @ drop.T) / (usable @ split.astype(np.float64))[:, None]
    return SelfKills(
        false_kills=_noise(kills.mean(axis=0)),
        kill_share=_noise((kills > 0).mean(axis=0)),
        mean_drop=_noise(drops.mean(axis=0)),
    )


def _noise(by_split: FloatArray) -> NoiseFigure:
    low, high = map(rounded, np.quantile(by_split, [0.025, 0.975]).tolist())
    return NoiseFigure(value=rounded(float(by_split.mean())), middle=(low, high))
