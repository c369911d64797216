"""The figures of gates against an earlier run, and what noise has to do with them."""

from collections.abc import Iterable, Iterator
from typing import Final

from pytest_metricbench.analysis.comparing_models import CaseComparison, ChangedFigure, MutantChange, RunComparison
from pytest_metricbench.analysis.figures import Figure, Interval
from pytest_metricbench.analysis.gate_numbers import meets, number_text
from pytest_metricbench.analysis.summary import GateCheck, Settings
from pytest_metricbench.analysis.unavailable import missing
from pytest_metricbench.definition.experiment import BASELINE, Gate
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted

SIGNIFICANT: Final = 0.05
"""A new survivor is noise where its adjusted p is above this; a drop where its 95 % interval reaches the number."""
NO_EARLIER_RUN: Final = "there is no earlier run to compare with; name one with --metricbench-compare"


def is_significant(change: MutantChange) -> bool:
    """Whether noise of the attempts does not explain that a mutant is killed in one run only.

    Where there is no p, since the tasks that killed it are gone or not measured, chance has no part in it.
    """
    return change.holm is None or change.holm <= SIGNIFICANT


def compared_checks(
    gate: Gate, cases: Iterable[str], settings: Settings, comparison: RunComparison | None
) -> list[GateCheck]:
    """Everything that a gate against an earlier run looks at.

    Without a case the cases of both runs count: what is new cannot have dropped. What the earlier run does not have, or
    knows only in part, leaves the gate open.
    """
    if comparison is None:
        case = gate.case or next(iter(cases))
        return [GateCheck(case=case, subject=gate.subject, value=None, holds=None, reason=NO_EARLIER_RUN)]
    if gate.case is not None and gate.case not in comparison.cases:
        reason = f"the earlier run has no case {gate.case}"
        return [GateCheck(case=gate.case, subject=gate.subject, value=None, holds=None, reason=reason)]
    return [
        check
        for name, found in comparison.cases.items()
        if gate.case is None or gate.case == name
        for check in _case_checks(gate, name, found, settings)
    ]


def _case_checks(gate: Gate, name: str, found: CaseComparison, settings: Settings) -> Iterator[GateCheck]:
    if gate.figure == "new_survivors":
        yield _survivors_check(gate, name, found)
        return
    for subject, figure in _changes(gate, found, settings):
        if figure is None:
            reason = f"the earlier run has no {subject}"
            yield GateCheck(case=name, subject=subject, value=None, holds=None, reason=reason)
        else:
            yield _drop_check(gate, name, subject, figure)


# ---------------------------------------------------------------- drops


def _changes(
    gate: Gate, found: CaseComparison, settings: Settings
) -> Iterator[tuple[str | None, ChangedFigure | None]]:
    """The changes of one case that a gate is about; None for a variant or system that the earlier run does not have."""
    if gate.figure in ("pass@k", "pass^k"):
        variant = gate.subject or BASELINE
        by_variant = found.pass_at_k if gate.figure == "pass@k" else found.pass_hat_k
        yield variant, by_variant[variant][str(gate.k)] if variant in by_variant else None
    elif gate.figure in ("mutation_score", "mean_drop"):
        of_kills = gate.figure == "mutation_score" and settings.mutation_score == "kill_share"
        yield None, found.kill_share if of_kills else found.mean_drop
    elif gate.figure == "coverage":
        systems = found.coverage if gate.subject is None else [gate.subject]
        yield from ((system, found.coverage.get(system)) for system in systems)
    else:
        for system in found.correlation if gate.subject is None else [gate.subject]:
            by_score = found.correlation.get(system)
            figures = None if by_score is None else by_score[settings.mutation_score]
            yield system, None if figures is None else getattr(figures, gate.figure)


def _drop_check(gate: Gate, case: str, subject: str | None, figure: ChangedFigure) -> GateCheck:
    if figure.value is None:
        holds = None if figure.outside else False
        return GateCheck(case=case, subject=subject, value=None, holds=holds, reason=figure.reason)
    drop = -figure.value + 0.0
    interval = None if figure.interval is None else (-figure.interval[1] + 0.0, -figure.interval[0] + 0.0)
    holds, reason = _judged(gate, drop, interval, figure.interval_reason)
    return GateCheck(case=case, subject=subject, value=drop, holds=holds, reason=reason)


def _judged(gate: Gate, drop: float, interval: Interval | None, why_none: str | None) -> tuple[bool, str | None]:
    """Whether a drop is as the gate wants it, and what there is to say where its plain value is not."""
    if meets(gate.op, drop, gate.number):
        return True, None
    wanted = f"{gate.op} {number_text(gate.number)}"
    if not gate.significant:
        return False, f"the drop {number_text(drop)} is not {wanted}"
    if interval is None:
        return False, f"the drop {number_text(drop)} is not {wanted}, and has no interval ({why_none})"
    bounds = f"[{number_text(interval[0])}, {number_text(interval[1])}]"
    nearest = interval[0] if gate.op in ("<=", "<") else interval[1]
    if meets(gate.op, nearest, gate.number):
        return (
            True,
            f"the drop {number_text(drop)} is not {wanted}, but some of its interval {bounds} is: not significant",
        )
    return False, f"the drop {number_text(drop)} is not {wanted}, nor is any of its interval {bounds}"


# ---------------------------------------------------------------- survivors


def _survivors_check(gate: Gate, name: str, found: CaseComparison) -> GateCheck:
    figure = _unknown(found)
    new = [change for change in found.new_survivors if not gate.significant or is_significant(change)]
    if new:
        what = "significant new survivor" if gate.significant else "new survivor"
        reason = f"{counted(len(new), what)}: {first_names([change.mutant for change in new], 3)}"
        return GateCheck(case=name, subject=None, value=len(new), holds=False, reason=reason)
    if figure is not None:
        holds = None if figure.outside else False
        return GateCheck(case=name, subject=None, value=None, holds=holds, reason=figure.reason)
    aside = None
    if found.new_survivors:
        names = first_names([change.mutant for change in found.new_survivors], 3)
        survive = "survives" if len(found.new_survivors) == 1 else "survive"
        aside = f"{names} {survive} now, which noise of the attempts explains: not significant"
    return GateCheck(case=name, subject=None, value=0, holds=True, reason=aside)


def _unknown(found: CaseComparison) -> Figure | None:
    """Why nobody knows whether there are more: mutants that were killed, and about which this run cannot say."""
    lost = {
        now: [change.mutant for change in found.other_groups if change.then == "detected" and change.now == now]
        for now in ("outside", "unmeasured")
    }
    before = [change.mutant for change in found.other_groups if change.then == "outside" and change.now == "undetected"]
    if lost["unmeasured"]:
        return Figure(
            **missing(f"killed in the earlier run and not measured now: {first_names(lost['unmeasured'], 3)}")
        )
    if lost["outside"]:
        reason = f"killed in the earlier run, and attempts are outside this part now: {first_names(lost['outside'], 3)}"
        return Figure(**missing(reason), outside=True)
    if before:
        reason = f"attempts were outside the part of the earlier run, which may have killed: {first_names(before, 3)}"
        return Figure(**missing(reason), outside=True)
    return None
