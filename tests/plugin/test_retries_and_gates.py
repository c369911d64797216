"""Retries of unmeasured attempts, gates, the check of the baseline; and what each does to the exit status."""

from typing import Any

import pytest

from tests.plugin.plugin_lab import AGENT, USUAL, Lab

LATE = AGENT.replace(
    "letter = letters[min(request.attempt, len(letters)) - 1]",
    '''letter = letters[min(request.attempt, len(letters)) - 1]
    if letter == "l":  # unmeasured until the third try
        tries = (HERE / "calls.txt").read_text().splitlines().count(f"{where}[{request.attempt}]")
        letter = "p" if tries >= 3 else "u"''',
)


def tries(lab: Lab, variant: str, task: str, slot: int) -> list[dict[str, Any]]:
    key = (variant, task, slot)
    return [line for line in lab.journal() if (line["variant"], line["task"], line["attempt"]) == key]


def test_an_unmeasured_attempt_is_tried_again_until_it_is_measured(lab: Lab, workers: list[str]) -> None:
    lab.make(agent=LATE, outcomes={**USUAL, "quiet::pay": "pl"}, retries=4)
    result = lab.run("experiment.yml", *workers)
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 16, "missed": 5, "died": 1}
    lines = tries(lab, "quiet", "pay", 2)
    assert [line["outcome"] for line in lines] == ["unmeasured", "unmeasured", "scored"]
    assert [line["supersedes"] for line in lines] == [None, lines[0]["trial_id"], lines[1]["trial_id"]]
    assert len({line["trial_id"] for line in lines}) == 3
    assert len({line["seed"] for line in lines}) == 1
    entries = lab.summary()["cases"]["shop"]["variants"]["quiet"]["attempts"]["pay"]["reward"]
    (other,) = tries(lab, "quiet", "pay", 1)
    assert [entry["trial_id"] for entry in entries] == [other["trial_id"], lines[2]["trial_id"]]
    assert lab.summary()["counts"]["passed"] == 12


def test_when_the_retries_are_used_up_it_stays_unmeasured(lab: Lab) -> None:
    lab.make(agent=LATE, outcomes={**USUAL, "quiet::pay": "pl"}, retries=1)
    assert lab.run("experiment.yml").ret == pytest.ExitCode.TESTS_FAILED
    assert [line["outcome"] for line in tries(lab, "quiet", "pay", 2)] == ["unmeasured", "unmeasured"]
    assert lab.summary()["counts"]["unmeasured"] == 1
    assert lab.run("experiment.yml").ret == 0
    lines = tries(lab, "quiet", "pay", 2)
    assert [line["outcome"] for line in lines] == ["unmeasured", "unmeasured", "scored"]
    assert lines[2]["supersedes"] == lines[1]["trial_id"]


def test_attempts_that_died_or_missed_are_not_tried_again(lab: Lab) -> None:
    lab.make(retries=5)
    lab.run("experiment.yml")
    assert len(lab.calls()) == len(lab.journal()) == 18


# ---------------------------------------------------------------- gates


@pytest.mark.parametrize(
    ("gate", "value"),
    [
        ("baseline pass@1 >= 0.83", 5 / 6),
        ("pass@1 < 0.84", 5 / 6),
        ("quiet pass@2 == 1", 1.0),
        ("pass^2 <= 0.7", 2 / 3),
        ("mutation_score >= 0.5", 0.5),
        ("shop mean_drop > 0.2", 0.25),
        ("goals coverage == 1", 1.0),
        ("goals spearman >= 0.5", 0.5),
    ],
)
def test_gates_that_hold(lab: Lab, gate: str, value: float) -> None:
    lab.make(gates=[gate])
    result = lab.run("experiment.yml")
    assert result.ret == 0
    (found,) = lab.summary()["gates"]
    assert found["text"] == gate
    assert found["holds"] is True
    assert found["value"] == pytest.approx(value)
    result.stdout.fnmatch_lines([f"gates *ok *{gate.replace('[', '[[]')}*"])


def test_a_gate_that_does_not_hold_fails_the_session(lab: Lab, workers: list[str]) -> None:
    lab.make(gates=["baseline pass@1 >= 0.5", "mutation_score >= 0.9"])
    result = lab.run("experiment.yml", *workers)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"passed": 16, "missed": 5, "died": 1}  # no test failed
    assert [gate["holds"] for gate in lab.summary()["gates"]] == [True, False]
    result.stdout.fnmatch_lines(["*FAIL *mutation_score >= 0.9 *0.50*"])


def test_a_gate_on_a_figure_that_is_unavailable_does_not_hold_and_says_why(lab: Lab) -> None:
    lab.make(gates=["goals spearman >= 0.1"], outcomes={"no-pay::find": "m", "quiet::find": "m"})
    assert lab.run("experiment.yml").ret == pytest.ExitCode.TESTS_FAILED
    (gate,) = lab.summary()["gates"]
    assert (gate["holds"], gate["value"]) == (False, None)
    assert gate["reason"] == "the kill share is 1 in every pair"


def test_a_gate_does_not_hide_another_exit_status(lab: Lab) -> None:
    lab.make(gates=["mutation_score >= 0.9"])
    assert lab.run("experiment.yml", "-k", "nothing-like-it").ret == pytest.ExitCode.NO_TESTS_COLLECTED


def test_gates_are_shown_when_quiet(lab: Lab) -> None:
    lab.make(gates=["mutation_score >= 0.9"])
    lab.run("experiment.yml", "-q").stdout.fnmatch_lines(["gates *FAIL *mutation_score >= 0.9*"])


# ---------------------------------------------------------------- the baseline


def never_passes(letters: str) -> dict[str, str]:
    return {f"baseline::{task}": letters for task in ("find", "pay", "refund")}


@pytest.mark.parametrize("letters", ["m", "d", "md"])
def test_a_baseline_that_never_passes_fails_the_session(lab: Lab, letters: str) -> None:
    lab.make(outcomes=never_passes(letters))
    assert lab.run("experiment.yml").ret == pytest.ExitCode.TESTS_FAILED
    check = lab.summary()["cases"]["shop"]["baseline_check"]
    assert check["holds"] is False
    assert check["reason"].startswith("none of 6 attempts of the baseline passes: nothing can be learned")


def test_that_the_baseline_never_passes_is_said(lab: Lab) -> None:
    lab.make(outcomes=never_passes("m"))
    result = lab.run("experiment.yml")
    result.stdout.fnmatch_lines(["problems *shop: none of 6 attempts of the baseline passes: nothing can be*"])


def test_one_passing_attempt_of_the_baseline_is_enough(lab: Lab) -> None:
    lab.make(outcomes={**never_passes("m"), "baseline::refund": "mp"})
    assert lab.run("experiment.yml").ret == 0


def test_a_baseline_that_never_passes_in_a_later_run(lab: Lab) -> None:
    """From the store it counts as it did when it was made."""
    lab.make(outcomes=never_passes("m"))
    lab.run("experiment.yml")
    again = lab.run("experiment.yml", "-k", "quiet")
    assert again.ret == pytest.ExitCode.TESTS_FAILED


# ---------------------------------------------------------------- the kill rule


def test_a_rule_that_cannot_be_reached_is_told_before_anything_runs(lab: Lab) -> None:
    lab.make(analysis={"kill": {"rule": "fisher", "alpha": 0.05}})
    text = lab.run("experiment.yml").stdout.str()
    warning = text.index("can kill nothing")
    assert warning < text.index("[100%]")
    assert "2 against 2 attempts" in text


def test_a_rule_that_can_be_reached_is_not_mentioned(lab: Lab) -> None:
    lab.make(attempts=5, analysis={"kill": {"rule": "fisher", "alpha": 0.05}})
    lab.run("experiment.yml").stdout.no_fnmatch_line("*can kill nothing*")
