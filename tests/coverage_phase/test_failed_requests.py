"""Coverage requests that fail, each in its own way: all end in one place, and none costs another."""

import re
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.faults.session_lab import Lab, alive, no_fault, words

AGENT = """
import json
from pathlib import Path

Path("trace.txt").write_text("what the agent did")
Path("sub").mkdir()
Path("sub/more.txt").write_text("and more of it")
Path("response.json").write_text('{"scores": {"reward": 1}}')
"""
COMMAND = r"""
import json, os, shutil, signal, sys, time
from pathlib import Path

request = json.loads(Path("request.json").read_text())
how = request["subset"]
here, outside = Path.cwd(), Path(request["settings"]["outside"])
task_folder = Path("evidence/t1")
trace = Path(next(file["path"] for file in request["evidence"]["t1"] if file["name"] == "trace.txt"))
answer = Path("response.json")
good = '{"value": 0.5}'

ANSWERS = {
    "empty": "", "torn": '{"value": 0.', "no-json": "value: 0.5", "list": "[0.5]", "bare": "0.5",
    "text": '{"value": "0.5"}', "true": '{"value": true}', "nan": '{"value": NaN}',
    "infinity": '{"value": Infinity}', "negative": '{"value": -0.1}', "above": '{"value": 1.01}',
    "null-alone": '{"value": null}', "null-blank": '{"value": null, "reason": " "}',
    "null-number": '{"value": null, "reason": 7}', "no-value": '{"reason": "none"}',
    "other-key": '{"value": 0.5, "note": 1}', "huge": '{"value": 0.5, "reason": "' + "x" * (50 << 20) + '"}',
    "null-with-reason": '{"value": null, "reason": "nothing to count"}', "good": good, "zero": '{"value": 0}',
}
if how in ANSWERS:
    answer.write_text(ANSWERS[how])
elif how == "exits":
    answer.write_text(good)
    print("half of it done", file=sys.stderr)
    sys.exit(3)
elif how == "killed":
    answer.write_text(good)
    os.kill(os.getpid(), signal.SIGKILL)
elif how == "slow":
    answer.write_text(good)
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        (outside / "grandchild").write_text(str(os.getpid()))
    time.sleep(300)
elif how == "changed":
    answer.write_text(good)
    trace.write_text("something nicer")
elif how == "deleted":
    answer.write_text(good)
    trace.unlink()
elif how == "link-to-itself":
    answer.write_text(good)
    trace.unlink()
    trace.symlink_to(trace.name)
elif how == "link-to-a-copy":
    answer.write_text(good)
    shutil.copy(trace, "copy")
    trace.unlink()
    trace.symlink_to(here / "copy")
elif how == "folder-is-a-link":
    answer.write_text(good)
    os.rename("evidence", "moved")
    os.symlink("moved", "evidence")
elif how == "folder-is-the-root":
    answer.write_text(good)
    shutil.rmtree("evidence")
    os.symlink("/", "evidence")
elif how == "all-at-once":
    answer.write_text('{"value": true}')
    trace.write_text("something nicer")
    shutil.rmtree(trace.parent / "sub")
elif how == "answer-is-a-link":
    (outside / "answer.json").write_text(good)
    answer.symlink_to(outside / "answer.json")
elif how == "answer-is-a-pipe":
    os.mkfifo(answer)
elif how == "workspace-gone":
    os.chdir("/")
    shutil.rmtree(here)
elif how == "workspace-is-a-link":
    answer.write_text(good)
    os.chdir("/")
    shutil.move(here, outside / "moved")
    os.symlink(outside / "moved", here)
elif how == "receipt":
    answer.write_text(good)
    Path("receipt.json").mkdir()
elif how == "deep":
    answer.write_text(good)
    for _ in range(30):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    Path("bottom").write_text("far down")
elif how == "goals":
    answer.write_text(good)
    Path("goals.json").write_text('{"universe": ["a"], "by_task": {"t1": ["b"]}}')
elif how == "observations":
    answer.write_text(good)
    Path("notes").mkdir()
    Path("notes/one.md").write_text("seen")
    Path("evidence/new.txt").write_text("mine")
    os.mkfifo("pipe")
    os.symlink("/etc/passwd", "link")
"""
FAILED = {
    "exits": ["ended with exit status 3", "half of it done"],
    "killed": ["was killed by SIGKILL"],
    "slow": ["ran longer than 2 s and was stopped"],
    "nothing": ["response.json was not written"],
    "empty": ["response.json is empty"],
    "torn": ["response.json is not JSON"],
    "no-json": ["response.json is not JSON"],
    "list": ["is expected"],
    "bare": ["is expected"],
    "text": ["value is the text"],
    "true": ["value is the boolean"],
    "nan": ["a number from 0 to 1"],
    "infinity": ["a number from 0 to 1"],
    "negative": ["value is -0.1"],
    "above": ["value is 1.01"],
    "null-alone": ["no reason is given"],
    "null-blank": ["no reason is given"],
    "null-number": ["reason is"],
    "no-value": ['has no "value"'],
    "other-key": ["'note'"],
    "huge": ["bytes; at most"],
    "changed": ["trace.txt was changed"],
    "deleted": ["trace.txt is gone"],
    "link-to-itself": ["trace.txt is gone"],
    "link-to-a-copy": ["trace.txt is gone"],
    "folder-is-a-link": ["trace.txt is gone", "more.txt is gone"],
    "folder-is-the-root": ["trace.txt is gone", "more.txt is gone"],
    "all-at-once": ["value is the boolean true", "trace.txt was changed", "more.txt is gone"],
    "answer-is-a-link": ["regular file"],
    "answer-is-a-pipe": ["regular file"],
    "workspace-gone": ["response.json was not written", "the folder of the request is gone"],
    "workspace-is-a-link": ["the folder of the request was replaced"],
    "receipt": ["receipt.json"],
    "goals": ["'b'"],
}
MEASURED: dict[str, tuple[float | None, str | None]] = {
    "null-with-reason": (None, "nothing to count"),
    "good": (0.5, None),
    "zero": (0.0, None),
    "deep": (0.5, None),
    "observations": (0.5, None),
}


@pytest.fixture(params=["beside", "elsewhere"])
def temporary(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Where requests are measured: on the store's file system, and on another one. Nothing may be left there."""
    place = tmp_path if request.param == "beside" else Path("/dev/shm")
    if request.param == "elsewhere" and not (place.is_dir() and place.stat().st_dev != tmp_path.stat().st_dev):
        pytest.skip("no other file system to write to")
    folder = Path(tempfile.mkdtemp(dir=place))
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    folder.rmdir()


def make(lab: Lab, outside: Path, subsets: list[str], **system: Any) -> None:
    lab.write("cover.py", COMMAND)
    outside.mkdir(exist_ok=True)
    entry = {"id": "cover", "kind": "command", "command": ["{python}", "cover.py"], "timeout": 2}
    lab.make(
        AGENT,
        command=True,
        tasks=["t1"],
        mutants=["m1"],
        subsets=[{"id": subset, "tasks": ["t1"]} for subset in subsets],
        coverage=[{**entry, "settings": {"outside": str(outside)}, **system}],
    )


@pytest.mark.slow
def test_every_failure_takes_one_path(lab: Lab, tmp_path: Path, temporary: Path) -> None:
    outside = tmp_path / "outside"
    make(lab, outside, [*FAILED, *MEASURED])
    result = lab.run("experiment.yml", "-v", "--junit-xml=junit.xml")
    output = result.stdout.str()
    no_fault(output)
    assert result.ret == 1
    shown = {name.removeprefix("coverage::cover["): word for name, word in words(output).items() if "::cover[" in name}
    assert shown == {f"{how}]": "FAILED" for how in ("pool", *FAILED)} | {f"{how}]": "PASSED" for how in MEASURED}
    requests = lab.requests()
    assert len(requests) == len(FAILED) + len(MEASURED) + 1
    junit = (lab.path / "junit.xml").read_text("utf-8")

    for how, said in FAILED.items():
        record = requests[f"cover[{how}]"]
        assert record["outcome"] == "failed", how
        assert record["value"] is record["goals"] is None
        assert record["files"] == {}
        for words_of_it in said:
            assert words_of_it in record["error"], how
        first = record["error"].splitlines()[0]
        assert f"coverage c cover {how}: {first}" in output
        kept = lab.store / "coverage" / "c" / "cover" / f"failed-{how}-1"
        assert record["error"].endswith(f"kept in {kept}")
        assert kept.is_dir()
        assert not kept.is_symlink()
        assert not (kept / "receipt.json").is_file()
        assert not (lab.store / "coverage" / "c" / "cover" / how).exists()
        assert f'name="cover[{how}]"' in junit
    assert (lab.store / "coverage/c/cover/failed-exits-1/command.stderr").read_text() == "half of it done\n"
    assert re.search(f'failures="{len(FAILED) + 1}"', junit)
    assert not alive(int((outside / "grandchild").read_text()))

    for how, (value, reason) in MEASURED.items():
        record = requests[f"cover[{how}]"]
        assert (record["outcome"], record["value"], record["reason"]) == ("measured", value, reason)
        assert (lab.store / "coverage" / "c" / "cover" / how / "receipt.json").is_file()
    observed = requests["cover[observations]"]["files"]
    expected = {"notes/one.md", "evidence/new.txt", "response.json", "request.json", "command.stdout", "command.stderr"}
    assert observed.keys() == expected  # no pipe, no link, no copy of evidence
    assert (lab.store / "coverage/c/cover/observations/notes/one.md").read_text() == "seen"
    assert (lab.store / "coverage/c/cover/observations/evidence/new.txt").read_text() == "mine"
    assert not (lab.store / "coverage/c/cover/good/evidence").exists()

    assert list(temporary.iterdir()) == []
    attempt = lab.attempts()["baseline::t1[1]"]
    assert (lab.workspace(attempt) / "trace.txt").read_text() == "what the agent did"  # they had copies
    assert lab.counts() == {"declared": 2, "passed": 2}
    listed = {failure["subset"] for failure in lab.summary()["cases"]["c"]["coverage_failures"]}
    assert listed == {"pool", *FAILED}


def test_what_failed_is_asked_again_and_what_was_measured_is_not(lab: Lab, tmp_path: Path) -> None:
    make(lab, tmp_path / "outside", ["exits", "good"])
    lab.run("experiment.yml")
    result = lab.run("experiment.yml", "-v")
    assert words(result.stdout.str()) == {
        "baseline::t1[1]": "REUSED",
        "m1::t1[1]": "REUSED",
        "coverage::cover[exits]": "FAILED",
        "coverage::cover[good]": "REUSED",
        "coverage::cover[pool]": "FAILED",
    }
    assert (lab.store / "coverage/c/cover/failed-exits-2").is_dir()


def test_a_command_that_cannot_start(lab: Lab, tmp_path: Path) -> None:
    broken = lab.write("broken", "neither a script nor a program")
    broken.chmod(0o755)
    make(lab, tmp_path / "outside", ["s1"], command=[str(broken)])
    result = lab.run("experiment.yml", "-v")
    assert result.ret == 1
    no_fault(result.stdout.str())
    assert "cannot be started" in lab.requests()["cover[s1]"]["error"]
    assert (lab.store / "coverage/c/cover/failed-s1-1/request.json").is_file()


def test_maxfail_is_heeded_between_requests(lab: Lab, tmp_path: Path) -> None:
    make(lab, tmp_path / "outside", ["exits", "good", "empty", "zero"])
    result = lab.run("experiment.yml", "-v", "--maxfail=2")
    assert result.ret == 1
    assert list(words(result.stdout.str()).values()) == ["PASSED", "PASSED", "FAILED", "PASSED", "FAILED"]
    assert "stopping after 2 failures" in result.stdout.str()
    assert set(lab.requests()) == {"cover[exits]", "cover[good]", "cover[empty]"}
    absent = lab.summary(partial=True)["cases"]["c"]["subsets"]["zero"]["coverage"]["cover"]
    assert (absent["value"], absent["reason"]) == (None, "the run ended before it was measured")


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.benchmark)], ids=["plain", "n2"])
def test_stopping_at_a_failed_attempt_skips_coverage(lab: Lab, tmp_path: Path, workers: list[str]) -> None:
    make(lab, tmp_path / "outside", ["good"])
    lab.write(
        "agent.py",
        AGENT + "\nif json.loads(Path('request.json').read_text())['variant']['id'] == 'm1':\n"
        "    Path('response.json').write_text('no score')\n",
    )
    ended = lab.run_apart("experiment.yml", "-x", *workers)
    assert ended.status == (2 if workers else 1), ended  # pytest-xdist's own status for -x
    no_fault(ended.out)
    assert lab.requests() == {}
    assert not (lab.store / "coverage").exists()
    assert lab.counts(partial=True) == {"declared": 2, "passed": 1, "unmeasured": 1}


@pytest.mark.slow
def test_stopping_at_a_crashed_worker_skips_coverage(lab: Lab) -> None:
    lab.write("cover.py", "def measure(request):\n    return 0.5\n")
    agent = "import os\n\ndef act(request):\n    return 1.0 if request.variant.id == 'baseline' else os._exit(3)\n"
    coverage = [{"id": "half", "kind": "python", "measure": "cover:measure"}]
    lab.make(agent, tasks=["t1"], coverage=coverage)
    ended = lab.run_apart("experiment.yml", "-x", "-n2")
    assert ended.status in (1, 2), ended
    no_fault(ended.out)
    assert lab.requests() == {}
