"""Stores of several machines or CI shards united into one.

The union by key: a measured result beats an unmeasured one; two different measured results of one key are a conflict,
and nothing is written then.
"""

import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.contracts import (
    AttemptKey,
    AttemptRecord,
    CoverageKey,
    CoverageRecord,
    Json,
    attempt_name,
)
from pytest_metricbench.digests import digest_file
from pytest_metricbench.store.files import copy_file, files_match
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.layout import RECEIPT_FILE, Layout
from pytest_metricbench.store.reading import Store, read_description, read_store
from pytest_metricbench.store.writing import StoreWriter

MOST_CONFLICTS: Final = 20
"""Conflicts that an error names; of more it says how many."""


@dataclass(frozen=True, slots=True)
class Merged:
    """How many records were taken over, and from how many stores."""

    stores: int
    attempts: int
    coverage: int


def merge_stores(writer: StoreWriter, sources: Sequence[Path]) -> Merged:
    """Take over what other stores of the same experiment hold.

    Args:
        writer: the store that receives it, open for writing.
        sources: the folders of the other stores.

    Raises:
        StoreError: a source is no store, is damaged, is of another experiment, or disagrees with another one about an
            attempt or a coverage score. Nothing is written then.
    """
    contents = [_read(source) for source in sources]
    layouts = (writer.layout, *(other.layout for other in contents))
    _refuse_other_experiments([(layout.root, read_description(layout)) for layout in layouts])
    attempts, coverage = _union(writer.contents, contents)
    for source, record in attempts:
        known = writer.contents.attempts.get(record.key)
        _copy_files(source.left_by(record), writer.layout.left_by(record), record.files)
        writer.add_attempt(replace(record, supersedes=None if known is None else known.trial_id))
        if known is not None:
            writer.set_aside(known)
    for source, request in coverage:
        _copy_coverage(source, writer.layout, request)
        writer.add_coverage(request)
    return Merged(len(sources), len(attempts), len(coverage))


def store_in(folder: Path, name: str) -> Path:
    """The store that a folder is, or that it has under the experiment's name, as ``--metricbench-store`` makes them."""
    return folder / name if not Layout(folder).attempts.exists() and (folder / name).is_dir() else folder


def _read(source: Path) -> Store:
    if not Layout(source).attempts.is_file():
        raise StoreError(f"{source}: there is no store (no attempts.jsonl); name the folder that holds one")
    return read_store(source)


def _refuse_other_experiments(described: Sequence[tuple[Path, Mapping[str, Json] | None]]) -> None:
    known = [(root, description) for root, description in described if description is not None]
    if not known:
        return
    first_root, first = known[0]
    for root, description in known[1:]:
        if description.get("experiment") != first.get("experiment"):
            raise StoreError(
                f"{root} is of the experiment {description.get('experiment')!r}, {first_root} of "
                f"{first.get('experiment')!r}; only stores of one experiment can be merged"
            )
        changed = _differences(first.get("digests") or {}, description.get("digests") or {})
        if changed:
            raise StoreError(
                f"{root} and {first_root} were run from different inputs ({', '.join(changed[:5])}); run both from "
                "the same files, then merge"
            )


def _differences(one: Any, other: Any, name: str = "") -> list[str]:
    """The names of what differs between two descriptions' digests, to the depth where it does."""
    if one == other:
        return []
    if not isinstance(one, dict) or not isinstance(other, dict):
        return [name]
    found = []
    for key in sorted({*one, *other}):
        found += _differences(one.get(key), other.get(key), f"{name}.{key}" if name else key)
    return found


def _union(
    own: Store, others: Sequence[Store]
) -> tuple[list[tuple[Layout, AttemptRecord]], list[tuple[Layout, CoverageRecord]]]:
    """What to take over and from where.

    Raises:
        StoreError: conflicts, by name.
    """
    conflicts: list[str] = []
    attempts: dict[AttemptKey, tuple[Layout, AttemptRecord]] = {
        key: (own.layout, record) for key, record in own.attempts.items()
    }
    coverage: dict[CoverageKey, tuple[Layout, CoverageRecord]] = {
        key: (own.layout, record) for key, record in own.coverage.items()
    }
    for other in others:
        for key, record in other.attempts.items():
            there = attempts.get(key)
            if there is None or (there[1].outcome == "unmeasured" and record.outcome != "unmeasured"):
                attempts[key] = (other.layout, record)
            elif record.outcome != "unmeasured" and not _same(record, there[1]):
                conflicts.append(f"attempt {attempt_name(key)}: {there[0].root} and {other.layout.root}")
        for name, request in other.coverage.items():
            held = coverage.get(name)
            if held is None or (held[1].outcome == "failed" and request.outcome == "measured"):
                coverage[name] = (other.layout, request)
            elif request.outcome == "measured" and _question(request) != _question(held[1]):
                if (
                    held[1].value is None and request.value is not None
                ):  # of other evidence: measured again if it differs
                    coverage[name] = (other.layout, request)
            elif request.outcome == "measured" and _answer(request) != _answer(held[1]):
                conflicts.append(f"coverage {' '.join(name)}: {held[0].root} and {other.layout.root}")
    if conflicts:
        more = f"\nand {len(conflicts) - MOST_CONFLICTS} more" if len(conflicts) > MOST_CONFLICTS else ""
        listed = "\n".join(conflicts[:MOST_CONFLICTS])
        raise StoreError(f"two different results of one key; nothing was merged:\n{listed}{more}")
    taken = [(source, record) for source, record in attempts.values() if source.root != own.layout.root]
    measured = [(source, request) for source, request in coverage.values() if source.root != own.layout.root]
    return taken, measured


def _question(record: CoverageRecord) -> tuple[str, str]:
    return (record.request_digest, record.settings_digest)


def _answer(record: CoverageRecord) -> tuple[object, ...]:
    return (record.value, record.reason, record.goals)


def _same(one: AttemptRecord, other: AttemptRecord) -> bool:
    """Whether two records are of one result; what each superseded is a matter of its own store."""
    return replace(one, supersedes=None) == replace(other, supersedes=None)


def _copy_coverage(source: Layout, target: Layout, request: CoverageRecord) -> None:
    """Copy what a measured request left, with its receipt."""
    if request.outcome == "failed":
        return
    folder = source.coverage_folder(*request.key)
    there = {**request.files, **({RECEIPT_FILE: digest_file(folder / RECEIPT_FILE)} if _has_receipt(folder) else {})}
    _copy_files(folder, target.coverage_folder(*request.key), there)


def _has_receipt(folder: Path) -> bool:
    receipt = folder / RECEIPT_FILE
    return receipt.is_file() and not receipt.is_symlink()


def _copy_files(source: Path, target: Path, files: dict[str, str]) -> None:
    """Copy the files of a record, checked: what has changed since is not passed on as a result.

    What stands at the target already (a merge was interrupted, or an older result was there) makes way.
    """
    if not files_match(source, files):
        raise StoreError(f"{source}: files are missing or have changed since they were recorded; that store is damaged")
    try:
        if files and os.path.lexists(target) and not files_match(target, files):
            shutil.rmtree(target)
        for name in files:
            if not (target / name).exists():
                copy_file(source / name, target / name)
    except OSError as error:
        raise StoreError(f"{target}: cannot be written: {error.strerror}") from error
