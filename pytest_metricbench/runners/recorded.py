"""The ``recorded`` runner: attempts that exist already, made by another system and read from its files."""

import glob
import os
import shutil
import threading
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr, model_validator
from pydantic_core import PydanticCustomError

from pytest_metricbench.bases import Role, Runner
from pytest_metricbench.contracts import NOT_RECORDED, RESERVED_FILES, AttemptRequest, Json, Outcome
from pytest_metricbench.interop.recorded_cases import DIGEST_PARAM, RecordedSlots, build_case, lock_state
from pytest_metricbench.interop.recordings import (
    ReadForm,
    ReadOptions,
    Recording,
    RecordingError,
    Recordings,
    Treatment,
)
from pytest_metricbench.plain_files import open_regular, replace_file, strays
from pytest_metricbench.sources import CaseSource

FormName: TypeAlias = Literal["harbor", "nemo", "gym", "table"]
FORMS: Final[Mapping[FormName, str]] = {
    "harbor": "pytest_metricbench.interop.harbor.jobs",
    "nemo": "pytest_metricbench.interop.nemo.bundles",
    "gym": "pytest_metricbench.interop.gym.reading",
    "table": "pytest_metricbench.interop.table.reading",
}
"""Form -> the module whose ``read`` reads it; imported when an experiment has that form."""

Pattern: TypeAlias = Annotated[str, Field(min_length=1, max_length=1024)]
Patterns: TypeAlias = Annotated[list[Pattern], Field(min_length=1)]


_READING: Final = threading.RLock()
_NO_PARAMS: Final = {"message": "recorded attempts take no params", "remedy": "remove the key"}


class RecordedVariantParams(BaseModel):
    """What an attempt's variant carries: it is not for users to give."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    recorded: str = Field(description="Digest of what is recorded of the variant; written by the plugin.")

    @model_validator(mode="before")
    @classmethod
    def _are_not_given(cls, value: Any) -> Any:
        if isinstance(value, dict) and DIGEST_PARAM not in value:
            raise PydanticCustomError("params", "{message}; {remedy}", _NO_PARAMS)
        return value


class RecordedTaskParams(BaseModel):
    """Recorded attempts take no params."""

    model_config = ConfigDict(extra="forbid", frozen=True)


class RecordedCase(CaseSource):
    """One case, read from what another system left. Its fields are what decides what is found."""

    form: FormName
    read: list[str]
    baseline: str | None = None
    variants: str | None = None
    outcomes: Mapping[str, Treatment] = Field({})
    columns: Mapping[str, Json] = Field({})
    evidence: list[str] | None = None

    _case: str = PrivateAttr(default="")
    _read: dict[Path, tuple[Recordings, list[str]]] = PrivateAttr(default_factory=dict)
    _states: dict[Path, tuple[dict[str, Path], dict[str, Json]]] = PrivateAttr(default_factory=dict)
    _built: dict[Path, RecordedSlots] = PrivateAttr(default_factory=dict)

    @classmethod
    def of(cls, case: str, **keys: Any) -> "RecordedCase":
        """The source of the case ``case``; the id itself stands beside the expansion in the lock."""
        source = cls(**keys)
        source._case = case
        return source

    def expand(self, folder: Path) -> Sequence[Mapping[str, Any]]:
        """Tasks, variants and notes, as they were found.

        Raises:
            RecordingError: there is nothing, or something of it is broken.
        """
        return self.slots(folder).entries

    def files(self, folder: Path) -> Mapping[str, Path]:
        """The files that were read, where they are few; otherwise their digests are in :meth:`state`.

        Raises:
            RecordingError: they cannot be read.
        """
        return self._state(folder)[0]

    def state(self, folder: Path) -> Mapping[str, Any]:
        """Digests of what was read and of what evidence there is.

        Raises:
            RecordingError: it cannot be read.
        """
        return self._state(folder)[1]

    def slots(self, folder: Path) -> RecordedSlots:
        """The case that the recordings make; they are read once a process.

        Raises:
            RecordingError: there is nothing, or something of it is broken.
        """
        with _READING:  # threads of the executor ask at once, and one of them reads
            if folder not in self._built:
                self._built[folder] = build_case(self._recordings(folder)[0], self.baseline)
            return self._built[folder]

    def _state(self, folder: Path) -> tuple[dict[str, Path], dict[str, Json]]:
        if folder not in self._states:
            recordings, names = self._recordings(folder)
            self._states[folder] = lock_state(recordings, names)
        return self._states[folder]

    def _recordings(self, folder: Path) -> tuple[Recordings, list[str]]:
        if folder not in self._read:
            paths = find_paths(self.read, folder)
            options = ReadOptions(self._case, self.variants, self.outcomes, self.columns, self.evidence)
            read: ReadForm = import_module(FORMS[self.form]).read
            began = time.time_ns()
            try:
                found = read(paths, options)
                _refuse_changes(found.files, began)
            except OSError as error:
                raise RecordingError(f"{error.filename} cannot be read: {error.strerror}") from None
            self._read[folder] = found, list(paths)
        return self._read[folder]


def _refuse_changes(files: Mapping[str, Path], began: int) -> None:
    """Refuse files that somebody wrote since reading began: what was read of one may not be what is digested of it.

    Raises:
        RecordingError: there is one.
    """
    now = time.time_ns()
    for name, path in files.items():
        if began <= path.lstat().st_mtime_ns <= now:  # a time beyond now is that of another clock
            raise RecordingError(f"{name} changed while it was read", "wait until whatever writes it has ended")


class RecordedRunner(Runner):
    """Takes the attempts of a case from what another system left: nothing is run.

    Tasks, variants and the number of attempts are read from the files, written to the lock and reviewed there; which
    variant is the baseline is all that has to be said. What was planned there and left no result is missing here.
    """

    kind: Literal["recorded"] = "recorded"
    form: Annotated[FormName, Role.NEITHER] = Field(description="Whose files they are.")
    read: Annotated[Patterns | dict[str, Patterns], Role.NEITHER] = Field(
        description="Folders, files and globs to read, relative to this file or absolute; with several cases a mapping "
        "of case id to such a list."
    )
    baseline: Annotated[Pattern | dict[str, Pattern] | None, Role.NEITHER] = Field(
        None,
        description="Which variant is the baseline: its name there, or its id; a mapping of case id to name where they "
        "differ. Not needed where there is only one.",
    )
    variants: Annotated[Pattern | None, Role.NEITHER] = Field(
        None,
        description="How variants are told apart. harbor: agent (default) or folder; nemo: label:<key>, target or "
        "folder; gym: agent, folder or file.",
    )
    outcomes: Annotated[dict[str, Treatment], Role.NEITHER] = Field(
        {}, description="Type of an error -> what becomes of its attempts, over the form's own table."
    )
    columns: Annotated[dict[str, Json], Role.NEITHER] = Field(
        {}, description="table: which column is what. gym: fields that are scores or name the task."
    )
    evidence: Annotated[list[Pattern] | None, Role.NEITHER] = Field(
        None, description="Globs of the files to keep of each attempt, below its folder; * stands for slashes too."
    )

    makes_workspace: ClassVar[bool] = True
    variant_params: ClassVar[type[BaseModel] | None] = RecordedVariantParams
    task_params: ClassVar[type[BaseModel] | None] = RecordedTaskParams

    _sources: dict[str, tuple[RecordedCase, Path]] = PrivateAttr(default_factory=dict)

    @property
    def concurrent(self) -> bool:
        """Attempts are only read and copied."""
        return True

    def case_source(self, case: str, folder: Path) -> CaseSource:
        """The case as it was recorded.

        Raises:
            RecordingError: ``read`` is a mapping and has nothing for that case.
        """
        read = self.read
        if isinstance(read, dict):
            if case not in read:
                known = ", ".join(read)
                raise RecordingError(f"runner.read has nothing for the case {case!r}", f"it has {known}")
            read = read[case]
        source = RecordedCase.of(
            case,
            form=self.form,
            read=read,
            baseline=self.baseline.get(case) if isinstance(self.baseline, dict) else self.baseline,
            variants=self.variants,
            outcomes=self.outcomes,
            columns=self.columns,
            evidence=self.evidence,
        )
        self._sources[case] = source, folder
        return source

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        """The outcome that is recorded for the request's slot; its evidence is copied into the workspace."""
        source, folder = self._sources[request.case.id]
        try:
            recorded = source.slots(folder).slots.get((request.variant.id, request.task.id), ())
        except RecordingError as error:
            return Outcome.unmeasured(type(error).__name__, f"{error.message}; {error.remedy}".rstrip("; "), "setup")
        if request.attempt > len(recorded):
            count = "1 attempt is" if len(recorded) == 1 else f"{len(recorded)} attempts are"
            there = f"{count} recorded of {request.variant.id} at {request.task.id}"
            return Outcome.unmeasured(NOT_RECORDED, f"{there}, and this would be number {request.attempt}", "setup")
        recording = recorded[request.attempt - 1]
        return _with_evidence(recording, request) or recording.outcome


def _with_evidence(recording: Recording, request: AttemptRequest) -> Outcome | None:
    """Copy what an attempt left into its workspace; gives what is wrong where that is not possible."""
    for name, path in recording.files.items():
        if name not in RESERVED_FILES:
            try:
                _copy(path, request.workspace / name)
            except OSError as error:
                message = f"{recording.origin}: the evidence {name} cannot be copied: {error.strerror}"
                name_there = recording.outcome.trial_name
                return Outcome.unmeasured(type(error).__name__, message, "setup", trial_name=name_there)
    return None


def find_paths(patterns: Sequence[str], folder: Path) -> dict[str, Path]:
    """The folders and files that patterns name: name as written or matched -> where it is; each once.

    In the order of the patterns, sorted within a glob. ``**`` stands for any number of folders; hidden names are
    matched only by a pattern that begins with a dot.

    Raises:
        RecordingError: a pattern matches nothing, or a relative one leaves the experiment's folder.
    """
    found: dict[str, Path] = {}
    seen: set[str] = set()
    for pattern in patterns:
        for name in _matches(pattern, folder):
            path = folder / name
            real = os.path.realpath(path)
            if strays(name, path, folder):
                raise RecordingError(f"runner.read: {name!r} leaves the experiment's folder", "name it absolutely")
            if real not in seen:
                seen.add(real)
                found[name] = path
    return found


def _matches(pattern: str, folder: Path) -> list[str]:
    if "\0" in pattern:
        raise RecordingError("runner.read: a name has a null character, which no name can hold")
    literal = pattern.rstrip("/") or pattern
    if os.path.lexists(folder / literal):
        return [os.path.normpath(literal)]
    if not glob.has_magic(pattern):
        raise RecordingError(f"runner.read: {pattern!r} does not exist", f"it is looked for in {folder}")
    names = sorted(os.path.normpath(name) for name in glob.glob(literal, root_dir=folder, recursive=True))
    if not names:
        raise RecordingError(f"runner.read: nothing matches {pattern!r}", f"it is looked for in {folder}")
    return names


def _copy(source: Path, target: Path) -> None:
    """Copy a regular file in pieces, whatever its size.

    Raises:
        OSError: it is none, or the copy cannot be written.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with open_regular(source) as file, os.fdopen(replace_file(target), "wb") as copy:
        shutil.copyfileobj(file, copy, 1 << 20)
