"""What is used of pytest and pytest-xdist beyond what they promise: a test for each name, and where they may stand.

A test that fails here is named after what a new version has renamed or taken away. Each name stands in one function of
``private_names.py``, or of ``suite/inside_pytest.py`` for the processes of a tested project.
"""

import ast
import importlib
import inspect
import io
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from _pytest._io import TerminalWriter

from pytest_metricbench import private_names
from pytest_metricbench.pytest_side import protocol_choice
from pytest_metricbench.suite import inside_pytest
from tests.package_source import MODULES, PACKAGE, tree

PLACES = (PACKAGE / "private_names.py", PACKAGE / "suite" / "inside_pytest.py")


# ---------------------------------------------------------------- of a session: private_names.py


def test_config_inicfg(pytestconfig: pytest.Config) -> None:
    assert "filterwarnings" in list(private_names.ini_file_names(pytestconfig))
    assert list(private_names.ini_file_names(SimpleNamespace())) == []


def test_session_setupstate(request: pytest.FixtureRequest) -> None:
    state = private_names.setup_state(request.session)
    assert request.node in state.stack
    assert callable(state.setup)
    assert callable(state.teardown_exact)
    assert private_names.setup_state(SimpleNamespace()) is None


def test_terminalwriter_file() -> None:
    """pytest 9 has ``write_raw`` in its place."""
    file = io.StringIO()
    writer = TerminalWriter(file)
    writer.write("counted")
    private_names.write_uncounted(writer, " and not")
    assert file.getvalue() == "counted and not"
    assert writer.width_of_current_line == len("counted")


def test_workercontroller_shutdown_sent() -> None:
    workermanage = pytest.importorskip("xdist.workermanage")
    sent: list[object] = []
    config = SimpleNamespace(
        option=SimpleNamespace(debug=False), pluginmanager=SimpleNamespace(register=lambda plugin: None)
    )
    manager = SimpleNamespace(testrunuid="run", specs=[])
    gateway = SimpleNamespace(id="gw0")
    node = workermanage.WorkerController(manager, gateway, config, lambda event: None)
    node.channel = SimpleNamespace(send=sent.append, isclosed=lambda: False)
    assert private_names.was_told_to_end(node) is False
    node.shutdown()
    assert private_names.was_told_to_end(node) is True
    assert private_names.was_told_to_end(SimpleNamespace()) is True


@pytest.mark.parametrize("name", sorted(frozenset().union(*protocol_choice._KNOWN.values())))
def test_pytest_modules(name: str) -> None:
    """The modules whose implementations the short protocol answers for are where it looks for them."""
    if name == "subtests":  # since pytest 9
        pytest.importorskip("_pytest.subtests")
    source = inspect.getsource(importlib.import_module(f"_pytest.{name}"))
    hooks = [hook for hook, names in protocol_choice._KNOWN.items() if name in names]
    assert any(f"def {hook}(" in source for hook in hooks)


def test_pytest_modules_are_told_from_others() -> None:
    assert private_names.pytest_module(test_pytest_modules) is None
    assert private_names.pytest_module(SimpleNamespace()) is None
    assert private_names.pytest_module(pytest.Config.getini) == "config"


# ---------------------------------------------------------------- in a tested project's processes: inside_pytest.py


@pytest.mark.parametrize("name", [name for name in inside_pytest._USED_BY_PYTEST if name.startswith("_pytest.")])
def test_imported_ahead(name: str) -> None:
    importlib.import_module(name)


def test_assertionrewritinghook_find_spec() -> None:
    from _pytest.assertion.rewrite import AssertionRewritingHook

    assert callable(AssertionRewritingHook.find_spec)
    assert any(isinstance(finder, AssertionRewritingHook) for finder in sys.meta_path)


@pytest.mark.parametrize(
    ("mark", "is_idle"),
    [
        (pytest.mark.skipif(True, reason="no"), True),
        (pytest.mark.skipif(False, reason="no"), False),
        (pytest.mark.xfail(reason="known"), True),
        (pytest.mark.xfail(False, reason="known"), False),
    ],
)
def test_skipping_evaluate_skip_marks_and_evaluate_xfail_marks(
    request: pytest.FixtureRequest, mark: pytest.MarkDecorator, is_idle: bool
) -> None:
    def marked() -> None:
        pass

    item = pytest.Function.from_parent(request.node.parent, name="marked", callobj=mark(marked))
    assert inside_pytest.is_marked_idle(item) is is_idle


# ---------------------------------------------------------------- where they may stand


def foreign_private_names(source: ast.Module) -> list[str]:
    """Private names in a module that are not its own classes': attributes, names in texts, and imports."""
    own = {node.attr for node in ast.walk(source) if isinstance(node, ast.Attribute) and _is_self(node.value)}
    for part in (part for node in ast.walk(source) if isinstance(node, ast.ClassDef) for part in node.body):
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
            own.add(part.name)
        elif isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
            own.add(part.target.id)
    found = []
    for node in ast.walk(source):
        if isinstance(node, ast.Attribute) and _is_private(node.attr) and not _is_self(node.value):
            if node.attr not in own and ast.unparse(node.value) not in ("os", "sys"):
                found.append(ast.unparse(node))
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr", "setattr", "delattr"):
            name = node.args[1]
            if isinstance(name, ast.Constant) and _is_private(str(name.value)):
                found.append(str(name.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("_pytest"):
            found.append(node.value)
        elif isinstance(node, ast.ImportFrom) and str(node.module).startswith("_pytest"):
            found.append(str(node.module))
        elif isinstance(node, ast.Import):
            found += [alias.name for alias in node.names if alias.name.startswith("_pytest")]
    return found


def _is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def _is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


@pytest.mark.parametrize(
    "text",
    [
        "config._inicfg",
        "getattr(session, '_setupstate', None)",
        "from _pytest.runner import runtestprotocol",
        "import _pytest.config",
        "import_module('_pytest.python')",
        "class A:\n    def of(self, item): return item._request\n",
    ],
)
def test_a_private_name_of_others_is_seen(text: str) -> None:
    assert foreign_private_names(ast.parse(text))


def test_own_private_names_are_no_others() -> None:
    text = (
        "class A:\n    def __init__(self, other: 'A'): self._one = other._one; other._two()\n    def _two(self): pass\n"
    )
    assert foreign_private_names(ast.parse(text)) == []


def test_private_names_stand_in_two_places() -> None:
    found = {
        str(path.relative_to(PACKAGE)): names
        for path in MODULES.values()
        if path not in PLACES and (names := foreign_private_names(tree(path)))
    }
    assert found == {}


@pytest.mark.parametrize("path", PLACES, ids=lambda path: path.name)
def test_each_private_name_is_documented_and_has_its_test(path: Path) -> None:
    """A name that is used in one of the two places stands in a docstring there and in the name of a test here."""
    source = tree(path)
    tests = [name for name in globals() if name.startswith("test_")]
    documented = " ".join(ast.get_docstring(node) or "" for node in ast.walk(source) if isinstance(node, _DOCUMENTED))
    used = {name.rpartition(".")[2] for name in foreign_private_names(source) if not name.startswith("_pytest")}
    for node in ast.walk(source):
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("_pytest"):
            used |= {alias.name for alias in node.names}
    assert used
    for name in used:
        assert any(name.lower().lstrip("_") in test for test in tests), name
        assert name.removesuffix("skip_marks").removesuffix("xfail_marks") in documented, name


_DOCUMENTED = (ast.Module, ast.FunctionDef, ast.ClassDef)
