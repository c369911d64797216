"""A module imported from a patched copy of its source, the installed files untouched.

The copy lives in memory. A copy on disk would be compiled to a ``.pyc`` that Python tells from another one by the
size and the second of its source alone: two mutants of equal length, written within one second to one place, would
share it, and the second would run the first one's code and look like a survivor.
"""

import importlib.util
import re
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import CodeType, ModuleType

_HUNK = re.compile(r"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")


class PatchError(Exception):
    """A patch that cannot be read or does not fit the installed source; the message names the hunk and the line."""


class Hunk:
    """One hunk of a unified diff: where it starts, the lines it expects there, and the lines it puts there."""

    def __init__(self, header: str, old_start: int, new_start: int, body: list[str]) -> None:
        self.header = header
        self.old_start = old_start
        self.new_start = new_start
        self.old = [line[1:] for line in body if line[0] in " -"]
        self.new = [line[1:] for line in body if line[0] in " +"]


class Patch:
    """A unified diff of one file, read strictly: no fuzz, no offsets, no second file."""

    def __init__(self, text: str, name: str) -> None:
        self.name = name
        lines = text.splitlines()
        start = next((number for number, line in enumerate(lines) if line.startswith("--- ")), None)
        if start is None or len(lines) < start + 3 or not lines[start + 1].startswith("+++ "):
            raise PatchError(f"{name}: no '--- a/FILE' line followed by '+++ b/FILE' and a hunk")
        old, new = (line[4:].split("\t")[0].partition("/")[2] for line in lines[start : start + 2])
        if old != new or not old.endswith(".py"):
            raise PatchError(f"{name}: changes {old!r} to {new!r}; one Python file under one name is expected")
        self.file = new
        self.hunks = self._hunks(lines, start + 2)

    @property
    def module(self) -> str:
        """The dotted name of the module that the patch changes."""
        return self.file.removesuffix(".py").replace("/", ".")

    def _hunks(self, lines: list[str], position: int) -> list[Hunk]:
        hunks = []
        while position < len(lines):
            match = _HUNK.match(lines[position])
            if match is None:
                raise PatchError(f"{self.name}, line {position + 1}: '@@ -N,N +N,N @@' is expected")
            body = []
            for line in lines[position + 1 :]:
                if line[:1] not in (" ", "-", "+"):
                    break
                body.append(line)
            hunk = Hunk(match.group(), int(match[1]), int(match[3]), body)
            if (len(hunk.old), len(hunk.new)) != (int(match[2] or 1), int(match[4] or 1)):
                raise PatchError(f"{self.name}, hunk {hunk.header}: the number of its lines is not what its head says")
            hunks.append(hunk)
            position += 1 + len(body)
        return hunks

    def apply(self, source: str) -> str:
        """The patched source.

        Raises:
            PatchError: a hunk does not stand where it says, word for word, or the patch changes nothing.
        """
        lines = source.splitlines()
        patched: list[str] = []
        done = 0
        for hunk in self.hunks:
            start = hunk.old_start - 1
            for number, expected in enumerate(hunk.old, start=start):
                found = lines[number] if number < len(lines) else None
                if found != expected:
                    raise PatchError(
                        f"{self.name}, hunk {hunk.header}: line {number + 1} of {self.file} is {found!r}, "
                        f"the patch expects {expected!r}"
                    )
            patched += lines[done:start]
            if len(patched) != hunk.new_start - 1:
                raise PatchError(f"{self.name}, hunk {hunk.header}: its new lines start at {len(patched) + 1}")
            patched += hunk.new
            done = start + len(hunk.old)
        patched += lines[done:]
        if patched == lines:
            raise PatchError(f"{self.name}: changes nothing")
        return "\n".join(patched) + "\n"


class PatchedModule:
    """Finder and loader of one module: it compiles the patched source and neither reads nor writes bytecode."""

    def __init__(self, patch: Patch, original: Path) -> None:
        self.module = patch.module
        self.original = original
        self.source = patch.apply(original.read_text(encoding="utf-8"))
        # Tracebacks name the patch, and code objects can be told from those of the installed file.
        self.filename = f"{original} (with {patch.name})"
        # What Python itself tells sources apart by; hashlib would take longer to import than this module to run.
        self.source_hash = importlib.util.source_hash(self.source.encode("utf-8")).hex()

    def install(self) -> None:
        """Put this finder before all others.

        Raises:
            PatchError: the package is imported already, so that parts of it may hold on to the installed code.
        """
        package = self.module.partition(".")[0]
        if package in sys.modules:
            raise PatchError(f"{package} was imported before the patched copy of {self.module} was in place")
        sys.meta_path.insert(0, self)

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        """Python's finder protocol: this module and no other."""
        if name != self.module:
            return None
        return importlib.util.spec_from_file_location(name, self.original, loader=self)  # type: ignore[arg-type]

    def create_module(self, spec: ModuleSpec) -> None:
        """Python's loader protocol: an ordinary module."""

    def exec_module(self, module: ModuleType) -> None:
        """Python's loader protocol: run the patched source in the module."""
        exec(compile(self.source, self.filename, "exec", dont_inherit=True), vars(module))

    def get_source(self, name: str) -> str:
        """Lets a traceback show the patched lines."""
        return self.source

    def prove_loaded(self, user: ModuleType) -> None:
        """Check that the patched code is what ``user`` calls; a mutant that was never loaded looks like a survivor.

        Raises:
            PatchError: the module came from elsewhere, or ``user`` holds a function of it that did.
        """
        loaded = sys.modules.get(self.module)
        if loaded is None or getattr(loaded.__spec__, "loader", None) is not self:
            raise PatchError(f"{self.module} in this process is not the patched copy")
        for name, value in vars(user).items():
            code = getattr(value, "__code__", None)
            if not isinstance(code, CodeType) or getattr(value, "__module__", None) != self.module:
                continue
            if code.co_filename != self.filename:
                raise PatchError(f"{user.__name__}.{name} was compiled from {code.co_filename}, not from the patch")
