"""Harbor's own figures, from the same trials: equal to what its result.json says, under the rules of its version."""

import json
from collections.abc import Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.contracts import AttemptError, AttemptRecord
from pytest_metricbench.interop.harbor.results import HarborResultError
from pytest_metricbench.interop.harbor.stats import (
    CountedTrial,
    counted_record,
    counted_trial,
    dataset_stats,
    stats_by_group,
    stored_trials,
)
from tests.interop_harbor.harbor_lab import SAMPLES, HarborLab, error, result, step

WHOLE: Final = ("oracle-0.25", "variants-0.25", "variants-0.26", "steps-0.25", "steps-0.26")
HALVED: Final = ("errors-0.25", "errors-0.26")
"""Of each pair of equal trials one was taken out of the sample; Harbor's own figures still name it."""


def harbors_own(job: Path) -> tuple[str, dict[str, Any]]:
    """The version that wrote a job, and its figures with the trials sorted."""
    version: str = json.loads((job / "lock.json").read_text())["harbor"]["version"]
    groups = json.loads((job / "result.json").read_text())["stats"]["evals"]
    for stats in groups.values():
        for values in stats["reward_stats"].values():
            values.update({value: sorted(trials) for value, trials in values.items()})
        stats["exception_stats"] = {name: sorted(trials) for name, trials in stats["exception_stats"].items()}
    return version, groups


def results_in(job: Path) -> list[dict[str, Any]]:
    return [json.loads(path.read_text()) for path in sorted(job.glob("*__*/result.json"))]


def figures(results: list[dict[str, Any]], version: str) -> dict[str, Any]:
    groups = stats_by_group([counted_trial(entry) for entry in results], version)
    return {group: stats.to_json() for group, stats in groups.items()}


def with_the_other_half(job: Path) -> list[dict[str, Any]]:
    """The results of a halved sample, each trial that was taken out put back as its equal: same task, own name."""
    present = results_in(job)
    _, groups = harbors_own(job)
    named = {
        name
        for stats in groups.values()
        for lists in (*stats["reward_stats"].values(), stats["exception_stats"])
        for trials in lists.values()
        for name in trials
    }
    by_task = {entry["task_name"]: entry for entry in present}
    absent = sorted(named - {entry["trial_name"] for entry in present})
    return [*present, *({**by_task[name.partition("__")[0]], "trial_name": name} for name in absent)]


class TestSamples:
    @pytest.mark.parametrize("sample", WHOLE)
    def test_the_figures_are_harbors(self, sample: str) -> None:
        version, wanted = harbors_own(SAMPLES / sample)
        assert figures(results_in(SAMPLES / sample), version) == wanted

    @pytest.mark.parametrize("sample", HALVED)
    def test_of_a_halved_sample_too(self, sample: str) -> None:
        version, wanted = harbors_own(SAMPLES / sample)
        found = with_the_other_half(SAMPLES / sample)
        assert len(found) == 10
        assert figures(found, version) == wanted

    def test_the_rules_of_the_other_version_give_other_figures(self) -> None:
        results = with_the_other_half(SAMPLES / "errors-0.26")
        assert figures(results, "0.25.0")["toy__ds2"]["metrics"] == [{"a": 0.1, "b": 0.2, "reward": 0.2}]
        assert figures(results, "0.26.0")["toy__ds2"]["metrics"] == [{"a": 0.25, "b": 0.5, "reward": 0.5}]

    def test_a_job_that_is_not_over_agrees_on_what_has_ended(self) -> None:
        version, wanted = harbors_own(SAMPLES / "killed-0.26")
        found = figures(results_in(SAMPLES / "killed-0.26"), version)
        assert found == {group: {**stats, "pass_at_k": found[group]["pass_at_k"]} for group, stats in wanted.items()}


def trial(task: str, value: float | None, number: int = 0) -> CountedTrial:
    return counted_trial(result(None if value is None else {"reward": value}, name=f"{task}__{number:07}"))


def pass_at(values: Mapping[str, list[float | None]], version: str = "0.25.0") -> dict[int, float]:
    trials = [trial(task, value, number) for task, given in values.items() for number, value in enumerate(given)]
    return dict(dataset_stats(trials, version).pass_at_k)


class TestPassAtK:
    def test_which_k_there_are(self) -> None:
        for count, wanted in (
            (1, []),
            (2, [2]),
            (3, [2]),
            (5, [2, 4, 5]),
            (10, [2, 4, 5, 8, 10]),
            (16, [2, 4, 5, 8, 10, 15, 16]),
        ):
            assert list(pass_at({"alpha": [1.0] * count})) == wanted

    def test_the_task_with_the_fewest_decides_how_far_it_goes(self) -> None:
        assert pass_at({"alpha": [1, 0, 0, 0], "beta": [1, 1]}) == {2: 0.75}
        assert pass_at({"alpha": [1, 0, 0, 0], "beta": [1]}) == {}

    def test_an_errored_trial_is_a_failure_up_to_025_and_nothing_after(self) -> None:
        assert pass_at({"alpha": [1, None]}) == {2: 1.0}
        assert pass_at({"alpha": [1, None, None]}) == {2: pytest.approx(2 / 3)}
        assert pass_at({"alpha": [1, 1, None], "beta": [None]}, "0.26.0") == {2: 1.0}

    @pytest.mark.parametrize("values", [[0.5, 1.0], [2.0, 1.0], [-1.0, 0.0]])
    def test_other_rewards_than_0_and_1_give_none(self, values: list[float | None]) -> None:
        assert pass_at({"alpha": values}) == {}

    def test_several_rewards_give_none(self) -> None:
        trials = [counted_trial(result({"a": 1, "b": 1}, name=f"alpha__{number:07}")) for number in range(2)]
        assert dataset_stats(trials, "0.26.0").pass_at_k == {}

    @given(st.integers(2, 7), st.data())
    def test_it_is_the_share_of_draws_that_hold_a_pass(self, n: int, data: st.DataObject) -> None:
        """Counted out: every choice of k of the n attempts."""
        c = data.draw(st.integers(0, n))
        values: list[float | None] = [*[1.0] * c, *[0.0] * (n - c)]
        for k, value in pass_at({"alpha": values}).items():
            draws = list(combinations(values, k))
            assert value == pytest.approx(sum(1.0 in draw for draw in draws) / len(draws))


class TestGroups:
    def test_model_and_dataset_are_in_the_key(self) -> None:
        info = {"name": "toy", "version": "1", "model_info": {"name": "big", "provider": "acme"}}
        trials = [counted_trial(result({"reward": 1.0}, agent_info=info, source=None)), trial("alpha", 1.0)]
        assert list(stats_by_group(trials, "0.26.0")) == ["toy__big__adhoc", "toy__ds"]

    def test_a_dataset_with_two_underscores_loses_its_mean(self) -> None:
        """Harbor splits the key where it finds them."""
        found = dataset_stats([counted_trial(result({"reward": 1.0}, source="my__ds"))], "0.26.0").to_json()
        assert found["metrics"] == []
        assert found["n_trials"] == 1


class TestErrors:
    def test_an_error_with_a_reward_is_in_both_counts(self) -> None:
        stats = dataset_stats([counted_trial(result({"reward": 1.0}, error("AgentTimeoutError")))], "0.26.0")
        assert (stats.n_trials, stats.n_errors) == (1, 1)

    def test_several_errors_of_one_trial_count_once(self) -> None:
        steps = [step("one", {"reward": 0.0}, error("AgentTimeoutError")), step("two", None, error("RuntimeError"))]
        stats = dataset_stats([counted_trial(result({"reward": 0.0}, step_results=steps))], "0.26.0")
        assert stats.n_errors == 1
        assert dict(stats.exception_stats) == {
            "AgentTimeoutError": ["alpha__1234567"],
            "RuntimeError": ["alpha__1234567"],
        }
        older = dataset_stats([counted_trial(result({"reward": 0.0}, step_results=steps))], "0.25.0")
        assert (older.n_errors, dict(older.exception_stats)) == (0, {})

    def test_an_override_of_harbor_is_heeded(self) -> None:
        invalid = result({"reward": 1.0}, error("AgentTimeoutError", policy_override={"has_valid_reward": False}))
        assert dataset_stats([counted_trial(invalid)], "0.26.0").n_trials == 0
        assert dataset_stats([counted_trial(invalid)], "0.25.0").n_trials == 1


def record(outcome: str, scores: dict[str, Any], error_type: str | None = None, **more: Any) -> AttemptRecord:
    keys: dict[str, Any] = {
        "case": "c",
        "variant": "baseline",
        "task": "alpha",
        "attempt": 1,
        "trial_id": "0a",
        "outcome": outcome,
        "scores": scores,
        "time_limit": None,
        "fingerprint": "",
        "verifier": "",
        "seed": 0,
        "started": "",
        "duration": 0.0,
        "files": {},
        "supersedes": None,
        "trial_name": "alpha__1234567",
        "error": None if error_type is None else AttemptError(error_type, "", "agent"),
        **more,
    }
    return AttemptRecord(**keys)


class TestStores:
    """From the records of a store, where no result of Harbor's was kept."""

    def test_a_scored_attempt(self) -> None:
        found = counted_record(record("scored", {"reward": 1.0, "step.one.reward": 0.0}), "toy__ds")
        assert found.rewards == {"reward": 1.0}
        assert dataset_stats([found], "0.26.0").to_json()["reward_stats"] == {"reward": {"1.0": ["alpha__1234567"]}}

    def test_died_and_unmeasured_are_errors_without_a_reward(self) -> None:
        records = [record("died", {}, "RuntimeError"), record("unmeasured", {}, "ApiError")]
        stats = dataset_stats(stored_trials(records, lambda _: Path()), "0.26.0")
        assert (stats.n_trials, stats.n_errors, sorted(stats.exception_stats)) == (0, 2, ["ApiError", "RuntimeError"])

    def test_what_was_never_recorded_is_no_trial(self) -> None:
        assert stored_trials([record("unmeasured", {}, "NotRecorded")], lambda _: Path()) == []

    def test_a_damaged_result_is_named(self, harbor_lab: HarborLab) -> None:
        trial_folder = harbor_lab.job(result({"reward": 1.0})) / "alpha__1234567"
        (trial_folder / "result.json").write_text("{")
        kept = record("scored", {"reward": 1.0}, files={"result.json": "sha256:0"})
        with pytest.raises(HarborResultError, match=r"alpha__1234567: result.json is not JSON"):
            stored_trials([kept], lambda _: trial_folder)
