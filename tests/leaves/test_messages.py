"""What messages of all parts have in common."""

import pytest

from pytest_metricbench.messages import and_more, counted, did_you_mean, joined, without_traceback


@pytest.mark.parametrize(
    ("number", "said"), [(0, "0 tasks"), (1, "1 task"), (2, "2 tasks"), (1200, "1,200 tasks"), (-1, "-1 tasks")]
)
def test_counted(number: int, said: str) -> None:
    assert counted(number, "task") == said


@pytest.mark.parametrize(
    ("others", "said"),
    [(0, ""), (1, " (and 1 more task)"), (2, " (and 2 more tasks)"), (1200, " (and 1,200 more tasks)")],
)
def test_and_more(others: int, said: str) -> None:
    assert and_more(others, "task") == said


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ((), ""),
        (("", ""), ""),
        (("there is no 'x'", ""), "there is no 'x'"),
        (("there is no 'x'", "", "there are y, z"), "there is no 'x'; there are y, z"),
        (
            ("there is no 'x'", "did you mean 'y'?", "there are y, z"),
            "there is no 'x'; did you mean 'y'? there are y, z",
        ),
    ],
)
def test_joined(parts: tuple[str, ...], said: str) -> None:
    assert joined(*parts) == said


@pytest.mark.parametrize(
    ("word", "said"),
    [("runer", "did you mean 'runner'?"), ("RUN-NER", "did you mean 'runner'?"), ("zebra", ""), ("", "")],
)
def test_did_you_mean(word: str, said: str) -> None:
    assert did_you_mean(word, ["runner", "cases"]) == said


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (KeyError("x"), "KeyError: 'x'"),
        (SystemExit(), "SystemExit"),
        (OSError(2, "No such file", "a.txt"), "FileNotFoundError: [Errno 2] No such file: 'a.txt'"),
        (RuntimeError("first\nsecond"), "RuntimeError: first\nsecond"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_without_traceback(error: BaseException, said: str) -> None:
    assert without_traceback(error) == said
