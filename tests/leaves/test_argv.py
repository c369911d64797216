"""Command lines in YAML: what is accepted, what becomes a path, and what each mistake is told."""

import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from pytest_metricbench.argv import Argv


class Settings(BaseModel):
    command: Argv


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An experiment's folder with a script, a policy and a package."""
    folder = tmp_path / "experiment"
    (folder / "pkg").mkdir(parents=True)
    (folder / "agent.py").write_text("print('hello')\n")
    (folder / "policy.md").write_text("Be strict.\n")
    (folder / "pkg" / "tool.py").write_text("")
    (tmp_path / "outside.py").write_text("")
    return folder


def check(folder: Path | None, *command: Any, **context: Any) -> Argv:
    return Settings.model_validate({"command": list(command)}, context={"folder": folder, **context}).command


def problem(folder: Path, *command: Any) -> str:
    with pytest.raises(ValidationError) as caught:
        check(folder, *command)
    problems = caught.value.errors()
    assert len(problems) == 1
    return problems[0]["msg"]


# ---------------------------------------------------------------- executables


def test_python_stands_for_the_running_interpreter(folder: Path) -> None:
    argv = check(folder, "{python}", "agent.py", "--with={python}")
    assert argv.written == ("{python}", "agent.py", "--with={python}")
    assert argv.resolved == (sys.executable, str(folder / "agent.py"), f"--with={sys.executable}")


@pytest.mark.parametrize("executable", ["python3", "sh", "./agent.py", "agent.py", "../outside.py", "~/bin/agent"])
def test_a_relative_executable_is_refused_with_an_example(folder: Path, executable: str) -> None:
    message = problem(folder, executable)
    assert repr(executable) in message
    assert "not an absolute path" in message
    assert "/usr/bin/env" in message


def test_the_advice_for_python_names_the_placeholder(folder: Path) -> None:
    assert "{python}" in problem(folder, "python3", "agent.py")
    assert "{python}" not in problem(folder, "node", "agent.js")


@pytest.mark.parametrize(
    ("executable", "words"),
    [
        ("/no/such/agent", "does not exist"),
        ("{folder}/agent.py", "is not executable"),
        ("{folder}", "is a folder"),
        ("{folder}/dangling", "does not exist"),
        ("{folder}/agent.py/x", "does not exist"),
    ],
)
def test_an_executable_that_cannot_be_run_is_named(folder: Path, executable: str, words: str) -> None:
    (folder / "dangling").symlink_to("nowhere")
    executable = executable.format(folder=folder)
    message = problem(folder, executable)
    assert words in message
    assert executable in message


def test_the_executable_is_not_looked_at_when_only_the_cache_counts(folder: Path) -> None:
    assert check(folder, "/no/such/agent", "x", cached_only=True).resolved == ("/no/such/agent", "x")
    assert check(folder, "{python}", "gone.py", cached_only=True).resolved[1] == "gone.py"
    with pytest.raises(ValidationError):
        check(folder, "agent", cached_only=True)


@pytest.mark.parametrize("command", [[], [""], ["/bin/sh", ""], "/bin/sh -c true", [1], ["/bin/sh", 1], None, {}])
def test_anything_but_a_list_of_texts_is_refused(folder: Path, command: Any) -> None:
    with pytest.raises(ValidationError):
        Settings.model_validate({"command": command}, context={"folder": folder})


def test_a_null_byte_is_refused_before_anything_runs(folder: Path) -> None:
    assert "null" in problem(folder, "/bin/echo", "a\0b")


# ---------------------------------------------------------------- files


def test_arguments_that_name_files_become_absolute_and_are_listed(folder: Path) -> None:
    argv = check(folder, "{python}", "-u", "agent.py", "policy.md", "pkg/tool.py", "refunds", "pkg")
    assert argv.files == (
        ("agent.py", folder / "agent.py"),
        ("policy.md", folder / "policy.md"),
        ("pkg/tool.py", folder / "pkg" / "tool.py"),
    )
    assert argv.resolved[2:] == (
        str(folder / "agent.py"),
        str(folder / "policy.md"),
        str(folder / "pkg" / "tool.py"),
        "refunds",
        "pkg",
    )


def test_a_relative_folder_gives_absolute_arguments(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder.parent)
    argv = check(Path("experiment"), "{python}", "agent.py")
    assert argv.resolved[1] == str(folder / "agent.py")


def test_options_and_long_texts_are_not_files(folder: Path) -> None:
    (folder / "-x").write_text("")
    argv = check(folder, "/bin/echo", "-x", "a" * 5000, "b/" * 3000)
    assert argv.files == ()


def test_an_absolute_file_is_not_read(folder: Path) -> None:
    argv = check(folder, "{python}", str(folder.parent / "outside.py"))
    assert argv.files == ()


@pytest.mark.parametrize("argument", ["../outside.py", "link.py", "pkg/../../outside.py", "linked/outside.py"])
def test_a_file_outside_is_refused_with_what_to_do(folder: Path, argument: str) -> None:
    (folder / "link.py").symlink_to(folder.parent / "outside.py")
    (folder / "linked").symlink_to(folder.parent)
    message = problem(folder, "{python}", "agent.py", argument)
    assert repr(argument) in message
    assert "leaves the experiment's folder" in message
    assert "absolutely" in message


def test_a_link_inside_the_folder_is_allowed(folder: Path) -> None:
    (folder / "link.py").symlink_to("agent.py")
    assert check(folder, "{python}", "link.py").files == (("link.py", folder / "link.py"),)


def test_a_link_to_itself_is_no_file(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    assert check(folder, "/bin/echo", "loop").files == ()


def test_dots_behind_a_link_mean_what_the_system_says(folder: Path) -> None:
    (folder / "deep" / "er").mkdir(parents=True)
    (folder / "deep" / "agent.py").write_text("print('the other one')\n")
    (folder / "short").symlink_to("deep/er")
    argv = check(folder, "{python}", "short/../agent.py")
    assert Path(argv.resolved[1]).read_text() == "print('the other one')\n"
    assert argv.files[0][1].read_text() == "print('the other one')\n"


# ---------------------------------------------------------------- scripts


@pytest.mark.parametrize(
    "command",
    [
        ["{python}", "missing.py"],
        ["{python}", "-u", "-B", "missing.py"],
        ["{python}", "-W", "error", "missing.py"],
        ["{python}", "-Xdev", "-Werror", "missing.py"],
        ["/usr/bin/env", "python3", "missing.py"],
        ["/usr/bin/env", "python3.12", "-I", "missing.py", "agent.py"],
        ["{python}", "/no/such/missing.py"],
    ],
)
def test_a_missing_script_is_refused(folder: Path, command: list[str]) -> None:
    message = problem(folder, *command)
    assert "missing.py" in message
    assert "does not exist" in message


def test_a_folder_as_a_script_is_named_as_such(folder: Path) -> None:
    assert "'pkg' is a folder" in problem(folder, "{python}", "pkg")


@pytest.mark.parametrize(
    "command",
    [
        ["{python}", "-m", "pkg.tool"],
        ["{python}", "-c", "print(1)"],
        ["{python}", "-mpkg.tool", "missing"],
        ["{python}", "-Im", "pkg.tool", "missing"],
        ["{python}", "-cprint(1)", "missing"],
        ["{python}", "-Bc", "print(1)"],
        ["{python}", "-W", "error", "-m", "pkg.tool"],
        ["{python}", "-"],
        ["{python}"],
        ["{python}", "--version"],
        ["{python}", "--check-hash-based-pycs", "always", "agent.py"],
        ["/usr/bin/env", "FOO=1", "python3", "missing.py"],
        ["/usr/bin/env"],
        ["/bin/echo", "missing.py"],
    ],
)
def test_what_is_no_script_is_left_alone(folder: Path, command: list[str]) -> None:
    assert check(folder, *command).written == tuple(command)


# ---------------------------------------------------------------- the type


def test_it_is_written_back_as_it_was(folder: Path) -> None:
    settings = Settings.model_validate({"command": ["{python}", "agent.py"]}, context={"folder": folder})
    assert settings.model_dump() == {"command": ["{python}", "agent.py"]}


def test_without_a_folder_nothing_is_looked_up() -> None:
    assert check(None, "{python}", "anything.py").resolved == (sys.executable, "anything.py")


def test_its_schema_is_a_list_of_texts() -> None:
    schema = TypeAdapter(Argv).json_schema()
    assert schema["type"] == "array"
    assert schema["minItems"] == 1
    assert schema["items"]["type"] == "string"
