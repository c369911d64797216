"""What the tests of the runner ``harbor`` share: datasets, requests, a runner, and a stand-in for the executable."""

import json
import os
import shutil
import stat
import sys
import textwrap
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.contracts import AttemptRequest, CaseRef, Outcome, TaskRef, VariantRef
from pytest_metricbench.runners.harbor.found import EXECUTABLE_VARIABLE
from pytest_metricbench.runners.harbor.in_process import installed_version
from pytest_metricbench.runners.harbor.runner import HarborRunner

EXAMPLE: Final = Path(__file__).parents[2] / "examples" / "harbor"
EXECUTABLE: Final = os.environ.get(EXECUTABLE_VARIABLE)
IN_PROCESS: Final = sys.version_info >= (3, 12) and installed_version() is not None
WAYS: Final = [*(["in process"] if IN_PROCESS else []), *(["by executable"] if EXECUTABLE else [])]
"""How Harbor can be run here."""

TASK_TOML: Final = """\
[agent]
timeout_sec = 20.0

[verifier]
timeout_sec = 20.0

[environment]
docker_image = "debian:12"
workdir = "/app"
"""

ANY_REWARD: Final = '#!/bin/bash\necho 1 > "${HARBOR_ROOT:-}/logs/verifier/reward.txt"\n'


def write_task(folder: Path, *, toml: str = TASK_TOML, instruction: str = "Do it.", test: str = ANY_REWARD) -> Path:
    """A whole task."""
    for name, text in (("task.toml", toml), ("instruction.md", instruction), ("tests/test.sh", test)):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    (folder / "environment").mkdir(exist_ok=True)
    return folder


def write_dataset(folder: Path, *names: str) -> Path:
    for name in names:
        write_task(folder / name)
    return folder


def copy_example(folder: Path) -> Path:
    """The example, in a folder of the test's own."""
    shutil.copytree(EXAMPLE, folder, dirs_exist_ok=True, ignore=shutil.ignore_patterns(".metricbench", "__pycache__"))
    return folder


def request_for(
    workspace: Path, variant: dict[str, Any], task: str = "task", *, slot: int = 1, trial: str = "abcdef0123456789"
) -> AttemptRequest:
    return AttemptRequest(
        experiment="lab",
        case=CaseRef("case"),
        variant=VariantRef("baseline", variant),
        task=TaskRef("task", {"path": task}),
        attempt=slot,
        seed=1,
        trial_id=trial,
        _workspace=str(workspace),
        fingerprint="sha256:0123456789abcdef0123456789abcdef",
    )


def make_runner(folder: Path, *, checked: bool = True, **keys: Any) -> HarborRunner:
    """A runner as an experiment in ``folder`` has it; ``checked=False``: although there may be no Harbor."""
    context = {"folder": folder, "cached_only": not checked}
    return HarborRunner.model_validate({"kind": "harbor", **keys}, context=context)


def run(runner: HarborRunner, workspace: Path, variant: dict[str, Any], task: str = "task") -> Outcome:
    request = request_for(workspace, variant, task)
    return runner.run(request, request.workspace)


def left(workspace: Path) -> set[str]:
    """The names of the files that an attempt left."""
    return {path.relative_to(workspace).as_posix() for path in workspace.rglob("*") if path.is_file()}


STAND_IN: Final = '''\
#!{python}
"""Stands in for harbor where the real one cannot be made to behave so: ``run --config FILE --yes``."""
import json, os, pathlib, signal, sys, time
assert sys.argv[1] == "run" and sys.argv[2] == "--config" and sys.argv[4] == "--yes", sys.argv
config = json.loads(pathlib.Path(sys.argv[3]).read_text())
job = pathlib.Path(config["jobs_dir"]) / config["job_name"]
pathlib.Path({seen!r}).write_text(json.dumps({{"config": config, "env": dict(os.environ), "cwd": os.getcwd()}}))

def trial(name="task__abcdefg", **result):
    folder = job / name
    folder.mkdir(parents=True)
    whole = {{"trial_name": name, "task_name": "task", "verifier_result": {{"rewards": {{"reward": 1.0}}}}, **result}}
    (folder / "config.json").write_text("{{}}")
    (folder / "result.json").write_text(json.dumps(whole))
    return folder

{body}
'''


def write_stand_in(folder: Path, body: str) -> Path:
    """An executable that does what ``body`` says; ``seen.json`` beside it says what it was told."""
    path = folder / "bin" / "harbor"
    path.parent.mkdir(parents=True, exist_ok=True)
    seen = str(folder / "bin" / "seen.json")
    path.write_text(STAND_IN.format(python=sys.executable, seen=seen, body=textwrap.dedent(body)), encoding="utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def seen(folder: Path) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((folder / "bin" / "seen.json").read_text("utf-8"))
    return told
