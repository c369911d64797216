"""What failed rollouts count as: the table, the user's word over it, and the stage, which can only excuse."""

from typing import Any

import pytest

from pytest_metricbench.interop.gym.failures import BLAMELESS_STAGES, FAILURE_CLASSES, judged
from pytest_metricbench.interop.recordings import RecordingError
from tests.interop_gym.gym_lab import GymLab, failure, kinds, notes, planned, result
from tests.present import present

REGISTERED_IN_GYM = (
    *("transport_unreachable", "transport_peer_drop", "transport_timeout", "transport_local_resource"),
    *("agent_run_error", "agent_request_failed", "agent_timeout", "agent_command_not_allowed"),
    *("environment_server_failed", "protocol_violation"),
    *("judge_failed", "judge_unparseable", "verifier_error"),
    *("provider_unavailable", "provider_quota_exhausted", "provider_oom_killed"),
    *("session_lost", "session_expired", "session_release_failed"),
    *("cancelled", "kill_shaped", "shutdown", "persistence_failed", "cohort_incomplete"),
)
DIED = {"agent_run_error", "agent_timeout", "agent_command_not_allowed", "timeout_exceeded", "timeout"}


@pytest.mark.parametrize("name", REGISTERED_IN_GYM)
def test_every_class_that_gym_registers_is_in_the_table(name: str) -> None:
    assert name in FAILURE_CLASSES


@pytest.mark.parametrize("name", FAILURE_CLASSES)
def test_a_failed_rollout_counts_as_the_table_says(gym_lab: GymLab, name: str) -> None:
    gym_lab.write([], [failure(0, 0, name, _ng_failure_message="went wrong")], planned(1, 1))
    (found,) = gym_lab.read().attempts
    assert found.outcome.kind == FAILURE_CLASSES[name].treatment == ("died" if name in DIED else "unmeasured")
    assert (present(found.outcome.error).type, present(found.outcome.error).message) == (name, "went wrong")
    assert present(found.outcome.error).phase == FAILURE_CLASSES[name].phase
    assert found.outcome.scores == {}
    assert FAILURE_CLASSES[name].meaning


@pytest.mark.parametrize("name", ["brand_new", "my_server:my_kind", "unknown"])
def test_a_class_that_is_not_known_is_unmeasured_and_said(gym_lab: GymLab, name: str) -> None:
    gym_lab.write([], [failure(0, 0, name)], planned(1, 1))
    recordings = gym_lab.read()
    assert kinds(recordings) == {"task-0 0:0": "unmeasured"}
    assert notes(recordings) == {f"rollout with {name} (a class that is not known): counted as unmeasured": 1}


@pytest.mark.parametrize("name", ["", 5, ["judge_failed"], True])
def test_a_class_that_is_no_text_is_unknown(gym_lab: GymLab, name: object) -> None:
    gym_lab.write([], [failure(0, 0, name)], planned(1, 1))
    (found,) = gym_lab.read().attempts
    assert (found.outcome.kind, present(found.outcome.error).type) == ("unmeasured", "unknown")


def test_the_users_word_is_the_last(gym_lab: GymLab) -> None:
    rows = [
        failure(0, 0, "agent_run_error"),
        failure(0, 1, "judge_failed", reward=0.0),
        failure(0, 2, "shop:closed"),
        failure(0, 3, "provider_oom_killed", _ng_failure_stage="seed"),
    ]
    gym_lab.write([], rows, planned(1, 4))
    outcomes = {
        "agent_run_error": "unmeasured",
        "judge_failed": "scored",
        "shop:closed": "died",
        "provider_oom_killed": "died",
    }
    recordings = gym_lab.read(outcomes=outcomes)
    assert [found.outcome.kind for found in recordings.attempts] == ["unmeasured", "scored", "died", "died"]
    assert recordings.attempts[1].outcome.scores == {"reward": 0.0}
    assert [found.outcome.error and found.outcome.error.phase for found in recordings.attempts] == [
        "agent",
        "verifier",
        "agent",
        "agent",
    ]


def test_scored_without_a_reward_stays_unmeasured(gym_lab: GymLab) -> None:
    gym_lab.write([], [failure(0, 0, "judge_failed")], planned(1, 1))
    assert kinds(gym_lab.read(outcomes={"judge_failed": "scored"})) == {"task-0 0:0": "unmeasured"}


def test_masked_samples_may_be_taken(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0, 0.5, mask_sample=True)])
    (found,) = gym_lab.read(outcomes={"mask_sample": "scored"}).attempts
    assert (found.outcome.kind, found.outcome.scores) == ("scored", {"reward": 0.5})
    assert present(found.outcome.error).type == "mask_sample"


@pytest.mark.parametrize("stage", [*BLAMELESS_STAGES, "agent", None, "elsewhere"])
def test_a_stage_excuses_the_agent_and_never_blames_it(stage: str | None) -> None:
    excused = stage in ("admission", "seed", "verification", "verifier", "cleanup")
    assert judged("agent_run_error", stage, {})[0] == ("unmeasured" if excused else "died")
    assert judged("environment_server_failed", stage, {})[0] == "unmeasured"


@pytest.mark.parametrize(
    "where", [{"_ng_failure_stage": "verification"}, {"_ng_failure_record": {"stage": "verification"}}]
)
def test_the_stage_of_a_row_is_heeded(gym_lab: GymLab, where: dict[str, Any]) -> None:
    rows = [failure(0, 0, "agent_run_error", **where), failure(0, 1, "agent_run_error", _ng_failure_stage=["seed"])]
    gym_lab.write([], rows, planned(1, 2))
    first, second = (found.outcome for found in gym_lab.read().attempts)
    assert (first.kind, present(first.error).phase) == ("unmeasured", "verifier")
    assert present(first.error).message == "the agent's server answered and broke (stage verification)"
    assert second.kind == "died"


def test_a_failure_among_the_results_is_none_of_them(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0, 0.0, _ng_failure_class="judge_failed"), result(0, 1, 0.0)], None, planned(1, 2))
    assert kinds(gym_lab.read()) == {"task-0 0:0": "unmeasured", "task-0 0:1": "scored"}


def test_messages_say_what_the_row_says_and_stay_short(gym_lab: GymLab) -> None:
    full: dict[str, Any] = {
        "_ng_failure_type": "ClientResponseError",
        "_ng_failure_message": "Internal Server Error",
        "_ng_failure_http_status": 500,
        "_ng_failure_stage": "agent",
    }
    rows = [
        failure(0, 0, "agent_run_error", **full),
        failure(0, 1, "agent_run_error"),
        failure(0, 2, "agent_run_error", error_message="x" * 100_000),
        failure(0, 3, "judge_failed", _ng_failure_record={"failure_reason": "Judge \ud800 gone"}),
    ]
    gym_lab.write([], rows, planned(1, 4))
    messages = [present(found.outcome.error).message for found in gym_lab.read().attempts]
    assert messages[0] == "ClientResponseError: Internal Server Error (HTTP 500, stage agent)"
    assert messages[1] == "the agent's server answered and broke"
    assert messages[2] == "x" * 2000 + " [... 98000 more characters]"
    assert messages[3] == "Judge \ufffd gone"


def test_a_misspelt_class_is_told(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0)])
    with pytest.raises(RecordingError) as caught:
        gym_lab.read(outcomes={"agent_run_eror": "unmeasured"})
    assert caught.value.message == "runner.outcomes: 'agent_run_eror' is no failure class that is known or occurs"
    assert caught.value.remedy == "'agent_run_error' is"
    assert gym_lab.read(outcomes={"shop:closed": "died"}).attempts
