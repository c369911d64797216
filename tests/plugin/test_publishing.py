"""What a run writes beside its store when it is asked to, and what it says when it cannot."""

import json

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
