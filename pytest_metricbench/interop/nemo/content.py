"""One evaluator bundle, read whole and held against itself.

Where its files disagree, or a count does not fit, they are not of one run: cut, mixed, or being written.
"""

import os
from collections import Counter, deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_metricbench.answers import named, plain_text
from pytest_metricbench.interop.nemo.evidence import evidence_files
from pytest_metricbench.interop.nemo.files import (
    METADATA,
    RUN,
    SCORES,
    SUMMARY,
    TASKS,
    TRIALS,
    Bundle,
    read_document,
    read_rows,
)
from pytest_metricbench.interop.nemo.rows import (
    Entry,
    TaskRow,
    Told,
    TrialRow,
    Unknown,
    entries_hook,
    score_row,
    task_row,
    trial_row,
)
from pytest_metricbench.interop.nemo.values import MIXED, SHAPES, Records, Shape, join_values
from pytest_metricbench.interop.recordings import RecordingError

_SUMMARY_KEYS: Final = frozenset(
    {
        "scores",
        "metric_coverage",
        "error_trial_ids",
        "error_count",
        "task_count",
        "trial_count",
        "score_count",
        *SHAPES,
    }
)
_RUN_KEYS: Final = frozenset({"run_id", "output_dir", "dashboard_path", "artifacts"})
_METADATA_KEYS: Final = frozenset({"labels", "target", "started_at", "finished_at", "duration_sec", "sdk_version"})


@dataclass(slots=True)
class Content:
    """What a bundle holds."""

    bundle: Bundle
    run_id: str
    labels: Mapping[str, str]
    target: Mapping[str, Any]
    """``{}`` for imported trials."""
    tasks: Mapping[str, TaskRow]
    trials: Sequence[TrialRow]
    """In their order, their ``scores`` filled in."""
    shape: Shape
    knows_errors: bool
    """Whether this version of the format records errors of trials at all."""
    unknown: Unknown
    texts: int
    """Values that are texts where their output is declared a number or a boolean: not measured."""


def read_content(bundle: Bundle, evidence: Sequence[str] | None) -> Content:
    """Read a bundle.

    Args:
        bundle: where it is.
        evidence: globs of the files to keep of each trial beside its traces.

    Raises:
        RecordingError: some file is broken, they contradict one another, or somebody is writing them.
    """
    before = bundle.stamp()
    unknown = Unknown()
    run_id = _run_id(bundle, unknown)
    labels, target = read_metadata(bundle, unknown)
    tasks = _tasks(bundle, unknown)
    trials = _trials(bundle, tasks, unknown, evidence)
    rows = _attach_scores(bundle, run_id, trials, unknown)
    summary = read_document(bundle, SUMMARY, entries_hook)
    unknown.check(SUMMARY, summary, _SUMMARY_KEYS)
    shape, records = _records(bundle, summary)
    _check_counts(bundle, summary, len(tasks), trials, rows)
    knows_errors = _join_errors(bundle, summary, trials)
    texts = join_values(bundle, tasks, trials, shape, records, unknown)
    if bundle.stamp() != before:
        raise RecordingError(f"{bundle.name} changed while it was read", "wait until its run has ended")
    return Content(bundle, run_id, labels, target, tasks, trials, shape, knows_errors, unknown, texts)


# ---------------------------------------------------------------- the files


def _run_id(bundle: Bundle, unknown: Unknown) -> str:
    run = read_document(bundle, RUN)
    unknown.check(RUN, run, _RUN_KEYS)
    run_id = run.get("run_id")
    if not isinstance(run_id, str) or not run_id:
        raise RecordingError(f"{bundle.where(RUN)}: run_id is {named(run_id)}; a text is expected", MIXED)
    return run_id


def read_metadata(bundle: Bundle, unknown: Unknown | None = None) -> tuple[Mapping[str, str], Mapping[str, Any]]:
    """The labels of a bundle and the target that made its trials; both empty where there is no ``metadata.json``.

    Raises:
        RecordingError: it is broken.
    """
    if not os.path.lexists(bundle.folder / METADATA):
        return {}, {}
    metadata = read_document(bundle, METADATA)
    if unknown is not None:
        unknown.check(METADATA, metadata, _METADATA_KEYS)
    labels, target = metadata.get("labels") or {}, metadata.get("target") or {}
    for name, value in (("labels", labels), ("target", target)):
        if not isinstance(value, dict):
            raise RecordingError(f"{bundle.where(METADATA)}: {name} is {named(value)}; a mapping is expected", MIXED)
    return {key: plain_text(value) for key, value in labels.items() if isinstance(value, str)}, target


def _tasks(bundle: Bundle, unknown: Unknown) -> dict[str, TaskRow]:
    tasks: dict[str, TaskRow] = {}
    for line, row in read_rows(bundle, TASKS):
        task = task_row(row, bundle.where(TASKS, line))
        unknown.check("task", row)
        if task.id in tasks:
            raise RecordingError(f"{bundle.where(TASKS, line)}: the task {task.id!r} stands there twice", MIXED)
        tasks[task.id] = task
    return tasks


def _trials(
    bundle: Bundle, tasks: Mapping[str, TaskRow], unknown: Unknown, evidence: Sequence[str] | None
) -> list[TrialRow]:
    trials = []
    for line, row in read_rows(bundle, TRIALS):
        where = bundle.where(TRIALS, line)
        trial = trial_row(row, where, line)
        unknown.check("trial", row)
        if trial.task not in tasks:
            message = f"{where}: the trial {trial.id!r} is of the task {trial.task!r}, which {TASKS} does not have"
            raise RecordingError(message, MIXED)
        trial.files = evidence_files(row, bundle.folder, evidence)
        trials.append(trial)
    return trials


def _attach_scores(bundle: Bundle, run_id: str, trials: Sequence[TrialRow], unknown: Unknown) -> int:
    """Give each trial the rows of its metrics; of trials with one id the first that has none yet. Counts the rows."""
    by_id: dict[tuple[str, str], list[TrialRow]] = {}
    for trial in trials:
        by_id.setdefault((trial.task, trial.id), []).append(trial)
    count = 0
    for line, row in read_rows(bundle, SCORES):
        where = bundle.where(SCORES, line)
        task, trial_id, metric, score = score_row(row, where)
        unknown.check("score", row)
        count += 1
        if row.get("run_id") != run_id:
            message = f"{where}: run_id is {named(row.get('run_id'))}, and in {RUN} it is {named(run_id)}"
            raise RecordingError(message, MIXED)
        same = by_id.get((task, trial_id))
        if same is None:
            message = f"{where}: a score of the trial {trial_id!r} at the task {task!r}, which {TRIALS} does not have"
            raise RecordingError(message, MIXED)
        for trial in same:
            if metric not in trial.metrics:
                trial.metrics[metric] = score
                if trial.status == "failed" and score.state == "scored":
                    message = f"{where}: the trial {trial_id!r} was scored, and {TRIALS} says that it failed"
                    raise RecordingError(message, MIXED)
                break
        else:
            times = f"{len(same)} times" if len(same) > 1 else "once"
            message = f"{where}: one score of {metric!r} too many: {TRIALS} has the trial {trial_id!r} {times}"
            raise RecordingError(message, MIXED)
    return count


def _records(bundle: Bundle, summary: Mapping[str, Any]) -> tuple[Shape, Records]:
    found = [shape for shape in SHAPES if shape in summary]
    if not found:
        message = f"{bundle.where(SUMMARY)} has no values of attempts: neither {SHAPES[0]} nor {SHAPES[1]}"
        remedy = (
            f"write the bundle with nemo-platform-plugin 0.4 or later, or nemo-helix-plugin: those write {SHAPES[0]}"
        )
        raise RecordingError(message, remedy)
    if len(found) > 1:
        raise RecordingError(f"{bundle.where(SUMMARY)} has both {SHAPES[0]} and {SHAPES[1]}", MIXED)
    records = summary[found[0]]
    is_form = isinstance(records, dict) and all(
        isinstance(outputs, dict)
        and all(
            isinstance(entries, list) and all(isinstance(entry, Entry) for entry in entries)
            for entries in outputs.values()
        )
        for outputs in records.values()
    )
    if not is_form:
        message = f"{bundle.where(SUMMARY)}: {found[0]} is not of the form task -> output -> list of trial_id and value"
        raise RecordingError(message, MIXED)
    return found[0], {
        plain_text(task): {plain_text(name): entries for name, entries in outputs.items()}
        for task, outputs in records.items()
    }


# ---------------------------------------------------------------- held against one another


def _check_counts(
    bundle: Bundle, summary: Mapping[str, Any], tasks: int, trials: Sequence[TrialRow], rows: int
) -> None:
    """The counts that the summary states; before 0.6 trials were counted by distinct ids."""
    distinct = (len({trial.id for trial in trials}), len({(trial.task, trial.id) for trial in trials}))
    for key, file, counted in (
        ("task_count", TASKS, (tasks,)),
        ("trial_count", TRIALS, (len(trials), *distinct)),
        ("score_count", SCORES, (rows,)),
    ):
        stated = summary.get(key)
        if stated is not None and stated not in counted:
            message = f"{bundle.where(file)} has {counted[0]} rows, and {key} in {SUMMARY} is {named(stated)}"
            raise RecordingError(message, MIXED)


def _join_errors(bundle: Bundle, summary: Mapping[str, Any], trials: Sequence[TrialRow]) -> bool:
    """Hold ``error_trial_ids`` against the trials' own errors, and use it where they have no place for one.

    Returns:
        Whether the bundle says anything of errors.
    """
    listed = summary.get("error_trial_ids")
    if listed is None:
        return any(trial.is_told for trial in trials)
    pairs = [(kind, trial_id) for kind, ids in _error_lists(bundle, listed) for trial_id in ids]
    if any(trial.is_told for trial in trials):
        own = Counter((trial.told.type, trial.id) for trial in trials if trial.told is not None)
        differing = (own - Counter(pairs)) + (Counter(pairs) - own)
        if differing:
            kind, trial_id = min(differing)
            message = f"{bundle.where(SUMMARY)}: error_trial_ids and {TRIALS} disagree on {kind} of {trial_id!r}"
            raise RecordingError(message, MIXED)
        return True
    waiting: dict[str, deque[str]] = {}
    for kind, trial_id in pairs:
        waiting.setdefault(trial_id, deque()).append(kind)
    for trial in trials:
        if kinds := waiting.get(trial.id):
            trial.told = Told(kinds.popleft(), "the bundle has no message")
    if left := sorted(trial_id for trial_id, kinds in waiting.items() if kinds):
        message = f"{bundle.where(SUMMARY)}: error_trial_ids names {left[0]!r}, which {TRIALS} does not have"
        raise RecordingError(message, MIXED)
    return True


def _error_lists(bundle: Bundle, listed: object) -> Iterator[tuple[str, list[str]]]:
    if isinstance(listed, dict):
        for kind, ids in listed.items():
            if not isinstance(ids, list) or not all(isinstance(trial_id, str) for trial_id in ids):
                break
            yield plain_text(kind), [plain_text(trial_id) for trial_id in ids]
        else:
            return
    raise RecordingError(f"{bundle.where(SUMMARY)}: error_trial_ids is not of the form type -> list of ids", MIXED)
