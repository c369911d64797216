"""Mutants in place of functions that are imported already, and those for which a process has to import them."""

import itertools
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, Final

import pytest

from pytest_metricbench.contracts import Outcome
from pytest_metricbench.suite import project
from pytest_metricbench.suite.alike import UnfitError, swaps
from pytest_metricbench.suite.inplace import Imported, Plan
from pytest_metricbench.suite.overlay import Overlay, digest_of
from tests.present import present
from tests.suite_runner.suite_lab import SuiteLab, diff, told

MINUS: Final = {"patch": diff("shop/prices.py", 9, "        result += price", "        result -= price")}


# Modules whose ``plus`` adds 2; the mutant, whose does not, has the third text in place of the second.
PATCHED: Final = {
    "closure": (
        "def outer(x):\n    def inner(y):\n        return x + y\n    return inner\n\n\nplus = outer(2)\n",
        "x + y",
        "x - y",
    ),
    "method": (
        "class Two:\n    @property\n    def two(self):\n        return 2\n\n\ndef plus(x):\n    return x + Two().two\n",
        "return 2",
        "return 3",
    ),
    "cached": ("import functools\n\n\n@functools.lru_cache\ndef plus(x):\n    return x + 2\n", "x + 2", "x + 3"),
    "comprehension": (
        "import functools\n\n\n@functools.wraps(int)\ndef plus(x):\n    return sum(v for v in (x, 2))\n",
        "(x, 2)",
        "(x, 3)",
    ),
    "future": (
        "from __future__ import annotations\n\n\ndef plus(x: int) -> Two:\n    return x + 2\n",
        "x + 2",
        "x + 3",
    ),
    "a_lambda": ("plus = lambda x: x + 2\n", "x + 2", "x + 3"),
    "generator": (
        "import contextlib\n\n\n@contextlib.contextmanager\ndef two():\n    yield 2\n\n\n"
        "def plus(x):\n    with two() as y:\n        return x + y\n",
        "yield 2",
        "yield 3",
    ),
}
OUTSIDE: Final = "it differs outside functions"
RAN: Final = "two ran while the tests were collected"
UNKNOWN: Final = "what ran while the tests were collected is not known"
HELD: Final = "the code of {} is held by more than functions"
PLUS: Final = "\n\ndef plus(x):\n    return x + {}\n"
TWO: Final = "def two():\n    return 2\n\n\n"
APPEND: Final = "def two(found):\n    found.append(2)\n\n\nFOUND = []\n"
TWOS: Final = "def twos():\n    yield 2\n\n\nTWOS = twos()\n"
REFUSED: Final = {
    "default": ("def plus(x, y=2):\n    return x + y\n", "y=2", "y=3", OUTSIDE),
    "constant": ("TWO = 2\n" + PLUS.format("TWO"), "TWO = 2", "TWO = 3", OUTSIDE),
    "class_body": (
        "class Two:\n    two = 2\n" + PLUS.format("Two.two"),
        "two = 2",
        "two = 3",
        "Two ran while the tests were collected",
    ),
    "ran_on_import": (f"{TWO}TWO = two()\n{PLUS.format('TWO')}", "return 2", "return 3", RAN),
    "ran_in_a_thread": (
        f"import threading\n\n\n{APPEND}thread = threading.Thread(target=two, args=(FOUND,))\nthread.start()\n"
        f"thread.join()\n{PLUS.format('FOUND[0]')}",
        "append(2)",
        "append(3)",
        RAN,
    ),
    "past_threading": (
        f"import _thread, time\n\n\n{APPEND}_thread.start_new_thread(two, (FOUND,))\n"
        f"while not FOUND:\n    time.sleep(0.01)\n{PLUS.format('FOUND[0]')}",
        "append(2)",
        "append(3)",
        UNKNOWN,
    ),
    "past_the_profiler": (
        f"import sys\n\n\n{TWO}sys.setprofile(None)\nTWO = two()\n{PLUS.format('TWO')}",
        "return 2",
        "return 3",
        UNKNOWN,
    ),
    "waiting_generator": (TWOS + PLUS.format("next(TWOS)"), "yield 2", "yield 3", HELD.format("twos")),
    "frozen_generator": (
        f"import gc\n\n\n{TWOS}gc.freeze()\n{PLUS.format('next(TWOS)')}",
        "yield 2",
        "yield 3",
        HELD.format("twos"),
    ),
    "code_in_a_list": (
        f"import types\n\n\n{TWO}KEPT = [two.__code__]\n{PLUS.format('types.FunctionType(KEPT[0], globals())()')}",
        "return 2",
        "return 3",
        HELD.format("two"),
    ),
    "changed_code": (
        f"{PLUS.format('2')}\n\nplus.__code__ = plus.__code__.replace(co_name='more')\n",
        "x + 2",
        "x + 3",
        "there are functions",
    ),
    "signature": (
        f"def two(n=2, m=3):\n    return n\n{PLUS.format('two()')}",
        "two(n=2, m=3)",
        "two(m=2, n=3)",
        "two is called, named or described in another way",
    ),
    "new_line": (PLUS.format("2"), "    return", "    x += 1\n    return", "it has another number of lines"),
}


@pytest.fixture(scope="module")
def kinds(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str, dict[str, str]], Outcome]]:
    """Attempts at the test of one of these modules, each of which has a test file, and so a server, of its own."""
    lab = SuiteLab(tmp_path_factory.mktemp("kinds"))
    sources = {name: case[0] for name, case in (*PATCHED.items(), *REFUSED.items())}
    for name, source in sources.items():
        lab.write(f"kinds/{name}.py", source)
        lab.write(
            f"tests/test_{name}.py", f"from kinds.{name} import plus\n\n\ndef test_plus():\n    assert plus(1) == 3\n"
        )
    lab.write("kinds/__init__.py", "")
    runner = lab.runner(source=["kinds"], exhaustive=True)

    def attempt(name: str, changes: dict[str, str]) -> Outcome:
        params = {}
        for old, new in changes.items():
            assert old in sources[name]
            lab.write(f"mutants/{name}.py", sources[name].replace(old, new))
            params = {"replace": {f"kinds/{name}.py": f"mutants/{name}.py"}}
        return lab.attempt(runner, f"tests/test_{name}.py::test_plus", params)

    yield attempt
    lab.close()


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str | None, str | None]]:
    """Of each request to a server: the mutant that its fork was to become, and why it was refused."""
    found: list[tuple[str | None, str | None]] = []
    ask = project.Project._asked

    def note(self: Any, server: Any, request: dict[str, Any]) -> Any:
        made = ask(self, server, request)
        found.append((request["mutant"], made[1].get("unfit")))
        return made

    monkeypatch.setattr(project.Project, "_asked", note)
    return found


def refusals(asked: list[tuple[str | None, str | None]]) -> list[str]:
    return [refused for _, refused in asked if refused is not None]


# ---------------------------------------------------------------- what takes its place


def test_one_server_serves_all_mutants(suite: SuiteLab, asked: list[tuple[str | None, str | None]]) -> None:
    suite.shop()
    runner = suite.runner(exhaustive=True)
    assert told(suite.attempt(runner, "test_total")) == ("scored", 1)
    for line, old, new, result in (
        (9, "        result += price", "        result -= price", 0),
        (9, "        result += price", "        result += price * 1", 1),
        (10, "    return result", "    return -result", 0),
    ):
        params = {"patch": diff("shop/prices.py", line, old, new)}
        assert told(suite.attempt(runner, "test_total", params)) == ("scored", result)
        assert told(suite.attempt(runner, "test_discount", params)) == ("scored", 1)
    assert not refusals(asked)
    assert len(present(runner.project._processes)._servers) == 1


@pytest.mark.parametrize("name", PATCHED)
def test_functions_of_all_kinds(
    kinds: Callable[[str, dict[str, str]], Outcome], asked: list[tuple[str | None, str | None]], name: str
) -> None:
    """Whoever has the function has the mutant: closures made on import, wrappers, methods, names of the test."""
    assert told(kinds(name, {})) == ("scored", 1)
    _, old, new = PATCHED[name]
    assert told(kinds(name, {old: new})) == ("scored", 0)
    assert not refusals(asked)


def test_a_module_that_only_the_test_imports(suite: SuiteLab, asked: list[tuple[str | None, str | None]]) -> None:
    """It is imported in the fork, where the import gives the mutant: whatever it changes."""
    suite.shop(tests="def test_rate():\n    from shop.prices import RATE\n    assert RATE == 10\n")
    suite.write("shop/__init__.py", "")
    runner = suite.runner()
    assert told(suite.attempt(runner, "test_rate")) == ("scored", 1)
    assert (
        told(suite.attempt(runner, "test_rate", {"patch": diff("shop/prices.py", 3, "RATE = 10", "RATE = 11")}))[1] == 0
    )
    assert not refusals(asked)


def test_source_and_tracebacks_are_the_mutants(suite: SuiteLab, asked: list[tuple[str | None, str | None]]) -> None:
    suite.shop(
        tests="""
        import inspect, traceback
        import shop.prices

        def test_inspect():
            assert "result -= price" not in inspect.getsource(shop.prices.total)

        def test_loader():
            assert "result -= price" not in shop.prices.__loader__.get_source("shop.prices")

        def test_traceback():
            try:
                shop.prices.total([None])
            except TypeError:
                assert "result -= price" not in traceback.format_exc()
        """
    )
    runner = suite.runner(exhaustive=True)
    for name in ("test_inspect", "test_loader", "test_traceback"):
        assert told(suite.attempt(runner, name)) == ("scored", 1)
        assert told(suite.attempt(runner, name, MINUS)) == ("scored", 0), name
    assert not refusals(asked)


# ---------------------------------------------------------------- what does not


@pytest.mark.parametrize("name", REFUSED)
def test_what_an_import_made_of_the_baseline_is_not_kept(
    kinds: Callable[[str, dict[str, str]], Outcome], asked: list[tuple[str | None, str | None]], name: str
) -> None:
    """Each of these mutants fails its test, which it could not where the baseline's code, or its effects, were left."""
    assert told(kinds(name, {})) == ("scored", 1)
    _, old, new, why = REFUSED[name]
    assert told(kinds(name, {old: new})) == ("scored", 0)
    assert [refusal.partition(" of /")[0] for refusal in refusals(asked)] == [why]


# ---------------------------------------------------------------- the parts


NUMBERS: Final = itertools.count()


class Loader:
    """As much of Python's as is asked for."""

    def __init__(self, path: str) -> None:
        self.path = path

    def source_to_code(self, text: bytes, name: str) -> Any:
        return compile(text, name, "exec", dont_inherit=True)


class There:
    """A module as a server has it, of a file of its own: nothing that another test left is of that file."""

    def __init__(self, source: str) -> None:
        self.path = f"/nowhere/{next(NUMBERS)}.py"
        self.overlay = Overlay({self.path: source.encode()})
        self.module = self.load("mod")

    def load(self, name: str) -> ModuleType:
        module = ModuleType(name)
        exec(self.overlay.compile(Loader(self.path), name, self.path), module.__dict__)
        return module

    def plan(self, source: str) -> Plan:
        return Imported(self.overlay, {}).plan({self.path: source.encode()})

    def digests(self) -> list[str]:
        return list(self.overlay.proof()[self.path]["digests"])


PAIR: Final = "import operator\n\n\ndef plus(x):\n    return operator.add(x, 2)\n\n\ndef minus(x):\n    return x - 2\n"


def test_a_function_that_keeps_its_old_code_is_told() -> None:
    """The proof is of each function: one that is left out would make a survivor of nothing."""
    there = There(PAIR)
    plan = there.plan(PAIR.replace("x, 2", "x, 3"))
    (((function, code),), before) = plan.codes, there.module.plus.__code__
    assert function is there.module.plus

    class Stubborn:
        def __init__(self) -> None:
            self.__qualname__ = "plus"

        @property
        def __code__(self) -> Any:
            return before

        @__code__.setter
        def __code__(self, value: Any) -> None:
            pass

    digests = there.digests()
    object.__setattr__(plan, "codes", ((Stubborn(), code),))
    assert plan.carry_out(there.overlay) == "plus does not have the mutant's code"
    assert there.digests() == digests


def test_the_proof_is_the_mutants_digest_once_its_code_is_in_force() -> None:
    there, mutant = There(PAIR), PAIR.replace("x, 2", "x, 3")
    plan = there.plan(mutant)
    assert (there.module.plus(1), there.digests()) == (3, [digest_of(PAIR.encode())])
    assert plan.carry_out(there.overlay) is None
    assert (there.module.plus(1), there.digests()) == (4, [digest_of(mutant.encode())])


def test_calls_of_imported_names_are_compiled_as_in_the_module() -> None:
    """Python 3.11 has other instructions for them: a statement alone would be other code than the module's."""
    code = compile(PAIR, "mod.py", "exec", dont_inherit=True)
    (swap,) = swaps(PAIR, PAIR.replace("x, 2", "x, 3"), code)
    assert swap.old in code.co_consts
    assert swap.does_other


def test_constants_stay_the_modules() -> None:
    source = "NO = 'no such thing'\n\n\ndef plus(x, y=NO):\n    return y is NO and x == (1, 'no such thing')\n"
    there = There(source)
    plan = there.plan(source.replace("y is NO", "y is 'no such thing'"))
    assert plan.carry_out(there.overlay) is None
    assert there.module.plus((1, "no such thing"))


def test_the_same_file_under_two_names_is_changed_twice() -> None:
    there = There("def plus(x):\n    return x + 2\n")
    other = there.load("other")
    assert there.plan("def plus(x):\n    return x + 3\n").carry_out(there.overlay) is None
    assert (there.module.plus(1), other.plus(1)) == (4, 4)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("def f():\n    return 1\n", "def g():\n    return 1\n"),
        ("def f():\n    'a'\n", "def f():\n    'b'\n"),
        ("def f():\n    return 1\n", "async def f():\n    return 1\n"),
        ("def f():\n    return 1\n", "def f():\n    yield 1\n"),
        ("def f():\n    return 1\n", "def f(:\n    return 1\n"),
        ("def f(x):\n    return lambda: 1\n", "def f(x):\n    return lambda: x\n"),
        ("@property\ndef f():\n    return 1\n", "@staticmethod\ndef f():\n    return 1\n"),
    ],
)
def test_another_face_is_refused(old: str, new: str) -> None:
    with pytest.raises(UnfitError):
        swaps(old, new, compile(old, "mod.py", "exec", dont_inherit=True))
