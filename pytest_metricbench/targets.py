"""``module:function`` found without importing it, and loaded when it is needed.

Found means: a file, so that its content can be part of a fingerprint and a mistake is told when the experiment is
collected; imported only by the process that calls it, so that collecting an experiment runs nobody's code.
"""

import ast
import importlib
import importlib.machinery
import sys
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pytest_metricbench.messages import did_you_mean

_PATTERN: Final = r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*(\.[A-Za-z_]\w*)*$"


class TargetError(Exception):
    """A target that cannot be loaded; the message names it and says why."""


@dataclass(frozen=True, slots=True)
class Target:
    """A Python function from an experiment: ``package.module:function``, the experiment's folder first on the path."""

    written: str
    """``package.module:function``, as the YAML has it."""
    folder: Path | None = None
    """The experiment's, first on the path while the module is imported; None: the path as it is."""
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
        if self.folder is not None and sys.path[:1] != [str(self.folder)]:
            sys.path[:] = [str(self.folder), *(entry for entry in sys.path if entry != str(self.folder))]
            importlib.invalidate_caches()
        self._refuse_clash()
        try:
            value: Any = importlib.import_module(self.module)
            for name in self.function.split("."):
                value = getattr(value, name)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a module may call sys.exit, or pytest.skip, while it is imported
            raise TargetError(f"{self.written} cannot be loaded: {type(error).__name__}: {error}") from error
        self._refuse_clash()  # of two parents with one name, Python asks the one it loaded first
        if not callable(value):
            raise TargetError(f"{self.written} is {type(value).__name__} and cannot be called")
        return value  # type: ignore[no-any-return]

    def _refuse_clash(self) -> None:
        clash = loaded_elsewhere(self.module, self.file)
        if clash is not None:
            raise TargetError(clash)


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
    files = _source_files(module, folder)
    if files is None:
        if context.get("cached_only"):
            return Target(written, folder)
        raise PydanticCustomError(
            "target_module",
            "the module {module} is neither beside the file nor installed",
            {"module": repr(module)},
        )
    for name, source in files.items():
        if source is not None:
            _refuse_clash(name, source, context.get("targets"))
    file = files[module]
    if file is not None:
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


def _source_files(module: str, folder: Path) -> dict[str, Path | None] | None:
    """The source files of a module and of the packages it is in; None when it cannot be found. Imports nothing.

    A built-in or compiled module, and a package without ``__init__.py``, has no source file.
    """
    if module in sys.builtin_module_names:
        return {module: None}
    files: dict[str, Path | None] = {}
    search: list[str] | None = [str(folder), *sys.path]
    parts = module.split(".")
    for depth in range(1, len(parts) + 1):
        name = ".".join(parts[:depth])
        found = None if search is None else _locate(name, search)
        if found is None:
            return None
        origin, search = found
        files[name] = Path(origin) if origin is not None and origin.endswith(".py") else None
    return files


def _locate(name: str, search: list[str]) -> tuple[str | None, list[str] | None] | None:
    """Where a module is, and where its submodules are searched; None when it is in none of the folders."""
    try:
        spec = importlib.machinery.PathFinder.find_spec(name, search) or _from_hooks(name, search)
    except KeyError:  # a package without __init__.py in one that is not imported: its search path is not made yet
        last = name.rpartition(".")[2]
        return None, [str(folder) for entry in search if (folder := Path(entry) / last).is_dir()]
    if spec is None:
        return None
    locations = spec.submodule_search_locations
    return spec.origin, None if locations is None else list(locations)


def _from_hooks(name: str, search: list[str]) -> importlib.machinery.ModuleSpec | None:
    """What an import hook knows of a module: packages that are installed as editable may have no folder on the path."""
    for finder in sys.meta_path:
        find = getattr(finder, "find_spec", None)
        if find is None or finder is importlib.machinery.PathFinder:
            continue
        spec: importlib.machinery.ModuleSpec | None = find(name, search if "." in name else None)
        if spec is not None:
            return spec
    return None


def _refuse_unknown_function(file: Path, function: str) -> None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # a module that compiles with a warning compiles
            tree = ast.parse(file.read_bytes(), str(file))
    except (SyntaxError, ValueError, OSError, RecursionError, MemoryError) as error:
        raise PydanticCustomError(
            "target_source",
            "{file} cannot be read as Python: {error}",
            {"file": str(file), "error": str(error) or type(error).__name__},
        ) from None
    names = _defined_names(tree.body)
    wanted = function.partition(".")[0]
    if names is None or wanted in names:
        return
    near = did_you_mean(wanted, names)
    hint = f"; {near}" if near else ""
    raise PydanticCustomError(
        "target_function",
        "{file} defines no {function}{hint}",
        {"file": str(file), "function": repr(wanted), "hint": hint},
    )


def _defined_names(body: Iterable[ast.stmt]) -> set[str] | None:
    """The names a module body may define; None when that cannot be told by reading."""
    names: set[str] = set()
    for statement in body:
        nodes = list(ast.walk(statement))
        if any(map(_hides_names, nodes)) or _name_of_definition(statement) == "__getattr__":
            return None
        own = _name_of_definition(statement)
        if own is not None:
            names.add(own)
            nodes = [node for node in nodes if isinstance(node, ast.Global)]
        for node in nodes:
            names.update(_bound(node))
    return names


def _name_of_definition(node: ast.AST) -> str | None:
    return node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) else None


def _hides_names(node: ast.AST) -> bool:
    """Whether a module with this node may define any name."""
    if isinstance(node, ast.Name):
        return node.id in ("globals", "vars", "locals", "exec")
    return isinstance(node, ast.alias) and node.name == "*"


def _bound(node: ast.AST) -> Iterable[str]:
    """The names that a node binds."""
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return [name]
        case ast.Name(id=name, ctx=ast.Store()):
            return [name]
        case ast.alias(name=name, asname=alias):
            return [(alias or name).partition(".")[0]]
        case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
            return [name]
        case ast.Global(names=names):
            return names
    return []
