"""A store as it was left: the last record of every key."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from pytest_metricbench.answers import read_json_file
from pytest_metricbench.contracts import (
    FORMAT_VERSION,
    AttemptKey,
    AttemptRecord,
    ContractError,
    CoverageKey,
    CoverageRecord,
    Json,
)
from pytest_metricbench.store.files import files_match
from pytest_metricbench.store.journal import StoreError, has_torn_line, read_lines
from pytest_metricbench.store.layout import Layout
from pytest_metricbench.store.links import refuse_links
from pytest_metricbench.store.records import RecordError, attempt_from_line, coverage_from_line, unsealed

Record = TypeVar("Record")

_DESCRIPTION_LIMIT: Final = 1 << 30


@dataclass(slots=True)
class Store:
    """A store as it was when it was read: of every key the record that counts.

    What :func:`open_store` gives. Reading locks and writes nothing, so it is allowed while a run writes the store; what
    arrives later is seen by :meth:`history` alone.
    """

    layout: Layout
    """The paths of its files."""
    attempts: dict[AttemptKey, AttemptRecord] = field(default_factory=dict)
    """Case, variant, task, slot -> the attempt's record; keys in the order in which they first arrived."""
    coverage: dict[CoverageKey, CoverageRecord] = field(default_factory=dict)
    """Case, coverage system, subset (or ``pool``) -> the record of the coverage request; likewise."""
    warnings: list[str] = field(default_factory=list)
    """What is wrong with it and does not make it unusable, in words."""
    superseded: set[str] = field(default_factory=set)
    """Names of the workspaces of attempts that no longer count."""

    def history(self) -> Iterator[AttemptRecord]:
        """Every record of an attempt that there ever was, superseded ones too, in the order of their arrival.

        The journal is read as it is now, a line at a time, so this takes little memory however many there are.

        Raises:
            StoreError: the journal is damaged, once the damaged line is reached, or cannot be read.
        """
        return _records(self.layout.attempts, attempt_from_line)

    def left_by(self, record: AttemptRecord | CoverageRecord) -> Path:
        """The folder of what an attempt or a coverage request left; there is none where it left nothing.

        What superseded attempts left is under ``stale/``, and that of failed requests under ``failed-<subset>-<n>``.
        """
        if isinstance(record, AttemptRecord):
            return self.layout.left_by(record)
        return self.layout.coverage_folder(*record.key)

    def is_intact(self, record: AttemptRecord | CoverageRecord) -> bool:
        """Whether every file that it left is still there and has its digest. All of them are read."""
        return files_match(self.left_by(record), record.files)

    def take(self, record: AttemptRecord) -> None:
        """Let a record be the one that counts, in this object alone: the journal is the writer's."""
        before = self.attempts.get(record.key)
        if before is not None:
            self.superseded.add(before.folder or before.trial_id)
        self.attempts[record.key] = record


def read_store(root: Path) -> Store:
    """Read a store; a folder that does not exist is an empty one.

    Raises:
        StoreError: a journal is damaged (other than a torn last line) or cannot be read, or the store is of another
            format version.
    """
    contents = Store(Layout(root))
    read_description(contents.layout)
    refuse_links(contents.layout)
    for attempt in _records(contents.layout.attempts, attempt_from_line):
        contents.take(attempt)
    for request in _records(contents.layout.coverage, coverage_from_line):
        contents.coverage[request.key] = request
    if not contents.attempts and contents.layout.summary.exists():
        contents.warnings.append(
            f"{contents.layout.attempts}: there is no attempt in it although the store has the summary of a whole run; "
            "all of them run again"
        )
    if not contents.coverage and next(contents.layout.root.glob("coverage/*/*/*"), None) is not None:
        contents.warnings.append(
            f"{contents.layout.coverage}: there is no result in it although the store has folders of requests; all of "
            "them are measured again"
        )
    for path in (contents.layout.attempts, contents.layout.coverage):
        if has_torn_line(path):
            contents.warnings.append(f"{path}: the last line is torn (a crash while it was written) and is dropped")
    return contents


def _records(path: Path, parse: Callable[[bytes], Record]) -> Iterator[Record]:
    for number, line in read_lines(path):
        try:
            yield parse(unsealed(line))
        except RecordError as error:
            raise StoreError(
                f"{path}:{number}: {error}; the store is damaged: mend or remove that line, or start over with "
                "--metricbench-fresh"
            ) from None


def read_description(layout: Layout) -> dict[str, Json] | None:
    """What ``experiment.json`` says was run; None where it was not written yet.

    Raises:
        StoreError: it cannot be read, or is of another format version.
    """
    try:
        description = read_json_file(layout.experiment, _DESCRIPTION_LIMIT)
    except ContractError as error:
        if not os.path.lexists(layout.experiment):
            return None
        raise StoreError(
            f"{layout.experiment}: cannot be read ({error}); remove it, it is written anew by each run"
        ) from None
    version = description.get("metricbench") if isinstance(description, dict) else None
    if not isinstance(description, dict) or version != FORMAT_VERSION:
        raise StoreError(
            f"{layout.experiment}: the store has format version {version!r}, this is a plugin for version "
            f"{FORMAT_VERSION}; use the version that wrote it, or start over with --metricbench-fresh"
        )
    return description
