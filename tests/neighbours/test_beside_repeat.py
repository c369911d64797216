"""pytest-repeat repeats test functions; an experiment says itself how many attempts there are."""

import pytest

from tests.faults.session_lab import Lab, no_fault

pytest.importorskip("pytest_repeat")

AGENT = "def act(request):\n    return 1.0\n"


@pytest.mark.parametrize("scope", ["function", "session"])
def test_attempts_are_not_repeated(lab: Lab, scope: str) -> None:
    lab.make(AGENT, attempts=2)
    lab.write("test_plain.py", "def test_one(): pass")
    result = lab.run(".", "--count=3", f"--repeat-scope={scope}", beside=["repeat"])
    assert result.ret == 0
    no_fault(result.stdout.str())
    result.assert_outcomes(passed=8 + 3)
    assert lab.counts() == {"declared": 8, "passed": 8}
    assert set(lab.entries().values()) == {2}
    assert len(lab.attempts()) == len(lab.journal()) == 8
