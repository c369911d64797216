"""``items: task`` and ``items: variant``: ids, selection, words, and what is said of what went wrong inside."""

import xml.etree.ElementTree as ET

import pytest

from tests.plugin import plugin_lab
from tests.plugin.plugin_lab import AGENT, TASKS, USUAL, node_ids, without, words
from tests.present import present

BROKEN = {**USUAL, "no-pay::find": "pu"}
"""One attempt of no-pay at find cannot be measured."""
VARIANTS = ("baseline", "no-pay", "quiet")
BY_TASK = [f"experiment.yml::shop::{variant}::{task['id']}" for variant in VARIANTS for task in TASKS]
BY_VARIANT = [f"experiment.yml::shop::{variant}" for variant in VARIANTS]


def attempts_of(shown: dict[str, str]) -> dict[str, str]:
    return {nodeid: word for nodeid, word in shown.items() if "::coverage::" not in nodeid}


# ---------------------------------------------------------------- ids and selection


def test_ids(lab: plugin_lab.Lab) -> None:
    lab.make(items="task")
    assert node_ids(lab.run("experiment.yml", "--collect-only", "-q")) == BY_TASK
    lab.make(items="variant")
    assert node_ids(lab.run("experiment.yml", "--collect-only", "-q")) == BY_VARIANT
    lab.run("experiment.yml", "--collect-only").stdout.fnmatch_lines(
        ["*<CaseCollector shop>*", "*<VariantItem quiet>*"]
    )


@pytest.mark.parametrize(
    ("unit", "args", "selected"),
    [
        ("task", ["experiment.yml::shop::quiet::pay"], ["quiet::pay"]),
        ("task", ["-k", "quiet and (pay or quick)"], ["quiet::find", "quiet::pay"]),
        ("task", ["-m", "metricbench(variant='quiet', task='pay')"], ["quiet::pay"]),
        ("variant", ["-k", "quiet and not pay"], ["quiet"]),
        ("variant", ["-m", "metricbench(variant='quiet') and mutant and not money"], ["quiet"]),
        (
            "variant",
            ["--deselect=experiment.yml::shop::baseline", "--deselect=experiment.yml::shop::no-pay"],
            ["quiet"],
        ),
    ],
)
def test_selection(lab: plugin_lab.Lab, unit: str, args: list[str], selected: list[str]) -> None:
    lab.make(items=unit)
    found = node_ids(lab.run(*args, "--strict-markers", "--collect-only", "-q"))
    assert found == [f"experiment.yml::shop::{name}" for name in selected]


def test_what_is_selected_runs_with_all_its_attempts(lab: plugin_lab.Lab) -> None:
    lab.make(items="variant", coverage=None)
    assert lab.run("-k", "quiet").ret == 0
    assert lab.calls() == [f"quiet::{task}[{slot}]" for task in ("find", "pay", "refund") for slot in (1, 2)]


@pytest.mark.parametrize(
    ("unit", "below", "said"),
    [
        ("task", "quiet::pay[1]", "ERROR: *an item is all attempts at a task here*leave out [[]1]"),
        ("variant", "quiet::pay", "ERROR: *there is nothing below a variant; leave out ::pay"),
    ],
)
def test_what_is_inside_an_item_has_no_id(lab: plugin_lab.Lab, unit: str, below: str, said: str) -> None:
    lab.make(items=unit)
    result = lab.run(f"experiment.yml::shop::{below}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([said])
    assert lab.calls() == []


def test_another_word_is_an_error_that_says_which_there_are(lab: plugin_lab.Lab) -> None:
    lab.make(items="case")
    result = lab.run("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*items*'attempt', 'task' or 'variant'*"])


# ---------------------------------------------------------------- words

OUTCOMES = {
    "baseline::pay": "pm",
    "baseline::refund": "mm",
    "no-pay::find": "dd",
    "no-pay::pay": "md",
    "quiet::find": "d",
    "quiet::pay": "m",
    "quiet::refund": "m",
}


def test_words_of_tasks_and_what_the_last_line_counts(lab: plugin_lab.Lab) -> None:
    lab.make(items="task", outcomes=OUTCOMES, coverage=None)
    first = lab.run("experiment.yml", "-v")
    assert attempts_of(words(first)) == {
        **dict.fromkeys(BY_TASK, "SOLVED"),
        "experiment.yml::shop::baseline::pay": "FLAKY",
        "experiment.yml::shop::baseline::refund": "MISSED",
        "experiment.yml::shop::no-pay::find": "DIED",
        "experiment.yml::shop::no-pay::pay": "MISSED",
        "experiment.yml::shop::quiet::find": "DIED",
        "experiment.yml::shop::quiet::pay": "MISSED",
        "experiment.yml::shop::quiet::refund": "MISSED",
    }
    counted = first.parseoutcomes()
    assert {name.partition(" ")[0] for name in counted} == {"solved", "flaky", "missed", "died"}
    first.stdout.re_match_lines([r"=.* 2 solved \(tasks\).* in "])
    assert first.ret == 0
    first.stdout.fnmatch_lines(["18 attempts: *"])
    again = lab.run("experiment.yml", "-v")
    assert set(attempts_of(words(again)).values()) == {"REUSED"}
    again.stdout.fnmatch_lines(["*= 9 reused (tasks) in *"])


def test_words_of_variants(lab: plugin_lab.Lab) -> None:
    lab.make(items="variant", outcomes={**OUTCOMES, "quiet::find": "m"})
    result = lab.run("experiment.yml", "-v")
    assert attempts_of(words(result)) == {
        "experiment.yml::shop::baseline": "MIXED",
        "experiment.yml::shop::no-pay": "MIXED",
        "experiment.yml::shop::quiet": "MISSED",
    }
    assert result.ret == 0


def test_letters(lab: plugin_lab.Lab) -> None:
    lab.make(items="task", outcomes=OUTCOMES, coverage=None)
    lab.run("experiment.yml").stdout.fnmatch_lines(["experiment.yml .~mdm.dmm *"])


def test_a_failure_lists_what_is_inside(lab: plugin_lab.Lab, unit: str) -> None:
    lab.make(items=unit, outcomes={**BROKEN, "no-pay::refund": "u"})
    result = lab.run("experiment.yml")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    text = result.stdout.str()
    if unit == "task":
        assert "1 of 2 attempts not measured\n[2] unmeasured (verifier): ValueError: the judge failed" in text
        assert "2 of 2 attempts not measured\n[1] unmeasured" in text
    else:
        assert "3 of 6 attempts not measured\nfind[2] unmeasured (verifier): ValueError: the judge" in text
        assert "\nrefund[1] unmeasured (verifier): ValueError: the judge" in text
    assert "Traceback" not in text
    counts = lab.summary()["counts"]
    assert (counts["unmeasured"], counts["missing"]) == (3, 0)


def test_a_long_list_is_cut(lab: plugin_lab.Lab) -> None:
    lab.make(items="variant", attempts=5, outcomes={"quiet::find": "u", "quiet::pay": "u", "quiet::refund": "u"})
    text = lab.run("experiment.yml").stdout.str()
    assert "15 of 15 attempts not measured" in text
    assert "\nand 5 more" in text
    assert text.count("] unmeasured (verifier)") == 10


def test_junit_has_every_attempt(lab: plugin_lab.Lab, unit: str) -> None:
    lab.make(items=unit, outcomes={**OUTCOMES, "quiet::pay": "u"})
    lab.run("experiment.yml", "--junit-xml=junit.xml")
    cases = {}
    for case in ET.parse(lab.path / "junit.xml").iter("testcase"):
        properties = {entry.get("name"): entry.get("value") for entry in case.iter("property")}
        assert len(properties) == len(list(case.iter("property")))
        cases[case.get("classname"), case.get("name")] = properties, case.find("failure")
    if unit == "task":
        flaky, failure = cases["experiment.yml.shop.baseline", "pay"]
        assert failure is None
        assert len(present(flaky.pop("attempt.1.trial_id"))) == len(present(flaky.pop("attempt.2.trial_id"))) == 32
        assert [flaky.pop(name) for name in ("case", "variant", "task")] == ["shop", "baseline", "pay"]
        assert flaky == {
            "outcome": "flaky",
            "attempt.1.outcome": "passed",
            "attempt.1.score.reward": "1.0",
            "attempt.1.score.tone": "dry",
            "attempt.2.outcome": "missed",
            "attempt.2.score.reward": "0.25",
            "attempt.2.score.tone": "dry",
        }
        broken, failure = cases["experiment.yml.shop.quiet", "pay"]
        assert broken["attempt.2.error"] == "verifier: ValueError"
    else:
        broken, failure = cases["experiment.yml.shop", "quiet"]
        assert broken["pay.2.error"] == "verifier: ValueError"
        assert broken["find.1.outcome"] == "died"
        assert "task" not in broken
    assert broken["outcome"] == "unmeasured"
    assert failure is not None


# ---------------------------------------------------------------- the same experiment


def test_the_answer_and_the_store_are_the_same(lab: plugin_lab.Lab) -> None:
    """What one item is decides nothing but how pytest is told of it: the next run may choose otherwise."""
    answers = []
    for unit in ("attempt", "task", "variant"):
        lab.make(outcomes=BROKEN, items=unit)
        lab.run("experiment.yml", "--metricbench-fresh")
        answers.append(without(lab.summary(), "trial_id", "started", "duration", "seconds", "store"))
        assert len(lab.calls()) == len(lab.journal()) == 18
    assert answers[0] == answers[1] == answers[2]
    lab.make(outcomes=BROKEN)
    lab.run("experiment.yml")
    assert lab.calls() == ["no-pay::find[2]"]  # what could not be measured
    assert lab.summary()["counts"]["reused"] == 17


def test_recorded_variants_without_attempts_have_no_item(lab: plugin_lab.Lab, unit: str) -> None:
    lab.write("results.csv", "variant,task,reward\nbaseline,t1,1\nbaseline,t2,1\nm,t1,0\nn,t2,0\n")
    runner = {"kind": "recorded", "form": "table", "read": ["results.csv"], "baseline": "baseline"}
    lab.make(
        items=unit, runner=runner, case={"tasks": None, "mutants": None, "subsets": None}, coverage=None, attempts=None
    )
    result = lab.run("experiment.yml", "-v")
    ids = ["baseline::t1", "baseline::t2", "m::t1", "n::t2"] if unit == "task" else ["baseline", "m", "n"]
    assert list(words(result)) == [f"experiment.yml::shop::{name}" for name in ids], result.stdout.str()


AGENT_THAT_PRINTS = AGENT.replace("    time.sleep(", "    print('said by', where)\n    time.sleep(")


def test_what_an_agent_prints_is_captured(lab: plugin_lab.Lab) -> None:
    lab.make(items="task", agent=AGENT_THAT_PRINTS, outcomes={"quiet::pay": "u"})
    text = lab.run("experiment.yml").stdout.str()
    assert text.count("said by") == 2
    assert "Captured stdout call" in text
