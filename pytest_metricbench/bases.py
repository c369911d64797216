"""The two classes that users extend: how an attempt is run, and how a subset's coverage is measured."""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from enum import Enum
from pathlib import Path
from typing import ClassVar

from pydantic import BaseModel, ConfigDict

from pytest_metricbench.contracts import AttemptRequest, CoverageRequest, Json, Outcome, Score
from pytest_metricbench.sources import CaseSource, Source


class Role(Enum):
    """What a field of a runner shapes, given as ``Annotated[type, Role.X]``; a field without one shapes results."""

    RESULT = "result"
    """Part of the attempt's fingerprint: a change makes attempts stale."""
    VERIFIER = "verifier"
    """Part of the verifier's digest: a change scores kept attempts again."""
    NEITHER = "neither"
    """Part of no digest: time-outs, retries, how many at a time."""


class Runner(BaseModel, ABC):
    """How an attempt is run. Its fields are the keys of the experiment's ``runner``.

    A subclass names itself with ``kind: Literal["name"] = "name"`` and implements :meth:`run`. Fields of the types
    ``Argv`` (:mod:`pytest_metricbench.argv`) and ``Target`` (:mod:`pytest_metricbench.targets`) are checked
    when the file is collected, and the files they name become part of the fingerprint. A :class:`Role` in a field's
    annotation says which digest the field belongs to.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    """The name that the experiment's ``runner: {kind: ...}`` picks it by."""

    makes_workspace: ClassVar[bool] = False
    """True where the runner makes its workspace itself, when it needs one."""
    baseline_first: ClassVar[bool] = False
    """True where an attempt of a mutant needs the baseline's result of its task before it starts."""
    foresees: ClassVar[bool] = False
    """True where :meth:`foreseen` may know what becomes of a mutant's attempt."""
    variant_params: ClassVar[type[BaseModel] | None] = None
    """The form of the ``params`` of the baseline and of each mutant as written; None: whatever there is."""
    task_params: ClassVar[type[BaseModel] | None] = None
    """The form of a task's ``params``; None: whatever there is."""
    task_sources: ClassVar[Sequence[type[Source]]] = ()
    """What may stand under ``tasks`` in place of a list: the one whose first field is a key there is taken."""
    mutant_sources: ClassVar[Sequence[type[Source]]] = ()
    """What may stand under ``mutants`` in place of a list, likewise."""

    @property
    def time_limit(self) -> float | None:
        """Seconds after which an agent is stopped, kept with an attempt that died of it; None without a limit."""
        return None

    def inherit(self, baseline: Mapping[str, Json], mutant: Mapping[str, Json]) -> Mapping[str, Json]:
        """The params of a mutant, given the baseline's and its own as written. The default: its own stand alone."""
        return mutant

    def shared_files(self, folder: Path) -> Mapping[str, Path]:
        """The files that every attempt depends on, whatever its params: name as in fingerprints -> where it is.

        A name must be the same wherever the experiment's ``folder`` is; what stands before a last ``:`` in it is not
        shown to users.

        Raises:
            SourceError: one is missing.
        """
        return {}

    def variant_files(self, params: Mapping[str, Json], folder: Path) -> Mapping[str, Path]:
        """The files that a variant's (inherited) params name: name as in its fingerprint -> where it is.

        A name must be the same wherever the experiment's ``folder`` is. Called when the file is collected too.

        Raises:
            SourceError: one is missing.
        """
        return {}

    def variant_warnings(self, params: Mapping[str, Json], folder: Path) -> Sequence[str]:
        """What is allowed in a variant's (inherited) params and probably not meant; told when the file is collected."""
        return ()

    def task_files(self, params: Mapping[str, Json], folder: Path) -> Mapping[str, Path]:
        """The files that a task's params name, likewise.

        Raises:
            SourceError: one is missing.
        """
        return {}

    def case_source(self, case: str, folder: Path) -> CaseSource | None:
        """The whole of a case, where its attempts exist already and its tasks and variants are read from them.

        Raises:
            SourceError: there is nothing for that case.
        """
        return None

    def foreseen(
        self, variant: Mapping[str, Json], task: Mapping[str, Json], baseline: Sequence[Path]
    ) -> Outcome | None:
        """What becomes of a mutant's attempt that need not be made, told before anything is prepared for it.

        It is asked of attempts that would have to be made, where :attr:`foresees` is true. Raising is no fault of the
        attempt: it is made then.

        Args:
            variant: the mutant's (inherited) params; they belong to all its attempts and must not be changed.
            task: the task's, likewise.
            baseline: folders that the baseline's attempts at the task left, where ``baseline_first`` is true.

        Returns:
            ``not_reached`` or ``not_needed``; None (the default): the attempt is made.
        """
        return None

    @property
    def ahead(self) -> int:
        """How many attempts :meth:`begin` may begin before their turn; 0 (the default): none."""
        return 0

    def begin(self, request: AttemptRequest, workspace: Path) -> None:
        """Begin an attempt without waiting for it; :meth:`run` is called with the same arguments when its turn comes.

        Raising is no fault of the attempt: :meth:`run` then begins it.
        """

    def close(self) -> None:
        """End what was begun and never asked for. Called once, when no further attempt will be run."""

    @property
    def concurrent(self) -> bool:
        """Whether several attempts may be run at a time, in threads of one process; False is the default.

        :meth:`run` and :meth:`rescore` are then called in threads that are not the main one.
        """
        return False

    @property
    def serial_advice(self) -> str:
        """What to do where several attempts at a time are wanted and may not be run so, for an error message."""
        return "run them in processes, with pytest -n (pytest-xdist)"

    @abstractmethod
    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        """Run one attempt and say what became of it.

        Raising counts as ``unmeasured`` with phase ``setup``: what an agent does wrong must be returned as died.
        """

    def rescore(self, request: AttemptRequest, workspace: Path) -> Outcome | None:
        """Score what an earlier attempt left in ``workspace`` with today's verifier, without running the agent.

        None (the default): this runner cannot, and the attempt runs again.
        """
        return None

    def affinity(self, case: str, variant: str, task: str) -> str | None:
        """A key that attempts with a costly set-up in common share: they go to one worker where that costs nothing."""
        return None


class CoverageSystem(BaseModel, ABC):
    """How a subset's coverage is measured. Its fields are the keys of an entry of ``coverage`` (without ``id``).

    A subclass names itself with ``kind: Literal["name"] = "name"`` and implements :meth:`measure`.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    kind: str
    """The name that ``kind`` of an entry of ``coverage`` picks it by."""

    concurrent: ClassVar[bool] = False
    """True where several requests may be measured at a time, in threads."""
    isolated: ClassVar[bool] = True
    """True where evidence is copied for each request and checked afterwards; False only for code that reads."""

    @property
    def request_settings(self) -> Mapping[str, Json]:
        """The settings that a request carries to the system."""
        return {}

    @abstractmethod
    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        """Compute the score of one request.

        ``workspace`` is a private folder that holds ``request.json``; what is left in it is kept.

        Raises:
            CoverageError: the request failed. Anything else that is raised fails it too, with its traceback kept.
        """
