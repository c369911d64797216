"""Runs of a part of an experiment: what the rest counts as, and what may be written."""

import re
from collections.abc import Iterator
from typing import Any

import pytest

from tests.plugin.plugin_lab import AGENT, COVERAGE, Lab, without

GATES = ["baseline pass@1 >= 0.5", "mutation_score >= 0.4", "goals coverage >= 0.9"]


def figures(summary: Any) -> Iterator[dict[str, Any]]:
    """Every computed figure of a summary: where it stands, its value and its reason."""
    if isinstance(summary, dict):
        if "value" in summary and "value_type" not in summary:
            yield summary
        for value in summary.values():
            yield from figures(value)
    elif isinstance(summary, list):
        for value in summary:
            yield from figures(value)


def undisturbed(lab: Lab) -> Any:
    """The summary of a whole run, made in a store of its own."""
    lab.run("experiment.yml", "--metricbench-store=undisturbed")
    lab.calls()
    return without(lab.summary(folder="undisturbed"), "trial_id", "reused")


# ---------------------------------------------------------------- a part, then the rest


def test_a_part_and_then_the_rest_make_the_whole(lab: Lab, workers: list[str]) -> None:
    lab.make(gates=GATES)
    whole = undisturbed(lab)
    first = lab.run("experiment.yml", "-k", "quiet or refund", *workers)
    assert first.ret == 0
    part = sorted(lab.calls())
    assert len(part) == 10
    second = lab.run("experiment.yml", *workers)
    assert second.ret == 0
    rest = lab.calls()
    assert len(rest) == 8
    assert not set(rest) & set(part)
    assert without(lab.summary(), "trial_id", "reused") == whole
    assert not (lab.store() / "summary.partial.json").exists()


def test_parts_that_together_are_the_whole(lab: Lab) -> None:
    """The last part finds the others in the store, so its summary is whole."""
    lab.make(gates=GATES)
    whole = undisturbed(lab)
    for expression in ("baseline", "quiet"):
        assert lab.run("experiment.yml", "-k", expression).ret == 0
        assert not (lab.store() / "summary.json").exists()
    last = lab.run("experiment.yml", "-k", "no-pay")
    assert last.ret == 0
    summary = lab.summary()
    assert summary["part"] == "6 of 18 attempts selected, 12 more taken from the store"
    assert without(summary, "trial_id", "reused", "part") == without(whole, "part")
    assert summary["counts"]["reused"] == 12


def test_a_part_refreshes_a_whole_summary(lab: Lab) -> None:
    lab.make(outcomes={"quiet::pay": "m"})
    lab.run("experiment.yml")
    before = lab.summary()["cases"]["shop"]
    assert before["kills"]["quiet"]["pay"] == "killed"
    lab.calls()
    lab.make(outcomes={}, case={"mutants": [{"id": "no-pay"}, {"id": "quiet", "params": {"louder": True}}]})
    result = lab.run("experiment.yml", "-k", "quiet")
    assert result.ret == 0
    assert len(lab.calls()) == 6
    after = lab.summary()["cases"]["shop"]
    assert after["kills"]["quiet"]["pay"] == "survived"
    assert without(after["variants"]["baseline"], "reused") == without(before["variants"]["baseline"], "reused")


# ---------------------------------------------------------------- a part alone


def test_a_part_alone(lab: Lab) -> None:
    lab.make(gates=GATES)
    result = lab.run("experiment.yml", "-k", "baseline and (find or pay)")
    assert result.ret == 0
    summary = lab.summary(partial=True)
    assert not (lab.store() / "summary.json").exists()
    assert summary["part"] == "4 of 18 attempts selected"
    assert not summary["complete"]
    counts = {name: number for name, number in summary["counts"].items() if number}
    assert counts == {"declared": 18, "passed": 4, "outside": 14}
    assert summary["problems"] == []


def test_figures_that_need_the_rest_are_unavailable_with_that_reason(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml", "-k", "baseline and (find or pay)")
    shop = lab.summary(partial=True)["cases"]["shop"]
    absent = "outside this part and not in the store"
    for figure in (
        shop["variants"]["baseline"]["pass_at_k"]["reward"]["1"],
        shop["variants"]["quiet"]["pass_at_k"]["reward"]["1"],
        shop["pool"]["kill_share"],
        shop["pool"]["mean_drop"],
        shop["pool"]["coverage"]["goals"],
        shop["subsets"]["s3"]["coverage"]["goals"],
    ):
        assert figure["value"] is None
        assert absent in figure["reason"]
    assert shop["subsets"]["s2"]["coverage"]["goals"]["value"] == pytest.approx(2 / 3)
    assert shop["variants"]["baseline"]["tasks"]["find"]["verdict"] == "solved"
    assert shop["variants"]["quiet"]["tasks"]["find"]["verdict"] == "outside"


def test_every_unavailable_figure_has_a_reason(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml", "-k", "baseline and find")
    found = list(figures(lab.summary(partial=True)))
    assert len(found) > 20
    for figure in found:
        assert (figure["value"] is None) == bool(figure.get("reason"))


def test_gates_that_need_the_rest_are_open(lab: Lab) -> None:
    lab.make(gates=["baseline pass@1 >= 0.99", "mutation_score >= 0.99", "goals coverage >= 0.99"])
    result = lab.run("experiment.yml", "-k", "quiet")
    assert result.ret == 0
    for gate in lab.summary(partial=True)["gates"]:
        assert gate["holds"] is None
        assert "outside this part" in gate["reason"]
    result.stdout.fnmatch_lines(["gates *open *baseline pass@1 >= 0.99*"])


def test_gates_that_a_part_can_tell_are_checked(lab: Lab) -> None:
    lab.make(gates=["quiet pass@1 >= 0.99"])
    result = lab.run("experiment.yml", "-k", "quiet")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert lab.summary(partial=True)["gates"][0]["holds"] is False


def test_the_baseline_is_not_judged_by_a_part(lab: Lab) -> None:
    lab.make(outcomes={"baseline::find": "m", "baseline::pay": "p"})
    result = lab.run("experiment.yml", "-k", "baseline and find")
    assert result.ret == 0
    assert lab.summary(partial=True)["cases"]["shop"]["baseline_check"]["holds"] is None


def test_an_unmeasured_attempt_fails_a_part_too(lab: Lab) -> None:
    lab.make(outcomes={"quiet::pay": "u"})
    assert lab.run("experiment.yml", "-k", "quiet and pay").ret == pytest.ExitCode.TESTS_FAILED
    assert lab.run("experiment.yml", "-k", "quiet and find").ret == 0


def test_a_whole_summary_is_never_overwritten_by_a_part(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    whole = (lab.store() / "summary.json").read_bytes()
    lab.make(seed=3)  # nothing in the store is valid any more
    assert lab.run("experiment.yml", "-k", "quiet").ret == 0
    assert (lab.store() / "summary.json").read_bytes() == whole
    assert lab.summary(partial=True)["counts"]["outside"] == 12


def test_a_run_that_was_cut_short_overwrites_no_whole_summary(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    whole = (lab.store() / "summary.json").read_bytes()
    lab.make(seed=3, outcomes={f"baseline::{task}": "u" for task in ("find", "pay", "refund")})
    assert lab.run("experiment.yml", "-x").ret == pytest.ExitCode.TESTS_FAILED
    assert (lab.store() / "summary.json").read_bytes() == whole
    assert lab.summary(partial=True)["counts"]["missing"] == 17


def test_the_terminal_says_which_part_it_is(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml", "-k", "quiet and find")
    result = lab.run("experiment.yml", "-k", "baseline")
    text = re.sub(r"\s+", " ", result.stdout.str())
    assert (
        "part 6 of 18 attempts selected, 2 more taken from the store; 10 of 18 attempts are outside it and not in "
        "the store"
    ) in text
    assert "summary.partial.json" in text


# ---------------------------------------------------------------- coverage of a part

TWO_SYSTEMS = [COVERAGE[0], {"id": "twice", "kind": "python", "measure": "agent:measure_twice"}]
TWO_AGENT = AGENT + "\n\ndef measure_twice(request):\n    return min(1.0, 2 * measure(request))\n"


def coverage_ids(result: pytest.RunResult) -> list[str]:
    return re.findall(r"::coverage::(\S+\[\S+\]) \w+", result.stdout.str())


def test_only_requests_whose_baseline_is_there_are_made(lab: Lab) -> None:
    lab.make()
    result = lab.run("experiment.yml", "-v", "-k", "baseline and (find or pay)")
    assert coverage_ids(result) == ["goals[s1]", "goals[s2]"]
    result = lab.run("experiment.yml", "-v", "-k", "baseline and refund")
    assert coverage_ids(result) == ["goals[s1]", "goals[s2]", "goals[s3]", "goals[pool]"]
    outcomes = result.parseoutcomes()
    assert (outcomes["passed"], outcomes["missed"], outcomes["reused"]) == (3, 1, 2)


def test_k_selects_no_coverage(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml")
    result = lab.run("experiment.yml", "-v", "-k", "quiet")
    assert len(coverage_ids(result)) == 4


def test_one_coverage_system(lab: Lab, workers: list[str]) -> None:
    lab.make(coverage=TWO_SYSTEMS, agent=TWO_AGENT)
    result = lab.run("experiment.yml", "-v", "--metricbench-coverage=twice", *workers)
    assert result.ret == 0
    assert coverage_ids(result) == ["twice[s1]", "twice[s2]", "twice[s3]", "twice[pool]"]
    summary = lab.summary(partial=True)
    assert not summary["complete"]
    subsets = summary["cases"]["shop"]["subsets"]
    assert subsets["s1"]["coverage"]["twice"]["value"] == pytest.approx(2 / 3)
    assert subsets["s1"]["coverage"]["goals"]["value"] is None
    assert "--metricbench-coverage" in subsets["s1"]["coverage"]["goals"]["reason"]


def test_a_run_without_some_coverage_overwrites_no_whole_summary(lab: Lab) -> None:
    lab.make(coverage=TWO_SYSTEMS, agent=TWO_AGENT)
    lab.run("experiment.yml")
    whole = (lab.store() / "summary.json").read_bytes()
    # The description is part of every request, so none that is in the store holds any more.
    lab.make(coverage=TWO_SYSTEMS, agent=TWO_AGENT, case={"description": "Another shop."})
    assert lab.run("experiment.yml", "--metricbench-coverage=twice").ret == 0
    assert (lab.store() / "summary.json").read_bytes() == whole
    assert not lab.summary(partial=True)["complete"]


def test_a_run_whose_last_attempt_stopped_it_overwrites_no_whole_summary(lab: Lab) -> None:
    """``-x`` skips coverage, though every attempt has its outcome."""
    alone = {"tasks": [{"id": "pay"}], "mutants": None, "subsets": None}
    lab.make(case=alone, attempts=1)
    lab.run("experiment.yml")
    whole = (lab.store() / "summary.json").read_bytes()
    lab.make(case=alone, attempts=1, seed=3, outcomes={"baseline::pay": "u"})
    assert lab.run("experiment.yml", "-x").ret == pytest.ExitCode.TESTS_FAILED
    assert (lab.store() / "summary.json").read_bytes() == whole


def test_a_system_that_was_not_asked_for_counts_from_the_store(lab: Lab) -> None:
    lab.make(coverage=TWO_SYSTEMS, agent=TWO_AGENT)
    lab.run("experiment.yml", "--metricbench-coverage=goals")
    result = lab.run("experiment.yml", "-v", "--metricbench-coverage=twice")
    assert len(coverage_ids(result)) == 8
    assert result.ret == 0
    assert lab.summary()["complete"]


def test_both_systems_asked_for(lab: Lab) -> None:
    lab.make(coverage=TWO_SYSTEMS, agent=TWO_AGENT)
    result = lab.run("experiment.yml", "-v", "--metricbench-coverage=twice", "--metricbench-coverage", "goals")
    assert len(coverage_ids(result)) == 8
    assert result.ret == 0


def test_an_unknown_system_is_a_usage_error_with_the_nearest(lab: Lab) -> None:
    lab.make(coverage=TWO_SYSTEMS, agent=TWO_AGENT)
    result = lab.run("experiment.yml", "--metricbench-coverage=gaols")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        ["ERROR: metricbench: --metricbench-coverage: there is no coverage system 'gaols'; did you mean 'goals'? *"]
    )
    assert lab.calls() == []
