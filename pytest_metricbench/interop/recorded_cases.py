"""A case made of recordings: ids, the baseline, the entries of the lock, and which recording answers which slot."""

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.experiment import BASELINE
from pytest_metricbench.definition.ids import derive_id
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.digests import digest_file, digest_value
from pytest_metricbench.interop.recordings import RecordedTask, RecordedVariant, Recording, RecordingError, Recordings
from pytest_metricbench.messages import did_you_mean, joined
from pytest_metricbench.score_values import value_to_json, value_type

DIGEST_PARAM: Final = "recorded"
"""The param of a variant that holds the digest of its recordings: what is stored of it is stale when they change."""
_FILES_LISTED: Final = 24
"""Files whose digests stand in the lock one by one; more of them stand there as one digest for each thing read."""
_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class RecordedSlots:
    """A case of recordings, ready to be listed and to be answered from."""

    entries: tuple[Mapping[str, Any], ...]
    """As :class:`pytest_metricbench.sources.CaseSource` expands to them."""
    slots: Mapping[tuple[str, str], Sequence[Recording]]
    """(variant id, task id) -> its recordings; the first answers slot 1."""


def build_case(recordings: Recordings, baseline: str | None) -> RecordedSlots:
    """Make a case of recordings.

    Args:
        recordings: of that case.
        baseline: name, id or alias of the variant that is the baseline; None where there is only one.

    Raises:
        RecordingError: there is no attempt, or the baseline is not among the variants.
    """
    if not recordings.attempts:
        raise RecordingError("nothing is recorded", "name what holds attempts under runner.read")
    variants = _variants(recordings)
    chosen = _baseline(variants, baseline)
    ids = {name: BASELINE if name == chosen else derive_id(name)[0] for name in variants}
    tasks = _tasks(recordings)
    slots: dict[tuple[str, str], list[Recording]] = {}
    for recording in recordings.attempts:
        slots.setdefault((ids[recording.variant], derive_id(recording.task)[0]), []).append(recording)
    ordered = [chosen, *(name for name in variants if name != chosen)]
    entries = [
        *({"task": _task_entry(task)} for task in tasks.values()),
        *({_key(ids[name]): _variant_entry(variants[name], ids[name], slots)} for name in ordered),
        *({"note": {"text": note.text, "count": note.count}} for note in recordings.notes),
    ]
    return RecordedSlots(tuple(entries), slots)


def lock_state(recordings: Recordings, paths: Sequence[str]) -> tuple[dict[str, Path], dict[str, Json]]:
    """What the lock keeps about the files that were read: those it lists one by one, and one digest for each of many.

    Args:
        recordings: of one case.
        paths: names of the folders and files that were read.

    Returns:
        (name -> path, what -> digest)

    Raises:
        OSError: a file cannot be read.
    """
    if len(recordings.files) <= _FILES_LISTED:
        return dict(recordings.files), {"evidence": _evidence_digest(recordings.attempts)}
    groups: dict[str, dict[str, str]] = {}
    for name, path in recordings.files.items():
        owner = max((shown for shown in paths if name == shown or name.startswith(f"{shown}/")), key=len, default=name)
        groups.setdefault(owner, {})[name] = digest_file(path)
    state: dict[str, Json] = {f"content of {owner}": digest_value(digests) for owner, digests in groups.items()}
    return {}, {**state, "evidence": _evidence_digest(recordings.attempts)}


# ---------------------------------------------------------------- variants


def _variants(recordings: Recordings) -> dict[str, RecordedVariant]:
    """By name: those that the form describes, then those that only attempts name."""
    known = dict(recordings.variants)
    for recording in recordings.attempts:
        known.setdefault(recording.variant, RecordedVariant(recording.variant))
    used = {recording.variant for recording in recordings.attempts}
    return {name: variant for name, variant in known.items() if name in used}


def _baseline(variants: Mapping[str, RecordedVariant], asked: str | None) -> str:
    """The name of the baseline.

    Raises:
        RecordingError: it is not there, or nobody says which it is.
    """
    if asked is None:
        if len(variants) == 1:
            return next(iter(variants))
        example = f"write baseline: {next(iter(variants))}" if variants else ""
        raise RecordingError(
            f"{len(variants)} variants are recorded, and runner.baseline does not say which is the baseline: "
            f"{_listed(variants)}",
            f"{example}, or whichever it is",
        )
    if asked in variants:
        return asked
    found = [name for name, variant in variants.items() if asked == variant.alias or asked == derive_id(name)[0]]
    if len(found) == 1:
        return found[0]
    if found:
        raise RecordingError(f"runner.baseline: {asked!r} may be {' or '.join(found)}", "write the whole name")
    remedy = joined(did_you_mean(asked, variants), f"there are {_listed(variants)}")
    raise RecordingError(f"runner.baseline: no variant {asked!r} is recorded", remedy)


def _listed(variants: Mapping[str, RecordedVariant]) -> str:
    shown = [f"{name} ({variant.description})" if variant.description else name for name, variant in variants.items()]
    return first_names(shown, _SHOWN)


# ---------------------------------------------------------------- entries


def _key(variant_id: str) -> str:
    return BASELINE if variant_id == BASELINE else "mutant"


def _variant_entry(
    variant: RecordedVariant, variant_id: str, slots: Mapping[tuple[str, str], Sequence[Recording]]
) -> dict[str, Any]:
    own = {task: recordings for (name, task), recordings in slots.items() if name == variant_id}
    entry: dict[str, Any] = {} if variant_id == BASELINE else {"id": variant_id}
    if variant.name != variant_id:
        entry["name"] = variant.name
    if variant.description:
        entry["description"] = variant.description
    entry["params"] = {DIGEST_PARAM: digest_value([list(_facts(task, own[task])) for task in sorted(own)])}
    entry["attempts"] = {task: len(own[task]) for task in sorted(own)}
    return entry


def _facts(task: str, recordings: Sequence[Recording]) -> Iterator[Json]:
    """All that the records of a variant's attempts at a task are made of, evidence by names and sizes."""
    yield task
    for recording in recordings:
        outcome, error = recording.outcome, recording.outcome.error
        yield [
            recording.origin,
            recording.trial,
            outcome.kind,
            {name: [value_type(value), value_to_json(value)] for name, value in outcome.scores.items()},
            None if error is None else [error.type, error.message, error.phase],
            _sizes(recording),
        ]


def _tasks(recordings: Recordings) -> dict[str, RecordedTask]:
    known = dict(recordings.tasks)
    for recording in recordings.attempts:
        known.setdefault(recording.task, RecordedTask(recording.task))
    return known


def _task_entry(task: RecordedTask) -> dict[str, Any]:
    task_id, name = derive_id(task.name)
    entry: dict[str, Any] = {"id": task_id}
    if name:
        entry["name"] = name
    if task.description:
        entry["description"] = task.description
    if task.tags:
        entry["tags"] = list(dict.fromkeys(derive_id(tag)[0] for tag in task.tags))
    if task.outputs:
        entry["outputs"] = dict(task.outputs)
    return entry


# ---------------------------------------------------------------- evidence


def _evidence_digest(attempts: Sequence[Recording]) -> str:
    """Digest of what evidence there is, by names and sizes: what it holds may be far too much to read every time."""
    return digest_value(
        [[recording.origin, recording.trial, _sizes(recording)] for recording in attempts if recording.files]
    )


def _sizes(recording: Recording) -> dict[str, int]:
    return {name: _size(path) for name, path in sorted(recording.files.items())}


def _size(path: os.PathLike[str]) -> int:
    try:
        return os.lstat(path).st_size
    except OSError:
        return -1
