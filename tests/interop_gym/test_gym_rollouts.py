"""Rollouts of NeMo Gym as recorded attempts: which there are, of which task and variant, and in which order."""

import json
import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.contracts import NOT_RECORDED
from pytest_metricbench.interop.gym import reading as gym
from pytest_metricbench.interop.gym import runs
from pytest_metricbench.interop.recordings import ReadOptions, RecordingError
from tests.interop_gym.gym_lab import GymLab, failure, kinds, lines, notes, planned, result, said
from tests.present import present

SAMPLES = Path(__file__).parent / "samples"


def test_the_sample_of_gym_itself_is_read_whole() -> None:
    recordings = gym.read({"samples": SAMPLES}, ReadOptions("blackjack"))
    assert [(found.task, found.trial, found.outcome.kind) for found in recordings.attempts] == [
        ("task-0", f"0:{rollout}", "scored") for rollout in range(5)
    ]
    assert {found.variant for found in recordings.attempts} == {"blackjack_gymnasium_agent"}
    assert [dict(found.outcome.scores) for found in recordings.attempts][:2] == [
        {"reward": -1.0, "input_tokens": 244, "output_tokens": 16, "total_tokens": 260},
        {"reward": 1.0, "input_tokens": 95, "output_tokens": 8, "total_tokens": 103},
    ]
    assert recordings.notes == []
    assert sorted(recordings.files) == [
        "samples/example_rollouts.jsonl",
        "samples/example_rollouts_materialized_inputs.jsonl",
    ]


@pytest.mark.parametrize("name", ["reward", "input_tokens", "output_tokens", "total_tokens", "terminated"])
def test_means_of_the_sample_are_those_that_gym_computed(name: str) -> None:
    recordings = gym.read({"samples": SAMPLES}, ReadOptions("blackjack", columns={"scores": ["terminated"]}))
    values: list[Any] = [found.outcome.scores[name] for found in recordings.attempts]
    (aggregate,) = json.loads((SAMPLES / "example_rollouts_aggregate_metrics.json").read_text())
    assert sum(map(float, values)) / len(values) == pytest.approx(aggregate["agent_metrics"][f"mean/{name}"])


def test_tokens_are_measurements_and_the_reward_is_left_to_be_inferred(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0)])
    assert gym_lab.read().tasks["task-0"].outputs == {
        "input_tokens": "measurement",
        "output_tokens": "measurement",
        "total_tokens": "measurement",
    }


@given(st.permutations([(task, rollout) for task in range(4) for rollout in range(3)]), st.integers(0, 12))
@settings(max_examples=25)
def test_the_order_of_rows_means_nothing(
    tmp_path_factory: pytest.TempPathFactory, order: list[tuple[int, int]], cut: int
) -> None:
    plan = planned(4, 3)
    rows = [result(*key, reward=float(key[0] + key[1])) for key in order[:cut]]
    failed = [failure(*key, "judge_failed") for key in order[cut:]]
    mixed = GymLab(tmp_path_factory.mktemp("mixed"))
    mixed.write(rows, failed, random.Random(cut).sample(plan, len(plan)))
    sorted_lab = GymLab(tmp_path_factory.mktemp("sorted"))
    by_key = lambda row: (row["_ng_task_index"], row["_ng_rollout_index"])  # noqa: E731
    sorted_lab.write(sorted(rows, key=by_key), sorted(failed, key=by_key), plan)
    assert mixed.read().attempts == sorted_lab.read().attempts
    assert [(found.task, found.trial) for found in mixed.read().attempts] == [
        (f"task-{task}", f"{task}:{rollout}") for task in range(4) for rollout in range(3)
    ]


def test_tasks_sort_as_numbers(gym_lab: GymLab) -> None:
    gym_lab.write([result(task, 0) for task in (10, 9, 2)])
    assert list(gym_lab.read().tasks) == ["task-2", "task-9", "task-10"]


# ---------------------------------------------------------------- rewards


@pytest.mark.parametrize("reward", [-1, -0.5, 0, 0.25, 1, 2.5, True, False, float("nan"), float("inf")])
def test_rewards_keep_value_and_type(gym_lab: GymLab, reward: float) -> None:
    gym_lab.write([result(0, 0, reward)])
    (found,) = gym_lab.read().attempts
    assert found.outcome.kind == "scored"
    assert repr(found.outcome.scores["reward"]) == repr(reward)


@pytest.mark.parametrize("row", [result(0, 0, None), {k: v for k, v in result(0, 0).items() if k != "reward"}])
def test_a_result_without_a_reward_is_unmeasured(gym_lab: GymLab, row: dict[str, Any]) -> None:
    gym_lab.write([{**row, "failure_reason": "the judge was silent"}])
    recordings = gym_lab.read()
    (found,) = recordings.attempts
    assert (found.outcome.kind, found.outcome.scores) == ("unmeasured", {})
    assert present(found.outcome.error).type == "no_reward"
    assert present(found.outcome.error).phase == "verifier"
    assert present(found.outcome.error).message == "the row has no reward: the judge was silent"
    assert notes(recordings)["rollout with no_reward (a result without a reward): counted as unmeasured"] == 1


def test_masked_samples_are_unmeasured_and_counted(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0, 0.0, mask_sample=True), result(0, 1, 1.0, mask_sample=False), result(0, 2, 1.0)])
    recordings = gym_lab.read()
    assert kinds(recordings) == {"task-0 0:0": "unmeasured", "task-0 0:1": "scored", "task-0 0:2": "scored"}
    text = "rollout with mask_sample (a result that Gym says not to use): counted as unmeasured"
    assert notes(recordings)[text] == 1


def test_an_agent_that_never_ran_is_no_zero(gym_lab: GymLab) -> None:
    nothing = {"output": [], "usage": {"input_tokens": 0, "output_tokens": 0, "total_tokens": 0}}
    spoke = {"output": [{"type": "message"}], "usage": {"input_tokens": 0}}
    silent = {"output": [], "usage": {"input_tokens": 40}}
    unknown: dict[str, Any] = {"output": []}
    gym_lab.write([result(0, n, 0.0, response=r) for n, r in enumerate([nothing, spoke, silent, unknown])])
    recordings = gym_lab.read()
    assert [found.outcome.kind for found in recordings.attempts] == ["unmeasured", "scored", "scored", "scored"]
    assert present(recordings.attempts[0].outcome.error).type == "empty_response"
    gym_lab.write([result(0, 0, 0.0, response=nothing)])
    assert kinds(gym_lab.read(outcomes={"empty_response": "scored"})) == {"task-0 0:0": "scored"}


def test_further_scores_are_those_that_are_named(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0, 1.0, accuracy=0.5, note="fine", info={"steps": 3}), result(0, 1, 0.0, accuracy=None)])
    assert dict(gym_lab.read().attempts[0].outcome.scores) == {"reward": 1.0}
    assert dict(gym_lab.read(columns={"scores": "accuracy"}).attempts[0].outcome.scores) == {
        "reward": 1.0,
        "accuracy": 0.5,
    }
    named = gym_lab.read(columns={"scores": ["accuracy", "info.steps", "note"]})
    assert dict(named.attempts[0].outcome.scores) == {"reward": 1.0, "accuracy": 0.5, "info.steps": 3, "note": "fine"}
    assert dict(named.attempts[1].outcome.scores) == {"reward": 0.0}


# ---------------------------------------------------------------- planned, missing, tried again


def test_a_planned_rollout_without_a_row_is_missing(gym_lab: GymLab) -> None:
    gym_lab.write([result(1, 1)], [failure(0, 0, "judge_failed")], planned(2, 2))
    recordings = gym_lab.read()
    assert [(found.task, found.outcome.kind) for found in recordings.attempts] == [
        ("task-0", "unmeasured"),
        ("task-0", "unmeasured"),
        ("task-1", "unmeasured"),
        ("task-1", "scored"),
    ]
    missing = [
        found for found in recordings.attempts if found.outcome.error and found.outcome.error.type == NOT_RECORDED
    ]
    assert [present(found.outcome.error).message for found in missing] == [
        "rollout 1 of task 0 was planned, and left no row in rollouts.jsonl",
        "rollout 0 of task 1 was planned, and left no row in rollouts.jsonl",
    ]
    assert said({gym.MISSING: 2}).items() <= notes(recordings).items()


def test_a_row_that_says_that_a_rollout_was_left_out_is_no_failure(gym_lab: GymLab) -> None:
    gym_lab.write(
        [result(0, 0)],
        [
            failure(0, 1, "kill_shaped", _ng_omitted_rollout=True),
            failure(0, 2, "cancelled", _ng_no_persist=True),
            failure(0, 0, "kill_shaped", _ng_omitted_rollout=True),
        ],
    )
    recordings = gym_lab.read()
    assert [found.outcome.error and found.outcome.error.type for found in recordings.attempts] == [
        None,
        NOT_RECORDED,
        NOT_RECORDED,
    ]
    assert notes(recordings) == said({gym.MISSING: 2, runs.NOT_PLANNED: 1})


def test_without_materialized_inputs_nobody_knows_what_is_missing(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0)])
    assert notes(gym_lab.read()) == said({runs.NOT_PLANNED: 1})


def test_of_several_tries_the_one_with_a_result_counts(gym_lab: GymLab) -> None:
    gym_lab.write(
        [result(0, 0, 1.0, _ng_attempt_index=2)],
        [failure(0, 0, "agent_run_error"), failure(0, 0, "agent_request_failed", _ng_attempt_index=1)],
        planned(1, 1),
    )
    recordings = gym_lab.read()
    assert kinds(recordings) == {"task-0 0:0-a2": "scored"}
    assert notes(recordings) == said({runs.RETRIED: 2})


def test_of_several_failures_the_last_try_counts(gym_lab: GymLab) -> None:
    tries = [
        failure(0, 0, "agent_run_error", _ng_attempt_index=2),
        failure(0, 0, "judge_failed", _ng_attempt_index=1),
        failure(0, 0, "judge_failed"),
        failure(0, 1, "judge_failed"),
        failure(0, 1, "agent_timeout"),
    ]
    gym_lab.write([], tries, planned(1, 2))
    recordings = gym_lab.read()
    assert kinds(recordings) == {"task-0 0:0-a2": "died", "task-0 0:1": "died"}
    assert said({runs.FAILED_AGAIN: 3}).items() <= notes(recordings).items()


def test_failures_without_indices_are_counted_and_not_read(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0)], [{"_ng_failure_class": "cancelled"}], planned(1, 1))
    assert notes(gym_lab.read()) == said({runs.NAMELESS: 1})


def test_a_last_line_that_is_cut_is_said_and_its_rollout_missing(gym_lab: GymLab) -> None:
    text = lines([result(0, 0), result(0, 1)])
    for cut in (1, 20, len(lines([result(0, 1)])) - 2):
        gym_lab.write(text[:-cut], None, planned(1, 2))
        recordings = gym_lab.read()
        assert [found.outcome.kind for found in recordings.attempts] == (
            ["scored", "scored"] if cut == 1 else ["scored", "unmeasured"]
        )
        assert notes(recordings) == said({} if cut == 1 else {runs.CUT: 1, gym.MISSING: 1})


def test_a_cut_in_the_middle_of_a_character_is_a_cut(gym_lab: GymLab) -> None:
    path = gym_lab.write([result(0, 0)], None, planned(1, 2))
    path.write_bytes(path.read_bytes() + '{"text": "ä'.encode()[:-1])
    assert notes(gym_lab.read()) == said({runs.CUT: 1, gym.MISSING: 1})


# ---------------------------------------------------------------- variants


def test_agents_are_variants(gym_lab: GymLab) -> None:
    rows = [result(task, 0, agent=agent) for agent in ("solver", "broken") for task in (0, 1)]
    gym_lab.write([rows[0], rows[1]], name="a.jsonl")
    gym_lab.write([rows[2], rows[3]], name="b.jsonl")
    recordings = gym_lab.read("a.jsonl", "b.jsonl")
    assert [(found.variant, found.task, found.origin) for found in recordings.attempts] == [
        ("solver", "task-0", "a.jsonl"),
        ("solver", "task-1", "a.jsonl"),
        ("broken", "task-0", "b.jsonl"),
        ("broken", "task-1", "b.jsonl"),
    ]


def test_folders_and_files_are_variants_where_that_is_asked_for(gym_lab: GymLab) -> None:
    for version in ("baseline", "no-tools"):
        gym_lab.write([result(0, 0)], name=f"runs/{version}/rollouts.jsonl")
        gym_lab.write([result(0, 0)], name=f"flat/{version}.jsonl")
    folders = gym_lab.read("runs/baseline", "runs/no-tools/rollouts.jsonl", variants="folder")
    assert [found.variant for found in folders.attempts] == ["baseline", "no-tools"]
    assert [found.origin for found in folders.attempts] == [
        "runs/baseline/rollouts.jsonl",
        "runs/no-tools/rollouts.jsonl",
    ]
    files = gym_lab.read("flat", variants="file")
    assert [found.variant for found in files.attempts] == ["baseline", "no-tools"]
    clash = gym_lab.read("runs/baseline", "runs/no-tools", variants="file")
    assert [found.variant for found in clash.attempts] == ["runs/baseline/rollouts", "runs/no-tools/rollouts"]


def test_several_files_of_one_agent_are_an_open_question(gym_lab: GymLab) -> None:
    for name in ("a.jsonl", "b.jsonl"):
        gym_lab.write([result(0, 0)], name=name)
    with pytest.raises(RecordingError) as caught:
        gym_lab.read("a.jsonl", "b.jsonl")
    assert caught.value.message == "2 rollouts files are of one agent, solver: a.jsonl, b.jsonl"
    assert caught.value.remedy == (
        "variants: folder or file where each is a version of it; variants: agent where they are repeats"
    )
    repeats = gym_lab.read("a.jsonl", "b.jsonl", variants="agent")
    assert [(found.variant, found.trial, found.origin) for found in repeats.attempts] == [
        ("solver", "0:0", "a.jsonl"),
        ("solver", "0:0", "b.jsonl"),
    ]


def test_a_row_without_an_agent_is_of_the_one_that_was_planned(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0, agent=None)], None, planned(1, 2, agent="planned"))
    assert [found.variant for found in gym_lab.read().attempts] == ["planned", "planned"]


def test_agents_that_share_no_index_cannot_be_compared_by_it(gym_lab: GymLab) -> None:
    plan = [*planned(1, 1, agent="a", id="q"), *planned(2, 1, agent="b", id="q")[1:]]
    rows = [result(0, 0, agent="a"), result(1, 0, agent="b")]
    gym_lab.write(rows, None, plan)
    with pytest.raises(RecordingError) as caught:
        gym_lab.read()
    assert caught.value.message == "rollouts.jsonl: the agents a, b have no task index in common"
    assert caught.value.remedy == "columns: {task: FIELD} names tasks by a field of the materialized inputs"
    named = gym_lab.read(columns={"task": "id"})
    assert [(found.variant, found.task, found.trial) for found in named.attempts] == [
        ("a", "q", "0:0"),
        ("b", "q", "1:0"),
    ]


# ---------------------------------------------------------------- tasks


def test_a_field_of_the_inputs_names_tasks(gym_lab: GymLab) -> None:
    plan = planned(2, 1, id=lambda task: f"org/q-{task}", number=lambda task: task + 7, verifier={"key": "k"})
    gym_lab.write([result(0, 0), result(1, 0)], None, plan)
    assert list(gym_lab.read(columns={"task": "id"}).tasks) == ["org/q-0", "org/q-1"]
    assert list(gym_lab.read(columns={"task": "number"}).tasks) == ["7", "8"]


def test_an_index_that_means_another_question_elsewhere_is_said(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0), result(1, 0)], None, planned(2, 1), name="a/rollouts.jsonl")
    other = planned(2, 1)
    other[1]["responses_create_params"]["input"] = "something else"
    gym_lab.write([result(0, 0), result(1, 0)], None, other, name="b/rollouts.jsonl")
    assert notes(gym_lab.read("a", "b", variants="folder")) == said({gym.OTHER_INPUT: 1})


def test_results_that_stand_in_two_files_are_said(gym_lab: GymLab) -> None:
    rows = [result(task, 0, response={"id": f"resp_{task}", "created_at": 1.5}) for task in range(3)]
    gym_lab.write(rows, name="all/rollouts.jsonl")
    gym_lab.write(rows[:2], name="shards/rollouts-0.jsonl")
    gym_lab.write(rows[2:], name="shards/rollouts-1.jsonl")
    recordings = gym_lab.read("all", "shards", variants="agent")
    assert len(recordings.attempts) == 6
    assert said({gym.TWICE: 3}).items() <= notes(recordings).items()
    assert notes(gym_lab.read("shards", variants="agent")) == said({runs.NOT_PLANNED: 2})


def test_a_file_that_is_named_twice_is_read_once(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0)], name="run/rollouts.jsonl")
    assert len(gym_lab.read("run", "run/rollouts.jsonl").attempts) == 1


def test_files_that_gym_derives_from_a_run_are_not_read(gym_lab: GymLab) -> None:
    gym_lab.write([result(0, 0)], name="run/rollouts.jsonl")
    (gym_lab.folder / "run" / "rollouts_reward_profiling.jsonl").write_text("{}\n")
    (gym_lab.folder / "run" / "rollouts_aggregate_metrics.json").write_text("[]")
    (gym_lab.folder / "run" / "older.jsonl").mkdir()
    (gym_lab.folder / "run" / ".hidden.jsonl").write_text("{}")
    recordings = gym_lab.read("run")
    assert len(recordings.attempts) == 1
    assert list(recordings.files) == ["run/rollouts.jsonl"]


def test_a_run_whose_every_rollout_failed_is_read(gym_lab: GymLab) -> None:
    path = gym_lab.write("", [failure(0, 0, "agent_run_error")], planned(1, 1), name="run/rollouts.jsonl")
    assert kinds(gym_lab.read("run")) == {"task-0 0:0": "died"}
    path.unlink()
    assert kinds(gym_lab.read("run")) == {"task-0 0:0": "died"}
