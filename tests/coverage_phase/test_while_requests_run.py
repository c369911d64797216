"""While requests run: several at a time, a counter on a terminal, and an end when somebody stops it."""

import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tests.faults.session_lab import Lab, alive, no_fault

AGENT = "def act(request):\n    return 1.0\n"
SLEEPING = """
import json, os, time
from pathlib import Path

settings = json.loads(Path("request.json").read_text())["settings"]
if settings.get("pids"):
    Path(settings["pids"], str(os.getpid())).touch()
time.sleep(settings["seconds"])
Path("response.json").write_text('{"value": 1}')
"""
MEETING = """
import json, os, time
from pathlib import Path

here = Path(json.loads(Path("request.json").read_text())["settings"]["pids"])
(here / str(os.getpid())).touch()
partners = (len(list(here.iterdir())) + 1) // 2 * 2
deadline = time.time() + 30
while len(list(here.iterdir())) < partners:
    assert time.time() < deadline, "no other one came"
    time.sleep(0.01)
Path("response.json").write_text('{"value": 1}')
"""
"""Each waits for a partner that begins before it ends."""


def make(lab: Lab, seconds: float, subsets: int, pids: Path | None = None, cover: str = SLEEPING) -> None:
    lab.write("cover.py", cover)
    settings = {"seconds": seconds} | ({} if pids is None else {"pids": str(pids)})
    lab.make(
        AGENT,
        tasks=[f"t{number}" for number in range(subsets)],
        mutants=[],
        subsets=[{"id": f"s{number}", "tasks": [f"t{number}"]} for number in range(subsets)],
        coverage=[{"id": "sleep", "kind": "command", "command": ["{python}", "cover.py"], "settings": settings}],
    )


@pytest.mark.slow
def test_several_at_a_time(lab: Lab, tmp_path: Path) -> None:
    if (os.cpu_count() or 1) < 2:
        pytest.skip("one processor: one request at a time")
    pids = tmp_path / "pids"
    pids.mkdir()
    make(lab, 0, 7, pids, MEETING)
    result = lab.run("experiment.yml", "-v")
    assert result.ret == 0
    assert [record["value"] for record in lab.requests().values()] == [1.0] * 8
    shown = re.findall(r"coverage::sleep\[(\w+)\]", result.stdout.str())
    assert shown == [*(f"s{number}" for number in range(7)), "pool"]  # in their order all the same


def on_a_terminal(lab: Lab, arguments: Sequence[str]) -> tuple[int, str]:
    """Exit status and output of a session whose output is a terminal of 80 columns."""
    parent, child = pty.openpty()
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
    off = [part for name in ("randomly", "sugar", "html", "metadata", "timeout") for part in ("-p", f"no:{name}")]
    process = subprocess.Popen(
        [sys.executable, "-m", "pytest", *off, "--color=no", *arguments],
        cwd=lab.path,
        env={**inherited, "COLUMNS": "80", "TERM": "xterm"},
        stdin=subprocess.DEVNULL,
        stdout=child,
        stderr=child,
        start_new_session=True,
    )
    os.close(child)
    output = b""
    try:
        while chunk := os.read(parent, 65536):
            output += chunk
    except OSError:  # what Linux says when the other side is closed
        pass
    finally:
        os.close(parent)
    return process.wait(30), output.decode("utf-8", "replace")


def shown_at_last(output: str) -> list[str]:
    """The lines as a terminal shows them: returns and backspaces go back, and what is written there replaces."""
    lines = []
    for line in output.split("\n"):
        shown: list[str] = []
        at = 0
        for character in re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", line):
            if character in "\r\b":
                at = 0 if character == "\r" else at - 1
                continue
            shown[at : at + 1] = character
            at += 1
        lines.append("".join(shown).rstrip())
    return lines


@pytest.mark.slow
@pytest.mark.parametrize("verbosity", [[], ["-v"]], ids=["dots", "verbose"])
def test_a_counter_on_a_terminal(lab: Lab, verbosity: list[str]) -> None:
    make(lab, 0.5, 3)
    status, output = on_a_terminal(lab, ["experiment.yml", *verbosity])
    assert status == 0, output
    counted = [int(number) for number in re.findall(r"coverage (\d)/4", output)]
    assert counted
    assert counted == sorted(counted)
    assert counted[-1] >= 2
    left = [line for line in shown_at_last(output) if re.search(r"coverage \d/4", line)]
    assert left == []  # it is taken away again
    letters = [line for line in shown_at_last(output) if line.startswith("experiment.yml ")]
    assert verbosity or len(letters) == 1, letters  # and does not break the line of the letters
    assert shown_at_last(output)[-2].strip("= ").startswith("7 passed in ")


@pytest.mark.slow
@pytest.mark.parametrize("quiet", [True, False], ids=["-q on a terminal", "piped"])
def test_no_counter_elsewhere(lab: Lab, quiet: bool) -> None:
    make(lab, 0.5, 3)
    output = on_a_terminal(lab, ["experiment.yml", "-q"])[1] if quiet else lab.run_apart("experiment.yml").out
    assert "7 passed" in output
    assert not re.search(r"coverage \d/4", output)


@pytest.mark.slow
@pytest.mark.parametrize("workers", [0, 2])
def test_a_stop_kills_what_runs_and_the_next_session_goes_on(lab: Lab, tmp_path: Path, workers: int) -> None:
    pids = tmp_path / "pids"
    pids.mkdir()
    make(lab, 60, 5, pids)
    session = lab.start("experiment.yml", f"-n{workers}")
    running = min(2, os.cpu_count() or 1)
    session.await_that(lambda: len(list(pids.iterdir())) == running, "the commands run")
    ended = session.signal(signal.SIGTERM if workers else signal.SIGINT, seconds=20)
    assert ended.status == 2, ended
    assert "INTERNALERROR" not in ended.out, ended
    assert "= metricbench: lab =" in ended.out
    assert len(list(pids.iterdir())) == running  # nothing was started afterwards
    assert not any(alive(int(path.name)) for path in pids.iterdir())
    assert lab.requests() == {}
    assert not (lab.store / "coverage").exists()  # a request that was stopped did not fail
    assert lab.counts(partial=True) == {"declared": 5, "passed": 5}
    assert not (lab.store / "summary.json").exists()
    absent = lab.summary(partial=True)["cases"]["c"]["subsets"]["s0"]["coverage"]["sleep"]
    assert absent["reason"] == "the run ended before it was measured"

    make(lab, 0, 5)
    again = lab.run("experiment.yml")
    assert again.ret == 0
    no_fault(again.stdout.str())
    assert lab.counts() == {"declared": 5, "passed": 5, "reused": 5}
    assert len(lab.requests()) == 6


@pytest.mark.slow
def test_requests_that_were_done_before_the_stop_are_kept(lab: Lab, tmp_path: Path) -> None:
    lab.write("quick.py", "def measure(request):\n    return 0.5\n")
    pids = tmp_path / "pids"
    pids.mkdir()
    make(lab, 60, 2, pids)
    text = (lab.path / "experiment.yml").read_text()
    quick = '"coverage": [{"id": "quick", "kind": "python", "measure": "quick:measure"},'
    lab.write("experiment.yml", text.replace('"coverage": [', quick))
    session = lab.start("experiment.yml")
    session.await_that(lambda: len(lab.requests()) == 3 and list(pids.iterdir()), "the quick ones are done")
    ended = session.signal(signal.SIGINT, seconds=20)
    assert ended.status == 2, ended
    assert set(lab.requests()) == {"quick[s0]", "quick[s1]", "quick[pool]"}
