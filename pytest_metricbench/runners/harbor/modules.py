"""Python code that an experiment names for Harbor (``module:Class``): its files, and what it says about its kwargs.

Nothing is imported: an experiment is collected without Harbor and without running anybody's code.
"""

import ast
import os
import re
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_metricbench.sources import SourceError

_IMPORT_PATH: Final = re.compile(r"(?!acp:)[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*", re.ASCII)
_CLASS_FILE_LIMIT: Final = 4 << 20
"""Bytes of a module that is looked into."""

_OWN_OPTIONS: Final[Mapping[str, frozenset[str]]] = {
    "AgentOptions": frozenset({"base_url", "disable_web_search", "reasoning_effort"}),
    "InstalledAgentOptions": frozenset(
        {
            "base_url",
            "config",
            "disable_web_search",
            "prompt_template_path",
            "reasoning_effort",
            "skip_install",
            "version",
        }
    ),
}
"""The fields of Harbor's own option models (0.25 and 0.26)."""


def is_import_path(name: str) -> bool:
    """Whether an agent, environment or verifier is named as ``module.path:Class`` rather than by a name of Harbor's."""
    return _IMPORT_PATH.fullmatch(name) is not None


def module_of(import_path: str) -> str:
    """The dotted module of ``module.path:Class``."""
    return import_path.partition(":")[0]


def code_files(import_path: str, python_path: Sequence[Path], folder: Path) -> dict[str, Path]:
    """The source files behind an import path: its module's, or all of the package that the module is in.

    Args:
        import_path: ``module.path:Class``.
        python_path: folders that are searched, in order.
        folder: the experiment's; a file in it is named relative to it.

    Returns:
        Name -> file; empty where the module is in none of the folders and so has to be installed beside Harbor.

    Raises:
        SourceError: the package is there and the module in it is not, or the module has no such class.
    """
    module, _, _ = import_path.partition(":")
    file = _module_file(module, python_path)
    if file is None:
        return {}
    _require_class(import_path, file)
    root = next(root for root in python_path if file.is_relative_to(root))
    package = _package_of(file, root)
    found = [file] if package is None else list(_package_files(package))
    return {named_in(path, folder, root): path for path in found}


def named_in(path: Path, folder: Path, root: Path) -> str:
    """The name of a file in a digest: relative to the experiment's folder, or else to the folder it was found in."""
    for base in (folder, root):
        if path.is_relative_to(base):
            return path.relative_to(base).as_posix()
    return path.name


def _package_of(file: Path, root: Path) -> Path | None:
    """The outermost folder below ``root`` that is a package and holds the file; None where the module is in none."""
    parents = [parent for parent in file.parents if parent.is_relative_to(root) and parent != root]
    return next((parent for parent in reversed(parents) if (parent / "__init__.py").is_file()), None)


def _module_file(module: str, python_path: Sequence[Path]) -> Path | None:
    parts = module.split(".")
    for root in python_path:
        base = root.joinpath(*parts)
        for candidate in (base / "__init__.py", base.with_name(f"{base.name}.py")):
            if candidate.is_file():
                return candidate
        if len(parts) > 1 and (root / parts[0] / "__init__.py").is_file():
            raise SourceError(
                f"the module {module!r} is not in the package {root / parts[0]}",
                f"it would be {base.with_name(f'{base.name}.py')}",
            )
    return None


def _package_files(package: Path) -> Iterator[Path]:
    for folder, folders, files in os.walk(package):
        folders[:] = sorted(name for name in folders if name != "__pycache__" and not name.startswith("."))
        for name in sorted(files):
            if not name.startswith(".") and not name.endswith((".pyc", ".pyo")):
                yield Path(folder, name)


# ---------------------------------------------------------------- what a class says about its kwargs


@dataclass(frozen=True, slots=True)
class _Module:
    file: Path
    tree: ast.Module

    def found(self, name: str) -> ast.ClassDef | None:
        """A class of that name at the top of the module."""
        for node in self.tree.body:
            if isinstance(node, ast.ClassDef) and node.name == name:
                return node
        return None

    def texts(self) -> set[str]:
        """Every text that stands anywhere in the code."""
        return {
            node.value for node in ast.walk(self.tree) if isinstance(node, ast.Constant) and type(node.value) is str
        }


def _read(file: Path) -> _Module:
    try:
        if file.stat().st_size > _CLASS_FILE_LIMIT:
            raise SourceError(f"{file} is larger than {_CLASS_FILE_LIMIT >> 20} MiB")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a module that compiles with a warning compiles
            return _Module(file, ast.parse(file.read_bytes(), str(file)))
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise SourceError(f"{file} cannot be read as Python: {error or type(error).__name__}") from None
    except OSError as error:
        raise SourceError(f"{file} cannot be read: {error.strerror}") from None


def _require_class(import_path: str, file: Path) -> None:
    name = import_path.partition(":")[2]
    module = _read(file)
    if module.found(name) is not None:
        return
    bound = {node.id for node in ast.walk(module.tree) if isinstance(node, ast.Name)}
    imported = {
        (alias.asname or alias.name).partition(".")[0]
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    }
    nested = {node.name for node in ast.walk(module.tree) if isinstance(node, ast.ClassDef | ast.FunctionDef)}
    if name in bound | imported | nested or "*" in imported or "__getattr__" in nested or "globals" in bound:
        return  # made, imported or defined in a block: what it is can be told only by running it
    classes = [node.name for node in module.tree.body if isinstance(node, ast.ClassDef)]
    remedy = f"it defines {', '.join(classes)}" if classes else "it defines no class"
    raise SourceError(f"{file} defines no class {name!r}", remedy)


@dataclass(frozen=True, slots=True)
class KwargsCheck:
    """What an agent's code says about kwargs that an experiment gives it."""

    refused: tuple[str, ...] = ()
    """Kwargs with which Harbor cannot make the agent."""
    known: tuple[str, ...] = ()
    """Those it takes, where it refuses others."""
    unread: tuple[str, ...] = ()
    """Kwargs that Harbor passes on although nothing in the code reads them."""
    file: Path | None = None


def check_kwargs(import_path: str, kwargs: Sequence[str], python_path: Sequence[Path]) -> KwargsCheck:
    """Hold the kwargs of a custom agent against its code, as far as that can be told by reading.

    An agent with an ``options_model`` refuses what the model has no field for; one whose ``__init__`` takes no
    ``**kwargs`` refuses what it has no parameter for. Any other takes everything: a kwarg whose name stands nowhere
    in its code has no effect there.

    Raises:
        SourceError: the code cannot be read.
    """
    file = _module_file(module_of(import_path), python_path)
    if file is None or not kwargs:
        return KwargsCheck()
    module = _read(file)
    own = module.found(import_path.partition(":")[2])
    if own is None:
        return KwargsCheck(file=file)
    lineage = list(_lineage(module, own))
    options = next((found for node in lineage if (found := _assigned(node, "options_model")) is not None), None)
    if options is not None:
        fields = _fields(module, options)
        return KwargsCheck(*_split(kwargs, fields), file=file) if fields is not None else KwargsCheck(file=file)
    bases = {name for node in lineage for name in map(_last_name, node.bases)}
    if not bases <= {node.name for node in lineage} | {"BaseAgent"}:
        return KwargsCheck(file=file)  # it inherits from an agent that is not here: what that takes is not known
    return _by_signature(module, lineage, kwargs)


def _by_signature(module: _Module, lineage: Sequence[ast.ClassDef], kwargs: Sequence[str]) -> KwargsCheck:
    """What the constructor says, where there is no model of the options."""
    init = next((found for node in lineage if (found := _method(node, "__init__")) is not None), None)
    named: frozenset[str] = frozenset()
    if init is not None:
        named = frozenset(argument.arg for argument in (*init.args.args[1:], *init.args.kwonlyargs))
        if init.args.kwarg is None:
            return KwargsCheck(*_split(kwargs, named), file=module.file)
    read = named | module.texts()
    return KwargsCheck(unread=tuple(name for name in kwargs if name not in read), file=module.file)


def _split(kwargs: Sequence[str], known: frozenset[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return tuple(name for name in kwargs if name not in known), tuple(sorted(known))


def _lineage(module: _Module, node: ast.ClassDef) -> Iterator[ast.ClassDef]:
    """The class and those of the module that it inherits from, nearest first."""
    waiting, seen = [node], set()
    while waiting:
        current = waiting.pop(0)
        if current.name in seen:
            continue
        seen.add(current.name)
        yield current
        waiting.extend(found for base in current.bases if (found := module.found(_last_name(base))) is not None)


def _fields(module: _Module, options: ast.expr) -> frozenset[str] | None:
    """The names that a model of options takes; None where that cannot be told."""
    name = _last_name(options)
    if name in _OWN_OPTIONS:
        return _OWN_OPTIONS[name]
    node = module.found(name)
    if node is None or not node.bases:
        return None
    fields: set[str] = set()
    for base in node.bases:
        inherited = _fields(module, base) if _last_name(base) != name else None
        if inherited is None:
            return None
        fields |= inherited
    for statement in node.body:
        if isinstance(statement, ast.Assign) and "model_config" in map(_last_name, statement.targets):
            return None  # it may allow anything
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            if statement.value is not None and "alias" in ast.unparse(statement.value):
                return None
            fields.add(statement.target.id)
    return frozenset(fields)


def _assigned(node: ast.ClassDef, name: str) -> ast.expr | None:
    for statement in node.body:
        if isinstance(statement, ast.Assign) and name in map(_last_name, statement.targets):
            return statement.value
        if isinstance(statement, ast.AnnAssign) and _last_name(statement.target) == name:
            return statement.value
    return None


def _method(node: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    return next((found for found in node.body if isinstance(found, ast.FunctionDef) and found.name == name), None)


def _last_name(node: ast.expr) -> str:
    """``Name`` for ``Name``, ``module.Name`` and ``Name[...]``."""
    if isinstance(node, ast.Subscript):
        return _last_name(node.value)
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
