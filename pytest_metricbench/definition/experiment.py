"""A checked experiment: what collection, attempts, store, coverage and analysis work from.

Everything here is frozen and already valid; :mod:`.loading` makes it from YAML and says what is wrong otherwise.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, TypeAlias

from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.budget import Budget
from pytest_metricbench.contracts import Json, OutputKind
from pytest_metricbench.executor_settings import ExecutorSettings

BASELINE: Final = "baseline"
POOL: Final = "pool"

Figure: TypeAlias = Literal[
    "pass@k", "pass^k", "mutation_score", "mean_drop", "coverage", "pearson", "spearman", "kendall", "new_survivors"
]
Operator: TypeAlias = Literal[">=", ">", "<=", "<", "==", "!="]
MutationScore: TypeAlias = Literal["kill_share", "mean_drop"]
ItemUnit: TypeAlias = Literal["attempt", "task", "variant"]
"""What one pytest item is: an attempt, or all attempts of a variant at a task, or all attempts of a variant."""


@dataclass(frozen=True, slots=True)
class Task:
    """One evaluation task of a case."""

    id: str
    attempts: int
    params: Mapping[str, Json]
    tags: tuple[str, ...] = ()
    description: str = ""
    name: str = ""
    """What the task is called elsewhere, where its id had to differ."""
    outputs: Mapping[str, OutputKind] = field(default_factory=dict)
    """Kinds of scores that hold at this task, over those of the experiment."""
    line: int = 1


@dataclass(frozen=True, slots=True)
class Variant:
    """The baseline or one mutant of a case."""

    id: str
    kind: Literal["baseline", "mutant"]
    params: Mapping[str, Json]
    description: str = ""
    tags: tuple[str, ...] = ()
    name: str = ""
    control: bool = False
    """A mutant known to be no worse than the baseline: in no score, its kills are false kills."""
    equivalent: str | None = None
    """Why a reviewer found this mutant equal to the baseline."""
    request_id: str = ""
    """The variant id that requests carry: ``baseline`` for an identity control, else the id."""
    line: int = 1


@dataclass(frozen=True, slots=True)
class Subset:
    """A fixed, named list of tasks: one sample point of a correlation."""

    id: str
    tasks: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class InputFile:
    """A file that defines the system: its name as written, and where it is."""

    name: str
    path: Path


@dataclass(frozen=True, slots=True)
class Note:
    """Something that was decided while results of another system were read, and how often."""

    text: str
    count: int


@dataclass(frozen=True, slots=True)
class Case:
    """A system under evaluation with its tasks, its variants (baseline first) and its fixed subsets."""

    id: str
    description: str
    inputs: tuple[InputFile, ...]
    tasks: tuple[Task, ...]
    variants: tuple[Variant, ...]
    subsets: tuple[Subset, ...]
    line: int = 1
    file: Path | None = None
    """The file that its lines are in, where that is not the experiment's."""
    recorded: Mapping[tuple[str, str], int] | None = None
    """(variant, task) -> how many attempts there are, where they exist already; absent: none."""
    notes: tuple[Note, ...] = ()
    """What was decided while they were read."""

    def slots(self, variant: str, task: Task) -> range:
        """The slots of a variant's attempts on a task, from 1."""
        count = task.attempts if self.recorded is None else self.recorded.get((variant, task.id), 0)
        return range(1, count + 1)

    @property
    def baseline(self) -> Variant:
        """The undamaged version."""
        return self.variants[0]

    @property
    def mutants(self) -> tuple[Variant, ...]:
        """The damaged versions, controls included."""
        return self.variants[1:]


@dataclass(frozen=True, slots=True)
class ScorePolicy:
    """Which score counts and when an attempt passes."""

    primary: str | None
    """None: the only score, or ``reward``."""
    pass_at_least: float
    outputs: Mapping[str, OutputKind]


@dataclass(frozen=True, slots=True)
class KillRule:
    """When a task kills a mutant. ``fisher`` has exactly one of ``alpha`` (per cell) and ``q`` (false discoveries)."""

    rule: Literal["flip", "fisher"] = "flip"
    alpha: float | None = None
    q: float | None = None


@dataclass(frozen=True, slots=True)
class AnalysisSettings:
    """How results are read. No part of any fingerprint."""

    pass_at_k: tuple[int, ...]
    kill: KillRule
    mutation_score: MutationScore
    permutation: int
    bootstrap: int
    seed: int


@dataclass(frozen=True, slots=True)
class Gate:
    """A figure that must hold, as :mod:`.gates` reads it: of this run, or against an earlier one."""

    text: str
    case: str | None
    subject: str | None
    figure: Figure
    k: int | None
    """The k of pass@k and pass^k."""
    op: Operator
    number: float
    drop: bool = False
    """About how far the figure fell since the earlier run."""
    significant: bool = False
    """Broken only by what noise does not explain."""

    @property
    def compares(self) -> bool:
        """Whether it is about what changed since an earlier run."""
        return self.drop or self.figure == "new_survivors"


@dataclass(frozen=True, slots=True)
class CoverageEntry:
    """One coverage system of the experiment under its id."""

    id: str
    system: CoverageSystem


@dataclass(frozen=True, slots=True)
class LockState:
    """The lock of an experiment that expands something: where it is, what it holds, whether it is yet to be written."""

    path: Path
    text: str
    missing: bool


@dataclass(frozen=True, slots=True)
class Experiment:
    """One experiment file, checked and expanded."""

    path: Path
    """The YAML file, absolute."""
    name: str
    """Names the store."""
    seed: int
    """Of everything random in running; part of every fingerprint."""
    retries: int
    """How often an unmeasured attempt is made again before it counts as unmeasured."""
    runner: Runner
    """How attempts are run."""
    score: ScorePolicy
    """Which score decides, and when an attempt passes."""
    cases: tuple[Case, ...]
    """The cases, at least one, in the order of the file."""
    coverage: tuple[CoverageEntry, ...]
    """The coverage systems, in the order of the file."""
    analysis: AnalysisSettings
    """How the figures are made; no part of any fingerprint."""
    gates: tuple[Gate, ...]
    """What must hold."""
    warnings: tuple[str, ...] = ()
    """What is allowed and probably not meant, in words, with file and line."""
    lock: LockState | None = None
    """None where nothing is expanded."""
    budget: Budget | None = None
    """What one run may spend."""
    executor: ExecutorSettings | None = None
    """What makes the attempts beneath the items, where the file says it. No part of any fingerprint."""
    items: ItemUnit = "attempt"
    """What one pytest item is. No part of any fingerprint."""
    items_chosen: bool = False
    """Whether the file says what one item is."""
    documents: tuple[Path, ...] = ()
    """The YAML files it was read from, this one first; without its lock."""

    @property
    def folder(self) -> Path:
        """Where relative paths start."""
        return self.path.parent

    @property
    def coverage_requests(self) -> int:
        """How many coverage scores there are to measure: of each system for every subset and for the pool."""
        return sum(len(case.subsets) + 1 for case in self.cases) * len(self.coverage)

    def case(self, case_id: str) -> Case:
        """The case of that id.

        Raises:
            KeyError: there is none.
        """
        for case in self.cases:
            if case.id == case_id:
                return case
        raise KeyError(case_id)

    def keys(self) -> Iterator[tuple[str, str, str, int]]:
        """Case, variant, task and slot of every attempt, in the order of the file."""
        return ((case.id, variant.id, task.id, slot) for case, variant, task, slot in self.attempts())

    def attempts(self) -> Iterator[tuple[Case, Variant, Task, int]]:
        """Every attempt of the experiment in the order of the file: case, variant, task, slot."""
        for case in self.cases:
            for variant in case.variants:
                for task in case.tasks:
                    for slot in case.slots(variant.id, task):
                        yield case, variant, task, slot
