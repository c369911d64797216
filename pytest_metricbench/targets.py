"""``module:function`` found without importing it, and loaded when it is needed.

Found means: a file, so that its content can be part of a fingerprint and a mistake is told when the experiment is
collected; imported only by the process that calls it, so that collecting an experiment runs nobody's code.
"""

import ast
import difflib
import importlib
import importlib.machinery
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

_PATTERN: Final = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"


class TargetError(Exception):
    """A target that cannot be loaded; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A Python function from an experiment: ``package.module:function``, the experiment's folder first on the path."""

    written: str
    folder: Path | None = None
    file: Path | None = None
    """The module's source; None for a built-in or compiled module."""

    @property
    def module(self) -> str:
        """The module's dotted name."""
        return self.written.partition(":")[0]

    @property
    def function(self) -> str:
        """The function's name in the module, dotted for an attribute of a class."""
        return self.written.partition(":")[2]

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A text in YAML and JSON Schema; found relative to ``folder`` of the validation context."""
        return core_schema.with_info_after_validator_function(
            _checked_target,
            core_schema.str_schema(strict=True, pattern=_PATTERN),
            serialization=core_schema.plain_serializer_function_ser_schema(lambda target: target.written),
        )

    def load(self) -> Callable[..., Any]:
        """Import the module, the folder first on the path, and return the function.

        Raises:
            TargetError: the import fails, another file of that name is loaded already, or the function is missing.
        """
        folder = str(self.folder) if self.folder is not None else None
        if folder is not None and folder not in sys.path:
            sys.path.insert(0, folder)
            importlib.invalidate_caches()
        clash = loaded_elsewhere(self.module, self.file)
        if clash is not None:
            raise TargetError(clash)
        try:
            value: Any = importlib.import_module(self.module)
            for name in self.function.split("."):
                value = getattr(value, name)
        except Exception as error:
            raise TargetError(f"{self.written} cannot be loaded: {type(error).__name__}: {error}") from error
        if not callable(value):
            raise TargetError(f"{self.written} is {type(value).__name__} and cannot be called")
        return value  # type: ignore[no-any-return]


def loaded_elsewhere(module: str, file: Path | None) -> str | None:
    """A sentence that names both files when a module of that name is loaded from another one."""
    loaded = sys.modules.get(module)
    origin = getattr(loaded, "__file__", None)
    if file is None or origin is None or Path(origin).resolve() == file.resolve():
        return None
    return _clash(module, file, Path(origin))


def _clash(module: str, file: Path, other: Path) -> str:
    return f"the module {module} of {file} is loaded already from {other}; rename one of the two files"


def _checked_target(written: str, info: ValidationInfo) -> Target:
    context: dict[str, Any] = info.context or {}
    folder: Path | None = context.get("folder")
    if folder is None:
        return Target(written)
    module, _, function = written.partition(":")
    found, file = _find(module, folder)
    if not found:
        if context.get("cached_only"):
            return Target(written, folder)
        raise PydanticCustomError(
            "target_module",
            "the module {module} is neither beside the file nor installed",
            {"module": repr(module)},
        )
    if file is not None:
        _refuse_clash(module, file, context.get("targets"))
        _refuse_unknown_function(file, function)
    return Target(written, folder, file)


def _refuse_clash(module: str, file: Path, claimed: dict[str, Path] | None) -> None:
    """A module name means one file for the whole process: Python keeps modules by name."""
    clash = loaded_elsewhere(module, file)
    if clash is None and claimed is not None:
        other = claimed.setdefault(module, file)
        clash = _clash(module, file, other) if other.resolve() != file.resolve() else None
    if clash is not None:
        raise PydanticCustomError("target_clash", "{clash}", {"clash": clash})


def _find(module: str, folder: Path) -> tuple[bool, Path | None]:
    """Whether a module can be found, and its source file, without importing it or its parents."""
    if module in sys.builtin_module_names:
        return True, None
    search: Iterable[str] | None = [str(folder), *sys.path]
    parts = module.split(".")
    spec = None
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        spec = importlib.machinery.PathFinder.find_spec(name, None if search is None else list(search))
        if spec is None:
            return False, None
        search = spec.submodule_search_locations
        if search is None and depth < len(parts):
            return False, None
    origin = spec.origin if spec is not None else None
    return True, Path(origin) if origin is not None and origin.endswith(".py") else None


def _refuse_unknown_function(file: Path, function: str) -> None:
    try:
        tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError, OSError) as error:
        raise PydanticCustomError(
            "target_source",
            "{file} cannot be read as Python: {error}",
            {"file": str(file), "error": str(error)},
        ) from None
    names = _defined_names(tree.body)
    wanted = function.partition(".")[0]
    if names is None or wanted in names:
        return
    near = difflib.get_close_matches(wanted, names, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    raise PydanticCustomError(
        "target_function",
        "{file} defines no {function}{hint}",
        {"file": str(file), "function": repr(wanted), "hint": hint},
    )


def _defined_names(body: Iterable[ast.stmt]) -> set[str] | None:
    """The names a module body may define; None when that cannot be told by reading."""
    names: set[str] = set()
    for statement in body:
        if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            if statement.name == "__getattr__":
                return None
            names.add(statement.name)
            continue
        if isinstance(statement, ast.ImportFrom | ast.Import):
            if any(alias.name == "*" for alias in statement.names):
                return None
            names.update((alias.asname or alias.name).partition(".")[0] for alias in statement.names)
            continue
        for node in ast.walk(statement):
            if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
                return None
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                names.add(node.id)
            elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                names.add(node.name)
            elif isinstance(node, ast.alias):
                names.add((node.asname or node.name).partition(".")[0])
    return names
