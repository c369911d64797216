"""Correlations over several cases: the mean of what each case says, never one correlation over all their subsets.

Cases differ in ways that have nothing to do with coverage, so pairs of different cases belong in no common
correlation. Cases are the sample here: the interval redraws them, from ten on. Holm's adjustment is over the tests of
the whole run, so it is here too.
"""

import math
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np

from pytest_metricbench.analysis.draws import stream
from pytest_metricbench.analysis.families import holm
from pytest_metricbench.analysis.figures import (
    DECIMALS,
    Comparison,
    Correlation,
    CorrelationBySize,
    Differences,
    OverCases,
    OverCasesFigure,
)
from pytest_metricbench.analysis.many_coefficients import METHODS
from pytest_metricbench.analysis.strata import OVERALL
from pytest_metricbench.analysis.summary import CaseSummary
from pytest_metricbench.definition.experiment import AnalysisSettings, MutationScore
from pytest_metricbench.messages import counted

ENOUGH_CASES: Final = 10
_SCORES: Final[tuple[MutationScore, ...]] = ("kill_share", "mean_drop")
Family = dict[tuple[str, ...], float]


def over_cases(
    cases: Mapping[str, CaseSummary], settings: AnalysisSettings
) -> dict[str, dict[MutationScore, OverCases]]:
    """System -> mutation score -> the mean of each coefficient over all subsets of a case; empty with one case."""
    if len(cases) < 2:
        return {}
    systems = next(iter(cases.values())).correlation
    return {
        system: {
            score: OverCases(**{method: _mean(cases, system, score, method, settings) for method in METHODS})
            for score in _SCORES
        }
        for system in systems
    }


def _mean(
    cases: Mapping[str, CaseSummary], system: str, score: MutationScore, method: str, settings: AnalysisSettings
) -> OverCasesFigure:
    figures = [getattr(case.correlation[system][score].overall, method) for case in cases.values()]
    values = [figure.value for figure in figures if figure.value is not None]
    rests_on: dict[str, Any] = {"defined": len(values), "cases": len(cases)}
    away = [figure.reason for figure in figures if figure.outside]
    if away or not values:
        reason = away[0] if away else f"none of {counted(len(cases), 'case')} has this coefficient"
        return OverCasesFigure(value=None, reason=reason, outside=True if away else None, **rests_on)
    mean = math.fsum(values) / len(values)
    if len(values) < ENOUGH_CASES:
        few = f"{counted(len(values), 'case')} with this coefficient: an interval needs {ENOUGH_CASES}; see each case"
        return OverCasesFigure(value=mean, interval_reason=few, **rests_on)
    rng = stream(settings.seed, "cases", system, score, method)
    redrawn = np.array(values)[rng.integers(0, len(values), (settings.bootstrap, len(values)))].mean(axis=1)
    low, high = np.round(np.quantile(redrawn, [0.025, 0.975]), DECIMALS).tolist()
    if low == high:
        return OverCasesFigure(value=mean, interval_reason="the redraws show no spread", **rests_on)
    return OverCasesFigure(value=mean, interval=(low, high), **rests_on)


# ---------------------------------------------------------------- families of tests


def adjusted(cases: Mapping[str, CaseSummary]) -> dict[str, CaseSummary]:
    """The cases with every p adjusted for its family (Holm).

    A family holds all tests of the run that answer one question by one method: for one mutation score, all systems and
    cases over all subsets; likewise all systems, cases and sizes within sizes; and likewise the comparisons.
    """
    coefficients: dict[tuple[str, ...], Family] = {}
    differences: dict[tuple[str, ...], Family] = {}
    for name, case in cases.items():
        for family, key, p in _coefficient_tests(case):
            coefficients.setdefault(family, {})[name, *key] = p
        for family, key, p in _difference_tests(case):
            differences.setdefault(family, {})[name, *key] = p
    of_coefficients = {family: holm(tests) for family, tests in coefficients.items()}
    of_differences = {family: holm(tests) for family, tests in differences.items()}
    return {name: _adjusted_case(name, case, of_coefficients, of_differences) for name, case in cases.items()}


def _kind(stratum: str) -> str:
    return OVERALL if stratum == OVERALL else "by size"


def _strata(found: CorrelationBySize) -> dict[str, Correlation]:
    return {OVERALL: found.overall, **found.by_size}


def _coefficient_tests(case: CaseSummary) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], float]]:
    """Family, key within it, p."""
    for system, by_score in case.correlation.items():
        for score, found in by_score.items():
            for stratum, correlation in _strata(found).items():
                for method in METHODS:
                    p = getattr(correlation, method).p.value
                    if p is not None:
                        yield (score, _kind(stratum), method), (system, stratum), p


def _difference_tests(case: CaseSummary) -> Iterator[tuple[tuple[str, ...], tuple[str, ...], float]]:
    for comparison in case.comparisons:
        for stratum, found in {OVERALL: comparison.overall, **comparison.by_size}.items():
            for method in METHODS:
                p = getattr(found, method).p.value
                if p is not None:
                    yield (_kind(stratum), method), (comparison.first, comparison.second, stratum), p


def _adjusted_case(
    name: str,
    case: CaseSummary,
    coefficients: Mapping[tuple[str, ...], Family],
    differences: Mapping[tuple[str, ...], Family],
) -> CaseSummary:
    def correlation(system: str, score: MutationScore, stratum: str, found: Correlation) -> Correlation:
        update = {}
        for method in METHODS:
            value = coefficients.get((score, _kind(stratum), method), {}).get((name, system, stratum))
            figure = getattr(found, method)
            update[method] = figure.model_copy(update={"p": figure.p.model_copy(update={"holm": value})})
        return found.model_copy(update=update)

    def by_size(system: str, score: MutationScore, found: CorrelationBySize) -> CorrelationBySize:
        sizes = {size: correlation(system, score, size, inner) for size, inner in found.by_size.items()}
        overall = correlation(system, score, OVERALL, found.overall)
        return found.model_copy(update={"overall": overall, "by_size": sizes})

    correlations = {
        system: {score: by_size(system, score, found) for score, found in by_score.items()}
        for system, by_score in case.correlation.items()
    }
    comparisons = tuple(_adjusted_comparison(name, comparison, differences) for comparison in case.comparisons)
    return case.model_copy(update={"correlation": correlations, "comparisons": comparisons})


def _adjusted_comparison(name: str, comparison: Comparison, families: Mapping[tuple[str, ...], Family]) -> Comparison:
    def adjusted_differences(stratum: str, found: Differences) -> Differences:
        key = (name, comparison.first, comparison.second, stratum)
        update = {
            method: getattr(found, method).model_copy(
                update={"holm": families.get((_kind(stratum), method), {}).get(key)}
            )
            for method in METHODS
        }
        return found.model_copy(update=update)

    sizes = {size: adjusted_differences(size, found) for size, found in comparison.by_size.items()}
    return comparison.model_copy(
        update={"overall": adjusted_differences(OVERALL, comparison.overall), "by_size": sizes}
    )
