"""What a run writes beside its store when it is asked to, and what it says when it cannot."""

import json
import os

import pytest

from tests.plugin.plugin_lab import Lab


def test_a_bundle_for_each_variant(lab: Lab, workers: list[str]) -> None:
    lab.make()
    result = lab.run("experiment.yml", "--metricbench-nemo-bundle", "out", *workers, apart="-n2" in workers)
    assert result.ret == 0
    folder = lab.path / "out" / "shop" / "shop"
    assert sorted(path.name for path in folder.iterdir()) == ["baseline", "no-pay", "quiet"]
    summary = json.loads((folder / "baseline" / "summary.json").read_text())
    assert summary["task_count"] == 3
    assert summary["trial_count"] == 6
    assert any("wrote 3 evaluator bundles below" in line for line in result.outlines)


def test_a_place_that_cannot_be_written_is_told_before_anything_runs(lab: Lab) -> None:
    lab.make()
    lab.write("out", "a file")
    result = lab.run("experiment.yml", "--metricbench-nemo-bundle", "out")
    assert result.ret == 4
    assert result.errlines == [
        f"ERROR: metricbench: --metricbench-nemo-bundle: {lab.path / 'out'} is no folder; name another one",
        "",
    ]
    assert lab.calls() == []


def test_what_cannot_be_written_at_the_end_fails_the_run(lab: Lab) -> None:
    lab.make()
    lab.write("out/shop/shop/baseline/notes.txt", "mine")
    result = lab.run("experiment.yml", "--metricbench-nemo-bundle", "out")
    assert result.ret == 1
    said = [line for line in result.outlines if line.startswith("metricbench: --metricbench-nemo-bundle")]
    assert len(said) == 1
    assert "Traceback" not in result.stdout.str()
    assert (lab.store() / "summary.json").exists()
    assert (lab.path / "out/shop/shop/baseline/notes.txt").read_text() == "mine"


IN_THE_WAY = """\
import pathlib, pytest, shutil

HERE = pathlib.Path(__file__).parent

@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish():
    shutil.rmtree(HERE / "reports")
    (HERE / "reports").write_text("a file")
    return (yield)
"""
"""Takes the folder of reports away while a run ends."""


@pytest.mark.parametrize(
    ("option", "name", "said"),
    [
        ("--metricbench-nemo-bundle", "reports/bundles", "{root}/reports/bundles/shop/shop: Not a directory"),
        ("--metricbench-markdown", "reports/out.md", "{root}/reports/out.md: Not a directory"),
        ("--metricbench-codequality", "reports/gl.json", "{root}/reports/gl.json: Not a directory"),
    ],
)
def test_a_report_whose_folder_is_gone_at_the_end_is_told_and_the_answer_is_kept(
    lab: Lab, option: str, name: str, said: str
) -> None:
    lab.make()
    lab.write("conftest.py", IN_THE_WAY)
    (lab.path / "reports").mkdir()
    result = lab.run("experiment.yml", option, name)
    assert result.ret == 1
    assert "Traceback" not in result.stdout.str()
    told = " ".join(result.outlines)
    assert f"{option}: {said.format(root=lab.path)}" in told, result.outlines
    assert lab.summary()["complete"] is True


def test_a_part_is_no_bundle(lab: Lab) -> None:
    lab.make()
    result = lab.run("experiment.yml", "-k", "baseline", "--metricbench-nemo-bundle", "out")
    assert result.ret == 0
    told = "no evaluator bundle was written: 12 attempts are outside this part of the experiment"
    assert any(told in line for line in result.outlines)
    assert not (lab.path / "out").exists()


@pytest.mark.parametrize("option", ["--metricbench-markdown", "--metricbench-codequality"])
def test_a_folder_that_is_not_there_is_told_before_anything_runs(lab: Lab, option: str) -> None:
    lab.make()
    result = lab.run("experiment.yml", option, "gone/report")
    assert result.ret == 4
    said = f"{option}: there is no folder {lab.path / 'gone'}; make it, or name another file"
    assert f"ERROR: metricbench: {said}" in result.stderr.str()
    assert lab.calls() == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_folder_that_is_closed_is_told_before_anything_runs(lab: Lab) -> None:
    lab.make()
    closed = lab.path / "closed"
    closed.mkdir(mode=0o500)
    result = lab.run("experiment.yml", "--metricbench-nemo-bundle", "closed/out")
    assert result.ret == 4
    assert f"the folder {closed} cannot be written; name another one" in result.stderr.str()
    assert lab.calls() == []
