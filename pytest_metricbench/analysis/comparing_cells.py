"""The cells that two runs of a case have in common: mutants scored in both, at tasks of both."""

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray, IntArray
from pytest_metricbench.analysis.comparing_terms import groups_of
from pytest_metricbench.analysis.detection import Tallies
from pytest_metricbench.analysis.kill_models import Detection
from pytest_metricbench.analysis.redraws import Judge
from pytest_metricbench.analysis.summary import CaseSummary, Settings
from pytest_metricbench.analysis.variant_models import AttemptValue, TaskResult
from pytest_metricbench.definition.experiment import BASELINE, KillRule

_OWN_ID: Final = re.compile(r"[0-9a-f]{32}")
"""A trial id that the plugin drew: no two attempts of any runs share one. Names from elsewhere may come again."""
_SCORED: Final = frozenset({"detected", "undetected", "unmeasured"})
_ROUNDING: Final = Fraction(1, 10**12)


@dataclass(frozen=True, slots=True, eq=False)
class RunCells:
    """The common cells of one of the runs."""

    tallies: Tallies
    """Entries and passes; of a cell that is not reached those of the baseline, whose attempts stand for it."""
    killed: BoolArray
    """Shape (mutants, tasks), as the run judged them."""
    present: BoolArray
    """Killed, survived or not reached."""
    not_reached: BoolArray
    judge: Judge
    """Decides kills of other passes by the rule and the threshold of this run."""


@dataclass(frozen=True, slots=True, eq=False)
class CommonCells:
    """The common cells of both runs."""

    mutants: tuple[str, ...]
    tasks: tuple[str, ...]
    then: RunCells
    now: RunCells
    same: Tallies
    """Entries and passes that are the same attempts in both runs."""

    def of(self, mutants: Sequence[str]) -> "CommonCells":
        """The cells of some of the mutants."""
        rows = [self.mutants.index(mutant) for mutant in mutants]
        return CommonCells(
            tuple(mutants), self.tasks, _rows(self.then, rows), _rows(self.now, rows), _tally_rows(self.same, rows)
        )

    def swapped(self) -> "CommonCells":
        """The same with the two runs in each other's place."""
        return CommonCells(self.mutants, self.tasks, self.now, self.then, self.same)


def common_cells(then: CaseSummary, now: CaseSummary, settings: Settings) -> CommonCells:
    """The common cells of two summaries of a case; settings say which score decides and when it passes."""
    tasks = common(then.tasks, now.tasks)
    groups_then, groups_now = groups_of(then.mutants), groups_of(now.mutants)
    mutants = [
        mutant
        for mutant in common(then.kills, now.kills)
        if groups_then[mutant] in _SCORED and groups_now[mutant] in _SCORED
    ]
    rows = [[same_entries(then, now, variant, task, settings) for task in tasks] for variant in (BASELINE, *mutants)]
    pairs = np.array(rows, dtype=np.int64).reshape(1 + len(mutants), len(tasks), 2)
    both = [_run_cells(case, mutants, tasks) for case in (then, now)]
    unreached = both[0].not_reached & both[1].not_reached
    passed, n = (
        np.where(unreached, pairs[0, :, 1], pairs[1:, :, 1]),
        np.where(unreached, pairs[0, :, 0], pairs[1:, :, 0]),
    )
    same = _within(Tallies(pairs[0, :, 1], pairs[0, :, 0], passed, n), both[0].tallies, both[1].tallies)
    return CommonCells(tuple(mutants), tuple(tasks), both[0], both[1], same)


def _within(same: Tallies, *runs: Tallies) -> Tallies:
    """Without the cells in which more attempts are the same than a run counts: an entry may not count everywhere."""
    fits = [
        (
            _fits(same.base_passed, same.base_n, run.base_passed, run.base_n),
            _fits(same.mutant_passed, same.mutant_n, run.mutant_passed, run.mutant_n),
        )
        for run in runs
    ]
    base, mutants = (np.logical_and.reduce(found) for found in zip(*fits, strict=True))
    return Tallies(same.base_passed * base, same.base_n * base, same.mutant_passed * mutants, same.mutant_n * mutants)


def _fits(passed: IntArray, n: IntArray, run_passed: IntArray, run_n: IntArray) -> BoolArray:
    fits: BoolArray = (passed <= run_passed) & (n - passed <= run_n - run_passed)
    return fits


def common(then: Iterable[str], now: Iterable[str]) -> list[str]:
    """What both have, in the order of this run."""
    known = set(then)
    return [name for name in now if name in known]


def tally(result: TaskResult) -> tuple[int, int]:
    """Entries and passes of a task under a variant; none where some attempts are outside: the rest is not known."""
    return (0, 0) if result.outside else (result.n, result.passed)


def passes(entry: AttemptValue, settings: Settings) -> bool | None:
    """Whether an entry of the primary score passes; None: it is no entry that counts. A death does not pass."""
    if entry.value_type == "label":
        return None
    if entry.value_type == "missing" or entry.value is None:
        return False
    if isinstance(entry.value, bool):
        return entry.value
    return float(entry.value) >= settings.pass_at_least


def same_entries(then: CaseSummary, now: CaseSummary, variant: str, task: str, settings: Settings) -> tuple[int, int]:
    """Entries of a cell that are the same attempts with the same value in both runs, and how many of them pass."""
    entries = [_entries(case, variant, task, settings) for case in (then, now)]
    if {entry.trial_id for entry in entries[0]}.isdisjoint(entry.trial_id for entry in entries[1]):
        return 0, 0
    found = [_own_entries(of_run, settings) for of_run in entries]
    both = found[0] & found[1]
    return both.total(), sum(count for (_, _, passed), count in both.items() if passed)


def _entries(case: CaseSummary, variant: str, task: str, settings: Settings) -> Sequence[AttemptValue]:
    found = case.variants[variant]
    return () if found.tasks[task].outside else found.attempts.get(task, {}).get(settings.primary, ())


def _own_entries(entries: Sequence[AttemptValue], settings: Settings) -> Counter[tuple[str, str, bool]]:
    judged = ((entry, passes(entry, settings)) for entry in entries if _OWN_ID.fullmatch(entry.trial_id))
    return Counter((entry.trial_id, repr(entry.value), passed) for entry, passed in judged if passed is not None)


def _run_cells(case: CaseSummary, mutants: Sequence[str], tasks: Sequence[str]) -> RunCells:
    def numbers(variants: Sequence[str], which: int) -> IntArray:
        rows = [[tally(case.variants[variant].tasks[task])[which] for task in tasks] for variant in variants]
        return np.array(rows, dtype=np.int64).reshape(len(variants), len(tasks))

    def states(*wanted: str) -> BoolArray:
        rows = [[case.kills[mutant][task] in wanted for task in tasks] for mutant in mutants]
        return np.array(rows, dtype=np.bool_).reshape(len(mutants), len(tasks))

    base_n, base_passed = numbers([BASELINE], 0)[0], numbers([BASELINE], 1)[0]
    not_reached = states("not_reached")
    n = np.where(not_reached, base_n, numbers(mutants, 0))
    passed = np.where(not_reached, base_passed, numbers(mutants, 1))
    tallies = Tallies(base_passed, base_n, passed, n)
    return RunCells(
        tallies,
        states("killed"),
        states("killed", "survived", "not_reached"),
        not_reached,
        Judge(rule_of(case.detection), _threshold(case.detection), base_n, n),
    )


def rule_of(detection: Detection) -> KillRule:
    """The kill rule that a summary was made with."""
    return KillRule(detection.rule, detection.alpha, detection.q)


def _threshold(detection: Detection) -> Fraction | None:
    """The p that kills, a little raised: the summary has it as a float, and a p that equals it must still kill."""
    value = detection.threshold.value
    return None if value is None else Fraction(value) * (1 + _ROUNDING)


def _rows(cells: RunCells, rows: list[int]) -> RunCells:
    judge = Judge(cells.judge.rule, cells.judge.threshold, cells.judge.base_n, cells.judge.mutant_n[rows])
    return RunCells(
        _tally_rows(cells.tallies, rows), cells.killed[rows], cells.present[rows], cells.not_reached[rows], judge
    )


def _tally_rows(tallies: Tallies, rows: list[int]) -> Tallies:
    return Tallies(tallies.base_passed, tallies.base_n, tallies.mutant_passed[rows], tallies.mutant_n[rows])
