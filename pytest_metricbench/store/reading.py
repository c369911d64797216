"""A store as it was left: the last record of every key."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from pytest_metricbench.answers import read_json_file
from pytest_metricbench.contracts import FORMAT_VERSION, AttemptRecord, ContractError, CoverageRecord
from pytest_metricbench.store.journal import StoreError, has_torn_line, read_lines
from pytest_metricbench.store.layout import Layout
from pytest_metricbench.store.links import refuse_links
from pytest_metricbench.store.records import RecordError, attempt_from_line, coverage_from_line, unsealed

Record = TypeVar("Record")

_DESCRIPTION_LIMIT: Final = 1 << 30


@dataclass(slots=True)
class Contents:
    """What a store holds: of each key the record that counts."""

    layout: Layout
    attempts: dict[tuple[str, str, str, int], AttemptRecord] = field(default_factory=dict)
    coverage: dict[tuple[str, str, str], CoverageRecord] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    superseded: set[str] = field(default_factory=set)
    """Names of the workspaces of attempts that no longer count."""

    def take(self, record: AttemptRecord) -> None:
        """Let an attempt's record be the one that counts."""
        before = self.attempts.get(record.key)
        if before is not None:
            self.superseded.add(before.folder or before.trial_id)
        self.attempts[record.key] = record


def read_store(root: Path) -> Contents:
    """Read a store; a folder that does not exist is an empty one.

    Raises:
        StoreError: a journal is damaged (other than a torn last line) or cannot be read, or the store is of another
            format version.
    """
    contents = Contents(Layout(root))
    _check_format(contents.layout)
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


def _check_format(layout: Layout) -> None:
    try:
        description = read_json_file(layout.experiment, _DESCRIPTION_LIMIT)
    except ContractError as error:
        if not os.path.lexists(layout.experiment):
            return
        raise StoreError(
            f"{layout.experiment}: cannot be read ({error}); remove it, it is written anew by each run"
        ) from None
    version = description.get("metricbench") if isinstance(description, dict) else None
    if version != FORMAT_VERSION:
        raise StoreError(
            f"{layout.experiment}: the store has format version {version!r}, this is a plugin for version "
            f"{FORMAT_VERSION}; use the version that wrote it, or start over with --metricbench-fresh"
        )
