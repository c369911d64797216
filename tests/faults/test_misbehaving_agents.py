"""Agents that flood, hang, fork and plant links: each attempt ends, and nothing outside its workspace is touched."""

import os
import time
from pathlib import Path

import pytest

from tests.faults.session_lab import Lab, alive, no_fault

AGENT = r"""
import json, os, signal, socket, subprocess, sys, time
from pathlib import Path

request = json.loads(Path("request.json").read_text())
task, outside = request["task"]["id"], Path(request["task"]["params"]["outside"])

if task == "floods":
    block = b"x" * (1 << 20)
    for _ in range(100):
        os.write(1, block)
    os.write(1, b"the end")
elif task == "ignores-sigterm":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if os.fork() == 0:
        (outside / "grandchild").write_text(str(os.getpid()))
    time.sleep(300)
elif task == "leaves-children":
    for number in range(3):
        child = subprocess.Popen(["sleep", "300"])
        (outside / f"child-{number}").write_text(str(child.pid))
elif task == "links":
    for number in range(10_000):
        os.symlink("/etc/passwd", f"link-{number}")
    os.symlink(".", "loop")
    os.symlink("nowhere", "dangling")
    os.symlink("/etc", "etc")
    os.symlink("/dev/zero", "zero")
    os.symlink(outside / "secret", "secret")
    Path("real.txt").write_text("mine")
    os.link(outside / "secret", "hard")
elif task == "special-files":
    os.mkfifo("pipe")
    socket.socket(socket.AF_UNIX).bind("socket")
    Path("real.txt").write_text("mine")
elif task == "odd-names":
    Path("new\nline").write_text("1")
    Path(os.fsdecode(b"not-utf8-\xff")).write_text("2")
    Path("näme \\ '\"").write_text("3")
    Path(".hidden").write_text("4")
elif task == "deep":
    for _ in range(300):
        os.mkdir("d" * 200)
        os.chdir("d" * 200)
    Path("bottom").write_text("far down")
    os.chdir(request["workspace"])
elif task == "logs-are-links":
    os.unlink("agent.stdout")
    os.symlink(outside / "secret", "verifier.stdout")
    os.symlink(outside / "secret", "verifier.stderr")
elif task == "no-workspace":
    here = os.getcwd()
    os.chdir("..")
    os.system(f"rm -r '{here}'")
    sys.exit(0)
elif task == "workspace-is-a-link":
    here = os.getcwd()
    os.chdir("..")
    os.rename(here, outside / "moved")
    os.symlink(outside / "moved", here)
    os.chdir(here)
"""
VERIFIER = "from pathlib import Path\n\nPath('response.json').write_text('{\"scores\": {\"reward\": 1}}')\n"
TASKS = (
    *("floods", "ignores-sigterm", "leaves-children", "links", "special-files", "odd-names", "deep"),
    *("logs-are-links", "no-workspace", "workspace-is-a-link", "good"),
)
SEEN = """
import json, os
from pathlib import Path

seen = {}
for folder, folders, files in os.walk("evidence"):
    for name in folders + files:
        assert not os.path.islink(os.path.join(folder, name))
Path("response.json").write_text('{"value": 1}')
"""


@pytest.fixture(scope="module")
def outside(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("outside")
    (folder / "secret").write_text("do not touch")
    return folder


@pytest.mark.slow
def test_every_attempt_ends_and_stays_where_it_is(lab: Lab, outside: Path) -> None:
    lab.write("verify.py", VERIFIER)
    lab.write("seen.py", SEEN)
    lab.make(
        AGENT,
        command=True,
        runner={"verifier": ["{python}", "verify.py"], "timeout": 3},
        tasks=[{"id": task, "params": {"outside": str(outside)}} for task in TASKS],
        mutants=[],
        subsets=[{"id": task, "tasks": [task]} for task in ("links", "special-files", "odd-names", "floods", "good")],
        coverage=[{"id": "seen", "kind": "command", "command": ["{python}", "seen.py"]}],
    )
    began = time.monotonic()
    result = lab.run("experiment.yml", "-v")
    took = time.monotonic() - began
    no_fault(result.stdout.str())
    kept = {record["task"]: record for record in lab.attempts().values()}
    assert took < 30, {task: record["duration"] for task, record in kept.items()}
    assert {task: record["outcome"] for task, record in kept.items()} == {
        **dict.fromkeys(TASKS, "scored"),
        "ignores-sigterm": "died",
        "no-workspace": "unmeasured",
        "workspace-is-a-link": "unmeasured",
    }

    log = (lab.workspace(kept["floods"]) / "agent.stdout").read_bytes()
    assert len(log) < 2 << 20
    assert log.startswith(b"xxx")
    assert b"bytes left out" in log
    assert log.endswith(b"the end")

    assert kept["ignores-sigterm"]["error"]["type"] == "TimeOut"
    assert kept["ignores-sigterm"]["time_limit"] == 3
    left = [int((outside / name).read_text()) for name in ("grandchild", "child-0", "child-1", "child-2")]
    assert not any(alive(pid) for pid in left)

    plumbing = {"request.json", "response.json"} | {
        f"{w}.std{s}" for w in ("agent", "verifier") for s in ("out", "err")
    }
    own = {task: set(record["files"]) - plumbing for task, record in kept.items()}
    assert own["links"] == {"real.txt", "hard"}
    assert own["special-files"] == {"real.txt"}
    assert own["odd-names"] == {"new\nline", "näme \\ '\"", ".hidden"}  # and none that no text can hold
    assert own["deep"] == own["workspace-is-a-link"] == set()
    assert "replaced by a link" in kept["workspace-is-a-link"]["error"]["message"]
    assert (outside / "secret").read_text() == "do not touch"

    requests = lab.requests()
    assert {subset: request["outcome"] for subset, request in requests.items()} == {
        f"seen[{subset}]": "measured" for subset in ("links", "special-files", "odd-names", "floods", "good", "pool")
    }, requests


def test_what_was_left_in_an_odd_way_is_reused_all_the_same(lab: Lab, outside: Path) -> None:
    lab.write("verify.py", VERIFIER)
    tasks = [{"id": task, "params": {"outside": str(outside)}} for task in ("links", "special-files", "odd-names")]
    lab.make(AGENT, command=True, runner={"verifier": ["{python}", "verify.py"]}, tasks=tasks, mutants=[])
    lab.run("experiment.yml")
    assert lab.run("experiment.yml").ret == 0
    assert lab.counts() == {"declared": 3, "passed": 3, "reused": 3}
    kept = lab.attempts()["baseline::links[1]"]
    (lab.workspace(kept) / "real.txt").unlink()
    os.symlink(outside / "secret", lab.workspace(kept) / "real.txt")
    assert lab.run("experiment.yml").ret == 0
    assert lab.counts() == {"declared": 3, "passed": 3, "reused": 2}
