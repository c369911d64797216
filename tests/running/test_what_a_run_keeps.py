"""A run beside its store, without pytest: what was selected, what arrives or is refused, what becomes of an attempt."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest

from pytest_metricbench import load_experiment
from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import AttemptError, AttemptKey, AttemptRecord, AttemptRequest, Outcome
from pytest_metricbench.definition.scoring import Status
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.runs import ExperimentRun
from pytest_metricbench.running.wire import (
    GroupMessage,
    GroupWord,
    LeftPart,
    Part,
    WireError,
    group_to_wire,
    to_wire,
)
from pytest_metricbench.store.writing import StoreWriter

BASE, OTHER, MUTANT, LAST = KEYS = [("c", variant, task, 1) for variant in ("baseline", "m") for task in ("t1", "t2")]
EXPERIMENT = {
    "metricbench": 1,
    "name": "kept",
    "attempts": 1,
    "runner": {"kind": "passing"},
    "cases": [{"id": "c", "tasks": [{"id": "t1"}, {"id": "t2"}], "mutants": [{"id": "m", "description": "Worse."}]}],
}


class PassingRunner(Runner):
    """Passes."""

    kind: Literal["passing"] = "passing"

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        return Outcome.scored({"reward": 1.0})


class Table:
    """Runs of one experiment on one store."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "experiment.yml"
        self.path.write_text(json.dumps(EXPERIMENT), encoding="utf-8")
        self.root = folder / "store"
        self.writer: StoreWriter | None = None

    def begin(self, selected: Sequence[AttemptKey] = KEYS) -> ExperimentRun:
        """A session that selected these attempts; an earlier one is over."""
        self.end()
        bench = Bench(load_experiment(self.path, runners_by_kind={"passing": PassingRunner}), self.root)
        self.writer = StoreWriter(self.root)
        bench.stored = self.writer.contents.attempts
        return ExperimentRun.begin(bench, self.writer, set(selected), None)

    def end(self) -> None:
        if self.writer is not None:
            self.writer.close()


@pytest.fixture
def table(tmp_path: Path) -> Iterator[Table]:
    made = Table(tmp_path)
    yield made
    made.end()


def made(run: ExperimentRun, key: AttemptKey) -> AttemptRecord:
    """What making an attempt gives; nothing is kept of it."""
    (case,) = run.bench.experiment.cases
    variant = next(variant for variant in case.variants if variant.id == key[1])
    task = next(task for task in case.tasks if task.id == key[2])
    return run.bench.attempts.perform(case, variant, task, key[3]).record


def became(run: ExperimentRun) -> list[str]:
    return [run.became(key) for key in KEYS if key in run.selected]


def lines(run: ExperimentRun) -> int:
    return len(run.writer.layout.attempts.read_bytes().splitlines())


# ---------------------------------------------------------------- one attempt


def test_before_anything_arrives_all_that_was_selected_is_missing(table: Table) -> None:
    run = table.begin()
    assert became(run) == ["missing"] * 4
    assert set(run.missing()) == set(KEYS)
    assert run.part is None


@pytest.mark.parametrize(
    ("status", "outcome", "expected"),
    [
        ("passed", "scored", "measured"),
        ("missed", "scored", "measured"),
        ("died", "died", "measured"),
        ("unmeasured", "unmeasured", "unmeasured"),
        ("not_reached", "not_reached", "measured"),
    ],
)
def test_what_arrives_is_kept_under_its_word(
    table: Table, status: Status, outcome: Literal["scored", "died", "unmeasured", "not_reached"], expected: str
) -> None:
    run = table.begin()
    error = None if outcome == "scored" else AttemptError("E", "why", "agent")
    record = replace(made(run, BASE), outcome=outcome, error=error)
    assert run.receive(BASE, to_wire(status, [record])) == status
    assert became(run) == [expected, "missing", "missing", "missing"]
    assert run.writer.contents.attempts[BASE] == record
    assert lines(run) == 1


def test_one_that_was_taken_from_the_store_is_reused_and_no_line_is_written(table: Table) -> None:
    first = table.begin()
    first.receive(BASE, to_wire("passed", [made(first, BASE)]))
    run = table.begin()
    assert run.receive(BASE, to_wire("passed", [])) == "reused"
    assert became(run)[0] == "reused"
    assert lines(run) == 1


def test_who_made_an_attempt_need_not_know_what_was_kept_before(table: Table) -> None:
    run = table.begin()
    first, again = made(run, BASE), made(run, BASE)
    assert first.trial_id != again.trial_id
    run.receive(BASE, to_wire("passed", [first]))
    run.receive(BASE, to_wire("passed", [again]))
    assert [record.supersedes for record in run.writer.contents.history()] == [None, first.trial_id]


@pytest.mark.parametrize(
    ("wire", "said"),
    [
        ("", "Invalid JSON"),
        ("[]", "Input should be an object"),
        (to_wire("passed", []), "it says that the attempt is in the store, which does not have it"),
    ],
    ids=["nothing", "else", "not-in-store"],
)
def test_what_cannot_be_true_is_refused_and_nothing_is_kept(table: Table, wire: str, said: str) -> None:
    run = table.begin()
    with pytest.raises(WireError, match=said):
        run.receive(BASE, wire)
    assert became(run) == ["missing"] * 4
    assert lines(run) == 0


def test_what_is_about_another_attempt_is_refused(table: Table) -> None:
    run = table.begin()
    with pytest.raises(WireError, match=r"^it is about c::m::t1\[1\]$"):
        run.receive(BASE, to_wire("passed", [made(run, MUTANT)]))
    assert lines(run) == 0


# ---------------------------------------------------------------- several at once


def group(word: GroupWord, parts: Sequence[Part], left: Sequence[LeftPart] = ()) -> str:
    return group_to_wire(GroupMessage(word, tuple(parts), tuple(left)))


def part(run: ExperimentRun, key: AttemptKey, status: Status = "passed") -> Part:
    return Part(key[2], key[3], status, (made(run, key),))


def test_a_group_says_of_each_attempt_what_became_of_it(table: Table) -> None:
    run = table.begin()
    wire = group("left", [part(run, MUTANT)], [LeftPart("t2", 1, "1 attempt")])
    assert run.receive_group([MUTANT, LAST], wire) == "left"
    assert became(run) == ["missing", "missing", "measured", "left"]
    assert run.part == "4 attempts; the budget of 1 attempt was reached before 1 of them"
    assert run.absent == {LAST}


@pytest.mark.parametrize(
    ("tasks", "left", "said"),
    [
        (["t1", "t1"], [], r"it is about c::m::t1\[1\] 2 times"),
        (["t1"], ["t1"], r"it is about c::m::t1\[1\] 2 times"),
        (["t1", "t3"], [], r"it is about c::m::t3\[1\]"),
        (["t1"], ["t3"], r"it is about c::m::t3\[1\]"),
    ],
    ids=["twice", "arrived-and-left", "another", "another-left"],
)
def test_of_a_group_all_is_kept_or_nothing(table: Table, tasks: list[str], left: list[str], said: str) -> None:
    run = table.begin()
    good = part(run, MUTANT)
    parts = [replace(good, task=task) for task in tasks]
    with pytest.raises(WireError, match=f"^{said}$"):
        run.receive_group([MUTANT, LAST], group("mixed", parts, [LeftPart(task, 1, "no money") for task in left]))
    assert became(run) == ["missing"] * 4
    assert lines(run) == 0


def test_a_record_of_another_attempt_spoils_its_whole_group(table: Table) -> None:
    run = table.begin()
    strange = replace(part(run, LAST), records=(made(run, BASE),))
    with pytest.raises(WireError, match=r"^it is about c::baseline::t1\[1\]$"):
        run.receive_group([MUTANT, LAST], group("solved", [part(run, MUTANT), strange]))
    assert lines(run) == 0


def test_the_first_limit_that_was_reached_is_told(table: Table) -> None:
    run = table.begin()
    run.leave(MUTANT, "1 attempt")
    run.leave(LAST, "cost 3")
    assert run.reached == "1 attempt"
    assert set(run.missing()) == {BASE, OTHER}


# ---------------------------------------------------------------- a part of the experiment


@pytest.mark.parametrize(
    ("before", "selected", "kept", "outside", "part"),
    [
        ([], KEYS, [], [], None),
        (KEYS, KEYS, [], [], None),
        ([], [BASE], [], [OTHER, MUTANT, LAST], "1 of 4 attempts selected"),
        ([BASE, OTHER], [MUTANT], [BASE, OTHER], [LAST], "1 of 4 attempts selected, 2 more taken from the store"),
        (KEYS, [LAST], [BASE, OTHER, MUTANT], [], "1 of 4 attempts selected, 3 more taken from the store"),
    ],
    ids=["whole", "again", "part", "rest", "last"],
)
def test_every_attempt_is_selected_or_kept_or_outside(
    table: Table,
    before: list[AttemptKey],
    selected: list[AttemptKey],
    kept: list[AttemptKey],
    outside: list[AttemptKey],
    part: str | None,
) -> None:
    first = table.begin()
    for key in before:
        first.receive(key, to_wire("passed", [made(first, key)]))
    run = table.begin(selected)
    assert set(run.kept) == set(kept)
    assert run.outside == set(outside)
    assert sorted([*run.selected, *run.kept, *run.outside]) == sorted(KEYS)
    assert run.part == part
    assert became(run) == ["missing"] * len(selected)
