"""``tasks: {collect: tests/}``: the tests that pytest collects, as tasks of the ``suite`` runner."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self, TypeAlias

from pydantic import Field, PrivateAttr

from pytest_metricbench.definition.ids import derive_id
from pytest_metricbench.processes import MissingVariableError
from pytest_metricbench.sources import Source, SourceError
from pytest_metricbench.suite.mutations import MutationError
from pytest_metricbench.suite.outline import outlines
from pytest_metricbench.suite.places import PlaceError
from pytest_metricbench.suite.processes import SuiteError
from pytest_metricbench.suite.project import Project

_Place: TypeAlias = Annotated[str, Field(min_length=1)]


class SuiteTests(Source):
    """Tests collected once and fixed in the lock; those that are skipped or expected to fail are left out."""

    collect: _Place | Annotated[list[_Place], Field(min_length=1)] = Field(
        description="The folder or file of tests, as under `tests` of the runner or in it; or a list of them."
    )
    select: str | None = Field(None, min_length=1, description="A -k expression of pytest: parts of names, and marks.")
    marks: str | None = Field(None, min_length=1, description="A -m expression of pytest: marks only.")

    _project: Project | None = PrivateAttr(None)

    def bound(self, runner: Any) -> Self:
        """The source with the project of its runner."""
        bound = self.model_copy()
        bound._project = runner.project
        return bound

    def expand(self, folder: Path) -> Sequence[Mapping[str, Any]]:
        """A task for each test, in pytest's order.

        Raises:
            SourceError: collecting fails, or finds no test.
        """
        project, paths = self._known()
        options = [*(["-k", self.select] if self.select else []), *(["-m", self.marks] if self.marks else [])]
        try:
            listed = project.listing(paths, options)
        except (SuiteError, MissingVariableError) as error:
            raise SourceError(str(error), "its tests must run without a mutant first") from None
        nodeids = [self._nodeid(project, test) for test in listed if not test["idle"]]
        if not nodeids:
            selected = f" that {' '.join(options)} selects" if options else ""
            idle = f": all {len(listed)} are skipped or expected to fail" if listed else ""
            raise SourceError(
                f"there is no test in {' or '.join(self._named)}{selected}{idle}", "name a folder with tests"
            )
        entries = []
        for nodeid in dict.fromkeys(nodeids):
            task, name = derive_id(nodeid)
            entries.append({"id": task, "name": name, "params": {"nodeid": nodeid}})
        return entries

    def state(self, folder: Path) -> Mapping[str, Any]:
        """The outline of the test files: names, marks and parameters of tests, not what they do.

        Raises:
            SourceError: a file cannot be read.
        """
        project, paths = self._known()
        shared = {name: file for name, file in project.tests.files.items() if file.name == "conftest.py"}
        modules = {
            name: file
            for name, file in project.tests.modules.items()
            if any(file == path or path in file.parents for path in paths)
        }
        try:
            return {"tests": outlines(modules | shared)}
        except (MutationError, PlaceError) as error:
            raise SourceError(str(error)) from None

    @property
    def _named(self) -> Sequence[str]:
        return [self.collect] if isinstance(self.collect, str) else self.collect

    def _known(self) -> tuple[Project, Sequence[Path]]:
        project = self._project
        if project is None:
            raise SourceError("tests are collected by the runner suite only")
        return project, [_path_of(name, project) for name in self._named]

    @staticmethod
    def _nodeid(project: Project, test: Mapping[str, Any]) -> str:
        path = Path(test["file"])
        base = next((base for base in (project.folder, project.tests.base) if path.is_relative_to(base)), None)
        if project.tests.installed or base is None:
            base = project.tests.base
        return f"{Path(os.path.relpath(path, base)).as_posix()}::{test['test']}"


def _path_of(name: str, project: Project) -> Path:
    if name.rstrip("/") == project.tests.written.rstrip("/") and project.tests.path.exists():
        return project.tests.path
    bases = (project.folder, project.tests.base, project.tests.path)
    found = [Path(os.path.abspath(base / name)) for base in bases]
    path = next((path for path in found if path.exists()), None)
    if path is None:
        raise SourceError(f"{name!r} does not exist", f"it is looked for in {project.folder}")
    if not project.tests.holds(path):
        raise SourceError(
            f"{name!r} is outside the tests of the runner ({project.tests.written})",
            "widen `tests` of the runner, or collect a part of them",
        )
    return path
