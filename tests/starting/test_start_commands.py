"""The option and the command: what they print, how they end, and what they leave alone."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_metricbench.__main__ import main
from tests.starting.starting_lab import TABLE, make


def test_the_option_writes_says_and_ends(pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]) -> None:
    make(pytester.path, {"test_broken.py": "raise SystemExit\n"})  # nothing is collected
    result = alone("--metricbench-init", "my bench")
    assert result.ret == 0
    assert result.stderr.str() == ""
    result.stdout.fnmatch_lines(
        [
            "python: an example of an agent that is a Python function (others: --metricbench-init-kind command|*",
            "wrote in my bench",
            "  experiment.yml * the experiment: begin reading here",
            "next",
            "  pytest 'my bench/experiment.yml' * run it",
        ],
        consecutive=False,
    )
    result.stdout.no_fnmatch_line("*test session starts*")
    assert not (pytester.path / ".pytest_cache").exists()


def test_without_a_folder_it_is_the_current_one_also_with_workers_and_a_conftest(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    make(pytester.path, {**TABLE, "pytest.ini": "[pytest]\naddopts = -n 2 -v\n", "conftest.py": "import os\n"})
    result = alone("--metricbench-init")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["table: an experiment about a table of results: out/results.csv has *", "wrote in ."])
    result.stdout.no_fnmatch_line("*workers*")


def test_what_cannot_be_done_is_a_usage_error(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    make(pytester.path, {**TABLE, "experiment.yml": "metricbench: 1\n"})
    for arguments, said in (
        (["--metricbench-init"], "*metricbench: experiment.yml exists; nothing was written. There is an experiment *"),
        (
            ["--metricbench-init", "new", "--metricbench-init-kind", "suit"],
            "*'suit' is no kind; did you mean 'suite'?*",
        ),
        (
            ["--metricbench-init-kind", "suite"],
            "*--metricbench-init-kind: say where to write it, --metricbench-init DIR",
        ),
    ):
        result = alone(*arguments)
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines([said])
    assert not (pytester.path / "new").exists()


def test_the_command_does_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(make(tmp_path, {"test_broken.py": "raise SystemExit\n"}))
    assert main(["init", "bench", "--kind", "table"]) == 0
    assert "pytest bench/experiment.yml" in capsys.readouterr().out
    assert main(["init", "bench"]) == 4
    captured = capsys.readouterr()
    assert captured.err.startswith("metricbench: bench/experiment.yml")
    assert captured.out == ""
    assert main(["schema"]) == 0
    assert json.loads(capsys.readouterr().out) == json.loads((tmp_path / "bench/experiment.schema.json").read_text())


def test_the_help_of_the_command(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["init", "--help"])
    assert ended.value.code == 0
    assert "python|command|harbor|suite|table" in capsys.readouterr().out
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 2


@pytest.mark.slow
def test_the_module_is_run_by_its_name(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest_metricbench", "init", "new", "--kind", "table"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("table: an example of a table of results")


# ---------------------------------------------------------------- the workflow


def steps(path: Path) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    (job,) = yaml.safe_load(path.read_text("utf-8"))["jobs"].values()
    return job, {
        step.get("uses", "run").partition("@")[0] + str(number): step for number, step in enumerate(job["steps"])
    }


def test_the_workflow_of_a_folder_in_a_repository(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    """Its command runs as it stands there, where it stands there, and its files are those of the run."""
    (pytester.path / ".git").mkdir()
    assert alone("--metricbench-init", "my bench", "--metricbench-init-kind", "table").ret == 0
    job, by_use = steps(pytester.path / ".github/workflows/metricbench.yml")
    assert job["defaults"]["run"]["working-directory"] == "my bench"
    (line,) = (step["run"] for step in job["steps"] if step.get("run", "").startswith("pytest "))
    folder = pytester.path / "my bench"
    arguments = [part for part in line.split()[1:] if part not in ("-n", "auto")]  # one process is enough here
    pytester.chdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert alone("--rootdir", str(folder), *arguments).ret == 0
    (upload,) = (step["with"] for use, step in by_use.items() if use.startswith("actions/upload-artifact"))
    paths = upload["path"].split("\n")[:3]
    assert paths == ["my bench/.metricbench", "my bench/metricbench.xml", "my bench/metricbench.md"]
    assert all((pytester.path / path).exists() for path in paths)
    caches = [step["with"] for use, step in by_use.items() if use.startswith("actions/cache")]
    assert [cache["path"] for cache in caches] == ["my bench/.metricbench"] * 2
    assert caches[0]["key"] == caches[1]["key"]
    assert caches[0]["key"].startswith(caches[0]["restore-keys"])


def test_a_second_experiment_has_a_workflow_of_its_own(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    (pytester.path / ".git").write_text("gitdir: elsewhere\n")  # as in a worktree
    for name in ("one", "two"):
        assert alone("--metricbench-init", name, "--metricbench-init-kind", "table").ret == 0
    texts = [
        (pytester.path / f".github/workflows/{name}.yml").read_text() for name in ("metricbench", "metricbench-two")
    ]
    names = [yaml.safe_load(text)["name"] for text in texts]
    assert names == ["metricbench", "metricbench-two"]
    assert "key: metricbench-two-$" in texts[1]


def test_outside_a_repository_the_workflow_is_in_the_folder_and_that_is_said(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    result = alone("--metricbench-init", "new", "--metricbench-init-kind", "table")
    result.stdout.fnmatch_lines(["*.github/workflows/metricbench.yml * its place is the top of a repository"])
    job, _ = steps(pytester.path / "new/.github/workflows/metricbench.yml")
    assert job["defaults"]["run"]["working-directory"] == "."
    assert {"run": "pip install pytest-metricbench"} in job["steps"]


def test_the_store_is_ignored_by_git(pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]) -> None:
    subprocess.run(["git", "init", "-q", "."], check=True)
    assert alone("--metricbench-init", "new", "--metricbench-init-kind", "table").ret == 0
    assert alone("new/experiment.yml").ret == 0
    listed = subprocess.run(["git", "status", "--short", "-uall"], capture_output=True, text=True, check=True).stdout
    assert "new/experiment.lock.yml" in listed
    assert ".metricbench" not in listed.replace("metricbench.yml", "")
