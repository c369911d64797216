"""The keys of an experiment file, their types and defaults: what is checked, and what the JSON Schema says.

One class a mapping. What needs two places of a file to be judged (unknown tasks, ids that stand twice) is checked
in :mod:`.cases`, :mod:`.subsets` and :mod:`.loading`.
"""

from collections.abc import Callable
from typing import Annotated, Any, Final, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field
from pydantic_core import PydanticCustomError

from pytest_metricbench.budget import Budget
from pytest_metricbench.contracts import Json, OutputKind
from pytest_metricbench.definition import ids
from pytest_metricbench.definition.experiment import ItemUnit, MutationScore

ATTEMPTS_LIMIT: Final = 10_000
"""Most attempts for a variant and a task."""

CONTROLS_LIMIT: Final = 100

_UNIQUE: Final[dict[str, Json]] = {"uniqueItems": True}


def _checked(problem: Callable[[str], tuple[str, str] | None]) -> AfterValidator:
    def check(text: str) -> str:
        found = problem(text)
        if found is not None:
            message, remedy = found
            raise PydanticCustomError("id", "{message}; {remedy}", {"message": message, "remedy": remedy})
        return text

    return AfterValidator(check)


def _id_field(description: str) -> Any:
    return Field(
        description=description,
        json_schema_extra={"pattern": ids.ID_PATTERN, "minLength": 1, "maxLength": ids.ID_LIMIT},
    )


Id: TypeAlias = Annotated[str, _checked(ids.id_problem), _id_field("An id: letters, digits and . _ + -")]
VariantId: TypeAlias = Annotated[
    str,
    _checked(ids.variant_id_problem),
    _id_field("The mutant's id, unique in its case; baseline, coverage and control-<n> are reserved."),
]
SubsetId: TypeAlias = Annotated[
    str, _checked(ids.subset_id_problem), _id_field("The subset's id, unique in its case; pool is reserved.")
]
Tag: TypeAlias = Annotated[str, _checked(ids.tag_problem), _id_field("A mark of the items, for -m and -k.")]


def _each_once(entries: list[Any]) -> list[Any]:
    for position, entry in enumerate(entries):
        if entry in entries[:position]:
            raise PydanticCustomError("repeated", "{entry} stands twice; name it once", {"entry": repr(entry)})
    return entries


Tags: TypeAlias = Annotated[
    list[Tag],
    AfterValidator(_each_once),
    Field(description="Marks of the items, for pytest's -m and -k.", json_schema_extra=_UNIQUE),
]
Params: TypeAlias = Annotated[
    dict[str, Json], Field(description="Handed to the runner as they are; part of the fingerprint.")
]
Description: TypeAlias = Annotated[str, Field(description="For readers of the report; part of no fingerprint.")]
Name: TypeAlias = Annotated[str, Field(description="What it is called elsewhere, where its id had to differ.")]
Seed: TypeAlias = Annotated[int, Field(ge=0, lt=2**64)]
Attempts: TypeAlias = Annotated[int, Field(ge=1, le=ATTEMPTS_LIMIT)]
Share: TypeAlias = Annotated[float, Field(gt=0, lt=1, allow_inf_nan=False)]
Finite: TypeAlias = Annotated[float, Field(allow_inf_nan=False)]
ScoreName: TypeAlias = Annotated[str, Field(min_length=1, max_length=200)]
Resamples: TypeAlias = Annotated[int, Field(ge=1, le=10_000_000)]


class Form(BaseModel):
    """A mapping of the experiment file: no keys but these, and no value turned into another type."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class TaskForm(Form):
    """One evaluation task of a case."""

    id: Id = Field(description="The task's id, unique in its case.")
    attempts: Attempts | None = Field(
        default=None, description="Attempts of each variant on this task; default: the experiment's."
    )
    params: Params = {}
    tags: Tags = []
    description: Description = ""
    name: Name = ""
    outputs: dict[ScoreName, OutputKind] = Field(
        default={}, description="Kinds of the scores at this task, over those of score.outputs."
    )


class BaselineForm(Form):
    """The undamaged version of the system."""

    params: Params = {}
    tags: Tags = []
    description: Description = ""
    name: Name = ""


class MutantForm(Form):
    """A deliberately damaged version of the system. Unless the runner says otherwise, its params stand for themselves:
    the baseline's are not added.
    """

    id: VariantId
    params: Params = {}
    tags: Tags = []
    description: Description = ""
    name: Name = ""
    control: bool = Field(
        default=False, description="Known to be no worse than the baseline: in no score, and its kills are false kills."
    )
    equivalent: str | None = Field(
        default=None, min_length=1, description="Why a reviewer found this mutant equal to the baseline."
    )


class SubsetForm(Form):
    """A fixed list of tasks, one sample point of the correlation."""

    id: SubsetId
    tasks: list[str] = Field(
        min_length=1, description="Ids of tasks of the case, each once.", json_schema_extra=_UNIQUE
    )


class DrawForm(Form):
    """Subsets drawn at random: fixed by these keys and the ids of the tasks, and written to the lock."""

    sizes: list[Annotated[int, Field(ge=1)]] = Field(
        min_length=1, description="Numbers of tasks in a subset.", json_schema_extra=_UNIQUE
    )
    per_size: int = Field(ge=1, le=100_000, description="How many subsets of each size.")
    seed: Seed = Field(default=0, description="Another seed, other subsets.")


class CaseForm(Form):
    """A system under evaluation with its tasks, one baseline, its mutants and its fixed subsets."""

    id: Id = Field(description="The case's id, unique in the experiment.")
    description: Description = ""
    inputs: list[Annotated[str, Field(min_length=1)]] = Field(
        default=[],
        description="Files and globs that define the system; their contents are part of the fingerprint.",
    )
    tasks: Annotated[list[TaskForm], Field(min_length=1)] | dict[str, Any] | None = Field(
        default=None, description="The tasks, or where they come from; with recorded results, what is said about them."
    )
    baseline: BaselineForm = BaselineForm()
    mutants: list[MutantForm] | dict[str, Any] = Field(
        default=[], description="The mutants, or where they come from. Absent: pass@k only."
    )
    subsets: list[SubsetForm] | DrawForm | str = Field(
        default=[], description="The subsets, how to draw them, or the file that lists them."
    )


class ScoreForm(Form):
    """Which score counts, and when an attempt passes."""

    primary: ScoreName | None = Field(default=None, description="Default: the only score that counts, or reward.")
    pass_at_least: Finite = Field(default=1.0, description="An attempt passes when its primary score is at least this.")
    outputs: dict[ScoreName, OutputKind] = Field(
        default={},
        description="Kinds of the scores; labels and measurements stay out of pass@k. Inferred when absent.",
    )


class KillForm(Form):
    """When a task kills a mutant."""

    rule: Literal["flip", "fisher"] = Field(
        description="flip: the pass rate falls from above 1/2 to at most 1/2. fisher: one-sided Fisher exact test."
    )
    alpha: Share | None = Field(default=None, description="fisher: kills where p <= alpha.")
    q: Share | None = Field(
        default=None, description="fisher: kills at this false discovery rate (Benjamini-Hochberg)."
    )


class ResamplesForm(Form):
    """How many resamples the analysis draws."""

    permutation: Resamples = Field(default=9999, description="Of the permutation tests.")
    bootstrap: Resamples = Field(default=1000, description="Of the intervals.")


class AnalysisForm(Form):
    """How results are read. Part of no fingerprint: changing it runs nothing again."""

    pass_at_k: Annotated[list[Annotated[int, Field(ge=1)]], AfterValidator(_each_once)] | None = Field(
        default=None,
        min_length=1,
        description="The k of pass@k and pass^k; default: those of 1, 3, 5 that the attempts allow.",
    )
    kill: KillForm = KillForm(rule="flip")
    mutation_score: MutationScore = Field(default="kill_share", description="The one that gates and headlines use.")
    resamples: ResamplesForm | Resamples = Field(default=ResamplesForm(), description="One number stands for both.")
    seed: Seed = Field(default=0, description="Of everything random in the analysis.")


class CoverageForm(Form):
    """What every entry of ``coverage`` has beside the keys of its kind."""

    id: Id = Field(description="The coverage system's id, unique in the experiment.")


class ExperimentForm(Form):
    """An experiment of pytest-metricbench."""

    metricbench: Literal[1] = Field(description="The version of this format.")
    name: Id = Field(description="The experiment's name; it names the folder of the store.")
    seed: Seed = Field(default=0, description="Of everything random in running; part of the fingerprint.")
    attempts: Attempts = Field(default=1, description="For each variant and task.")
    retries: int = Field(
        default=0, ge=0, le=100, description="Of an unmeasured attempt, before it counts as unmeasured."
    )
    controls: int = Field(
        default=0, ge=0, le=CONTROLS_LIMIT, description="Unchanged copies of the baseline, run as mutants."
    )
    items: ItemUnit = Field(
        default="attempt",
        description="What one pytest item is: an attempt; all attempts of a variant at a task; or all of a variant.",
    )
    executor: Annotated[str, Field(min_length=1)] | dict[str, Any] | None = Field(
        default=None,
        description="What makes the attempts beneath the items: local, threads:N, dask:ADDRESS, dask:N, or a mapping.",
    )
    budget: Budget | None = Field(default=None, description="What one run may spend before it starts no more attempts.")
    runner: dict[str, Any] = Field(description="How an attempt is run.")
    score: ScoreForm = ScoreForm()
    cases: list[Any] = Field(min_length=1, description="The cases, or the files they stand in.")
    coverage: list[Any] = Field(default=[], description="The coverage systems.")
    analysis: AnalysisForm = AnalysisForm()
    gates: list[str] = Field(
        default=[], description="Figures that must hold: [case] [variant or system] figure op number."
    )
