"""Experiments that are not right: a usage error when named, a collection error when found, and nothing runs."""

import pytest

from tests.plugin.plugin_lab import Lab

BROKEN = """\
metricbench: 1
name: shop
atempts: 2
runner: {kind: python, agent: "agent:runn", verifier: "agent:verify"}
cases:
  - id: shop
    tasks: [{id: find}, {id: pay}]
    mutants: [{id: no/pay}]
    subsets: [{id: s1, tasks: [fnd]}]
"""

PROBLEMS = [
    "*broken.experiment.yml:3:1: atempts: is an unknown key; did you mean 'attempts'?*",
    "*broken.experiment.yml:4:31: runner.agent: *agent.py defines no 'runn'; did you mean 'run'?",
    "*broken.experiment.yml:8:20: cases[[]0[]].mutants[[]0[]].id: *",
    "*broken.experiment.yml:9:32: cases[[]0[]].subsets[[]0[]].tasks[[]0[]]: *'fnd'; did you mean 'find'?",
]


@pytest.fixture
def broken(lab: Lab) -> Lab:
    lab.make("other.yml", name="other")  # for its agent
    lab.write("broken.experiment.yml", BROKEN)
    return lab


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["plain", "n2"])
def test_named_is_a_usage_error_with_every_problem(broken: Lab, workers: list[str]) -> None:
    result = broken.run("broken.experiment.yml", "other.yml", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(PROBLEMS)
    assert len([line for line in result.errlines if "broken.experiment.yml:" in line]) == len(PROBLEMS)
    result.stderr.no_fnmatch_line("*Traceback*")
    assert broken.calls() == []
    assert not broken.store("other").exists()


def test_two_broken_files_are_told_at_once(broken: Lab) -> None:
    broken.write("worse.yml", "metricbench: 2\n")
    result = broken.run("worse.yml", "broken.experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines_random([*PROBLEMS, "*worse.yml:1:14: metricbench: the file is of format version 2 *"])


@pytest.mark.parametrize("below", ["::shop", "::shop::baseline::find[1]"])
def test_a_part_of_a_broken_file(broken: Lab, below: str) -> None:
    result = broken.run(f"broken.experiment.yml{below}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(PROBLEMS[:1])


def test_found_in_a_folder_is_a_collection_error(broken: Lab) -> None:
    broken.make("experiment.yml")
    result = broken.run()
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert result.parseoutcomes() == {"errors": 1}
    result.stdout.fnmatch_lines(["*ERROR collecting broken.experiment.yml*", *PROBLEMS])
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*collection.py*")
    assert broken.calls() == []
    # The experiments that are right were not begun either: there is nothing to say of them.
    result.stdout.no_fnmatch_line("*metricbench: shop*")
    assert not (broken.store() / "summary.partial.json").exists()


@pytest.mark.slow
def test_found_in_a_folder_with_workers(broken: Lab) -> None:
    broken.make("experiment.yml")
    result = broken.run("-n2")
    assert result.ret == pytest.ExitCode.TESTS_FAILED  # xdist runs the items of other files all the same
    assert result.parseoutcomes()["errors"] == 1
    result.stdout.fnmatch_lines(["*ERROR collecting broken.experiment.yml*", *PROBLEMS])
    assert broken.summary()["complete"]


def test_going_on_beside_a_broken_file(broken: Lab) -> None:
    broken.make("experiment.yml")
    result = broken.run("--continue-on-collection-errors")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"errors": 1, "passed": 16, "missed": 5, "died": 1}
    assert broken.summary()["complete"]


def test_a_file_that_is_not_selected_is_not_checked(broken: Lab) -> None:
    broken.make("experiment.yml")
    assert broken.run("experiment.yml").ret == 0


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["plain", "n2"])
def test_a_missing_agent_is_told_before_anything_runs(lab: Lab, workers: list[str]) -> None:
    lab.make()
    (lab.path / "agent.py").unlink()
    result = lab.run("experiment.yml", *workers)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *experiment.yml:*: runner.agent: the module 'agent' is neither beside *"])


def test_an_agent_whose_import_fails_leaves_attempts_unmeasured(lab: Lab) -> None:
    lab.make(agent="import nothing_like_it\n\ndef run(request): pass\nverify = measure = run\n", attempts=1)
    result = lab.run("experiment.yml", "-k", "quiet and find")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    result.stdout.fnmatch_lines(["unmeasured (setup): TargetError: agent:run cannot be loaded: ModuleNotFoundError*"])
