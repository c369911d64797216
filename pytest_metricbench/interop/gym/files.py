"""The files of Gym runs: which belong together, by the stem of the rollouts file."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Final

from pytest_metricbench.interop.recordings import RecordingError

SUFFIX: Final = ".jsonl"
FAILURES: Final = "_failures"
PLANNED: Final = "_materialized_inputs"
_DERIVED: Final = ("_reward_profiling",)
"""Of the same folder and suffix, and no rollouts: ``gym eval profile`` writes it."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """One run: its rollouts and what Gym wrote beside them. Each is None where it is not there."""

    name: str
    """The rollouts file as reports show it."""
    rollouts: Path | None
    failures: Path | None
    planned: Path | None
    """The materialized inputs: a row for every rollout that was to be made."""

    @property
    def folder(self) -> str:
        """The folder as reports show it; empty for a file that is named without one."""
        return str(PurePosixPath(self.name).parent).removeprefix(".")

    @property
    def stem(self) -> str:
        """What the file's name says beside its suffix."""
        return PurePosixPath(self.name).stem

    def beside(self, suffix: str) -> str:
        """The name of a file beside the rollouts, as reports show it."""
        return str(PurePosixPath(self.name).with_name(f"{self.stem}{suffix}{SUFFIX}"))

    @property
    def files(self) -> dict[str, Path]:
        """Those that are there, by the name that reports show."""
        named = {self.name: self.rollouts, self.beside(FAILURES): self.failures, self.beside(PLANNED): self.planned}
        return {name: path for name, path in named.items() if path is not None}


def find_runs(paths: Mapping[str, Path]) -> list[RunFiles]:
    """The runs below files and folders, in the order given and by name within a folder; each once.

    Raises:
        RecordingError: a folder without rollouts, or a file beside rollouts in their place.
    """
    runs: dict[Path, RunFiles] = {}
    for name, path in paths.items():
        for run in _in_folder(name, path) if path.is_dir() else [_of_file(name, path)]:
            place = path if path.is_dir() else path.parent
            runs.setdefault(Path(os.path.abspath(place)) / PurePosixPath(run.name).name, run)
    return list(runs.values())


def _in_folder(name: str, folder: Path) -> Iterator[RunFiles]:
    try:
        names = sorted(entry.name for entry in os.scandir(folder) if not entry.is_dir(follow_symlinks=False))
    except OSError as error:
        raise RecordingError(f"{name} cannot be read: {error.strerror}") from None
    stems = {_stem_of(file) for file in names if file.endswith(SUFFIX) and not file.startswith(".")} - {None}
    if not stems:
        raise RecordingError(f"{name} has no rollouts: no file *{SUFFIX}", "name a rollouts file, or its folder")
    for stem in sorted(map(str, stems)):
        present = {file: folder / file for file in names if file.startswith(stem)}
        yield _run(str(PurePosixPath(name) / f"{stem}{SUFFIX}"), stem, present)


def _stem_of(file: str) -> str | None:
    stem = file.removesuffix(SUFFIX)
    if stem.endswith(_DERIVED):
        return None
    return stem.removesuffix(FAILURES).removesuffix(PLANNED) or None


def _of_file(name: str, path: Path) -> RunFiles:
    stem = path.stem
    for suffix, what in ((FAILURES, "the failures"), (PLANNED, "the materialized inputs")):
        if stem.endswith(suffix):
            other = f"{stem.removesuffix(suffix)}{SUFFIX}"
            raise RecordingError(f"{name} holds {what} of a run", f"name its rollouts, {other}; the rest is found")
    beside = {f"{stem}{SUFFIX}": Path(os.path.realpath(path))}  # a link that the experiment names is followed
    for suffix in (FAILURES, PLANNED):
        sibling = path.with_name(f"{stem}{suffix}{SUFFIX}")
        if os.path.lexists(sibling):
            beside[sibling.name] = sibling
    return _run(name, stem, beside)


def _run(name: str, stem: str, present: Mapping[str, Path]) -> RunFiles:
    found = (present.get(f"{stem}{suffix}{SUFFIX}") for suffix in ("", FAILURES, PLANNED))
    return RunFiles(name, *found)


def short_names(names: Sequence[str]) -> dict[str, str]:
    """Each name of a path by its last part, or whole where two would be called the same."""
    last = {name: PurePosixPath(name).name or name for name in names}
    shared = {short for short, count in Counter(last.values()).items() if count > 1}
    return {name: name if short in shared else short for name, short in last.items()}
