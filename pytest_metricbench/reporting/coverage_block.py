"""Coverage on the terminal: what subsets of each size kill and cover, and whether the one predicts the other."""

from collections.abc import Callable, Iterator
from typing import Final, TypeAlias

from pytest_metricbench.analysis.figures import Correlation, CorrelationBySize, Figure, SizeFigure
from pytest_metricbench.analysis.summary import CaseSummary, Settings, SizeSummary
from pytest_metricbench.definition.experiment import MutationScore
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.coverage_sentences import coverage_sentences, p_text
from pytest_metricbench.reporting.layout import (
    UNAVAILABLE,
    Column,
    Line,
    block,
    fitting,
    line,
    paragraph,
    shortened,
    table,
    two_digits,
)

MOST_SIZES: Final = 8
"""Sizes that the table of sizes holds; of more, the smallest and the largest."""
MOST_REASONS: Final = 6
MOST_SUBJECTS: Final = 4
"""Things that one reason names; of more it says how many."""
OUTSIDE: Final = "needs attempts that are outside this part and not in the store"
_NARROW: Final = 60
_SYSTEM_WIDTH: Final = 20
_SCORES: Final[dict[MutationScore, str]] = {"kill_share": "kill share", "mean_drop": "mean drop"}
_Row: TypeAlias = tuple[str, str, Callable[[Correlation], str]]


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
    """One line a coverage system and method: the coefficient within each size and over all; then what they mean."""
    found = {system: by_score[score] for system, by_score in case.correlation.items()}
    if not found or not case.subsets or not case.kills:
        return []
    title = f"does coverage predict the {_SCORES[score]}?" if width >= _NARROW else f"{_SCORES[score]} by coverage"
    if all(correlation.kendall.value is None for by_size in found.values() for correlation in _all_of(by_size)):
        return [line((title, "bold"), f"  {UNAVAILABLE}")]
    rows = _rows(found)
    labels = _labels(rows)
    first: CorrelationBySize = next(iter(found.values()))
    sizes, left_out = _sizes_that_fit(list(first.by_size), width - max(len(title), *(len(text) for text in labels)))
    columns = [Column(title, ["", *labels], "<")]
    for size in sizes:
        cells = [cell(found[system].by_size[size]) for system, _, cell in rows]
        columns.append(Column(f"size {size}", [f"({case.sizes[size].subsets})", *cells]))
    cells = [cell(found[system].overall) for system, _, cell in rows]
    columns.append(Column("all", [f"({len(case.subsets)})", *cells]))
    lines = table(columns, width)
    for text in _notes(first, left_out):
        lines += paragraph(text, width, "light", indent="  ")
    for text in coverage_sentences(case, score):
        lines += paragraph(text, width, indent="  ")
    return lines


def _all_of(found: CorrelationBySize) -> list[Correlation]:
    return [found.overall, *found.by_size.values()]


def _rows(found: dict[str, CorrelationBySize]) -> list[_Row]:
    """System, method, and what stands in each column; the p of tau-b where a system has one."""
    rows: list[_Row] = []
    for system, by_size in found.items():
        rows.append((system, "Kendall tau-b", lambda correlation: two_digits(correlation.kendall.value)))
        if any(correlation.kendall.p.value is not None for correlation in _all_of(by_size)):
            rows.append((system, "  p (task labels)", lambda correlation: p_text(correlation.kendall.p.value)))
        rows.append((system, "Spearman", lambda correlation: two_digits(correlation.spearman.value)))
        rows.append((system, "Pearson", lambda correlation: two_digits(correlation.pearson.value)))
    return rows


def _labels(rows: list[_Row]) -> list[str]:
    """The left column: each system once, beside its first row."""
    column = min(max(len(system) for system, _, _ in rows), _SYSTEM_WIDTH)
    before = [None, *(system for system, _, _ in rows)]
    return [
        f"  {'' if system == last else shortened(system, column):<{column}}  {label}"
        for (system, label, _), last in zip(rows, before, strict=False)
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
    for subject, figure in _unavailable(case, settings):
        reason = OUTSIDE if figure.outside else figure.reason or ""
        if subject not in by_reason.setdefault(reason, []):
            by_reason[reason].append(subject)
    texts = [f"{'; '.join(_few(subjects))}: {reason}" for reason, subjects in by_reason.items()]
    texts += list(_dropped(case, settings))
    if len(texts) > MOST_REASONS:
        texts = [*texts[:MOST_REASONS], f"and {len(texts) - MOST_REASONS} more reasons: summary.json"]
    return block(UNAVAILABLE, texts, width, "yellow")


def _few(subjects: list[str]) -> list[str]:
    left = len(subjects) - MOST_SUBJECTS
    return [*subjects[:MOST_SUBJECTS], f"{left} more"] if left > 0 else subjects


def _unavailable(case: CaseSummary, settings: Settings) -> Iterator[tuple[str, Figure]]:
    """What the terminal shows as unavailable; of invalid mutants the table says so itself."""
    means: dict[str, dict[str, list[str]]] = {}
    figures: dict[str, Figure] = {}
    for name, variant in case.variants.items():
        for k, figure in variant.pass_at_k.get(settings.primary, {}).items():
            if figure.reason is not None and variant.valid:
                means.setdefault(figure.reason, {}).setdefault(f"pass@{k}", []).append(name)
                figures[figure.reason] = figure
    for reason, by_k in means.items():
        for k, names in by_k.items():
            yield f"{k} of {first_names(names, 3)}", figures[reason]
    if case.kills and case.pool.mean_drop.reason not in (None, case.pool.kill_share.reason):
        yield "mean drop", case.pool.mean_drop
    for system, coverage in case.pool.coverage.items():
        if coverage.reason is not None:
            yield f"{system} coverage of the pool", coverage
    if case.subsets and case.kills:
        for system, by_score in case.correlation.items():
            yield from _unavailable_correlations(system, by_score[settings.mutation_score])


def _unavailable_correlations(system: str, found: CorrelationBySize) -> Iterator[tuple[str, Figure]]:
    """Of one system, sizes with one reason together; and its p, where no size has one."""
    with_value = [correlation.kendall for correlation in _all_of(found) if correlation.kendall.value is not None]
    if with_value and all(figure.p.value is None for figure in with_value):
        yield f"p and interval of {system}", with_value[0].p
    elif found.overall.kendall.interval_reason is not None:
        yield f"interval of {system} over all", Figure(value=None, reason=found.overall.kendall.interval_reason)
    sizes: dict[str, list[str]] = {}
    figures: dict[str, Figure] = {}
    for size, correlation in (*found.by_size.items(), ("all", found.overall)):
        figure = correlation.kendall
        if figure.reason is not None:
            reason = OUTSIDE if figure.outside else figure.reason
            sizes.setdefault(reason, []).append(size)
            figures[reason] = figure
    for reason, named in sizes.items():
        yield f"{system} at size {first_names(named, 6)}", figures[reason]


def _dropped(case: CaseSummary, settings: Settings) -> Iterator[str]:
    """Subsets that are in no pair of a correlation that the others make."""
    for system, by_score in case.correlation.items():
        overall = by_score[settings.mutation_score].overall
        if overall.kendall.outside or not case.kills:
            continue
        for reason, subsets in overall.dropped.items():
            of = f"{len(subsets)} of {counted(len(case.subsets), 'subset')}"
            yield f"{system}, {of} ({first_names(subsets, 3)}): {reason}"
