"""What a comparison with an earlier run says: the models below ``comparison`` in ``summary.json``.

Every change is this run's figure minus the earlier one's: a positive change of pass@k is an agent that got better, a
positive change of the kill share an evaluation that catches more. Fields with a default are left out where not set.
"""

from typing import Literal, TypeAlias

from pytest_metricbench.analysis.figures import Figure, Finite, Interval, SummaryModel, Text
from pytest_metricbench.definition.experiment import MutationScore

MutantGroup: TypeAlias = Literal[
    "detected", "undetected", "unmeasured", "outside", "invalid", "equivalent", "controls", "invalid_controls"
]


class ChangedFigure(Figure):
    """A change: this run's figure minus the earlier one's, over what both runs have."""

    then: Finite | None
    """The figure in the earlier run."""
    now: Finite | None
    interval: Interval | None = None
    """Of the change, 95 %."""
    interval_reason: Text | None = None
    """Why there is none."""


class PairedDifference(ChangedFigure):
    """A change of pass@k or pass^k, paired by task."""

    se: Finite | None
    """Standard error of the change, clustered."""
    clusters: int
    """Tasks, each with its attempts; over several cases the cases."""
    tasks: int
    """Tasks with at least k entries in both runs."""
    left_out: int
    """Tasks of both runs that have fewer than k entries in one of them."""
    better: int
    """Of ``tasks``."""
    worse: int


class ScoreDifference(ChangedFigure):
    """A change of a mutation score over the mutants and tasks that both runs have."""

    mutants: int
    """Scored in both runs, with a cell on the common tasks in each."""
    tasks: int
    gained: int
    """Of ``mutants``: killed by a common task now and by none then."""
    lost: int
    """Killed then and not now."""


class CoefficientDifferences(SummaryModel):
    """Changes of the coefficients over the subsets that both runs have."""

    subsets: int
    """With coverage and a mutation score in both runs."""
    pearson: ChangedFigure
    spearman: ChangedFigure
    kendall: ChangedFigure


class MutantChange(SummaryModel):
    """A mutant that one run kills and the other does not."""

    mutant: str
    description: Text
    tasks: tuple[str, ...]
    """Those that killed it, in the run in which it was killed."""
    gone: tuple[str, ...]
    """Of ``tasks``, those that the other run does not have."""
    p: Figure
    """One-sided: attempts that are exchanged between the runs at random show a change as large."""
    holm: Finite | None = None
    """``p``, adjusted for all mutants of the case that could have changed like this."""


class GroupChange(SummaryModel):
    """A mutant that counts in another way than it did, other than from killed to survived or back."""

    mutant: str
    then: MutantGroup
    now: MutantGroup


class TaskThenOrNow(SummaryModel):
    """A task under a variant in one of the two runs."""

    verdict: Literal["solved", "flaky", "failed"]
    n: int
    passed: int
    died: int
    passed_trials: tuple[Text, ...]
    missed_trials: tuple[Text, ...]
    died_trials: tuple[Text, ...]


class VerdictChange(SummaryModel):
    """A task whose verdict under a variant is another one, with the attempts behind both."""

    variant: str
    task: str
    then: TaskThenOrNow
    now: TaskThenOrNow
    p: Finite
    """Two-sided, Fisher's exact test on passes and failures of both runs."""


class SameAttempts(SummaryModel):
    """How much of two runs is the same measurement."""

    then: int
    """Entries of the common tasks under the common variants."""
    now: int
    same: int
    """Of ``now``, taken over from the earlier run: the same attempt with the same value."""


class CaseParts(SummaryModel):
    """What only one of two runs has of a case."""

    tasks: tuple[str, ...]
    mutants: tuple[str, ...]
    """Controls too."""
    subsets: tuple[str, ...]
    """A subset whose tasks are others is removed and added."""


class ExperimentParts(SummaryModel):
    """What only one of two runs has of an experiment."""

    cases: tuple[str, ...]
    systems: tuple[str, ...]


class CaseComparison(SummaryModel):
    """One case of both runs."""

    added: CaseParts
    removed: CaseParts
    attempts: SameAttempts
    new_survivors: tuple[MutantChange, ...]
    """Detected in the earlier run, undetected now."""
    newly_killed: tuple[MutantChange, ...]
    other_groups: tuple[GroupChange, ...]
    verdicts: tuple[VerdictChange, ...]
    """The baseline's first; tasks without an entry in one of the runs are not in it."""
    pass_at_k: dict[str, dict[str, PairedDifference]]
    """Variant -> k, of the primary score."""
    pass_hat_k: dict[str, dict[str, PairedDifference]]
    kill_share: ScoreDifference
    mean_drop: ScoreDifference
    coverage: dict[str, ChangedFigure]
    """Coverage system -> coverage of the pool."""
    correlation: dict[str, dict[MutationScore, CoefficientDifferences]]


class RunComparison(SummaryModel):
    """What changed against an earlier run."""

    source: Text
    """What was named to compare with."""
    part: Text | None
    """What part of the experiment the earlier run was about; None for the whole."""
    complete: bool
    """Of the earlier run, as its summary says."""
    added: ExperimentParts
    removed: ExperimentParts
    cases: dict[str, CaseComparison]
    """Those of both runs."""
    over_cases: dict[str, PairedDifference]
    """k -> change of the baseline's pass@k over the tasks of all cases, clustered by case; empty with one case."""
