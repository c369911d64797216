"""Mutants that say the same: the minimal set, and how stable it is when attempts are redrawn.

A mutant is redundant where the tasks that kill another one are a non-empty part of those that kill it: whoever kills
the other kills it too (dynamic subsumption; Ammann, Delamaro and Offutt, ICST 2014). Redundant mutants inflate a
mutation score. Known kills decide: a missing cell is no kill.
"""

from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray
from pytest_metricbench.analysis.detection import Tallies
from pytest_metricbench.analysis.draws import stream
from pytest_metricbench.analysis.kill_matrix import KillMatrix
from pytest_metricbench.analysis.kill_models import Redundancy
from pytest_metricbench.analysis.redraws import AttemptRedraws, Judge

REDRAWS: Final = 200
"""Enough to know a share to about .07."""
_WORK: Final = 2e10
_CELLS: Final = 4_000_000


def needed_mutants(killed: BoolArray) -> BoolArray:
    """Which mutants are killed and not redundant.

    Args:
        killed: shape (..., mutants, tasks).

    Returns:
        Shape (..., mutants). Mutants with the same kills are all in or all out.
    """
    kills = killed.astype(np.float32)
    sizes = kills.sum(axis=-1)
    common = kills @ np.swapaxes(kills, -1, -2)
    inside = (common == sizes[..., :, None]) & (sizes[..., :, None] < sizes[..., None, :]) & (sizes[..., :, None] > 0)
    found: BoolArray = (sizes > 0) & ~inside.any(axis=-2)
    return found


def minimal_mutants(matrix: KillMatrix) -> BoolArray:
    """The minimal set of the scored mutants, of those with the same kills the first; shape (mutants,)."""
    rows = np.flatnonzero(matrix.scored)
    killed = matrix.killed[rows]
    found = np.zeros(len(matrix.mutants), dtype=np.bool_)
    if len(rows):
        firsts = np.zeros(len(rows), dtype=np.bool_)
        firsts[np.unique(killed, axis=0, return_index=True)[1]] = True
        found[rows] = needed_mutants(killed) & firsts
    return found


def redundancy(matrix: KillMatrix, minimal: BoolArray, seed: int, purpose: str) -> Redundancy:
    """The minimal set of a case, mutants with the same kills, and how often each mutant is in the set.

    Args:
        matrix: the kills.
        minimal: from :func:`minimal_mutants`.
        seed: of the redraws.
        purpose: what the stream of random numbers is for.
    """
    rows = np.flatnonzero(matrix.scored)
    names = [mutant.id for mutant in matrix.mutants]
    shares, redraws = _stability(matrix, rows, seed, purpose)
    return Redundancy(
        minimal=tuple(names[row] for row in np.flatnonzero(minimal).tolist()),
        identical=_identical(matrix, rows, names),
        stability={names[row]: share for row, share in zip(rows.tolist(), shares, strict=True)},
        redraws=redraws,
    )


def _identical(
    matrix: KillMatrix, rows: np.ndarray[tuple[int], np.dtype[np.int64]], names: list[str]
) -> tuple[tuple[str, ...], ...]:
    groups: dict[bytes, list[str]] = {}
    for row in rows.tolist():
        if matrix.killed[row].any():
            groups.setdefault(matrix.killed[row].tobytes(), []).append(names[row])
    return tuple(tuple(group) for group in groups.values() if len(group) > 1)


def _stability(
    matrix: KillMatrix, rows: np.ndarray[tuple[int], np.dtype[np.int64]], seed: int, purpose: str
) -> tuple[list[float], int]:
    """The share of redraws in which each scored mutant is needed, and the number of redraws."""
    given = matrix.tallies
    tallies = Tallies(given.base_passed, given.base_n, given.mutant_passed[rows], given.mutant_n[rows])
    attempts = AttemptRedraws(tallies)
    if not len(rows) or matrix.undecided or not attempts.any:
        return needed_mutants(matrix.killed[rows]).astype(float).tolist() if len(rows) else [], 0
    judge = Judge(matrix.rule, matrix.threshold, tallies.base_n, tallies.mutant_n)
    cells = tallies.mutant_n.size
    redraws = int(max(20, min(REDRAWS, _WORK / (cells * len(rows)))))
    step = max(1, _CELLS // max(cells, len(rows) ** 2))
    rng = stream(seed, "minimal set", purpose)
    times = np.zeros(len(rows))
    for start in range(0, redraws, step):
        times += needed_mutants(judge.kills(*attempts.draw(min(step, redraws - start), rng))).sum(axis=0)
    return (times / redraws).tolist(), redraws
