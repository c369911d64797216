"""Shards on several machines, and their stores united: the answer of one run."""

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.durability.durability_lab import VERIFIER, Lab, no_fault

ATTEMPTS = 24
MERGE = "--metricbench-merge"
COVERAGE = "coverage.jsonl"


def sharded(lab: Lab, count: int, **changed: object) -> list[Lab]:
    """The experiment on as many machines, each with its shard run."""
    labs = []
    for number in range(1, count + 1):
        machine = Lab(lab.path.parent / f"machine-{number}", lab._pytester)
        machine.path.mkdir()
        machine.make(**changed)
        ended = machine.run_here(f"--metricbench-shard={number}/{count}")
        assert ended.status == 0, ended
        labs.append(machine)
    return labs


def stores(labs: list[Lab]) -> list[str]:
    return [str(machine.store) for machine in labs]


def test_five_shards_merged_equal_one_run(lab: Lab) -> None:
    lab.make()
    assert lab.run_here().status == 0
    expected = lab.answer()
    machines = sharded(lab, 5)
    assert [machine.count() for machine in machines] == [5, 5, 5, 5, 4]
    assert all(machine.noted().total() == machine.count() for machine in machines)
    target = Lab(lab.path.parent / "target", lab._pytester)
    target.path.mkdir()
    target.make()
    ended = target.run_here(MERGE, *stores(machines))
    assert ended.status == 0, ended
    no_fault(ended.out)
    assert target.noted().total() == 0
    assert target.answer() == expected
    assert target.summary()["counts"]["reused"] == ATTEMPTS
    assert target.left("attempts") == {record["trial_id"] for record in target.lines()}
    again = target.run_here("--metricbench-cached-only")
    assert again.status == 0, again
    assert target.answer() == expected


def test_coverage_that_a_shard_measured_is_not_measured_again(lab: Lab) -> None:
    lab.make()
    assert lab.run_here().status == 0
    target = lab.copy("target")
    shutil.rmtree(target.path / ".metricbench")
    target.forget()
    ended = target.run_here(MERGE, str(lab.store), "--metricbench-cached-only")
    assert ended.status == 0, ended
    assert (target.noted() + target.noted("covered.txt")).total() == 0
    assert target.answer() == lab.answer()
    assert target.summary()["counts"]["reused"] == ATTEMPTS


def test_the_same_stores_again_change_nothing(lab: Lab) -> None:
    machines = sharded(lab, 2)
    lab.make()
    assert lab.run_here(MERGE, *stores(machines)).status == 0
    before = (lab.store / "attempts.jsonl").read_bytes()
    ended = lab.run_here(MERGE, *stores(machines), *stores(machines))
    assert ended.status == 0, ended
    assert "took over 0 attempts" in ended.out
    assert (lab.store / "attempts.jsonl").read_bytes() == before


def test_conflicts_are_named_and_nothing_is_taken_over(lab: Lab) -> None:
    machines = sharded(lab, 2)
    ended = machines[1].run_here("-k", "t1")  # measured there too, by another attempt
    assert ended.status == 0, ended
    lab.make()
    ended = lab.run_here(MERGE, *stores(machines))
    assert ended.status == 4, ended
    no_fault(ended.out)
    assert "two different results of one key" in ended.out
    flat = ended.out.replace("\n", "")
    assert all(str(machine.store) in flat for machine in machines)
    assert lab.count() == 0
    assert not lab.left("attempts")


@pytest.mark.parametrize(
    ("changed", "said"),
    [({"name": "other"}, "other"), ({"seed": 9}, "seed"), ({"case": {"baseline": {"params": {"x": 1}}}}, "baseline")],
)
def test_another_experiment_is_refused(lab: Lab, changed: dict[str, object], said: str) -> None:
    machine = Lab(lab.path.parent / "machine", lab._pytester)
    machine.path.mkdir()
    machine.make(**changed)
    assert machine.run_here().status == 0
    (store,) = (machine.path / ".metricbench").glob("[a-z]*")
    lab.make()
    assert lab.run_here("-k", "t1").status == 0
    before = (lab.store / "attempts.jsonl").read_bytes()
    ended = lab.run_here(MERGE, str(store))
    assert ended.status == 4, ended
    no_fault(ended.out)
    assert said in ended.out
    assert (lab.store / "attempts.jsonl").read_bytes() == before


def test_measured_beats_unmeasured_and_names_what_it_superseded(lab: Lab) -> None:
    """A machine whose judge was out of reach, and one whose judge was not."""
    lab.make()
    lab.write("verify.sh", '[ -f "${0%/*}/reachable" ] || exit 7\n' + VERIFIER)
    machine = lab.copy("machine")
    machine.write("reachable", "")
    assert machine.run_here().status == 0
    assert lab.run_here().status == 1
    before = lab.attempts()
    unmeasured = {name for name, record in before.items() if record["outcome"] == "unmeasured"}
    assert len(unmeasured) == ATTEMPTS - 2
    lab.forget()
    ended = lab.run_here(MERGE, str(machine.store), "--deselect=experiment.yml::c::m2::t3")
    assert ended.status == 4, ended  # those two died on both machines: two results of one key
    assert ended.out.count("attempt c::m2::t3") == 2
    machine = machine.copy("other-machine")
    kept = [record for record in machine.lines() if record["task"] != "t3" or record["variant"] != "m2"]
    machine.rewrite(kept)
    ended = lab.run_here(MERGE, str(machine.store))
    assert ended.status == 0, ended
    assert (lab.noted() + lab.noted("verified.txt")).total() == 0
    after = lab.attempts()
    assert all(after[name]["supersedes"] == before[name]["trial_id"] for name in unmeasured)
    assert lab.left("stale") == {before[name]["trial_id"] for name in unmeasured}
    assert lab.left("attempts") == {record["trial_id"] for record in after.values()}


def test_two_answers_to_one_coverage_request_conflict(lab: Lab) -> None:
    lab.make()
    assert lab.run_here().status == 0
    machine = lab.copy("machine")
    lines = machine.lines("coverage.jsonl")
    machine.rewrite([{**line, "value": 0.75 if line["subset"] == "s2" else line["value"]} for line in lines], COVERAGE)
    ended = lab.run_here(MERGE, str(machine.store))
    assert ended.status == 4, ended
    assert "coverage c share s2: " in ended.out
    assert "coverage c share s1: " not in ended.out
    other = [{**line, "request_digest": "sha256:of-other-evidence", "value": 0.75} for line in lines]
    machine.rewrite(other, COVERAGE)
    ended = lab.run_here(MERGE, str(machine.store))
    assert ended.status == 0, ended
    assert {line["value"] for line in lab.lines("coverage.jsonl")} == {0.5}


STOPPING = """
import sys, time
from pathlib import Path
from pytest_metricbench.store import merging
from pytest_metricbench.store.writing import StoreWriter

copy = merging.copy_file

point, into, *stores = sys.argv[1:]
journal = Path(into, "attempts.jsonl")

def stops_at_the_point(source, target):
    copy(source, target)
    content = target.read_bytes()
    merged = journal.read_bytes().count(b"\\n") if journal.exists() else 0
    if content and merged >= int(point):  # as far as a copy comes that is killed in the middle
        target.write_bytes(content[:-1])
        Path("half").touch()
        time.sleep(60)

merging.copy_file = stops_at_the_point
writer = StoreWriter(Path(into))
merging.merge_stores(writer, [Path(store) for store in stores])
"""


@pytest.mark.slow
@pytest.mark.parametrize("point", [0, 3, 11])
def test_a_merge_that_was_killed_can_be_made_again(lab: Lab, point: int) -> None:
    machines = sharded(lab, 2)
    lab.make()
    (lab.path / ".metricbench/lab").mkdir(parents=True)
    script = lab.write("stop.py", STOPPING)
    process = subprocess.Popen(
        [sys.executable, str(script), str(point), str(lab.store), *stores(machines)],
        cwd=lab.path,
        start_new_session=True,
    )
    lab.kill_when(process, (lab.path / "half").exists, lambda pid: os.kill(pid, signal.SIGKILL))
    assert point <= lab.count() < ATTEMPTS
    ended = lab.run_here(MERGE, *stores(machines))
    assert ended.status == 0, ended
    assert lab.noted().total() == 0
    assert lab.summary()["counts"]["reused"] == ATTEMPTS
    assert lab.count() == ATTEMPTS


def test_a_damaged_store_is_refused_by_name(lab: Lab) -> None:
    machines = sharded(lab, 2)
    trace = next(machines[1].store.glob("attempts/*/*/*/*/trace.txt"))
    trace.write_text("other")
    lab.make()
    ended = lab.run_here(MERGE, *stores(machines))
    assert ended.status == 4, ended
    assert str(trace.parent) in ended.out.replace("\n", "")
    trace.write_text("a trace of the agent\n")
    ended = lab.run_here(MERGE, *stores(machines))
    assert ended.status == 0, ended
    assert lab.noted().total() == 0


def test_shards_by_durations_are_a_partition(lab: Lab) -> None:
    lab.make()
    assert lab.run_here().status == 0
    durations = lab.write("durations.jsonl", (lab.store / "attempts.jsonl").read_text())
    seen: list[str] = []
    for number in (1, 2, 3):
        shutil.rmtree(lab.path / ".metricbench")
        ended = lab.run_here(f"--metricbench-shard={number}/3", f"--metricbench-durations={durations}")
        assert ended.status == 0, ended
        seen += lab.attempts()
    assert len(seen) == len(set(seen)) == ATTEMPTS


def test_durations_that_were_damaged_are_an_error_with_a_line(lab: Lab) -> None:
    lab.make()
    assert lab.run_here().status == 0
    text = (lab.store / "attempts.jsonl").read_text()
    first, rest = text.split("\n", 1)
    record = json.loads(rest.split("\n", 1)[0])
    damaged = rest.replace(f'"duration":{record["duration"]}', f'"duration":9{record["duration"]}', 1)
    assert damaged != rest
    durations = lab.write("durations.jsonl", f"{first}\n{damaged}")
    ended = lab.run("--metricbench-shard=1/2", f"--metricbench-durations={durations}")
    assert ended.status == 4, ended
    assert f"{Path(durations).name}:2: " in ended.out
    no_fault(ended.out)
