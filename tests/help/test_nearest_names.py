"""A misspelt name is answered with the right one: options, kinds, keys, and what ids on the command line name."""

import pytest

from tests.help.help_lab import EXPERIMENT


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ("--metricbench-stroe=x", "--metricbench-store"),
        ("--metricbench_cached_only", "--metricbench-cached-only"),
        ("--metricbnech-html=x", "--metricbench-html"),
        ("--metricbench-covrage", "--metricbench-coverage"),
    ],
)
def test_an_option(folder: pytest.Pytester, given: str, meant: str) -> None:
    result = folder.runpytest_inprocess("experiment.yml", given)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [f"ERROR: metricbench: there is no option {given.partition('=')[0]}; did you mean {meant!r}?"]
    )
    result.stdout.no_fnmatch_line("*passed*")


def test_an_option_of_a_conftest_is_left_alone(folder: pytest.Pytester) -> None:
    folder.makeconftest("def pytest_addoption(parser):\n    parser.addoption('--metricbench-house')\n")
    assert folder.runpytest_inprocess("experiment.yml", "--collect-only", "--metricbench-house", "x", ".").ret == 0


def test_the_value_of_another_option_is_no_option(folder: pytest.Pytester) -> None:
    result = folder.runpytest_inprocess("experiment.yml", "--collect-only", "-k=--metricbench-stroe")
    result.stderr.no_fnmatch_line("*there is no option*")


def test_one_that_is_near_nothing(folder: pytest.Pytester) -> None:
    result = folder.runpytest_inprocess("experiment.yml", "--metricbench-zzzzzzzzzzzzzzzzzzzzzzzzzzzzzzz")
    result.stderr.fnmatch_lines(["*there is no option --metricbench-zzz*; pytest --help lists those that there are"])


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ("refnds", "there is no case 'refnds'; did you mean 'refunds'?"),
        ("orders", "there is no case 'orders'; there is only refunds"),
        ("refunds::rudee", "there is no variant 'rudee'; did you mean 'rude'?"),
        ("refunds::rude::late-purchse", "there is no task 'late-purchse'; did you mean 'late-purchase'?"),
        ("refunds::rude::no-reciept[2]", "there is no task 'no-reciept'; did you mean 'no-receipt'?"),
        ("refunds::rude::no-receipt[3]", "there is no attempt [[]3]; they are [[]1] to [[]2]"),
        ("refunds::rude::no-receipt::more", "there is nothing below an attempt; leave out ::more"),
        ("refunds::coverage::tools[s1]", "coverage requests follow the attempts; *--metricbench-coverage ID"),
    ],
)
def test_an_id_on_the_command_line(folder: pytest.Pytester, parts: str, said: str) -> None:
    result = folder.runpytest_inprocess(f"experiment.yml::{parts}")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    shown = parts.replace("[", "[[]")
    result.stderr.fnmatch_lines([f"ERROR: experiment.yml::{shown}: {said}"])


@pytest.mark.parametrize(
    "parts", ["refunds", "refunds::rude", "refunds::rude::no-receipt", "refunds::rude::no-receipt[2]"]
)
def test_a_right_id_is_collected(folder: pytest.Pytester, parts: str) -> None:
    result = folder.runpytest_inprocess(f"experiment.yml::{parts}", "--collect-only", "-q")
    assert result.ret == 0


@pytest.mark.parametrize(
    ("item", "parts", "said"),
    [
        (
            "task",
            "refunds::rude::no-receipt[1]",
            "*an item is all attempts at a task here (items: task); leave out [[]1]",
        ),
        ("variant", "refunds::rude::no-receipt", "*there is nothing below a variant; leave out ::no-receipt"),
    ],
)
def test_where_items_are_larger(folder: pytest.Pytester, item: str, parts: str, said: str) -> None:
    folder.makefile(".yml", experiment=EXPERIMENT + f"items: {item}\n")
    result = folder.runpytest_inprocess(f"experiment.yml::{parts}")
    result.stderr.fnmatch_lines([said])


def test_every_wrong_id_is_told_at_once(folder: pytest.Pytester) -> None:
    result = folder.runpytest_inprocess("experiment.yml::refnds", "experiment.yml::refunds::rde")
    result.stderr.fnmatch_lines(["*did you mean 'refunds'?", "*did you mean 'rude'?"])


@pytest.mark.slow
def test_before_any_worker_starts(folder: pytest.Pytester) -> None:
    result = folder.runpytest_subprocess("experiment.yml::refnds", "-n2")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *; did you mean 'refunds'?"])


@pytest.mark.parametrize(
    ("right", "wrong", "said"),
    [
        (
            "kind: python, agent",
            "kind: pyton, agent",
            "runner.kind: there is no runner 'pyton'; did you mean 'python'?",
        ),
        (
            "kind: python, measure",
            "kind: pyhton, measure",
            "*there is no coverage system 'pyhton'; did you mean 'python'?",
        ),
        ("attempts: 2", "atempts: 2", "atempts: is an unknown key; did you mean 'attempts'?"),
        ("description: Insults", "descripton: Insults", "*descripton: is an unknown key; did you mean 'description'?"),
        ('measure: "', 'mesure: "', "*mesure: is an unknown key; did you mean 'measure'?"),
    ],
)
def test_keys_and_kinds(folder: pytest.Pytester, right: str, wrong: str, said: str) -> None:
    folder.makefile(".yml", experiment=EXPERIMENT.replace(right, wrong))
    result = folder.runpytest_inprocess("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*experiment.yml:*: {said}*"])


def test_a_coverage_system(folder: pytest.Pytester) -> None:
    result = folder.runpytest_inprocess("experiment.yml", "--metricbench-coverage", "tols")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*--metricbench-coverage: there is no coverage system 'tols'; did you mean 'tools'?*"])
