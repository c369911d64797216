"""Runs whose items are groups of attempts: order, stops in the middle, what is kept, budgets, shards, plans."""

from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest

from pytest_metricbench import load_experiment
from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.pytest_side.sorting import slots_of
from pytest_metricbench.reporting import announcing
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.ordering import Order
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.writing import StoreWriter
from tests.plugin import plugin_lab
from tests.plugin.plugin_lab import AGENT, USUAL, node_ids, words

BROKEN = {**USUAL, "no-pay::find": "up"}
"""The first attempt of no-pay at find cannot be measured."""


# ---------------------------------------------------------------- order


def test_the_longest_together_first_within_baselines_and_mutants() -> None:
    def keys(variant: str, task: str, count: int) -> list[tuple[str, str, str, int]]:
        return [("c", variant, task, slot) for slot in range(1, count + 1)]

    seconds = {"many": 1.0, "long": 2.0, "short": 0.5}
    known: dict[tuple[str, str, str, int], Any] = {
        key: SimpleNamespace(duration=seconds[key[2]])
        for task in seconds
        for key in keys("baseline", task, 5 if task == "many" else 1)
    }
    order = Order(known)
    groups = [
        *(keys("m", task, 5 if task == "many" else 1) for task in ("short", "long", "many", "new")),
        *(keys("baseline", task, 5 if task == "many" else 1) for task in ("short", "long", "many")),
    ]
    ranked = sorted(groups, key=order.rank_together)
    assert [(group[0][1], group[0][2]) for group in ranked] == [
        *(("baseline", task) for task in ("many", "long", "short")),
        *(("m", task) for task in ("new", "many", "long", "short")),
    ]
    assert order.rank_together(keys("m", "long", 1)) == order.rank(("c", "m", "long", 1))


GATED = """
import pathlib
from typing import ClassVar, Literal

from pytest_metricbench import Outcome, Runner

HERE = pathlib.Path(__file__).parent


class Gated(Runner):
    kind: Literal["gated"] = "gated"
    baseline_first: ClassVar[bool] = True

    def run(self, request, workspace):
        if request.variant.id != "baseline":
            return Outcome.scored({"reward": float(len(request.baseline) == 2)})
        workspace.joinpath("evidence").write_text("baseline")
        return Outcome.scored({"reward": 1.0})


def pytest_metricbench_runners():
    return [Gated]
"""


@pytest.mark.parametrize("unit", ["attempt", "task", "variant"])
def test_what_the_scheduler_is_told(unit: str) -> None:
    """A mutant's item waits for the baseline's of its task, or of its case; one set-up in common is an affinity."""
    keys = [("c", variant, task, slot) for variant in ("baseline", "m") for task in "tu" for slot in (1, 2)]
    parts = {"attempt": 4, "task": 3, "variant": 2}[unit]
    groups: dict[str, list[tuple[str, str, str, int]]] = {}
    for key in keys:
        groups.setdefault("::".join(map(str, key[:parts])), []).append(key)
    runner = SimpleNamespace(baseline_first=True, affinity=lambda case, variant, task: variant)
    experiment = SimpleNamespace(path="e.yml", items=unit, runner=runner)
    bench = Mock(stored=None, experiment=experiment)
    found = {name: (bench, group) for name, group in groups.items()}
    slots = slots_of([*groups, "test_plain.py::test"], found.get)
    assert slots is not None
    told = dict(zip(groups, slots, strict=False))
    for name, slot in told.items():
        _, variant, *task = name.split("::")
        gate = "e.yml::c" if unit == "variant" else f"e.yml::c::{task[0]}"
        assert slot.affinity == variant
        assert (slot.opens, slot.gate) == ((gate, None) if variant == "baseline" else (None, gate))
    assert slots[-1].rank > max(slot.rank for slot in told.values())
    assert slots_of(["test_plain.py::test"], lambda name: None) is None


@pytest.mark.benchmark  # what the scheduler does with slots, tests/scheduling holds
def test_mutants_wait_for_their_baseline(lab: plugin_lab.Lab) -> None:
    lab.make(items="variant", runner={"kind": "gated"}, coverage=None)
    lab.write("conftest.py", GATED)
    assert lab.run("experiment.yml", "-n2").ret == 0
    assert {line["scores"]["reward"] for line in lab.journal()} == {1.0}
    assert len(lab.journal()) == 18


COMING = (
    GATED.replace("baseline_first: ClassVar[bool] = True", "ahead: ClassVar[int] = 100")
    .replace(
        "    def run(",
        """    def begin(self, request, workspace):
        with open(HERE / "log.txt", "a") as log:
            log.write(f"begin {request.variant.id}::{request.task.id}[{request.attempt}]\\n")

    def run(""",
    )
    .replace('if request.variant.id != "baseline":', "if False:")
    .replace(
        "        workspace.joinpath(",
        """        with open(HERE / "log.txt", "a") as log:
            log.write(f"run {request.variant.id}::{request.task.id}[{request.attempt}]\\n")
        workspace.joinpath(""",
    )
)


def test_a_runner_may_begin_all_of_a_group(lab: plugin_lab.Lab) -> None:
    """The attempts of the first item are all begun before the first of them is asked for."""
    lab.make(items="variant", runner={"kind": "gated"}, coverage=None)
    lab.write("conftest.py", COMING)
    assert lab.run("experiment.yml", "-k", "quiet").ret == 0
    log = (lab.path / "log.txt").read_text().splitlines()
    names = [f"quiet::{task}[{slot}]" for task in ("find", "pay", "refund") for slot in (1, 2)]
    assert log == [*(f"begin {name}" for name in names), *(f"run {name}" for name in names)]


SKIPPING = """

def pytest_collection_modifyitems(items):
    for item in items:
        if "quiet" in item.nodeid:
            item.add_marker("skip")
        elif "no-pay" in item.nodeid:
            item.add_marker(pytest.mark.skipif(False, reason="never"))
"""


def test_nothing_of_what_is_skipped_is_begun(lab: plugin_lab.Lab) -> None:
    lab.make(items="variant", runner={"kind": "gated"}, coverage=None)
    lab.write("conftest.py", COMING + "\n\nimport pytest\n" + SKIPPING)
    assert lab.run("experiment.yml").ret == 1  # quiet is missing
    begun = [line.split()[1] for line in (lab.path / "log.txt").read_text().splitlines() if line.startswith("begin")]
    assert {name.partition("::")[0] for name in begun} == {"baseline", "no-pay"}
    assert len(begun) == 12


# ---------------------------------------------------------------- stops and failures


def test_first_failure_stops_inside_the_item(lab: plugin_lab.Lab) -> None:
    lab.make(items="variant", outcomes={"baseline::find": "up"})
    result = lab.run("experiment.yml", "-x")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert lab.calls() == ["baseline::find[1]"]
    text = result.stdout.str()
    assert "find[2] not started: the run stops at the failure before it" in text
    assert "6 of 6 attempts not measured" in text
    counts = lab.summary(partial=True)["counts"]
    assert (counts["unmeasured"], counts["missing"]) == (1, 17)


def test_last_failed_and_the_next_run(lab: plugin_lab.Lab) -> None:
    lab.make(items="task", outcomes=BROKEN)
    assert lab.run("experiment.yml").ret == pytest.ExitCode.TESTS_FAILED
    lab.calls()
    lab.make(items="task", outcomes=USUAL)
    again = lab.run("experiment.yml", "--lf", "-v")
    assert lab.calls() == ["no-pay::find[1]"]  # the other of the item comes from the store
    shown = {name: word for name, word in words(again).items() if "coverage" not in name}
    assert shown == {"experiment.yml::shop::no-pay::find": "SOLVED"}
    assert again.ret == 0
    assert lab.summary()["complete"]


def test_cached_only_names_what_is_missing(lab: plugin_lab.Lab) -> None:
    lab.make(items="task", coverage=None)
    lab.run("experiment.yml::shop::baseline::find")
    lab.calls()
    result = lab.run("experiment.yml", "--metricbench-cached-only")
    assert lab.calls() == []
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    why = "not measured: it is not in the store, and with --metricbench-cached-only no attempt runs"
    assert f"[2] {why}" in result.stdout.str()
    counts = lab.summary(partial=True)["counts"]
    assert (counts["missing"], counts["reused"]) == (16, 2)


INTERRUPTED = AGENT.replace(
    "    letters = json",
    "    if where == 'no-pay::pay' and request.attempt == 2 and not (HERE / 'mended').exists():\n"
    "        raise KeyboardInterrupt\n    letters = json",
)


def test_an_interrupt_in_the_middle_loses_nothing_that_was_done(lab: plugin_lab.Lab) -> None:
    lab.make(items="variant", agent=INTERRUPTED, coverage=None)
    assert lab.run("experiment.yml").ret == pytest.ExitCode.INTERRUPTED
    assert {line["task"] for line in lab.journal() if line["variant"] == "no-pay"} >= {"find", "pay"}
    kept = len(lab.journal())
    assert kept == len(lab.calls()) - 1
    lab.write("mended", "")
    assert lab.run("experiment.yml").ret == 0
    assert len(lab.calls()) == 18 - kept


def test_a_store_that_fails_in_the_middle_ends_the_item(lab: plugin_lab.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be kept would be paid for in vain."""
    add = StoreWriter.add_attempt

    def fails_at_pay(writer: StoreWriter, record: AttemptRecord) -> None:
        if record.task == "pay":
            raise StoreError("the disk is full")
        add(writer, record)

    monkeypatch.setattr(StoreWriter, "add_attempt", fails_at_pay)
    lab.make(items="variant", coverage=None)
    result = lab.run("experiment.yml")
    assert result.ret == 3
    assert lab.calls() == ["baseline::find[1]", "baseline::find[2]", "baseline::pay[1]"]
    assert "refund[2] not started: metricbench: the disk is full" in result.stdout.str()


# ---------------------------------------------------------------- parts


@pytest.mark.parametrize(
    ("unit", "workers"),
    [("task", []), ("variant", []), pytest.param("variant", ["-n2"], marks=pytest.mark.benchmark)],
    ids=["task", "variant", "variant n2"],
)
def test_a_budget_may_leave_a_part_of_an_item(lab: plugin_lab.Lab, unit: str, workers: list[str]) -> None:
    lab.make(items=unit, budget={"attempts": 7}, coverage=None)
    made, statuses = [], []
    for _ in range(3):
        result = lab.run("experiment.yml", "-v", *workers)
        statuses.append(result.ret)
        made.append(len(lab.calls()))
        if len(made) == 1:
            first = result
    assert (statuses, made) == ([6, 6, 0], [7, 7, 4])
    left = 6 if unit == "task" else 2
    assert first.stdout.str().count("LEFT") == left or workers, first.stdout.str()  # workers spend it side by side
    assert len(lab.journal()) == 18
    if not workers:
        part = "::no-pay::find LEFT (1 of 2 attempts" if unit == "task" else "::no-pay LEFT (5 of 6 attempts left"
        assert part in first.stdout.str()
        assert "the budget of 7 attempts was reached; 11 attempts are left" in first.stdout.str()


def test_shards_take_items_whole(lab: plugin_lab.Lab) -> None:
    lab.make(items="task")
    named = [f"{variant}::{task}" for variant in ("baseline", "no-pay", "quiet") for task in ("find", "pay", "refund")]
    parts = [
        node_ids(lab.run("experiment.yml", "--collect-only", "-q", f"--metricbench-shard={number}/2"))
        for number in (1, 2)
    ]
    assert sorted([*parts[0], *parts[1]]) == [f"experiment.yml::shop::{name}" for name in named]
    assert min(map(len, parts)) == 4


def test_the_plan_counts_attempts(lab: plugin_lab.Lab) -> None:
    lab.make(items="variant")
    result = lab.run("experiment.yml", "--metricbench-show=plan", "-k", "quiet")
    result.stdout.fnmatch_lines(["attempts*6 attempts of 18 of the experiment: 6 to run"])
    assert lab.calls() == []


def test_stepwise_goes_on_where_it_stopped(lab: plugin_lab.Lab) -> None:
    lab.make(items="task", outcomes=BROKEN, coverage=None)
    lab.run("experiment.yml", "--sw")
    lab.calls()
    lab.make(items="task", coverage=None)
    assert lab.run("experiment.yml", "--sw").ret == 0
    assert not [name for name in lab.calls() if name.startswith("baseline")]


# ---------------------------------------------------------------- very many items


def test_very_many_items_are_told_once(lab: plugin_lab.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "MANY_ITEMS", 20)
    tasks = [{"id": f"t{number}"} for number in range(5)]
    lab.make(case={"tasks": tasks, "mutants": [{"id": "m"}], "subsets": None}, attempts=3, coverage=None)
    (said,) = [line for line in lab.run("experiment.yml").outlines if "one an attempt" in line]
    assert "shop: 30 items, one an attempt" in said
    assert "in experiment.yml `items: task` makes 10, and `items: variant` makes 2" in said


def test_who_chose_is_not_told_of_the_choice(lab: plugin_lab.Lab) -> None:
    def notice(count: int, **keys: Any) -> str | None:
        return announcing.many_items_notice(Bench(load_experiment(lab.make(**keys)), lab.store()), count)

    assert notice(20_000) is None
    assert notice(20_001) is not None
    for unit in ("attempt", "task", "variant"):
        assert notice(30_000, items=unit) is None


@pytest.mark.benchmark
def test_they_are_told_once_though_two_workers_collect(lab: plugin_lab.Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(announcing, "MANY_ITEMS", 5)
    lab.make(coverage=None)
    said = [line for line in lab.run("experiment.yml", "-n2").outlines if "one an attempt" in line]
    assert len(said) == 1
