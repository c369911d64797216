"""The tutorial is gone through: its commands are run, its change is made, and its screens appear."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pytest_metricbench.suite.patches import parse_patch
from tests.docs import block_lab
from tests.docs.block_lab import ROOT, Block

PAGE = "docs/tutorial.md"
TRIAL, TIME = re.compile(r"\b[0-9a-f]{32}\b"), re.compile(r"\d+(\.\d+)? s\b|in [\d.]+s.*$")


def steps() -> list[Block]:
    """The blocks of the page that are in languages, in their order."""
    return [block for block in block_lab.blocks() if block.page == PAGE]


def wanted(text: str) -> list[str]:
    """The lines of a screen, without those that are left out, and without what differs every time."""
    lines = [TIME.sub("<time>", TRIAL.sub("<trial>", line)).strip("= ") for line in text.splitlines()]
    lines = [" ".join(line.split()) for line in lines]  # how wide a column of times is depends on the machine
    return [line for line in lines if line and line != "..."]


def test_every_step_is_of_a_kind_that_is_gone_through() -> None:
    kinds = [block.language for block in steps()]
    assert set(kinds) == {"sh", "text", "diff"}
    assert kinds.count("text") >= 8
    assert kinds[0] == "sh"


def test_the_change_fits_the_verifier(tmp_path: Path) -> None:
    (diff,) = [block.text for block in steps() if block.language == "diff"]
    shutil.copy(ROOT / "examples/support_agent/verify.py", tmp_path)
    change(diff, tmp_path)
    assert "not tells_an_address(" in (tmp_path / "verify.py").read_text("utf-8")


def change(diff: str, folder: Path) -> None:
    """Apply a diff to a file of the folder, strictly."""
    (patch,) = parse_patch(diff)
    path = folder / patch.name.removeprefix("b/")
    path.write_text(patch.apply(path.read_text("utf-8"), path.name), encoding="utf-8")


@pytest.mark.benchmark
def test_the_tutorial(tmp_path: Path) -> None:
    """Minutes: a thousand attempts, and their scores twice."""
    (tmp_path / "examples").mkdir()
    ours = shutil.ignore_patterns(".metricbench", "__pycache__")
    shutil.copytree(ROOT / "examples/support_agent", tmp_path / "examples/support_agent", ignore=ours)
    (tmp_path / "bin").mkdir()
    shim = tmp_path / "bin/pytest"
    shim.write_text(f'#!/bin/sh\nexec {sys.executable} -m pytest -p no:sugar -p no:randomly "$@"\n')
    shim.chmod(0o755)
    environment = {**os.environ, "PATH": f"{shim.parent}:{os.environ['PATH']}", "COLUMNS": "80", "PYTEST_ADDOPTS": ""}
    folder, said = tmp_path, ""
    for block in steps():
        where = f"{PAGE}:{block.line}"
        if block.language == "diff":
            change(block.text, folder)
        elif block.language == "text":
            lines = iter(wanted(said))
            for line in wanted(block.text):
                assert any(line == other for other in lines), f"{where}: not shown, or not in this order: {line}"
        else:
            commands = [line for line in block.text.splitlines() if ".venv" not in line]
            script = "\n".join(["set -e", *commands, "pwd > $FOLDER_FILE"])
            done = subprocess.run(
                ["/bin/sh", "-c", script], cwd=folder, text=True, capture_output=True, check=False,
                env={**environment, "FOLDER_FILE": str(tmp_path / "folder")},
            )  # fmt: skip
            assert done.returncode == 0, f"{where}: {done.stdout}{done.stderr}"
            folder, said = Path((tmp_path / "folder").read_text().strip()), done.stdout
