"""What there is to cover of a source: its executable lines or branches, and the goals that stand for them.

What is executable, what belongs to which statement and where a branch may lead is coverage.py's word, so that the
figures are those of its reports.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal, TypeAlias

from pytest_metricbench.contracts import CoverageError
from pytest_metricbench.coverage.line_data import Arc, FileRan, TaskRan
from pytest_metricbench.digests import digest_file

Measure: TypeAlias = Literal["line", "branch"]
Scope: TypeAlias = Literal["line", "function", "file", "package"]


@dataclass(frozen=True)
class SourceFile:
    """One file of the source as coverage.py reads it."""

    name: str
    """From the folder that its package is in, with forward slashes."""
    path: Path
    _reporter: Any

    @classmethod
    def read(cls, name: str, path: Path) -> "SourceFile":
        """The file, parsed.

        Raises:
            CoverageError: it is no Python source.
        """
        import coverage
        from coverage.exceptions import CoverageException
        from coverage.python import PythonFileReporter

        reporter = PythonFileReporter(str(path), coverage.Coverage(data_file=None, config_file=False))
        file = cls(name, path, reporter)
        try:
            reporter.lines()
        except (CoverageException, OSError) as error:
            raise CoverageError(f"{name} of the source cannot be read: {error}") from None
        return file

    @cached_property
    def digest(self) -> str:
        """Of its content."""
        return digest_file(self.path)

    @cached_property
    def statements(self) -> frozenset[int]:
        """The first lines of its statements, those left out by ``pragma: no cover`` not among them."""
        return frozenset(self._reporter.lines())

    @cached_property
    def branches(self) -> frozenset[Arc]:
        """From where to where control may go, at statements where it may go several ways."""
        exits, without = self._reporter.exit_counts(), self._reporter.no_branch_lines()
        return frozenset(arc for arc in self._reporter.arcs() if exits.get(arc[0], 0) > 1 and arc[0] not in without)

    @cached_property
    def functions(self) -> Mapping[int, str]:
        """Line -> the function that it is in; lines outside of functions are not there."""
        regions = sorted(
            (region for region in self._reporter.code_regions() if region.kind == "function"),
            key=lambda region: region.start,
        )
        repeated = Counter(region.name for region in regions)
        names = {
            region.start: region.name if repeated[region.name] == 1 else f"{region.name}@{region.start}"
            for region in regions
        }
        return {line: names[region.start] for region in regions for line in region.lines}

    def items(self, measure: Measure) -> frozenset[Any]:
        """What is counted: lines, or branches as pairs."""
        return self.statements if measure == "line" else self.branches

    def ran(self, ran: FileRan, measure: Measure) -> frozenset[Any]:
        """Which of them an attempt ran."""
        if measure == "line":
            return self.statements.intersection(self._reporter.translate_lines(ran.lines))
        return self.branches.intersection(self._reporter.translate_arcs(ran.arcs or ()))

    def goals(self, items: Iterable[Any], measure: Measure, scope: Scope) -> set[str]:
        """The goals that stand for some lines or branches."""
        if scope == "line":
            return {f"{self.name}:{_shown(item)}" for item in items}
        starts = {item if measure == "line" else item[0] for item in items}
        if scope == "function":
            return {f"{self.name}:{self.functions[line]}" for line in starts if line in self.functions}
        counted = starts & self.functions.keys() if self._has_functions(measure) else starts
        whole = self.name if scope == "file" else self.name.rpartition("/")[0] or "."
        return {whole} if counted else set()

    def _has_functions(self, measure: Measure) -> bool:
        starts = {item if measure == "line" else item[0] for item in self.items(measure)}
        return bool(starts & self.functions.keys())


def _shown(item: int | Arc) -> str:
    if isinstance(item, int):
        return str(item)
    start, end = item
    return f"{start}->{'exit' if end < 0 else end}"


@dataclass(frozen=True)
class MeasuredSource:
    """The files that count, and what is counted of them."""

    files: Mapping[str, SourceFile]
    measure: Measure
    scope: Scope

    @cached_property
    def universe(self) -> tuple[str, ...]:
        """Every goal, in the order of files and lines."""
        goals = (
            goal
            for file in self.files.values()
            for item in sorted(file.items(self.measure))
            for goal in sorted(file.goals([item], self.measure, self.scope))
        )
        return tuple(dict.fromkeys(goals))

    def covered(self, ran: TaskRan) -> frozenset[str]:
        """The goals that an attempt covers.

        Raises:
            CoverageError: it ran another source.
        """
        found: set[str] = set()
        for name, part in ran.files.items():
            file = self.files.get(name)
            if file is None:
                continue
            if part.digest is not None and part.digest != file.digest:
                raise CoverageError(f"{name} has changed since the attempts ran; run them again")
            found |= file.goals(file.ran(part, self.measure), self.measure, self.scope)
        return frozenset(found)

    def named(self, recorded: Sequence[str]) -> dict[str, str]:
        """Which of the recorded paths, maybe of another machine, are files of the source: path -> name."""
        by_path = {str(file.path): name for name, file in self.files.items()}
        by_path |= {str(file.path.resolve()): name for name, file in self.files.items()}
        found = {path: by_path[path] for path in recorded if path in by_path}
        taken = set(found.values())
        for path in recorded:
            if path in found:
                continue
            parts = path.replace("\\", "/").split("/")
            endings = ("/".join(parts[start:]) for start in range(len(parts)))
            name = next((ending for ending in endings if ending in self.files), None)
            if name is not None and name not in taken:
                found[path] = name
        return found
