"""What a kill matrix says: who is detected, what survives, which kills are weak, and how many are false."""

import numpy as np

from pytest_metricbench.analysis.arrays import BoolArray
from pytest_metricbench.analysis.choices import only_killers
from pytest_metricbench.analysis.figures import Figure, RateFigure
from pytest_metricbench.analysis.kill_matrix import KillMatrix, some
from pytest_metricbench.analysis.kill_models import (
    CellState,
    Detection,
    DiedKills,
    FalseKills,
    Kill,
    MutantGroups,
    Survivor,
    TaskSummary,
)
from pytest_metricbench.analysis.outcomes import CaseOutcomes
from pytest_metricbench.analysis.proportions import wilson
from pytest_metricbench.analysis.reach import smallest_p
from pytest_metricbench.analysis.unavailable import missing, outside
from pytest_metricbench.analysis.variant_figures import task_result
from pytest_metricbench.messages import counted


def cell_states(matrix: KillMatrix) -> dict[str, dict[str, CellState]]:
    """Every cell of every mutant in words, invalid mutants and controls included."""
    words = np.where(matrix.killed, "killed", np.where(matrix.judged, "survived", "missing"))
    words = np.where(matrix.not_reached & matrix.judged, "not_reached", words).tolist()
    return {
        mutant.id: dict(zip(matrix.tasks, row, strict=True)) for mutant, row in zip(matrix.mutants, words, strict=True)
    }


def mutant_groups(matrix: KillMatrix) -> MutantGroups:
    """Each mutant in the group that says how it counts."""
    # Whatever a mutant's own attempts say, a cell needs the baseline's too.
    absent = matrix.outside.mutants.any(axis=1) | bool(matrix.outside.base.any()) | matrix.undecided
    judged, scored, detected = some(matrix.judged), matrix.scored, matrix.detected
    open_ended = (scored & ~detected & absent) | (scored & matrix.validity_unknown)
    settled = scored & ~open_ended
    return MutantGroups(
        detected=_ids(matrix, settled & detected),
        undetected=_ids(matrix, settled & ~detected & judged),
        unmeasured=_ids(matrix, settled & ~detected & ~judged),
        outside=_ids(matrix, open_ended),
        invalid=_ids(matrix, ~matrix.valid & ~matrix.control),
        equivalent=_ids(matrix, matrix.reviewed & matrix.equivalent),
        controls=_ids(matrix, matrix.control),
        invalid_controls=_ids(matrix, ~matrix.valid & matrix.control),
    )


def survivors(matrix: KillMatrix, groups: MutantGroups) -> tuple[Survivor, ...]:
    """The undetected mutants with what they do: the blind spots of the evaluation."""
    found = []
    for row, mutant in enumerate(matrix.mutants):
        if mutant.id in groups.undetected:
            cells = int(np.count_nonzero(matrix.judged[row]))
            found.append(
                Survivor(
                    mutant=mutant.id,
                    description=mutant.description,
                    cells=cells,
                    missing_cells=len(matrix.tasks) - cells,
                )
            )
    return tuple(found)


def died_kills(matrix: KillMatrix) -> DiedKills:
    """Kills of scored mutants that rest on died attempts, and the mutants that have no other."""
    made = matrix.killed & matrix.scored[:, None]
    weak = made & ~matrix.stands
    return DiedKills(
        kills=_kills(matrix, weak),
        time_outs=_kills(matrix, made & ~matrix.stands_slow),
        total=int(np.count_nonzero(made)),
        mutants=_ids(matrix, some(made) & ~some(made & ~weak)),
    )


def false_kills(matrix: KillMatrix) -> FalseKills:
    """How often an unchanged agent is killed, from the valid controls."""
    controls = matrix.control & matrix.valid
    killed = matrix.killed & controls[:, None]
    rows = controls & some(matrix.judged)
    cells = int(np.count_nonzero(matrix.judged[controls]))
    kills, killed_rows = int(np.count_nonzero(killed)), int(np.count_nonzero(killed.any(axis=1)))
    row_total = int(np.count_nonzero(rows))
    needed, total = matrix.outside.needed(
        np.ones((1, len(matrix.tasks)), dtype=np.bool_), controls, np.zeros_like(controls)
    )[0]
    if not controls.any():
        reason = "every control is invalid" if matrix.control.any() else "there is no control"
    else:
        reason = "no cell of a control is measured"
    rates = [
        _rate(kills, cells, reason) if not needed else RateFigure(**outside(needed, total)),
        _rate(killed_rows, row_total, reason) if not needed else RateFigure(**outside(needed, total)),
    ]
    return FalseKills(
        cells=cells,
        killed_cells=kills,
        cell_rate=rates[0],
        controls=row_total,
        killed_controls=killed_rows,
        control_rate=rates[1],
        kills=_kills(matrix, killed),
    )


def detection(matrix: KillMatrix) -> Detection:
    """The rule and what it can show with the attempts that are there."""
    rule = matrix.rule
    if rule.rule == "flip":
        none = Figure(**missing("the rule flip compares pass rates with 1/2: it has no p"))
        return Detection(rule="flip", alpha=None, q=None, threshold=none, smallest_p=none, out_of_reach=0)
    least = [smallest_p(base, mutant) for base, mutant in attempts_against(matrix)]
    limit = rule.alpha if rule.alpha is not None else rule.q
    threshold = (
        Figure(value=float(matrix.threshold))
        if matrix.threshold is not None
        else Figure(**missing("no p of the case is small enough for q"))
    )
    if matrix.undecided:
        needed = matrix.outside.needed(_all_tasks(matrix), ~matrix.control, np.zeros_like(matrix.control))[0]
        threshold = Figure(**outside(*needed))
    return Detection(
        rule="fisher",
        alpha=rule.alpha,
        q=rule.q,
        threshold=threshold,
        smallest_p=Figure(value=float(min(least))) if least else Figure(**missing("no cell is measured")),
        out_of_reach=sum(1 for p in least if float(p) > (limit or 0.0)),
    )


def attempts_against(matrix: KillMatrix) -> list[tuple[int, int]]:
    """Entries of the baseline and of the mutant, for each present cell of the mutants that count."""
    cells = matrix.present & matrix.reviewed[:, None]
    base = np.broadcast_to(matrix.tallies.base_n, cells.shape)[cells].tolist()
    return list(zip(base, matrix.tallies.mutant_n[cells].tolist(), strict=True))


def task_summaries(outcomes: CaseOutcomes, matrix: KillMatrix) -> dict[str, TaskSummary]:
    """Every task over the variants: what the baseline does there, and what it kills."""
    scored = matrix.scored[:, None]
    kills = (matrix.killed & scored).sum(axis=0).tolist()
    cells = (matrix.judged & scored).sum(axis=0).tolist()
    alone = only_killers(matrix)
    summaries = {}
    for index, task in enumerate(outcomes.tasks):
        baseline = task_result(outcomes.baseline[task.id])
        summaries[task.id] = TaskSummary(
            description=task.description,
            baseline=baseline.verdict,
            baseline_rate=Figure(
                value=baseline.pass_rate.value, reason=baseline.pass_rate.reason, outside=baseline.pass_rate.outside
            )
            if baseline.pass_rate.value is None
            else Figure(value=baseline.pass_rate.value),
            kills=kills[index],
            cells=cells[index],
            only_killer_of=alone[task.id],
        )
    return summaries


def kill_nothing(matrix: KillMatrix) -> tuple[str, ...]:
    """Tasks that kill no scored mutant although all that can be known of them is known, and something is."""
    if matrix.only_first:
        return ()
    scored = matrix.scored[:, None]
    known = ~(matrix.outside.mutants * scored).any(axis=0) & (matrix.outside.base == 0)
    idle = known & (matrix.judged & scored).any(axis=0) & ~(matrix.killed & scored).any(axis=0)
    return tuple(task for task, is_idle in zip(matrix.tasks, idle.tolist(), strict=True) if is_idle)


def reach_warning(case: str, found: Detection, against: list[tuple[int, int]]) -> str | None:
    """A warning where no number of failures could kill in some cells; None where every cell can be killed."""
    if not found.out_of_reach:
        return None
    limit = f"alpha: {found.alpha}" if found.alpha is not None else f"q: {found.q}"
    base, mutant = min(against, key=sum)
    return (
        f"{case}: {{rule: fisher, {limit}}} cannot kill in {found.out_of_reach} of {counted(len(against), 'cell')}: "
        f"{base} against {counted(mutant, 'attempt')} cannot have a p below {float(smallest_p(base, mutant)):.2g}"
    )


def _rate(successes: int, n: int, reason: str) -> RateFigure:
    if n == 0:
        return RateFigure(**missing(reason))
    return RateFigure(value=successes / n, interval=wilson(successes, n))


def _all_tasks(matrix: KillMatrix) -> BoolArray:
    return np.ones((1, len(matrix.tasks)), dtype=np.bool_)


def _ids(matrix: KillMatrix, chosen: BoolArray) -> tuple[str, ...]:
    return tuple(mutant.id for mutant, is_chosen in zip(matrix.mutants, chosen.tolist(), strict=True) if is_chosen)


def _kills(matrix: KillMatrix, cells: BoolArray) -> tuple[Kill, ...]:
    return tuple(
        Kill(mutant=matrix.mutants[mutant].id, task=matrix.tasks[task]) for mutant, task in np.argwhere(cells).tolist()
    )
