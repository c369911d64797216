"""What the parts exchange: requests, outcomes, records and scores.

A runner answers an :class:`AttemptRequest` with an :class:`Outcome`; a coverage system answers a
:class:`CoverageRequest` with a :class:`Score`. What became of them is kept as :class:`AttemptRecord` and
:class:`CoverageRecord`, one JSON line each.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, Literal, Self, TypeAlias

from pydantic import BeforeValidator, Field

from pytest_metricbench.score_values import ScoreValue

FORMAT_VERSION: Final = 1
"""The version of every format of ours: experiment file, journal, request, response, summary."""

Json: TypeAlias = Any
"""A value as JSON has it. (A recursive alias would be exact, and slow to validate.)"""

OutcomeKind: TypeAlias = Literal["scored", "died", "unmeasured", "not_reached", "not_needed"]
Phase: TypeAlias = Literal["setup", "agent", "verifier", "contract"]
PHASE_OF_END: Final = "metricbench_phase"
"""The attribute of an exception from outside, as pytest-timeout's is, that says which phase it ended; else set-up."""
OutputKind: TypeAlias = Literal["continuous", "discrete", "boolean", "label", "measurement"]

Seconds: TypeAlias = Annotated[float, Field(gt=0, strict=True, allow_inf_nan=False)]
"""A time limit in an experiment: more than zero."""

AttemptKey: TypeAlias = tuple[str, str, str, int]
"""Case, variant, task, slot."""
CoverageKey: TypeAlias = tuple[str, str, str]
"""Case, coverage system, subset (or ``pool``)."""


def attempt_name(key: AttemptKey) -> str:
    """An attempt as its node id names it below the file: ``refunds::baseline::late[1]``."""
    return f"{'::'.join(key[:3])}[{key[3]}]"


REQUEST_FILE: Final = "request.json"
RESPONSE_FILE: Final = "response.json"
OUTPUT_FILE: Final = "output.json"
GOALS_FILE: Final = "goals.json"
EVIDENCE_FOLDER: Final = "evidence"
LOG_SUFFIXES: Final = (".stdout", ".stderr")
RESERVED_FILES: Final = frozenset(
    {REQUEST_FILE, RESPONSE_FILE, OUTPUT_FILE}
    | {f"{step}{suffix}" for step in ("agent", "verifier") for suffix in LOG_SUFFIXES}
)
"""Names at the top of an attempt's workspace that are the plugin's own and never evidence."""


# ---------------------------------------------------------------- attempts


@dataclass(frozen=True, slots=True)
class CaseRef:
    """The case of a request: its id and, in coverage requests, its description."""

    id: str
    description: str = ""


@dataclass(frozen=True, slots=True)
class VariantRef:
    """The variant of a request. ``params`` is this request's own copy and may be changed."""

    id: str
    params: dict[str, Json]


@dataclass(frozen=True, slots=True)
class TaskRef:
    """The task of a request. ``params`` is this request's own copy and may be changed."""

    id: str
    params: dict[str, Json]


@dataclass(frozen=True, slots=True)
class AttemptRequest:
    """One attempt to make: what ``request.json`` holds for a command, and what a Python agent is given."""

    experiment: str
    """The experiment's name."""
    case: CaseRef
    """The case, without its description: an agent is not told what it is measured for."""
    variant: VariantRef
    """The variant, with its params."""
    task: TaskRef
    """The task, with its params."""
    attempt: int
    """The slot, from 1. It names the attempt and gives it a seed; attempts have no order."""
    seed: int
    """Stable over runs: made of the experiment's seed, case, variant, task and slot; 0 <= seed < 2**32."""
    trial_id: str
    """Unique over all runs."""
    _workspace: str = field(repr=False)
    baseline: tuple[Path, ...] = ()
    """Folders that attempts of the baseline left at this task, of this run and of earlier ones, in no order; only in
    attempts of mutants of a runner with ``baseline_first``. Not in ``request.json``."""
    fingerprint: str = ""
    """The digest of everything its result depends on; for names that must not outlive it. Not in ``request.json``."""

    @property
    def workspace(self) -> Path:
        """The attempt's private folder, made when first asked for. Files left in it are evidence."""
        folder = Path(self._workspace)
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    def to_json(self) -> dict[str, Json]:
        """The mapping that ``request.json`` holds."""
        return {
            "metricbench": FORMAT_VERSION,
            "experiment": self.experiment,
            "case": {"id": self.case.id},
            "variant": {"id": self.variant.id, "params": self.variant.params},
            "task": {"id": self.task.id, "params": self.task.params},
            "attempt": self.attempt,
            "seed": self.seed,
            "trial_id": self.trial_id,
            "workspace": self._workspace,
        }


@dataclass(frozen=True, slots=True)
class AttemptError:
    """Why an attempt is not scored: the kind of error, its message, and the phase it happened in."""

    type: str
    """The name of an exception, or of ours: ``TimeOut``, ``AgentFailed``, ``WorkerCrashed``."""
    message: str
    """What happened, for a reader; it may have several lines."""
    phase: Phase
    """What was under way: ``setup``, ``agent``, ``verifier``, or ``contract`` for an answer of the wrong form."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of one attempt.

    ``scored`` carries the verifier's scores as given; ``died`` means that the agent crashed or ran out of time
    before it was scored (it counts and did not pass); ``unmeasured`` means that nobody knows (it counts nowhere).
    Two more are for runners that know that a mutant's attempt need not be run: ``not_reached``, since the task never
    reaches what the mutant changed and so cannot tell it from the baseline (the cell survives), and ``not_needed``,
    since another task has killed the mutant already and only that was asked (the cell is missing).
    """

    kind: OutcomeKind
    """What became of it."""
    scores: Mapping[str, ScoreValue] = field(default_factory=dict)
    """Name -> number, boolean or label, as the verifier gave them; empty unless scored. A null score means died."""
    error: AttemptError | None = None
    """Why it is not scored, or what went wrong although it is."""
    time_limit: float | None = None
    """The limit in seconds that ended the agent, when it died of a time-out."""
    trial_name: str | None = None
    """What the attempt is called where it was made, when that is elsewhere; it need not be unique."""

    @classmethod
    def scored(
        cls, scores: Mapping[str, ScoreValue], *, error: AttemptError | None = None, trial_name: str | None = None
    ) -> Self:
        """An attempt that the verifier scored; ``error``: what went wrong although it could be scored."""
        return cls("scored", scores, error, None, trial_name)

    @classmethod
    def died(
        cls,
        type: str,  # noqa: A002
        message: str,
        *,
        time_limit: float | None = None,
        trial_name: str | None = None,
    ) -> Self:
        """An attempt whose agent crashed or ran out of time."""
        return cls("died", {}, AttemptError(type, message, "agent"), time_limit, trial_name)

    @classmethod
    def unmeasured(
        cls,
        type: str,  # noqa: A002
        message: str,
        phase: Phase,
        *,
        trial_name: str | None = None,
    ) -> Self:
        """An attempt about which nothing is known, through no fault of the agent."""
        return cls("unmeasured", {}, AttemptError(type, message, phase), None, trial_name)

    @classmethod
    def not_reached(cls, message: str) -> Self:
        """An attempt that was not run since its task cannot tell the mutant from the baseline; ``message`` says why."""
        return cls("not_reached", {}, AttemptError("NotReached", message, "setup"))

    @classmethod
    def not_needed(cls, message: str) -> Self:
        """An attempt that was not run since its mutant is killed already; ``message`` says by what."""
        return cls("not_needed", {}, AttemptError("NotNeeded", message, "setup"))


TIME_OUT: Final = "TimeOut"
"""The type of the error of an attempt whose agent ran out of time."""
NOT_RECORDED: Final = "NotRecorded"
"""The type of the error of an attempt that was planned elsewhere and left no result: it counts as missing."""


class ContractError(ValueError):
    """An answer that is not of the documented form. The message says what is wrong and what would be right."""


def _read_scores(value: object) -> object:
    """Non-finite scores as records keep them: ``{"number": "NaN"}``, since a text would be a label."""
    if not isinstance(value, dict):
        return value
    for score in value.values():  # for every line of a store, and hardly ever true
        if type(score) is dict:
            break
    else:
        return value
    return {name: _NON_FINITE.get(str(score), score) if type(score) is dict else score for name, score in value.items()}


_NON_FINITE: Final = {str({"number": name}): float(name) for name in ("NaN", "Infinity", "-Infinity")}

PathPart: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._+-]{0,99}$")]
"""A text that names a folder or file and nothing outside it: records of a store are only data."""


@dataclass(frozen=True, slots=True)
class AttemptRecord:
    """What is kept of one attempt: a line of ``attempts.jsonl``.

    Its key is case, variant, task and slot; of several records with one key the last counts and names the one it
    ``supersedes``. Whether the attempt passed is not kept: that is a question of the experiment's ``score`` key.
    """

    case: PathPart
    """The case's id."""
    variant: PathPart
    """The variant's id: ``baseline``, a mutant's, or ``control-<n>``."""
    task: PathPart
    """The task's id."""
    attempt: Annotated[int, Field(ge=1)]
    """The slot, from 1."""
    trial_id: PathPart
    """Unique over all runs; it stays when the attempt is scored again."""
    outcome: OutcomeKind
    """What became of it, as :class:`Outcome` has it."""
    scores: Annotated[dict[str, ScoreValue], BeforeValidator(_read_scores)]
    """As the verifier gave them; empty unless scored, or unmeasured only since the primary score is not among them."""
    error: AttemptError | None
    """Why it is not scored, or what went wrong although it is."""
    time_limit: float | None
    """The limit in seconds that ended the agent; None unless it died of a time-out."""
    fingerprint: str
    """Digest of everything the agent's work depends on."""
    verifier: str
    """Digest of the verifier's part of the runner."""
    seed: int
    """The seed that its request carried."""
    started: str
    """UTC, ISO 8601."""
    duration: float
    """Seconds, agent and verifier together."""
    files: dict[str, str]
    """Path below the attempt's workspace -> digest, for every regular file it left."""
    supersedes: str | None
    """The trial id of the record that counted before; None for the first."""
    folder: PathPart | None = None
    """Name of its workspace, where that is not the trial id: after it was scored again."""
    trial_name: str | None = None
    """What the attempt is called where it was made, when that is elsewhere; reports show it in place of the id."""

    @property
    def shown_id(self) -> str:
        """What reports call the attempt: its name elsewhere, or else its trial id."""
        return self.trial_id if self.trial_name is None else self.trial_name

    @property
    def key(self) -> AttemptKey:
        """What the record is about: case, variant, task, slot."""
        return (self.case, self.variant, self.task, self.attempt)


# ---------------------------------------------------------------- coverage


@dataclass(frozen=True, slots=True)
class Goals:
    """What a coverage system counts: the whole universe, and which goals each task of the subset covers."""

    universe: tuple[str, ...]
    """Everything that could be covered: ids of tools, lines or items, each once."""
    by_task: Mapping[str, tuple[str, ...]]
    """Task of the subset -> which of the universe it covers."""


@dataclass(frozen=True, slots=True)
class Score:
    """A coverage score in [0, 1], or None with the reason why there is none; and the goals behind it, if known."""

    value: float | None
    """The share that is covered, in [0, 1]; None is a result too, with its reason."""
    reason: str | None = None
    """Why there is no value; None where there is one."""
    goals: Goals | None = None
    """What was counted; without them there is no permutation test."""


@dataclass(frozen=True, slots=True)
class EvidenceFile:
    """One file that a baseline attempt left: where it is now, and the digest it must keep."""

    path: Path
    """Where it is now: in the store, or copied below the request's workspace."""
    trial_id: str
    """The attempt that left it."""
    name: str
    """Its path below the attempt's workspace, with forward slashes."""
    sha256: str
    outcome: Literal["scored", "died"] = "scored"
    """What became of the attempt that left it: one that died may have left half a file."""

    def below_evidence(self, task: str) -> str:
        """Where a request's workspace holds its copy."""
        return f"{EVIDENCE_FOLDER}/{task}/{self.trial_id}/{self.name}"


@dataclass(frozen=True, slots=True)
class CoverageRequest:
    """One coverage score to compute: a subset of a case's tasks and the evidence of their baseline attempts."""

    case: CaseRef
    """The case, with its description."""
    subset: str
    """The subset's id, or ``pool`` for all tasks of the case."""
    tasks: tuple[str, ...]
    """The ids of the subset's tasks."""
    system: str
    """The id of the entry of ``coverage``."""
    settings: Mapping[str, Json]
    """What that entry says, as far as the system hands it on."""
    files: Mapping[str, tuple[EvidenceFile, ...]]
    """Task id -> its evidence, for every task of the subset; a task may have left none."""

    @property
    def evidence(self) -> dict[str, list[Path]]:
        """Task id -> the files that its baseline attempts left."""
        return {task: [file.path for file in files] for task, files in self.files.items()}

    def to_json(self) -> dict[str, Json]:
        """The mapping that ``request.json`` holds; the same wherever the workspace is."""
        return {
            "metricbench": FORMAT_VERSION,
            "case": {"id": self.case.id, "description": self.case.description},
            "subset": self.subset,
            "tasks": list(self.tasks),
            "system": self.system,
            "settings": dict(self.settings),
            "evidence": {
                task: [
                    {
                        "path": file.below_evidence(task),
                        "trial_id": file.trial_id,
                        "name": file.name,
                        "sha256": file.sha256,
                        "outcome": file.outcome,
                    }
                    for file in files
                ]
                for task, files in self.files.items()
            },
        }


@dataclass(frozen=True, slots=True)
class CoverageRecord:
    """What is kept of one coverage request: a line of ``coverage.jsonl``. ``failed`` has an error, never a score."""

    case: PathPart
    """The case's id."""
    system: PathPart
    """The id of the entry of ``coverage``."""
    subset: PathPart
    """The subset's id, or ``pool``."""
    outcome: Literal["measured", "failed"]
    """``measured``, with a value or the reason why there is none; or ``failed``."""
    value: Annotated[float, Field(ge=0, le=1)] | None
    """The score in [0, 1]; None where there is none, and when it failed."""
    reason: str | None
    """Why a measured request has no value."""
    goals: Goals | None
    """What was counted, where the system gave it."""
    error: str | None
    """What went wrong, when it failed."""
    request_digest: str
    """Digest of the request, with the digests of its evidence."""
    settings_digest: str
    """Digest of the system's settings."""
    started: str
    """UTC, ISO 8601."""
    duration: float
    """Seconds."""
    files: dict[str, str]
    """Path below the request's folder -> digest, for every regular file in it."""

    @property
    def key(self) -> CoverageKey:
        """What the record is about: case, system, subset."""
        return (self.case, self.system, self.subset)


class CoverageError(Exception):
    """A coverage request that failed: no score, no receipt. The message is for the reader of the report."""
