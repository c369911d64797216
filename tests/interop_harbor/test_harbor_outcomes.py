"""What a trial's result.json says about the attempt."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.contracts import Outcome
from pytest_metricbench.interop.harbor.exceptions import RULES, rule_for, rules_version
from pytest_metricbench.interop.harbor.results import HarborResultError, trial_outcome
from tests.interop_harbor.harbor_lab import IN_AGENT, IN_VERIFIER, VERIFIER_TIMES, error, result, step

ONE, ZERO = {"reward": 1.0}, {"reward": 0.0}


def outcome(*args: Any, version: str = "0.26.0", overrides: Any = None, **more: Any) -> Outcome:
    return trial_outcome(result(*args, **more), version=version, overrides=overrides)


def brief(found: Outcome) -> tuple[str, dict[str, Any], str | None, str | None]:
    named = (None, None) if found.error is None else (found.error.type, found.error.phase)
    return (found.kind, dict(found.scores), *named)


class TestRewards:
    def test_they_are_the_scores_as_given(self) -> None:
        found = outcome({"reward": 1.0, "steps": 3, "ok": True, "loss": -0.5})
        assert brief(found) == ("scored", {"reward": 1.0, "steps": 3, "ok": True, "loss": -0.5}, None, None)
        assert [type(value) for value in found.scores.values()] == [float, int, bool, float]
        assert found.trial_name == "alpha__1234567"

    def test_nan_is_a_score_that_never_passes(self) -> None:
        value = outcome({"reward": math.nan}).scores["reward"]
        assert isinstance(value, float)
        assert math.isnan(value)

    @pytest.mark.parametrize(
        ("value", "said"),
        [
            (None, "the reward 'reward' is null; a number is expected"),
            ("1.0", "the reward 'reward' is the text \"1.0\"; a number is expected"),
            ([1], "the reward 'reward' is a list [1]; a number is expected"),
            (10**400, "score 'reward' has 401 digits; a number up to 1e308 is expected"),
        ],
    )
    def test_what_is_no_number_is_not_measured(self, value: object, said: str) -> None:
        found = outcome({"reward": value})
        assert brief(found) == ("unmeasured", {}, "InvalidReward", "verifier")
        assert found.error is not None
        assert found.error.message == said

    def test_a_name_that_no_score_can_have(self) -> None:
        said = " is no name of a reward; a text of 1 to 200 characters is expected"
        messages = []
        for name in ("", "x" * 201):
            found = outcome({name: 1.0})
            assert brief(found) == ("unmeasured", {}, "InvalidReward", "verifier")
            assert found.error is not None
            messages.append(found.error.message)
        assert messages[0] == f'the text ""{said}'
        assert messages[1] == f"a text of 201 characters{said}"
        assert outcome({"x" * 200: 1.0}).scores == {"x" * 200: 1.0}

    def test_one_bad_reward_of_several_is_left_out_and_said(self) -> None:
        found = outcome({"reward": 1.0, "style": None})
        assert brief(found) == ("scored", ONE, "InvalidReward", "verifier")

    @pytest.mark.parametrize("rewards", [None, {}])
    def test_without_rewards_and_exception_nothing_is_known(self, rewards: object) -> None:
        found = outcome(rewards)
        assert brief(found) == ("unmeasured", {}, "NoReward", "verifier")
        assert found.error is not None
        message = "the trial has neither rewards nor an exception; was its verification disabled?"
        assert found.error.message == message


class TestExceptions:
    """The table, one event at a time. What Harbor's versions do differently must not differ here."""

    @pytest.mark.parametrize("rewards", [ONE, ZERO])
    def test_an_agent_out_of_time_that_was_verified_is_scored(self, rewards: dict[str, float]) -> None:
        assert brief(outcome(rewards, error("AgentTimeoutError"))) == ("scored", rewards, "AgentTimeoutError", "agent")

    def test_an_agent_out_of_time_that_was_not_verified_died(self) -> None:
        assert brief(outcome(None, error("AgentTimeoutError"))) == ("died", {}, "AgentTimeoutError", "agent")

    def test_a_crash_died_in_both_versions(self) -> None:
        """0.25 gives no reward after an agent's RuntimeError, 0.26 verifies what it left and gives a zero."""
        older = outcome(None, error("RuntimeError"), version="0.25.0")
        newer = outcome(ZERO, error("RuntimeError"), version="0.26.0")
        assert brief(older) == brief(newer) == ("died", {}, "RuntimeError", "agent")

    @pytest.mark.parametrize("kind", ["RuntimeError", "NonZeroAgentExitCodeError"])
    def test_a_crash_after_the_work_was_done_is_scored(self, kind: str) -> None:
        assert brief(outcome({"reward": 0.3}, error(kind))) == ("scored", {"reward": 0.3}, kind, "agent")

    @pytest.mark.parametrize("kind", ["RuntimeError", "NonZeroAgentExitCodeError", "AgentTimeoutError"])
    def test_before_the_agent_began_it_is_not_its_fault(self, kind: str) -> None:
        found = outcome(None, error(kind), agent_execution=None)
        assert brief(found) == ("unmeasured", {}, kind, "setup")

    def test_a_trial_that_was_verified_again_keeps_the_agents_error(self) -> None:
        """Harbor's regrade copies it from the first trial, and no time of the agent's."""
        found = outcome({"reward": 0.0}, error("AgentTimeoutError"), agent_execution=None)
        assert brief(found) == ("scored", ZERO, "AgentTimeoutError", "agent")

    def test_in_the_verifier_it_is_not_the_agents_fault(self) -> None:
        found = outcome(None, error("RuntimeError", IN_VERIFIER), verifier=VERIFIER_TIMES)
        assert brief(found) == ("unmeasured", {}, "RuntimeError", "verifier")

    def test_after_the_verifier_the_rewards_stand(self) -> None:
        found = outcome(ZERO, error("OSError", IN_VERIFIER))
        assert brief(found) == ("scored", ZERO, "OSError", "verifier")

    @pytest.mark.parametrize(("version", "kind"), [("0.25.0", "scored"), ("0.26.0", "died")])
    def test_without_times_the_version_says_when_it_was(self, version: str, kind: str) -> None:
        """Up to 0.25 no verifier runs after an unknown exception: where there is a reward, it came first."""
        found = outcome(ZERO, error("RuntimeError", None), version=version)
        assert found.kind == kind

    @pytest.mark.parametrize("rewards", [None, ZERO, ONE])
    @pytest.mark.parametrize(
        "kind",
        sorted(name for name, rule in RULES.items() if rule.blame not in ("limit", "crash")),
    )
    def test_everything_that_is_not_the_agent_is_not_measured(
        self, kind: str, rewards: dict[str, float] | None
    ) -> None:
        assert brief(outcome(rewards, error(kind)))[:3] == ("unmeasured", {}, kind)

    def test_a_limit_with_a_verifier_that_failed_died(self) -> None:
        found = outcome(None, error("AgentTimeoutError"), verifier=VERIFIER_TIMES)
        assert found.kind == "died"

    @given(
        st.sampled_from([*RULES, "RuntimeError"]),
        st.sampled_from([None, {"reward": 0.0}, {"reward": 0.5}, {"reward": -1}]),
        st.sampled_from([IN_AGENT, IN_VERIFIER]),
        st.booleans(),
    )
    def test_with_times_both_versions_say_the_same(self, kind: str, rewards: Any, at: str, began: bool) -> None:
        times = {} if began or rewards is not None else {"agent_execution": None}
        first, second = (outcome(rewards, error(kind, at), version=version, **times) for version in ("0.20", "0.26"))
        assert first == second
        assert first.kind != "scored" or rewards is not None

    def test_the_message_is_kept_and_shortened(self) -> None:
        found = outcome(None, error("RuntimeError", exception_message="x" * 3000))
        assert found.error is not None
        assert found.error.message == "x" * 2000 + " [... 1000 more characters]"

    def test_harbors_own_override_is_heeded(self) -> None:
        invalid = error("AgentTimeoutError", policy_override={"has_valid_reward": False})
        valid = error("ApiError", policy_override={"has_valid_reward": True})
        assert outcome(ZERO, invalid).kind == "unmeasured"
        assert brief(outcome(ZERO, valid))[:2] == ("scored", ZERO)


class TestOverrides:
    @pytest.mark.parametrize(
        ("treatment", "rewards", "kind"),
        [
            ("died", ONE, "died"),
            ("unmeasured", ONE, "unmeasured"),
            ("scored", ONE, "scored"),
            ("scored", ZERO, "scored"),
            ("scored", None, "died"),
        ],
    )
    def test_they_go_over_the_table(self, treatment: str, rewards: dict[str, float] | None, kind: str) -> None:
        assert outcome(rewards, error("RuntimeError"), overrides={"RuntimeError": treatment}).kind == kind

    def test_an_infrastructure_error_may_be_declared_scored(self) -> None:
        assert outcome(ZERO, error("ApiError"), overrides={"ApiError": "scored"}).kind == "scored"
        assert outcome(None, error("ApiError"), overrides={"ApiError": "scored"}).kind == "unmeasured"

    def test_setup_too(self) -> None:
        found = outcome(None, error("ValueError"), agent_execution=None, overrides={"ValueError": "died"})
        assert brief(found) == ("died", {}, "ValueError", "agent")


class TestSteps:
    def steps(self, *steps: dict[str, Any], rewards: Any = ONE, **more: Any) -> Outcome:
        whole = result(rewards, step_results=list(steps), **more)
        return trial_outcome({**whole, "agent_execution": None, "verifier": None}, version="0.26.0")

    def test_their_rewards_are_scores_of_their_own(self) -> None:
        found = self.steps(step("one", {"reward": 1.0}), step("two", {"reward": 0.5, "x": 2}), rewards={"reward": 0.75})
        assert found.scores == {
            "reward": 0.75,
            "step.one.reward": 1.0,
            "step.two.reward": 0.5,
            "step.two.x": 2,
        }

    def test_a_crash_in_a_step_is_seen_although_harbor_says_1(self) -> None:
        """A step without a reward is not in Harbor's mean: one of two steps makes a whole."""
        found = self.steps(step("one", ONE), step("two", None, error("RuntimeError")))
        assert brief(found) == ("died", {}, "RuntimeError", "agent")

    def test_a_verifier_that_failed_in_a_step_leaves_it_unmeasured(self) -> None:
        failed = step("two", None, error("RewardFileNotFoundError"), verifier=VERIFIER_TIMES)
        assert brief(self.steps(step("one", ONE), failed))[:3] == ("unmeasured", {}, "RewardFileNotFoundError")

    def test_a_step_out_of_time_with_a_reward_is_scored(self) -> None:
        found = self.steps(step("one", ONE), step("two", ZERO, error("AgentTimeoutError")), rewards={"reward": 0.5})
        assert found.kind == "scored"
        assert found.error is not None
        assert found.error.type == "AgentTimeoutError"

    def test_what_is_not_measured_outweighs_what_died(self) -> None:
        found = self.steps(step("one", None, error("RuntimeError")), step("two", None, error("ApiError")))
        assert brief(found)[:3] == ("unmeasured", {}, "ApiError")

    def test_an_exception_between_the_steps_is_no_crash_of_the_agent(self) -> None:
        found = self.steps(step("one", ONE), rewards=None, exception=error("RuntimeError"))
        assert brief(found) == ("unmeasured", {}, "RuntimeError", "setup")


class TestForm:
    @pytest.mark.parametrize(
        ("change", "said"),
        [
            ({"trial_name": None}, "trial_name is null; a text is expected"),
            ({"task_name": 3}, "task_name is the number 3; a text is expected"),
            ({"verifier_result": [1]}, "verifier_result is a list [1]; a mapping or null is expected"),
            (
                {"verifier_result": {"rewards": 1.0}},
                "verifier_result.rewards is the number 1.0; a mapping or null is expected",
            ),
            ({"exception_info": {}}, "exception_info.exception_type is null; a text is expected"),
            ({"exception_info": "boom"}, 'exception_info is the text "boom"; a mapping or null is expected'),
            ({"step_results": {}}, "step_results is not a list of mappings"),
            ({"step_results": [1]}, "step_results is not a list of mappings"),
        ],
    )
    def test_another_form_is_refused(self, change: dict[str, Any], said: str) -> None:
        with pytest.raises(HarborResultError) as refusal:
            trial_outcome({**result(ONE), **change})
        assert str(refusal.value) == said

    def test_a_list_is_no_result(self) -> None:
        with pytest.raises(HarborResultError, match=r"^it is a list"):
            trial_outcome([])  # type: ignore[arg-type]

    def test_times_without_a_zone_are_not_compared(self) -> None:
        found = outcome(None, error("RuntimeError", "2026-01-01T00:00:05"))
        assert found.kind == "died"

    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
            max_leaves=6,
        ),
        st.sampled_from(
            ["trial_name", "verifier_result", "exception_info", "step_results", "agent_execution", "verifier"]
        ),
    )
    def test_no_content_is_more_than_refused(self, value: Any, key: str) -> None:
        try:
            found = trial_outcome({**result(ONE, error("RuntimeError")), key: value})
        except HarborResultError:
            return
        assert found.kind in ("scored", "died", "unmeasured")
        assert (found.kind == "scored") == bool(found.scores)
        assert found.kind == "scored" or found.error is not None


class TestTable:
    def test_an_unknown_type_is_a_crash(self) -> None:
        assert rule_for("ZeroDivisionError").blame == "crash"
        assert rule_for("ZeroDivisionError").without_reward == "died"

    @pytest.mark.parametrize(
        ("version", "rules"),
        [("0.20.1", "0.25"), ("0.25.0", "0.25"), ("0.26.0", "0.26"), ("1.0", "0.26"), (None, "0.26"), ("?", "0.26")],
    )
    def test_which_rules_a_version_follows(self, version: str | None, rules: str) -> None:
        assert rules_version(version) == rules

    def test_no_rule_makes_a_zero_of_an_infrastructure_failure(self) -> None:
        for rule in RULES.values():
            if rule.blame in ("environment", "provider", "configuration", "verifier", "cancelled"):
                assert (rule.with_reward, rule.without_reward) == ("unmeasured", "unmeasured")
