"""Attempts written as evaluator bundles: the SDK's own figures, whole or not at all, and nothing secret."""

import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.contracts import NOT_RECORDED, AttemptError, AttemptRecord
from pytest_metricbench.definition.experiment import Task
from pytest_metricbench.interop.nemo.bundles import read
from pytest_metricbench.interop.nemo.summary import compensated_sum, range_score, sdk_pass_at_k
from pytest_metricbench.interop.nemo.trials import BundleError
from pytest_metricbench.interop.nemo.writing import write_bundles
from pytest_metricbench.interop.recordings import ReadOptions
from tests.interop_nemo.bundle_lab import SAMPLES, told
from tests.interop_nemo.record_lab import AGENT, DIED, JUDGE, UNMEASURED, Given, experiment_of, scored

FILES = ["metadata.json", "run.json", "scores.jsonl", "summary.json", "tasks.jsonl", "trials.jsonl"]


def bundle(directory: Path, attempts: list[Given], outputs: Any = None, **options: Any) -> Path:
    experiment, records = experiment_of({"baseline": {"t": attempts}}, outputs, **options)
    (folder,) = write_bundles(directory, experiment, records)
    return folder


def rows(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def summary_of(folder: Path) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((folder / "summary.json").read_text())
    return content


def aggregate(folder: Path, name: str) -> tuple[float | None, int, int]:
    (found,) = [score for score in summary_of(folder)["scores"]["scores"] if score["name"] == name]
    return found["mean"], found["count"], found["nan_count"]


# ---------------------------------------------------------------- figures


def test_the_sample_read_and_written_again_has_the_same_summary(tmp_path: Path) -> None:
    """Names, means, counts, nan_counts, percentiles, values, errors and coverage: value for value the SDK's own."""
    found = read({"geo": SAMPLES / "geo"}, ReadOptions("geo"))
    by_task: dict[str, list[Given]] = {}
    for one in found.attempts:
        given = Given(one.outcome.kind, one.outcome.scores, one.outcome.error, one.trial)
        by_task.setdefault(one.task, []).append(given)
    tasks = {name: Task(name, 1, {}, outputs=task.outputs) for name, task in found.tasks.items()}
    experiment, records = experiment_of({"baseline": by_task}, primary="keyword_match.score", tasks=tasks)
    (folder,) = write_bundles(tmp_path, experiment, records)
    assert summary_of(folder) == summary_of(SAMPLES / "geo")
    written, original = rows(folder / "trials.jsonl"), rows(SAMPLES / "geo" / "trials.jsonl")
    for key in ("id", "task_id", "error"):
        assert [row[key] for row in written] == [row[key] for row in original]
    assert [row["status"] for row in written] == [row["status"] for row in original]
    measured = [row["measurements"] for row in original if row["error"] is None]
    assert [row["measurements"] for row in written if row["error"] is None] == measured
    assert [row["id"] for row in written if "measurements" not in row] == [
        "capital-japan__1b8e42Z", "capital-spain__7f3a9cQ",
    ]  # fmt: skip


def test_what_counts_where(tmp_path: Path) -> None:
    """Died: in n, never passed. Not measured: in no n. NaN: in n, in no mean. k up to the most trials of a task."""
    attempts = [scored(reward=1.0), scored(reward=0.0), DIED, UNMEASURED, scored(reward=math.nan), scored(reward=2)]
    folder = bundle(tmp_path, attempts)
    assert aggregate(folder, "reward.score") == (1.0, 3, 3)
    assert aggregate(folder, "reward.score.pass@1") == (1 - (1 - 1 / 4) * (1 - 1 / 5), 1, 0)  # the SDK's product: .4
    assert aggregate(folder, "reward.score.pass@5") == (1.0, 1, 0)
    assert aggregate(folder, "reward.score.pass@6") == (None, 0, 1)
    coverage = summary_of(folder)["metric_coverage"]
    assert coverage == {"reward": {"score": {"total": 6, "scored": 4, "failed": 2, "missing": 0}}}


def test_only_continuous_and_boolean_scores_have_pass_at_k(tmp_path: Path) -> None:
    outputs = {"m.c": "continuous", "m.d": "discrete", "m.b": "boolean", "m.l": "label", "m.x": "measurement"}
    given = scored(m__c=1.0, m__d=1, m__b=True, m__l="x", m__x=1.0)
    folder = bundle(tmp_path, [given], outputs, primary="m.c")
    names = [score["name"] for score in summary_of(folder)["scores"]["scores"]]
    assert names == ["m.b", "m.c", "m.d", "m.l", "m.x", "m.b.pass@1", "m.c.pass@1"]
    assert aggregate(folder, "m.b") == (None, 0, 1)  # the SDK has booleans in no mean
    assert aggregate(folder, "m.x") == (1.0, 1, 0)
    assert sorted(summary_of(folder)["task_metric_values"]["t"]) == ["m.b", "m.c", "m.d", "m.l"]


def test_tasks_that_declare_a_score_stay_in_its_denominator(tmp_path: Path) -> None:
    outcomes = {"baseline": {"a": [scored(reward=1.0)], "b": [UNMEASURED], "c": []}, "m": {"c": [scored(reward=0.0)]}}
    experiment, records = experiment_of(outcomes)
    baseline, mutant = write_bundles(tmp_path, experiment, records)
    assert aggregate(baseline, "reward.score.pass@1") == (1.0, 1, 2)
    assert summary_of(baseline)["task_count"] == 3
    assert summary_of(baseline)["task_metric_values"]["c"] == {"reward.score": []}
    assert aggregate(mutant, "reward.score.pass@1") == (0.0, 1, 2)


def test_percentiles_and_deviations_of_two_values() -> None:
    score = range_score("m.s", [1.0, 0.0], 3)
    assert (score["sum"], score["mean"], score["median"], score["nan_count"]) == (1.0, 0.5, 0.5, 1)
    assert (score["variance"], score["std_dev"], score["sample_variance"]) == (0.25, 0.5, 0.5)
    percentiles = score["percentiles"]
    assert (percentiles["p10"], percentiles["p90"], percentiles["p100"]) == (0.0, 1.0, 1.0)
    assert percentiles["p40"] == pytest.approx(0.2)
    single = range_score("m.s", [0.25], 1)
    assert (single["sample_variance"], single["sample_std_dev"], single["variance"]) == (None, None, 0.0)


@pytest.mark.parametrize(
    ("n", "c", "k", "expected"), [(3, 1, 1, 1 / 3), (3, 1, 2, 2 / 3), (3, 1, 3, 1.0), (4, 0, 2, 0.0)]
)
def test_pass_at_k_of_the_sdk(n: int, c: int, k: int, expected: float) -> None:
    assert sdk_pass_at_k(n, c, k) == pytest.approx(expected)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False, width=32)))
def test_sums_are_as_good_as_exact_ones(values: list[float]) -> None:
    assert compensated_sum(values) == pytest.approx(math.fsum(values), rel=1e-15, abs=1e-300)


def test_numbers_that_overflow_have_no_figure(tmp_path: Path) -> None:
    folder = bundle(tmp_path, [scored(reward=1e308), scored(reward=1e308), scored(reward=-1e308)])
    (score, *_) = summary_of(folder)["scores"]["scores"]
    assert (score["variance"], score["std_dev"], score["max"]) == (None, None, 1e308)


# ---------------------------------------------------------------- rows


def test_how_each_outcome_is_written(tmp_path: Path) -> None:
    """The table in the documentation, row by row."""
    outputs = {"m.s": "continuous", "n.s": "continuous"}
    attempts = [
        scored(m__s=1.0, n__s=0.0),
        scored(AGENT, m__s=1.0, n__s=0.0),
        scored(m__s=None, n__s=0.0),
        scored(JUDGE, n__s=0.0),
        DIED,
        UNMEASURED,
        Given("unmeasured", error=AttemptError(NOT_RECORDED, "planned", "setup")),
        Given("not_reached"),
        Given("not_needed"),
    ]
    folder = bundle(tmp_path, attempts, outputs, primary="m.s")
    trials = rows(folder / "trials.jsonl")
    assert [(row["status"], row["error"] and row["error"]["type"]) for row in trials] == [
        ("completed", None),
        ("partial", "AgentFailed"),
        ("completed", None),
        ("completed", None),
        ("failed", "AgentFailed"),
        ("partial", "JudgeError"),
    ]
    details = [
        (row["status"], *(entry["details"] for entry in row["diagnostics"]))
        for row in rows(folder / "scores.jsonl")
        if row["metric_type"] == "m"
    ]
    assert details == [
        ("completed",),
        ("completed",),
        ("failed", {"trial_status": "failed"}),
        ("failed", {"exception_type": "JudgeError"}),
        ("failed", {"trial_status": "failed"}),
        ("failed", {"exception_type": "JudgeError"}),
    ]
    values = summary_of(folder)["task_metric_values"]["t"]
    assert [entry["value"] for entry in values["m.s"]] == [1.0, 1.0, None, None]
    assert [entry["value"] for entry in values["n.s"]] == [0.0, 0.0, 0.0, 0.0, None]


def test_an_unmeasured_attempt_keeps_the_scores_that_it_has(tmp_path: Path) -> None:
    """What lacks is the primary score: the trial itself went well."""
    lacking = AttemptError("ContractError", "the primary score 'm.s' is missing", "contract")
    given_ = Given("unmeasured", {"n.s": 0.25}, lacking)
    folder = bundle(tmp_path, [given_], {"m.s": "continuous", "n.s": "continuous"}, primary="m.s")
    (trial,) = rows(folder / "trials.jsonl")
    assert (trial["status"], trial["error"]) == ("completed", None)
    assert summary_of(folder)["task_metric_values"]["t"] == {
        "m.s": [],
        "n.s": [{"trial_id": "baseline.t.1", "value_type": "number", "value": 0.25}],
    }
    assert aggregate(folder, "m.s.pass@1") == (None, 0, 1)
    failed = next(row for row in rows(folder / "scores.jsonl") if row["metric_type"] == "m")
    assert failed["diagnostics"][0]["details"] == {"exception_type": "ContractError"}


def test_an_output_that_some_trials_lack_is_not_required(tmp_path: Path) -> None:
    folder = bundle(tmp_path, [scored(m__a=1.0, m__b=1.0), scored(m__a=1.0)], primary="m.a")
    (task,) = rows(folder / "tasks.jsonl")
    assert task["metrics"] == [
        {
            "type": "m",
            "outputs": [
                {"name": "a", "description": None, "value_schema": "ContinuousScore"},
                {"name": "b", "description": None, "value_schema": "ContinuousScore", "required": False},
            ],
        }
    ]
    assert summary_of(folder)["metric_coverage"]["m"]["b"] == {"total": 2, "scored": 1, "failed": 0, "missing": 1}


def test_names_of_tasks_and_trials_are_those_of_the_other_system(tmp_path: Path) -> None:
    tasks = {"org-task-1a2b3c": Task("org-task-1a2b3c", 1, {}, description="Why.", name="org/task", tags=("slow",))}
    outcomes = {"baseline": {"org-task-1a2b3c": [scored(name="t__x", reward=1.0), scored(name="t__x", reward=0.0)]}}
    experiment, records = experiment_of(outcomes, tasks=tasks)
    (folder,) = write_bundles(tmp_path, experiment, records)
    (task,) = rows(folder / "tasks.jsonl")
    assert (task["id"], task["intent"], task["metadata"]) == ("org/task", "Why.", {"tags": ["slow"]})
    trials = rows(folder / "trials.jsonl")
    assert [(row["id"], row["task_id"]) for row in trials] == [("t__x", "org/task")] * 2
    assert trials[1]["metadata"] == {
        "metricbench_attempt": 2,
        "metricbench_trial_id": "baseline.org-task-1a2b3c.2",
    }


def test_measurements_that_the_sdk_would_refuse_are_left_out(tmp_path: Path) -> None:
    names = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 99, "cost_usd": -1.0, "cache_read_tokens": 1.5}
    scores = {f"measurements.{name}": value for name, value in names.items()}
    folder = bundle(tmp_path, [Given("scored", {"reward": 1.0, **scores})])
    (trial,) = rows(folder / "trials.jsonl")
    assert {name: value for name, value in trial["measurements"].items() if value is not None} == {
        "prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7,
    }  # fmt: skip
    assert [row["metric_type"] for row in rows(folder / "scores.jsonl")] == ["reward"]


def test_nothing_secret_is_in_a_bundle(tmp_path: Path) -> None:
    """Params, files, everything that an agent printed beyond the first line, and paths of this machine."""
    folder = bundle(tmp_path, [scored(AGENT, reward=0.0), DIED, UNMEASURED])
    text = "".join(path.read_text() for path in folder.iterdir())
    for secret in ("hunter2", "sk-secret", "secret.txt", "sha256", str(tmp_path)):
        assert secret not in text
    assert "exit status 3" in text


def test_the_same_attempts_give_the_same_bytes(tmp_path: Path) -> None:
    one, other = (bundle(tmp_path / name, [scored(reward=1.0), DIED]) for name in "ab")
    assert sorted(path.name for path in one.iterdir()) == FILES
    assert [(one / name).read_bytes() for name in FILES] == [(other / name).read_bytes() for name in FILES]


def test_the_label_says_what_it_is(tmp_path: Path) -> None:
    experiment, records = experiment_of({"baseline": {"t": [scored(reward=1.0)]}, "m1": {"t": [DIED, DIED]}})
    folders = write_bundles(tmp_path, experiment, records)
    assert [folder.relative_to(tmp_path).as_posix() for folder in folders] == ["made/c/baseline", "made/c/m1"]
    metadata = json.loads((folders[1] / "metadata.json").read_text())
    assert metadata["labels"] == {"experiment": "made", "case": "c", "variant": "m1", "kind": "mutant"}
    assert (metadata["target"]["name"], metadata["target"]["kind"]) == ("m1", "agent")
    assert metadata["started_at"] == "2026-03-01T10:00:01+00:00"
    assert metadata["finished_at"] == "2026-03-01T10:00:03.500000+00:00"
    assert metadata["duration_sec"] == 2.5


def test_a_variant_without_a_record_has_no_bundle(tmp_path: Path) -> None:
    experiment, records = experiment_of({"baseline": {"t": [scored(reward=1.0)]}, "m1": {"t": []}})
    assert [folder.name for folder in write_bundles(tmp_path, experiment, records)] == ["baseline"]
    assert write_bundles(tmp_path / "none", experiment, {}) == []
    assert not (tmp_path / "none").exists()


# ---------------------------------------------------------------- whole or not at all


def test_a_bundle_is_replaced_whole(tmp_path: Path) -> None:
    first = bundle(tmp_path, [scored(reward=1.0)])
    (first / "report.html").write_text("made by the SDK from the old one")
    second = bundle(tmp_path, [scored(reward=0.0)])
    assert second == first
    assert sorted(path.name for path in second.iterdir()) == FILES
    assert aggregate(second, "reward.score")[0] == 0.0
    assert [path.name for path in first.parent.iterdir()] == ["baseline"]


def test_nothing_is_written_when_one_variant_cannot_be(tmp_path: Path) -> None:
    """The old bundles stay as they were, and nothing half written stays behind."""
    good = {"t": [scored(m__a=1.0, m__b=1.0)]}
    experiment, records = experiment_of({"baseline": good}, primary="m.a")
    (folder,) = write_bundles(tmp_path, experiment, records)
    before = (folder / "summary.json").read_bytes()
    mixed = {"t": [scored(m__a=None, m__b=0.5)]}
    experiment, records = experiment_of({"baseline": {"t": [scored(m__a=0.0)]}, "m1": mixed}, primary="m.a")
    with pytest.raises(BundleError) as caught:
        write_bundles(tmp_path, experiment, records)
    assert str(caught.value) == (
        "m1::t[1] has m.a null and m.b measured; in a bundle a trial fails for a whole metric: "
        "name the two scores as of two metrics"
    )
    assert (folder / "summary.json").read_bytes() == before
    assert [path.name for path in (tmp_path / "made" / "c").iterdir()] == ["baseline"]


def test_what_is_no_bundle_is_not_replaced(tmp_path: Path) -> None:
    place = tmp_path / "made" / "c" / "baseline"
    place.mkdir(parents=True)
    (place / "thesis.tex").write_text("years of work")
    with pytest.raises(BundleError) as caught:
        bundle(tmp_path, [scored(reward=1.0)])
    expected = f"{place} is in the way: it holds other files than a bundle; name another directory"
    assert str(caught.value) == expected
    assert (place / "thesis.tex").read_text() == "years of work"


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "made" / "c").mkdir(parents=True)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "made" / "c" / "baseline").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(BundleError, match="is in the way: it is no folder"):
        bundle(tmp_path, [scored(reward=1.0)])
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_directory_that_cannot_be_written(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="Not a directory"):
        bundle(tmp_path / "file", [scored(reward=1.0)])


@pytest.mark.parametrize(
    ("scores", "said"),
    [
        (
            {"reward": 1.0, "reward.score": 0.5},
            "the scores 'reward' and 'reward.score' would both be 'reward.score'; rename one",
        ),
        ({"a.pass@2": 1.0}, "the score 'a.pass@2' is named like a pass@k of the SDK; rename it"),
    ],
)
def test_names_that_a_bundle_cannot_have(tmp_path: Path, scores: dict[str, Any], said: str) -> None:
    with pytest.raises(BundleError) as caught:
        bundle(tmp_path, [Given("scored", scores)], primary=next(iter(scores)))
    assert str(caught.value) == said


# ---------------------------------------------------------------- there and back


NUMBERS = st.one_of(st.floats(), st.integers(-(2**53), 2**53))
VALUES: dict[str, Any] = {
    "m.c": NUMBERS,
    "m.e": NUMBERS,
    "n.i": st.integers(-5, 5),
    "o.b": st.booleans(),
    "p.l": st.text(st.characters(codec="utf-8"), max_size=5),
    "q.x": NUMBERS,
}
KINDS: Any = {
    "m.c": "continuous", "m.e": "continuous", "n.i": "discrete", "o.b": "boolean", "p.l": "label", "q.x": "measurement",
}  # fmt: skip


@st.composite
def attempts(draw: st.DrawFn) -> Given:
    kind = draw(st.sampled_from(["scored", "scored", "scored", "died", "unmeasured"]))
    name = draw(st.sampled_from([None, "same", "t__x"]))
    if kind == "died":
        return Given("died", {}, AttemptError("AgentFailed", "exit status 3", "agent"), name)
    if kind == "unmeasured":
        return Given("unmeasured", {}, AttemptError("JudgeError", "no answer", "verifier"), name)
    scores = {score: draw(values) for score, values in VALUES.items() if draw(st.booleans())}
    error = None
    if not draw(st.booleans()):
        for metric in {score.partition(".")[0] for score in scores if draw(st.booleans())}:
            of_metric = {score for score in VALUES if score.startswith(f"{metric}.")}
            scores |= dict.fromkeys(of_metric)
    if len({score.partition(".")[0] for score in scores}) < 5:
        error = AttemptError("JudgeError", "no answer", "verifier")
    return Given("scored", scores, error, name) if scores else Given("unmeasured", {}, error, name)


@given(st.lists(attempts(), min_size=1, max_size=6))
def test_what_is_written_is_read_again(tmp_path_factory: pytest.TempPathFactory, row: list[Given]) -> None:
    """Outcomes, scores with their types, errors of whole metrics, ids and kinds: bit for bit."""
    folder = bundle(tmp_path_factory.mktemp("b"), row, KINDS, primary="m.c")
    found = read({"b": folder}, ReadOptions("c"))
    assert [one.variant for one in found.attempts] == ["baseline"] * len(row)
    for one, given_ in zip(found.attempts, row, strict=True):
        kind, _, scores = told(one)
        assert one.trial == (given_.name or f"baseline.t.{row.index(given_) + 1}") or given_.name is None
        assert kind == given_.outcome
        assert {name: repr(value) for name, value in scores.items()} == {
            name: repr(value) for name, value in given_.scores.items()
        }
    assert dict(found.tasks["t"].outputs) == KINDS


def test_a_record_knows_its_key() -> None:
    """The builder of these tests makes records that stand under their own keys."""
    _, records = experiment_of({"baseline": {"t": [DIED]}})
    assert all(isinstance(record, AttemptRecord) and record.key == key for key, record in records.items())
