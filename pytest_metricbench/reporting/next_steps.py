"""The next useful things to do after a run, the most pressing first: the last lines of its section."""

from collections.abc import Iterator
from fractions import Fraction
from itertools import islice
from typing import Final

from pytest_metricbench.analysis.reach import attempts_needed
from pytest_metricbench.analysis.summary import CaseSummary, Settings, Summary

MOST_STEPS: Final = 3
_SHOW: Final = "--metricbench-show"


def next_steps(summary: Summary) -> list[str]:
    """At most :data:`MOST_STEPS` things to do, each in a sentence; of each kind only the first.

    What keeps figures from meaning anything comes first (a baseline that never passes, attempts without an outcome, a
    rule that cannot kill), then what the figures say (a blind spot, a task that kills nothing, subsets all alike).
    """
    return list(islice(_steps(summary), MOST_STEPS))


def _steps(summary: Summary) -> Iterator[str]:
    several = len(summary.cases) > 1
    broken = [name for name, case in summary.cases.items() if case.baseline_check.holds is False]
    if broken:
        of_case = f" of {broken[0]}" if several else ""
        yield f"make some attempt of the baseline{of_case} pass first: its mutants say nothing before"
    if summary.counts.unmeasured or summary.counts.missing:
        yield "run the same command again: what was measured is reused, only the rest runs"
    yield from _few_attempts(summary)
    survivors = [(name, case) for name, case in summary.cases.items() if case.survivors and name not in broken]
    if survivors:
        name, case = survivors[0]
        more = sum(len(found.survivors) for _, found in survivors) - 1
        see = f"; {more:,} more: {_SHOW} survivors" if more else ""
        to_case = f" to {name}" if several else ""
        first = case.survivors[0].mutant
        yield f"add a task{to_case} that {first} fails, or mark it `equivalent:` with the reason{see}"
    idle = [(name, task) for name, case in summary.cases.items() for task in case.kill_nothing if _reaches(case, task)]
    if idle and not broken:
        name, task = idle[0]
        of_case = f" of {name}" if several else ""
        yield f"look at task {task}{of_case}, which kills no mutant: it may ask for too little ({_SHOW} tasks)"
    yield from _lucky_kills(summary)
    if any(_kills_alike(case, summary.settings) for case in summary.cases.values()):
        yield "draw smaller subsets: all kill equally much, so no coverage can predict it"


def _reaches(case: CaseSummary, task: str) -> bool:
    """Whether a task reaches the change of some scored mutant: one that reaches none is not to blame."""
    scored = (*case.mutants.detected, *case.mutants.undetected)
    return any(case.kills[mutant].get(task) == "survived" for mutant in scored)


def _few_attempts(summary: Summary) -> Iterator[str]:
    """Where cells cannot be killed, whatever happens in them: how many attempts it takes."""
    for name, case in summary.cases.items():
        found = case.detection
        limit = found.alpha if found.alpha is not None else found.q
        if not found.out_of_reach or limit is None:
            continue
        needed = attempts_needed(Fraction(repr(limit)))
        rule = f"fisher, {'alpha' if found.alpha is not None else 'q'}: {limit:g}"
        cells = "1 cell" if found.out_of_reach == 1 else f"{found.out_of_reach:,} cells"
        of_case = f" of {name}" if len(summary.cases) > 1 else ""
        remedy = f"ask for {needed} attempts" if needed is not None else "choose a larger one"
        yield f"{remedy}: {{rule: {rule}}} can kill nothing in {cells}{of_case} with those that there are"
        return


def _lucky_kills(summary: Summary) -> Iterator[str]:
    """Where a control is killed: with so few attempts the task tells the baseline from itself."""
    for name, case in summary.cases.items():
        if case.false_kills.kills:
            kill = case.false_kills.kills[0]
            of_case = f" of {name}" if len(summary.cases) > 1 else ""
            yield f"ask for more attempts at task {kill.task}{of_case}: it kills the control {kill.mutant}, by luck"
            return


def _kills_alike(case: CaseSummary, settings: Settings) -> bool:
    """Whether a correlation is unavailable because all subsets have one mutation score."""
    overall = [by_score[settings.mutation_score].overall for by_score in case.correlation.values()]
    return any(found.pairs >= 3 and found.distinct_scores == 1 for found in overall)
