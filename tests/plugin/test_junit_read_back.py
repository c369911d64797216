"""``--junit-xml`` as other tools read it: by a parser of somebody else's, and grouped as CI systems do."""

from collections import Counter
from typing import Any

import pytest

from tests.plugin.plugin_lab import MUTANTS, USUAL, Lab

pytest.importorskip("junitparser")

import junitparser


def suite_of(lab: Lab, *args: str) -> Any:
    lab.run("experiment.yml", "--junit-xml=junit.xml", *args)
    (suite,) = junitparser.JUnitXml.fromfile(str(lab.path / "junit.xml"))
    return suite


def properties(element: Any) -> dict[str, str]:
    found = [(entry.name, entry.value) for entry in element.properties()]
    assert len(found) == len(dict(found)), "a property stands twice"
    return dict(found)


def cases_of(suite: Any) -> dict[tuple[str, str], Any]:
    return {(case.classname, case.name): case for case in suite}


@pytest.mark.parametrize("family", ["xunit1", "xunit2"])
def test_each_attempt_says_which_it_is_and_what_became_of_it(lab: Lab, family: str) -> None:
    lab.make()
    suite = suite_of(lab, "-o", f"junit_family={family}")
    ids = {(line["variant"], line["task"], line["attempt"]): line["trial_id"] for line in lab.journal()}
    attempts = [case for case in suite if not case.classname.endswith(".coverage")]
    assert len(attempts) == len(ids) == 18
    for case in attempts:
        told = _case_properties(case)
        assert told["trial_id"] == ids[told["variant"], told["task"], int(told["attempt"])]
        assert case.classname == f"experiment.yml.{told['case']}.{told['variant']}"
        assert case.name == f"{told['task']}[{told['attempt']}]"
        assert told["outcome"] in ("passed", "missed", "died")
        assert ("score.reward" in told) == (told["outcome"] != "died")
        assert case.is_passed


def test_the_suite_carries_the_headline(lab: Lab, workers: list[str]) -> None:
    lab.make(gates=["mutation_score >= 0.9", "baseline pass@1 >= 0.5"])
    told = properties(suite_of(lab, *workers))
    summary = lab.summary()["cases"]["shop"]
    assert told == {
        "shop.complete": "true",
        "shop.shop.baseline.pass@1": str(summary["variants"]["baseline"]["pass_at_k"]["reward"]["1"]["value"]),
        "shop.shop.mutation_score": "0.5",
        "shop.shop.kill_share": "0.5",
        "shop.shop.killed": "1",
        "shop.shop.mutants": "2",
        "shop.shop.mean_drop": str(summary["pool"]["mean_drop"]["value"]),
        "shop.shop.goals.coverage": "1.0",
        **{
            f"shop.shop.goals.{name}": str(summary["correlation"]["goals"]["kill_share"]["overall"][name]["value"])
            for name in ("kendall", "spearman", "pearson")
        },
        "shop.gate.mutation_score >= 0.9": "FAIL",
        "shop.gate.baseline pass@1 >= 0.5": "ok",
    }


def test_what_is_unavailable_says_why(lab: Lab) -> None:
    lab.make()
    told = properties(suite_of(lab, "-k", "baseline"))
    assert told["shop.complete"] == "false"
    assert told["shop.part"] == "6 of 18 attempts selected"
    assert told["shop.shop.mutation_score.unavailable"].startswith("12 of 18 attempts are outside this part")
    assert "shop.shop.mutation_score" not in told
    assert told["shop.shop.goals.coverage"] == "1.0"


def test_the_mutation_score_is_the_one_that_analysis_chose(lab: Lab) -> None:
    lab.make(analysis={"mutation_score": "mean_drop"})
    told = properties(suite_of(lab))
    assert told["shop.shop.mutation_score"] == told["shop.shop.mean_drop"] != told["shop.shop.kill_share"]


def test_several_experiments_and_cases_do_not_mix(lab: Lab) -> None:
    lab.make("a/experiment.yml", module="agent_a", name="one")
    lab.make("b/experiment.yml", module="agent_b", name="two")
    lab.run("a", "b", "--junit-xml=junit.xml")
    (suite,) = junitparser.JUnitXml.fromfile(str(lab.path / "junit.xml"))
    told = properties(suite)
    assert {name.split(".")[0] for name in told} == {"one", "two"}
    assert told["one.shop.killed"] == told["two.shop.killed"] == "1"


def test_without_mutants_there_is_no_mutation_score(lab: Lab) -> None:
    lab.make(case={"mutants": None})
    assert not any("mut" in name or "kill" in name for name in properties(suite_of(lab)))


def test_strange_texts_stay_well_formed(lab: Lab) -> None:
    agent = "def run(request):\n    return 1.0\ndef verify(request, output):\n"
    agent += "    return {'reward': output, 'tone': 'a <b> & \"c\" \\x00 \\ud800 \u2028'}\n"
    lab.make(agent=agent, coverage=None, case={"subsets": None})
    case = next(iter(suite_of(lab)))
    assert _case_properties(case)["score.tone"].startswith('a <b> & "c" ')


def test_an_ordinary_test_beside_it_has_none_of_it(lab: Lab) -> None:
    lab.make()
    lab.write("test_other.py", "def test_it(record_property):\n    record_property('mine', 1)\n")
    case = cases_of(suite_of(lab, "test_other.py", "-o", "junit_family=xunit1"))["test_other", "test_it"]
    assert _case_properties(case) == {"mine": "1"}


def test_a_session_without_an_experiment_has_none(lab: Lab) -> None:
    lab.write("test_other.py", "def test_it():\n    pass\n")
    lab.run("test_other.py", "--junit-xml=junit.xml")
    (suite,) = junitparser.JUnitXml.fromfile(str(lab.path / "junit.xml"))
    assert properties(suite) == {}


# ---------------------------------------------------------------- as CI systems group it


def test_grouped_by_class_as_github_and_gitlab_reports_do(lab: Lab) -> None:
    """Most show the class name as the group and the name below it."""
    lab.make()
    groups = Counter(case.classname for case in suite_of(lab))
    start = "experiment.yml.shop."
    assert groups == {f"{start}baseline": 6, f"{start}no-pay": 6, f"{start}quiet": 6, f"{start}coverage": 4}


def test_grouped_by_package_and_class_as_jenkins_does(lab: Lab) -> None:
    """Jenkins takes what stands before the last point as the package: a case; what follows it is a variant."""
    lab.make(case={"mutants": [*MUTANTS, {"id": "v1.2"}]})
    packages = Counter(case.classname.rpartition(".")[0] for case in suite_of(lab))
    assert packages["experiment.yml.shop"] == 22
    assert packages["experiment.yml.shop.v1"] == 6  # an id with a point is cut there; the properties tell
    assert {_case_properties(case).get("variant") for case in suite_of(lab)} >= {"v1.2"}


def test_no_two_cases_have_one_name(lab: Lab) -> None:
    """Systems that follow a test over time know it by class and name: attempts keep theirs from run to run."""
    lab.make()
    first, second = (list(cases_of(suite_of(lab))) for _ in range(2))
    assert len(first) == len(set(first)) == 22
    assert sorted(first) == sorted(second)


def test_failures_count_and_what_was_missed_does_not(lab: Lab) -> None:
    lab.make(outcomes={**USUAL, "quiet::find": "pu"})
    suite = suite_of(lab)
    assert (suite.tests, suite.failures, suite.errors, suite.skipped) == (22, 1, 0, 0)
    (failed,) = [case for case in suite if not case.is_passed]
    assert (failed.name, _case_properties(failed)["outcome"]) == ("find[2]", "unmeasured")


class _Properties(junitparser.Properties):
    """Of a test case: the parser knows those of suites only."""

    _tag = "properties"


def _case_properties(case: Any) -> dict[str, str]:
    found = [
        (entry.name, entry.value)
        for group in case.iterchildren(_Properties)
        for entry in group.iterchildren(junitparser.Property)
    ]
    assert len(found) == len(dict(found)), "a property stands twice"
    return dict(found)
