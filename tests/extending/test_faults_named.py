"""What is wrong with code of a plugin or a conftest.py names it, its hook, and what to do."""

import pytest

EXPERIMENT = """
metricbench: 1
name: e
runner: {kind: mine}
cases: [{id: c, tasks: [{id: t}], mutants: [{id: m, description: A mutant.}]}]
"""
RUNNER = """
from typing import Literal
from pytest_metricbench import CoverageSystem, Outcome, Runner, Score

class Mine(Runner):
    kind: Literal["mine"] = "mine"

    def run(self, request, workspace):
        return Outcome.scored({"reward": 1.0})

class Share(CoverageSystem):
    kind: Literal["share"] = "share"

    def measure(self, request, workspace):
        return Score(0.5)

def pytest_metricbench_runners():
    return [Mine]

def pytest_metricbench_coverage_systems():
    return [Share]
"""
HOOK = "the hook pytest_metricbench_runners of conftest.py"
SYSTEMS_HOOK = "the hook pytest_metricbench_coverage_systems of conftest.py"
KIND = 'Literal["mine"] = "mine"'
ARGUMENTS = "(self, request, workspace)"


def refused(folder: pytest.Pytester, conftest: str, *args: str) -> str:
    """What pytest says of a conftest.py with which nothing runs."""
    folder.makefile(".yml", experiment=EXPERIMENT)
    folder.makeconftest(conftest)
    result = folder.runpytest_inprocess("experiment.yml", *args)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    errors = [line for line in result.errlines if line]
    assert len(errors) == 1, errors
    return errors[0].removeprefix("ERROR: metricbench: ")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise ImportError('no foo')", f"{HOOK} raised ImportError: no foo; mend it (*conftest.py:2)"),
        ("yield 1 / 0", f"{HOOK} raised ZeroDivisionError: division by zero; mend it (*conftest.py:2)"),
        ("raise SystemExit(3)", f"{HOOK} raised SystemExit: 3; mend it (*conftest.py:2)"),
        ("__import__('pytest').skip('not here')", f"{HOOK} raised Skipped: not here; mend it (*)"),
        ("return 3", f"{HOOK} gave 3; a list is expected"),
        ("return 'Mine'", f"{HOOK} gave 'Mine'; a list is expected"),
        ("return int", f"{HOOK} gave <class 'int'>; a list is expected"),
        ("return [int]", f"{HOOK} gave <class 'int'>; a subclass of Runner is expected"),
        ("return [3]", f"{HOOK} gave 3; a subclass of Runner is expected"),
    ],
)
def test_a_hook_that_gives_rubbish(folder: pytest.Pytester, body: str, said: str) -> None:
    message = refused(folder, f"def pytest_metricbench_runners():\n    {body}\n")
    before, star, after = said.partition("*")
    assert message.startswith(before)
    assert message.endswith(after if star else before)


@pytest.mark.parametrize(
    ("hook", "given", "said"),
    [
        ("coverage_systems", "[int]", " gave <class 'int'>; a subclass of CoverageSystem is expected"),
        ("generators", "[int]", ": <class 'int'> is no generator; a subclass of Generator is expected"),
        ("text_operators", "['x']", ": 'x' is no operator; a TextOperator is expected"),
        ("generators", "7", " gave 7; a list is expected"),
    ],
)
def test_the_other_hooks(folder: pytest.Pytester, hook: str, given: str, said: str) -> None:
    name = f"pytest_metricbench_{hook}"
    message = refused(folder, f"def {name}():\n    return {given}\n")
    assert message == f"the hook {name} of conftest.py{said}"


@pytest.mark.parametrize("kind", ["wrapper", "hookwrapper"])
def test_a_hook_that_is_a_wrapper(folder: pytest.Pytester, kind: str) -> None:
    conftest = (
        f"import pytest\n\n@pytest.hookimpl({kind}=True)\ndef pytest_metricbench_runners():\n    return (yield)\n"
    )
    assert refused(folder, conftest) == f"{HOOK} is a wrapper; return a list instead"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("pytest_metricbench_runner", "did you mean 'pytest_metricbench_runners'?"),
        ("pytest_metricbench_coverage", "did you mean 'pytest_metricbench_coverage_systems'?"),
        ("pytest_metricbench_zzzzzzzzzzzzzzzzzzzz", "the hooks are pytest_metricbench_runners, *"),
    ],
)
def test_a_misspelt_hook_is_not_passed_over(folder: pytest.Pytester, name: str, said: str) -> None:
    message = refused(folder, f"def {name}():\n    return []\n")
    assert message.startswith(f"conftest.py has {name}, and there is no such hook; {said.rstrip('*')}")


def test_a_module_of_a_similar_name_is_no_hook(folder: pytest.Pytester) -> None:
    folder.makepyfile(pytest_metricbench_house="")
    folder.makefile(".yml", experiment=EXPERIMENT)
    folder.makeconftest(f"{RUNNER}\nimport pytest_metricbench_house\n")
    assert folder.runpytest_inprocess("experiment.yml").ret == 0


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("def run(", "def walk("), f"{HOOK} gave Mine, which is abstract; write def run{ARGUMENTS}"),
        (
            (f"kind: {KIND}", "kind: str"),
            f'{HOOK} gave Mine, which names no kind; write kind: Literal["name"] = "name"',
        ),
        (
            (KIND, KIND.replace("mine", "suite")),
            f"{HOOK} gave Mine the kind 'suite', which is taken by "
            "pytest_metricbench.runners.suite.SuiteRunner; rename one",
        ),
        (
            ("def measure(", "def weigh("),
            f"{SYSTEMS_HOOK} gave Share, which is abstract; write def measure{ARGUMENTS}",
        ),
    ],
    ids=["abstract", "no-kind", "taken", "abstract-system"],
)
def test_a_class_that_is_none(folder: pytest.Pytester, change: tuple[str, str], said: str) -> None:
    assert refused(folder, RUNNER.replace(*change)) == said


def test_two_conftests_that_give_one_kind_are_both_named(folder: pytest.Pytester) -> None:
    folder.makeconftest(RUNNER)
    deep = folder.mkdir("deep")
    (deep / "conftest.py").write_text(RUNNER, encoding="utf-8")
    (deep / "experiment.yml").write_text(EXPERIMENT, encoding="utf-8")
    result = folder.runpytest_inprocess("deep/experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    taken = "which is taken by conftest.Mine of deep/conftest.py; rename one"
    result.stderr.fnmatch_lines([f"ERROR: metricbench: {HOOK} gave Mine the kind 'mine', {taken}"])


def test_in_a_file_that_is_found_in_a_folder_it_is_an_error_of_that_file_without_a_traceback(
    folder: pytest.Pytester,
) -> None:
    folder.makefile(".yml", experiment=EXPERIMENT)
    folder.makeconftest("def pytest_metricbench_runners():\n    return [int]\n")
    result = folder.runpytest_inprocess(".", "-p", "no:sugar")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    at = next(number for number, line in enumerate(result.outlines) if "ERROR collecting experiment.yml" in line)
    assert result.outlines[at + 1] == f"metricbench: {HOOK} gave <class 'int'>; a subclass of Runner is expected"
    assert result.outlines[at + 2].startswith("====")


@pytest.mark.parametrize(
    ("name", "body", "said"),
    [
        ("ahead", "1 / 0", "ahead raised ZeroDivisionError: division by zero; mend it"),
        ("ahead", "'x'", "ahead gave 'x'; a whole number is expected"),
        ("time_limit", "'x'", "time_limit gave 'x'; a number of seconds, or None is expected"),
        ("affinity", "{}['x']", "affinity raised KeyError: 'x'; mend it"),
        ("affinity", "5", "affinity gave 5; a text, or None is expected"),
    ],
)
def test_a_runner_that_cannot_be_sorted(folder: pytest.Pytester, name: str, body: str, said: str) -> None:
    asked = "answer" if name == "affinity" else "property(answer)"
    message = refused(folder, f"{RUNNER}\ndef answer(*args):\n    return {body}\n\nMine.{name} = {asked}\n")
    assert message.startswith(f"the runner 'mine' of conftest.py: {said}")


def test_a_check_that_raises_is_a_problem_at_its_place(folder: pytest.Pytester) -> None:
    raising = "    def inherit(self, baseline, mutant):\n        return {}['x']\n\n    def run("
    folder.makefile(".yml", experiment=EXPERIMENT)
    folder.makeconftest(RUNNER.replace("    def run(", raising))
    result = folder.runpytest_inprocess("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*experiment.yml:*: conftest.Mine of conftest.py cannot check this: KeyError: 'x'*"])


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise RuntimeError('boom')", "unmeasured (setup): RuntimeError: the runner 'mine' of conftest.py raised:"),
        (
            "return {'reward': 1}",
            "unmeasured (contract): ContractError: the runner 'mine' of conftest.py returned dict; "
            "an Outcome is expected",
        ),
    ],
    ids=["raises", "returns"],
)
def test_a_runner_at_work(folder: pytest.Pytester, body: str, said: str) -> None:
    folder.makefile(".yml", experiment=EXPERIMENT)
    folder.makeconftest(RUNNER.replace('return Outcome.scored({"reward": 1.0})', body))
    result = folder.runpytest_inprocess("experiment.yml")
    assert result.ret == 1
    result.stdout.fnmatch_lines([said.replace("[", "[[]")])
    result.stdout.no_fnmatch_line("*INTERNALERROR*")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise RuntimeError('boom')", "the coverage system 'share' of conftest.py raised RuntimeError: boom"),
        ("return 0.5", "the coverage system 'share' of conftest.py returned float; a Score is expected"),
        ("return Score(None)", "the coverage system 'share' of conftest.py returned no value and no reason; *"),
        ("return Score(7)", "the answer of the coverage system 'share' of conftest.py: *"),
    ],
)
def test_a_coverage_system_at_work(folder: pytest.Pytester, body: str, said: str) -> None:
    folder.makefile(".yml", experiment=f"{EXPERIMENT}coverage: [{{id: share, kind: share}}]\n")
    folder.makeconftest(RUNNER.replace("return Score(0.5)", body))
    result = folder.runpytest_inprocess("experiment.yml")
    assert result.ret == 1
    result.stdout.fnmatch_lines([f"*{said}*"])


def test_what_cannot_be_closed_or_warn_costs_no_result(folder: pytest.Pytester) -> None:
    raising = "def fail(self, *args):\n    raise RuntimeError('boom')\n\nMine.close = Mine.variant_warnings = fail\n"
    folder.makefile(".yml", experiment=EXPERIMENT)
    folder.makeconftest(RUNNER + raising)
    result = folder.runpytest_inprocess("experiment.yml")
    assert result.ret == 0
    assert result.parseoutcomes() == {"passed": 2}
    result.stdout.fnmatch_lines(
        [
            "*the runner 'mine' of conftest.py cannot be closed: RuntimeError('boom')",
            "warning *c::baseline: the runner*",
        ]
    )


def test_a_conftest_that_cannot_be_imported_is_named_by_pytest(folder: pytest.Pytester) -> None:
    folder.makefile(".yml", experiment=EXPERIMENT)
    folder.makeconftest("from pytest_metricbench import Runer\n")
    result = folder.runpytest_inprocess("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ImportError while loading conftest '*conftest.py'*", "*cannot import name 'Runer'*"])
