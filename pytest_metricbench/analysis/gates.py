"""Gates: figures that must hold, checked on what the cases' summaries say."""

import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from pytest_metricbench.analysis.figures import Figure
from pytest_metricbench.analysis.summary import CaseSummary, GateCheck, GateResult, Settings
from pytest_metricbench.definition.experiment import BASELINE, Gate

_OPERATORS: Final[Mapping[str, Callable[[float, float], bool]]] = {
    ">=": operator.ge,
    ">": operator.gt,
    "<=": operator.le,
    "<": operator.lt,
    "==": operator.eq,
    "!=": operator.ne,
}
_DECIMALS: Final = 12


def check_gates(gates: Sequence[Gate], cases: Mapping[str, CaseSummary], settings: Settings) -> tuple[GateResult, ...]:
    """Check every gate.

    A gate holds where all its figures do: without a case, those of every case; without a coverage system, those of
    every system. A figure that is unavailable does not hold, unless it is only outside this part of the experiment:
    then the gate is not checked, if nothing else breaks it. Numbers are compared after rounding to 12 decimals.

    Args:
        gates: as the experiment has them; names are known to exist.
        cases: case -> its summary.
        settings: the primary score that pass@k means, and the score that ``mutation_score`` and correlations mean.
    """
    return tuple(_gate_result(gate, cases, settings) for gate in gates)


def _gate_result(gate: Gate, cases: Mapping[str, CaseSummary], settings: Settings) -> GateResult:
    checks = [
        _check(gate, case_id, subject, figure)
        for case_id, case in cases.items()
        if gate.case is None or gate.case == case_id
        for subject, figure in _figures(gate, case, settings)
    ]
    if not checks:
        nothing = f"nothing in this experiment has the figure {gate.figure}"
        return GateResult(text=gate.text, value=None, holds=False, reason=nothing, checks=())
    deciding = min(checks, key=lambda check: _rank(gate, check))
    reason = deciding.reason
    if reason is not None and len(checks) > 1:
        reason = f"{_place(deciding, len(cases) > 1)}: {reason}"
    return GateResult(text=gate.text, value=deciding.value, holds=deciding.holds, reason=reason, checks=tuple(checks))


def _check(gate: Gate, case: str, subject: str | None, figure: Figure) -> GateCheck:
    if figure.value is None:
        holds = None if figure.outside else False
        return GateCheck(case=case, subject=subject, value=None, holds=holds, reason=figure.reason)
    value, number = round(figure.value, _DECIMALS), round(gate.number, _DECIMALS)
    holds = _OPERATORS[gate.op](value, number)
    reason = None if holds else f"{figure.value:.6g} is not {gate.op} {gate.number:.6g}"
    return GateCheck(case=case, subject=subject, value=figure.value, holds=holds, reason=reason)


def _rank(gate: Gate, check: GateCheck) -> tuple[int, float]:
    """Lower decides: broken before unchecked before held, unavailable before measured, then the worst value."""
    state = {False: 0, None: 1, True: 2}[check.holds]
    if check.value is None:
        return state, float("-inf")
    if gate.op in ("<=", "<"):
        return state, -check.value
    if gate.op in (">=", ">"):
        return state, check.value
    return state, 0.0


def _place(check: GateCheck, name_case: bool) -> str:
    return " ".join(part for part in (check.case if name_case else None, check.subject) if part) or check.case


def _figures(gate: Gate, case: CaseSummary, settings: Settings) -> Iterator[tuple[str | None, Figure]]:
    """The figures of one case that a gate is about, each with its variant or system."""
    if gate.figure in ("pass@k", "pass^k"):
        name = gate.subject or BASELINE
        variant = case.variants.get(name)
        if variant is not None:
            means = variant.pass_at_k if gate.figure == "pass@k" else variant.pass_hat_k
            yield name, means[settings.primary][str(gate.k)]
    elif gate.figure in ("mutation_score", "mean_drop"):
        of_kills = gate.figure == "mutation_score" and settings.mutation_score == "kill_share"
        yield None, case.pool.kill_share if of_kills else case.pool.mean_drop
    elif gate.figure == "coverage":
        yield from ((system, case.pool.coverage[system]) for system in _systems(gate, case))
    else:
        for system in _systems(gate, case):
            overall = case.correlation[system][settings.mutation_score].overall
            by_name = {"pearson": overall.pearson, "spearman": overall.spearman, "kendall": overall.kendall}
            yield system, by_name[gate.figure]


def _systems(gate: Gate, case: CaseSummary) -> list[str]:
    return [system for system in case.correlation if gate.subject is None or gate.subject == system]
