"""The files that a trial of an evaluator bundle left, as far as they are in the bundle.

A trial names them by ``evidence.descriptors``: references relative to the bundle, or absolute as they were on the
machine that ran it. Nothing outside the bundle is ever taken, whatever a reference or a link says.
"""

import fnmatch
import os
import stat
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.atif.trace import TRACE_NAME

FILES_LIMIT: Final = 10_000
"""Files of one trial that globs are held against."""


def evidence_files(row: Mapping[str, Any], bundle: Path, globs: Sequence[str] | None) -> dict[str, Path]:
    """What to keep of a trial: name in its workspace -> where it is now.

    Its trace (format ATIF) is always kept, as ``trajectory.json`` whatever it is called, since coverage systems look
    for that name; further ones as ``trajectory-2/trajectory.json`` and so on.

    Args:
        row: the trial.
        bundle: its folder.
        globs: of further files, held against their paths below the trial's own folder (Harbor's ``trial_dir``) or
            else below the bundle; None: no further files.
    """
    descriptors = _descriptors(row)
    if not descriptors:
        return {}
    root = os.path.realpath(bundle)
    kept: dict[str, Path] = {}
    traces: dict[str, None] = {}
    for descriptor in descriptors.values():
        if _is_trace(descriptor) and (found := _inside(root, descriptor.get("ref"))) is not None and _is_file(found):
            traces.setdefault(found)
    for number, trace in enumerate(traces, 1):
        kept[TRACE_NAME if number == 1 else f"trajectory-{number}/{TRACE_NAME}"] = Path(trace)
    if globs:
        kept.update(
            (name, path)
            for name, path in _matching(root, descriptors, globs)
            if str(path) not in traces and name not in kept
        )
    return kept


def _descriptors(row: Mapping[str, Any]) -> Mapping[str, Mapping[str, Any]]:
    evidence = row.get("evidence")
    found = evidence.get("descriptors") if isinstance(evidence, dict) else None
    if not isinstance(found, dict):
        return {}
    return {name: found[name] for name in sorted(found) if isinstance(found[name], dict)}


def _is_trace(descriptor: Mapping[str, Any]) -> bool:
    return descriptor.get("kind") == "trace" and descriptor.get("format") == "atif"


def _matching(
    root: str, descriptors: Mapping[str, Mapping[str, Any]], globs: Sequence[str]
) -> Iterator[tuple[str, Path]]:
    trial_dir = _inside(root, descriptors["trial_dir"].get("ref")) if "trial_dir" in descriptors else None
    base = root if trial_dir is None else trial_dir
    seen: set[str] = set()
    for descriptor in descriptors.values():
        place = _inside(root, descriptor.get("ref"))
        for path in _files_at(place) if place is not None else ():
            if path in seen or len(seen) >= FILES_LIMIT:
                continue
            seen.add(path)
            name = os.path.relpath(path, base if path.startswith(base + os.sep) else root)
            if any(fnmatch.fnmatchcase(name, glob) for glob in globs):
                yield name, Path(path)


def _files_at(place: str) -> Iterator[str]:
    if _is_file(place):
        yield place
        return
    for folder, folders, names in os.walk(place):
        folders.sort()
        for name in sorted(names):
            if _is_file(path := os.path.join(folder, name)):
                yield path


def _inside(root: str, reference: object) -> str | None:
    """Where a reference leads to, if that exists and is below the bundle with every link resolved.

    A bundle may have been moved: an absolute reference that is not below it is looked for from its ``evidence`` part.
    """
    if not isinstance(reference, str) or not reference or "\0" in reference:
        return None
    candidates = [os.path.join(root, reference)]
    parts = Path(reference).parts
    if "evidence" in parts:
        candidates.append(os.path.join(root, *parts[parts.index("evidence") :]))
    for candidate in candidates:
        found = os.path.realpath(candidate)
        if found.startswith(root + os.sep) and os.path.lexists(found):
            return found
    return None


def _is_file(path: str) -> bool:
    try:
        return stat.S_ISREG(os.lstat(path).st_mode)
    except OSError:
        return False
