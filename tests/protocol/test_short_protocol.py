"""What users see is the same under the short protocol and under pytest's own."""

import os

import pytest

from tests.plugin.plugin_lab import without
from tests.protocol.protocol_lab import Lab, shown

WHATEVER = ("fine", "warns", "thread", "unmeasured", "dies", "fine2")
UNDER_ERROR = ("fine", "warns", "unmeasured", "dies", "fine2")
"""What a thread raises is an error there, with a traceback through the protocol."""
VOLATILE = ("trial_id", "durations", "duration", "seconds", "started")


@pytest.mark.parametrize(
    "options",
    ["-rA", "-v --tb=short", "-x", "-q --show-capture=log", "-s", "-W error", "--capture=sys --log-level=ERROR"],
)
def test_the_terminal_shows_the_same(lab: Lab, options: str) -> None:
    is_error = options == "-W error"
    lab.make_noisy(*(UNDER_ERROR if is_error else WHATEVER))
    short, standard = lab.both("experiment.yml", *([] if is_error else ["-Walways"]), *options.split())
    assert short.ret == standard.ret == pytest.ExitCode.TESTS_FAILED
    assert shown(short) == shown(standard)


def test_what_was_printed_and_logged_is_in_the_sections_of_the_failure_and_nowhere_else(lab: Lab) -> None:
    lab.make_noisy("fine", "unmeasured", "dies")
    result = lab.run("experiment.yml")
    assert "printed by fine" not in result.stdout.str()
    assert "logged by fine" not in result.stdout.str()
    result.stdout.fnmatch_lines(
        [
            "unmeasured (verifier): ValueError: the judge failed *",
            "*- Captured stdout call -*",
            "printed by unmeasured",
            "*- Captured stderr call -*",
            "written to descriptor 2",
            "*- Captured log call -*",
            "WARNING  agent:agent.py:* logged by unmeasured",
        ]
    )
    assert result.stderr.str() == ""


def test_the_answer_is_the_same(lab: Lab) -> None:
    lab.make(outcomes={"baseline::refund": "pm", "no-pay::pay": "m", "quiet::find": "up"}, retries=1)
    answers = []
    for protocol in ("auto", "standard"):
        lab.run("experiment.yml", "--metricbench-fresh", f"--metricbench-protocol={protocol}")
        answers.append(without(lab.summary(), *VOLATILE))
    assert answers[0] == answers[1]


def test_the_current_test_is_named_while_it_runs_and_not_after(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("PYTEST_CURRENT_TEST", raising=False)
    lab.make_noisy("fine", "unmeasured")
    lab.run("experiment.yml")
    named = (lab.path / "current.txt").read_text().splitlines()
    assert named == [f"experiment.yml::shop::baseline::{task}[1] (call)" for task in ("fine", "unmeasured")]
    assert "PYTEST_CURRENT_TEST" not in os.environ


def test_ctrl_c_ends_the_session(lab: Lab) -> None:
    lab.make_noisy("fine", "interrupt", "fine2")
    short, standard = lab.both("experiment.yml")
    assert short.ret == standard.ret == pytest.ExitCode.INTERRUPTED
    assert shown(short) == shown(standard)


def test_the_last_failures_are_found_again(lab: Lab) -> None:
    lab.make_noisy("fine", "unmeasured", "fine2")
    lab.run("experiment.yml")
    result = lab.run("experiment.yml", "--lf", "-v")
    assert result.parseoutcomes() == {"failed": 1, "deselected": 2}


def test_what_a_thread_raised_fails_its_attempt_where_that_is_an_error(lab: Lab) -> None:
    lab.make_noisy("fine", "thread", "fine2")
    result = lab.run("experiment.yml", "-Werror", "-v")
    assert result.parseoutcomes() == {"passed": 2, "failed": 1}
    result.stdout.fnmatch_lines(["*::thread* FAILED *", "*PytestUnhandledThreadExceptionWarning: *"])


def test_what_a_thread_of_an_unmeasured_attempt_raised_is_no_fault_of_the_next_one(lab: Lab) -> None:
    lab.make_noisy("thread-unmeasured", "fine")
    for result in lab.both("experiment.yml", "-Werror", "-v"):
        assert result.parseoutcomes() == {"passed": 1, "failed": 1, "errors": 1}
        result.stdout.fnmatch_lines(["*::fine* PASSED *", "*ERROR at teardown of *::thread-unmeasured* *"])


# ---------------------------------------------------------------- beside tests with fixtures

LOG = """\
import pathlib


def log(text):
    with (pathlib.Path(__file__).parent / "log.txt").open("a") as file:
        file.write(f"{text}\\n")
"""
FIXTURES = """\
import pytest

from noting import log


@pytest.fixture(scope="session", autouse=True)
def session_wide():
    log("session up")
    yield
    log("session down")


@pytest.fixture(scope="package", autouse=True)
def package_wide(request):
    log(f"package up {request.node.name}")
    yield
    log(f"package down {request.node.name}")
"""
MODULE = """\
from noting import log


def setup_module():
    log(f"{__name__} up")


def teardown_module():
    log(f"{__name__} down")
"""
TEST = f"{MODULE}\n\ndef test_it():\n    log(f'{{__name__}} runs')\n"


def test_fixtures_of_tests_before_and_after_come_and_go_in_the_same_order(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(lab.path)
    lab.write("noting.py", LOG)
    lab.write("conftest.py", FIXTURES)
    lab.write("a/__init__.py", MODULE)
    lab.write("a/test_first.py", TEST)
    lab.write("b/__init__.py", MODULE)
    lab.make_noisy("fine", "unmeasured", file="b/experiment.yml", module="noisy")
    lab.write("b/test_second.py", TEST)
    lab.write("c/test_third.py", TEST)
    logs = []
    for protocol in ("auto", "standard"):
        lab.run("a", "b", "c", "--metricbench-fresh", f"--metricbench-protocol={protocol}")
        logs.append((lab.path / "log.txt").read_text().splitlines())
        (lab.path / "log.txt").unlink()
    assert logs[0] == logs[1]
    assert "b up" in logs[0]
    assert "b down" in logs[0]


@pytest.mark.parametrize("protocol", ["auto", "standard"])
def test_a_package_is_set_up_and_torn_down_under_the_name_of_its_phase(lab: Lab, protocol: str) -> None:
    source = "import os\n"
    for phase in ("setup", "teardown"):
        source += f"\n\ndef {phase}_module():\n    print(os.environ['PYTEST_CURRENT_TEST'])\n"
    lab.write("b/__init__.py", source)
    lab.make_noisy("fine", "fine2", file="b/experiment.yml", module="noisy")
    result = lab.run("b/experiment.yml", "-s", f"--metricbench-protocol={protocol}")
    text = result.stdout.str()
    assert "b/experiment.yml::shop::baseline::fine[1] (setup)\n" in text
    assert "b/experiment.yml::shop::baseline::fine2[1] (teardown)\n" in text


def test_what_a_package_prints_at_its_end_is_shown_with_its_last_attempt(lab: Lab) -> None:
    lab.write("b/__init__.py", "def teardown_module():\n    print('printed at the end')\n")
    lab.make_noisy("fine", "unmeasured", file="b/experiment.yml", module="noisy")
    short, standard = lab.both("b/experiment.yml")
    assert shown(short) == shown(standard)
    short.stdout.fnmatch_lines(["*- Captured stdout teardown -*", "printed at the end"])


@pytest.mark.parametrize("function", ["setup_module", "teardown_module"])
def test_a_package_that_cannot_be_set_up_or_torn_down(lab: Lab, function: str) -> None:
    lab.make_noisy("fine", "fine2", file="b/experiment.yml", module="noisy")
    lab.write("b/__init__.py", f"def {function}():\n    print('printed above')\n    raise OSError('no {function}')\n")
    short, standard = lab.both("b/experiment.yml")
    assert short.ret == standard.ret
    assert short.parseoutcomes() == standard.parseoutcomes()
    assert "error" in "".join(short.parseoutcomes())
    short.stdout.fnmatch_lines(
        [f"E * OSError: no {function}", f"*- Captured stdout {function.partition('_')[0]} -*", "printed above"]
    )


@pytest.mark.slow
def test_a_hanging_attempt_shows_where_it_hangs(lab: Lab) -> None:
    lab.make_noisy("fine")
    source = (lab.path / "agent.py").read_text().replace('print("printed by"', 'import time; time.sleep(1); print("by"')
    lab.write("agent.py", source)
    result = lab.run("experiment.yml", "-ofaulthandler_timeout=0.2", apart=True)
    assert "Timeout (0:00:00.2" in result.stderr.str()
    assert result.ret == 0
