"""The ``line`` coverage system: which share of a source's lines or branches the subset's baseline attempts run."""

import fnmatch
from collections.abc import Mapping, Sequence
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, ClassVar, Final, Literal

from pydantic import Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from pytest_metricbench.bases import CoverageSystem
from pytest_metricbench.contracts import CoverageError, CoverageRequest, EvidenceFile, Goals, Json, Score
from pytest_metricbench.coverage.line_data import DataError, TaskRan, kind_of, read_data
from pytest_metricbench.coverage.line_page import PAGE_FOLDER, write_page
from pytest_metricbench.coverage.line_source import Measure, MeasuredSource, Scope, SourceFile
from pytest_metricbench.digests import digest_value
from pytest_metricbench.messages import and_more
from pytest_metricbench.suite.places import SourcePlace

TESTS: Final = ("tests/*", "*/tests/*", "test_*.py", "*/test_*.py", "*_test.py", "conftest.py", "*/conftest.py")
"""What is left out of a source where ``omit`` does not say otherwise."""


class LineCoverage(CoverageSystem):
    """Share of a source's executable lines, or of its branches, that the subset's baseline attempts run.

    Reads what attempts of the runner ``suite`` leave (``reach.json``), and coverage.py's own files (``.coverage``,
    ``coverage.json``) of any other runner. A task without such a file makes the score null: what it runs is unknown.
    Only attempts of the baseline are looked at; which lines the mutants change plays no part.
    """

    kind: Literal["line"] = "line"
    source: Annotated[list[SourcePlace], Field(min_length=1)] = Field(
        description="What is measured: package folders or source trees, or installed packages by their names."
    )
    measured: Measure = Field("line", alias="measure", description="What is counted: lines, or branches.")
    scope: Scope = Field(
        "line", description="What one goal is: a line (or branch), or a function, file or package in which one ran."
    )
    include: list[str] = Field([], description="Only files that match one of these patterns: shop/*.")
    omit: list[str] = Field(list(TESTS), description="Files to leave out; the default leaves tests out.")
    html: bool | list[str] = Field(
        False, description="Write coverage.py's HTML report for every subset, or for those that are listed (or pool)."
    )

    isolated: ClassVar[bool] = False  # it reads evidence and nothing else, so nothing needs to be copied for it

    _read: dict[str, TaskRan | DataError] = PrivateAttr(default_factory=dict)
    """Digest of an evidence file -> what it says; most belong to many subsets."""
    _covered: dict[str, frozenset[str]] = PrivateAttr(default_factory=dict)

    @model_validator(mode="after")
    def _require_coverage(self) -> "LineCoverage":
        if find_spec("coverage") is None:
            raise PydanticCustomError(
                "line_coverage", "the coverage system line needs coverage.py; pip install 'pytest-metricbench[suite]'"
            )
        return self

    @model_validator(mode="after")
    def _require_files(self) -> "LineCoverage":
        everything = [name for place in self.source for name in place.files if name.endswith(".py")]
        for pattern in self.include:
            if everything and not any(fnmatch.fnmatchcase(name, pattern) for name in everything):
                raise PydanticCustomError(
                    "line_pattern",
                    "include: {pattern} matches no file of the source; its files are {files}",
                    {"pattern": repr(pattern), "files": ", ".join(everything[:5])},
                )
        if everything and not self._paths:
            raise PydanticCustomError("line_nothing", "include and omit leave no file of the source")
        return self

    @property
    def request_settings(self) -> Mapping[str, Json]:
        """What is counted, and the digest of the source in which it is."""
        digests = {name: file.digest for name, file in self._source.files.items()} if self._paths else {}
        settings: dict[str, Json] = {"measure": self.measured, "scope": self.scope, "source": digest_value(digests)}
        return settings | ({"html": self.html} if self.html else {})

    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        """Count what the subset's tasks run."""
        source = self._source
        if not source.universe:
            return Score(None, f"the source has no {self._unit}")
        ran = {task: self._ran(files) for task, files in request.files.items()}
        reason = self._unknown(ran)
        if reason is not None:
            return Score(None, reason)
        by_task = {
            task: tuple(sorted(frozenset().union(*(self._goals(digest, data) for digest, data in found.items()))))
            for task, found in ran.items()
        }
        covered = {goal for goals in by_task.values() for goal in goals}
        if self.html is True or (self.html and request.subset in self.html):
            title = f"{request.case.id}: {request.subset}"
            pages = {task: list(found.values()) for task, found in ran.items()}
            write_page(workspace / PAGE_FOLDER, title, source.files, pages)
        return Score(len(covered) / len(source.universe), goals=Goals(source.universe, by_task))

    # ------------------------------------------------ the source

    @cached_property
    def _paths(self) -> dict[str, Path]:
        found = {name: path for place in self.source for name, path in place.files.items() if name.endswith(".py")}
        return {
            name: path
            for name, path in sorted(found.items())
            if (not self.include or _matches(name, self.include)) and not _matches(name, self.omit)
        }

    @cached_property
    def _source(self) -> MeasuredSource:
        files = {name: SourceFile.read(name, path) for name, path in self._paths.items()}
        return MeasuredSource(files, self.measured, self.scope)

    @property
    def _unit(self) -> str:
        if self.scope == "line":
            return "executable lines" if self.measured == "line" else "branches"
        return f"{self.scope}s with {self.measured}{'s' if self.measured == 'line' else 'es'}"

    # ------------------------------------------------ the evidence

    def _ran(self, files: Sequence[EvidenceFile]) -> dict[str, TaskRan]:
        """What the attempts of a task ran: digest of a file -> what it says. Half a file of a died attempt is none."""
        found = {}
        for file in files:
            if kind_of(file) is None:
                continue
            if file.sha256 not in self._read:
                try:
                    self._read[file.sha256] = read_data(file, self._source.named)
                except DataError as error:
                    self._read[file.sha256] = error
            data = self._read[file.sha256]
            if isinstance(data, TaskRan):
                found[file.sha256] = data
            elif file.outcome == "scored":
                raise CoverageError(f"{file.path}: {data}")
        return found

    def _unknown(self, ran: Mapping[str, Mapping[str, TaskRan]]) -> str | None:
        """Why it is not known what was run."""
        without = sorted(task for task, found in ran.items() if not found)
        if without:
            return f"task {without[0]} left no reach.json, .coverage or coverage.json{_more(without)}"
        if self.measured == "branch":
            lines_only = sorted(
                task for task, found in ran.items() if not all(data.has_arcs for data in found.values())
            )
            if lines_only:
                return (
                    f"task {lines_only[0]} left lines without branches{_more(lines_only)}; run coverage with --branch"
                )
        return None

    def _goals(self, digest: str, data: TaskRan) -> frozenset[str]:
        if digest not in self._covered:
            self._covered[digest] = self._source.covered(data)
        return self._covered[digest]


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatch.fnmatchcase(name, pattern) for pattern in patterns)


def _more(tasks: Sequence[str]) -> str:
    return and_more(len(tasks) - 1, "task")
