"""A Harbor trial's ``result.json`` as an outcome: from rewards and exceptions, never from Harbor's own aggregates.

Read are the files of Harbor 0.20 to 0.26; what an exception means stands in
:mod:`pytest_metricbench.interop.harbor.exceptions`.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal, TypeAlias

from pytest_metricbench.answers import as_score_value, kept_message, named, plain_text
from pytest_metricbench.contracts import AttemptError, ContractError, Outcome, Phase
from pytest_metricbench.interop.harbor.exceptions import rule_for, rules_version
from pytest_metricbench.interop.recordings import Treatment
from pytest_metricbench.score_values import ScoreValue

STEP_PREFIX: Final = "step."
"""Scores of the steps of a multi-step task are named ``step.<step>.<reward>``."""

Moment: TypeAlias = Literal["setup", "agent", "verifier", "after"]
"""When an exception was raised; ``after``: when the verifier had already given its rewards."""


class HarborResultError(ValueError):
    """A result that is not of the form Harbor writes; the message says which part of it."""


@dataclass(frozen=True, slots=True)
class HarborException:
    """An exception that a trial or one of its steps recorded."""

    type: str
    message: str
    moment: Moment
    rewards: Mapping[str, ScoreValue]
    """Those that it stands beside: of its step, or of the trial."""
    is_valid: bool | None
    """Whether the user of Harbor declared its rewards valid (``override_error_policy``); None: said nothing."""


@dataclass(frozen=True, slots=True)
class HarborTrial:
    """What a trial's result says, checked."""

    name: str
    task: str
    rewards: Mapping[str, ScoreValue] | None
    """Of the trial; for a multi-step task Harbor's mean or the last step's. None where the verifier gave nothing."""
    step_rewards: Mapping[str, ScoreValue]
    """``step.<step>.<reward>`` -> value."""
    exceptions: tuple[HarborException, ...]
    """The trial's own first, then those of its steps in their order."""
    invalid: tuple[str, ...]
    """What is wrong with rewards that are no numbers, in words."""


def trial_outcome(
    result: Mapping[str, Any], *, version: str | None = None, overrides: Mapping[str, Treatment] | None = None
) -> Outcome:
    """What became of a trial.

    Args:
        result: its ``result.json``.
        version: of the Harbor that wrote it; None where nobody knows.
        overrides: exception type -> what becomes of its attempts, over the table. ``scored`` takes the rewards where
            there are any.

    Raises:
        HarborResultError: the result is not of Harbor's form.
    """
    trial = read_trial(result, version=version)
    error, treatment = _decided(trial, overrides or {})
    if treatment == "scored":
        return Outcome.scored({**(trial.rewards or {}), **trial.step_rewards}, error=error, trial_name=trial.name)
    if error is None:
        return _without_exception(trial)
    if treatment == "died":
        return Outcome.died(error.type, error.message, trial_name=trial.name)
    return Outcome.unmeasured(error.type, error.message, error.phase, trial_name=trial.name)


def read_trial(result: Mapping[str, Any], *, version: str | None = None) -> HarborTrial:
    """The parts of a result that matter, checked.

    Raises:
        HarborResultError: the result is not of Harbor's form.
    """
    if not isinstance(result, Mapping):
        raise HarborResultError(f"it is {named(result)}; a mapping is expected")
    steps = _steps(result)
    invalid: list[str] = []
    rewards = _rewards(result, "verifier_result", invalid)
    by_step = [_rewards(step, f"step_results[{index}].verifier_result", invalid) for index, step in enumerate(steps)]
    step_rewards = {
        f"{STEP_PREFIX}{plain_text(str(step.get('step_name', index)))}.{name}": value
        for index, (step, given) in enumerate(zip(steps, by_step, strict=True))
        for name, value in (given or {}).items()
    }
    exceptions = [
        *_exception(result, "", rewards, version, has_steps=bool(steps)),
        *(
            found
            for index, (step, given) in enumerate(zip(steps, by_step, strict=True))
            for found in _exception(step, f"step_results[{index}].", given, version)
        ),
    ]
    return HarborTrial(
        name=_text(result, "trial_name"),
        task=_text(result, "task_name"),
        rewards=rewards,
        step_rewards=step_rewards,
        exceptions=tuple(exceptions),
        invalid=tuple(invalid),
    )


# ---------------------------------------------------------------- decisions


def _decided(trial: HarborTrial, overrides: Mapping[str, Treatment]) -> tuple[AttemptError | None, Treatment]:
    """What becomes of a trial, and the error that goes with it: one exception that is not measured decides for all."""
    treated = [(exception, _treatment(exception, trial, overrides)) for exception in trial.exceptions]
    for treatment in ("unmeasured", "died"):
        for exception, given in treated:
            if given == treatment:
                return _error(exception), given
    if not trial.rewards:
        return None, "unmeasured"
    if treated:
        return _error(treated[0][0]), "scored"
    return (AttemptError("InvalidReward", "; ".join(trial.invalid), "verifier") if trial.invalid else None), "scored"


def _treatment(exception: HarborException, trial: HarborTrial, overrides: Mapping[str, Treatment]) -> Treatment:
    """What becomes of a trial with this exception, by the user's word, Harbor's configuration or the table."""
    has_rewards = bool(exception.rewards) and bool(trial.rewards)
    asked = overrides.get(exception.type)
    if asked in ("died", "unmeasured") or (asked == "scored" and has_rewards):
        return asked
    if has_rewards and exception.is_valid is not None:
        return "scored" if exception.is_valid else "unmeasured"
    rule = rule_for(exception.type)
    if rule.without_reward == "unmeasured":
        return "unmeasured"
    if exception.moment == "setup" or (exception.moment == "verifier" and rule.blame == "crash"):
        return "unmeasured"
    if not has_rewards:
        return rule.without_reward
    if rule.with_reward == "scored" or exception.moment == "after":
        return "scored"
    return "scored" if any(_is_above_zero(value) for value in exception.rewards.values()) else "died"


def _is_above_zero(value: ScoreValue) -> bool:
    return isinstance(value, int | float) and value > 0


def _error(exception: HarborException) -> AttemptError:
    phase: Phase = "verifier" if exception.moment == "after" else exception.moment
    rule = rule_for(exception.type)
    if rule.blame == "verifier":
        phase = "verifier"
    return AttemptError(exception.type, exception.message, phase)


def _without_exception(trial: HarborTrial) -> Outcome:
    """A trial that has neither an exception nor a reward."""
    if trial.invalid:
        return Outcome.unmeasured("InvalidReward", "; ".join(trial.invalid), "verifier", trial_name=trial.name)
    message = "the trial has neither rewards nor an exception; was its verification disabled?"
    return Outcome.unmeasured("NoReward", message, "verifier", trial_name=trial.name)


# ---------------------------------------------------------------- reading


def _rewards(part: Mapping[str, Any], where: str, invalid: list[str]) -> dict[str, ScoreValue] | None:
    """The rewards of a trial or a step; those that are no numbers are left out and told in ``invalid``."""
    given = _mapping(part.get("verifier_result"), where)
    rewards = _mapping((given or {}).get("rewards"), f"{where}.rewards")
    if rewards is None:
        return None
    checked: dict[str, ScoreValue] = {}
    for name, value in rewards.items():
        problem = _reward_problem(name, value)
        if problem is None:
            checked[plain_text(name)] = value
        else:
            invalid.append(problem)
    return checked


def _reward_problem(name: str, value: object) -> str | None:
    if not name or len(name) > 200:
        return f"{named(name)} is no name of a reward; a text of 1 to 200 characters is expected"
    if not isinstance(value, bool | int | float):
        return f"the reward {name!r} is {named(value)}; a number is expected"
    try:
        as_score_value(name, value)
    except ContractError as error:
        return str(error)
    return None


def _exception(
    part: Mapping[str, Any],
    where: str,
    rewards: Mapping[str, ScoreValue] | None,
    version: str | None,
    *,
    has_steps: bool = False,
) -> Iterator[HarborException]:
    info = _mapping(part.get("exception_info"), f"{where}exception_info")
    if info is None:
        return
    kind = info.get("exception_type")
    if not isinstance(kind, str) or not kind:
        raise HarborResultError(f"{where}exception_info.exception_type is {named(kind)}; a text is expected")
    kind = plain_text(kind)
    override = info.get("policy_override")
    valid = override.get("has_valid_reward") if isinstance(override, Mapping) else None
    yield HarborException(
        type=kind,
        message=kept_message(info.get("exception_message")) or "no message",
        moment=_moment(part, kind, info, bool(rewards), version, has_steps=has_steps),
        rewards=rewards or {},
        is_valid=valid if isinstance(valid, bool) else None,
    )


def _moment(
    part: Mapping[str, Any],
    kind: str,
    info: Mapping[str, Any],
    has_rewards: bool,
    version: str | None,
    *,
    has_steps: bool,
) -> Moment:
    """When an exception was raised, from the times of the phases; without them, from what the version does."""
    if has_steps:  # what an agent does in a step is recorded in the step
        return "after" if has_rewards else "setup"
    verified = _began(part, "verifier")
    if verified is None and "agent_execution" in part and _began(part, "agent_execution") is None:
        return "setup"  # a trial that only verifies another's work again has no agent's time, and a verifier's
    if verified is None and not has_rewards:
        return "agent"
    raised = _time(info.get("occurred_at"))
    if verified is not None and raised is not None:
        if raised < verified:
            return "agent"
        return "after" if has_rewards else "verifier"
    if not has_rewards:
        return "verifier"
    graded = rule_for(kind).verified
    is_old = rules_version(version) == "0.25"
    return "agent" if graded is None or graded[0 if is_old else 1] else "after"


def _began(part: Mapping[str, Any], phase: str) -> datetime | None:
    timing = part.get(phase)
    return _time(timing.get("started_at")) if isinstance(timing, Mapping) else None


def _time(text: object) -> datetime | None:
    """A time as Harbor writes it: UTC, or local without a zone; those two are not compared."""
    if not isinstance(text, str):
        return None
    try:
        time = datetime.fromisoformat(text)
    except ValueError:
        return None
    return None if time.tzinfo is None else time


def _steps(result: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    steps = result.get("step_results")
    if steps is None:
        return []
    if not isinstance(steps, list) or not all(isinstance(step, Mapping) for step in steps):
        raise HarborResultError("step_results is not a list of mappings")
    return steps


def _mapping(value: object, where: str) -> Mapping[str, Any] | None:
    if value is None or isinstance(value, Mapping):
        return value
    raise HarborResultError(f"{where} is {named(value)}; a mapping or null is expected")


def _text(result: Mapping[str, Any], key: str) -> str:
    value = result.get(key)
    if not isinstance(value, str) or not value:
        raise HarborResultError(f"{key} is {named(value)}; a text is expected")
    return plain_text(value)
