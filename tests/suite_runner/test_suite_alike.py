"""What tells two versions of a function apart: everything that it does, and nothing that functions in it do."""

import subprocess
import sys
from itertools import count
from types import CodeType
from typing import Any, Final

import pytest

from pytest_metricbench.suite.alike import Swap, UnfitError, swaps
from pytest_metricbench.suite.bytecode import typed
from pytest_metricbench.suite.calls import Calls
from pytest_metricbench.suite.inplace import Imported
from pytest_metricbench.suite.overlay import Overlay

_NUMBERS: Final = count()


def compared(old: str, new: str, head: str = "") -> list[Swap]:
    return swaps(head + old, head + new, compile(head + old, "mod.py", "exec", dont_inherit=True))


def told(found: list[Swap]) -> dict[str, bool]:
    return {swap.new.co_qualname: swap.does_other for swap in found}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("x.a", "x.b"),  # other names, the same instructions
        ("[a := x]", "[b := x]"),  # other local names
        ("(1, x)", "(True, x)"),
        ("(1, x)", "(1.0, x)"),
        ("(0.0, x)", "(-0.0, x)"),
        ("x in (1, 2)", "x in (True, 2)"),
        ("x in {1, 2}", "x in {1.0, 2}"),
        ("x + 1", "x - 1"),
    ],
)
def test_each_difference_of_a_function_counts(old: str, new: str) -> None:
    text = "def f(x):\n    return {}\n"
    assert told(compared(text.format(old), text.format(new))) == {"f": True}


def test_only_the_function_that_does_something_else_does() -> None:
    text = "def f(x):\n    def g():\n        return lambda: x + {}\n    return g\n"
    found = told(compared(text.format(1), text.format(2)))
    inner = "f.<locals>.g.<locals>.<lambda>"
    assert found == {"f": False, "f.<locals>.g": False, inner: True}
    assert list(found)[-1] == "f"  # what holds another one comes after it


def test_what_a_future_import_changes_is_compiled_in() -> None:
    text = "def f(x: int) -> Two:\n    return x + {}\n"
    (swap,) = compared(text.format(1), text.format(2), "from __future__ import annotations\n\n\n")
    module = compile("from __future__ import annotations\n\n\n" + text.format(1), "mod.py", "exec", dont_inherit=True)
    assert swap.old in module.co_consts


@pytest.mark.parametrize(
    ("old", "new", "why"),
    [
        ("x = 1\n", "x = True\n", "outside functions"),
        ("x = a\n", "x = b\n", "outside functions"),
        ("def f(x=1):\n    pass\n", "def f(x=2):\n    pass\n", "outside functions"),
        ("def f(x, *, y):\n    return x\n", "def f(y, *, x):\n    return x\n", "called, named or described"),
        ("def f(x, /):\n    return x\n", "def f(x):\n    return x\n", "called, named or described"),
        ("def f(*x):\n    return x\n", "def f(**x):\n    return x\n", "called, named or described"),
        ("def f(x):\n    return [x, lambda: 1]\n", "def f(x):\n    return [x, 1]\n", "called, named or described"),
        ("def f():\n    return 1\n", "def f():\n\n    return 1\n", "another number of lines"),
        ("def f():\n    return 1\n", "def f(:\n    return 1\n", "cannot be compiled"),
    ],
)
def test_more_than_what_functions_do_is_refused_with_the_reason(old: str, new: str, why: str) -> None:
    with pytest.raises(UnfitError, match=why):
        compared(old, new)


@pytest.mark.parametrize(
    ("one", "other"),
    [(1, True), (1, 1.0), (0.0, -0.0), ((1, 2), (True, 2)), (frozenset({1}), frozenset({1.0})), (0j, -0j), ("1", b"1")],
)
def test_constants_that_are_equal_are_not_the_same(one: Any, other: Any) -> None:
    assert typed(one) != typed(other)
    assert typed(one) == typed(one)


# ---------------------------------------------------------------- what is imported


class Loader:
    """Of a file that is imported as it stands."""

    def __init__(self, path: str) -> None:
        self.path = path

    def source_to_code(self, text: bytes, name: str) -> Any:
        return compile(text, name, "exec", dont_inherit=True)


def imported(source: str) -> tuple[Imported, dict[str, Any], str]:
    """What a process has of a module, the module, and its path."""
    path = f"/nowhere/mod{next(_NUMBERS)}.py"  # no function of another test's has code of this file
    overlay = Overlay({path: source.encode()})
    namespace: dict[str, Any] = {"__name__": "mod"}
    exec(overlay.compile(Loader(path), "mod", path), namespace)
    return Imported(overlay, {}), namespace, path


def test_a_file_that_is_not_in_place_is_refused() -> None:
    found, _, _ = imported("def f():\n    return 1\n")
    with pytest.raises(UnfitError, match="none of the files"):
        found.plan({"/nowhere/other.py": b"def f():\n    return 2\n"})


def test_code_of_which_there_is_no_function_any_more_is_refused() -> None:
    source = "def f():\n    return 1\n\n\nf = None\n"
    found, _, path = imported(source)
    with pytest.raises(UnfitError, match="no function any more"):
        found.plan({path: source.replace("return 1", "return 2").encode()})


def test_code_that_was_compiled_in_another_way_is_refused() -> None:
    source = "def f():\n    return 1\n"
    found, namespace, path = imported(source)
    code: CodeType = namespace["f"].__code__
    found._known.pop(code)
    with pytest.raises(UnfitError, match="compiled in another way"):
        found.plan({path: source.replace("return 1", "return 2").encode()})


# ---------------------------------------------------------------- what ran


WATCHED: Final = """
import sys, threading
from pytest_metricbench.suite.calls import Calls
def ran(): pass
calls = Calls()
calls.heed_threads()
{}
calls.start()
ran()
{}
print(calls.stop(), id(ran.__code__) in calls.seen)
"""


@pytest.mark.parametrize(
    ("meanwhile", "is_whole"),
    [
        ("", True),
        ("thread = threading.Thread(target=ran); thread.start(); thread.join()", True),
        ("sys.setprofile(None)", False),
        ("threading.setprofile(None)", False),
        ("sys.modules['greenlet'] = sys", False),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", False),
        ("import _thread; _thread.start_new_thread(ran, ())", False),
    ],
)
def test_it_is_told_whether_anything_can_have_run_unseen(meanwhile: str, is_whole: bool) -> None:
    """In a process of its own: this one may have threads."""
    made = subprocess.run(
        [sys.executable, "-c", WATCHED.format("", meanwhile)], capture_output=True, text=True, check=True
    )
    assert made.stdout.split() == [str(is_whole), "True"]


@pytest.mark.parametrize(
    ("before", "is_whole"),
    [
        ("thread = threading.Thread(target=ran); thread.start(); thread.join()", True),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", False),
        ("import _thread; _thread.start_new_thread(ran, ())", False),
    ],
)
def test_a_thread_that_is_there_before_the_start_may_run_unseen(before: str, is_whole: bool) -> None:
    made = subprocess.run(
        [sys.executable, "-c", WATCHED.format(before, "")], capture_output=True, text=True, check=True
    )
    assert made.stdout.split() == [str(is_whole), "True"]


def test_what_was_never_started_has_seen_nothing() -> None:
    calls = Calls()
    calls.heed_threads()
    assert calls.stop()
    assert calls.seen == {}
