"""What ``--junit-xml`` holds: a test case for each attempt and each coverage request, with properties."""

import xml.etree.ElementTree as ET

import pytest

from tests.plugin.plugin_lab import USUAL, Lab


def junit(lab: Lab, *args: str) -> ET.Element:
    lab.run("experiment.yml", "--junit-xml=junit.xml", *args)
    suite = ET.parse(lab.path / "junit.xml").getroot().find("testsuite")
    assert suite is not None
    return suite


def cases_of(suite: ET.Element) -> dict[tuple[str, str], ET.Element]:
    return {(case.attrib["classname"], case.attrib["name"]): case for case in suite.iter("testcase")}


def properties(case: ET.Element) -> dict[str, str]:
    found = [(entry.attrib["name"], entry.attrib["value"]) for entry in case.iter("property")]
    assert len(found) == len(dict(found)), "a property stands twice"
    return dict(found)


def test_each_attempt_and_request_is_a_case_with_its_properties(lab: Lab, workers: list[str]) -> None:
    """The classes are file, case and variant; attempts carry outcome, scores and trial id."""
    lab.make()
    suite = junit(lab, *workers)
    cases = cases_of(suite)
    assert suite.attrib["tests"] == "22"
    assert suite.attrib["failures"] == suite.attrib["errors"] == suite.attrib["skipped"] == "0"
    assert len(cases) == 22
    attempts = {key for key in cases if "coverage" not in key[0]}
    assert attempts == {
        (f"experiment.yml.shop.{variant}", f"{task}[{slot}]")
        for variant in ("baseline", "no-pay", "quiet")
        for task in ("find", "pay", "refund")
        for slot in (1, 2)
    }
    requests = {name for classname, name in cases if classname == "experiment.yml.shop.coverage"}
    assert requests == {"goals[s1]", "goals[s2]", "goals[s3]", "goals[pool]"}
    records = {(line["variant"], line["task"], line["attempt"]): line for line in lab.journal()}
    for (classname, name), case in cases.items():
        variant = classname.rpartition(".")[2]
        if variant == "coverage":
            continue
        task, _, slot = name.removesuffix("]").partition("[")
        assert properties(case)["trial_id"] == records[variant, task, int(slot)]["trial_id"]
    baseline = "experiment.yml.shop.baseline"
    passed = properties(cases[baseline, "find[1]"])
    assert (passed["outcome"], passed["score.reward"], passed["score.tone"]) == ("passed", "1.0", "dry")
    missed = properties(cases[baseline, "refund[2]"])
    assert (missed["outcome"], missed["score.reward"]) == ("missed", "0.25")
    died = properties(cases["experiment.yml.shop.no-pay", "refund[2]"])
    assert (died["outcome"], died["error"]) == ("died", "agent: RuntimeError")
    assert "score.reward" not in died


def test_an_unmeasured_attempt_is_a_failure(lab: Lab) -> None:
    lab.make(outcomes={**USUAL, "quiet::find": "pu"})
    suite = junit(lab)
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("1", "0")
    case = cases_of(suite)["experiment.yml.shop.quiet", "find[2]"]
    failure = case.find("failure")
    assert failure is not None
    assert failure.attrib["message"].startswith("unmeasured (verifier): ValueError: the judge failed")
    assert properties(case)["outcome"] == "unmeasured"
    assert properties(case)["error"] == "verifier: ValueError"


def test_reused_attempts_carry_the_same_properties(lab: Lab) -> None:
    lab.make()
    first, second = cases_of(junit(lab)), cases_of(junit(lab))
    assert first.keys() == second.keys()
    for key, case in first.items():
        assert properties(second[key]) == properties(case)


def test_coverage_requests_carry_outcome_and_value(lab: Lab) -> None:
    lab.make()
    cases = cases_of(junit(lab))
    coverage = {name: properties(case) for (classname, name), case in cases.items() if classname.endswith("coverage")}
    assert coverage["goals[pool]"] == {"outcome": "measured", "value": "1.0"}
    assert coverage["goals[s1]"] == {"outcome": "measured", "value": str(1 / 3)}


def test_a_null_score_carries_its_reason(lab: Lab) -> None:
    agent = "def run(request): return 1.0\ndef verify(request, output): return {'reward': output}\n"
    agent += "def measure(request): return {'value': None, 'reason': 'nothing was traced'}\n"
    lab.make(agent=agent)
    case = cases_of(junit(lab))["experiment.yml.shop.coverage", "goals[s1]"]
    assert properties(case) == {"outcome": "measured", "reason": "nothing was traced"}
    assert case.find("failure") is None


def test_a_failed_request_is_a_failure(lab: Lab) -> None:
    agent = "def run(request): return 1.0\ndef verify(request, output): return {'reward': output}\n"
    agent += "def measure(request): raise OSError('no disk') if request.subset == 's2' else ValueError\n"
    lab.make(agent=agent, case={"subsets": [{"id": "s2", "tasks": ["pay"]}]})
    suite = junit(lab)
    assert (suite.attrib["failures"], suite.attrib["errors"]) == ("2", "0")
    case = cases_of(suite)["experiment.yml.shop.coverage", "goals[s2]"]
    failure = case.find("failure")
    assert failure is not None
    assert "no disk" in (failure.text or "") + failure.attrib["message"]
    assert properties(case) == {"outcome": "failed"}


@pytest.mark.parametrize("family", ["xunit1", "xunit2", "legacy"])
def test_every_family(lab: Lab, family: str) -> None:
    lab.make()
    suite = junit(lab, "-o", f"junit_family={family}")
    assert len(cases_of(suite)) == 22


def test_legacy_names_the_line_of_a_task(lab: Lab) -> None:
    path = lab.make()
    case = cases_of(junit(lab, "-o", "junit_family=xunit1"))["experiment.yml.shop.quiet", "pay[1]"]
    assert case.attrib["file"] == "experiment.yml"
    assert "id: pay" in path.read_text().splitlines()[int(case.attrib["line"])]
