"""Which executor a session uses, what is said of it, and what is wrong with one that cannot be."""

import resource
import threading

import pytest

from pytest_metricbench.executor_settings import (
    ExecutorTextError,
    LocalSettings,
    ThreadsSettings,
    settings_of_text,
)
from tests.executors.executors_lab import Lab


@pytest.mark.parametrize(
    ("text", "settings"),
    [
        ("local", LocalSettings()),
        ("threads", ThreadsSettings(workers=32)),
        ("threads:1", ThreadsSettings(workers=1)),
        (" threads: 100 ", ThreadsSettings(workers=100)),
        ("threads:10000", ThreadsSettings(workers=10_000)),
    ],
)
def test_a_short_form(text: str, settings: object) -> None:
    assert settings_of_text(text) == settings


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("thread", "there is no executor 'thread'"),
        ("", "there is no executor ''"),
        ("threads:0", "'0' is no number of threads; write threads:N"),
        ("threads:10001", "from 1 to 10,000"),
        ("threads:-1", "'-1' is no number of threads"),
        ("threads:1.5", "'1.5' is no number of threads"),
        ("threads:\u0663", "is no number of threads"),
        ("threads:" + "9" * 5000, "is no number of threads"),
        ("local:2", "the executor local takes nothing behind a colon"),
    ],
)
def test_a_short_form_that_cannot_be_read(text: str, message: str) -> None:
    with pytest.raises(ExecutorTextError) as caught:
        settings_of_text(text)
    assert message in str(caught.value)


# ---------------------------------------------------------------- where it is given


@pytest.mark.parametrize(
    ("executor", "says"),
    [
        ("threads:7", "threads, 7 at a time"),
        ("threads", "threads, 32 at a time"),
        ({"kind": "threads"}, "threads, 32 at a time"),
        ({"kind": "threads", "workers": 3}, "threads, 3 at a time"),
    ],
)
def test_the_file_says_which(lab: Lab, executor: object, says: str) -> None:
    lab.make(executor=executor)
    result = lab.run("--collect-only", "-q", executor=None)
    result.stdout.no_fnmatch_line("*Error*")
    result = lab.run("-k", "find", executor=None)
    assert result.ret == 0, result.stdout.str()
    result.stdout.fnmatch_lines([f"metricbench: shop: 18 attempts, executor: {says}, store: *"])


def test_the_option_wins_and_so_does_its_twin(lab: Lab) -> None:
    lab.make(executor="threads:7")
    lab.run("-k", "m1", executor="threads:9").stdout.fnmatch_lines(["*executor: threads, 9 at a time*"])
    lab.run("-k", "m1", executor="local").stdout.no_fnmatch_line("*executor:*")
    lab.write("pytest.ini", "[pytest]\nmetricbench_executor = threads:5\n")
    lab.run("-k", "m1", executor=None).stdout.fnmatch_lines(["*executor: threads, 5 at a time*"])


def test_another_executor_makes_nothing_stale(lab: Lab) -> None:
    lab.make(executor="threads:2")
    assert lab.run(executor=None).ret == 0
    lab.make(runner={"kind": "python", "agent": "agent:run", "verifier": "agent:verify"})
    assert lab.run(executor="local").parseoutcomes() == {"reused": 18}


def test_the_plan_tells_it(lab: Lab) -> None:
    lab.make()
    lab.run("-k", "m1")
    result = lab.run("--metricbench-show=plan")
    result.stdout.fnmatch_lines(["executor * threads, 4 at a time", "time * with 4 at a time, *"])
    assert len(lab.calls()) == 6
    result = lab.run("--metricbench-show=plan", "-n2", executor=None)
    result.stdout.fnmatch_lines(["time * with 2 at a time, *"])
    lab.make(executor="threads:4")
    result = lab.run("--metricbench-show=plan", "-n2", executor=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*show plan: the executor threads goes without pytest -n; leave it out, *"])


# ---------------------------------------------------------------- what is wrong with it


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("threds", "*--metricbench-executor: there is no executor 'threds'; did you mean 'threads'? the kinds are *"),
        ("threads:many", "*--metricbench-executor: 'many' is no number of threads; write threads:N with a whole*"),
    ],
)
def test_an_option_that_is_wrong(lab: Lab, option: str, message: str) -> None:
    lab.make()
    result = lab.run(executor=option)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"ERROR: metricbench: {message}"])


@pytest.mark.parametrize(
    ("executor", "message"),
    [
        (
            "threds",
            "*experiment.yml:26:11: executor: there is no executor 'threds'; did you mean 'threads'? the*",
        ),
        ("threads:0", "*executor: '0' is no number of threads; write threads:N*"),
        ("", "*executor: is empty*"),
        (3, "*executor: is the number 3; a text or a mapping is expected*"),
        ([], "*executor: is a list; a text or a mapping is expected*"),
        ({"workers": 3}, "*executor.kind: is missing; it says which executor this is; the kinds are *local, threads*"),
        ({"kind": "thread"}, "*executor.kind: there is no executor 'thread'; did you mean 'threads'?*"),
        ({"kind": "threads", "workers": 0}, "*executor.workers: is the number 0; at least 1 is expected*"),
        ({"kind": "threads", "workers": "4"}, "*executor.workers: is the text '4'; a whole number is expected*"),
        ({"kind": "threads", "wrkers": 4}, "*executor.wrkers: is an unknown key; did you mean 'workers'?*"),
        ({"kind": "local", "workers": 4}, "*executor.workers: is an unknown key*"),
    ],
)
def test_a_key_that_is_wrong(lab: Lab, executor: object, message: str) -> None:
    lab.make(executor=executor)
    result = lab.run(executor=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([message])


@pytest.mark.parametrize("started", [0, 1])
def test_threads_that_the_system_does_not_have(lab: Lab, monkeypatch: pytest.MonkeyPatch, started: int) -> None:
    """One is enough for all the work; with none nothing is measured, and it is said."""
    start = threading.Thread.start
    left = [started]

    def start_few(thread: threading.Thread) -> None:
        if thread.name.startswith("metricbench-attempts-"):
            if not left[0]:
                raise RuntimeError("can't start new thread")
            left[0] -= 1
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", start_few)
    lab.make()
    result = lab.run()
    if started:
        assert (result.ret, len(lab.calls())) == (0, 18)
    else:
        assert result.ret not in (0, pytest.ExitCode.INTERNAL_ERROR)
        assert lab.calls() == []
        said = "no thread can be started: can't start new thread; take fewer at a time"
        assert said in result.stdout.str() + result.stderr.str()


def test_workers_of_xdist_are_refused(lab: Lab) -> None:
    lab.make(executor="threads:2")
    result = lab.run("-n2", executor="threads")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    said = "the executor threads makes the attempts of one pytest process, and pytest -n gives them to several"
    option = "--metricbench-executor"
    result.stderr.fnmatch_lines([f"ERROR: metricbench: {option}: {said}; run with -n 0, or leave {option} out"])
    result = lab.run("-n2", executor=None)
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*experiment.yml: {said}; run with -n 0, or take {option} local"])
    assert lab.calls() == []
    assert lab.run("-n0", executor=None).ret == 0


@pytest.mark.parametrize(
    ("runner", "advice"),
    [
        (
            {"kind": "python", "agent": "agent:run"},
            "*the runner 'python' makes one attempt at a time in a process; set thread_safe: true where its agent and "
            "verifier may be called by several threads*",
        ),
        (
            {"kind": "own"},
            "*the runner 'own' makes one attempt at a time in a process; run them in processes, with pytest -n "
            "(pytest-xdist)*",
        ),
    ],
)
def test_a_runner_that_threads_may_not_share(lab: Lab, runner: dict[str, object], advice: str) -> None:
    lab.make(runner=runner)
    lab.write("conftest.py", OWN_RUNNER)
    result = lab.run(executor="threads")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines([f"*experiment.yml: executor: {advice}*"])
    result.stdout.no_fnmatch_line("*18 attempts: *")
    assert lab.calls() == []


OWN_RUNNER = """
from typing import Literal
from pytest_metricbench import Outcome, Runner

class Own(Runner):
    kind: Literal["own"] = "own"

    def run(self, request, workspace):
        return Outcome.scored({"reward": 1.0})

class Crashing(Runner):
    kind: Literal["crashing"] = "crashing"
    concurrent = property(lambda self: True)

    def run(self, request, workspace):
        if request.variant.id == "m1":
            raise {"find": ValueError, "pay": SystemExit, "refund": MemoryError}[request.task.id]("no more")
        return Outcome.scored({"reward": 1.0})

def pytest_metricbench_runners():
    return [Own, Crashing]
"""


def test_a_runner_that_crashes_in_a_thread_fails_its_attempts_only(lab: Lab) -> None:
    lab.make(runner={"kind": "crashing"})
    lab.write("conftest.py", OWN_RUNNER)
    result = lab.run()
    result.assert_outcomes(passed=12, failed=6)
    result.stdout.fnmatch_lines(["*unmeasured (setup): ValueError: the runner 'crashing' *raised:*", "*SystemExit*"])
    assert len(lab.journal()) == 18


def test_more_at_a_time_than_there_may_be_files(lab: Lab) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lab.make()
    resource.setrlimit(resource.RLIMIT_NOFILE, (256, hard))
    try:
        result = lab.run(executor="threads:100")
        assert result.ret == pytest.ExitCode.USAGE_ERROR
        result.stderr.fnmatch_lines(["*100 attempts at a time need about 664 open *have 256*or take threads:32"])
        assert lab.run().ret == 0
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
