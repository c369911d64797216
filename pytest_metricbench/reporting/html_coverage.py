"""Coverage on the page: a picture for each system, and the coefficients beside it."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pytest_metricbench.analysis.figures import Coefficient, Correlation, CorrelationBySize, DifferenceFigure
from pytest_metricbench.analysis.summary import CaseSummary, Summary
from pytest_metricbench.definition.experiment import MutationScore
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.html_words import SCORE_WORDS
from pytest_metricbench.reporting.layout import two_digits
from pytest_metricbench.reporting.plots import Point, case_marks, scatter_svg, size_colours


@dataclass(frozen=True, slots=True)
class Key:
    """An entry of a picture's legend: a colour or a mark, and what it stands for."""

    sign: str
    text: str


@dataclass(frozen=True, slots=True)
class CoefficientRow:
    """The correlation over the subsets of one size, or over ``all``."""

    size: str
    pairs: int
    kendall: Coefficient
    spearman: Coefficient
    pearson: Coefficient


@dataclass(frozen=True, slots=True)
class CaseCoefficients:
    """The table beside a picture: one case's correlation with one mutation score."""

    case: str
    score: str
    rows: tuple[CoefficientRow, ...]
    notes: tuple[str, ...]
    """What is left when the size of the subsets is taken into account, what keeps coefficients small, what is n/a."""


@dataclass(frozen=True, slots=True)
class SubsetRow:
    """The subset behind a mark, in the table that says the same as the picture."""

    case: str
    subset: str
    size: int
    coverage: str
    score: str


@dataclass(frozen=True, slots=True)
class ComparisonRow:
    """Two coverage systems on the same subsets: how much better the first predicts the mutation score."""

    case: str
    first: str
    second: str
    size: str
    pairs: int
    difference: DifferenceFigure


@dataclass(frozen=True, slots=True)
class SystemView:
    """A coverage system: its picture, what stands beside it, and the values behind it."""

    id: str
    score: str
    svg: str
    """An SVG element; empty where no subset has both values."""
    sizes: tuple[Key, ...]
    marks: tuple[Key, ...]
    """Empty with one case."""
    primary: tuple[CaseCoefficients, ...]
    """Against the mutation score that gates mean."""
    other: tuple[CaseCoefficients, ...]
    """Against the other one."""
    subsets: tuple[SubsetRow, ...]


def system_views(summary: Summary) -> list[SystemView]:
    """The coverage systems of an experiment, in the order of the file."""
    systems = list(dict.fromkeys(system for case in summary.cases.values() for system in case.correlation))
    score = summary.settings.mutation_score
    with_subsets = {name: case for name, case in summary.cases.items() if case.subsets and case.kills}
    return [_view(number, system, with_subsets, score) for number, system in enumerate(systems, 1) if with_subsets]


def comparison_rows(summary: Summary) -> list[ComparisonRow]:
    """Every two coverage systems of each case, over all subsets and within each size, by Kendall's tau-b."""
    return [
        ComparisonRow(name, comparison.first, comparison.second, size, found.pairs, found.kendall)
        for name, case in summary.cases.items()
        if case.kills and case.subsets
        for comparison in case.comparisons
        for size, found in (*comparison.by_size.items(), ("all", comparison.overall))
    ]


def _view(number: int, system: str, cases: Mapping[str, CaseSummary], score: MutationScore) -> SystemView:
    points = [point for name, case in cases.items() for point in _points(name, case, system, score)]
    words = SCORE_WORDS[score]
    colours = size_colours([point.size for point in points])
    marks = case_marks(list(cases)) if len(cases) > 1 else {}
    other: MutationScore = "mean_drop" if score == "kill_share" else "kill_share"
    return SystemView(
        id=system,
        score=words,
        svg=_picture(number, points, list(cases), system, score) if points else "",
        sizes=tuple(Key(colour, counted(size, "task")) for size, colour in colours.items()),
        marks=tuple(Key(sign, case) for case, (_, sign) in marks.items()),
        primary=tuple(_coefficients(cases, system, score)),
        other=tuple(_coefficients(cases, system, other)),
        subsets=tuple(_subset_rows(cases, system, score)),
    )


def _picture(number: int, points: Sequence[Point], cases: list[str], system: str, score: MutationScore) -> str:
    words = SCORE_WORDS[score]
    sizes = sorted({point.size for point in points})
    between = f"sizes {sizes[0]} to {sizes[-1]}" if len(sizes) > 1 else f"size {sizes[0]}"
    low, high = min(point.y for point in points), max(point.y for point in points)
    left, right = min(point.x for point in points), max(point.x for point in points)
    description = (
        f"{counted(len(points), 'subset')} of {between}. Coverage goes from {left:.2f} to {right:.2f}, the {words} "
        f"from {low:.2f} to {high:.2f}. The values of each subset stand in the table below."
    )
    return scatter_svg(
        points,
        cases=cases,
        score=words,
        bounded=score == "kill_share",
        name=f"scatter-{number}",
        title=f"The {words} of each subset against its coverage by {system}",
        description=description,
    )


def _points(name: str, case: CaseSummary, system: str, score: MutationScore) -> Iterator[Point]:
    for subset, scores in case.subsets.items():
        x, y = scores.coverage[system].value, getattr(scores, score).value
        if x is not None and y is not None:
            yield Point(x, y, len(scores.tasks), name, subset)


def _subset_rows(cases: Mapping[str, CaseSummary], system: str, score: MutationScore) -> Iterator[SubsetRow]:
    for name, case in cases.items():
        for subset, scores in case.subsets.items():
            coverage, value = scores.coverage[system].value, getattr(scores, score).value
            yield SubsetRow(name, subset, len(scores.tasks), two_digits(coverage), two_digits(value))


def _coefficients(cases: Mapping[str, CaseSummary], system: str, score: MutationScore) -> Iterator[CaseCoefficients]:
    for name, case in cases.items():
        found = case.correlation[system][score]
        rows = [_coefficient_row(size, correlation) for size, correlation in found.by_size.items()]
        rows.append(_coefficient_row("all", found.overall))
        yield CaseCoefficients(name, SCORE_WORDS[score], tuple(rows), tuple(_notes(found)))


def _coefficient_row(size: str, found: Correlation) -> CoefficientRow:
    return CoefficientRow(size, found.pairs, found.kendall, found.spearman, found.pearson)


def _notes(found: CorrelationBySize) -> Iterator[str]:
    """What coverage adds to the size of a subset, where there are several sizes; and what leaves little to predict."""
    control = found.size_control
    if len(found.by_size) > 1 and control.spearman.value is not None:
        spearman = two_digits(control.spearman.value)
        yield f"With the size of the subsets taken into account, Spearman's coefficient is {spearman}."
        if control.gain.value is not None and control.r2_log_size.value is not None:
            yield (
                f"The size alone explains {two_digits(control.r2_log_size.value)} of the variance of the score "
                f"(R2 over log size), coverage adds {two_digits(control.gain.value)}."
            )
    lopsided = [size for size, correlation in found.by_size.items() if correlation.balance.lopsided]
    if lopsided:
        yield f"There is little to predict at size {first_names(lopsided)}: nearly all or nearly none are killed."
    every = [found.overall, *found.by_size.values()]
    if any(None in (correlation.kendall.value, correlation.kendall.p.value) for correlation in every):
        yield "Why a figure is n/a stands under Unavailable results."
