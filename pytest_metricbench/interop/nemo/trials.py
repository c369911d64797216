"""One attempt as a trial of an evaluator bundle, with a score of each metric of its task.

- scored: ``completed``, or ``partial`` with an error where the agent had one; values as they are. A null score is one
  of a failed trial (``trial_status: failed``): it counts and never passes. An absent score is one of a failed metric,
  or an output that is lacking: it counts nowhere.
- died: ``failed`` with its error; every score is one of a failed trial.
- unmeasured: ``partial`` with its error; every metric failed by that exception. One that has scores, and lacks only the
  primary, is like a scored one.
- not recorded, not reached, not needed: no trial, since nothing was run.
"""

import math
import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_metricbench.answers import plain_text
from pytest_metricbench.contracts import NOT_RECORDED, AttemptError, AttemptRecord, OutputKind
from pytest_metricbench.definition.experiment import Task
from pytest_metricbench.interop.nemo.rows import KINDS, MEASUREMENT_PREFIX, MEASUREMENTS
from pytest_metricbench.interop.nemo.summary import Declared, Observation, State
from pytest_metricbench.score_values import ScoreValue, value_to_json

ONLY_OUTPUT: Final = "score"
"""The output of a score whose name has no metric in it: ``reward`` becomes ``reward.score``."""
MESSAGE_LIMIT: Final = 500
_SCHEMAS: Final[Mapping[OutputKind, str]] = {kind: schema for schema, kind in KINDS.items()}
_RESERVED: Final = re.compile(r"\.pass@\d+$")
_TOKENS: Final = ("prompt_tokens", "completion_tokens", "total_tokens", "cache_creation_tokens", "cache_read_tokens")


class BundleError(ValueError):
    """A bundle that cannot be written; the message says why, and what to do."""


class Names:
    """How the scores of a task are called in a bundle: ``<metric>.<output>``, split at the first dot."""

    def __init__(self, kinds: Mapping[str, OutputKind]) -> None:
        """Find the names.

        Args:
            kinds: score -> kind; measurements of a trial (``measurements.cost_usd``) are no scores of a bundle.

        Raises:
            BundleError: two scores would be called the same, or a name is one of the SDK's own.
        """
        self.scores: Final[dict[tuple[str, str], str]] = {}
        """(metric, output) -> score."""
        self.kinds: Final = kinds
        for name in kinds:
            if name.startswith(MEASUREMENT_PREFIX) and name.removeprefix(MEASUREMENT_PREFIX) in MEASUREMENTS:
                continue
            metric, _, output = name.partition(".")
            place = (metric, output) if metric and output else (name.strip(".") or name, ONLY_OUTPUT)
            if _RESERVED.search(".".join(place)):
                raise BundleError(f"the score {name!r} is named like a pass@k of the SDK; rename it")
            if (other := self.scores.setdefault(place, name)) != name:
                raise BundleError(f"the scores {other!r} and {name!r} would both be {'.'.join(place)!r}; rename one")
        self._outputs: Final[dict[str, list[tuple[str, str]]]] = {}
        for (metric, output), name in sorted(self.scores.items()):
            self._outputs.setdefault(metric, []).append((output, name))

    @property
    def metrics(self) -> Sequence[str]:
        """The metrics, sorted."""
        return list(self._outputs)

    def outputs(self, metric: str) -> Sequence[tuple[str, str]]:
        """The outputs of a metric, sorted: (output, score)."""
        return self._outputs[metric]


@dataclass(frozen=True, slots=True)
class TaskPlan:
    """A task as bundles have it."""

    task: Task
    names: Names

    @property
    def id(self) -> str:
        """Its id in the experiment."""
        return self.task.id

    @property
    def name(self) -> str:
        """What it is called in a bundle."""
        return plain_text(self.task.name or self.task.id)

    def kind(self, metric: str, output: str) -> OutputKind:
        """The kind of an output."""
        return self.names.kinds[self.names.scores[metric, output]]

    def declared(self) -> list[Declared]:
        """Every output that the task declares."""
        return [
            Declared(self.name, metric, output, _SCHEMAS[self.names.kinds[score]])
            for (metric, output), score in self.names.scores.items()
        ]

    def row(self, lacking: Container[tuple[str, str, str]]) -> dict[str, Any]:
        """The task's row.

        Args:
            lacking: (task, metric, output) of outputs that some scored trial lacks beside others of their metric: they
                are not required.
        """
        return {
            "id": self.name,
            "intent": plain_text(self.task.description),
            "inputs": {},
            "reference": {},
            "metrics": [
                {
                    "type": metric,
                    "outputs": [
                        {"name": output, "description": None, "value_schema": _SCHEMAS[self.names.kinds[score]]}
                        | ({"required": False} if (self.name, metric, output) in lacking else {})
                        for output, score in self.names.outputs(metric)
                    ],
                }
                for metric in self.names.metrics
            ],
            "views": {},
            "metadata": {"tags": list(self.task.tags)} if self.task.tags else {},
        }


@dataclass(frozen=True, slots=True)
class WrittenTrial:
    """One attempt as a trial."""

    plan: TaskPlan
    record: AttemptRecord
    row_index: int
    """The position of its task."""
    error: Mapping[str, Any] | None
    """What went wrong in making it: ``{"type", "message", "traceback", "occurred_at"}``."""
    scores: Sequence["WrittenScore"]

    @property
    def id(self) -> str:
        """What the attempt is called where it was made, or else its trial id; it need not be unique."""
        return plain_text(self.record.shown_id or self.record.trial_id)

    def row(self) -> dict[str, Any]:
        """Its row in ``trials.jsonl``."""
        status = "partial" if self.error is not None else "completed"
        measured = _measurements(self.record.scores)
        row: dict[str, Any] = {
            "id": self.id,
            "task_id": self.plan.name,
            "status": "failed" if self.record.outcome == "died" else status,
            "output": {"output_text": None, "response": None, "metadata": {}} if self.error is None else None,
            "evidence": None,
            "error": self.error,
            "metadata": self._metadata(),
        }
        # versions before 0.7 have no such key, and refuse it
        return row | ({"measurements": measured} if any(value is not None for value in measured.values()) else {})

    def score_rows(self, run_id: str) -> Iterator[dict[str, Any]]:
        """Its rows in ``scores.jsonl``, one a metric."""
        for score in self.scores:
            yield {
                "id": f"{run_id}:{self.plan.name}:{self.id}:{score.metric}",
                "run_id": run_id,
                "task_id": self.plan.name,
                "trial_id": self.id,
                "metric_type": score.metric,
                "status": "completed" if score.diagnostic is None else "failed",
                "outputs": [
                    {"name": output, "value": _in_scores(value, self.plan.kind(score.metric, output))}
                    for output, value in score.outputs.items()
                ],
                "diagnostics": [] if score.diagnostic is None else [score.diagnostic],
                "metadata": {"row_index": self.row_index, "trial_metadata": self._metadata()},
            }

    def observations(self) -> Iterator[Observation]:
        """What became of each declared output."""
        for score in self.scores:
            for output, _ in self.plan.names.outputs(score.metric):
                state: State = score.state
                if state == "observed" and output not in score.outputs:
                    state = "missing"
                yield Observation(self.plan.name, self.id, score.metric, output, state, score.outputs.get(output))

    def _metadata(self) -> dict[str, Any]:
        return {"metricbench_attempt": self.record.attempt, "metricbench_trial_id": self.record.trial_id}


@dataclass(frozen=True, slots=True)
class WrittenScore:
    """What one metric gave for one trial."""

    metric: str
    state: State
    outputs: Mapping[str, ScoreValue]
    diagnostic: Mapping[str, Any] | None


def written_trials(plan: TaskPlan, row_index: int, records: Iterable[AttemptRecord]) -> Iterator[WrittenTrial]:
    """The trials of a task's attempts; one that was never made is none.

    Raises:
        BundleError: of a metric's outputs one is null and another is not, which a bundle has no place for.
    """
    for record in records:
        error = record.error
        if record.outcome in ("not_reached", "not_needed") or (error is not None and error.type == NOT_RECORDED):
            continue
        is_of_trial = not record.scores or (error is not None and error.phase in ("setup", "agent"))
        told = _error(error) if is_of_trial else None
        scores = tuple(_score(plan, record, metric) for metric in plan.names.metrics)
        yield WrittenTrial(plan, record, row_index, told, scores)


def _score(plan: TaskPlan, record: AttemptRecord, metric: str) -> WrittenScore:
    if record.outcome == "died":
        return _of_failed_trial(record, metric)
    if not record.scores:
        return _failed(record.error, metric)
    outputs = plan.names.outputs(metric)
    given = {output: _written(record.scores[name]) for output, name in outputs if name in record.scores}
    nulls = [output for output, value in given.items() if value is None]
    if nulls and len(nulls) < len(outputs):
        other = next(output for output, _ in outputs if output not in nulls)
        raise BundleError(
            f"{record.variant}::{record.task}[{record.attempt}] has {metric}.{nulls[0]} null and "
            f"{metric}.{other} {'measured' if other in given else 'not at all'}; in a bundle a trial fails for a whole "
            "metric: name the two scores as of two metrics"
        )
    if nulls:
        return _of_failed_trial(record, metric)
    if not given:
        is_told = record.error is not None and record.error.phase in ("verifier", "contract")
        return _failed(record.error if is_told else None, metric)
    return WrittenScore(metric, "observed", given, None)


def _of_failed_trial(record: AttemptRecord, metric: str) -> WrittenScore:
    message = f"trial {plain_text(record.shown_id)!r} is failed"
    return WrittenScore(metric, "trial_failed", {}, _diagnostic(metric, message, {"trial_status": "failed"}))


def _failed(error: AttemptError | None, metric: str) -> WrittenScore:
    """A metric that gave nothing; without an error the attempt simply lacks its scores."""
    kind, message = ("NotMeasured", "the attempt has no such score")
    if error is not None:
        kind, message = plain_text(error.type), _first_line(error.message)
    return WrittenScore(metric, "metric_failed", {}, _diagnostic(metric, message, {"exception_type": kind}))


def _diagnostic(metric: str, message: str, details: Mapping[str, str]) -> dict[str, Any]:
    return {"severity": "error", "message": message, "source": metric, "details": dict(details)}


def _error(error: AttemptError | None) -> dict[str, Any]:
    kind = plain_text(error.type).strip() if error is not None else ""
    message = None if error is None else _first_line(error.message)
    return {"type": kind or "UnknownException", "message": message, "traceback": None, "occurred_at": None}


def _first_line(message: str) -> str:
    """What a bundle says of an error: its first line, since what an agent printed may be anything."""
    lines = plain_text(message).strip().splitlines() or [""]
    return lines[0][:MESSAGE_LIMIT]


def _measurements(scores: Mapping[str, ScoreValue]) -> dict[str, Any]:
    """The measurements of a trial as the SDK accepts them; what it would refuse is left out."""
    found: dict[str, Any] = dict.fromkeys(MEASUREMENTS)
    for name in MEASUREMENTS:
        value = scores.get(f"{MEASUREMENT_PREFIX}{name}")
        if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value) or value < 0:
            continue
        if name in _TOKENS and not isinstance(value, int):
            continue
        found[name] = value
    prompt, completion = found["prompt_tokens"], found["completion_tokens"]
    found["total_tokens"] = None if prompt is None or completion is None else prompt + completion
    return found


def _in_scores(value: ScoreValue, kind: OutputKind) -> ScoreValue:
    """A value as ``scores.jsonl`` has it: NaN is a text there, and an infinite number is null.

    A measurement that is infinite stays a text too, since the summary does not have it.
    """
    if kind != "measurement" and isinstance(value, float) and math.isinf(value):
        return None
    return value_to_json(value)


def _written(value: ScoreValue) -> ScoreValue:
    return plain_text(value) if isinstance(value, str) else value
