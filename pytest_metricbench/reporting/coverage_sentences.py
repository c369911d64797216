"""What the correlations of a case say, in a line each: per system, and for every two systems."""

from collections.abc import Iterator
from typing import Final

from pytest_metricbench.analysis.figures import Comparison, CorrelationBySize
from pytest_metricbench.analysis.summary import CaseSummary
from pytest_metricbench.definition.experiment import MutationScore
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.reporting.layout import two_digits, with_interval

SIGNIFICANT: Final = 0.05
MOST_COMPARISONS: Final = 3


def p_text(p: float | None) -> str:
    """A p value to two digits that mean something; never 0."""
    return "n/a" if p is None else f"{p:.1g}" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def coverage_sentences(case: CaseSummary, score: MutationScore) -> Iterator[str]:
    """Per system: its coefficient over all subsets, beside what random goals reach. Then the comparisons and limits."""
    for system, by_score in case.correlation.items():
        yield from _of_system(system, by_score[score])
    shown = [text for comparison in case.comparisons if (text := _compared(comparison))]
    yield from shown[:MOST_COMPARISONS]
    if len(shown) > MOST_COMPARISONS:
        yield f"{len(shown) - MOST_COMPARISONS} more comparisons: summary.json"
    yield from _limits(case, score)


def _of_system(system: str, found: CorrelationBySize) -> Iterator[str]:
    figure = found.overall.kendall
    if figure.value is None or figure.random.value is None or figure.p.value is None:
        return
    beside = f"random goals reach {two_digits(figure.random.value)}"
    told = "" if figure.p.value <= SIGNIFICANT else ": not told apart"
    value = with_interval(figure.value, figure.interval)
    yield f"{system}: {value} over all; {beside}, p = {p_text(figure.p.value)}{told}"


def _compared(comparison: Comparison) -> str | None:
    """Which of two systems predicts better, and whether that is settled: both the interval and p must say so."""
    figure = comparison.overall.kendall
    if figure.value is None:
        return None
    better, worse = comparison.first, comparison.second
    value, interval = figure.value, figure.interval
    if value < 0:
        better, worse, value = worse, better, -value
        interval = (-interval[1], -interval[0]) if interval is not None else None
    if value == 0:
        return f"{better} and {worse} predict equally well"
    p = figure.holm if figure.holm is not None else figure.p.value
    apart = interval is not None and interval[0] > 0
    settled = "settled" if apart and p is not None and p <= SIGNIFICANT else "not settled"
    by = with_interval(value, interval)
    return f"{better} predicts better than {worse} by {by}, p = {p_text(p)}: {settled}"


def _limits(case: CaseSummary, score: MutationScore) -> Iterator[str]:
    """What keeps any coverage from correlating well here."""
    first = next(iter(case.correlation.values()))[score]
    lopsided = [size for size, found in first.by_size.items() if found.balance.lopsided]
    if lopsided:
        yield f"little to predict at size {first_names(lopsided)}: nearly all or nearly none are killed"
