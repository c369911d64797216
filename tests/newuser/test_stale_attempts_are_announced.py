"""Attempts that are paid for again are announced before they run, with what has changed."""

import pytest

EXPERIMENT = """
metricbench: 1
name: e
seed: 1
attempts: 2
runner: {kind: python, agent: "steady_agent:act"}
cases: [{id: c, tasks: [{id: t, params: {n: 1}}, {id: u}], mutants: [{id: m}], inputs: [notes.txt]}]
"""


@pytest.fixture
def folder(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.makefile(".yml", experiment=EXPERIMENT)
    (pytester.path / "notes.txt").write_text("one")
    pytester.makepyfile(steady_agent="def act(request):\n    return 1.0\n")
    assert pytester.runpytest("experiment.yml").ret == 0
    return pytester


def notice(folder: pytest.Pytester, *arguments: str) -> list[str]:
    lines = folder.runpytest("experiment.yml", *arguments).outlines
    return [line.removeprefix("metricbench: ") for line in lines if "no longer fit" in line]


def change(folder: pytest.Pytester, old: str, new: str) -> None:
    path = folder.path / "experiment.yml"
    path.write_text(path.read_text().replace(old, new))


TAIL = "run again, and the old kept under stale/"


def test_nothing_is_said_where_nothing_is_stale(folder: pytest.Pytester) -> None:
    change(folder, "attempts: 2", "attempts: 3")
    assert notice(folder) == []


@pytest.mark.parametrize("workers", [[], pytest.param(["-n1"], marks=pytest.mark.slow)], ids=["plain", "n1"])
def test_a_seed_and_a_file(folder: pytest.Pytester, workers: list[str]) -> None:
    change(folder, "seed: 1", "seed: 2")
    (folder.path / "notes.txt").write_text("two")
    expected = f"8 saved attempts no longer fit the experiment (changed: seed, notes.txt): {TAIL}"
    assert notice(folder, *workers) == [expected]
    assert notice(folder, *workers) == []


def test_a_part_of_them(folder: pytest.Pytester) -> None:
    change(folder, "{n: 1}", "{n: 2}")
    one = "experiment.yml::c::m::t[1]"
    (line,) = [line for line in folder.runpytest(one).outlines if "no longer fit" in line]
    assert line == f"metricbench: 1 saved attempt no longer fits the experiment (changed: c::t): {TAIL}"


def test_not_where_none_may_run(folder: pytest.Pytester) -> None:
    change(folder, "seed: 1", "seed: 2")
    assert notice(folder, "--metricbench-cached-only") == []
