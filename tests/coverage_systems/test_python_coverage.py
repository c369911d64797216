"""The python coverage system: what is measured, what is null, and every way to fail."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from pytest_metricbench.contracts import CoverageError, CoverageRequest, Goals, Score
from pytest_metricbench.coverage.python import PythonCoverage

EVIDENCE = {"late": {"trace.txt": b"lookup\n", "deep/er.txt": b"x"}, "early": {}}
Measure = Callable[..., Score]


@pytest.fixture
def measure(
    make: Callable[..., Any],
    module: Callable[[str], str],
    request_for: Callable[..., CoverageRequest],
    workspace: Path,
) -> Measure:
    """Measures a request with the function ``measure`` of a module that is given as its text."""

    def run(text: str, **keys: Any) -> Score:
        if "def measure" not in text:
            text = f"def measure(request):\n    {text}\n"
        system = make(PythonCoverage, measure=f"{module(text)}:measure", **keys)
        score: Score = system.measure(request_for(EVIDENCE, system.request_settings), workspace)
        return score

    return run


def failure(measure: Measure, text: str, **keys: Any) -> str:
    with pytest.raises(CoverageError) as caught:
        measure(text, **keys)
    str(caught.value).encode()
    return str(caught.value)


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("return 0.5", Score(0.5)),
        ("return 1", Score(1.0)),
        ("import numpy; return numpy.float32(0.25)", Score(0.25)),
        ("return {'value': 0.5}", Score(0.5)),
        ("return {'value': 0.5, 'reason': 'two of four'}", Score(0.5, "two of four")),
        ("return {'value': None, 'reason': 'nothing was judged'}", Score(None, "nothing was judged")),
        ("return {'value': 0.5, 'goals': None}", Score(0.5)),
        (
            "return {'value': 0.5, 'goals': {'universe': {'b', 'a'}, 'by_task': {'late': {'a'}}}}",
            Score(0.5, None, Goals(("a", "b"), {"late": ("a",)})),
        ),
        ("async def measure(request):\n    return 0.5\n", Score(0.5)),
    ],
)
def test_what_a_function_may_return(measure: Measure, text: str, score: Score) -> None:
    result = measure(text)
    assert result == score
    assert result.value is None or type(result.value) is float


def test_what_the_function_is_given(measure: Measure, workspace: Path) -> None:
    score = measure(
        """
        def measure(request):
            assert request.case.id == "refunds"
            assert request.case.description == "Answers refund requests."
            assert request.subset == "s1"
            assert list(request.tasks) == ["late", "early"]
            assert request.settings == {"scope": "tool"}
            assert request.evidence["early"] == []
            names = [file.name for file in request.evidence["late"]]
            assert names == ["trace.txt", "er.txt"], names
            return 0.5 if request.evidence["late"][0].read_text() == "lookup\\n" else 0
        """,
        settings={"scope": "tool"},
    )
    assert score == Score(0.5)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("return None", 'it is null; {"value": None, "reason": "..."} says that there is no score'),
        ("return 'half'", 'value is the text "half"'),
        ("return True", "value is the boolean true"),
        ("return float('nan')", "value is nan"),
        ("return 2", "value is 2; a number from 0 to 1, or null with a reason, is expected"),
        ("return -1", "value is -1"),
        ("return [0.5]", "value is a list [0.5]"),
        ("return object()", "value is of type object"),
        ("return 10**5000", "digits"),
        (
            "return {}",
            'the answer has no "value"; a number from 0 to 1, or null with a reason, is expected',
        ),
        ("return {'value': None}", "value is null and no reason is given; say why there is no score"),
        (
            "return {'value': 0.5, 'score': 1}",
            'the text "score" is no key of an answer; value, reason and goals are',
        ),
        ("return {'value': 0.5, 1: 2}", "the number 1"),
        (
            "return {'value': 0.5, 'goals': []}",
            'goals are a list []; {"universe": [..], "by_task": {task: [..]}} is expected',
        ),
        (
            "return {'value': 0.5, 'goals': {'universe': [], 'by_task': []}}",
            "by_task is a list []; a mapping of task ids to lists of goals is expected",
        ),
        ("return {'value': 0.5, 'goals': {'universe': [], 'by_task': {'late': ['x']}}}", "the goal 'x'"),
    ],
)
def test_an_answer_of_another_form(measure: Measure, text: str, words: str) -> None:
    message = failure(measure, text)
    assert message.startswith("the function's answer: ")
    assert words in message


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("raise ValueError('no evidence')", "the function raised ValueError: no evidence"),
        ("raise KeyError('late')", "the function raised KeyError: 'late'"),
        ("import sys; sys.exit(3)", "the function raised SystemExit: 3"),
        ("import pytest; pytest.skip('no')", "the function raised Skipped: no"),
        ("import pytest; pytest.fail('no')", "the function raised Failed: no"),
        ("raise OSError(2, 'not there', 'caf\\udce9')", "the function raised FileNotFoundError"),
        ("async def measure(request):\n    raise ValueError('later')\n", "the function raised ValueError: later"),
        ("def measure():\n    return 1\n", "the function raised TypeError"),
    ],
)
def test_a_function_that_raises(measure: Measure, workspace: Path, text: str, words: str) -> None:
    assert words in failure(measure, text)
    assert "Traceback" in (workspace / "function.stderr").read_text(encoding="utf-8")


def test_an_exception_that_cannot_be_shown(measure: Measure) -> None:
    text = """
        class Odd(Exception):
            def __str__(self):
                raise RuntimeError("no text")
        def measure(request):
            raise Odd
    """
    assert "the function raised Odd" in failure(measure, text)


def test_an_interrupt_is_an_interrupt(measure: Measure) -> None:
    with pytest.raises(KeyboardInterrupt):
        measure("raise KeyboardInterrupt")


def test_a_function_that_takes_too_long(measure: Measure) -> None:
    message = failure(measure, "import time; time.sleep(20)", timeout=0.1)
    assert message == "the function ran longer than 0.1 s and was stopped"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_module_x\ndef measure(request): ...\n", "ModuleNotFoundError"),
        ("measure = 3  # not 'def measure('", "cannot be called"),
        ("import sys; sys.exit(2)\ndef measure(request): ...\n", "SystemExit: 2"),
    ],
)
def test_a_module_that_cannot_be_loaded(measure: Measure, text: str, words: str) -> None:
    assert words in failure(measure, text)


@pytest.mark.parametrize(
    "keys",
    [
        {},
        {"measure": "json"},
        {"measure": "no.such.x:f"},
        {"measure": "json:dumps", "timeout": 0},
        {"measure": "json:dumps", "settings": []},
        {"measure": "json:dumps", "tools": []},
        {"measure_with": "json:dumps"},
    ],
)
def test_wrong_keys_are_refused(make: Callable[..., Any], keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        make(PythonCoverage, **keys)


def test_it_is_isolated_and_one_at_a_time() -> None:
    assert PythonCoverage.isolated
    assert not PythonCoverage.concurrent
