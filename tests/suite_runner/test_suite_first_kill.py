"""``kill: first``: the tests of a mutant in one process, up to the first that kills it."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_metricbench.contracts import TIME_OUT, AttemptRequest, CaseRef, Outcome, TaskRef, VariantRef
from pytest_metricbench.runners.suite import SuiteRunner
from pytest_metricbench.suite import processes
from tests.present import present
from tests.suite_runner.suite_lab import FILE, SuiteLab, diff, told

MODULE: Final = """\
STATE = []


def add(x):
    STATE.append(x)
    return x


def twice(x):
    return add(x) + x
"""
PATCH: Final = {"patch": diff("adding.py", 6, "    return x", "    return x + 0")}
"""Nobody can tell it from the baseline."""


class Group:
    """All attempts of one mutant, begun before the first is run: as an item of a whole variant does it."""

    def __init__(self, suite: SuiteLab, tests: str, names: Sequence[str], **keys: Any) -> None:
        suite.write("adding.py", MODULE)
        suite.write(FILE, tests)
        self.suite = suite
        self.names = names
        self.runner: SuiteRunner = suite.runner(source=["adding.py"], kill="first", **keys)
        self.baseline = {name: told(suite.attempt(self.runner, name)) for name in names}
        self._count = 0

    def outcomes(self, params: dict[str, Any]) -> dict[str, tuple[str, str | int | None]]:
        self._count += 1
        requests = {name: self._request(name, params) for name in self.names}
        for request, workspace in requests.values():
            try:
                self.runner.begin(request, workspace)
            except LookupError:
                assert self.baseline[self.names[0]] is not None
        self.made: dict[str, Outcome] = {name: self.runner.run(*asked) for name, asked in requests.items()}
        self.workspaces = {name: workspace for name, (_, workspace) in requests.items()}
        return {name: told(outcome) for name, outcome in self.made.items()}

    def _request(self, name: str, params: dict[str, Any]) -> tuple[AttemptRequest, Path]:
        nodeid, workspace = f"{FILE}::{name}", self.suite.path / "store" / f"{name}-{self._count}"
        request = AttemptRequest(
            experiment="shop",
            case=CaseRef("shop"),
            variant=VariantRef(f"mutant-{self._count}", dict(params)),
            task=TaskRef(name, {"nodeid": nodeid}),
            attempt=1,
            seed=1,
            trial_id=workspace.name,
            _workspace=str(workspace),
            baseline=tuple(self.suite.folders[nodeid]),
        )
        return request, workspace


@pytest.fixture
def forks(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """The tests that each fork was asked to run."""
    found: list[list[str]] = []
    attempt = processes.Processes.attempt

    def note(self: Any, server: Any, request: dict[str, Any]) -> Any:
        found.append([test["test"] for test in request["tests"]])
        return attempt(self, server, request)

    monkeypatch.setattr(processes.Processes, "attempt", note)
    return found


PASSED: Final = ("scored", 1)
FAILED: Final = ("scored", 0)


def kinds(outcomes: dict[str, tuple[str, str | int | None]]) -> dict[str, str | int | None]:
    return {name: kind if kind == "not_needed" else value for name, (kind, value) in outcomes.items()}


def test_one_fork_up_to_the_killer_and_the_killer_first_the_next_time(suite: SuiteLab, forks: list[list[str]]) -> None:
    tests = """
    from adding import add, twice

    def test_a():
        assert add(0) == 0

    def test_b():
        print("about b")
        assert add(1) == 1

    def test_c():
        sum(range(2_000_000))
        print("about c")
        assert twice(3) == 6
    """
    group = Group(suite, tests, ["test_a", "test_b", "test_c"])
    assert set(group.baseline.values()) == {PASSED}
    forks.clear()
    survivor = group.outcomes(PATCH)
    assert survivor == {"test_a": PASSED, "test_b": PASSED, "test_c": PASSED}
    assert [sorted(fork) for fork in forks] == [["test_a", "test_b", "test_c"]]
    printed = {name: (folder / "agent.stdout") for name, folder in group.workspaces.items()}
    assert not printed["test_a"].exists()
    assert (printed["test_b"].read_text(), printed["test_c"].read_text()) == ("about b\n", "about c\n")
    forks.clear()
    only_c = {"patch": diff("adding.py", 6, "    return x", "    return x if x < 3 else 0")}
    assert group.outcomes(only_c) == {"test_a": PASSED, "test_b": PASSED, "test_c": FAILED}
    assert len(forks) == 2  # what fails behind others is made again alone
    assert forks[1] == ["test_c"]
    forks.clear()
    near = {"patch": diff("adding.py", 10, "    return add(x) + x", "    return add(x) - x")}
    assert kinds(group.outcomes(near))["test_c"] == 0
    assert forks == [["test_c"]]  # the others do not run the change
    forks.clear()
    again = group.outcomes({"patch": diff("adding.py", 6, "    return x", "    return -x")})
    assert kinds(again) == {"test_a": "not_needed", "test_b": "not_needed", "test_c": 0}
    assert [fork[0] for fork in forks] == ["test_c"]  # which found a change of that function before


def test_what_a_test_leaves_behind_makes_no_kill(suite: SuiteLab, forks: list[list[str]]) -> None:
    """Both tests pass alone; in one process the first makes the second fail, mutant or not."""
    tests = """
    import os, sys
    from adding import STATE, add

    def test_first():
        os.environ["LEFT"] = "1"
        os.chdir("/")
        sys.path.insert(0, "/left")
        assert add(1) == 1

    def test_second():
        sum(range(2_000_000))
        assert "LEFT" not in os.environ and os.getcwd() != "/" and "/left" not in sys.path
        add(2)
        assert STATE == [2]

    def test_third():
        sum(range(4_000_000))
        assert add(3) == 3
    """
    group = Group(suite, tests, ["test_first", "test_second", "test_third"])
    assert set(group.baseline.values()) == {PASSED}
    forks.clear()
    assert set(group.outcomes(PATCH).values()) == {PASSED}
    # STATE has both; alone it has not, and what comes behind goes on in another process.
    assert forks == [["test_first", "test_second", "test_third"], ["test_second"], ["test_third"]]


def test_a_process_that_ends_goes_with_its_test(suite: SuiteLab, forks: list[list[str]]) -> None:
    tests = """
    import os, threading, time
    from adding import add

    def test_thread():
        threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
        assert add(0) == 0

    def test_quick():
        sum(range(1_000_000))
        assert add(1) == 1

    def test_exit():
        sum(range(2_000_000))
        if add(2) != 2:
            os._exit(3)

    def test_loop():
        sum(range(4_000_000))
        while add(3) != 3:
            pass
    """
    group = Group(suite, tests, ["test_thread", "test_quick", "test_exit", "test_loop"])
    assert set(group.baseline.values()) == {PASSED}
    forks.clear()
    exits = group.outcomes({"patch": diff("adding.py", 6, "    return x", "    return x if x != 2 else 0")})
    assert exits["test_exit"] == ("died", "Exited")
    assert exits["test_thread"] == exits["test_quick"] == PASSED
    # Nothing follows a test that left a thread; who ended the process behind another test does it alone, too.
    assert [fork[0] for fork in forks] == ["test_thread", "test_quick", "test_exit"]
    forks.clear()
    loops = group.outcomes({"patch": diff("adding.py", 6, "    return x", "    return x if x != 3 else 0")})
    assert loops["test_loop"] == ("died", TIME_OUT)
    assert "CPU time" in present(group.made["test_loop"].error).message


def test_a_test_that_the_baseline_fails_kills_nothing(suite: SuiteLab) -> None:
    tests = """
    from adding import add

    def test_broken():
        assert add(1) == 2

    def test_fine():
        sum(range(1_000_000))
        assert add(1) == 1
    """
    group = Group(suite, tests, ["test_broken", "test_fine"])
    assert group.baseline == {"test_broken": FAILED, "test_fine": PASSED}
    killing = {"patch": diff("adding.py", 6, "    return x", "    return x + 1")}
    assert group.outcomes(killing) == {"test_broken": PASSED, "test_fine": FAILED}
    assert group.outcomes(PATCH) == {"test_broken": FAILED, "test_fine": PASSED}


def test_fixtures_of_any_scope_are_each_tests_own(suite: SuiteLab) -> None:
    """A test in a row finds what it finds alone: module and session fixtures are set up and torn down for it."""
    tests = """
    import pytest
    from adding import add

    LIVING = []

    @pytest.fixture(scope="session")
    def session():
        LIVING.append("session")
        yield len(LIVING)
        LIVING.remove("session")

    @pytest.fixture(scope="module", autouse=True)
    def module(session):
        LIVING.append("module")
        yield
        LIVING.remove("module")

    def test_a(session):
        assert LIVING == ["session", "module"] and session == add(1)

    def test_b(session):
        assert LIVING == ["session", "module"] and session == add(1)
    """
    group = Group(suite, tests, ["test_a", "test_b"])
    assert group.outcomes(PATCH) == {"test_a": PASSED, "test_b": PASSED}
