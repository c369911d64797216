"""Agents in a folder: Python functions that take a request or a text, and programs. Nothing is imported or run."""

import ast
import os
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from pytest_metricbench.starting.finding import Finding, files_in, folders_in, text_of

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef

_AGENT: Final = re.compile(r"agent|assistant|chatbot", re.IGNORECASE)
_NAMES: Final = frozenset({"run", "answer", "respond", "reply", "solve", "chat", "ask", "call", "invoke", "handle"})
_ASKED: Final = frozenset(
    {"request", "question", "prompt", "message", "query", "task", "text", "instruction", "user_input", "user_message"}
)
_VERIFIERS: Final = ("verify", "verifier", "score", "grade", "judge")
_NO_AGENT: Final = re.compile(r"(setup|conftest|noxfile|manage|test_.*|.*_test|metricbench_.*)\.py")
_NO_PROGRAM: Final = re.compile(
    r"(build|install|setup|bootstrap|test|run_?tests?|lint|format|deploy|release|clean|make|ci|docs|dev|start|stop)\b.*",
    re.IGNORECASE,
)
_PROMPT: Final = re.compile(r".*(prompt|policy|system|instruction|handbook).*\.(md|txt)", re.IGNORECASE)
_SHEBANG: Final = re.compile(r"#!\s*(/\S+)(?:[ \t]+(.*))?")


def find_python_agent(folder: Path) -> Finding | None:
    """The function in a folder, or in a package directly in it, that looks most like an agent."""
    found = [one for path, module in _modules(folder) for one in _agents_in(path, module, folder)]
    return max(found, key=lambda one: one.rank).finding() if found else None


def find_command(folder: Path) -> Finding | None:
    """The program in a folder that looks most like an agent."""
    found = [one for path in files_in(folder) if (one := _program(path)) is not None]
    return max(found, key=lambda one: one.sure) if found else None


def prompts_in(folder: Path) -> list[str]:
    """The texts beside an agent that look like its prompt or policy, by name."""
    return [path.name for path in files_in(folder) if _PROMPT.fullmatch(path.name)]


# ---------------------------------------------------------------- Python


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A function that may be an agent."""

    file: str
    module: str
    function: str
    takes_request: bool
    is_async: bool
    verifier: str | None
    line: int

    @property
    def rank(self) -> tuple[bool, bool, bool]:
        """What speaks for it; of equal ones the first counts."""
        return bool(_AGENT.search(self.function)), bool(_AGENT.search(self.file)), self.verifier is not None

    def finding(self) -> Finding:
        """As it is reported."""
        takes = "the request" if self.takes_request else "a text"
        values: dict[str, Any] = {
            "file": self.file,
            "module": self.module,
            "function": self.function,
            "takes_request": self.takes_request,
            "is_async": self.is_async,
            "verifier": self.verifier if self.takes_request else None,
        }
        reason = f"the function {self.function} in {self.file}, line {self.line}, takes {takes}"
        return Finding("python", reason, values, sure=any(self.rank[:2]))


def _modules(folder: Path) -> Iterator[tuple[Path, str]]:
    """Python files with their dotted names, of the folder and of the packages in it."""
    for path in _sources_in(folder):
        yield path, path.stem
    for package in folders_in(folder):
        if package.name.isidentifier() and os.path.isfile(package / "__init__.py") and package.name != "tests":
            for path in _sources_in(package):
                yield path, package.name if path.stem == "__init__" else f"{package.name}.{path.stem}"


def _sources_in(folder: Path) -> Iterator[Path]:
    for path in files_in(folder):
        if path.suffix == ".py" and path.stem.isidentifier() and not _NO_AGENT.fullmatch(path.name):
            yield path


def _agents_in(path: Path, module: str, folder: Path) -> Iterator[_Candidate]:
    tree = _parsed(path)
    if tree is None:
        return
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    verifiers = {node.name for node in functions if len(_needed(node)) == 2 and node.name in _VERIFIERS}
    verifier = next((name for name in _VERIFIERS if name in verifiers), None)
    for node in functions:
        needed = _needed(node)
        if node.name.startswith("_") or len(needed) != 1:
            continue
        annotated = needed[0].annotation is not None and ast.unparse(needed[0].annotation) == "str"
        named = node.name in _NAMES or _AGENT.search(node.name)
        if named and (annotated or needed[0].arg in _ASKED):
            yield _Candidate(
                file=path.relative_to(folder).as_posix(),
                module=module,
                function=node.name,
                takes_request=needed[0].arg == "request" and not annotated,
                is_async=isinstance(node, ast.AsyncFunctionDef),
                verifier=verifier,
                line=node.lineno,
            )


def _needed(node: _Function) -> list[ast.arg]:
    """The parameters that a call has to give; more than two where some have to be named."""
    given = [*node.args.posonlyargs, *node.args.args]
    needed = given[: len(given) - len(node.args.defaults)]
    named = [arg for arg, default in zip(node.args.kwonlyargs, node.args.kw_defaults, strict=True) if default is None]
    return [*needed, *named, *named, *named]


def _parsed(path: Path) -> ast.Module | None:
    text = text_of(path)
    if text is None:
        return None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about escapes in somebody's strings
        try:
            return ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return None


# ---------------------------------------------------------------- programs


def _program(path: Path) -> Finding | None:
    """A file as a program, with the words of the command line that runs it; None when it is none."""
    if _NO_PROGRAM.fullmatch(path.name) or _NO_AGENT.fullmatch(path.name):
        return None
    sure = bool(_AGENT.search(path.name))
    if path.suffix == ".py":
        if not _is_script(path):
            return None
        reason = f"{path.name} is a Python script that reads its command line"
        return _command(path, [], reason, sure=sure)
    is_executable = os.access(path, os.X_OK)
    shebang = _SHEBANG.match((text_of(path) or "").partition("\n")[0])
    if shebang is not None:
        words = [shebang[1], *((shebang[2] or "").split())]
        return _command(path, words, f"{path.name} is a script for {words[-1]}", sure=sure)
    if path.suffix == ".sh":
        return _command(path, ["/bin/sh"], f"{path.name} is a shell script", sure=sure)
    if is_executable and not path.suffix:
        return _command(path, ["/usr/bin/env"], f"{path.name} is executable", sure=sure)
    return None


def _command(path: Path, words: list[str], reason: str, *, sure: bool) -> Finding:
    values = {"script": path.name, "words": [*words, path.name], "is_python": not words}
    return Finding("command", reason, values, sure=sure)


def _is_script(path: Path) -> bool:
    """Whether a file runs as a program, guarded or not, and reads its command line."""
    text = text_of(path) or ""
    is_main = re.search(r"^if __name__ == [\"']__main__[\"']:", text, re.MULTILINE) is not None
    is_read_at_once = re.search(r"^\w.*(\.parse_(known_)?args\(|sys\.argv)", text, re.MULTILINE) is not None
    reads = re.search(r"\b(argparse|sys\.argv|click|typer|docopt|fire)\b", text) is not None
    return (is_main or is_read_at_once) and reads
