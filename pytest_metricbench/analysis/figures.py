"""Computed figures: a value or the reason why there is none, and beside it what it rests on.

The parts of the summary that hold numbers; the summary itself is in :mod:`pytest_metricbench.analysis.summary`.
"""

from typing import Annotated, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator


def whole_text(value: object) -> object:
    """A text that UTF-8 can hold: a lone surrogate becomes its escape. Anything but a text is left alone."""
    if isinstance(value, str) and not value.isascii():
        return value.encode("utf-8", "backslashreplace").decode("utf-8")
    return value


Text: TypeAlias = Annotated[str, BeforeValidator(whole_text)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
Interval: TypeAlias = tuple[Finite, Finite]


class SummaryModel(BaseModel):
    """Base of the models: frozen, unknown keys refused."""

    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class Figure(SummaryModel):
    """A number, or the reason why there is none."""

    value: Finite | None
    reason: Text | None = None
    """Why there is no value; set exactly where ``value`` is None."""
    outside: bool | None = None
    """True where the value is missing only because this run was about a part of the experiment."""

    @model_validator(mode="after")
    def _value_or_reason(self) -> Self:
        if (self.value is None) != (self.reason is not None):
            raise ValueError("a figure has a value, or null and a reason")
        return self


class RateFigure(Figure):
    """A share of attempts that passed, with the Wilson interval (95 %)."""

    interval: Interval | None = None


class MeanFigure(Figure):
    """A mean over the tasks of a case: pass@k or pass^k of a variant."""

    count: int
    """Tasks in the mean."""
    nan_count: int
    """Tasks that have the score and are not in the mean: fewer than k entries."""
    excluded: int
    """Tasks at which the score does not count: a label there, or never seen under any variant."""
    attempts_unmeasured: int
    """Attempts without an entry for this score at the tasks that have it: unmeasured or missing."""
    interval: Interval | None
    """95 %, from redrawing the counted tasks."""
    interval_reason: Text | None = None
    """Why there is no interval."""


class ShareFigure(Figure):
    """A share of mutants that are killed, with its numerator and denominator."""

    killed: int
    mutants: int


class KillShareFigure(ShareFigure):
    """The kill share of a subset: over the valid mutants without those found equivalent."""

    interval: Interval | None
    """Wilson interval over mutants, 95 %; None where there is no value."""
    without_cell: int
    """Valid mutants left out because every cell of theirs in the subset is missing."""
    missing_cells: int
    """Cells of the counted mutants that are missing: neither killed nor survived."""
    over_detected: ShareFigure
    """The same, over the mutants that some task of the pool kills."""
    with_equivalents: ShareFigure
    """The same with the mutants found equivalent as well."""


class MeanDropFigure(Figure):
    """The mean, over the mutants of the kill share, of the mean drop of the pass rate over their cells."""

    mutants: int
    cells: int
    """Cells behind it: mutant and task, measured on both sides."""
    missing_cells: int
    with_equivalents: Figure


class CoverageFigure(Figure):
    """The coverage of a subset by one system."""

    state: Literal["measured", "failed", "absent"]
    """``absent``: no request was made, or its result did not arrive."""


class SizeFigure(Figure):
    """A mean over the subsets of one size."""

    count: int
    """Subsets in the mean."""
    nan_count: int
    """Subsets of this size without a value."""
    low: Finite | None
    high: Finite | None


class Ties(SummaryModel):
    """How many of the pairs share their value with another pair."""

    coverage: int
    score: int


class Correlation(SummaryModel):
    """How coverage and a mutation score go together over the subsets."""

    pairs: int
    """Subsets that have both values."""
    distinct_coverage: int
    distinct_scores: int
    ties: Ties
    dropped: dict[str, tuple[str, ...]]
    """Reason -> the subsets that are in no pair because of it."""
    pearson: Figure
    spearman: Figure
    kendall: Figure
    """Kendall's tau-b."""


class CorrelationBySize(SummaryModel):
    """A correlation over all subsets, and within each size."""

    overall: Correlation
    by_size: dict[str, Correlation]
