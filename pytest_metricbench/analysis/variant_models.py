"""The part of the summary that is about one version of the system: its attempts, verdicts and rates.

The whole is :mod:`pytest_metricbench.analysis.summary`.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import ConfigDict, model_validator

from pytest_metricbench.analysis.figures import MeanFigure, RateFigure, SummaryModel, Text
from pytest_metricbench.score_values import NON_FINITE

Verdict: TypeAlias = Literal["solved", "flaky", "failed", "not_run", "unmeasured", "outside"]
"""``outside``: the verdict needs attempts that are outside this part and not in the store."""


@dataclass(frozen=True, slots=True)
class AttemptValue:
    """One attempt's entry for one score."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    trial_id: str
    value_type: Literal["number", "label", "missing"]
    """``missing``: the attempt died before this score was given; a boolean counts as a number."""
    value: bool | int | float | str | None
    """Null with ``missing`` and only there. Numbers that are not finite are the texts ``NaN``, ``Infinity`` and
    ``-Infinity``, which are labels like any other text with ``label``."""

    @model_validator(mode="after")
    def _value_is_of_its_type(self) -> Self:
        value, kind = self.value, self.value_type
        if kind == "missing":
            fits = value is None
        elif isinstance(value, str):
            fits = kind == "label" or value in NON_FINITE
        else:
            fits = kind == "number" and value is not None and (not isinstance(value, float) or math.isfinite(value))
        if not fits:
            raise ValueError(f"the value {value!r} is no {kind}")
        return self


class Counts(SummaryModel):
    """Attempts by what became of them, judged by the primary score."""

    declared: int
    """The sum of the eight that follow."""
    passed: int
    missed: int
    died: int
    not_reached: int
    """Not run: the task never reaches what the mutant changed."""
    not_needed: int
    """Not run: another task has killed the mutant, and only that was asked."""
    unmeasured: int
    missing: int
    """Part of this run, and no outcome arrived."""
    outside: int
    """Outside this part and not in the store."""
    reused: int
    """Of the above, those taken from the store."""


class Verdicts(SummaryModel):
    """Tasks of a variant by verdict."""

    solved: int
    flaky: int
    failed: int
    not_run: int
    """No attempt was run since none could tell the mutant from the baseline, or none was needed."""
    unmeasured: int
    outside: int


class TaskResult(SummaryModel):
    """One task under one variant, by the primary score."""

    verdict: Verdict
    n: int
    """Entries: attempts that were scored or died."""
    passed: int
    died: int
    """Of ``n``."""
    unmeasured: int
    """Attempts without an entry: unmeasured or missing."""
    outside: int
    pass_rate: RateFigure


class VariantSummary(SummaryModel):
    """One version of the system."""

    kind: Literal["baseline", "mutant"]
    description: Text
    valid: bool
    """False for a mutant whose every attempt died."""
    control: bool
    """A mutant known to be no worse than the baseline."""
    equivalent: Text | None
    """Why a reviewer found this mutant equal to the baseline."""
    counts: Counts
    verdicts: Verdicts
    pass_at_k: dict[Text, dict[str, MeanFigure]]
    """Score -> k -> figure."""
    pass_hat_k: dict[Text, dict[str, MeanFigure]]
    tasks: dict[str, TaskResult]
    attempts: dict[str, dict[Text, tuple[AttemptValue, ...]]]
    """Task -> score -> entries."""
