"""``--metricbench-cached-only`` and ``--metricbench-cached-attempts``: the answer without what it was made from."""

import json
import shutil
from pathlib import Path

import pytest

from pytest_metricbench import analyze, load_experiment, open_store
from pytest_metricbench.analysis.summary_json import summary_to_json
from tests.durability.durability_lab import Lab, no_fault

ATTEMPTS = 24
ONLY = "--metricbench-cached-only"
ATTEMPTS_ONLY = "--metricbench-cached-attempts"
WITNESS = """
import pathlib
import sys

STARTED = pathlib.Path(__file__).with_name("started.txt")

def note(event, arguments):
    if event in ("subprocess.Popen", "os.posix_spawn", "os.fork", "os.forkpty", "os.exec", "os.system"):
        with open(STARTED, "a") as file:
            file.write(f"{event} {arguments!r}\\n")

sys.addaudithook(note)
"""
"""A conftest.py that notes every process that is started."""


def complete(lab: Lab) -> bytes:
    """A complete store; gives the bytes of the summary of a run that took everything from it."""
    lab.write("policy.md", "Be polite.\n")
    lab.make(case={"inputs": ["policy.md", "*.note"]})
    lab.write("glob.note", "part of a glob\n")
    assert lab.run_here().status == 0
    shutil.rmtree(lab.store / "interrupted", ignore_errors=True)
    assert lab.run_here().status == 0
    lab.forget()
    return (lab.store / "summary.json").read_bytes()


def bare(lab: Lab, name: str = "elsewhere") -> Lab:
    """The store and the experiment file in another folder, and nothing else."""
    folder = lab.path.parent / name / "deep"
    shutil.copytree(lab.path / ".metricbench", folder / ".metricbench")
    shutil.copy(lab.path / "experiment.yml", folder)
    (folder / ".metricbench/lab/summary.json").unlink()
    return Lab(folder, lab._pytester)


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_the_same_bytes_without_agent_verifier_coverage_inputs_and_path(lab: Lab, workers: int) -> None:
    expected = complete(lab)
    other = bare(lab)
    other.write("conftest.py", WITNESS)
    before = everything(other.store)
    ended = other.run(ONLY, f"-n{workers}", env={"PATH": "", "HOME": "/nowhere"})
    assert ended.status == 0, ended
    no_fault(ended.out)
    assert (other.store / "summary.json").read_bytes() == expected
    started = other.path / "started.txt"
    lines = started.read_text().splitlines() if started.exists() else []
    # pytest-xdist starts its workers, and asks for the name of the processor
    assert all("-c" in line or "uname" in line for line in lines), lines
    assert sum("'-c'" in line for line in lines) == workers
    after = everything(other.store)
    assert {name: content for name, content in after.items() if name not in ("summary.json", "lock")} == {
        name: content for name, content in before.items() if name != "lock"
    }


def test_the_stages_give_the_same_bytes(lab: Lab) -> None:
    expected = complete(lab)
    other = bare(lab)
    before = everything(other.path)
    experiment = load_experiment(other.path / "experiment.yml", cached_only=True)
    summary = analyze(experiment, open_store(other.store))
    assert summary_to_json(summary).encode() == expected
    assert everything(other.path) == before


def test_what_is_missing_is_named(lab: Lab) -> None:
    complete(lab)
    other = bare(lab)
    for journal, gone in (
        ("attempts.jsonl", {("m1", "t2", 1), ("baseline", "t4", 2)}),
        ("coverage.jsonl", {("share", "s2")}),
    ):
        path = other.store / journal
        lines = path.read_text().splitlines(keepends=True)
        kept = [line for line in lines if identity(line) not in gone]
        assert len(kept) == len(lines) - len(gone)
        path.write_text("".join(kept))
    ended = other.run_here(ONLY, "-v")
    assert ended.status == 1, ended
    no_fault(ended.out)
    for name in ("c::m1::t2[1]", "c::baseline::t4[2]"):
        assert f"experiment.yml::{name} FAILED" in ended.out
    assert "it is not in the store" in ended.out
    assert "with --metricbench-cached-only no attempt runs" in ended.out
    assert "experiment.yml::c::coverage::share[s2] FAILED" in ended.out
    assert "coverage c share s2: it is not in the store" in ended.out
    assert ended.out.count("FAILED experiment.yml::c::") >= 3
    assert (other.noted() + other.noted("covered.txt")).total() == 0


def identity(line: str) -> tuple[object, ...]:
    record = json.loads(line)
    return (
        (record["variant"], record["task"], record["attempt"])
        if "trial_id" in record
        else (record["system"], record["subset"])
    )


def stale_cases() -> dict[str, tuple[dict[str, object], dict[str, str], str]]:
    """What is changed -> keys of the definition, files, and what the failure says."""
    changed = "what its result depends on has changed"
    return {
        "seed": ({"seed": 5}, {}, changed),
        "input": ({}, {"policy.md": "Be terse.\n"}, changed),
        "agent": ({}, {"agent.sh": "exit 1\n"}, changed),
        "verifier": ({}, {"verify.sh": "exit 1\n"}, "its verifier has changed"),
        "params": ({"case": {"baseline": {"params": {"x": 1}}}}, {}, changed),
    }


@pytest.mark.parametrize("what", stale_cases())
def test_what_is_stale_is_named_with_its_reason(lab: Lab, what: str) -> None:
    keys, files, reason = stale_cases()[what]
    complete(lab)
    before = (lab.store / "attempts.jsonl").read_bytes()
    case = {"inputs": ["policy.md", "*.note"], **keys.pop("case", {})}  # type: ignore[dict-item]
    lab.define(case=case, **keys)
    for name, text in files.items():
        lab.write(name, text)
    ended = lab.run_here(ONLY, "-v")
    assert ended.status == 1, ended
    no_fault(ended.out)
    touched = 8 if what == "params" else 22 if what == "verifier" else 24
    assert ended.out.count(f"\nnot measured: {reason}") == touched
    assert (lab.noted() + lab.noted("verified.txt") + lab.noted("covered.txt")).total() == 0
    assert (lab.store / "attempts.jsonl").read_bytes() == before


def test_a_stale_coverage_answer_is_named(lab: Lab) -> None:
    complete(lab)
    lab.write("cover.sh", "echo '{\"value\": 0.7}' > response.json\n")
    (lab.store / "coverage/c/share/s1/seen.txt").write_text("other")
    ended = lab.run_here(ONLY)
    assert ended.status == 1, ended
    assert ended.out.count("the settings of its system have changed, and with --metricbench-cached-only") == 4
    for subset in ("s1", "s2", "s3", "pool"):
        assert f"coverage c share {subset}: " in ended.out
    assert lab.noted("covered.txt").total() == 0


@pytest.mark.parametrize("name", ["seen.txt", "response.json", "receipt.json"])
def test_a_damaged_coverage_answer_is_named(lab: Lab, name: str) -> None:
    complete(lab)
    path = lab.store / "coverage/c/share/s1" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(bytes(content))
    ended = lab.run_here(ONLY)
    assert ended.status == 1, ended
    assert "coverage c share s1: files that it left are missing or have changed" in ended.out


def test_a_damaged_workspace_is_named(lab: Lab) -> None:
    complete(lab)
    (path,) = lab.store.glob(f"attempts/c/m1/t1/{lab.attempts()['m1::t1[1]']['trial_id']}/trace.txt")
    path.write_text("other")
    ended = lab.run_here(ONLY)
    assert ended.status == 1, ended
    assert "m1::t1[1]" in ended.out
    assert "files that it left are missing or have changed" in ended.out


def test_coverage_is_measured_from_saved_evidence_without_the_agent(lab: Lab) -> None:
    complete(lab)
    shutil.rmtree(lab.store / "coverage")
    (lab.store / "coverage.jsonl").unlink()
    for name in ("agent.sh", "verify.sh", "policy.md", "glob.note"):
        (lab.path / name).unlink()
    before = (lab.store / "attempts.jsonl").read_bytes()
    ended = lab.run_here(ATTEMPTS_ONLY)
    assert ended.status == 0, ended
    assert lab.noted().total() == 0
    assert lab.noted("covered.txt").total() == 4
    assert lab.count("coverage.jsonl") == 4
    assert (lab.store / "attempts.jsonl").read_bytes() == before
    assert "trace.txt" in (lab.store / "coverage/c/share/s1/seen.txt").read_text()


def test_cached_attempts_names_what_is_missing_and_measures_the_rest(lab: Lab) -> None:
    lab.make()
    assert lab.run_here("-k", "not (baseline and t3)").status == 0
    lab.forget()
    shutil.rmtree(lab.store / "coverage", ignore_errors=True)
    (lab.store / "coverage.jsonl").unlink(missing_ok=True)
    ended = lab.run_here(ATTEMPTS_ONLY)
    assert ended.status == 1, ended
    assert ended.out.count("it is not in the store, and with --metricbench-cached-attempts no attempt runs") == 2
    assert lab.noted().total() == 0
    assert {line["subset"] for line in lab.lines("coverage.jsonl")} == {"s1"}
