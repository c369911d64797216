"""The python runner, outcome by outcome, with real modules."""

import asyncio
import math
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy  # noqa: F401  (an agent here imports it, and it cannot be imported twice in one process)
import pytest
from pydantic import ValidationError

from pytest_metricbench.contracts import Outcome
from pytest_metricbench.runners.python import PythonRunner

Perform = Callable[..., Outcome]


# ---------------------------------------------------------------- the table of outcomes


@pytest.mark.parametrize(
    ("agent", "scores"),
    [
        ("return 1", {"reward": 1}),
        ("return 0.5", {"reward": 0.5}),
        ("return True", {"reward": True}),
        ("return {'reward': 1, 'tone': 'polite', 'cost': None}", {"reward": 1, "tone": "polite", "cost": None}),
        ("return {'other': 1}", {"other": 1}),
        ("import numpy; return numpy.float32(0.5)", {"reward": 0.5}),
        ("import numpy; return {'reward': numpy.int64(1), 'ok': numpy.bool_(True)}", {"reward": 1, "ok": True}),
        ("import types; return types.MappingProxyType({'reward': 1})", {"reward": 1}),
    ],
)
def test_without_a_verifier_the_result_is_the_scores(perform: Perform, agent: str, scores: dict[str, Any]) -> None:
    outcome = perform(f"def agent(request):\n    {agent}\n")
    assert outcome == Outcome.scored(scores)
    assert {name: type(value) for name, value in outcome.scores.items()} == {n: type(v) for n, v in scores.items()}


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ("pass", "it is null"),
        ("return 'good'", 'it is the text "good"'),
        ("return [1]", "a list [1]"),
        ("return {}", "is empty"),
        ("return {'reward': [1]}", "'reward' is a list [1]"),
        ("return {1: 2}", "1 is no name of a score"),
        ("return object()", "of type object"),
        ("return 10**5000", "thousands of digits"),
        ("return {'reward': 10**400}", "has 401 digits"),
    ],
)
def test_an_answer_of_another_form_is_unmeasured(
    perform: Perform, error_of: Callable[[Outcome], object], agent: str, words: str
) -> None:
    outcome = perform(f"def agent(request):\n    {agent}\n")
    assert error_of(outcome) == ("unmeasured", "ContractError", "contract")
    assert outcome.error is not None
    assert outcome.error.message.startswith("the agent's answer: ")
    assert words in outcome.error.message


def test_nan_is_a_score(perform: Perform) -> None:
    value = perform("def agent(request):\n    return float('nan')\n").scores["reward"]
    assert isinstance(value, float)
    assert math.isnan(value)


RAISES = [
    ("raise ValueError('no date')", "ValueError", "no date"),
    ("raise SystemExit(3)", "SystemExit", "3 ("),
    ("import sys; sys.exit()", "SystemExit", "no message ("),
    ("import pytest; pytest.fail('by hand')", "Failed", "by hand"),
    ("import pytest; pytest.skip('by hand')", "Skipped", "by hand"),
    ("import pytest; pytest.exit('all')", "Exit", "all"),
    ("raise GeneratorExit", "GeneratorExit", "no message"),
    ("raise BaseException('odd')", "BaseException", "odd"),
    ("raise StopIteration", "StopIteration", "no message"),
    ("import asyncio; raise asyncio.CancelledError", "CancelledError", "no message"),
    ("return agent(request)", "RecursionError", "maximum recursion depth"),
    ("raise MemoryError", "MemoryError", "no message"),
    ("raise ExceptionGroup('several', [ValueError('one')])", "ExceptionGroup", "several (1 sub-exception)"),
    ("assert 1 == 2", "AssertionError", ".py:"),
]


ODD_IN_A_COROUTINE = ("StopIteration", "RecursionError")  # another exception, or none


@pytest.mark.parametrize(
    ("form", "statement", "kind", "words"),
    [("def", *case) for case in RAISES]
    + [("async def", *case) for case in RAISES if case[1] not in ODD_IN_A_COROUTINE],
)
def test_an_agent_that_raises_died(
    perform: Perform, error_of: Callable[[Outcome], object], form: str, statement: str, kind: str, words: str
) -> None:
    outcome = perform(f"{form} agent(request):\n    {statement}\n")
    assert error_of(outcome) == ("died", kind, "agent")
    assert outcome.error is not None
    assert words in outcome.error.message
    assert outcome.time_limit is None


@pytest.mark.parametrize(("statement", "kind", "words"), RAISES)
def test_a_verifier_that_raises_leaves_it_unmeasured(
    perform: Perform, error_of: Callable[[Outcome], object], statement: str, kind: str, words: str
) -> None:
    statement = statement.replace("agent(request)", "verify(request, output)")
    outcome = perform(f"def agent(request):\n    return 1\ndef verify(request, output):\n    {statement}\n")
    assert error_of(outcome) == ("unmeasured", kind, "verifier")
    assert outcome.error is not None
    assert words in outcome.error.message


@pytest.mark.parametrize("who", ["agent", "verify"])
def test_an_interrupt_is_an_interrupt(perform: Perform, who: str) -> None:
    text = "def agent(request):\n    return 1\ndef verify(request, output):\n    return 1\n"
    text = text.replace(f"def {who}(", f"def {who}(*arguments):\n    raise KeyboardInterrupt\ndef other(")
    with pytest.raises(KeyboardInterrupt):
        perform(text)


def test_a_verifier_scores_the_output(perform: Perform) -> None:
    outcome = perform("""
        def agent(request):
            return {"decision": "refuse", "seed": request.seed}
        def verify(request, output):
            return {"reward": output["decision"] in request.task.params["expected"], "seed": output["seed"]}
    """)
    assert outcome == Outcome.scored({"reward": True, "seed": 3141592653})


@pytest.mark.parametrize(
    ("answer", "words"), [("None", "null"), ("'good'", "good"), ("[]", "a list []"), ("{}", "empty")]
)
def test_a_verifier_that_answers_something_else(
    perform: Perform, error_of: Callable[[Outcome], object], answer: str, words: str
) -> None:
    outcome = perform(f"def agent(request):\n    return 1\ndef verify(request, output):\n    return {answer}\n")
    assert error_of(outcome) == ("unmeasured", "ContractError", "contract")
    assert outcome.error is not None
    assert outcome.error.message.startswith("the verifier's answer: ")
    assert words in outcome.error.message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_module_x\ndef agent(request): ...\n", "ModuleNotFoundError"),
        ("import sys; sys.exit(2)\ndef agent(request): ...\n", "SystemExit: 2"),
        ("agent = 3\n", "cannot be called"),
    ],
)
def test_a_module_that_cannot_be_loaded_leaves_it_unmeasured(
    perform: Perform, error_of: Callable[[Outcome], object], text: str, words: str
) -> None:
    outcome = perform(text)
    assert error_of(outcome) == ("unmeasured", "TargetError", "setup")
    assert outcome.error is not None
    assert words in outcome.error.message


# ---------------------------------------------------------------- messages


def test_a_message_says_where_in_the_users_code(perform: Perform, folder: Path) -> None:
    outcome = perform("def agent(request):\n    return helper()\ndef helper():\n    raise ValueError('no date')\n")
    (file,) = folder.glob("target_*.py")
    assert outcome.error is not None
    assert outcome.error.message == f"no date ({file}:4)"


def test_a_function_of_another_signature_names_no_line_of_ours(perform: Perform) -> None:
    outcome = perform("def agent():\n    return 1\n")
    assert outcome.error is not None
    assert "takes 0 positional arguments" in outcome.error.message
    assert "pytest_metricbench" not in outcome.error.message


def test_a_message_is_bounded_and_plain(perform: Perform) -> None:
    outcome = perform("def agent(request):\n    raise ValueError('x' * 10**7 + '\\ud83d')\n")
    assert outcome.error is not None
    assert len(outcome.error.message) < 5000
    outcome.error.message.encode()
    outcome = perform("def agent(request):\n    raise OSError(2, 'not there', 'caf\\udce9')\n")
    assert outcome.error is not None
    outcome.error.message.encode()


def test_an_exception_that_cannot_be_shown(perform: Perform, error_of: Callable[[Outcome], object]) -> None:
    outcome = perform("""
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no text")
        def agent(request):
            raise Odd
    """)
    assert error_of(outcome) == ("died", "Odd", "agent")


# ---------------------------------------------------------------- time


@pytest.mark.parametrize("agent", ["import time; time.sleep(20)", "while True: pass"])
def test_an_agent_that_takes_too_long_died(perform: Perform, error_of: Callable[[Outcome], object], agent: str) -> None:
    outcome = perform(f"def agent(request):\n    {agent}\n", timeout=0.1)
    assert error_of(outcome) == ("died", "TimeOut", "agent")
    assert outcome.time_limit == 0.1
    assert outcome.error is not None
    assert outcome.error.message == "the agent ran longer than 0.1 s and was stopped"


def test_an_agent_that_swallows_its_time_out_died_of_it(
    perform: Perform, error_of: Callable[[Outcome], object]
) -> None:
    outcome = perform(
        """
        import time
        def agent(request):
            try:
                time.sleep(20)
            except BaseException:
                return 1
        """,
        timeout=0.1,
    )
    assert error_of(outcome) == ("died", "TimeOut", "agent")


def test_an_async_agent_that_takes_too_long_died(perform: Perform, error_of: Callable[[Outcome], object]) -> None:
    outcome = perform("import asyncio\nasync def agent(request):\n    await asyncio.sleep(20)\n", timeout=0.1)
    assert error_of(outcome) == ("died", "TimeOut", "agent")


def test_a_verifier_that_takes_too_long_leaves_it_unmeasured(
    perform: Perform, error_of: Callable[[Outcome], object]
) -> None:
    outcome = perform(
        "import time\ndef agent(request):\n    return 1\ndef verify(request, output):\n    time.sleep(20)\n",
        timeout=0.1,
    )
    assert error_of(outcome) == ("unmeasured", "TimeOut", "verifier")
    assert outcome.time_limit is None


def test_each_of_the_two_has_the_whole_time(perform: Perform) -> None:
    text = """
        import time
        def agent(request):
            time.sleep(1)
            return 1
        def verify(request, output):
            time.sleep(1)
            return {"reward": output}
    """
    assert perform(text, timeout=1.9) == Outcome.scored({"reward": 1})


def test_outside_the_main_thread_too(perform: Perform) -> None:
    outcomes: list[Outcome] = []
    text = "import time\ndef agent(request):\n    time.sleep(request.task.params.get('nap', 1))\n"
    thread = threading.Thread(target=lambda: outcomes.append(perform(text, timeout=0.1)))
    thread.start()
    thread.join(10)
    assert outcomes[0].error is not None
    assert outcomes[0].error.type == "TimeOut"


# ---------------------------------------------------------------- async


def test_async_functions_are_awaited(perform: Perform) -> None:
    outcome = perform("""
        import asyncio
        async def agent(request):
            await asyncio.sleep(0)
            return await asyncio.gather(one(), one())
        async def one():
            return 1
        async def verify(request, output):
            await asyncio.sleep(0)
            return {"reward": sum(output)}
    """)
    assert outcome == Outcome.scored({"reward": 2})


def test_each_call_has_a_loop_of_its_own(perform: Perform) -> None:
    text = """
        import asyncio
        tasks = []
        async def agent(request):
            tasks.append(asyncio.create_task(asyncio.sleep(20)))
            return 1
    """
    began = time.monotonic()
    assert perform(text) == Outcome.scored({"reward": 1})
    assert time.monotonic() - began < 15
    with pytest.raises(RuntimeError):
        asyncio.get_running_loop()


# ---------------------------------------------------------------- the workspace


def test_no_workspace_is_made_that_nobody_asked_for(perform: Perform, workspace: Path) -> None:
    assert PythonRunner.makes_workspace
    assert perform("def agent(request):\n    return request.seed % 2\n").kind == "scored"
    assert not workspace.exists()


def test_files_in_the_workspace_are_kept(perform: Perform, workspace: Path) -> None:
    perform("def agent(request):\n    (request.workspace / 'trace').write_text('x')\n    return 1\n")
    assert [path.name for path in workspace.iterdir()] == ["trace"]


def test_the_request_has_the_documented_attributes(perform: Perform, workspace: Path) -> None:
    outcome = perform("""
        def agent(request):
            assert request.experiment == "refund-agent"
            assert request.case.id == "refunds"
            assert request.variant.id == "no-date" and request.variant.params["drop"] == "date"
            assert request.task.id == "late" and request.attempt == 2 and request.trial_id == "a1b2c3"
            return {"reward": request.workspace.is_dir(), "where": str(request.workspace)}
    """)
    assert outcome == Outcome.scored({"reward": True, "where": str(workspace)})


def test_the_verifier_sees_the_request_as_it_was(perform: Perform) -> None:
    outcome = perform("""
        def agent(request):
            request.task.params["expected"].append("anything")
            request.variant.params["nested"]["keep"].clear()
            request.task.params.clear()
            return "anything"
        def verify(request, output):
            return output in request.task.params["expected"] or request.variant.params["nested"] != {"keep": [1, 2]}
    """)
    assert outcome == Outcome.scored({"reward": False})


# ---------------------------------------------------------------- its keys


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"agent": "x"},
        {"agent": ["json:dumps"]},
        {"timeout": 0},
        {"timeout": True},
        {"verifier": "no.such.x:f"},
        {"env": {}},
    ],
)
def test_wrong_keys_are_refused(make: Callable[..., Any], keys: dict[str, Any]) -> None:
    if keys and "agent" not in keys:
        keys = {"agent": "json:dumps"} | keys
    with pytest.raises(ValidationError):
        make(PythonRunner, **keys)


def test_its_time_limit_is_its_timeout(make: Callable[..., Any]) -> None:
    assert make(PythonRunner, agent="json:dumps").time_limit is None
    assert make(PythonRunner, agent="json:dumps", timeout=2).time_limit == 2
