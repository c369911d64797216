"""Rows of Gym's files: which rollout a row is about, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias

from pytest_metricbench.answers import as_score_value, kept_message, named, plain_text
from pytest_metricbench.contracts import AttemptError, ContractError, Outcome
from pytest_metricbench.interop.gym.failures import FAILURE_CLASSES, UNKNOWN, judged
from pytest_metricbench.interop.recordings import RecordingError, Treatment
from pytest_metricbench.score_values import ScoreValue

Key: TypeAlias = tuple[int, int]
"""Task index and rollout index: what Gym calls one of the attempts that were asked for."""

TASK: Final = "_ng_task_index"
ROLLOUT: Final = "_ng_rollout_index"
ATTEMPT: Final = "_ng_attempt_index"
FAILURE: Final = "_ng_failure_class"
REWARD: Final = "reward"
OMITTED: Final = ("_ng_omitted_rollout", "_ng_no_persist")
"""In a row of the failures that is no failure: nothing was done, or nothing is to be kept of it."""
TOKENS: Final = ("input_tokens", "output_tokens", "total_tokens")
"""Of the response's ``usage``: kept as measurements."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What decides how a row is read."""

    outcomes: Mapping[str, Treatment] = field(default_factory=dict)
    scores: Sequence[str] = ()
    """Fields beside the reward that are scores."""
    task: str | None = None
    """The field of the materialized inputs that names a task; None: its index does."""


@dataclass(frozen=True, slots=True)
class Try:
    """What a row says became of a rollout."""

    agent: str | None
    outcome: Outcome
    reason: str | None
    """The failure class, where it has one, or what else kept the row from being scored."""


def has_key(row: Mapping[str, Any]) -> bool:
    """Whether a row says which rollout it is about."""
    return all(type(row.get(field)) is int for field in (TASK, ROLLOUT))


def key_of(row: Mapping[str, Any], where: str) -> Key:
    """Task and rollout of a row.

    Raises:
        RecordingError: one of them is not there, or is no whole number from 0.
    """
    for name in (TASK, ROLLOUT):
        if name not in row:
            message = f"{where}: the row has no {name}"
            raise RecordingError(message, "name the rollouts.jsonl that Gym wrote, not its data set")
        if type(row[name]) is not int or row[name] < 0:
            raise RecordingError(f"{where}: {name} is {named(row[name])}; a whole number from 0 is expected")
    return row[TASK], row[ROLLOUT]


def agent_of(row: Mapping[str, Any]) -> str | None:
    """The name of the agent that a row is of."""
    reference = row.get("agent_ref")
    name = reference.get("name") if isinstance(reference, dict) else None
    return plain_text(name) if isinstance(name, str) and name else None


def attempt_of(row: Mapping[str, Any], where: str) -> int:
    """Which try of its rollout a row is, from 0; versions that do not number them: 0.

    Raises:
        RecordingError: it is no whole number from 0.
    """
    attempt = row.get(ATTEMPT)
    if attempt is None:
        return 0
    if type(attempt) is not int or attempt < 0:
        raise RecordingError(f"{where}: {ATTEMPT} is {named(attempt)}; a whole number from 0 is expected")
    return attempt


def trial_of(key: Key, attempt: int) -> str:
    """What NeMo's evaluator calls a rollout: ``task:rollout``, and which try it is after the first."""
    return f"{key[0]}:{key[1]}-a{attempt}" if attempt else f"{key[0]}:{key[1]}"


def is_omitted(row: Mapping[str, Any]) -> bool:
    """Whether a row of the failures only says that a rollout left nothing."""
    return any(bool(row.get(name)) for name in OMITTED)


def read_result(row: Mapping[str, Any], where: str, reading: Reading) -> Try:
    """What a row of the rollouts says.

    Raises:
        RecordingError: its reward or another score is no score.
    """
    if row.get(FAILURE) is not None:
        return read_failure(row, where, reading)
    trial = trial_of(key_of(row, where), attempt_of(row, where))
    scores = _scores(row, where, reading)
    reason, message = _not_to_be_used(row, scores)
    if reason is None:
        return Try(agent_of(row), Outcome.scored(scores, trial_name=trial), None)
    return _unusable(row, reason, message, scores, trial, reading)


def read_failure(row: Mapping[str, Any], where: str, reading: Reading) -> Try:
    """What a row with a failure class says.

    Raises:
        RecordingError: it is to count as scored, and its reward is no score.
    """
    name = row.get(FAILURE)
    reason = plain_text(name)[:200] if isinstance(name, str) and name else "unknown"
    trial = trial_of(key_of(row, where), attempt_of(row, where))
    scores = _scores(row, where, reading) if reading.outcomes.get(reason) == "scored" else {}
    return _unusable(row, reason, _message(row, reason), scores, trial, reading)


def _unusable(
    row: Mapping[str, Any],
    reason: str,
    message: str,
    scores: Mapping[str, ScoreValue],
    trial: str,
    reading: Reading,
) -> Try:
    treatment, phase = judged(reason, _stage_of(row), reading.outcomes)
    if treatment == "scored" and REWARD in scores:
        outcome = Outcome.scored(scores, error=AttemptError(reason, message, phase), trial_name=trial)
    elif treatment == "died":
        outcome = Outcome.died(reason, message, trial_name=trial)
    else:
        outcome = Outcome.unmeasured(reason, message, phase, trial_name=trial)
    return Try(agent_of(row), outcome, reason)


def _not_to_be_used(row: Mapping[str, Any], scores: Mapping[str, ScoreValue]) -> tuple[str | None, str]:
    """Why a result of the rollouts file is none, and in words; None where it is one."""
    if row.get("mask_sample"):
        return "mask_sample", f"Gym says not to use this result{_because(row.get('failure_reason'))}"
    if REWARD not in scores:
        return "no_reward", f"the row has no reward{_because(row.get('failure_reason'))}"
    response = row.get("response")
    if isinstance(response, dict) and response.get("output") == [] and _tokens(row).get("input_tokens") == 0:
        return "empty_response", "the response has no output and its usage no input tokens: no agent ran"
    return None, ""


def _because(reason: object) -> str:
    return f": {kept_message(reason.strip())}" if isinstance(reason, str) and reason.strip() else ""


def _scores(row: Mapping[str, Any], where: str, reading: Reading) -> dict[str, ScoreValue]:
    """The reward, the further scores that are asked for, and the tokens. What is null or not there has no entry."""
    scores: dict[str, ScoreValue] = {}
    for name in (REWARD, *reading.scores):
        value = find_field(row, name)
        if value is None:
            continue
        if name == REWARD and isinstance(value, str):
            raise RecordingError(f"{where}: {REWARD} is {named(value)}; a number or a boolean is expected")
        try:
            scores[name] = as_score_value(name, value)
        except ContractError as error:
            raise RecordingError(f"{where}: {error}") from None
    return {**scores, **{name: count for name, count in _tokens(row).items() if name not in scores}}


def find_field(row: Mapping[str, Any], name: str) -> Any:
    """A field of a row, or of a mapping in it (``info.value``); None where there is none."""
    if name in row:
        return row[name]
    value: Any = row
    for part in name.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    return value


def _tokens(row: Mapping[str, Any]) -> dict[str, int]:
    response = row.get("response")
    usage = response.get("usage") if isinstance(response, dict) else None
    if not isinstance(usage, dict):
        return {}
    return {name: usage[name] for name in TOKENS if type(usage.get(name)) is int and usage[name] >= 0}


def _message(row: Mapping[str, Any], reason: str) -> str:
    """What a row of the failures says went wrong, in one text."""
    said = (row.get("_ng_failure_message"), row.get("error_message"), _record_of(row).get("failure_reason"))
    given = (text.strip() for text in (row.get("_ng_failure_type"), *said) if isinstance(text, str))
    parts = [kept_message(text) for text in given if text]
    status, stage = row.get("_ng_failure_http_status"), _stage_of(row)
    aside = [f"HTTP {status}"] * (type(status) is int) + [f"stage {stage}"] * (stage is not None)
    text = ": ".join(parts) or FAILURE_CLASSES.get(reason, UNKNOWN).meaning
    return f"{text} ({', '.join(aside)})" if aside else text


def _record_of(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The failure's own record, which newer versions write."""
    record = row.get("_ng_failure_record")
    return record if isinstance(record, dict) else {}


def _stage_of(row: Mapping[str, Any]) -> str | None:
    """Where in the rollout it failed, as far as anybody says."""
    stage = row.get("_ng_failure_stage") or _record_of(row).get("stage")
    return kept_message(stage.strip()) if isinstance(stage, str) else None
