"""The form ``harbor`` of recorded attempts: job folders as Harbor 0.13 to 0.26 leaves them.

An attempt is a trial, a variant an agent's configuration (or a job's folder). What was planned and left no result is
missing; what cannot be read is an error that names the file.
"""

import fnmatch
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_metricbench.contracts import Json, OutputKind
from pytest_metricbench.definition.experiment import Note
from pytest_metricbench.interop.harbor.exceptions import RULES
from pytest_metricbench.interop.harbor.folders import RESULT, read_folder
from pytest_metricbench.interop.harbor.notes import (
    ErrorTally,
    job_notes,
    mask_notes,
    mixed_folders,
    reward_notes,
    task_notes,
)
from pytest_metricbench.interop.harbor.planned import JobAttempt, attempts_of, refuse_copies
from pytest_metricbench.interop.harbor.results import STEP_PREFIX, HarborResultError, read_trial, trial_outcome
from pytest_metricbench.interop.harbor.variants import AGENT, describe_settings, name_variants, settings_key
from pytest_metricbench.interop.recordings import (
    ReadOptions,
    RecordedTask,
    RecordedVariant,
    Recording,
    RecordingError,
    Recordings,
    not_recorded,
)
from pytest_metricbench.messages import did_you_mean

EVIDENCE: Final = (
    "agent/trajectory.json",
    "verifier/*",
    "artifacts/*",
    "steps/*/agent/trajectory.json",
    "steps/*/verifier/*",
    "steps/*/artifacts/*",
)
"""Globs of the files that are kept of each trial unless the experiment says which; ``*`` stands for slashes too. The
trial's ``result.json`` is always kept."""
VARIANTS: Final = ("agent", "folder")
"""How variants may be told apart: by the configuration of the agent, or by the job's folder."""


def read(paths: Mapping[str, Path], options: ReadOptions) -> Recordings:
    """Read job folders, or folders of single trials.

    Args:
        paths: folder's name as reports show it -> where it is.
        options: ``variants`` is one of :data:`VARIANTS`, the first by default; ``outcomes`` goes over
            :data:`~pytest_metricbench.interop.harbor.exceptions.RULES`; ``evidence`` over :data:`EVIDENCE`.

    Raises:
        RecordingError: there is no trial, one cannot be read, or the options do not fit.
    """
    _check_options(options)
    jobs = [read_folder(name, path) for name, path in paths.items()]
    attempts = [attempt for job in jobs for attempt in attempts_of(job)]
    if not any(attempt.result is not None for attempt in attempts):
        raise RecordingError(f"no trial of {', '.join(paths)} has a result", "run the job to its end")
    refuse_copies(attempts)
    keys = [settings_key(attempt.settings) for attempt in attempts]
    by_folder = options.variants == "folder"
    names, variants = _by_folder(attempts) if by_folder else _by_agent(attempts, keys)
    tally = ErrorTally()
    recordings = [_recording(attempt, name, options, tally) for attempt, name in zip(attempts, names, strict=True)]
    _check_outcomes(recordings, options)
    notes: list[Note] = [*job_notes(jobs, attempts), *tally.notes(), *task_notes(attempts), *mask_notes(attempts)]
    notes.extend(reward_notes([(recording.task, recording.outcome) for recording in recordings]))
    notes.extend(mixed_folders(attempts, keys) if by_folder else ())
    return Recordings(
        attempts=recordings,
        tasks=_tasks(recordings),
        variants=variants,
        notes=notes,
        files={name: path for job in jobs for name, path in job.files.items()},
    )


# ---------------------------------------------------------------- options


def _check_options(options: ReadOptions) -> None:
    if options.variants is not None and options.variants not in VARIANTS:
        raise RecordingError(
            f"runner.variants: {options.variants!r} is nothing that the form harbor tells variants apart by",
            f"one of {', '.join(VARIANTS)} is expected",
        )
    if options.columns:
        raise RecordingError("runner.columns: the form harbor has no columns", "remove the key")


def _check_outcomes(recordings: Sequence[Recording], options: ReadOptions) -> None:
    """Refuse an exception type that nobody knows and nobody raised: probably it is misspelt."""
    raised = {recording.outcome.error.type for recording in recordings if recording.outcome.error is not None}
    for name in options.outcomes:
        if name not in RULES and name not in raised:
            here = f"the types here are {', '.join(sorted(raised)) or 'none'}"
            remedy = did_you_mean(name, {*RULES, *raised}) or here
            raise RecordingError(f"runner.outcomes: no attempt has an error of the type {name!r}", remedy)


# ---------------------------------------------------------------- variants and tasks


def _by_folder(attempts: Sequence[JobAttempt]) -> tuple[list[str], dict[str, RecordedVariant]]:
    """The variant's name for each attempt, and what is known of the variants: one for each job folder."""
    folders = list(dict.fromkeys(attempt.job.name for attempt in attempts))
    short = {name: os.path.basename(name) for name in folders}
    if len(set(short.values())) < len(folders):
        short = {name: name for name in folders}
    names = [short[attempt.job.name] for attempt in attempts]
    return names, {short[name]: RecordedVariant(short[name], alias=name) for name in folders}


def _by_agent(attempts: Sequence[JobAttempt], keys: Sequence[str]) -> tuple[list[str], dict[str, RecordedVariant]]:
    """The variant's name for each attempt, and what is known of the variants: one for each configuration."""
    settings = dict(zip(keys, (attempt.settings for attempt in attempts), strict=True))
    labels: dict[str, str] = {}
    for key, attempt in zip(keys, attempts, strict=True):
        if attempt.result is not None and isinstance(attempt.result["agent_name"], str):
            labels.setdefault(key, attempt.result["agent_name"])
    ordered = sorted(settings)
    given = name_variants([(labels.get(key) or _agent_of(settings[key]), settings[key]) for key in ordered])
    by_key = dict(zip(ordered, given, strict=True))
    described = {by_key[key]: describe_settings(settings[key], list(settings.values())) for key in ordered}
    variants = {name: RecordedVariant(name, text) for name, text in sorted(described.items())}
    return [by_key[key] for key in keys], variants


def _agent_of(settings: Mapping[str, Json]) -> str:
    """What an agent of which no trial ended is called: its name, or the class of its import path."""
    return str(settings.get(AGENT) or "agent").rpartition(":")[2]


def _tasks(recordings: Sequence[Recording]) -> dict[str, RecordedTask]:
    """The tasks, by name; the rewards of steps are kept beside those of the task and do not decide."""
    outputs: dict[str, dict[str, OutputKind]] = {}
    for recording in recordings:
        steps = [name for name in recording.outcome.scores if name.startswith(STEP_PREFIX)]
        outputs.setdefault(recording.task, {}).update(dict.fromkeys(steps, "measurement"))
    return {name: RecordedTask(name, outputs=dict(sorted(outputs[name].items()))) for name in sorted(outputs)}


# ---------------------------------------------------------------- attempts


def _recording(attempt: JobAttempt, variant: str, options: ReadOptions, tally: ErrorTally) -> Recording:
    trial, result = attempt.folder, attempt.result
    if trial is None or result is None:
        name = "" if trial is None else trial.path.name
        return not_recorded(variant, attempt.task, attempt.job.name, attempt.why_missing, name)
    version = attempt.job.version or ("0.26" if result["is_newer_form"] else "0.25")
    try:
        outcome = trial_outcome(result, version=version, overrides=options.outcomes)
        tally.add(outcome, read_trial(result, version=version).rewards)
    except HarborResultError as error:
        raise RecordingError(f"{trial.name}/{RESULT}: {error}", "it is no result of Harbor 0.13 or newer") from None
    files = _evidence(trial.path, EVIDENCE if options.evidence is None else options.evidence)
    return Recording(variant, attempt.task, outcome.trial_name or trial.path.name, attempt.job.name, outcome, files)


def _evidence(folder: Path, patterns: Sequence[str]) -> dict[str, Path]:
    """The files of a trial that are kept, by their names below it; links are left out."""
    files = {RESULT: folder / RESULT}
    for path, _, names in os.walk(folder):
        below = Path(path).relative_to(folder)
        for name in names:
            shown = (below / name).as_posix()
            is_kept = any(fnmatch.fnmatchcase(shown, pattern) for pattern in patterns)
            if is_kept and not os.path.islink(folder / shown):
                files[shown] = folder / shown
    return dict(sorted(files.items()))
