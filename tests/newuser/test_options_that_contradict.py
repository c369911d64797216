"""Options that cannot both be meant are a usage error that says which to leave out, before anything is touched."""

import pytest

EXPERIMENT = """
metricbench: 1
name: e
runner: {kind: python, agent: "steady_agent:act"}
cases: [{id: c, tasks: [{id: t}]}]
"""


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".yml", experiment=EXPERIMENT)
    pytester.makepyfile(steady_agent="def act(request):\n    return 1.0\n")
    return pytester


@pytest.mark.parametrize("cached", ["--metricbench-cached-only", "--metricbench-cached-attempts"])
@pytest.mark.parametrize("other", ["--metricbench-fresh", "--metricbench-retry-died"])
def test_nothing_runs_and_runs_again(folder: pytest.Pytester, cached: str, other: str) -> None:
    assert folder.runpytest("experiment.yml").ret == 0
    before = sorted((folder.path / ".metricbench").iterdir())
    result = folder.runpytest("experiment.yml", cached, other)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: metricbench: {cached} runs no attempt, and {other} *; leave one of them out"])
    assert sorted((folder.path / ".metricbench").iterdir()) == before


def test_durations_without_a_shard(folder: pytest.Pytester) -> None:
    result = folder.runpytest("experiment.yml", "--metricbench-durations", "attempts.jsonl")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: metricbench: --metricbench-durations: there are no parts to balance; add --metricbench-shard I/N"]
    )


def test_durations_that_are_not_there_name_their_option(folder: pytest.Pytester) -> None:
    arguments = ["--metricbench-shard", "1/2", "--metricbench-durations", "absent.jsonl"]
    result = folder.runpytest("experiment.yml", *arguments)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "absent.jsonl: there is no such file; name the attempts.jsonl of an earlier run"
    result.stderr.fnmatch_lines([f"ERROR: metricbench: --metricbench-durations: *{said}"])


def test_a_merge_that_swallows_the_experiment(folder: pytest.Pytester) -> None:
    result = folder.runpytest("--metricbench-merge", "store", "experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    advice = "name the folders of stores, and the experiment before the option, which takes all that follows"
    result.stderr.fnmatch_lines([f"ERROR: metricbench: --metricbench-merge: 'experiment.yml' is a file; {advice}"])


@pytest.mark.parametrize("shard", ["2of3", "0/3", "4/3", "/"])
def test_a_shard_that_is_none(folder: pytest.Pytester, shard: str) -> None:
    result = folder.runpytest("experiment.yml", f"--metricbench-shard={shard}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = f"{shard!r} is no shard; write the number of the part and of all parts, as in 2/5"
    result.stderr.fnmatch_lines([f"ERROR: metricbench: --metricbench-shard: {said}"])
    assert not (folder.path / ".metricbench").exists()


def test_a_merge_into_several_experiments(folder: pytest.Pytester) -> None:
    assert folder.runpytest("experiment.yml", "--metricbench-store=other").ret == 0
    folder.makefile(".yml", second=EXPERIMENT.replace("name: e", "name: f"))
    result = folder.runpytest("experiment.yml", "second.yml", "--metricbench-merge=other")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: metricbench: --metricbench-merge: name one experiment; these are several"])
