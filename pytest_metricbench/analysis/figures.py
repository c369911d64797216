"""Computed figures: a value or the reason why there is none, and beside it what it rests on.

The parts of the summary that hold numbers; the summary itself is in :mod:`pytest_metricbench.analysis.summary`.
"""

from typing import Annotated, Final, Literal, Self, TypeAlias

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

DECIMALS: Final = 12
"""What numbers are rounded to before they are ranked or compared, so that equal fractions are equal."""


def rounded(value: float) -> float:
    """A number to :data:`DECIMALS`, never a negative zero."""
    return round(value, DECIMALS) + 0.0


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
    over_minimal: ShareFigure
    """The same, over the mutants that no other mutant's kills make redundant."""
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


class PFigure(Figure):
    """The two-sided p of the task-label permutation, and what it rests on."""

    greater: Finite | None = None
    """One-sided: relabelled tasks reach at least this coefficient."""
    less: Finite | None = None
    holm: Finite | None = None
    """Adjusted for the family of tests of the run."""
    relabellings: int | None = None
    """Relabellings of the tasks that have a coefficient."""
    undefined: int | None = None
    """Relabellings without one, left out."""
    exact: bool | None = None
    """Every relabelling was counted."""


class RandomFigure(Figure):
    """The coefficient that random goals reach: its mean over relabelled tasks."""

    middle: Interval | None = None
    """The middle 95 % of those coefficients."""


class Coefficient(Figure):
    """A coefficient with its interval, its p, and what random goals reach."""

    interval: Interval | None = None
    """95 %, from redrawn tasks, mutants and attempts."""
    interval_reason: Text | None = None
    """Why there is no interval."""
    redraws: int | None = None
    """Redraws with a coefficient."""
    redraws_undefined: int | None = None
    """Redraws without one, left out."""
    p: PFigure
    random: RandomFigure


class Balance(SummaryModel):
    """How far the scores are from one side, and what a coefficient can reach."""

    mean: Finite | None
    """Of the mutation scores in the pairs."""
    lopsided: bool
    """A kill share whose mean is below .1 or above .9: coefficients are small whatever the coverage."""
    attainable: Figure
    """The largest Pearson's r with an outcome of 0 and 1 in these shares."""


class Correlation(SummaryModel):
    """How coverage and a mutation score go together over the subsets."""

    pairs: int
    """Subsets that have both values."""
    distinct_coverage: int
    distinct_scores: int
    ties: Ties
    balance: Balance
    dropped: dict[str, tuple[str, ...]]
    """Reason -> the subsets that are in no pair because of it."""
    pearson: Coefficient
    spearman: Coefficient
    kendall: Coefficient
    """Kendall's tau-b."""


class SizeControl(SummaryModel):
    """The correlation with the size of the subsets taken into account."""

    pearson: Figure
    """Partial, given size."""
    spearman: Figure
    kendall: Figure
    """Descriptive only: the partial tau has no sampling theory."""
    r2_log_size: Figure
    """Share of the variance of the score that log(size) explains."""
    r2_with_coverage: Figure
    """The same of log(size) and coverage together."""
    gain: Figure
    """What coverage adds."""


class CorrelationBySize(SummaryModel):
    """A correlation over all subsets, within each size, and with size taken into account."""

    overall: Correlation
    by_size: dict[str, Correlation]
    size_control: SizeControl


# ---------------------------------------------------------------- beyond one correlation


class ReliabilityFigure(Figure):
    """How well half the mutants agree with the other half, stepped up to all of them (Spearman-Brown)."""

    half: Finite | None
    """Mean Pearson's r between halves."""
    ceiling: Finite | None
    """Its root: no coverage can be expected to correlate higher."""
    splits: int
    """Random splits with a value."""
    undefined: int


class ReliabilityBySize(SummaryModel):
    """The reliability of a mutation score, over all subsets and within each size."""

    overall: ReliabilityFigure
    by_size: dict[str, ReliabilityFigure]


class DifferenceFigure(Figure):
    """The first system's coefficient minus the second's, on the same subsets and the same draws."""

    interval: Interval | None = None
    interval_reason: Text | None = None
    p: Figure
    """Two-sided, from relabelled tasks, both systems' goals moving together."""
    p_swapped: Figure
    """Two-sided, from swapping the systems' labels task by task."""
    holm: Finite | None = None
    """``p``, adjusted for all such comparisons of the run."""


class Differences(SummaryModel):
    """Differences of all coefficients over one set of subsets."""

    pairs: int
    """Subsets that have a value for both systems and a score."""
    pearson: DifferenceFigure
    spearman: DifferenceFigure
    kendall: DifferenceFigure


class Comparison(SummaryModel):
    """Two coverage systems against the primary mutation score."""

    first: str
    second: str
    overall: Differences
    by_size: dict[str, Differences]


class ChoiceFigure(Figure):
    """The regret of choosing by coverage: the best mutation score of the size minus that of the chosen subset."""

    chosen: Finite | None
    """The score of the chosen subset; the mean where several have the highest coverage."""
    best: Finite | None
    random: Finite | None
    """The mean over the subsets: what choosing blindly gets."""
    random_regret: Finite | None
    subsets: tuple[str, ...]
    """Those with the highest coverage."""
    among: int


class OverCasesFigure(Figure):
    """A coefficient's mean over the cases."""

    defined: int
    """Cases in the mean."""
    cases: int
    interval: Interval | None = None
    """95 %, from redrawn cases; from ten defined ones on."""
    interval_reason: Text | None = None


class OverCases(SummaryModel):
    """The mean of each coefficient over the cases of an experiment."""

    pearson: OverCasesFigure
    spearman: OverCasesFigure
    kendall: OverCasesFigure
