"""Python targets: found without importing, loaded from the right file, each mistake told."""

import importlib.abc
import importlib.machinery
import importlib.util
import sys
import textwrap
import uuid
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from pytest_metricbench.targets import Target, TargetError

Write = Callable[..., Path]


class Settings(BaseModel):
    agent: Target


@pytest.fixture(autouse=True)
def _modules_and_path_as_before(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    before = set(sys.modules)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield
    for name in set(sys.modules) - before:
        del sys.modules[name]


@pytest.fixture
def name() -> str:
    """A module name that nothing else has."""
    return f"agent_{uuid.uuid4().hex}"


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def make(path: str, text: str = "def agent(request):\n    return 1\n", folder: str = "experiment") -> Path:
        file = tmp_path / folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
        return file

    return make


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "experiment"
    folder.mkdir()
    return folder


def check(folder: Path | None, written: Any, **context: Any) -> Target:
    return Settings.model_validate({"agent": written}, context={"folder": folder, **context}).agent


def problem(folder: Path, written: Any, **context: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        check(folder, written, **context)
    problems = caught.value.errors()
    assert len(problems) == 1
    return problems[0]["msg"]


# ---------------------------------------------------------------- found


def test_a_module_beside_the_file_is_found_and_not_imported(folder: Path, name: str, write: Write) -> None:
    file = write(f"{name}.py", "raise SystemExit('imported')\ndef agent(request): ...\n")
    target = check(folder, f"{name}:agent")
    assert (target.file, target.module, target.function) == (file, name, "agent")
    assert name not in sys.modules


def test_a_module_in_a_package_is_found_without_running_the_package(folder: Path, name: str, write: Write) -> None:
    write(f"{name}/__init__.py", "raise SystemExit('imported')\n")
    file = write(f"{name}/inner/deep.py")
    write(f"{name}/inner/__init__.py", "raise SystemExit('imported')\n")
    assert check(folder, f"{name}.inner.deep:agent").file == file
    assert not [module for module in sys.modules if module.startswith(name)]


def test_a_package_itself_and_a_namespace_package_are_found(folder: Path, name: str, write: Write) -> None:
    file = write(f"{name}/__init__.py")
    assert check(folder, f"{name}:agent").file == file
    file = write(f"{name}_space/module.py")
    assert check(folder, f"{name}_space.module:agent").file == file
    file = write(f"{name}_space/inner/deeper/module.py")
    assert check(folder, f"{name}_space.inner.deeper.module:agent").file == file
    assert check(folder, f"{name}_space.inner.deeper.module:agent").load()(None) == 1
    problem(folder, f"{name}_space.inner.missing.module:agent")


def test_an_installed_module_is_found(folder: Path) -> None:
    target = check(folder, "json.decoder:JSONDecoder")
    assert target.file is not None
    assert target.file.name == "decoder.py"
    assert target.load()().decode("[1]") == [1]


def test_builtin_and_compiled_modules_have_no_source(folder: Path) -> None:
    assert check(folder, "time:sleep").file is None
    assert check(folder, "math:sqrt").file is None
    assert check(folder, "math:sqrt").load()(4) == 2


def test_a_module_that_only_an_import_hook_finds(folder: Path, name: str, write: Write, tmp_path: Path) -> None:
    """As editable installs have them."""
    file = write("somewhere.py", folder="elsewhere")

    class Finder(importlib.abc.MetaPathFinder):
        def find_spec(
            self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
        ) -> importlib.machinery.ModuleSpec | None:
            return importlib.util.spec_from_file_location(fullname, file) if fullname == name else None

    finder = Finder()
    sys.meta_path.append(finder)
    try:
        assert check(folder, f"{name}:agent").file == file
        assert name not in sys.modules
        assert check(folder, f"{name}:agent").load()(None) == 1
    finally:
        sys.meta_path.remove(finder)


def test_the_folder_comes_before_everything_installed(folder: Path, write: Write) -> None:
    file = write("this.py", "def agent(request):\n    return 'ours'\n")
    target = check(folder, "this:agent")
    assert target.file == file
    assert target.load()(None) == "ours"


def test_the_folder_comes_first_even_when_it_is_on_the_path_already(
    folder: Path, name: str, write: Write, tmp_path: Path
) -> None:
    write(f"{name}.py", "def agent(request):\n    return 'ours'\n")
    write(f"{name}.py", "def agent(request):\n    return 'theirs'\n", folder="other")
    sys.path[:0] = [str(tmp_path / "other"), str(folder)]
    assert check(folder, f"{name}:agent").load()(None) == "ours"


# ---------------------------------------------------------------- not found


@pytest.mark.parametrize("written", ["no_such_module_x:agent", "json.no_such:agent", "json.decoder.deeper:agent"])
def test_a_missing_module_is_named(folder: Path, written: str) -> None:
    message = problem(folder, written)
    assert repr(written.partition(":")[0]) in message
    assert "neither beside the file nor installed" in message


def test_a_missing_module_is_accepted_when_only_the_cache_counts(folder: Path) -> None:
    target = check(folder, "no_such_module_x:agent", cached_only=True)
    assert target.file is None
    with pytest.raises(TargetError, match="no_such_module_x"):
        target.load()


def test_a_missing_function_is_named_with_a_near_one(folder: Path, name: str, write: Write) -> None:
    file = write(f"{name}.py", "def verify(request): ...\ndef agent(request): ...\n")
    message = problem(folder, f"{name}:agnet")
    assert str(file) in message
    assert "'agnet'" in message
    assert "did you mean 'agent'" in message
    assert "did you mean" not in problem(folder, f"{name}:zzz")


@pytest.mark.parametrize(
    "text",
    [
        "async def agent(request): ...",
        "class agent: ...",
        "agent = print",
        "agent: object = print",
        "from os import path as agent",
        "import os.path as agent",
        "import agent.tools",
        "from json import *",
        "if True:\n    def agent(request): ...",
        "try:\n    from x import agent\nexcept ImportError:\n    agent = None",
        "for agent in [print]: pass",
        "with open('x') as agent: pass",
        "(agent := print)",
        "first, (second, *agent) = ...",
        "def __getattr__(name): ...",
        "if True:\n    from x import *",
        "globals()['agent'] = print",
        "exec('agent = print')",
        "def outer():\n    global agent\n    agent = print\nouter()",
        "match print:\n    case agent: ...",
    ],
)
def test_every_way_to_define_a_name_counts(folder: Path, name: str, write: Write, text: str) -> None:
    write(f"{name}.py", text + "\n")
    assert check(folder, f"{name}:agent").function == "agent"


def test_a_name_that_is_only_used_or_local_does_not_count(folder: Path, name: str, write: Write) -> None:
    write(f"{name}.py", "def outer():\n    agent = 1\n    return agent\nprint(outer.agent)\n")
    assert "defines no 'agent'" in problem(folder, f"{name}:agent")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"def agent(:\n", "line 1"),
        (b"\0", "null bytes"),
        (b"# -*- coding: latin-9000 -*-\n", "latin-9000"),
        (b"x = '\xff'\n", "utf-8"),
        (b"(" * 500 + b")" * 500, ""),
        (b"x = " + b"-" * 20000 + b"1\n", ""),
    ],
    ids=["syntax", "null", "coding", "not utf-8", "nested", "deep"],
)
def test_a_module_that_cannot_be_read_says_where(
    folder: Path, name: str, write: Write, text: bytes, words: str
) -> None:
    file = write(f"{name}.py")
    file.write_bytes(text)
    message = problem(folder, f"{name}:agent")
    assert f"{file} cannot be read as Python" in message
    assert words in message


def test_a_warning_of_the_compiler_is_no_error(folder: Path, name: str, write: Write) -> None:
    """Pytest users turn warnings into errors; an old escape in somebody's module still compiles."""
    write(f"{name}.py", r"PATTERN = '\d'" + "\ndef agent(request): ...\n")
    assert check(folder, f"{name}:agent").function == "agent"


@pytest.mark.parametrize(
    "written",
    [
        "agent",
        "agent:",
        ":agent",
        "agent.py:agent",
        "a b:c",
        "a:b:c",
        "../agent:f",
        "a.:f",
        "a:f\n",
        "1a:f",
        "",
        3,
        None,
    ],
)
def test_another_form_is_refused(folder: Path, written: Any) -> None:
    if written == "agent.py:agent":
        assert "'agent.py'" in problem(folder, written)
    else:
        problem(folder, written)


# ---------------------------------------------------------------- clashes


def test_a_module_loaded_from_another_folder_is_refused_with_both_files(
    folder: Path, name: str, write: Write, tmp_path: Path
) -> None:
    theirs, ours = write(f"{name}.py", folder="other"), write(f"{name}.py")
    check(tmp_path / "other", f"{name}:agent").load()
    message = problem(folder, f"{name}:agent")
    assert str(theirs) in message
    assert str(ours) in message
    assert "rename" in message


def test_a_package_loaded_from_another_folder_is_refused(folder: Path, name: str, write: Write, tmp_path: Path) -> None:
    """Its submodule has not been loaded, yet Python would take it from the package that was."""
    theirs = write(f"{name}/__init__.py", folder="other")
    write(f"{name}/__init__.py")
    ours = write(f"{name}/tools.py")
    check(tmp_path / "other", f"{name}:agent").load()
    message = problem(folder, f"{name}.tools:agent")
    assert str(theirs) in message
    assert str(ours.parent) in message


def test_two_experiments_cannot_claim_one_name(folder: Path, name: str, write: Write, tmp_path: Path) -> None:
    theirs, ours = write(f"{name}.py", folder="other"), write(f"{name}.py")
    claims: dict[str, Path] = {}
    check(tmp_path / "other", f"{name}:agent", targets=claims)
    check(tmp_path / "other", f"{name}:agent", targets=claims)
    message = problem(folder, f"{name}:agent", targets=claims)
    assert str(theirs) in message
    assert str(ours) in message


def test_two_experiments_cannot_claim_one_package(folder: Path, name: str, write: Write, tmp_path: Path) -> None:
    for place in ("other", "experiment"):
        write(f"{name}/__init__.py", folder=place)
        write(f"{name}/{place}.py", folder=place)
    claims: dict[str, Path] = {}
    check(tmp_path / "other", f"{name}.other:agent", targets=claims)
    assert str(tmp_path / "other" / name) in problem(folder, f"{name}.experiment:agent", targets=claims)


def test_the_same_file_through_a_link_is_no_clash(folder: Path, name: str, write: Write, tmp_path: Path) -> None:
    write(f"{name}.py")
    (tmp_path / "linked").symlink_to(folder)
    check(folder, f"{name}:agent").load()
    assert check(tmp_path / "linked", f"{name}:agent").load()(None) == 1


def test_a_name_taken_between_validation_and_load(folder: Path, name: str, write: Write, tmp_path: Path) -> None:
    write(f"{name}.py", folder="other")
    write(f"{name}.py")
    ours, theirs = check(folder, f"{name}:agent"), check(tmp_path / "other", f"{name}:agent")
    theirs.load()
    with pytest.raises(TargetError, match="is loaded already from"):
        ours.load()


# ---------------------------------------------------------------- loading


def test_loading_gives_the_function_and_its_neighbours(folder: Path, name: str, write: Write) -> None:
    write(f"{name}_helper.py", "VALUE = 7\n")
    write(f"{name}.py", f"from {name}_helper import VALUE\ndef agent(request):\n    return VALUE\n")
    target = check(folder, f"{name}:agent")
    assert target.load()(None) == 7
    assert target.load() is target.load()


def test_an_attribute_of_a_class(folder: Path, name: str, write: Write) -> None:
    write(f"{name}.py", "class Agent:\n    @staticmethod\n    def run(request):\n        return 3\n")
    assert check(folder, f"{name}:Agent.run").load()(None) == 3
    with pytest.raises(TargetError, match=f"{name}:Agent.walk cannot be loaded: AttributeError"):
        check(folder, f"{name}:Agent.walk").load()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("import no_such_module_x", "ModuleNotFoundError: No module named 'no_such_module_x'"),
        ("raise ValueError('not today')", "ValueError: not today"),
        ("1 / 0", "ZeroDivisionError"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("import pytest; pytest.skip('no', allow_module_level=True)", "Skipped: no"),
        ("def broken(): return _later\nagent = broken()", "NameError"),
    ],
)
def test_a_module_that_fails_is_an_error_that_names_it(
    folder: Path, name: str, write: Write, text: str, words: str
) -> None:
    write(f"{name}.py", f"{text}\ndef agent(request): ...\n")
    with pytest.raises(TargetError) as caught:
        check(folder, f"{name}:agent").load()
    assert f"{name}:agent cannot be loaded" in str(caught.value)
    assert words in str(caught.value)


def test_an_interrupt_while_loading_is_an_interrupt(folder: Path, name: str, write: Write) -> None:
    write(f"{name}.py", "raise KeyboardInterrupt\ndef agent(request): ...\n")
    with pytest.raises(KeyboardInterrupt):
        check(folder, f"{name}:agent").load()


def test_what_cannot_be_called_is_refused(folder: Path, name: str, write: Write) -> None:
    write(f"{name}.py", "agent = 3\n")
    with pytest.raises(TargetError, match="is int and cannot be called"):
        check(folder, f"{name}:agent").load()


def test_loading_puts_the_folder_on_the_path_once(folder: Path, name: str, write: Write) -> None:
    write(f"{name}.py")
    for _ in range(3):
        check(folder, f"{name}:agent").load()
    assert sys.path.count(str(folder)) == 1
    assert sys.path[0] == str(folder)


# ---------------------------------------------------------------- the type


def test_it_is_written_back_as_it_was(folder: Path, name: str, write: Write) -> None:
    write(f"{name}.py")
    settings = Settings.model_validate({"agent": f"{name}:agent"}, context={"folder": folder})
    assert settings.model_dump() == {"agent": f"{name}:agent"}


def test_without_a_folder_nothing_is_looked_up() -> None:
    assert check(None, "no_such_module_x:agent").file is None


def test_its_schema_is_a_text() -> None:
    schema = TypeAdapter(Target).json_schema()
    assert schema["type"] == "string"
    assert "pattern" in schema
