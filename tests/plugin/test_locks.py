"""The lock of an experiment that draws its subsets: who writes it, when, and what disagreement means."""

import errno
import os
from pathlib import Path

import pytest

from pytest_metricbench.definition.experiment import LockState
from pytest_metricbench.pytest_side import opening
from pytest_metricbench.running import runs
from tests.plugin.plugin_lab import Lab, node_ids, without

DRAWN = {"subsets": {"sizes": [1, 2], "per_size": 2, "seed": 3}}


@pytest.fixture
def drawn(lab: Lab) -> Lab:
    lab.make(case=DRAWN)
    return lab


def lock(lab: Lab) -> Path:
    return lab.path / "experiment.lock.yml"


def test_a_missing_lock_is_written_and_said(drawn: Lab, workers: list[str]) -> None:
    result = drawn.run("experiment.yml", *workers)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["note: wrote */experiment.lock.yml: review it and commit it"])
    assert "made_from" in lock(drawn).read_text()
    assert sorted(drawn.path.glob("*.lock*")) == [lock(drawn)]


def test_a_lock_is_written_where_pytest_has_no_terminal(drawn: Lab) -> None:
    result = drawn.run("--metricbench-lock", "experiment.yml", "-p", "no:terminal", apart=True)
    assert result.outlines == [f"wrote {lock(drawn)}: review it and commit it"]
    assert result.errlines == []
    assert result.ret == 0


def test_a_lock_that_is_there_is_left_alone(drawn: Lab) -> None:
    drawn.run("experiment.yml")
    stamp = lock(drawn).stat()
    result = drawn.run("experiment.yml")
    result.stdout.no_fnmatch_line("*note: wrote*")
    assert (lock(drawn).stat().st_ino, lock(drawn).stat().st_mtime_ns) == (stamp.st_ino, stamp.st_mtime_ns)


def test_collecting_writes_no_lock(drawn: Lab) -> None:
    result = drawn.run("--collect-only", "-q")
    assert len(node_ids(result)) == 18
    assert not lock(drawn).exists()


def test_a_part_writes_the_lock_too(drawn: Lab) -> None:
    drawn.run("experiment.yml", "-k", "quiet")
    assert lock(drawn).exists()


@pytest.mark.parametrize("from_elsewhere", [False, True])
def test_the_lock_option_writes_and_ends(drawn: Lab, from_elsewhere: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    name = "experiment.yml"
    if from_elsewhere:
        (drawn.path / "beside").mkdir()
        monkeypatch.chdir(drawn.path / "beside")
        name = "../experiment.yml"
    result = drawn.run("--metricbench-lock", name)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["wrote */experiment.lock.yml: review it and commit it"])
    assert lock(drawn).exists()
    assert drawn.calls() == []
    assert not drawn.store().exists()
    result.stdout.no_fnmatch_line("*test session starts*")


def test_the_lock_that_a_run_writes_is_the_one_of_the_option(drawn: Lab) -> None:
    drawn.run("--metricbench-lock", "experiment.yml")
    written = lock(drawn).read_bytes()
    lock(drawn).unlink()
    drawn.run("experiment.yml")
    assert lock(drawn).read_bytes() == written


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["plain", "n2"])
def test_a_lock_that_disagrees_is_an_error_that_says_what_changed(drawn: Lab, workers: list[str]) -> None:
    drawn.run("--metricbench-lock", "experiment.yml")
    drawn.make(case={"subsets": {"sizes": [1, 2], "per_size": 3, "seed": 3}})
    result = drawn.run("experiment.yml", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["*experiment.yml:*: cases[[]0[]].subsets: experiment.lock.yml disagrees: per_size was 2 and is 3; renew it *"]
    )
    assert drawn.calls() == []
    renewed = drawn.run("--metricbench-lock", "experiment.yml")
    assert renewed.ret == 0
    assert drawn.run("experiment.yml").ret == 0


def test_the_lock_decides_which_subsets_there_are(drawn: Lab) -> None:
    drawn.run("--metricbench-lock", "experiment.yml")
    text = lock(drawn).read_text()
    lock(drawn).write_text(text.replace("n1-01", "reviewed"))
    assert drawn.run("experiment.yml").ret == 0
    assert "reviewed" in drawn.summary()["cases"]["shop"]["subsets"]


def test_nothing_named_to_lock(lab: Lab) -> None:
    lab.make(case=DRAWN)
    result = lab.run("--metricbench-lock")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: metricbench: --metricbench-lock: name the experiment files *"])


def test_an_experiment_that_expands_nothing_needs_no_lock(lab: Lab) -> None:
    lab.make()
    result = lab.run("--metricbench-lock", "experiment.yml")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["experiment.yml expands nothing: it needs no lock"])
    assert not lock(lab).exists()


def test_a_broken_experiment_is_not_locked(lab: Lab) -> None:
    lab.make(case=DRAWN, atempts=3)
    result = lab.run("--metricbench-lock", "experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: experiment.yml:*: atempts: is an unknown key; *"])
    assert not lock(lab).exists()


def test_other_yaml_is_not_locked(lab: Lab) -> None:
    lab.write("compose.yml", "services: {}\n")
    result = lab.run("--metricbench-lock", "compose.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *compose.yml:1:1: *metricbench*"])


def test_locking_uses_the_kinds_of_a_conftest_in_a_sub_folder(lab: Lab) -> None:
    lab.make("deep/experiment.yml", case=DRAWN, runner={"kind": "mine"}, coverage=None)
    lab.write(
        "deep/conftest.py",
        "from typing import Literal\n"
        "from pytest_metricbench import Runner\n"
        "class Mine(Runner):\n"
        "    kind: Literal['mine'] = 'mine'\n"
        "    def run(self, request, workspace): ...\n"
        "def pytest_metricbench_runners(): return [Mine]\n",
    )
    assert lab.run("--metricbench-lock", "deep/experiment.yml").ret == 0
    assert (lab.path / "deep/experiment.lock.yml").exists()


# ---------------------------------------------------------------- a folder that cannot be written


@pytest.fixture
def sealed(drawn: Lab, monkeypatch: pytest.MonkeyPatch) -> Lab:
    """The folder of the experiment cannot be written, not even by root."""

    def refuse(state: LockState) -> None:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(state.path))

    for module in (opening, runs):
        monkeypatch.setattr(module, "write_lock", refuse)
    return drawn


def test_a_folder_that_cannot_be_written_keeps_the_lock_in_the_store(sealed: Lab) -> None:
    result = sealed.run("experiment.yml", "--metricbench-store=kept")
    assert result.ret == 0
    result.stdout.fnmatch_lines(
        ["note: */experiment.lock.yml cannot be written (Permission denied); the store keeps *"]
    )
    assert not lock(sealed).exists()
    assert "made_from" in (sealed.path / "kept/shop/experiment.lock.yml").read_text()


def test_the_lock_option_says_that_a_folder_cannot_be_written(sealed: Lab) -> None:
    result = sealed.run("--metricbench-lock", "experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: metricbench: */experiment.lock.yml: Permission denied"])


@pytest.mark.slow
def test_workers_collect_the_same_without_and_with_a_lock(drawn: Lab) -> None:
    first = drawn.run("experiment.yml", "-n2")
    assert first.ret == 0
    whole = without(drawn.summary(), "trial_id", "reused")
    lock(drawn).unlink()
    second = drawn.run("experiment.yml", "-n2")
    assert second.ret == 0
    assert without(drawn.summary(), "trial_id", "reused") == whole
