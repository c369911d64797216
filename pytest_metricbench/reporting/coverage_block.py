"""Coverage on the terminal: what subsets of each size kill and cover, and whether the one predicts the other."""

from collections.abc import Callable, Iterator
from typing import Final

from pytest_metricbench.analysis.figures import Correlation, CorrelationBySize, Figure, SizeFigure
from pytest_metricbench.analysis.summary import CaseSummary, Settings, SizeSummary
from pytest_metricbench.definition.experiment import MutationScore
from pytest_metricbench.reporting.layout import (
    UNAVAILABLE,
    Column,
    Line,
    block,
    counted,
    first_names,
    fitting,
    paragraph,
    shortened,
    table,
    two_digits,
)

MOST_SIZES: Final = 8
"""Sizes that the table of sizes holds; of more, the smallest and the largest."""
MOST_REASONS: Final = 6
_SYSTEM_WIDTH: Final = 20
_SCORES: Final[dict[MutationScore, str]] = {"kill_share": "kill share", "mean_drop": "mean drop"}
_METHODS: Final[tuple[tuple[str, Callable[[Correlation], Figure]], ...]] = (
    ("Kendall tau-b", lambda found: found.kendall),
    ("Spearman", lambda found: found.spearman),
    ("Pearson", lambda found: found.pearson),
)


# ---------------------------------------------------------------- sizes


def sizes_table(case: CaseSummary, width: int) -> list[Line]:
    """Means over the subsets of each size: what they kill, and what they cover."""
    if not case.sizes or not (case.kills or case.pool.coverage):
        return []
    sizes = list(case.sizes.items())
    left_out = len(sizes) - MOST_SIZES
    if left_out > 0:
        sizes = [*sizes[: MOST_SIZES // 2], *sizes[-MOST_SIZES // 2 :]]
    columns = _size_columns(case, sizes, detailed=True)
    if len(fitting(columns, width)) < len(columns):
        columns = _size_columns(case, sizes, detailed=False)
    between = f"{left_out} more sizes between these: summary.json"
    return table(columns, width, (MOST_SIZES // 2, between) if left_out > 0 else None)


def _size_columns(case: CaseSummary, sizes: list[tuple[str, SizeSummary]], *, detailed: bool) -> list[Column]:
    """What subsets of each size kill and cover; ``detailed`` with the lowest and the highest kill share."""
    columns = [
        Column("size", [size for size, _ in sizes]),
        Column("subsets", [str(found.subsets) for _, found in sizes]),
    ]
    if case.kills:
        shares = [found.kill_share for _, found in sizes]
        columns += [
            Column("kill share (low to high)", [_spread(share) for share in shares], "<")
            if detailed
            else Column("kill share", [two_digits(share.value) for share in shares]),
            Column("mean drop", [two_digits(found.mean_drop.value) for _, found in sizes]),
        ]
    for system in case.pool.coverage:
        values = [two_digits(found.coverage[system].value) for _, found in sizes]
        columns.append(Column(f"{shortened(system, _SYSTEM_WIDTH)} coverage", values))
    return columns


def _spread(figure: SizeFigure) -> str:
    """A mean over subsets with the lowest and the highest of them."""
    if figure.value is None or figure.low is None or figure.high is None:
        return UNAVAILABLE
    return f"{two_digits(figure.value)} ({two_digits(figure.low)} to {two_digits(figure.high)})"


# ---------------------------------------------------------------- correlation


def correlation_table(case: CaseSummary, score: MutationScore, width: int) -> list[Line]:
    """One line a coverage system and method: the coefficient within each size and over all subsets."""
    found = {system: by_score[score] for system, by_score in case.correlation.items()}
    if not found or not case.subsets or not case.kills:
        return []
    title = f"does coverage predict the {_SCORES[score]}?"
    labels = _labels(found)
    first: CorrelationBySize = next(iter(found.values()))
    sizes, left_out = _sizes_that_fit(list(first.by_size), width - max(len(title), *(len(text) for text in labels)))
    correlations = [(method, correlation) for correlation in found.values() for _, method in _METHODS]
    columns = [Column(title, ["", *labels], "<")]
    for size in sizes:
        figures = [method(correlation.by_size[size]) for method, correlation in correlations]
        columns.append(_coefficients(f"size {size}", case.sizes[size].subsets, figures))
    overall = [method(correlation.overall) for method, correlation in correlations]
    columns.append(_coefficients("all", len(case.subsets), overall))
    lines = table(columns, width)
    for text in _notes(first, left_out):
        lines += paragraph(text, width, "light", indent="  ")
    return lines


def _coefficients(head: str, subsets: int, figures: list[Figure]) -> Column:
    """A column of coefficients, under the number of subsets that they are over."""
    return Column(head, [f"({subsets})", *(two_digits(figure.value) for figure in figures)])


def _labels(found: dict[str, CorrelationBySize]) -> list[str]:
    """The left column: each system once, beside its first method."""
    column = min(max(len(system) for system in found), _SYSTEM_WIDTH)
    return [
        f"  {shortened(system, column) if index == 0 else '':<{column}}  {method}"
        for system in found
        for index, (method, _) in enumerate(_METHODS)
    ]


def _sizes_that_fit(sizes: list[str], room: int) -> tuple[list[str], int]:
    """The sizes whose columns fit beside the one for all subsets; of more, the smallest and the largest."""
    column = max((len(size) for size in sizes), default=1) + len("size ") + 2
    fit = max((room - 9) // column, 0)
    if len(sizes) <= fit:
        return sizes, 0
    low = (fit + 1) // 2
    return [*sizes[:low], *sizes[len(sizes) - (fit - low) :]], len(sizes) - fit


def _notes(found: CorrelationBySize, left_out: int) -> Iterator[str]:
    if left_out:
        yield f"{counted(left_out, 'size')} not shown: summary.json"
    if len(found.by_size) > 1:
        yield '"all" mixes sizes: bigger subsets cover and kill more, whatever the metric'


# ---------------------------------------------------------------- what is unavailable


def unavailable_block(case: CaseSummary, settings: Settings, width: int) -> list[Line]:
    """Figures without a value, each reason once with everything that it takes away."""
    by_reason: dict[str, list[str]] = {}
    for subject, reason in _unavailable(case, settings):
        if subject not in by_reason.setdefault(reason, []):
            by_reason[reason].append(subject)
    texts = [f"{first_names(subjects, 3)}: {reason}" for reason, subjects in by_reason.items()]
    if len(texts) > MOST_REASONS:
        texts = [*texts[:MOST_REASONS], f"and {len(texts) - MOST_REASONS} more reasons: summary.json"]
    return block(UNAVAILABLE, texts, width, "yellow")


def _unavailable(case: CaseSummary, settings: Settings) -> Iterator[tuple[str, str]]:
    for name, variant in case.variants.items():
        if not variant.valid:
            continue
        for k, figure in variant.pass_at_k.get(settings.primary, {}).items():
            if figure.reason is not None:
                yield f"pass@{k} of {name}", figure.reason
    if case.pool.mean_drop.reason not in (None, case.pool.kill_share.reason) and case.kills:
        yield "mean drop", case.pool.mean_drop.reason or ""
    for system, coverage in case.pool.coverage.items():
        if coverage.reason is not None:
            yield f"{system} coverage of the pool", coverage.reason
    for system, by_score in case.correlation.items():
        if case.subsets and case.kills:
            yield from _unavailable_correlations(system, by_score[settings.mutation_score])


def _unavailable_correlations(system: str, found: CorrelationBySize) -> Iterator[tuple[str, str]]:
    total = found.overall.pairs + sum(len(subsets) for subsets in found.overall.dropped.values())
    for reason, subsets in found.overall.dropped.items():
        yield f"{system}, {len(subsets)} of {counted(total, 'subset')} ({first_names(subsets, 3)})", reason
    for size, correlation in (*found.by_size.items(), ("", found.overall)):
        if correlation.kendall.reason is not None:
            yield f"{system}, size {size}" if size else f"{system}, all sizes", correlation.kendall.reason
