"""Errors of several lines, where there is room for one."""

import pytest

from pytest_metricbench.analysis.unavailable import briefly


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("the agent ran longer than 4 s", "the agent ran longer than 4 s"),
        ("ValueError: two\nlines", "ValueError: two"),
        (
            "the command ended with exit status 1; the end of its stderr:\nTraceback\n  File x\nKeyError: 'a'\n\n",
            "the command ended with exit status 1: KeyError: 'a'",
        ),
        ("the command ended with exit status 1; the end of its stderr:\n  \n", "the command ended with exit status 1"),
        ("it ended; the end of its stderr:\noops\nkept in /store/c", "it ended: oops"),
        ("it ended\nkept in /store/c", "it ended"),
        ("", "no message"),
        (" \n", "no message"),
    ],
)
def test_the_line_that_says_what_happened(message: str, expected: str) -> None:
    assert briefly(message) == expected
