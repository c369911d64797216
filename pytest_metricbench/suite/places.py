"""Where the source under test and its tests are: folders beside the experiment, or installed packages by name."""

import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib.machinery import EXTENSION_SUFFIXES, ModuleSpec, PathFinder
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

from pydantic import GetCoreSchemaHandler, ValidationInfo
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

from pytest_metricbench.plain_files import strays

_SKIPPED: Final = frozenset({"__pycache__", "node_modules", "build", "dist", "site-packages"})
_NOT_IMPORTED: Final = frozenset({"conftest.py", "setup.py"})
"""Modules at the top of a source tree that nobody imports by their names, or that several folders have."""
PROJECT: Final = "{project}/"
"""What the name of a place may begin with: the nearest folder, from the experiment's upwards, that is a project."""
_PROJECT_FILES: Final = ("pyproject.toml", "setup.py", "setup.cfg", "pytest.ini", "tox.ini")
_FOLDERS_OF_MANY: Final = frozenset({"test", "tests"})
"""Names that are always a folder's: a package of that name on the path is a stray of another project, or Python's."""
_FILES_LIMIT: Final = 20_000
"""More files than this are no source of one package: somebody named the root of a disk."""


class PlaceError(Exception):
    """A place that is not there, or holds nothing that could be meant."""


@dataclass(frozen=True)
class Place:
    """A file or folder as the experiment names it, and where it is."""

    written: str
    path: Path
    base: Path
    """The folder that names of its files start from: of a package the one it is in, of a source tree itself."""
    installed: bool = False
    """Named as a package is imported, not as a file."""

    @cached_property
    def files(self) -> Mapping[str, Path]:
        """Every file in it but hidden ones and bytecode: name with forward slashes, from ``base`` -> file; sorted.

        Raises:
            PlaceError: there are too many.
        """
        found = {self.path.name: self.path} if self.path.is_file() else {}
        if not found:
            for path in _walk(self.path):
                found[path.relative_to(self.base).as_posix()] = path
                if len(found) > _FILES_LIMIT:
                    raise PlaceError(f"{self.path} has more than {_FILES_LIMIT} files; name the package itself")
        return dict(sorted(found.items()))

    def holds(self, path: Path) -> bool:
        """Whether a file is this one or in this folder."""
        return path == self.path or path.is_relative_to(self.path)


class SourcePlace(Place):
    """The source that mutants change: a package, a module, or a folder with several."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A text in YAML and JSON Schema; found relative to ``folder`` of the validation context."""
        return _schema(_checked_source)

    @property
    def tops(self) -> Mapping[str, Path]:
        """The modules and packages that it gives, by the names they are imported under."""
        if self.path != self.base:
            relative = self.path.relative_to(self.base)
            return {".".join(relative.with_suffix("").parts): self.path}
        firsts = sorted({name.partition("/")[0] for name in self.files if name.endswith(".py")})
        return {first.removesuffix(".py"): self.path / first for first in firsts if first not in _NOT_IMPORTED}


class TestsPlace(Place):
    """Where the tests are."""

    __test__ = False  # no test class, whatever it is called

    @classmethod
    def __get_pydantic_core_schema__(cls, source: object, handler: GetCoreSchemaHandler) -> CoreSchema:
        """A text in YAML and JSON Schema; found relative to ``folder`` of the validation context."""
        return _schema(_checked_tests)

    @cached_property
    def modules(self) -> Mapping[str, Path]:
        """The files that pytest collects under its usual names: ``test_*.py`` and ``*_test.py``."""
        return {name: path for name, path in self.files.items() if is_test_file(path)}

    @cached_property
    def support(self) -> Mapping[str, Path]:
        """All other files: conftest files, helpers, data."""
        return {name: path for name, path in self.files.items() if not is_test_file(path)}


def is_test_file(path: Path) -> bool:
    """Whether pytest takes a file for a test module without being told to."""
    return path.suffix == ".py" and (path.name.startswith("test_") or path.stem.endswith("_test"))


def _walk(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = sorted(name for name in folders if _is_entered(Path(root, name)))
        for name in sorted(names):
            path = Path(root, name)
            if not name.startswith(".") and path.suffix not in (".pyc", ".pyo") and path.is_file():
                yield path


def _is_entered(folder: Path) -> bool:
    hidden = folder.name.startswith(".") or folder.name in _SKIPPED
    return not hidden and not (folder / "pyvenv.cfg").exists()  # an environment is no part of a source tree


# ---------------------------------------------------------------- checking


def _schema(check: Any) -> CoreSchema:
    return core_schema.with_info_after_validator_function(
        check,
        core_schema.str_schema(strict=True, min_length=1),
        serialization=core_schema.plain_serializer_function_ser_schema(lambda place: place.written),
    )


def _checked_source(written: str, info: ValidationInfo) -> SourcePlace:
    path, base, installed = _find(written, info)
    place = SourcePlace(written, path, base, installed)
    if path.exists():
        _refuse_without_source(place)
    return place


def _checked_tests(written: str, info: ValidationInfo) -> TestsPlace:
    path, base, installed = _find(written, info)
    return TestsPlace(written, path, base, installed)


def _find(written: str, info: ValidationInfo) -> tuple[Path, Path, bool]:
    """Where it is, where names of its files start, and whether it was found as a package."""
    context: dict[str, Any] = info.context or {}
    folder: Path = context.get("folder") or Path.cwd()
    if "\0" in written:
        raise _problem(written, "has a null character, which no name can hold")
    if written.startswith(PROJECT):
        return _in_project(written, folder, cached_only=bool(context.get("cached_only")))
    path = Path(os.path.abspath(folder / written))
    if path.exists() or os.path.isabs(written) or not _may_be_imported(written):
        if strays(written, path, folder):
            remedy = f"name it from the project's ({PROJECT}...), absolutely, or as a package: name.of.it"
            raise _problem(written, f"leaves the experiment's folder; {remedy}")
        if not path.exists() and not context.get("cached_only"):
            raise _problem(written, f"does not exist; it is looked for in {path.parent}")
        return path, _base_of(path, folder), False
    found = _import_location(written)
    if context.get("cached_only") and not isinstance(found, Path):
        return path, folder, False
    if found is None:
        raise _problem(written, "is neither a file or folder beside the experiment nor a package that can be imported")
    if isinstance(found, str):
        raise _problem(written, found)
    base = found
    for _ in written.split("."):
        base = base.parent
    return found, base, True


def _may_be_imported(written: str) -> bool:
    return written not in _FOLDERS_OF_MANY and all(part.isidentifier() for part in written.split("."))


def _in_project(written: str, folder: Path, *, cached_only: bool) -> tuple[Path, Path, bool]:
    """A place named from the folder of the project that the experiment stands in."""
    home = next((up for up in (folder, *folder.parents) if any((up / name).is_file() for name in _PROJECT_FILES)), None)
    if home is None:
        files = ", ".join(_PROJECT_FILES)
        raise _problem(written, f"needs a project around the experiment: no folder from {folder} upwards has {files}")
    path = Path(os.path.abspath(home / written.removeprefix(PROJECT)))
    if strays(written, path, home):
        raise _problem(written, f"leaves the project's folder, {home}")
    if not path.exists() and not cached_only:
        raise _problem(written, f"does not exist; it is looked for in {home}")
    return path, _base_of(path, home), False


def _base_of(path: Path, folder: Path) -> Path:
    """The folder that a package or module is imported from; a folder that is no package is a source tree."""
    if path == folder or not (path.is_file() or (path / "__init__.py").is_file()):
        return path
    base = path.parent
    while (base / "__init__.py").is_file() and base != base.parent:
        base = base.parent
    return base


def _import_location(name: str) -> Path | str | None:
    """The file or folder of an installed module or package, or what is wrong with it; nothing is imported."""
    first, *rest = name.split(".")
    try:
        spec: ModuleSpec | None = find_spec(first)
        for depth in range(1, len(rest) + 1):
            if spec is None or spec.submodule_search_locations is None:
                return None
            spec = PathFinder.find_spec(".".join([first, *rest[:depth]]), list(spec.submodule_search_locations))
    except (ImportError, ValueError, KeyError):
        return None
    if spec is None:
        return None
    if spec.origin is None and spec.submodule_search_locations is not None:
        return None  # a folder of that name on the path, and no package that anybody installed
    if spec.submodule_search_locations and spec.origin is not None and spec.origin.endswith(".py"):
        return Path(spec.origin).parent
    if spec.origin is None or not spec.origin.endswith(".py"):
        where = f" ({spec.origin})" if spec.has_location else ""
        return f"is compiled or built in{where}; a mutant needs a module with Python source"
    return Path(spec.origin)


def _refuse_without_source(place: SourcePlace) -> None:
    if place.path.is_file() and place.path.name.endswith(tuple(EXTENSION_SUFFIXES)):
        raise _problem(place.written, "is a compiled module; a mutant needs a module with Python source")
    try:
        has_source = any(name.endswith(".py") for name in place.files)
    except PlaceError as error:
        raise _problem(place.written, str(error)) from None
    if not has_source:
        raise _problem(place.written, "has no Python source")


def compiled_twin(path: Path) -> Path | None:
    """The compiled module that Python imports in place of a source file, where there is one."""
    suffixes = (*EXTENSION_SUFFIXES, ".pyd") if sys.platform == "win32" else EXTENSION_SUFFIXES
    twins = (path.with_name(path.stem + suffix) for suffix in suffixes)
    return next((twin for twin in twins if twin.exists()), None)


def _problem(written: str, what: str) -> PydanticCustomError:
    return PydanticCustomError("place", "{place} {what}", {"place": repr(written), "what": what})
