"""What the terminal shows of outcomes: letters, words, counts, progress; and the exit status."""

import re

import pytest

from tests.plugin.plugin_lab import USUAL, Lab, words

ALL_KINDS = {"baseline::refund": "pm", "no-pay::pay": "m", "no-pay::refund": "md", "quiet::find": "up"}
"""As usual, and one unmeasured attempt."""


def percentages(result: pytest.RunResult) -> list[int]:
    return [int(number) for number in re.findall(r"\[ *(\d+)%\]", result.stdout.str())]


# ---------------------------------------------------------------- letters, words, counts


def test_letters(lab: Lab) -> None:
    lab.make(outcomes=ALL_KINDS)
    result = lab.run("experiment.yml")
    result.stdout.fnmatch_lines(["experiment.yml .....m..mmmdF......... *[[]100%[]]"])


def test_letters_of_a_second_run(lab: Lab) -> None:
    lab.make(outcomes=ALL_KINDS)
    lab.run("experiment.yml")
    lab.make(outcomes=USUAL)
    letters = lab.run("experiment.yml").stdout.re_match_lines  # the order follows durations now
    letters([r"experiment\.yml (?=\w*\.\w* )[r.]{18}r{4} +\[100%\]"])


@pytest.mark.parametrize("verbosity", ["-v", "-vv"])
def test_words(lab: Lab, verbosity: str) -> None:
    lab.make(outcomes=ALL_KINDS)
    shown = words(lab.run("experiment.yml", verbosity))
    assert len(shown) == 22
    assert shown["experiment.yml::shop::baseline::find[1]"] == "PASSED"
    assert shown["experiment.yml::shop::baseline::refund[2]"] == "MISSED"
    assert shown["experiment.yml::shop::no-pay::refund[2]"] == "DIED"
    assert shown["experiment.yml::shop::quiet::find[1]"] == "FAILED"
    assert shown["experiment.yml::shop::coverage::goals[s1]"] == "PASSED"
    assert shown["experiment.yml::shop::coverage::goals[pool]"] == "PASSED"


def test_words_with_workers_and_of_a_second_run(lab: Lab, workers: list[str]) -> None:
    lab.make(outcomes=ALL_KINDS)
    first = lab.run("experiment.yml", "-v")
    second = words(lab.run("experiment.yml", "-v", *workers))
    assert second.keys() == words(first).keys()
    assert second.pop("experiment.yml::shop::quiet::find[1]") == "FAILED"
    assert set(second.values()) == {"REUSED"}


def test_counts_in_the_last_line(lab: Lab, workers: list[str]) -> None:
    """And progress ends at 100 %."""
    lab.make(outcomes=ALL_KINDS)
    first = lab.run("experiment.yml", "-v", *workers)
    assert first.ret == pytest.ExitCode.TESTS_FAILED
    seen = percentages(first)
    assert len(seen) == 22
    assert seen == sorted(seen)
    assert seen[-1] == 100
    assert seen.count(100) == 1
    assert first.parseoutcomes() == {"failed": 1, "passed": 16, "missed": 4, "died": 1}
    assert re.search(r"1 failed, 16 passed, 4 missed, 1 died in [\d.]+s", first.outlines[-1])


def test_counts_when_quiet(lab: Lab) -> None:
    lab.make(outcomes=ALL_KINDS)
    result = lab.run("experiment.yml", "-q")
    result.stdout.fnmatch_lines([".....m..mmmdF......... *[[]100%[]]"])
    assert re.match(r"1 failed, 16 passed, 4 missed, 1 died in [\d.]+s", result.outlines[-1])
    assert lab.run("experiment.yml", "-qq").ret == pytest.ExitCode.TESTS_FAILED


def test_an_unmeasured_attempt_says_why_and_shows_no_traceback(lab: Lab, workers: list[str]) -> None:
    lab.make(outcomes=ALL_KINDS)
    result = lab.run("experiment.yml::shop::quiet::find", *workers)
    message = " - unmeasured (verifier): *" if pytest.version_tuple >= (9,) else ""  # pytest 8 has none there
    result.stdout.fnmatch_lines(
        [
            "*shop::quiet::find[[]1[]]*",
            "unmeasured (verifier): ValueError: the judge failed (*agent.py:*)",
            f"FAILED experiment.yml::shop::quiet::find[[]1[]]{message}",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")
    result.stdout.no_fnmatch_line("*def verify*")


def test_durations_name_the_longest(lab: Lab) -> None:
    tasks = [{"id": "find"}, {"id": "pay", "params": {"seconds": 0.05}}]
    lab.make(attempts=1, case={"tasks": tasks, "mutants": None, "subsets": None}, coverage=None)
    result = lab.run("experiment.yml", "--durations=1", "--durations-min=0.04")
    result.stdout.re_match_lines([r"0\.\d+s call +experiment\.yml::shop::baseline::pay\[1\]"])


def test_reports_of_attempts_keep_pytests_outcomes(lab: Lab) -> None:
    """Other plugins know passed, failed and skipped and nothing else."""
    lab.make(outcomes=ALL_KINDS)
    lab.write("conftest.py", "def pytest_runtest_logreport(report): assert report.outcome in ('passed', 'failed')\n")
    assert lab.run("experiment.yml").parseoutcomes()["missed"] == 4


# ---------------------------------------------------------------- progress


def test_progress_of_letters_over_several_lines(lab: Lab) -> None:
    lab.make(attempts=20)
    seen = percentages(lab.run("experiment.yml"))
    assert len(seen) > 2
    assert seen == sorted(set(seen))
    assert seen[-1] == 100


@pytest.mark.parametrize("style", ["count", "times"])
def test_other_styles_of_progress(lab: Lab, style: str) -> None:
    lab.make()
    lab.write("pytest.ini", f"[pytest]\nconsole_output_style = {style}\n")
    result = lab.run("experiment.yml")
    assert result.ret == 0
    if style == "count":
        result.stdout.fnmatch_lines(["*[[]22/22[]]"])


def test_progress_beside_plain_tests(lab: Lab) -> None:
    lab.make()
    lab.write("test_plain.py", "import pytest\n@pytest.mark.parametrize('n', range(8))\ndef test_it(n): pass\n")
    result = lab.run("-v")
    assert result.parseoutcomes() == {"passed": 24, "missed": 5, "died": 1}
    seen = percentages(result)
    assert len(seen) == 30
    assert seen == sorted(seen)
    assert seen[-1] == 100
    assert seen.count(100) == 1


def test_progress_of_a_part(lab: Lab) -> None:
    lab.make()
    seen = percentages(lab.run("experiment.yml", "-v", "-k", "baseline and find"))
    assert seen == [33, 66, 100]  # two attempts, and the coverage of s1


# ---------------------------------------------------------------- exit status


def test_status_0_whatever_the_agent_did(lab: Lab) -> None:
    lab.make(outcomes={"baseline::pay": "pm", "no-pay::pay": "d", "quiet::find": "m"})
    assert lab.run("experiment.yml").ret == pytest.ExitCode.OK


def test_status_1_when_a_coverage_request_failed(lab: Lab) -> None:
    agent = "def run(request): return 1\ndef verify(request, output): return {'reward': output}\n"
    agent += "def measure(request): return 1.5 if request.subset == 's2' else 0.5\n"
    lab.make(agent=agent)
    result = lab.run("experiment.yml", "-v")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"passed": 21, "failed": 1}
    result.stdout.fnmatch_lines(["FAILED experiment.yml::shop::coverage::goals[[]s2[]]*"])


def test_status_2_when_interrupted(lab: Lab) -> None:
    lab.make()
    lab.write(
        "conftest.py",
        "def pytest_runtest_logfinish(nodeid):\n"
        "    if nodeid.endswith('no-pay::find[1]'):\n"
        "        raise KeyboardInterrupt\n",
    )
    result = lab.run("experiment.yml")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    assert len(lab.journal()) == 7
    assert lab.summary(partial=True)["counts"]["missing"] == 11


def test_status_4_for_wrong_options(lab: Lab) -> None:
    lab.make()
    assert lab.run("experiment.yml", "--metricbench-nothing").ret == pytest.ExitCode.USAGE_ERROR
    assert lab.run("absent.yml").ret == pytest.ExitCode.USAGE_ERROR


@pytest.mark.parametrize("workers", [[], pytest.param(["-n2"], marks=pytest.mark.slow)], ids=["plain", "n2"])
def test_status_5_when_nothing_is_selected(lab: Lab, workers: list[str]) -> None:
    lab.make()
    result = lab.run("experiment.yml", "-k", "nothing-like-it", *workers)
    assert result.ret == pytest.ExitCode.NO_TESTS_COLLECTED
    assert lab.calls() == []
    assert not (lab.store() / "summary.json").exists()


def test_plain_tests_selected_beside_an_experiment(lab: Lab) -> None:
    lab.make()
    lab.write("test_plain.py", "def test_plain(): pass\n")
    result = lab.run("-k", "test_plain")
    assert result.ret == pytest.ExitCode.OK
    assert result.parseoutcomes() == {"passed": 1, "deselected": 18}
    assert not lab.store().exists()


def test_plain_tests_alone(lab: Lab) -> None:
    lab.make("elsewhere/experiment.yml")
    lab.write("test_plain.py", "def test_plain(): pass\ndef test_broken(): assert False\n")
    result = lab.run("test_plain.py")
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert result.parseoutcomes() == {"passed": 1, "failed": 1}
    result.stdout.no_fnmatch_line("*metricbench:*")


def test_a_failing_plain_test_beside_a_good_experiment(lab: Lab) -> None:
    lab.make()
    lab.write("test_plain.py", "def test_broken(): assert False\n")
    result = lab.run()
    assert result.ret == pytest.ExitCode.TESTS_FAILED
    assert lab.summary()["complete"]


def test_without_coverage_systems(lab: Lab) -> None:
    lab.make(coverage=None, case={"subsets": None})
    result = lab.run("experiment.yml")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 12, "missed": 5, "died": 1}
