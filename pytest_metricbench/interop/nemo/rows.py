"""The rows of an evaluator bundle as small typed records: what the reading of attempts needs, and nothing else.

Free-form parts (answers, metadata, tracebacks, inline evidence) are looked at once and dropped, so that a bundle of
thousands of trials takes the memory of its values.
"""

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TypeAlias

from pytest_metricbench.answers import as_score_value, named, plain_text
from pytest_metricbench.contracts import ContractError, OutputKind
from pytest_metricbench.interop.recordings import RecordingError
from pytest_metricbench.score_values import NON_FINITE, ScoreValue

MEASUREMENT_SCHEMA: Final = "Measurement"
"""The name under which bundles of ours declare an output that is a measurement; the SDK has no word for it."""
KINDS: Final[Mapping[str, OutputKind]] = {
    "ContinuousScore": "continuous",
    "DiscreteScore": "discrete",
    "BooleanValue": "boolean",
    "Label": "label",
    MEASUREMENT_SCHEMA: "measurement",
}
"""``value_schema`` of an output -> kind of the score. Outputs of any other schema are models, and kept out."""
MEASUREMENTS: Final = (
    "prompt_tokens",
    "completion_tokens",
    "total_tokens",
    "cache_creation_tokens",
    "cache_read_tokens",
    "runtime_sec",
    "cost_usd",
)
"""What a trial's ``measurements`` may hold."""
MEASUREMENT_PREFIX: Final = "measurements."
HARBOR_METRIC: Final = "harbor_reward"
TRIAL_FAILED: Final = "TrialFailed"
"""The error type of a failed trial of which the bundle says nothing more."""

TrialStatus: TypeAlias = Literal["completed", "failed", "partial"]
ScoreState: TypeAlias = Literal["scored", "trial_failed", "metric_failed"]

_STATUSES: Final = ("completed", "failed", "partial")
_BROKEN: Final = "this is no row as the evaluator SDK writes it; write the bundle again"
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "task": frozenset({"id", "intent", "inputs", "reference", "metrics", "views", "metadata"}),
    "trial": frozenset({"id", "task_id", "status", "output", "evidence", "error", "measurements", "metadata"}),
    "score": frozenset(
        {"id", "run_id", "task_id", "trial_id", "metric_type", "status", "outputs", "diagnostics", "metadata"}
    ),
}


class Entry(NamedTuple):
    """One ``{trial_id, value_type, value}`` of ``summary.json``, as it stands there."""

    trial_id: str
    value_type: object
    value: object
    others: tuple[str, ...]
    """Keys that are not known."""


class Told(NamedTuple):
    """What is said of an error: its type and message."""

    type: str
    message: str


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One task: what it is for, and the kinds of its outputs by full name (``metric.output``)."""

    id: str
    intent: str
    kinds: Mapping[str, OutputKind]
    metrics: Mapping[str, str]
    """Full name of an output -> its metric."""
    models: tuple[str, ...]
    """Full names of the outputs that are models: they are kept out."""


@dataclass(frozen=True, slots=True)
class ScoreRow:
    """What one metric gave for one trial."""

    state: ScoreState
    outputs: Mapping[str, Any]
    told: Told | None
    """Why the metric failed."""
    unmeasured: frozenset[str] = frozenset()
    """Outputs of which a diagnostic says that nothing was measured, whatever value stands there."""


@dataclass(slots=True)
class TrialRow:
    """One trial, and what its metrics gave once ``scores.jsonl`` is read."""

    id: str
    task: str
    line: int
    status: TrialStatus
    told: Told | None
    """The error that the runner reported."""
    is_told: bool
    """Whether the row has a place for an error at all; older ones have none."""
    cause: Told | None
    """What its metadata says of a failure that has no error."""
    reward_key: str | None
    """Of a Harbor trial: which reward is the primary one."""
    reward: Literal["given", "absent", "unknown"]
    """Of a Harbor trial: whether the verifier gave that reward, or the 0.0 beside it was made up."""
    measurements: Mapping[str, int | float] | None
    """None where the row has none (before 0.7)."""
    metrics: dict[str, ScoreRow] = field(default_factory=dict)
    """Metric -> what it gave; a metric that did not run has none."""
    scores: dict[str, ScoreValue] = field(default_factory=dict)
    """Full name -> value: None where the trial failed before it could be measured, absent where it was not measured."""
    files: Mapping[str, Path] = field(default_factory=dict)


@dataclass(slots=True)
class Unknown:
    """Keys that this version does not know, counted by what they stand in."""

    keys: Counter[tuple[str, str]] = field(default_factory=Counter)

    def check(self, what: str, row: Mapping[str, object], known: frozenset[str] | None = None) -> None:
        """Count the keys of a row that are not known."""
        if others := row.keys() - (_KNOWN[what] if known is None else known):
            self.keys.update((what, key) for key in others)


# ---------------------------------------------------------------- rows


def task_row(row: Mapping[str, Any], where: str) -> TaskRow:
    """A row of ``tasks.jsonl``.

    Raises:
        RecordingError: it is not of the SDK's form.
    """
    kinds: dict[str, OutputKind] = {}
    metrics: dict[str, str] = {}
    models: list[str] = []
    for metric in _list(row, "metrics", where):
        metric_type = _text(metric, "type", where)
        for output in _list(metric, "outputs", where):
            name, schema = full_name(metric_type, _text(output, "name", where)), _text(output, "value_schema", where)
            metrics[name] = metric_type
            if schema in KINDS:
                kinds[name] = KINDS[schema]
            else:
                models.append(name)
    intent = row.get("intent")
    purpose = plain_text(intent) if isinstance(intent, str) else ""
    return TaskRow(_text(row, "id", where), purpose, kinds, metrics, tuple(models))


def trial_row(row: Mapping[str, Any], where: str, line: int) -> TrialRow:
    """A row of ``trials.jsonl``.

    Raises:
        RecordingError: it is not of the SDK's form.
    """
    status = row.get("status")
    if status not in _STATUSES:
        raise RecordingError(f"{where}: status is {named(status)}; one of {', '.join(_STATUSES)} is expected", _BROKEN)
    metadata = _mapping(row, "metadata", where) or {}
    error = _mapping(row, "error", where)
    reward_key, reward = _harbor_reward(metadata)
    return TrialRow(
        id=_text(row, "id", where),
        task=_text(row, "task_id", where),
        line=line,
        status=status,
        told=None if error is None else Told(_text(error, "type", where), _message(error.get("message"))),
        is_told="error" in row,
        cause=_cause(metadata) if status == "failed" and error is None else None,
        reward_key=reward_key,
        reward=reward,
        measurements=_measurements(row, where),
    )


def score_row(row: Mapping[str, Any], where: str) -> tuple[str, str, str, ScoreRow]:
    """A row of ``scores.jsonl``: its task, its trial, its metric, and what it says.

    Raises:
        RecordingError: it is not of the SDK's form.
    """
    status = row.get("status")
    if status not in _STATUSES:
        raise RecordingError(f"{where}: status is {named(status)}; one of {', '.join(_STATUSES)} is expected", _BROKEN)
    metric = _text(row, "metric_type", where)
    outputs: dict[str, Any] = {}
    for output in _list(row, "outputs", where):
        if "value" not in output:
            raise RecordingError(f"{where}: an output has no value", _BROKEN)
        value = output["value"]
        outputs.setdefault(full_name(metric, _text(output, "name", where)), value if _is_plain(value) else MODEL)
    state, told, unmeasured = _diagnosed(row, metric, status, where)
    score = ScoreRow(state, outputs if state == "scored" else {}, told, unmeasured)
    return _text(row, "task_id", where), _text(row, "trial_id", where), metric, score


def entry_value(entry: Entry, where: str) -> ScoreValue:
    """The value of an entry: escaped numbers are numbers again, and a label that reads ``NaN`` stays a label.

    Without a ``value_type``, as before the release, the three escapes are numbers and any other text is a label.

    Raises:
        RecordingError: value and type do not go together, or there is no value.
    """
    declared, value = entry.value_type, entry.value
    if declared is None:
        declared = "missing" if value is None else "number"
        if isinstance(value, str) and value not in NON_FINITE:
            declared = "label"
    if declared == "number" and isinstance(value, str):
        value = NON_FINITE.get(value, value)
    fits = {
        "number": isinstance(value, bool | int | float),
        "label": isinstance(value, str),
        "missing": value is None,
    }
    if not isinstance(declared, str) or not fits.get(declared, False):
        found = "no value" if value is NO_VALUE else named(value)
        raise RecordingError(f"{where} has {found} with value_type {named(declared)}", _BROKEN)
    return number_or_text(value, where)


def number_or_text(value: object, where: str) -> ScoreValue:
    """A value as scores are kept.

    Args:
        value: what stands there.
        where: what errors call it.

    Raises:
        RecordingError: it is neither, or a number too large to compute with.
    """
    try:
        return as_score_value("", value)
    except ContractError:
        raise RecordingError(
            f"{where} is no score: a number up to 1e308, a boolean or a text is expected", _BROKEN
        ) from None


NO_VALUE: Final = object()
"""Stands for the value of an entry that has none: it must not become a null."""
MODEL: Final = object()
"""Stands for an output that is a mapping or a list: no score, and of any size."""


def entries_hook(pairs: list[tuple[str, Any]]) -> Any:
    """Makes mappings from their pairs, and records of ``summary.json`` small ones at once."""
    mapping = dict(pairs)
    trial_id = mapping.get("trial_id")
    if not isinstance(trial_id, str):
        return mapping
    others = tuple(sorted(mapping.keys() - {"trial_id", "value_type", "value"})) if len(mapping) > 3 else ()
    return Entry(plain_text(trial_id), mapping.get("value_type"), mapping.get("value", NO_VALUE), others)


def full_name(metric: str, output: str) -> str:
    """The name of a score, as the SDK's summaries have it."""
    return plain_text(f"{metric}.{output}")


# ---------------------------------------------------------------- parts of rows


def _diagnosed(
    row: Mapping[str, Any], metric: str, status: str, where: str
) -> tuple[ScoreState, Told | None, frozenset[str]]:
    """Whether the trial or the metric failed, why, and which outputs were not measured although they have a value."""
    exception = message = None
    is_trial_failed = False
    unmeasured: set[str] = set()
    for diagnostic in _list(row, "diagnostics", where):
        details = _mapping(diagnostic, "details", where) or {}
        is_trial_failed = is_trial_failed or details.get("trial_status") == "failed"
        if isinstance(details.get("exception_type"), str):
            exception = details["exception_type"]
        if isinstance(details.get("output"), str) and isinstance(details.get("reason"), str):
            unmeasured.add(full_name(metric, details["output"]))
        message = message or diagnostic.get("message")
    if status != "failed":
        return "scored", None, frozenset(unmeasured)
    if is_trial_failed:
        return "trial_failed", None, frozenset()
    return "metric_failed", Told(plain_text(exception or "MetricFailed"), _message(message)), frozenset()


def _harbor_reward(metadata: Mapping[str, Any]) -> tuple[str | None, Literal["given", "absent", "unknown"]]:
    key = metadata.get("harbor_primary_reward_key")
    reward_key = key if isinstance(key, str) and key else None
    if "reward" not in metadata:
        return reward_key, "unknown"
    reward = metadata["reward"]
    is_given = isinstance(reward, int | float) and not isinstance(reward, bool) and math.isfinite(reward)
    return reward_key, "given" if is_given else "absent"


def _cause(metadata: Mapping[str, Any]) -> Told:
    """What the metadata of a failed trial says, in the words of each of the SDK's runners."""
    kind, text = metadata.get("error_type"), metadata.get("error")
    if isinstance(kind, str) and kind:
        return Told(plain_text(kind), _message(text))
    if isinstance(text, str) and text:  # the callable runner: "ValueError: no such city"
        head, _, rest = text.partition(": ")
        return Told(plain_text(head), _message(rest)) if head.isidentifier() else Told(TRIAL_FAILED, _message(text))
    if "gym_failure" in metadata:
        return Told("GymFailure", _message(metadata["gym_failure"]))
    return Told(TRIAL_FAILED, "the bundle does not say why")


def _measurements(row: Mapping[str, Any], where: str) -> Mapping[str, int | float] | None:
    given = _mapping(row, "measurements", where)
    if given is None:
        return None
    return {
        name: value
        for name in MEASUREMENTS
        if isinstance(value := given.get(name), int | float) and not isinstance(value, bool)
    }


def _is_plain(value: object) -> bool:
    return value is None or isinstance(value, bool | int | float | str)


def _message(text: object) -> str:
    return plain_text(text) if isinstance(text, str) and text else "no message"


def _text(row: Mapping[str, Any], key: str, where: str) -> str:
    value = row.get(key)
    if not isinstance(value, str) or not value:
        raise RecordingError(f"{where}: {key} is {named(value)}; a text is expected", _BROKEN)
    return plain_text(value)


def _mapping(row: Mapping[str, Any], key: str, where: str) -> Mapping[str, Any] | None:
    value = row.get(key)
    if value is None or isinstance(value, dict):
        return value
    raise RecordingError(f"{where}: {key} is {named(value)}; a mapping is expected", _BROKEN)


def _list(row: Mapping[str, Any], key: str, where: str) -> list[Mapping[str, Any]]:
    value = row.get(key)
    if value is None:
        return []
    if isinstance(value, list) and all(isinstance(item, dict) for item in value):
        return value
    raise RecordingError(f"{where}: {key} is {named(value)}; a list of mappings is expected", _BROKEN)
