"""Evaluator bundles through the whole plugin: figures, kills, notes, coverage, and bundles of what was read."""

import json
import os
import shutil
import sys
import tracemalloc
from typing import Any

import pytest
import yaml

from pytest_metricbench import stages
from pytest_metricbench.interop.nemo.writing import write_bundles
from tests.interop_nemo.bundle_lab import SAMPLES, Lab, Trial, edit_row

OTHER_PLUGINS = (
    *("randomly", "rerunfailures", "repeat", "timeout", "html", "html_fixtures", "metadata", "pytest_cov", "sugar"),
    "hypothesispytest",
)
HARBOR = {"harbor_reward.reward": "ContinuousScore"}
REWARD = {"primary": "harbor_reward.reward"}


class Runs:
    """A folder with bundles in ``runs`` and an experiment that reads them."""

    def __init__(self, pytester: pytest.Pytester) -> None:
        self.pytester = pytester
        self.path = pytester.path
        self.lab = Lab(pytester.path / "runs")

    def make(self, name: str = "experiment.yml", runner: dict[str, Any] | None = None, **keys: Any) -> None:
        experiment = {
            "metricbench": 1,
            "name": name.partition(".")[0],
            "runner": {"kind": "recorded", "form": "nemo", "read": ["runs"], **(runner or {})},
            "score": REWARD,
            "cases": [{"id": "orders"}],
            **keys,
        }
        (self.path / name).write_text(yaml.safe_dump(experiment, sort_keys=False), encoding="utf-8")

    def run(self, *args: str, name: str = "experiment.yml") -> pytest.RunResult:
        off = [part for plugin in OTHER_PLUGINS for part in ("-p", f"no:{plugin}")]
        return self.pytester.runpytest_inprocess(*off, name, *args, no_reraise_ctrlc=True)

    def case(self, name: str = "experiment", case: str = "orders") -> Any:
        text = (self.path / ".metricbench" / name / "summary.json").read_text()
        return json.loads(text)["cases"][case]


@pytest.fixture
def runs(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, unasked: None) -> Runs:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return Runs(pytester)


WORKERS = pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])


def reward(value: float | None, task: str = "t", error: str | None = None, **other: Any) -> Trial:
    """A trial of Harbor: a reward that is not there is scored 0.0."""
    is_complete = error is None and value is not None
    name = f"{task}__{value}{error}"
    return Trial(
        task,
        name,
        {"harbor_reward.reward": value or 0.0},
        "completed" if is_complete else "partial",
        None if error is None else (error, "it broke"),
        {"harbor_primary_reward_key": "reward", "reward": value},
        {"runtime_sec": 1.0},
        **other,
    )


# ---------------------------------------------------------------- the sample


@WORKERS
def test_the_sample_gives_the_figures_of_the_sdk(runs: Runs, workers: list[str]) -> None:
    """pass@1 .75, pass@2 11/12, pass@3 1 over three of four tasks, and the same entries, value for value."""
    shutil.copytree(SAMPLES / "geo", runs.path / "runs" / "geo")
    runs.make(score={"primary": "keyword_match.score"}, cases=[{"id": "geo"}], analysis={"pass_at_k": [1, 2, 3]})
    found = runs.run(*workers)
    assert found.parseoutcomes() == {"failed": 1, "passed": 8, "missed": 2, "died": 1}
    case = runs.case(case="geo")
    baseline = case["variants"]["baseline"]
    figures = {
        k: (figure["value"], figure["count"], figure["nan_count"])
        for k, figure in baseline["pass_at_k"]["keyword_match.score"].items()
    }
    assert figures == {"1": (0.75, 4, 0), "2": (pytest.approx(11 / 12), 4, 0), "3": (1.0, 3, 1)}
    values = json.loads((SAMPLES / "geo" / "summary.json").read_text())["task_metric_values"]
    for task, outputs in values.items():
        assert {name: baseline["attempts"][task][name] for name in outputs} == outputs
    assert sorted(baseline["pass_at_k"]) == ["keyword_match.score", "steps.count"]
    lines = [line.removeprefix("read").strip() for line in found.outlines]
    for note in ("1 failed trial (value null): died", "1 trial with an error whose scores stand"):
        assert note in lines


def test_a_metric_that_failed_says_why(runs: Runs) -> None:
    """Not that the primary score is missing, which is all that could be said without its error."""
    shutil.copytree(SAMPLES / "geo", runs.path / "runs" / "geo")
    runs.make(score={"primary": "keyword_match.score"}, cases=[{"id": "geo"}])
    said = "unmeasured (verifier): TimeoutError: the metric keyword_match failed: judge timed out"
    assert said in runs.run().outlines


# ---------------------------------------------------------------- mutants


def mutants(runs: Runs) -> None:
    """A baseline that solves three tasks, and mutants that fail one of them in each of the ways there are."""
    ends = {
        "wrong": reward(0.0),
        "timed-out": reward(None, error="AgentTimeoutError"),
        "no-reward": reward(None),
        "rate-limit": reward(None, error="ApiRateLimitError"),
        "late-error": reward(1.0, error="AgentTimeoutError"),
        "failed": Trial("t", "t__f", {}, "failed", ("AgentTimeoutError", "x")),
        "unreachable": Trial("t", "t__u", {}, "failed", ("ResilienceMaxAttemptsExceededError", "x")),
    }
    whole = [reward(1.0, task) for task in ("t", "u", "v")]
    runs.lab.bundle("base", whole, HARBOR, labels={"variant": "good"})
    for name, end in ends.items():
        runs.lab.bundle(name, [end, *whole[1:]], HARBOR, labels={"variant": name})


@WORKERS
def test_an_infrastructure_failure_kills_no_mutant(runs: Runs, workers: list[str]) -> None:
    mutants(runs)
    runs.make(runner={"baseline": "good"})
    runs.run(*workers)
    case = runs.case()
    assert {mutant: cells["t"] for mutant, cells in case["kills"].items()} == {
        "wrong": "killed",
        "timed-out": "killed",
        "failed": "killed",
        "late-error": "survived",
        "no-reward": "missing",
        "rate-limit": "missing",
        "unreachable": "missing",
    }
    share = case["pool"]["kill_share"]
    assert (share["killed"], share["mutants"], share["missing_cells"]) == (3, 7, 3)
    died = {(kill["mutant"], kill["task"]) for kill in case["died_kills"]["kills"]}
    assert died == {("timed-out", "t"), ("failed", "t")}


def test_the_only_score_that_counts_need_not_be_named(runs: Runs) -> None:
    """Measurements of the trials are scores as well, and do not count."""
    mutants(runs)
    runs.make(runner={"baseline": "good"}, score={})
    runs.run()
    case = runs.case()
    assert case["kills"]["wrong"]["t"] == "killed"
    assert list(case["variants"]["baseline"]["pass_at_k"]) == ["harbor_reward.reward"]
    assert "measurements.runtime_sec" in case["variants"]["baseline"]["attempts"]["t"]


def test_what_becomes_of_an_error_can_be_said_in_the_experiment(runs: Runs) -> None:
    mutants(runs)
    runs.make(runner={"baseline": "good", "outcomes": {"AgentTimeoutError": "unmeasured"}})
    runs.run()
    cells = {mutant: tasks["t"] for mutant, tasks in runs.case()["kills"].items()}
    assert (cells["timed-out"], cells["failed"], cells["wrong"]) == ("missing", "missing", "killed")


def test_repeats_in_bundles_of_their_own_are_attempts(runs: Runs) -> None:
    """The way to several attempts where a target cannot repeat: every job is a bundle, and every id the same."""
    for number, value in enumerate((1.0, 0.0, 1.0)):
        trials = [Trial(task, f"{task}:model", {"m.s": value}) for task in ("t", "u")]
        runs.lab.bundle(f"job-{number}", trials, labels={"variant": "base"})
    runs.make(score={"primary": "m.s"})
    assert runs.run().ret == 0
    baseline = runs.case()["variants"]["baseline"]
    assert baseline["pass_at_k"]["m.s"]["1"]["value"] == pytest.approx(2 / 3)
    assert baseline["attempts"]["t"]["m.s"] == [
        {"trial_id": "t:model", "value_type": "number", "value": value} for value in (1.0, 0.0, 1.0)
    ]


def test_traces_in_bundles_are_evidence(runs: Runs) -> None:
    shutil.copytree(SAMPLES / "crashes", runs.path / "runs" / "crashes")
    coverage = [{"id": "tools", "kind": "tool-calls", "tools": ["search", "refund"]}]
    runs.make(cases=[{"id": "orders", "subsets": [{"id": "one", "tasks": ["refund"]}]}], coverage=coverage)
    runs.run()
    store = runs.path / ".metricbench" / "experiment" / "attempts" / "orders" / "baseline" / "refund"
    assert [path.name for path in store.rglob("*") if path.is_file()] == ["trajectory.json"]
    assert runs.case()["subsets"]["one"]["coverage"]["tools"]["value"] == 0.5


def test_bundles_that_changed_are_told(runs: Runs) -> None:
    runs.lab.bundle("only", [reward(1.0)], HARBOR)
    runs.make()
    assert runs.run().ret == 0
    edit_row(runs.lab.folder / "only" / "tasks.jsonl", 1, intent="something else")
    found = runs.run()
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    said = "\n".join(found.errlines)
    assert "runs/only/tasks.jsonl" in said
    assert "--metricbench-lock" in said


def test_a_broken_bundle_is_an_error_of_the_experiment(runs: Runs) -> None:
    folder = runs.lab.bundle("only", [reward(1.0)], HARBOR)
    (folder / "run.json").unlink()
    runs.make()
    found = runs.run()
    assert found.ret == pytest.ExitCode.USAGE_ERROR
    said = "\n".join(found.errlines)
    assert "runs/only has no run.json, which is written last: it is not whole yet" in said
    assert "Traceback" not in said


# ---------------------------------------------------------------- written again


def test_what_was_read_and_written_is_read_again(runs: Runs) -> None:
    """Bundles of ours give the same entries, pass@k and kills as those they were made of."""
    mutants(runs)
    runs.make(runner={"baseline": "good"})
    runs.run()
    experiment = stages.load_experiment(runs.path / "experiment.yml")
    results = stages.gather(experiment, stages.open_store(runs.path / ".metricbench" / "experiment"))
    written = write_bundles(runs.path / "again", experiment, results.attempts, primary=REWARD["primary"])
    assert written[0].name == "baseline"
    runs.make("second.yml", runner={"read": ["again"], "baseline": "baseline"})
    runs.run(name="second.yml")
    first, second = runs.case(), runs.case("second")
    assert second["kills"] == first["kills"]
    for variant, found in first["variants"].items():
        again = second["variants"][variant]
        assert again["counts"] == {**found["counts"], "reused": again["counts"]["reused"]}
        for task, entries in found["attempts"].items():
            assert again["attempts"][task]["harbor_reward.reward"] == entries["harbor_reward.reward"]
        assert again["pass_at_k"]["harbor_reward.reward"] == found["pass_at_k"]["harbor_reward.reward"]


def test_thousands_of_tasks_in_little_memory(runs: Runs) -> None:
    """What is kept are values: a bundle's answers and metadata pass through a row at a time."""
    trials = [
        Trial(f"t{number}", f"t{number}__{attempt}", {"m.s": 1.0}, metadata={"log": "x" * 4000})
        for number in range(1500)
        for attempt in range(2)
    ]
    folder = runs.lab.bundle("big", trials)
    del trials
    size = sum(path.stat().st_size for path in folder.iterdir())
    tracemalloc.start()
    try:
        found = runs.lab.read("big")
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert len(found.attempts) == 3000
    assert size > 12_000_000
    assert peak < 8_000_000


def test_the_order_of_a_listing_means_nothing(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers read by themselves: all must agree on which attempt is which."""
    for name in "cab":
        runs.lab.bundle(name, [Trial("t", "same", {"m.s": float(ord(name))})], labels={"variant": "v"})
    listing = os.scandir
    expected = [one.outcome.scores["m.s"] for one in runs.lab.read().attempts]

    class Reversed:
        def __init__(self, path: Any) -> None:
            with listing(path) as entries:
                self.entries = list(entries)[::-1]

        def __enter__(self) -> list[Any]:
            return self.entries

        def __exit__(self, *_: object) -> None:
            pass

    monkeypatch.setattr(os, "scandir", Reversed)
    assert [one.outcome.scores["m.s"] for one in runs.lab.read().attempts] == expected == [97.0, 98.0, 99.0]
