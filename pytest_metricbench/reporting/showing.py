"""What a store holds, shown without running anything: survivors, the matrix of kills, tasks, attempts.

Everything is judged by today's experiment file: its score, its kill rule, its tasks. Attempts that no longer fit it are
not taken into account, and said to be so.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Final

from pytest_metricbench.analysis.kill_figures import mutant_groups, survivors
from pytest_metricbench.analysis.kill_matrix import KillMatrix, kill_matrix
from pytest_metricbench.analysis.kill_models import MutantGroups, Survivor
from pytest_metricbench.analysis.outcomes import CaseOutcomes, Cell, case_outcomes, primary_score
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.contracts import AttemptKey, AttemptRecord
from pytest_metricbench.definition.experiment import BASELINE, Case, Experiment, Variant
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.layout import Line, block, line, one_line, paragraph
from pytest_metricbench.running.attempts import Attempts, Standing

_STATES: Final = {"absent": "not in the store", "stale": "no longer fit", "rescorable": "to be scored again"}


@dataclass(frozen=True)
class Shown:
    """What is shown of one experiment.

    Attributes:
        experiment: as it is today.
        attempts: what of the store fits it.
        standings: what the store's record of every attempt is worth.
        selected: attempts that were chosen on the command line; their cases, variants and tasks are shown.
        cost_scores: the scores that say what an attempt cost; empty: the usual ones.
    """

    experiment: Experiment
    attempts: Mapping[AttemptKey, AttemptRecord]
    standings: Mapping[AttemptKey, Standing]
    selected: AbstractSet[AttemptKey]
    cost_scores: Sequence[str] = ()

    @cached_property
    def results(self) -> Results:
        """For the analysis: what does not fit is outside."""
        outside = frozenset(self.standings) - frozenset(self.attempts)
        return Results(self.experiment, self.attempts, {}, {}, outside, frozenset(self.attempts), None)

    @cached_property
    def primary(self) -> str:
        """The score that decides."""
        return primary_score(self.results)

    @cached_property
    def cases(self) -> dict[str, "ShownCase"]:
        """The cases of the selected attempts, judged."""
        chosen = {key[0] for key in self.selected}
        return {case.id: self._judged(case) for case in self.experiment.cases if case.id in chosen}

    def _judged(self, case: Case) -> "ShownCase":
        keys = [key for key in self.selected if key[0] == case.id]
        outcomes = case_outcomes(self.results, case, self.primary)
        matrix = kill_matrix(outcomes, self.experiment.analysis.kill)
        variants, tasks = frozenset(key[1] for key in keys), frozenset(key[2] for key in keys)
        return ShownCase(case, outcomes, matrix, mutant_groups(matrix), variants, tasks)


@dataclass(frozen=True)
class ShownCase:
    """A case, judged, and what of it is shown.

    Attributes:
        case: as it is today.
        outcomes: its cells.
        matrix: its kills.
        groups: its mutants by how they count.
        variants: ids of the selected variants.
        tasks: ids of the selected tasks.
    """

    case: Case
    outcomes: CaseOutcomes
    matrix: KillMatrix
    groups: MutantGroups
    variants: AbstractSet[str]
    tasks: AbstractSet[str]

    @property
    def mutants(self) -> list[Variant]:
        """The selected mutants; all where only the baseline was selected."""
        chosen = [mutant for mutant in self.case.mutants if mutant.id in self.variants]
        return chosen or list(self.case.mutants)


def shown_of(
    experiment: Experiment,
    desk: Attempts,
    standings: Mapping[AttemptKey, Standing],
    selected: AbstractSet[AttemptKey],
    cost_scores: Sequence[str],
) -> Shown:
    """What is shown of an experiment, given what the store's records are worth.

    An attempt of today's inputs that could not be measured is known to be unmeasured, although a run makes it again.
    """
    known: dict[AttemptKey, AttemptRecord] = {}
    for case, variant, task, slot in experiment.attempts():
        key = (case.id, variant.id, task.id, slot)
        standing = standings[key]
        record = standing.record if standing.state == "reusable" else desk.unmeasured(case, variant, task, slot)
        if record is not None:
            known[key] = record
    return Shown(experiment, known, standings, selected, cost_scores)


def origin_lines(shown: Shown, store: str, width: int) -> list[Line]:
    """Which store this is from, and what of it fits."""
    total, fit = len(shown.standings), len(shown.attempts)
    lines = paragraph(f"from {store}: {fit:,} of {counted(total, 'attempt')}", width, "light")
    others = Counter(standing.state for key, standing in shown.standings.items() if key not in shown.attempts)
    if others:
        texts = [f"{number:,} {_STATES.get(state, state)}" for state, number in others.items()]
        lines += paragraph(f"{', '.join(texts)}: what needs them is not known", width, "yellow")
    return lines


# ---------------------------------------------------------------- survivors


def survivor_lines(shown: Shown, width: int) -> list[Line]:
    """The blind spots: every mutant that no task kills, where it is defined, and which task comes nearest."""
    lines: list[Line] = []
    for name, case in shown.cases.items():
        lines += [Line()] if lines else []
        lines += list(_survivors_of(shown, name, case, width))
    return lines


def _survivors_of(shown: Shown, name: str, case: ShownCase, width: int) -> Iterator[Line]:
    if not case.case.mutants:
        yield from paragraph(f"case {name} has no mutants", width)
        return
    groups, chosen = case.groups, {mutant.id for mutant in case.mutants}
    found = [survivor for survivor in survivors(case.matrix, groups) if survivor.mutant in chosen]
    judged = len(chosen & {*groups.detected, *groups.undetected})
    verb = "survives" if len(found) == 1 else "survive"
    head = f"{len(found) or 'none'} of {counted(judged, 'judged mutant')} {verb if found else 'survives'}"
    yield line("case ", (name, "bold"), f": {head if judged else 'no mutant is judged yet'}")
    for survivor in found:
        yield Line()
        yield from block(survivor.mutant, _about(shown, case, survivor), width, "yellow")
    others = (("not known", groups.outside), ("unmeasured", groups.unmeasured), ("invalid", groups.invalid))
    for label, names in others:
        listed = [mutant for mutant in names if mutant in chosen]
        if listed:
            yield from block(label, [first_names(listed)], width)


def _about(shown: Shown, case: ShownCase, survivor: Survivor) -> Iterator[str]:
    mutant = next(mutant for mutant in case.case.mutants if mutant.id == survivor.mutant)
    long_id = [""] if len(mutant.id) > 15 else []  # the label has no room beside it
    yield from long_id
    if survivor.description:
        yield one_line(survivor.description)
    where = Path(case.case.file or shown.experiment.path).name
    missing = f", {survivor.missing_cells:,} say nothing" if survivor.missing_cells else ""
    yield f"{where}:{mutant.line}; {counted(survivor.cells, 'task')} could have killed it{missing}"
    yield _nearest(case, mutant.id)


def _nearest(case: ShownCase, mutant: str) -> str:
    """The task at which the pass rate falls most."""
    baseline, cells = case.outcomes.cells[BASELINE], case.outcomes.cells[mutant]
    drops = [
        (base.passed / base.n - cells[task].passed / cells[task].n, task)
        for task, base in baseline.items()
        if base.n and cells[task].n
    ]
    drop, task = max(drops, key=lambda pair: pair[0], default=(0.0, ""))
    if drop <= 0:
        return "at no task does it pass less often than the baseline"
    return f"nearest: {task}, where the baseline passes {_passes(baseline[task])} and it {_passes(cells[task])}"


def _passes(cell: Cell) -> str:
    return f"{cell.passed} of {cell.n}"
