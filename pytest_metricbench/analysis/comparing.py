"""A run against an earlier one: what changed in the agent, in what the evaluation catches, and in what coverage says.

A pure function of two summaries. Cases, tasks, mutants, subsets and systems are matched by their ids; what only one run
has is listed and left out of the paired figures.
"""

from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from pytest_metricbench.analysis.comparing_cells import CommonCells, common, common_cells
from pytest_metricbench.analysis.comparing_coverage import coefficient_changes, coverage_changes
from pytest_metricbench.analysis.comparing_models import (
    CaseComparison,
    CaseParts,
    ExperimentParts,
    GroupChange,
    MutantChange,
    PairedDifference,
    RunComparison,
    ScoreDifference,
)
from pytest_metricbench.analysis.comparing_noise import score_changes, survival_p
from pytest_metricbench.analysis.comparing_passes import paired_over_cases
from pytest_metricbench.analysis.comparing_tasks import (
    attempts_compared,
    no_difference,
    pass_changes,
    tallies_of,
    verdict_changes,
    why_outside,
)
from pytest_metricbench.analysis.comparing_terms import groups_of, require_comparable, terms_of_summary
from pytest_metricbench.analysis.draws import stream
from pytest_metricbench.analysis.families import holm
from pytest_metricbench.analysis.figures import Figure, rounded
from pytest_metricbench.analysis.gates import check_gates
from pytest_metricbench.analysis.kill_matrix import some
from pytest_metricbench.analysis.pass_at_k import pass_at_k, pass_hat_k
from pytest_metricbench.analysis.summary import CaseSummary, Settings, Summary
from pytest_metricbench.analysis.unavailable import missing
from pytest_metricbench.definition.experiment import BASELINE, Gate, MutationScore

_ONLY_FIRST: Final = "mutants were left alone after their first kill"
_NEWLY_KILLED: Final = "newly killed"
_CHANGES: Final = frozenset({"detected", "undetected"})


def compared(summary: Summary, earlier: Summary, source: str, gates: Sequence[Gate]) -> Summary:
    """The summary with its comparison with an earlier run, and the gates checked that need one.

    Args:
        summary: this run's, with its gates checked without a comparison.
        earlier: the summary to compare with; :func:`.comparing_terms.require_coherent` holds for it.
        source: what was named to compare with, for readers.
        gates: of the experiment.

    Raises:
        ComparisonError: figures of the two do not mean the same; the message says what differs.
    """
    comparison = compare_runs(earlier, summary, source)
    results = check_gates(gates, summary.cases, summary.settings, comparison)
    return summary.model_copy(update={"comparison": comparison, "gates": results})


def compare_runs(earlier: Summary, later: Summary, source: str) -> RunComparison:
    """What is different in ``later``.

    Args:
        earlier: the summary to compare with; :func:`.comparing_terms.require_coherent` holds for it.
        later: this run's.
        source: what was named to compare with, for readers.

    Raises:
        ComparisonError: figures of the two do not mean the same; the message says what differs.
    """
    require_comparable(terms_of_summary(earlier), terms_of_summary(later))
    cases = common(earlier.cases, later.cases)
    ks = _ks(later)
    return RunComparison(
        source=source,
        part=earlier.part,
        complete=earlier.complete,
        added=_experiment_parts(later, earlier),
        removed=_experiment_parts(earlier, later),
        cases={case: _compare_case(case, earlier.cases[case], later.cases[case], later.settings, ks) for case in cases},
        over_cases=_over_cases(earlier, later, cases, ks) if len(cases) > 1 else {},
    )


def _ks(summary: Summary) -> list[int]:
    """The k that this run has figures of: those asked for, and those of gates."""
    first = next(iter(summary.cases.values())).variants[BASELINE]
    return [int(k) for k in first.pass_at_k.get(summary.settings.primary, {})] or list(summary.settings.pass_at_k)


def _compare_case(
    name: str, then: CaseSummary, now: CaseSummary, settings: Settings, ks: Sequence[int]
) -> CaseComparison:
    cells = common_cells(then, now, settings)
    shares = _score_differences(name, then, now, cells, settings)
    return CaseComparison(
        added=_case_parts(now, then),
        removed=_case_parts(then, now),
        attempts=attempts_compared(then, now, settings),
        new_survivors=_mutant_changes(name, then, now, cells, settings, "new survivors"),
        newly_killed=_mutant_changes(name, now, then, cells.swapped(), settings, _NEWLY_KILLED),
        other_groups=_other_groups(then, now),
        verdicts=verdict_changes(then, now, settings),
        pass_at_k=pass_changes(then, now, pass_at_k, ks),
        pass_hat_k=pass_changes(then, now, pass_hat_k, ks),
        kill_share=shares["kill_share"],
        mean_drop=shares["mean_drop"],
        coverage=coverage_changes(then, now),
        correlation=coefficient_changes(then, now, cells),
    )


def _over_cases(
    earlier: Summary, later: Summary, cases: Sequence[str], ks: Sequence[int]
) -> dict[str, PairedDifference]:
    """The baseline's pass@k over the tasks of all cases: what a case's tasks have in common is one cluster."""
    for case in cases:
        why = why_outside(earlier.cases[case], later.cases[case], [BASELINE])
        if why is not None:
            return {str(k): no_difference(f"{case}: {why}", outside=True) for k in ks}
    both = {case: tallies_of(earlier.cases[case], later.cases[case], BASELINE) for case in cases}
    then, now = ({case: pair[side] for case, pair in both.items()} for side in (0, 1))
    return {str(k): paired_over_cases(then, now, pass_at_k, k) for k in ks}


# ---------------------------------------------------------------- added and removed


def _experiment_parts(of: Summary, other: Summary) -> ExperimentParts:
    """What the first has and the second has not."""
    systems = [list(next(iter(summary.cases.values())).pool.coverage) for summary in (of, other)]
    return ExperimentParts(cases=_only(of.cases, other.cases), systems=_only(*systems))


def _case_parts(of: CaseSummary, other: CaseSummary) -> CaseParts:
    subsets = [
        name for name, found in of.subsets.items()
        if name not in other.subsets or set(other.subsets[name].tasks) != set(found.tasks)
    ]  # fmt: skip
    return CaseParts(tasks=_only(of.tasks, other.tasks), mutants=_only(of.kills, other.kills), subsets=tuple(subsets))


def _only(of: Any, other: Any) -> tuple[str, ...]:
    known = set(other)
    return tuple(name for name in of if name not in known)


# ---------------------------------------------------------------- mutants


def _mutant_changes(
    name: str, killed_in: CaseSummary, survived_in: CaseSummary, cells: CommonCells, settings: Settings, what: str
) -> tuple[MutantChange, ...]:
    """Mutants that the first of two runs kills and the second does not; ``cells`` has the first as its ``then``.

    The adjusted p is for all mutants that the first kills and the second knows: each could have changed.
    """
    groups, others = groups_of(killed_in.mutants), groups_of(survived_in.mutants)
    at_risk = [mutant for mutant in killed_in.mutants.detected if others.get(mutant) in _CHANGES]
    changed = [mutant for mutant in at_risk if groups[mutant] != others[mutant]]
    found = {mutant: _survival(name, cells, mutant, settings, what) for mutant in changed}
    known: dict[tuple[str, ...], float] = {
        (mutant,): 1.0 if (p := found.get(mutant)) is None else p for mutant in at_risk
    }
    adjusted = holm(known)
    changes = []
    for mutant in changed:
        tasks = tuple(task for task, state in killed_in.kills[mutant].items() if state == "killed")
        this_run = killed_in if what == _NEWLY_KILLED else survived_in
        p = found[mutant]
        changes.append(
            MutantChange(
                mutant=mutant,
                description=this_run.variants[mutant].description,
                tasks=tasks,
                gone=tuple(task for task in tasks if task not in survived_in.tasks),
                p=Figure(value=p) if p is not None else Figure(**missing(_why_no_p(tasks, survived_in))),
                holm=adjusted[mutant,] if p is not None else None,
            )
        )
    return tuple(changes)


def _survival(name: str, cells: CommonCells, mutant: str, settings: Settings, what: str) -> float | None:
    rng = stream(settings.seed, "compare", name, what, mutant)
    return survival_p(cells.of([mutant]), settings.permutation, rng)


def _why_no_p(tasks: Sequence[str], other: CaseSummary) -> str:
    gone = all(task not in other.tasks for task in tasks)
    which = "of the tasks that killed it none is" if len(tasks) > 1 else "the task that killed it is not"
    return f"{which} in the other run" if gone else f"{which} measured in both runs"


def _other_groups(then: CaseSummary, now: CaseSummary) -> tuple[GroupChange, ...]:
    before, after = groups_of(then.mutants), groups_of(now.mutants)
    return tuple(
        GroupChange(mutant=mutant, then=before[mutant], now=after[mutant])
        for mutant in common(then.kills, now.kills)
        if before[mutant] != after[mutant] and {before[mutant], after[mutant]} != _CHANGES
    )


def _score_differences(
    name: str, then: CaseSummary, now: CaseSummary, cells: CommonCells, settings: Settings
) -> dict[MutationScore, ScoreDifference]:
    counted = some(cells.then.present) & some(cells.now.present)
    with_cell = [mutant for mutant, counts in zip(cells.mutants, counted.tolist(), strict=True) if counts]
    mutants = len(with_cell)
    killed = [some(run.killed) & counted for run in (cells.then, cells.now)]
    lost, gained = (int(np.count_nonzero(a & ~b)) for a, b in (killed, killed[::-1]))
    rests_on: dict[str, Any] = {"mutants": mutants, "tasks": len(cells.tasks), "gained": gained, "lost": lost}
    first_only = bool(then.counts.not_needed or now.counts.not_needed)
    why = why_outside(then, now, [BASELINE, *cells.mutants])
    scores: tuple[MutationScore, MutationScore] = ("kill_share", "mean_drop")
    if why is not None or not mutants:
        nothing = missing("no mutant is scored in both runs with a cell in each") if why is None else missing(why)
        none = ScoreDifference(**nothing, outside=True if why else None, then=None, now=None, **rests_on)
        return dict.fromkeys(scores, none)
    if first_only:
        return _of_first_kills(then, now, killed, mutants, rests_on)
    found = score_changes(cells.of(with_cell), settings.bootstrap, stream(settings.seed, "compare", name, "scores"))
    return {
        score: ScoreDifference(
            value=rounded(change.now - change.then),
            then=change.then,
            now=change.now,
            interval=change.interval,
            interval_reason=change.reason,
            **rests_on,
        )
        for score, change in found.items()
    }


def _of_first_kills(
    then: CaseSummary, now: CaseSummary, killed: Sequence[Any], mutants: int, rests_on: dict[str, Any]
) -> dict[MutationScore, ScoreDifference]:
    """Where only each mutant's first kill is known: of the whole pool, and only if both pools are the same."""
    none = ScoreDifference(**missing(_ONLY_FIRST), then=None, now=None, **rests_on)
    if set(then.tasks) != set(now.tasks):
        other = missing(f"{_ONLY_FIRST}, and the tasks are not the same in both runs")
        return {"kill_share": ScoreDifference(**other, then=None, now=None, **rests_on), "mean_drop": none}
    before, after = (int(np.count_nonzero(found)) for found in killed)
    share = ScoreDifference(
        value=rounded((after - before) / mutants),
        then=before / mutants,
        now=after / mutants,
        interval_reason=f"{_ONLY_FIRST}: its other cells cannot be drawn anew",
        **rests_on,
    )
    return {"kill_share": share, "mean_drop": none}
