"""Which attempts run: ``-k``, node ids, ``--deselect``, ``--lf``, ``-x``, ``--maxfail``, ``--collect-only``."""

import pytest

from tests.plugin.plugin_lab import AGENT, USUAL, Lab, node_ids, words

BROKEN = {**USUAL, "no-pay::find": "pu"}
"""One attempt in 18 that cannot be measured."""


QUIET = [f"quiet::{task}[{slot}]" for task in ("find", "pay", "refund") for slot in (1, 2)]


@pytest.mark.parametrize(
    ("expression", "called"),
    [
        ("quiet and pay", ["quiet::pay[1]", "quiet::pay[2]"]),
        ("no-pay and not (find or refund)", ["no-pay::pay[1]", "no-pay::pay[2]"]),
        ("quiet and quick", ["quiet::find[1]", "quiet::find[2]"]),
        ("SHOP and Quiet", QUIET),
    ],
)
def test_by_expression(lab: Lab, expression: str, called: list[str]) -> None:
    lab.make()
    assert lab.run("experiment.yml", "-k", expression).ret == 0
    assert lab.calls() == called


@pytest.mark.parametrize(
    ("below", "called"),
    [
        ("shop::quiet::pay[2]", ["quiet::pay[2]"]),
        ("shop::quiet::pay", ["quiet::pay[1]", "quiet::pay[2]"]),
        ("shop::quiet", QUIET),
    ],
)
def test_by_node_id(lab: Lab, below: str, called: list[str]) -> None:
    lab.make()
    assert lab.run(f"experiment.yml::{below}").ret == 0
    assert lab.calls() == called


def test_a_task_without_a_bracket_means_all_its_attempts(lab: Lab, workers: list[str]) -> None:
    lab.make()
    assert lab.run("experiment.yml::shop::quiet::pay", *workers).ret == 0
    assert sorted(lab.calls()) == ["quiet::pay[1]", "quiet::pay[2]"]


def test_by_case(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml::shop")
    assert len(lab.calls()) == 18


def test_several_node_ids(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml::shop::quiet::pay[2]", "experiment.yml::shop::baseline::find[1]")
    assert lab.calls() == ["baseline::find[1]", "quiet::pay[2]"]


@pytest.mark.parametrize("below", ["shop::loud", "shop::quiet::fly", "shop::quiet::pay[3]", "shop::coverage"])
def test_an_unknown_node_id_is_a_usage_error(lab: Lab, below: str) -> None:
    lab.make()
    result = lab.run(f"experiment.yml::{below}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: experiment.yml::{below.replace('[', '[[]')}: *"])
    assert lab.calls() == []


def test_deselect(lab: Lab) -> None:
    lab.make()
    result = lab.run(
        "--deselect=experiment.yml::shop::quiet",
        "--deselect=experiment.yml::shop::no-pay::pay",
        "--deselect=experiment.yml::shop::baseline::find[1]",
    )
    assert result.parseoutcomes()["deselected"] == 9
    called = lab.calls()
    assert len(called) == 9
    assert not [name for name in called if name.startswith(("quiet", "no-pay::pay"))]
    assert "baseline::find[1]" not in called


def test_a_named_file_that_is_ignored(lab: Lab) -> None:
    lab.make()
    lab.write("test_plain.py", "def test_plain(): pass\n")
    assert lab.run("--ignore=experiment.yml").parseoutcomes() == {"passed": 1}
    assert not lab.store().exists()


# ---------------------------------------------------------------- after a failure


def test_last_failed_runs_only_what_failed(lab: Lab, workers: list[str]) -> None:
    lab.make(outcomes=BROKEN)
    first = lab.run("experiment.yml", *workers)
    assert first.ret == pytest.ExitCode.TESTS_FAILED
    lab.calls()
    lab.make(outcomes=USUAL)
    again = lab.run("experiment.yml", "--lf", "-v", *workers)
    assert lab.calls() == ["no-pay::find[2]"]
    attempts = {nodeid: word for nodeid, word in words(again).items() if "coverage" not in nodeid}
    assert attempts == {"experiment.yml::shop::no-pay::find[2]": "PASSED"}
    assert again.ret == 0
    assert lab.summary()["complete"]


FAILING_COVERAGE = AGENT.replace(
    "return len(request.tasks) / 3",
    "return len(request.tasks) / (3 if (HERE / 'mended').exists() else 0)",
)


def test_a_failed_coverage_request_runs_again_with_last_failed(lab: Lab) -> None:
    lab.make(agent=FAILING_COVERAGE)
    first = lab.run("experiment.yml")
    assert first.ret == pytest.ExitCode.TESTS_FAILED
    assert first.parseoutcomes() == {"passed": 12, "missed": 5, "died": 1, "failed": 4}
    lab.calls()
    lab.write("mended", "")
    again = lab.run("experiment.yml", "--lf", "-v")
    assert again.ret == 0
    assert lab.calls() == []
    assert [nodeid for nodeid, word in words(again).items() if word == "PASSED"] == [
        f"experiment.yml::shop::coverage::goals[{subset}]" for subset in ("s1", "s2", "s3", "pool")
    ]
    lab.run("experiment.yml", "--lf", "-v").stdout.fnmatch_lines(["*no previously failed tests*"])


def test_failed_first_still_runs_everything(lab: Lab) -> None:
    lab.make(outcomes=BROKEN)
    lab.run("experiment.yml")
    lab.calls()
    lab.make(outcomes=USUAL)
    again = lab.run("experiment.yml", "--ff", "-v")
    assert lab.calls() == ["no-pay::find[2]"]
    assert len(words(again)) == 22
    assert again.ret == 0


def test_stepwise_stops_and_goes_on(lab: Lab) -> None:
    lab.make(outcomes=BROKEN)
    assert lab.run("experiment.yml", "--sw").ret == pytest.ExitCode.INTERRUPTED
    assert lab.calls()[-1] == "no-pay::find[2]"
    lab.make(outcomes=USUAL)
    assert lab.run("experiment.yml", "--sw").ret == 0
    called = lab.calls()
    assert "no-pay::find[2]" in called
    assert len(called) == 11
    assert lab.summary()["complete"]


@pytest.mark.parametrize(("args", "failed"), [(["-x"], 1), (["--maxfail=2"], 2)], ids=["x", "maxfail"])
def test_stopping_after_failures(lab: Lab, args: list[str], failed: int) -> None:
    lab.make(outcomes={"baseline::pay": "u"})
    result = lab.run("experiment.yml", "-v", *args)
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"passed": 2, "failed": failed}
    assert len(lab.calls()) == 2 + failed
    assert not [nodeid for nodeid in words(result) if "coverage" in nodeid]
    assert not (lab.store() / "summary.json").exists()
    partial = lab.summary(partial=True)
    assert not partial["complete"]
    assert partial["counts"]["missing"] == 16 - failed


@pytest.mark.slow
def test_stopping_with_workers(lab: Lab) -> None:
    lab.make(outcomes={"baseline::find": "u"})
    result = lab.run("experiment.yml", "-x", "-n2")
    assert result.ret in (pytest.ExitCode.TESTS_FAILED, pytest.ExitCode.INTERRUPTED)  # xdist says 2
    assert len(lab.calls()) < 18
    assert lab.summary(partial=True)["counts"]["missing"] > 0
    assert not (lab.store() / "summary.json").exists()


# ---------------------------------------------------------------- looking only


@pytest.mark.parametrize("workers", [[], ["-n2"]], ids=["plain", "n2"])
def test_collect_only_makes_no_store(lab: Lab, workers: list[str]) -> None:
    lab.make(case={"subsets": {"sizes": [1, 2], "per_size": 2}})
    before = sorted(path.name for path in lab.path.iterdir())
    result = lab.run("--collect-only", "-q", "-p", "no:cacheprovider", *workers)
    assert result.ret == 0
    assert len(node_ids(result)) == 18
    assert lab.calls() == []
    assert sorted(path.name for path in lab.path.iterdir()) == before


def test_collect_only_lists_baselines_first(lab: Lab) -> None:
    mutants = [{"id": "broken"}]
    cases = [{"id": name, "tasks": [{"id": "t"}], "mutants": mutants} for name in ("a", "b")]
    lab.make(attempts=1, cases=cases, coverage=None)
    listed = node_ids(lab.run("--collect-only", "-q"))
    assert [nodeid.partition("::")[2] for nodeid in listed] == [
        "a::baseline::t[1]",
        "b::baseline::t[1]",
        "a::broken::t[1]",
        "b::broken::t[1]",
    ]
    assert node_ids(lab.run("--collect-only", "-q", "-n2")) == listed


def test_setup_plan_runs_no_agent_and_makes_no_store(lab: Lab) -> None:
    lab.make()
    lab.run("experiment.yml", "--setup-plan")
    assert lab.calls() == []
