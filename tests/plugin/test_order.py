"""The order in which attempts start, with and without workers, under every ``--dist``."""

import re
from typing import Any

import pytest

from tests.plugin.plugin_lab import Lab

CASES = [{"id": name, "tasks": [{"id": "t"}, {"id": "u"}], "mutants": [{"id": "broken"}]} for name in ("a", "b")]
SLOW = {"find": 0.01, "pay": 0.06, "refund": 0.03}
TIMED: dict[str, Any] = {
    "tasks": [{"id": task, "params": {"seconds": seconds}} for task, seconds in SLOW.items()],
    "mutants": [{"id": "quiet"}],
    "subsets": None,
}


def test_baselines_first_then_mutants_as_in_the_file(lab: Lab) -> None:
    lab.make(attempts=1, cases=CASES, coverage=None)
    lab.run("experiment.yml")
    assert lab.calls() == [f"{variant}::{task}[1]" for variant in ("baseline", "broken") for task in ("t", "u") * 2]


@pytest.mark.slow
def test_baselines_first_with_workers(lab: Lab) -> None:
    lab.make(attempts=1, case=TIMED, coverage=None)
    lab.run("experiment.yml", "-n2")
    called = lab.calls()
    assert sorted(called[:3]) == ["baseline::find[1]", "baseline::pay[1]", "baseline::refund[1]"]
    assert len(called) == 6


def by_length(called: list[str]) -> bool:
    """Whether the variants come in order and each from the longest task to the shortest."""
    return called == [
        f"{variant}::{task}[1]" for variant in ("baseline", "quiet") for task in ("pay", "refund", "find")
    ]


def test_the_longest_known_first_in_a_second_run(lab: Lab) -> None:
    lab.make(attempts=1, case=TIMED, coverage=None, outcomes={"find": "p"})
    lab.run("experiment.yml")
    assert not by_length(lab.calls())
    lab.make(attempts=1, case=TIMED, coverage=None, seed=1)  # everything is stale, and durations are known
    lab.run("experiment.yml")
    assert by_length(lab.calls())


@pytest.mark.slow
def test_the_longest_known_first_with_one_worker(lab: Lab) -> None:
    lab.make(attempts=1, case=TIMED, coverage=None)
    lab.run("experiment.yml")
    lab.calls()
    lab.make(attempts=1, case=TIMED, coverage=None, seed=1)
    lab.run("experiment.yml", "-n1")
    assert by_length(lab.calls())


def test_the_longest_that_died_first(lab: Lab) -> None:
    died = {f"{variant}::{task}": "d" for variant in ("baseline", "quiet") for task in ("find", "refund")}
    lab.make(attempts=1, case=TIMED, coverage=None, outcomes=died)
    lab.run("experiment.yml")
    lab.calls()
    lab.run("experiment.yml", "--metricbench-retry-died")
    assert lab.calls() == ["baseline::refund[1]", "baseline::find[1]", "quiet::refund[1]", "quiet::find[1]"]


def test_attempts_of_unknown_length_go_before_known_ones(lab: Lab) -> None:
    lab.make(attempts=1, case=TIMED, coverage=None)
    lab.run("experiment.yml")
    lab.calls()
    more = {**TIMED, "tasks": [*TIMED["tasks"], {"id": "new"}]}
    lab.make(attempts=1, case=more, coverage=None, seed=1)
    lab.run("experiment.yml")
    assert lab.calls()[:4] == [f"baseline::{task}[1]" for task in ("new", "pay", "refund", "find")]


def test_plain_tests_keep_their_places(lab: Lab) -> None:
    lab.make("b/experiment.yml", attempts=1, case=TIMED, coverage=None)
    for name in ("a/test_first.py", "c/test_last.py"):
        lab.write(name, "def test_plain(): pass\n")
    result = lab.run("-v")
    ids = re.findall(r"^(\S+::\S+) ", result.stdout.str(), re.MULTILINE)
    assert (ids[0], ids[-1]) == ("a/test_first.py::test_plain", "c/test_last.py::test_plain")
    assert len(ids) == 8


# ---------------------------------------------------------------- --dist


@pytest.mark.slow
@pytest.mark.parametrize(
    "mode",
    [
        "load",
        pytest.param("loadscope", marks=pytest.mark.benchmark),
        pytest.param("loadfile", marks=pytest.mark.benchmark),
        "loadgroup",
        "worksteal",
    ],
)
def test_every_way_to_distribute(lab: Lab, mode: str) -> None:
    lab.make()
    result = lab.run("experiment.yml", "-n2", f"--dist={mode}")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 16, "missed": 5, "died": 1}
    assert len(lab.calls()) == 18
    assert lab.summary()["complete"]


EACH = "--dist each would make every attempt anew on every worker; --dist load makes each once"


def refuses_each(lab: Lab, *args: str) -> None:
    result = lab.run(*args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: metricbench: {EACH}"])
    assert lab.calls() == []
    assert not lab.store().exists()
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


@pytest.mark.parametrize("args", [["-n2", "--dist=each"], ["--tx=2*popen", "--dist=each"]], ids=["n2", "tx"])
def test_each_is_a_usage_error_before_any_worker_starts(lab: Lab, args: list[str]) -> None:
    lab.make()
    refuses_each(lab, "experiment.yml", *args)


@pytest.mark.slow
def test_each_is_a_usage_error_for_an_experiment_in_a_folder(lab: Lab) -> None:
    lab.make()
    refuses_each(lab, "-n2", "--dist=each")


@pytest.mark.slow
def test_each_is_left_alone_without_an_experiment(lab: Lab) -> None:
    lab.write("test_plain.py", "def test_plain(): pass\n")
    result = lab.run("-n2", "--dist=each")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 2}


def test_each_does_not_matter_where_nothing_is_distributed(lab: Lab) -> None:
    lab.make()
    assert lab.run("experiment.yml", "-n0", "--dist=each").ret == 0
    assert lab.run("experiment.yml", "-n2", "--dist=each", "--collect-only").ret == 0


def test_workers_named_and_not_used(lab: Lab) -> None:
    """``--tx`` without ``--dist`` distributes nothing."""
    lab.make(attempts=1, cases=CASES, coverage=None)
    result = lab.run("experiment.yml", "--tx=popen", "-v")
    assert result.ret == 0
    assert len(lab.calls()) == 8
    assert lab.summary()["complete"]
