"""Gates: figures that must hold, checked on what the cases' summaries say."""

from collections.abc import Iterator, Mapping, Sequence

from pytest_metricbench.analysis.comparing_gates import compared_checks
from pytest_metricbench.analysis.comparing_models import RunComparison
from pytest_metricbench.analysis.figures import Figure
from pytest_metricbench.analysis.gate_numbers import meets, number_text
from pytest_metricbench.analysis.summary import CaseSummary, GateCheck, GateResult, Settings
from pytest_metricbench.definition.experiment import BASELINE, Gate


def check_gates(
    gates: Sequence[Gate],
    cases: Mapping[str, CaseSummary],
    settings: Settings,
    comparison: RunComparison | None = None,
) -> tuple[GateResult, ...]:
    """Check every gate.

    A gate holds where all its figures do: without a case, those of every case; without a coverage system, those of
    every system. A figure that is unavailable does not hold, unless it is only outside this part of the experiment:
    then the gate is not checked, if nothing else breaks it. Numbers are compared after rounding to 12 decimals.

    Args:
        gates: as the experiment has them; names are known to exist.
        cases: case -> its summary.
        settings: the primary score that pass@k means, and the score that ``mutation_score`` and correlations mean.
        comparison: with an earlier run, where one was named; gates against it are not checked otherwise.
    """
    return tuple(_result(gate, _checks(gate, cases, settings, comparison), several=len(cases) > 1) for gate in gates)


def _checks(
    gate: Gate, cases: Mapping[str, CaseSummary], settings: Settings, comparison: RunComparison | None
) -> list[GateCheck]:
    if gate.compares:
        return compared_checks(gate, cases, settings, comparison)
    return [
        _check(gate, case_id, subject, figure)
        for case_id, case in cases.items()
        if gate.case is None or gate.case == case_id
        for subject, figure in _figures(gate, case, settings)
    ]


def _result(gate: Gate, checks: Sequence[GateCheck], *, several: bool) -> GateResult:
    if not checks:
        nothing = f"nothing in this experiment has the figure {gate.figure}"
        return GateResult(text=gate.text, value=None, holds=False, reason=nothing, checks=())
    deciding = min(checks, key=lambda check: _rank(gate, check))
    reason = deciding.reason
    if reason is not None and len(checks) > 1:
        reason = f"{_place(deciding, several)}: {reason}"
    return GateResult(text=gate.text, value=deciding.value, holds=deciding.holds, reason=reason, checks=tuple(checks))


def _check(gate: Gate, case: str, subject: str | None, figure: Figure) -> GateCheck:
    if figure.value is None:
        holds = None if figure.outside else False
        return GateCheck(case=case, subject=subject, value=None, holds=holds, reason=figure.reason)
    holds = meets(gate.op, figure.value, gate.number)
    reason = None if holds else f"{number_text(figure.value)} is not {gate.op} {number_text(gate.number)}"
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
