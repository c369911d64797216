"""Attempts that a runner begins before their turn: in order, no more than it wants, ended when nobody asks."""

import json

from tests.plugin.cluster_lab import CONFTEST
from tests.plugin.plugin_lab import Lab, words


def prepared(lab: Lab, **runner: object) -> Lab:
    lab.make(runner={"kind": "cluster", **runner}, attempts=1, coverage=None)
    lab.write("conftest.py", CONFTEST)
    return lab


def log(lab: Lab) -> list[str]:
    path = lab.path / "log.txt"
    lines = path.read_text().splitlines()
    path.unlink()
    return lines


def test_the_next_attempts_are_begun_in_their_order(lab: Lab) -> None:
    result = prepared(lab).run("-v", "experiment.yml")
    assert result.ret == 0
    order = [name.partition("::")[2].partition("::")[2] for name in words(result)]
    lines = log(lab)
    assert [line.partition(" ")[2] for line in lines if line.startswith("begin")] == order
    assert [line.partition(" ")[2] for line in lines if line.startswith("run")] == order
    assert lines[-1] == "close"
    assert lines[:4] == [*(f"begin {name}" for name in order[:3]), f"run {order[0]}"]
    flying = 0
    for line in lines:
        flying += line.startswith("begin")
        assert flying <= 3
        flying -= line.startswith("run")


def test_reused_attempts_are_not_begun(lab: Lab) -> None:
    prepared(lab).run("experiment.yml")
    log(lab)
    (lab.store() / "summary.json").unlink()
    result = lab.run("experiment.yml")
    assert "9 reused" in result.outlines[-1]
    assert log(lab) == ["close"]


def test_deselected_attempts_are_not_begun(lab: Lab) -> None:
    prepared(lab).run("experiment.yml", "-k", "quiet")
    assert {line.partition(" ")[2].partition(":")[0] for line in log(lab) if line.startswith("begin")} == {"quiet"}


def test_what_was_begun_is_ended_when_the_run_stops(lab: Lab) -> None:
    prepared(lab)
    (lab.path / "stop").touch()
    assert lab.run("experiment.yml").ret == 2
    lines = log(lab)
    assert [line.partition(" ")[0] for line in lines] == ["begin", "begin", "begin", "run", "close"]
    (lab.path / "stop").unlink()
    assert lab.run("experiment.yml").ret == 0


def test_an_attempt_that_cannot_be_begun_is_run_in_its_turn(lab: Lab) -> None:
    result = prepared(lab, fails=True).run("experiment.yml")
    assert result.ret == 0
    assert [line.partition(" ")[0] for line in log(lab)] == [*["run"] * 9, "close"]


def test_workers_begin_one_ahead(lab: Lab) -> None:
    result = prepared(lab).run("experiment.yml", "-n2", apart=True)
    assert result.ret == 0
    lines = log(lab)
    assert sum(line.startswith("run") for line in lines) == 9
    assert sum(line.startswith("begin") for line in lines) == 9
    assert lines.count("close") >= 2
    assert json.loads((lab.store() / "summary.json").read_text())["counts"]["passed"] == 9
