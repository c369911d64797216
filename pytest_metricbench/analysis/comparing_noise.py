"""How much of a change between two runs is noise of the attempts, and how sure a changed mutation score is.

Attempts that are the same in both runs (taken over from the store) carry no noise between them: they are not exchanged,
and a cell that holds no others shows no change.
"""

from dataclasses import dataclass
from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import FloatArray, IntArray
from pytest_metricbench.analysis.comparing_cells import CommonCells, RunCells
from pytest_metricbench.analysis.draws import Rng
from pytest_metricbench.analysis.figures import DECIMALS
from pytest_metricbench.analysis.intervals import Z
from pytest_metricbench.analysis.task_labels import MOST_UNDEFINED
from pytest_metricbench.definition.experiment import MutationScore

_NUMBERS: Final = 2_000_000
"""Numbers held at a time: bounds the memory."""
_TIE: Final = 1e-9


# ---------------------------------------------------------------- exchanged attempts


def survival_p(cells: CommonCells, draws: int, rng: Rng) -> float | None:
    """How easily chance alone makes a mutant survive that was killed: one-sided p of a permutation test.

    Were the two runs alike, any attempt of a cell could as well have been in the other run. The statistic is how much
    the drops at the tasks that kill in the earlier run shrink in this one, summed; which tasks these are is decided
    anew in each exchange, since looking at the tasks that killed picks those that killed by luck. p is (b + 1)/(B + 1)
    (Phipson and Smyth 2010).

    Args:
        cells: of one mutant.
        draws: B, exchanges at random.
        rng: of this purpose.

    Returns:
        p, or None where no task that killed has an entry in both runs.
    """
    both = (cells.then.present & cells.now.present)[0]
    killed = cells.then.killed[0] & both
    if not killed.any():
        return None
    observed = float((_drops(cells.then) - _drops(cells.now))[0][killed].sum())
    reached, step = 0, max(1, _NUMBERS // max(1, len(cells.tasks)))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        then, now = _exchanged(cells, size, rng)
        kills = cells.then.judge.kills(then.base, then.mutants)[:, 0] & ~cells.then.not_reached[0] & both
        change = (_drops(cells.then, then) - _drops(cells.now, now))[:, 0]
        reached += int(np.count_nonzero(np.where(kills, change, 0.0).sum(axis=1) >= observed - _TIE))
    return (reached + 1) / (draws + 1)


@dataclass(frozen=True, slots=True, eq=False)
class _Passes:
    """Drawn passes: of the baseline, shape (draws, tasks), and of the mutants, shape (draws, mutants, tasks)."""

    base: IntArray
    mutants: IntArray


def _exchanged(cells: CommonCells, draws: int, rng: Rng) -> tuple[_Passes, _Passes]:
    then, now, same = cells.then.tallies, cells.now.tallies, cells.same
    base = _split(
        (then.base_passed, then.base_n), (now.base_passed, now.base_n), (same.base_passed, same.base_n), draws, rng
    )
    mutants = _split(
        (then.mutant_passed, then.mutant_n),
        (now.mutant_passed, now.mutant_n),
        (same.mutant_passed, same.mutant_n),
        draws,
        rng,
    )
    return _like_baseline(cells.then, base[0], mutants[0]), _like_baseline(cells.now, base[1], mutants[1])


def _split(
    then: tuple[IntArray, IntArray],
    now: tuple[IntArray, IntArray],
    same: tuple[IntArray, IntArray],
    draws: int,
    rng: Rng,
) -> tuple[IntArray, IntArray]:
    """Passes of both runs after the attempts that only one of them has were shared out anew."""
    own_n, other_n = then[1] - same[1], now[1] - same[1]
    passed = then[0] + now[0] - 2 * same[0]
    failed = own_n + other_n - passed
    open_cells = (passed > 0) & (failed > 0) & (own_n > 0) & (other_n > 0)
    first = np.broadcast_to(then[0], (draws, *then[0].shape)).copy()
    shape = (draws, int(np.count_nonzero(open_cells)))
    drawn = rng.hypergeometric(passed[open_cells], failed[open_cells], own_n[open_cells], shape)
    first[:, open_cells] = same[0][open_cells] + drawn
    return first, then[0] + now[0] - first


# ---------------------------------------------------------------- redrawn tasks and mutants


@dataclass(frozen=True, slots=True, eq=False)
class ScoreChange:
    """A mutation score in both runs over the common cells."""

    then: float
    now: float
    interval: tuple[float, float] | None
    reason: str | None
    """Why there is no interval."""


def score_changes(cells: CommonCells, draws: int, rng: Rng) -> dict[MutationScore, ScoreChange]:
    """The change of both mutation scores with its interval: 1.96 standard deviations over redrawn tasks and mutants.

    Tasks and mutants are drawn with replacement, independently, the same ones in both runs, with the cells as each run
    found them (Owen 2007, "The pigeonhole bootstrap": mildly conservative). The noise of the attempts is in the
    differences between the two; that of a baseline, which all mutants share, is why tasks are drawn too. Intervals from
    redrawn mutants and attempts alone hold the true change 28 % to 97 % of the time with one attempt a cell, these
    92 % to 100 % (simulated: ``tests/comparing/test_comparing_numbers.py``).

    Args:
        cells: of the mutants that have a cell in both runs, at least one.
        draws: redraws.
        rng: of this purpose.
    """
    scores: tuple[MutationScore, MutationScore] = ("kill_share", "mean_drop")
    tasks, mutants = len(cells.tasks), len(cells.mutants)
    redrawn = np.empty((2, draws))
    step = max(1, _NUMBERS // max(1, tasks * mutants))
    for start in range(0, draws, step):
        size = min(step, draws - start)
        times = _drawn(tasks, size, rng), _drawn(mutants, size, rng)
        redrawn[:, start : start + size] = _scores(cells.now, *times) - _scores(cells.then, *times)
    whole = np.ones((1, tasks), dtype=np.int64), np.ones((1, mutants), dtype=np.int64)
    then, now = _scores(cells.then, *whole)[:, 0], _scores(cells.now, *whole)[:, 0]
    return {score: _change(float(then[row]), float(now[row]), redrawn[row]) for row, score in enumerate(scores)}


def _drawn(things: int, draws: int, rng: Rng) -> IntArray:
    """How often each thing is drawn, shape (draws, things)."""
    drawn = rng.integers(0, things, (draws, things)) + np.arange(draws)[:, None] * things
    return np.bincount(drawn.ravel(), minlength=draws * things).reshape(draws, things).astype(np.int64)


def _scores(run: RunCells, tasks: IntArray, mutants: IntArray) -> FloatArray:
    """Both scores where tasks and mutants count as often as they were drawn, shape (2, draws); NaN without a cell."""
    cells = tasks @ run.present.T.astype(np.int64)
    killed = (tasks @ (run.killed & run.present).T.astype(np.int64)) > 0
    drops = (tasks.astype(np.float64) @ _drops(run).T) / np.maximum(cells, 1)
    weights = mutants * (cells > 0)
    with np.errstate(invalid="ignore"):
        found: FloatArray = np.stack([(weights * killed).sum(axis=1), (weights * drops).sum(axis=1)]) / weights.sum(
            axis=1
        )
    return found


def _change(then: float, now: float, redrawn: FloatArray) -> ScoreChange:
    defined = redrawn[~np.isnan(redrawn)]
    if len(redrawn) - len(defined) > MOST_UNDEFINED * len(redrawn):
        undefined = len(redrawn) - len(defined)
        return ScoreChange(then, now, None, f"{undefined} of {len(redrawn)} redraws have no cell, more than 5 %")
    spread = float(defined.std(ddof=1)) if len(defined) > 1 else 0.0
    if spread < _TIE:
        same = "no cell changed" if abs(now - then) < _TIE else "every cell changed alike"
        return ScoreChange(then, now, None, f"{same}: there is no spread to judge by")
    reach = Z * spread
    low, high = round(max(-1.0, now - then - reach), DECIMALS), round(min(1.0, now - then + reach), DECIMALS)
    return ScoreChange(then, now, (low, high), None)


# ---------------------------------------------------------------- what both need


def _like_baseline(run: RunCells, base: IntArray, mutants: IntArray) -> _Passes:
    """Passes where the baseline's stand for cells that are not reached."""
    return _Passes(base, np.where(run.not_reached, base[:, None, :], mutants))


def _drops(run: RunCells, passes: _Passes | None = None) -> FloatArray:
    """Pass rate of the baseline minus that of the mutant, 0 where a cell is missing; draws first where drawn."""
    tallies = run.tallies
    base = tallies.base_passed if passes is None else passes.base[:, None, :]
    mutants = tallies.mutant_passed if passes is None else passes.mutants
    drop = base / np.maximum(tallies.base_n, 1) - mutants / np.maximum(tallies.mutant_n, 1)
    return np.where(run.present, drop, 0.0)
