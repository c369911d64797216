"""Mutated source in place of the files on disk, for the modules of one process, and the proof that it was in force.

Nothing on disk changes. Python reads a module's source through ``SourceFileLoader``, whoever found it: the path, the
finder of an editable installation, or a test that loads a file by its path. So the loader itself answers for the
mutated files, and neither reads nor writes bytecode for them: a ``.pyc`` is told from another one by the size and the
second of its source alone, and two mutants of equal size would share it.
"""

import hashlib
import linecache
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import decode_source
from types import CodeType, FunctionType, ModuleType
from typing import Any, Final


def digest_of(source: bytes) -> str:
    """The digest that names a source: ``sha256:`` and 64 hex digits."""
    return "sha256:" + hashlib.sha256(source).hexdigest()


class Overlay:
    """The mutated files of this process.

    Attributes:
        loaded: real path -> digests of what was compiled in its place, in order, each once.
    """

    def __init__(self, sources: Mapping[str, bytes], before_first: Callable[[], None] | None = None) -> None:
        """Nothing is in place yet.

        Args:
            sources: real path of a file -> its mutated source.
            before_first: called before the first of these files is compiled, so before anything of them runs.
        """
        self._sources: Final = dict(sources)
        self._before_first = before_first
        self._names: Final = {os.path.basename(path) for path in sources}
        self.loaded: Final[dict[str, list[str]]] = {path: [] for path in sources}
        self._compiled: Final[dict[str, set[str]]] = {path: set() for path in sources}
        """Real path -> names of the modules that were made from the mutated source."""
        self._codes: Final[dict[int, CodeType]] = {}
        """Every code object that was compiled here, by its identity: equal ones of another source are others."""
        self._roots: Final[dict[str, list[CodeType]]] = {}
        """Real path -> the code of each module that was made of it."""
        self._proven: tuple[int, list[Any], dict[str, dict[str, Any]]] | None = None

    def install(self) -> None:
        """From now on every import of these files gives the mutated source."""
        if not self._sources:
            return
        overlay, get_code, get_data = self, SourceFileLoader.get_code, SourceFileLoader.get_data

        def mutated_code(loader: SourceFileLoader, fullname: str) -> CodeType | None:
            path = overlay.place_of(loader.path)
            return get_code(loader, fullname) if path is None else overlay.compile(loader, fullname, path)

        def mutated_data(loader: SourceFileLoader, path: str) -> bytes:
            place = overlay.place_of(path)
            return get_data(loader, path) if place is None else overlay._sources[place]

        SourceFileLoader.get_code = mutated_code  # type: ignore[method-assign, assignment]
        SourceFileLoader.get_data = mutated_data  # type: ignore[method-assign, assignment]
        sys.meta_path.insert(0, self)

    def place_of(self, path: object) -> str | None:
        """The real path of a file, where it is one of the mutated ones."""
        if not isinstance(path, str) or os.path.basename(path) not in self._names:
            return None
        real = os.path.realpath(path)
        return real if real in self._sources else None

    def compile(self, loader: Any, fullname: str, path: str) -> CodeType:
        """The code of a mutated file, and a note that it is in force under that module's name."""
        if self._before_first is not None:
            call, self._before_first = self._before_first, None
            call()
        source = self._sources[path]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SyntaxWarning)  # what the compiler finds odd about a mutant is no verdict
            code: CodeType = loader.source_to_code(source, loader.path)
        digest = digest_of(source)
        if digest not in self.loaded[path]:
            self.loaded[path].append(digest)
        self._compiled[path].add(fullname)
        self._roots.setdefault(path, []).append(code)
        self._remember(code)
        _show_in_tracebacks(loader.path, source)
        return code

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        """Python's finder protocol: what the others find; a mutated file is loaded from source, whatever they say."""
        for finder in sys.meta_path:
            find: Callable[..., ModuleSpec | None] | None = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec = find(name, path, target)
            if spec is None:
                continue
            if spec.origin and self.place_of(spec.origin) and not isinstance(spec.loader, SourceFileLoader):
                spec.loader = SourceFileLoader(name, spec.origin)
            return spec
        return None

    # ------------------------------------------------ a mutant in place of what was imported

    def source_of(self, path: str) -> bytes | None:
        """What an import of the file gives; None where it is none of these files."""
        return self._sources.get(path)

    def roots(self) -> list[CodeType]:
        """The code of all modules that were made of these files."""
        return [code for codes in self._roots.values() for code in codes]

    def roots_of(self, path: str) -> Sequence[CodeType]:
        """The code of the modules that were made of a file, in order."""
        return self._roots.get(path, ())

    def holders(self) -> list[object]:
        """What keeps code here, which is nobody's business."""
        return [self._codes, *self._roots.values()]

    def exchange(self, path: str, source: bytes, codes: Iterable[CodeType]) -> None:
        """From now on another source is in place: imports give it, and what was imported of the file has its code.

        Args:
            path: real path of the file.
            source: that is in force.
            codes: that were made of it and are in force already.
        """
        self._sources[path] = source
        if self.loaded[path]:
            self.loaded[path][:] = [digest_of(source)]
        for code in codes:
            self._remember(code)
        for name in {root.co_filename for root in self.roots_of(path)}:
            _show_in_tracebacks(name, source)
        if self._proven is not None:
            self._proven[2][path]["digests"] = self.loaded[path] or [self._would_load(path)]

    # ------------------------------------------------ proof

    def proof(self) -> dict[str, dict[str, Any]]:
        """For each mutated file what was in force: taken in the process that ran the test, after it ran.

        ``digests``: of the sources compiled; of what an import would give, where nobody imported it. ``strangers``:
        modules of that file that came from elsewhere. Asked for again, it looks at what has changed since.
        """
        now = (len(sys.modules), [sys.modules.get(name) for names in self._compiled.values() for name in names])
        if self._proven is not None and self._proven[:2] == now:  # to look at each module costs a fork the most
            return self._proven[2]
        found = self._look()
        self._proven = (*now, found)
        return found

    def _look(self) -> dict[str, dict[str, Any]]:
        strangers: dict[str, list[str]] = {path: [] for path in self._sources}
        for name, module in list(sys.modules.items()):
            place = self.place_of(getattr(module, "__file__", None))
            if place is None:
                continue
            spec_name = getattr(getattr(module, "__spec__", None), "name", name)
            if {name, spec_name, getattr(module, "__name__", name)} & self._compiled[place]:
                continue
            # It may only say that it is of this file: packages that are made of others copy such attributes.
            if not self.loaded[place] or self._has_code_of_its_own(module, place):
                strangers[place].append(name)
        return {
            path: {
                "digests": self.loaded[path] or [self._would_load(path)],
                "strangers": sorted(strangers[path]),
            }
            for path in self._sources
        }

    def _remember(self, code: CodeType) -> None:
        self._codes[id(code)] = code
        for constant in code.co_consts:
            if isinstance(constant, CodeType):
                self._remember(constant)

    def _has_code_of_its_own(self, module: ModuleType, place: str) -> bool:
        """Whether a function of the module, or of a class in it, is of that file and was not compiled here."""
        values = list(vars(module).values())
        values += [value for entry in values if isinstance(entry, type) for value in vars(entry).values()]
        for function in (value for value in values if isinstance(value, FunctionType)):
            its_own = function.__module__ == module.__name__ or self.place_of(function.__code__.co_filename) == place
            if its_own and id(function.__code__) not in self._codes:
                return True
        return False

    @staticmethod
    def _would_load(path: str) -> str:
        try:
            return digest_of(SourceFileLoader("metricbench_probe", path).get_data(path))
        except OSError:
            return ""


def imported_elsewhere(homes: Iterable[tuple[str, Sequence[str]]]) -> str | None:
    """A sentence about the first module that does not come from where it should.

    Args:
        homes: a module's name, and the real paths of folders or files one of which it must come from.
    """
    for name, allowed in homes:
        module = sys.modules.get(name)
        file = None if module is None else getattr(module, "__file__", None)
        if not isinstance(file, str):
            continue
        real = os.path.realpath(file)
        if not any(real == home or real.startswith(home + os.sep) for home in allowed):
            return f"the tests import {name} from {file}, not from {' or '.join(allowed)}"
    return None


def loaded_from(homes: Iterable[str]) -> list[str]:
    """The names of modules of this process whose files are in some folders, or are some files; real paths."""
    known = tuple(homes)
    found = []
    for name, module in list(sys.modules.items()):
        file = getattr(module, "__file__", None)
        if isinstance(file, str):
            real = os.path.realpath(file)
            if name != "__main__" and any(real == home or real.startswith(home + os.sep) for home in known):
                found.append(name)
    return sorted(found)


def _show_in_tracebacks(path: str, source: bytes) -> None:
    """Let tracebacks and ``inspect`` show the mutated lines: without a time of change they are never looked up."""
    try:
        lines = decode_source(source).splitlines(keepends=True)
    except (SyntaxError, ValueError):
        return
    linecache.cache[path] = (len(source), None, lines, path)
