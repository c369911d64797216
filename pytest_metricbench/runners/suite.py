"""The ``suite`` runner: tests of a Python project are the tasks, damaged versions of its source the mutants."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from pytest_metricbench.bases import Role, Runner
from pytest_metricbench.contracts import AttemptRequest, Json, Outcome, Seconds
from pytest_metricbench.digests import canonical_json
from pytest_metricbench.processes import MissingVariableError
from pytest_metricbench.runners.suite_tests import SuiteTests
from pytest_metricbench.sources import Source, SourceError
from pytest_metricbench.suite.attempt_maker import AttemptMaker
from pytest_metricbench.suite.mutations import MutantParams, MutationError, named_file, read_source
from pytest_metricbench.suite.outline import defined_tests, missing_test
from pytest_metricbench.suite.places import PlaceError, SourcePlace, TestsPlace
from pytest_metricbench.suite.processes import SuiteError
from pytest_metricbench.suite.project import Project

_AHEAD: Final = 512
"""Tests of a mutant that are run in a row at the most."""


class TestParams(BaseModel):
    """The ``params`` of a task."""

    __test__ = False  # no test class, whatever it is called

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    nodeid: str = Field(pattern=r"^[^:]+\.py::.+$", description="The test as pytest names it: tests/test_a.py::test_b.")


class SuiteRunner(Runner):
    """Runs one test against one version of the source, in a process of its own.

    A mutant is a patch or a replaced file; it is seen through an import hook and the files are never touched. A test
    that passes scores 1, one that fails 0. One whose file cannot be collected, whose set-up fails, or that ends its
    process or runs out of time, died. A test that never runs what a mutant changes is not run against it, unless
    ``exhaustive`` says so.
    """

    kind: Literal["suite"] = "suite"
    source: list[SourcePlace] = Field(
        min_length=1,
        description="What mutants change: package folders or source trees, or installed packages by their names.",
    )
    tests: TestsPlace = Field(description="The folder or file of the tests, or an installed package of tests.")
    pytest_args: list[str] = Field(
        [], description="Further options of pytest, beside those of the project's own files."
    )
    env: dict[str, str | None] = Field(
        {},
        description="Environment variables beside PATH, HOME and LANG. null takes the value from the environment.",
    )
    timeout: Annotated[Seconds, Role.NEITHER] = Field(
        60, description="Seconds that a test, and the collection of its file, may take."
    )
    slowdown: float = Field(
        10, ge=1, allow_inf_nan=False, description="How many times as long as the baseline a mutant may take."
    )
    memory: int | None = Field(
        2048, ge=64, description="MiB that a test may take beyond what pytest has; null: no limit."
    )
    recursion_limit: int | None = Field(None, ge=100, description="Python's recursion limit; null: Python's own.")
    exhaustive: bool = Field(False, description="Run every test against every mutant, whatever its lines are.")
    kill: Annotated[Literal["all", "first"], Role.NEITHER] = Field(
        "all", description="first: once a test kills a mutant, the others need not run. Only mutation scores are left."
    )
    preload: bool = Field(True, description="Import the dependencies of the tests once, not for every mutant.")

    makes_workspace: ClassVar[bool] = True
    baseline_first: ClassVar[bool] = True
    foresees: ClassVar[bool] = True
    variant_params: ClassVar[type[BaseModel] | None] = MutantParams
    task_params: ClassVar[type[BaseModel] | None] = TestParams
    task_sources: ClassVar[Sequence[type[Source]]] = (SuiteTests,)

    _project: Project = PrivateAttr()
    _attempts: AttemptMaker = PrivateAttr()
    _defined: dict[Path, frozenset[str] | None] = PrivateAttr(default_factory=dict)
    """Test file -> what :func:`.defined_tests` says of it."""
    _different: set[str] = PrivateAttr(default_factory=set)
    """Params of mutants that were found to differ from the baseline."""

    def model_post_init(self, context: Any, /) -> None:
        """Gather what is the same for all attempts; ``folder`` of the validation context is the experiment's."""
        folder = Path((context or {}).get("folder") or Path.cwd())
        self._project = Project(
            folder=folder,
            source=self.source,
            tests=self.tests,
            pytest_args=self.pytest_args,
            env=self.env,
            timeout=self.timeout,
            slowdown=self.slowdown,
            preload=self.preload,
            trace=find_spec("coverage") is not None,
        )
        self._attempts = AttemptMaker(
            self._project,
            recursion_limit=self.recursion_limit,
            memory=None if self.memory is None else self.memory << 20,
            exhaustive=self.exhaustive,
            first_only=self.kill == "first",
        )

    @property
    def project(self) -> Project:
        """What is tested, and the processes in which it is."""
        return self._project

    @model_validator(mode="after")
    def _require_coverage(self) -> "SuiteRunner":
        if (not self.exhaustive or self.kill == "first") and find_spec("coverage") is None:
            raise PydanticCustomError(
                "suite_coverage",
                "the runner suite needs coverage.py to know which lines a test runs; "
                "pip install 'pytest-metricbench[suite]', or write exhaustive: true and kill: all",
            )
        return self

    @property
    def time_limit(self) -> float | None:
        """Seconds after which a test is stopped at the latest."""
        return self.timeout

    # ------------------------------------------------ what collection asks

    def inherit(self, baseline: Mapping[str, Json], mutant: Mapping[str, Json]) -> Mapping[str, Json]:
        """A mutant's own params.

        Raises:
            SourceError: it changes nothing.
        """
        if not mutant.get("patch") and not mutant.get("replace"):
            remedy = "write params: {patch: file}, or params: {replace: {file of the source: file}}"
            raise SourceError("the mutant changes nothing", remedy)
        return mutant

    def shared_files(self, folder: Path) -> Mapping[str, Path]:
        """The source, and the files beside the tests that are no test modules: conftest files, helpers, data.

        Raises:
            SourceError: they are too many.
        """
        try:
            named = {"source": self._project.source_files, "tests": self.tests.support}
        except PlaceError as error:
            raise SourceError(str(error)) from None
        return {f"{kind}:{name}": path for kind, files in named.items() for name, path in files.items()}

    def variant_files(self, params: Mapping[str, Json], folder: Path) -> Mapping[str, Path]:
        """The files that make the mutant; the source is shared.

        Raises:
            SourceError: the mutant cannot be made, or is equal to the baseline.
        """
        checked = MutantParams.model_validate(dict(params))
        try:
            mutation = self._attempts.mutation(checked)
            named = [*([checked.patch_file] if checked.patch_file else []), *checked.replace.values()]
            if named and canonical_json(dict(params)) not in self._different:
                mutation.require_difference()  # generated ones were compared when they were made
                self._different.add(canonical_json(dict(params)))
            return {f"mutant:{name}": named_file(name, folder) for name in named}
        except MutationError as error:
            raise SourceError(error.message, error.remedy) from None

    def task_files(self, params: Mapping[str, Json], folder: Path) -> Mapping[str, Path]:
        """The test's file; what is no test module is shared.

        Raises:
            SourceError: there is no such file, or no such test in it.
        """
        nodeid = str(params["nodeid"])
        name = nodeid.partition("::")[0]
        path = self._project.file_of(nodeid)
        if path is None:
            raise SourceError(f"the test file {name} does not exist in the tests ({self.tests.written})")
        try:
            if path not in self._defined:
                self._defined[path] = defined_tests(read_source(path))
        except MutationError as error:
            raise SourceError(error.message) from None
        problem = missing_test(nodeid, self._defined[path])
        if problem is not None:
            raise SourceError(problem)
        return {name: path}

    def affinity(self, case: str, variant: str, task: str) -> str | None:
        """The mutant: its server is costly. Attempts of the baseline are spread."""
        return None if variant == "baseline" else f"{case}:{variant}"

    def close(self) -> None:
        """End all processes."""
        self._project.close()

    # ------------------------------------------------ attempts

    def foreseen(
        self, variant: Mapping[str, Json], task: Mapping[str, Json], baseline: Sequence[Path]
    ) -> Outcome | None:
        """``not_reached``, where the baseline has shown that the test never runs what leads to the change.

        Raises:
            MutationError: the mutant cannot be made.
        """
        return self._attempts.foreseen(variant, task, baseline)

    @property
    def ahead(self) -> int:
        """With ``kill: first`` as many as a mutant may have tests: they are run one after another in one process."""
        return _AHEAD if self.kill == "first" else 0

    def begin(self, request: AttemptRequest, workspace: Path) -> None:
        """Note an attempt of a mutant that comes next.

        Raises:
            LookupError: it can be judged alone only: it is the baseline's, or the baseline has not run the test yet.
        """
        self._attempts.expect(request, workspace)

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        """Run the test against the variant, unless it cannot tell it from the baseline."""
        try:
            return self._attempts.outcome(request, workspace)
        except (MutationError, MissingVariableError) as error:
            return Outcome.unmeasured(type(error).__name__, str(error), "setup")
        except (SuiteError, OSError) as error:
            self._project.close()  # the next attempt begins with new processes
            return Outcome.unmeasured(type(error).__name__, str(error), "setup")
        except BaseException:  # Ctrl-C, or a time-out of pytest's: in the middle of an answer nobody will read
            self._project.close()
            raise
