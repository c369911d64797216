"""What evaluator bundles are read as."""

import math
from typing import Any

import pytest

from pytest_metricbench.interop.nemo.bundles import read
from pytest_metricbench.interop.nemo.outcomes import DECISIONS, Decision
from pytest_metricbench.interop.recordings import ReadOptions
from tests.interop_nemo.bundle_lab import (
    MISSING,
    SAMPLES,
    Lab,
    MetricFailedError,
    Trial,
    diagnostic,
    edit_json,
    edit_row,
    notes,
    told,
)

NOT_ZERO: Decision = "crash scored as zero unmeasured"
KEYWORDS = "keyword_match.score"
HARBOR = {"harbor_reward.reward": "ContinuousScore"}


def harbor(reward: float | None, scored: float, error: str | None = None, **details: Any) -> Trial:
    """A trial as the SDK makes it of one of Harbor's: never failed, and 0.0 where there is no reward."""
    is_complete = error is None and reward is not None
    return Trial(
        "t",
        f"t__{reward}{scored}{error}",
        {"harbor_reward.reward": scored},
        "completed" if is_complete else "partial",
        None if error is None else (error, "it broke"),
        {"harbor_primary_reward_key": "reward", "reward": reward, "reward_details": {}},
        {"runtime_sec": 3.5},
        **details,
    )


# ---------------------------------------------------------------- the sample


def test_the_sample_is_read_whole() -> None:
    """4 tasks of 3 trials: one died, one judge raised, one errored and passed."""
    found = read({"geo": SAMPLES / "geo"}, ReadOptions("geo"))
    assert [(one.variant, one.task) for one in found.attempts] == [
        ("baseline", task)
        for task in ("capital-france", "capital-japan", "capital-italy", "capital-spain")
        for _ in "123"
    ]
    by_id = {one.trial: told(one) for one in found.attempts}
    ok = {"judge.verdict": "ok", KEYWORDS: 1.0, "steps.count": 3}
    assert by_id["capital-france__7f3a9cQ"] == ("scored", None, ok)
    assert type(ok["steps.count"]) is type(by_id["capital-france__7f3a9cQ"][2]["steps.count"]) is int
    assert by_id["capital-japan__1b8e42Z"] == ("died", "AgentTimeoutError", {})
    assert by_id["capital-italy__1b8e42Z"] == ("scored", "TimeoutError", {"judge.verdict": "bad", "steps.count": 1})
    errored = by_id["capital-spain__7f3a9cQ"]
    assert errored == ("scored", "RuntimeError", {"judge.verdict": "bad", KEYWORDS: 1.0, "steps.count": 1})
    assert [one.outcome.trial_name for one in found.attempts] == [one.trial for one in found.attempts]
    assert notes(found) == {
        "failed trial (value null): died": 1,
        "trial with a metric that failed: no entry for its scores": 1,
        "trial with an error whose scores stand": 1,
    }
    assert sorted(found.files) == [
        f"geo/{name}"
        for name in ("metadata.json", "run.json", "scores.jsonl", "summary.json", "tasks.jsonl", "trials.jsonl")
    ]


def test_the_error_says_where_it_came_from() -> None:
    found = read({"geo": SAMPLES / "geo"}, ReadOptions("geo"))
    errors = {one.trial: one.outcome.error for one in found.attempts if one.outcome.error is not None}
    italy, spain = errors["capital-italy__1b8e42Z"], errors["capital-spain__7f3a9cQ"]
    assert (italy.phase, italy.message) == ("verifier", "the metric keyword_match failed: judge timed out")
    assert (spain.phase, spain.message) == ("agent", "teardown failed")


def test_measurements_of_scored_trials_are_scores_of_that_kind() -> None:
    found = read({"geo": SAMPLES / "geo"}, ReadOptions("geo"))
    first = found.attempts[0].outcome.scores
    assert (first["measurements.total_tokens"], first["measurements.runtime_sec"]) == (13, 0.5)
    assert "measurements.cost_usd" not in first
    assert found.tasks["capital-france"].outputs == {
        KEYWORDS: "continuous",
        "steps.count": "discrete",
        "judge.verdict": "label",
        "measurements.prompt_tokens": "measurement",
        "measurements.completion_tokens": "measurement",
        "measurements.total_tokens": "measurement",
        "measurements.runtime_sec": "measurement",
    }
    assert found.tasks["capital-france"].description == "geography"


# ---------------------------------------------------------------- three things that look alike


@pytest.mark.parametrize(
    ("trial", "expected", "decision"),
    [
        (harbor(1.0, 1.0), ("scored", None, 1.0), None),
        (harbor(0.0, 0.0), ("scored", None, 0.0), None),
        (harbor(None, 0.0, "AgentTimeoutError"), ("died", "AgentTimeoutError", None), "crash scored as zero died"),
        (harbor(None, 0.0, "RuntimeError"), ("died", "RuntimeError", None), "crash scored as zero died"),
        (harbor(None, 0.0, "VerifierTimeoutError"), ("unmeasured", "VerifierTimeoutError", None), NOT_ZERO),
        (harbor(None, 0.0, "ApiRateLimitError"), ("unmeasured", "ApiRateLimitError", None), NOT_ZERO),
        (harbor(None, 0.0), ("unmeasured", "NoReward", None), "zero without a reward dropped"),
        (harbor(0.0, 0.0, "AgentTimeoutError"), ("scored", "AgentTimeoutError", 0.0), "errored trial scored"),
        (harbor(1.0, 1.0, "AgentTimeoutError"), ("scored", "AgentTimeoutError", 1.0), "errored trial scored"),
        (harbor(1.0, 1.0, "RuntimeError"), ("scored", "RuntimeError", 1.0), "errored trial scored"),
        (harbor(0.0, 0.0, "RuntimeError"), ("died", "RuntimeError", None), "errored trial died"),
        (harbor(0.0, 0.0, "ApiRateLimitError"), ("unmeasured", "ApiRateLimitError", None), "errored trial unmeasured"),
    ],
)  # fmt: skip
def test_a_zero_of_harbor_is_what_its_error_makes_of_it(
    lab: Lab, trial: Trial, expected: tuple[str, str | None, float | None], decision: Decision | None
) -> None:
    lab.bundle("b", [trial], HARBOR)
    found = lab.read("b")
    kind, error, scores = told(found.attempts[0])
    assert (kind, error, scores.get("harbor_reward.reward")) == expected
    assert notes(found) == ({} if decision is None else {DECISIONS[decision].replace("{s}", ""): 1})


def test_an_unknown_exception_before_the_agent_ran_is_no_death(lab: Lab) -> None:
    """Harbor's adapter writes a run time wherever the agent ran."""
    trial = harbor(None, 0.0, "RuntimeError")
    trial.measurements = {"runtime_sec": None}
    lab.bundle("b", [trial], HARBOR)
    assert told(lab.read("b").attempts[0])[:2] == ("unmeasured", "RuntimeError")


def test_a_rejected_reward_is_known_by_its_diagnostic(lab: Lab) -> None:
    """As for metadata that somebody else wrote: the metric says itself that nothing was measured."""
    said = [diagnostic("harbor_reward", "not measured", {"output": "reward", "reason": "non_numeric"})]
    trial = Trial("t", "t__1", {"harbor_reward.reward": 0.0}, diagnostics=said)
    lab.bundle("b", [trial], HARBOR)
    assert told(lab.read("b").attempts[0])[:2] == ("unmeasured", "NoReward")


def test_other_rewards_stand_where_the_primary_one_is_missing(lab: Lab) -> None:
    """The primary one is known by its key; as in Harbor's own files, the others are what they are."""
    trial = harbor(None, 0.0)
    trial.metadata = {"harbor_primary_reward_key": "tests", "reward": None}
    trial.scores = {"harbor_reward.tests": 0.0, "harbor_reward.style": 0.0}
    lab.bundle("b", [trial], {"harbor_reward.tests": "ContinuousScore", "harbor_reward.style": "ContinuousScore"})
    assert told(lab.read("b").attempts[0]) == ("scored", "NoReward", {"harbor_reward.style": 0.0})


@pytest.mark.parametrize(
    ("error", "metadata", "expected"),
    [
        (("AgentTimeoutError", "x"), {}, ("died", "AgentTimeoutError")),
        (("SomethingElse", "x"), {}, ("died", "SomethingElse")),
        (("ResilienceMaxAttemptsExceededError", "x"), {}, ("unmeasured", "ResilienceMaxAttemptsExceededError")),
        (("SandboxCreateError", "x"), {}, ("unmeasured", "SandboxCreateError")),
        (("VerifierTimeoutError", "x"), {}, ("unmeasured", "VerifierTimeoutError")),
        (None, {"error_type": "FabricImageError", "error": "x"}, ("unmeasured", "FabricImageError")),
        (None, {"error": "KeyError: 'city'"}, ("died", "KeyError")),
        (None, {"error": "no colon here"}, ("died", "TrialFailed")),
        (None, {"gym_failure": "the agent produced no output"}, ("unmeasured", "GymFailure")),
        (None, {"gym_failure": None}, ("unmeasured", "GymFailure")),
        (None, {}, ("died", "TrialFailed")),
    ],
)
def test_a_failed_trial_died_unless_its_error_says_otherwise(
    lab: Lab, error: tuple[str, str] | None, metadata: dict[str, Any], expected: tuple[str, str]
) -> None:
    lab.bundle("b", [Trial("t", "t:x", {}, "failed", error, metadata)])
    assert told(lab.read("b").attempts[0])[:2] == expected


def test_what_becomes_of_an_error_can_be_said(lab: Lab) -> None:
    lab.bundle("b", [Trial("t", "1", {}, "failed", ("SomethingElse", "x")), Trial("t", "2", {}, "failed")])
    outcomes = {"SomethingElse": "unmeasured", "TrialFailed": "unmeasured"}
    assert {told(one)[0] for one in lab.read("b", outcomes=outcomes).attempts} == {"unmeasured"}


def test_a_failed_metric_has_no_entry(lab: Lab) -> None:
    schemas = {"m.s": "ContinuousScore", "n.s": "ContinuousScore"}
    trials = [
        Trial("t", "1", {"m.s": MetricFailedError("judge timed out"), "n.s": 1.0}),
        Trial("t", "2", {"m.s": MetricFailedError("judge timed out"), "n.s": MetricFailedError("too")}),
        Trial("t", "3", {"m.s": MISSING, "n.s": 0.5}),
        Trial(
            "t",
            "4",
            {"m.s": MetricFailedError("judge timed out"), "n.s": MetricFailedError("too")},
            "partial",
            ("RuntimeError", "x"),
        ),
    ]
    lab.bundle("b", trials, schemas)
    assert [told(one) for one in lab.read("b").attempts] == [
        ("scored", "TimeoutError", {"n.s": 1.0}),
        ("unmeasured", "TimeoutError", {}),
        ("scored", None, {"n.s": 0.5}),
        ("unmeasured", "TimeoutError", {}),
    ]


def test_an_errored_trial_of_another_runner_keeps_what_its_metrics_measured(lab: Lab) -> None:
    schemas = {"m.s": "ContinuousScore", "steps.count": "DiscreteScore"}
    error = ("RuntimeError", "teardown failed")
    trials = [
        Trial("t", "1", {"m.s": 1.0, "steps.count": 4}, "partial", error),
        Trial("t", "2", {"m.s": 0.0, "steps.count": 4}, "partial", error),
        Trial("t", "3", {"m.s": 0.0, "steps.count": 4}, "partial", ("AgentTimeoutError", "x")),
    ]
    lab.bundle("b", trials, schemas)
    found = [told(one) for one in lab.read("b").attempts]
    assert found == [
        ("scored", "RuntimeError", {"m.s": 1.0, "steps.count": 4}),
        ("died", "RuntimeError", {}),  # steps are no success
        ("scored", "AgentTimeoutError", {"m.s": 0.0, "steps.count": 4}),
    ]


# ---------------------------------------------------------------- values


def test_values_keep_their_types(lab: Lab) -> None:
    schemas = {
        "m.f": "ContinuousScore", "m.i": "DiscreteScore", "m.b": "BooleanValue", "m.l": "Label", "m.n": "Label",
    }  # fmt: skip
    lab.bundle("b", [Trial("t", "1", {"m.f": 1.0, "m.i": 3, "m.b": True, "m.l": "yes", "m.n": "NaN"})], schemas)
    scores = lab.read("b").attempts[0].outcome.scores
    assert {name: (type(value), value) for name, value in scores.items()} == {
        "m.f": (float, 1.0), "m.i": (int, 3), "m.b": (bool, True), "m.l": (str, "yes"), "m.n": (str, "NaN"),
    }  # fmt: skip


def test_numbers_that_are_not_finite(lab: Lab) -> None:
    """``scores.jsonl`` has null for an infinite number; the summary has them all."""
    values = [math.nan, math.inf, -math.inf, 0.5]
    lab.bundle("b", [Trial("t", str(n), {"m.s": value}) for n, value in enumerate(values)])
    found = [one.outcome.scores["m.s"] for one in lab.read("b").attempts]
    assert [str(value) for value in found] == ["nan", "inf", "-inf", "0.5"]


@pytest.mark.parametrize("known", ["m.s", "m.l"])
def test_a_bundle_without_value_types(lab: Lab, known: str) -> None:
    """As before they existed: the three escapes are numbers, any other text is a label."""
    schemas = {"m.s": "ContinuousScore", "m.l": "Label"}
    folder = lab.bundle("b", [Trial("t", "1", {"m.s": math.nan, "m.l": "ok"})], schemas)
    entries = {"m.s": [{"trial_id": "1", "value": "NaN"}], "m.l": [{"trial_id": "1", "value": "ok"}]}
    edit_json(folder / "summary.json", task_metric_values={"t": entries})
    assert str(lab.read("b").attempts[0].outcome.scores[known]) == {"m.s": "nan", "m.l": "ok"}[known]


def test_equal_ids_are_attempts_of_their_own(lab: Lab) -> None:
    """Also where a metric failed for the one and not for the other, and where one is infinite."""
    schemas = {"m.s": "ContinuousScore", "n.s": "ContinuousScore"}
    trials = [
        Trial("t", "same", {"m.s": MetricFailedError("x"), "n.s": 0.25}),
        Trial("t", "same", {"m.s": math.inf, "n.s": MetricFailedError("x")}),
        Trial("t", "same", {"m.s": 0.5, "n.s": 0.75}),
        Trial("t", "same", {}, "failed", ("AgentTimeoutError", "x")),
    ]
    lab.bundle("b", trials, schemas)
    found = lab.read("b")
    assert [told(one) for one in found.attempts] == [
        ("scored", "TimeoutError", {"n.s": 0.25}),
        ("scored", "TimeoutError", {"m.s": math.inf}),
        ("scored", None, {"m.s": 0.5, "n.s": 0.75}),
        ("died", "AgentTimeoutError", {}),
    ]
    assert notes(found)["trials whose id another trial of their task has in the same bundle: each counts"] == 3


def test_equal_ids_in_several_bundles_are_attempts_of_their_own(lab: Lab) -> None:
    for name in ("run-1", "run-2", "run-3"):
        lab.bundle(name, [Trial("t", "t:model", {"m.s": float(name[-1])})], labels={"variant": "baseline"})
    found = lab.read()
    assert [(one.variant, one.trial, one.origin, one.outcome.scores["m.s"]) for one in found.attempts] == [
        ("baseline", "t:model", f"runs/run-{n}", float(n)) for n in (1, 2, 3)
    ]


def test_exclusions_belong_to_a_task(lab: Lab) -> None:
    """An output that is a model or a label in one task and a number in another stays in the second."""
    schemas = {
        "a": {"m.s": "TokenCount", "n.s": "ContinuousScore"},
        "b": {"m.s": "ContinuousScore", "n.s": "Label"},
        "c": {"m.s": "Label", "n.s": "DiscreteScore"},
    }
    trials = [
        Trial("a", "1", {"m.s": {"count": 3}, "n.s": 1.0}),
        Trial("a", "2", {"m.s": 7, "n.s": 1.0}),
        Trial("b", "3", {"m.s": 0.5, "n.s": "fine"}),
        Trial("c", "4", {"m.s": "good", "n.s": 2}),
    ]
    lab.bundle("b", trials, schemas)
    found = lab.read("b")
    assert [told(one)[2] for one in found.attempts] == [
        {"n.s": 1.0}, {"n.s": 1.0}, {"m.s": 0.5, "n.s": "fine"}, {"m.s": "good", "n.s": 2},
    ]  # fmt: skip
    assert {name: dict(task.outputs) for name, task in found.tasks.items()} == {
        "a": {"n.s": "continuous"},
        "b": {"m.s": "continuous", "n.s": "label"},
        "c": {"m.s": "label", "n.s": "discrete"},
    }
    assert notes(found) == {"outputs of tasks that are models: kept out": 1}


def test_a_reward_that_is_a_text_is_not_measured(lab: Lab) -> None:
    lab.bundle("b", [Trial("t", "1", {"m.s": "0.9"}), Trial("t", "2", {"m.s": 0.9})])
    found = lab.read("b")
    assert [told(one)[:2] for one in found.attempts] == [("unmeasured", "NotScored"), ("scored", None)]
    assert notes(found) == {"texts where a number or a boolean is declared: not measured": 1}


def test_a_value_that_is_not_of_its_kind_is_kept_and_no_kind_claimed(lab: Lab) -> None:
    """The SDK checks values against their schema and keeps them as they were."""
    schemas = {"m.b": "BooleanValue", "m.i": "DiscreteScore", "m.f": "ContinuousScore"}
    lab.bundle("b", [Trial("t", "1", {"m.b": 1, "m.i": 0.5, "m.f": True})], schemas)
    found = lab.read("b")
    assert told(found.attempts[0])[2] == {"m.b": 1, "m.i": 0.5, "m.f": True}
    assert dict(found.tasks["t"].outputs) == {}


# ---------------------------------------------------------------- older bundles


def test_the_shape_before_the_release(lab: Lab) -> None:
    """No types, no labels, no errors in the summary: types and labels come from ``scores.jsonl``."""
    schemas = {"m.s": "ContinuousScore", "m.i": "DiscreteScore", "m.b": "BooleanValue", "m.l": "Label"}
    trials = [
        Trial("t", "1", {"m.s": 0.5, "m.i": 3, "m.b": True, "m.l": "ok"}, measurements=None),
        Trial("t", "2", {}, "failed", measurements=None),
    ]
    lab.bundle("b", trials, schemas, shape="task_metric_attempts", errors=False)
    found = lab.read("b")
    assert [told(one) for one in found.attempts] == [
        ("scored", None, {"m.s": 0.5, "m.i": 3, "m.b": True, "m.l": "ok"}),
        ("died", "TrialFailed", {}),
    ]
    assert [type(value) for value in found.attempts[0].outcome.scores.values()] == [bool, int, str, float]
    assert notes(found) == {
        "failed trial (value null): died": 1,
        "bundles in the shape before the release (task_metric_attempts)": 1,
        "bundles that record no errors of trials: a crash scored 0.0 counts as a zero there": 1,
    }


def test_errors_of_the_summary_stand_in_for_trials_without_a_place_for_one(lab: Lab) -> None:
    trials = [Trial("t", "same", {}, "failed"), Trial("t", "same", {}, "failed"), Trial("t", "x", {}, "failed")]
    folder = lab.bundle("b", trials, errors=False)
    ids = {"AgentTimeoutError": ["same"], "ResilienceError": ["same"]}
    edit_json(folder / "summary.json", error_trial_ids=ids, error_count=2)
    assert [told(one)[:2] for one in lab.read("b").attempts] == [
        ("died", "AgentTimeoutError"), ("unmeasured", "ResilienceError"), ("died", "TrialFailed"),
    ]  # fmt: skip


def test_a_zero_beside_an_error_is_doubted_where_no_reward_is_kept(lab: Lab) -> None:
    trials = [
        Trial("t", "1", {"harbor_reward.reward": 0.0}, "partial", ("AgentTimeoutError", "x")),
        Trial("t", "2", {"harbor_reward.reward": 0.0}, "partial"),
        Trial("t", "3", {"harbor_reward.reward": 0.0}),
        Trial("t", "4", {"harbor_reward.reward": 1.0}, "partial", ("AgentTimeoutError", "x")),
    ]
    lab.bundle("b", trials, HARBOR)
    assert [told(one)[:2] for one in lab.read("b").attempts] == [
        ("died", "AgentTimeoutError"), ("unmeasured", "NoReward"), ("scored", None), ("scored", "AgentTimeoutError"),
    ]  # fmt: skip


def test_keys_of_a_newer_version_are_counted_and_ignored(lab: Lab) -> None:
    folder = lab.bundle("b", [Trial("t", "1", {"m.s": 1.0}), Trial("t", "2", {"m.s": 1.0})])
    for number in (1, 2):
        edit_row(folder / "trials.jsonl", number, seed=3)
    edit_json(folder / "summary.json", p_value=0.5)
    assert notes(lab.read("b")) == {
        "unknown key 'p_value' in summary.json: ignored": 1,
        "unknown key 'seed' of a trial: ignored": 2,
    }


# ---------------------------------------------------------------- what is missing


def test_planned_trials_that_are_not_there_are_missing(lab: Lab) -> None:
    """Harbor's broken results leave no trial: only the number that was asked for says it."""
    target = {"name": "harbor", "kind": "runner", "config": {"n_attempts": 3}}
    trials = [Trial("a", "1", {"m.s": 1.0}), *(Trial("b", str(n), {"m.s": 1.0}) for n in range(4))]
    lab.bundle("b", trials, target=target, tasks=["a", "b", "c"])
    found = lab.read("b")
    kinds = [(one.task, told(one)[1]) for one in found.attempts]
    assert kinds.count(("a", "NotRecorded")) == 2
    assert kinds.count(("c", "NotRecorded")) == 3
    assert kinds.count(("b", None)) == 4
    assert notes(found) == {
        "planned trials that are not in their bundle: missing": 5,
        "trials beyond those planned for their task: each counts": 1,
    }
    missing = next(one for one in found.attempts if one.task == "a" and one.trial == "")
    assert missing.outcome.error is not None
    assert missing.outcome.error.message == "trial 2 of 3 of the task a is not in b"


def test_a_task_that_nobody_ran_is_missing_once(lab: Lab) -> None:
    lab.bundle("b", [Trial("a", "1", {"m.s": 1.0})], tasks=["a", "b"])
    assert [(one.task, told(one)[1]) for one in lab.read("b").attempts] == [("a", None), ("b", "NotRecorded")]


# ---------------------------------------------------------------- a bundle of the SDK with everything in it

CRASHES = {
    "refund__aaa": ("scored", None),
    "refund__bbb": ("scored", None),
    "refund__ccc": ("died", "AgentTimeoutError"),
    "refund__ddd": ("unmeasured", "RewardFileNotFoundError"),
    "cancel__eee": ("died", "AgentTimeoutError"),
}


def test_crashes_of_harbor_as_the_sdk_writes_them() -> None:
    """``samples/crashes`` has 0.0 for five trials: one is a zero, two died, two were never measured."""
    found = read({"crashes": SAMPLES / "crashes"}, ReadOptions("orders"))
    by_id = {one.trial: told(one)[:2] for one in found.attempts}
    assert {trial: by_id[trial] for trial in CRASHES} == CRASHES
    same = [told(one) for one in found.attempts if one.trial == "cancel__same"]
    assert same == [
        ("scored", "RuntimeError", {"harbor_reward.reward": 1.0, "checks.tidy": False}),
        ("scored", "TimeoutError", {"harbor_reward.reward": 0.0}),
        ("scored", "NoReward", {"checks.ratio": -math.inf, "checks.steps": 0}),
    ]
    values = {one.trial: told(one)[2] for one in found.attempts}
    whole = {"checks.ratio": 0.5, "checks.steps": 3, "checks.tidy": True, "checks.tone": "kind"}
    assert values["refund__aaa"] == {**whole, "harbor_reward.reward": 1.0}
    assert math.isnan(values["refund__bbb"]["checks.ratio"])
    assert values["refund__bbb"]["checks.tone"] == "NaN"
    assert notes(found) == {
        DECISIONS["crash scored as zero died"].replace("{s}", ""): 1,
        DECISIONS["crash scored as zero unmeasured"].replace("{s}", ""): 1,
        DECISIONS["errored trial scored"].replace("{s}", ""): 1,
        DECISIONS["failed trial died"].replace("{s}", ""): 1,
        DECISIONS["metric failed"].replace("{s}", ""): 1,
        DECISIONS["zero without a reward dropped"].replace("{s}", ""): 1,
        "outputs of tasks that are models: kept out": 2,
        "trials whose id another trial of their task has in the same bundle: each counts": 2,
    }


def test_other_metrics_do_not_undo_a_crash(lab: Lab) -> None:
    """A judge may find something in what a crashed agent left; its reward is missing all the same."""
    schemas = {**HARBOR, "judge.s": "ContinuousScore"}
    trial = harbor(None, 0.0, "AgentTimeoutError")
    trial.scores = {"harbor_reward.reward": 0.0, "judge.s": 1.0}
    lab.bundle("b", [trial], schemas)
    assert told(lab.read("b").attempts[0])[:2] == ("died", "AgentTimeoutError")
