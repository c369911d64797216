"""What an experiment's analysis says: the models of ``summary.json``, documented field by field in ``docs/summary.md``.

A computed figure is a :class:`~pytest_metricbench.analysis.figures.Figure`: a value, or ``None`` with the reason why
there is none, and beside it what it rests on. Fields with a default are left out of the file where they are not set;
every other field is always there.
"""

from typing import Literal

from pytest_metricbench.analysis.comparing_models import RunComparison
from pytest_metricbench.analysis.figures import (
    ChoiceFigure,
    Comparison,
    CorrelationBySize,
    CoverageFigure,
    Finite,
    KillShareFigure,
    MeanDropFigure,
    OverCases,
    ReliabilityBySize,
    SizeFigure,
    SummaryModel,
    Text,
)
from pytest_metricbench.analysis.kill_models import (
    CellState,
    Death,
    Detection,
    DiedKills,
    FalseKills,
    GreedyStep,
    MutantGroups,
    Redundancy,
    SelfComparison,
    Survivor,
    TaskSummary,
)
from pytest_metricbench.analysis.variant_models import Counts, VariantSummary
from pytest_metricbench.definition.experiment import MutationScore


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
    """The experiment's name."""
    part: Text | None
    """What part of the experiment this run was about; None for the whole."""
    complete: bool
    """Every declared attempt has an entry for the primary score and no coverage request failed or is absent."""
    counts: Counts
    """What became of the attempts, over all cases."""
    settings: Settings
    """What of the experiment's ``score`` and ``analysis`` the figures depend on."""
    problems: tuple[Text, ...]
    """What keeps this run from being green, apart from gates."""
    warnings: tuple[Text, ...]
    """What is allowed and probably not meant, in words."""
    gates: tuple[GateResult, ...]
    """Each gate of the experiment, in the order of the file."""
    cases: dict[str, CaseSummary]
    """Case -> its figures, in the order of the file."""
    over_cases: dict[str, dict[MutationScore, OverCases]]
    """Coverage system -> mutation score -> means over the cases; empty with one case."""
    comparison: RunComparison | None = None
    """Against an earlier run, where one was named."""
