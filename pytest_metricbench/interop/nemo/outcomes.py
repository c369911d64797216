"""What became of a trial of an evaluator bundle: died, not measured, or scored; and what was decided on the way.

Three things look alike in a bundle's figures and are told apart here. A *failed trial* has null values: the agent died,
or something it ran on did. A *failed metric* has no value: nobody knows. A *crash that was scored 0.0* is what the SDK
makes of a Harbor trial whose verifier gave no reward: the zero is made up, and the trial's error decides. What an error
says of the agent stands in the table that Harbor's own results are read by, so that a job gives the same either way
(:mod:`pytest_metricbench.interop.harbor.exceptions`), with the types below that only the SDK knows.
"""

from collections.abc import Mapping
from typing import Any, Final, Literal, TypeAlias

from pytest_metricbench.contracts import AttemptError, Outcome, OutputKind
from pytest_metricbench.interop.harbor.exceptions import rule_for
from pytest_metricbench.interop.harbor.results import trial_outcome
from pytest_metricbench.interop.nemo.rows import HARBOR_METRIC, MEASUREMENT_PREFIX, Told, TrialRow, full_name
from pytest_metricbench.interop.recordings import Treatment
from pytest_metricbench.score_values import ScoreValue

Decision: TypeAlias = Literal[
    "failed trial died",
    "failed trial unmeasured",
    "crash scored as zero died",
    "crash scored as zero unmeasured",
    "zero without a reward dropped",
    "errored trial died",
    "errored trial unmeasured",
    "errored trial scored",
    "metric failed",
]
"""What the join of errors and scores changed, or could have changed."""

DECISIONS: Final[Mapping[Decision, str]] = {
    "failed trial died": "failed trial{s} (value null): died",
    "failed trial unmeasured": "failed trial{s} (value null) by an infrastructure error: unmeasured, not a failure",
    "crash scored as zero died": "score{s} of 0.0 for a crash without a reward: died",
    "crash scored as zero unmeasured": "score{s} of 0.0 for a crash without a reward: unmeasured, not a zero",
    "zero without a reward dropped": "trial{s} that the bundle scores 0.0 without an error or a reward: no entry",
    "errored trial died": "trial{s} with an error of the agent and a score of 0: died",
    "errored trial unmeasured": "trial{s} scored beside an infrastructure error: unmeasured",
    "errored trial scored": "trial{s} with an error whose scores stand",
    "metric failed": "trial{s} with a metric that failed: no entry for its scores",
}
"""Decision -> how notes of a report call it; ``{s}`` is the ending of the plural."""

INFRASTRUCTURE: Final[Mapping[str, Treatment]] = dict.fromkeys(
    (
        # the SDK's calls of a model or agent over HTTP
        "ResilienceMaxAttemptsExceededError",
        "ResilienceDeadlineExceededError",
        "ResilienceQueueFullError",
        "ResilienceCancelledError",
        "ResilienceError",
        "ClientInferenceError",
        "APITimeoutError",
        "APIConnectionError",
        "ConnectError",
        "ConnectTimeout",
        "ReadError",
        "ReadTimeout",
        "WriteError",
        "WriteTimeout",
        "PoolTimeout",
        "RemoteProtocolError",
        "MissingSecretError",
        # where its runners run agents
        "SandboxCreateError",
        "BrokerSandboxError",
        "UnsupportedSandboxOperationError",
        "ComposeCleanupError",
        "FabricImageError",
        "WorkspaceSeedError",
        "SkillInjectionError",
        # Gym: the class of the failure is not in the bundle, and most are no fault of the agent
        "GymFailure",
    ),
    "unmeasured",
)
"""Types of errors that only the SDK raises, and what becomes of their attempts. A type in neither table is a crash."""

_COUNTED: Final = ("continuous", "boolean")


def outcome_of(
    trial: TrialRow, kinds: Mapping[str, OutputKind], overrides: Mapping[str, Treatment]
) -> tuple[Outcome, Decision | None]:
    """What became of a trial.

    Args:
        trial: with its values.
        kinds: of the outputs at its task.
        overrides: type of an error -> what becomes of its attempts, over the tables.

    Returns:
        The outcome, and what the errors decided; None where there were none.
    """
    treatments = {**INFRASTRUCTURE, **overrides}
    if trial.status == "failed":
        return _failed(trial, treatments)
    scores = dict(trial.scores)
    is_made_up = _drop_made_up(trial, scores)
    if trial.told is not None:
        return _errored(trial, trial.told, scores, kinds, treatments, is_made_up=is_made_up)
    failed = _failed_metric(trial)
    decision: Decision | None = None if failed is None else "metric failed"
    if is_made_up:
        message = "the verifier gave no reward; the 0.0 in the bundle stands for that"
        failed, decision = AttemptError("NoReward", message, "verifier"), "zero without a reward dropped"
    if scores:
        return _scored(trial, scores, failed), decision
    error = failed or AttemptError("NotScored", "no metric gave a score that counts", "verifier")
    return Outcome.unmeasured(error.type, error.message, error.phase, trial_name=trial.id), decision


def _failed(trial: TrialRow, treatments: Mapping[str, Treatment]) -> tuple[Outcome, Decision]:
    told = trial.told or trial.cause or Told("TrialFailed", "the bundle does not say why")
    outcome = _treated(trial, told, {}, treatments)
    return outcome, "failed trial died" if outcome.kind == "died" else "failed trial unmeasured"


def _errored(
    trial: TrialRow,
    told: Told,
    scores: dict[str, ScoreValue],
    kinds: Mapping[str, OutputKind],
    treatments: Mapping[str, Treatment],
    *,
    is_made_up: bool,
) -> tuple[Outcome, Decision]:
    """A trial that was not failed although it has an error: its scores stand where the table says so."""
    outcome = _treated(trial, told, _rewards(trial, scores, kinds), treatments)
    if outcome.kind == "scored":
        error = outcome.error or AttemptError(told.type, told.message, "agent")
        return _scored(trial, scores, error), "errored trial scored"
    if is_made_up:
        return outcome, "crash scored as zero died" if outcome.kind == "died" else "crash scored as zero unmeasured"
    failed = _failed_metric(trial)
    if not scores and failed is not None and outcome.kind == "died":
        # every metric failed on what an agent with an error left: nobody knows, as without the error
        unmeasured = Outcome.unmeasured(failed.type, failed.message, failed.phase, trial_name=trial.id)
        return unmeasured, "metric failed"
    return outcome, "errored trial died" if outcome.kind == "died" else "errored trial unmeasured"


def _rewards(
    trial: TrialRow, scores: Mapping[str, ScoreValue], kinds: Mapping[str, OutputKind]
) -> dict[str, ScoreValue]:
    """The scores that say something against the error: Harbor's rewards, or else all that count.

    What other metrics make of a Harbor trial that has no reward does not undo its crash.
    """
    harbor = f"{HARBOR_METRIC}."
    return {
        name: value
        for name, value in scores.items()
        if kinds.get(name, "continuous") in _COUNTED
        and isinstance(value, bool | int | float)
        and (HARBOR_METRIC not in trial.metrics or name.startswith(harbor))
    }


def _treated(
    trial: TrialRow, told: Told, rewards: Mapping[str, ScoreValue], treatments: Mapping[str, Treatment]
) -> Outcome:
    """What Harbor's table makes of an error beside these rewards."""
    result: dict[str, Any] = {
        "trial_name": trial.id,
        "task_name": trial.task,
        "verifier_result": {"rewards": dict(rewards)} if rewards else None,
        "exception_info": {"exception_type": told.type, "exception_message": told.message},
    }
    is_timed = trial.reward_key is not None and trial.measurements is not None  # Harbor's adapter times every agent
    if is_timed and "runtime_sec" not in (trial.measurements or {}) and rule_for(told.type).blame == "crash":
        result["agent_execution"] = None  # an exception that nobody knows, before the agent ran
    return trial_outcome(result, overrides=treatments)


def _drop_made_up(trial: TrialRow, scores: dict[str, ScoreValue]) -> bool:
    """Take out the 0.0 that the SDK writes for a Harbor trial without its primary reward. Says whether it did.

    Bundles that keep no rewards in the trial's metadata do not say it: there a zero beside an error, or in a trial
    that is not completed, is taken for one.
    """
    row = trial.metrics.get(HARBOR_METRIC)
    if row is None:
        return False
    primary = full_name(HARBOR_METRIC, trial.reward_key or "reward")
    if primary not in scores:
        return False
    is_doubtful = trial.reward == "unknown" and (trial.told is not None or trial.status == "partial")
    if not (trial.reward == "absent" or primary in row.unmeasured or is_doubtful) or scores[primary] != 0:
        return False
    del scores[primary]
    return True


def _failed_metric(trial: TrialRow) -> AttemptError | None:
    for metric in sorted(trial.metrics):
        row = trial.metrics[metric]
        if row.state == "metric_failed" and row.told is not None:
            return AttemptError(row.told.type, f"the metric {metric} failed: {row.told.message}", "verifier")
    return None


def _scored(trial: TrialRow, scores: Mapping[str, ScoreValue], error: AttemptError | None) -> Outcome:
    measured = {f"{MEASUREMENT_PREFIX}{name}": value for name, value in (trial.measurements or {}).items()}
    return Outcome.scored({**scores, **measured}, error=error, trial_name=trial.id)
