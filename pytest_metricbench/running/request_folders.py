"""The folder in which one coverage request is measured: evidence copied into it, looked over, and kept in the store.

Whatever a system does to the folder is looked at with suspicion and without following links: it may be full of them,
or be one.
"""

import errno
import json
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

from pytest_metricbench.answers import GOALS_LIMIT, read_json_file
from pytest_metricbench.contracts import (
    FORMAT_VERSION,
    GOALS_FILE,
    REQUEST_FILE,
    RESPONSE_FILE,
    ContractError,
    CoverageRecord,
    CoverageRequest,
    EvidenceFile,
)
from pytest_metricbench.digests import digest_file
from pytest_metricbench.plain_files import replace_file
from pytest_metricbench.store.files import copy_file, digest_folder
from pytest_metricbench.store.journal import StoreError
from pytest_metricbench.store.layout import RECEIPT_FILE, Layout
from pytest_metricbench.store.records import goals_to_json


def write_request(request: CoverageRequest, workspace: Path) -> None:
    """Write ``request.json``.

    Raises:
        OSError: the folder cannot be written.
    """
    _write_json(workspace / REQUEST_FILE, request.to_json())


def copy_evidence(request: CoverageRequest, workspace: Path) -> tuple[CoverageRequest, list[str]]:
    """The request with copies of its evidence below the folder, and what is wrong with the evidence already."""
    copied: dict[str, tuple[EvidenceFile, ...]] = {}
    for task, files in request.files.items():
        copies = []
        for file in files:
            target = workspace / file.below_evidence(task)
            try:
                copy_file(file.path, target)
            except OSError as error:
                return request, [f"the evidence {file.path} cannot be copied: {error.strerror}"]
            copies.append(replace(file, path=target))
        copied[task] = tuple(copies)
    given = replace(request, files=copied)
    there = digest_folder(workspace)
    return given, [f"{problem}, since its attempt ended" for problem in evidence_problems(given, there)]


def what_is_left(workspace: Path) -> tuple[dict[str, str], list[str]]:
    """Relative path -> digest of every regular file that a system left, and why it cannot be told."""
    if os.path.islink(workspace) or not os.path.isdir(workspace):
        became = "is gone" if not os.path.lexists(workspace) else "was replaced by something else"
        return {}, [f"the folder of the request {became}"]
    if os.path.lexists(workspace / RECEIPT_FILE):
        return {}, [f"the system left a {RECEIPT_FILE}; that name is for the receipt of its result"]
    return digest_folder(workspace), []


def evidence_problems(request: CoverageRequest, left: dict[str, str]) -> list[str]:
    """What became of the supplied evidence; new files are the system's own and fine."""
    problems = []
    for name, digest in _supplied(request):
        if name not in left:
            problems.append(f"the evidence {name} is gone")
        elif left[name] != digest:
            problems.append(f"the evidence {name} was changed")
    return problems


def keep(record: CoverageRecord, request: CoverageRequest, workspace: Path, layout: Layout) -> CoverageRecord:
    """Move the folder into the store, without the evidence, which is there already, and with a receipt.

    ``record.files`` are the files that the system left; those of the kept record are the files that are kept.

    Raises:
        StoreError: the store cannot be written.
        OSError: the folder cannot be written.
    """
    supplied = {name for name, _ in _supplied(request)}
    files = {name: digest for name, digest in record.files.items() if name not in supplied}
    _remove_files(workspace, supplied)
    if RESPONSE_FILE not in files:
        answer = {"value": record.value} if record.value is not None else {"value": None, "reason": record.reason}
        written = {RESPONSE_FILE: answer}
        if record.goals is not None:
            written[GOALS_FILE] = goals_to_json(record.goals)
        for name, value in written.items():
            _write_json(workspace / name, value)
            files[name] = digest_file(workspace / name)
    kept = replace(record, files=files)
    _write_json(workspace / RECEIPT_FILE, _receipt(kept))
    _move(workspace, layout.coverage_folder(*record.key))
    return kept


def receipt_holds(folder: Path, record: CoverageRecord) -> bool:
    """Whether the receipt in a kept folder is that of this record."""
    try:
        return bool(read_json_file(folder / RECEIPT_FILE, GOALS_LIMIT) == _receipt(record))
    except ContractError:
        return False


def _receipt(record: CoverageRecord) -> dict[str, object]:
    """What proves that a kept answer belongs to its request: digests of request, settings and every saved file."""
    return {
        "metricbench": FORMAT_VERSION,
        "request": record.request_digest,
        "settings": record.settings_digest,
        "files": record.files,
    }


def keep_failed(record: CoverageRecord, workspace: Path, layout: Layout) -> CoverageRecord:
    """Move the whole folder of a request that failed into the store, where its record says it is.

    Raises:
        StoreError: the store cannot be written.
    """
    folder = layout.failed_coverage_folder(*record.key)
    _move(workspace, folder)
    return replace(record, files={}, error=f"{record.error}\nkept in {folder}")


def discard(workspace: Path) -> None:
    """Remove the folder, or what stands in its place, as far as that is possible."""
    with suppress(OSError, RecursionError):  # a tree can be too deep for either
        _remove(workspace)


def _supplied(request: CoverageRequest) -> Iterator[tuple[str, str]]:
    """The evidence of a request as (path below its folder, digest)."""
    for task, files in request.files.items():
        for file in files:
            yield file.below_evidence(task), file.sha256


def _remove_files(workspace: Path, names: set[str]) -> None:
    """Remove files below the folder, and the folders that are empty then."""
    for name in names:
        with suppress(OSError):
            (workspace / name).unlink()
    folders = {folder for name in names for folder in Path(name).parents if folder != Path()}
    for folder in sorted(folders, key=lambda folder: len(folder.parts), reverse=True):
        with suppress(OSError):
            (workspace / folder).rmdir()


def _move(workspace: Path, target: Path) -> None:
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        _remove(target)
        if os.path.islink(workspace) or not os.path.isdir(workspace):
            target.mkdir()  # nothing is left to keep
            return
        try:
            os.rename(workspace, target)
        except OSError as error:
            if error.errno != errno.EXDEV:
                raise
            _copy_tree(workspace, target)
    except OSError as error:
        raise StoreError(
            f"{target}: cannot be written: {error.strerror}; make room or pass a folder that can be written with "
            "--metricbench-store"
        ) from error


def _copy_tree(source: Path, target: Path) -> None:
    """Copy folders, files and links as they are; pipes, sockets, devices and paths of too great length are left out."""
    target.mkdir()
    waiting = [(source, target)]
    while waiting:
        folder, copy = waiting.pop()
        with _too_long_left_out():
            for entry in list(os.scandir(folder)):
                with _too_long_left_out():
                    if _copy_entry(entry, copy / entry.name):
                        waiting.append((Path(entry.path), copy / entry.name))


def _copy_entry(entry: "os.DirEntry[str]", target: Path) -> bool:
    """Copy what is no folder and make what is one; gives whether it is."""
    if entry.is_symlink():
        os.symlink(os.readlink(entry.path), target)
    elif entry.is_dir():
        target.mkdir()
        return True
    elif entry.is_file():
        copy_file(Path(entry.path), target)
    return False


@contextmanager
def _too_long_left_out() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.ENAMETOOLONG:
            raise


def _remove(path: Path) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _write_json(path: Path, value: object) -> None:
    _remove(path)
    with os.fdopen(replace_file(path), "w", encoding="utf-8") as file:
        json.dump(value, file, indent=1)
