"""What an experiment's analysis says: the models of ``summary.json``, documented field by field in ``docs/summary.md``.

A computed figure is a :class:`Figure`: a value, or ``None`` with the reason why there is none, and beside it what it
rests on. Fields with a default are left out of the file where they are not set; every other field is always there.
"""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal, Self, TypeAlias

from pydantic import ConfigDict, model_validator

from pytest_metricbench.analysis.comparing_models import RunComparison
from pytest_metricbench.analysis.figures import (
    ChoiceFigure,
    Comparison,
    CorrelationBySize,
    CoverageFigure,
    Figure,
    Finite,
    Interval,
    KillShareFigure,
    MeanDropFigure,
    MeanFigure,
    OverCases,
    RateFigure,
    ReliabilityBySize,
    SizeFigure,
    SummaryModel,
    Text,
)
from pytest_metricbench.definition.experiment import MutationScore
from pytest_metricbench.score_values import NON_FINITE

Verdict: TypeAlias = Literal["solved", "flaky", "failed", "not_run", "unmeasured", "outside"]
"""``outside``: the verdict needs attempts that are outside this part and not in the store."""
CellState: TypeAlias = Literal["killed", "survived", "missing", "not_reached"]
"""Of a mutant at a task; ``not_reached`` is for runners that know that the task never reaches the changed place."""


# ---------------------------------------------------------------- variants and their attempts


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


# ---------------------------------------------------------------- kills


class MutantGroups(SummaryModel):
    """Ids of a case's mutants by how they count. A mutant is in exactly one of the first seven."""

    detected: tuple[str, ...]
    """Valid, and killed by some task of the pool."""
    undetected: tuple[str, ...]
    """Valid, and killed by no task of the pool."""
    unmeasured: tuple[str, ...]
    """Every cell is missing."""
    outside: tuple[str, ...]
    """Not known to be detected, and attempts that could say so are outside this part."""
    invalid: tuple[str, ...]
    """Every attempt died: in no score."""
    equivalent: tuple[str, ...]
    """Valid, found equal to the baseline by a reviewer: not in ``value``, only in ``with_equivalents``."""
    controls: tuple[str, ...]
    """In no score."""
    invalid_controls: tuple[str, ...]
    """Of ``controls``, those whose every attempt died: in no rate of false kills."""


class Detection(SummaryModel):
    """The rule that decides a kill, and what it can show with the attempts that are there."""

    rule: Literal["flip", "fisher"]
    alpha: Finite | None
    q: Finite | None
    threshold: Figure
    """The p at or below which a cell is killed; unavailable for ``flip``."""
    smallest_p: Figure
    """The smallest p that any cell of the scored mutants could reach; unavailable for ``flip``."""
    out_of_reach: int
    """Cells that no number of failures could bring to the threshold (under ``q``: to ``q`` itself)."""


class Survivor(SummaryModel):
    """An undetected mutant: a blind spot of the evaluation."""

    mutant: str
    description: Text
    cells: int
    """Tasks that could have killed it and did not."""
    missing_cells: int
    """Tasks about which nobody knows."""


class Kill(SummaryModel):
    """A cell that is killed."""

    mutant: str
    task: str


class DiedKills(SummaryModel):
    """Kills that would not stand without the attempts that died: weaker evidence than wrong answers."""

    kills: tuple[Kill, ...]
    time_outs: tuple[Kill, ...]
    """Kills that would not stand without the attempts that ran out of time."""
    total: int
    """Kills of the scored mutants, these among them."""
    mutants: tuple[str, ...]
    """Detected mutants that have no other kill."""


class Death(SummaryModel):
    """A kind of error that attempts died of."""

    type: str
    """Name of the exception; ``AgentFailed`` or ``TimeOut`` of a command; ``NullScore`` where the score was null."""
    attempts: int
    variants: tuple[str, ...]
    first: str
    """The first of these attempts, as in node ids: ``variant::task[slot]``."""
    message: Text
    """What that one died of."""


class FalseKills(SummaryModel):
    """What the valid controls say about kills of nothing: a killed control is a false kill."""

    cells: int
    killed_cells: int
    cell_rate: RateFigure
    controls: int
    killed_controls: int
    control_rate: RateFigure
    kills: tuple[Kill, ...]


class NoiseFigure(Figure):
    """A mean over random splits of the baseline's attempts, with the middle 95 % of the splits."""

    middle: Interval | None = None


class SelfKills(SummaryModel):
    """What a set of tasks says of the baseline against itself."""

    false_kills: NoiseFigure
    """Tasks that kill, of the set; a mean over its subsets where there are several."""
    kill_share: NoiseFigure
    """Share of the splits in which some task of the set kills."""
    mean_drop: NoiseFigure


class SelfComparison(SummaryModel):
    """The baseline's attempts split in two and compared with themselves (A/A): what is killed there is noise."""

    splits: int
    """Random splits; 0 where the baseline is so steady that every split says the same."""
    cells: int
    """Tasks with at least two attempts of the baseline."""
    pool: SelfKills
    sizes: dict[str, SelfKills]


class Redundancy(SummaryModel):
    """Mutants that say the same. One is redundant where another's kills are a part of its own."""

    minimal: tuple[str, ...]
    """Detected mutants that no other makes redundant; of mutants with the same kills the first."""
    identical: tuple[tuple[str, ...], ...]
    """Detected mutants with the same kills."""
    stability: dict[str, Finite]
    """Scored mutant -> share of redraws of the attempts in which it is killed and not redundant."""
    redraws: int
    """0 where every rate is 0 or 1, so that every redraw says the same."""


class GreedyStep(SummaryModel):
    """The task that, added to those before it, kills most mutants that they leave."""

    task: str
    killed: int
    """Mutants killed by it and those before it."""
    mutants: int
    kill_share: Finite


class TaskSummary(SummaryModel):
    """One task of a case, over the variants."""

    description: Text
    baseline: Verdict
    baseline_rate: Figure
    kills: int
    """Scored mutants that it kills."""
    cells: int
    """Scored mutants about which it says something."""
    only_killer_of: tuple[str, ...]
    """Scored mutants that no other task kills."""


# ---------------------------------------------------------------- subsets, cases, the whole


class PoolScores(SummaryModel):
    """The figures of a set of tasks."""

    kill_share: KillShareFigure
    mean_drop: MeanDropFigure
    coverage: dict[str, CoverageFigure]


class SubsetScores(PoolScores):
    """The figures of one subset."""

    tasks: tuple[str, ...]


class SizeSummary(SummaryModel):
    """The figures of the subsets of one size, averaged."""

    subsets: int
    kill_share: SizeFigure
    mean_drop: SizeFigure
    coverage: dict[str, SizeFigure]


class CoverageFailure(SummaryModel):
    """A coverage request that failed, or that has no result though this run should have one."""

    system: str
    subset: str
    error: Text


class BaselineCheck(SummaryModel):
    """Whether some attempt of the baseline passes: nothing can be learned from mutants otherwise."""

    holds: bool | None
    """None: not checked, because baseline attempts are outside this part."""
    reason: Text | None
    """Why it does not hold or is not checked."""


class RecordedNote(SummaryModel):
    """Something that was decided while results of another system were read."""

    text: Text
    count: int
    """How often; of attempts, tasks or files, as the text says."""


class CaseSummary(SummaryModel):
    """One case."""

    description: Text
    counts: Counts
    baseline_check: BaselineCheck
    detection: Detection
    mutants: MutantGroups
    survivors: tuple[Survivor, ...]
    deaths: tuple[Death, ...]
    """Why attempts died, the most frequent kind of error first."""
    notes: tuple[RecordedNote, ...]
    """What was decided while recorded results were read; empty where attempts are run."""
    died_kills: DiedKills
    false_kills: FalseKills
    against_itself: SelfComparison
    redundancy: Redundancy
    kill_nothing: tuple[str, ...]
    """Tasks with a cell that kill none of the scored mutants."""
    greedy: tuple[GreedyStep, ...]
    """Tasks in the order in which each adds most kills; those that add none are left out."""
    pool: PoolScores
    sizes: dict[str, SizeSummary]
    correlation: dict[str, dict[MutationScore, CorrelationBySize]]
    """Coverage system -> mutation score -> correlation over the subsets."""
    comparisons: tuple[Comparison, ...]
    """Every two coverage systems, against the mutation score that gates mean."""
    reliability: dict[MutationScore, ReliabilityBySize]
    """Empty where there are no subsets."""
    choice: dict[str, dict[MutationScore, dict[str, ChoiceFigure]]]
    """Coverage system -> mutation score -> size -> regret of choosing by coverage."""
    coverage_failures: tuple[CoverageFailure, ...]
    tasks: dict[str, TaskSummary]
    kills: dict[str, dict[str, CellState]]
    """Mutant -> task -> state; invalid mutants and controls too."""
    subsets: dict[str, SubsetScores]
    variants: dict[str, VariantSummary]


class GateCheck(SummaryModel):
    """One figure that a gate looks at."""

    case: str
    subject: str | None
    """The variant or coverage system, where the figure is of one."""
    value: Finite | None
    holds: bool | None
    reason: Text | None


class GateResult(SummaryModel):
    """A gate, checked."""

    text: Text
    value: Finite | None
    """The figure; of several, the one that decides."""
    holds: bool | None
    """None: not checked, because this run was about a part of the experiment."""
    reason: Text | None
    """Why it does not hold or is not checked."""
    checks: tuple[GateCheck, ...]


class Settings(SummaryModel):
    """How the results were read."""

    primary: Text
    """The score that decides whether an attempt passes."""
    pass_at_least: Finite
    pass_at_k: tuple[int, ...]
    """As asked for in ``analysis``; the k of gates are computed too."""
    mutation_score: MutationScore
    """The one that gates mean."""
    permutation: int
    """Relabellings of the tasks behind a p, where not all are counted."""
    bootstrap: int
    """Redraws behind an interval."""
    seed: int


class Summary(SummaryModel):
    """The answer of one experiment: ``summary.json``."""

    metricbench: Literal[1]
    """The version of this format."""
    experiment: str
    part: Text | None
    """What part of the experiment this run was about; None for the whole."""
    complete: bool
    """Every declared attempt has an entry for the primary score and no coverage request failed or is absent."""
    counts: Counts
    settings: Settings
    problems: tuple[Text, ...]
    """What keeps this run from being green, apart from gates."""
    warnings: tuple[Text, ...]
    gates: tuple[GateResult, ...]
    cases: dict[str, CaseSummary]
    over_cases: dict[str, dict[MutationScore, OverCases]]
    """Coverage system -> mutation score -> means over the cases; empty with one case."""
    comparison: RunComparison | None = None
    """Against an earlier run, where one was named."""
