"""NeMo Gym's rollouts, read as recorded attempts.

A run is a rollouts file, the sidecar of its failures and its materialized inputs, the list of what was planned. A task
is a task index, an attempt a rollout index: the order of the rows means nothing. A rollout that Gym tried several times
counts once, by the try that was scored, or else by the last one, as Gym itself resumes and counts.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_metricbench.contracts import OutputKind
from pytest_metricbench.definition.experiment import Note
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.interop.counted_notes import counted_note, counted_notes
from pytest_metricbench.interop.gym.failures import FAILURE_CLASSES, UNKNOWN
from pytest_metricbench.interop.gym.files import find_runs, short_names
from pytest_metricbench.interop.gym.rows import REWARD, TOKENS, Key, Reading, trial_of
from pytest_metricbench.interop.gym.runs import CUT, FAILED_AGAIN, NAMELESS, NOT_PLANNED, RETRIED, Run
from pytest_metricbench.interop.recordings import (
    ReadOptions,
    RecordedTask,
    Recording,
    RecordingError,
    Recordings,
    not_recorded,
)
from pytest_metricbench.messages import nearest

VARIANTS: Final = ("agent", "folder", "file")
"""How variants may be told apart: by ``agent_ref.name``, or by where the rollouts file stands or what it is called."""
MISSING: Final = "planned rollout{s} without a row: counted as missing"
OTHER_INPUT: Final = "task{s} with another input in some runs: another prompt, or another data set"
TWICE: Final = "result{s} that another file has too (same response, task and rollout): counted twice"
_COLUMNS: Final = ("scores", "task")
_TOKEN_KINDS: Final[Mapping[str, OutputKind]] = dict.fromkeys(TOKENS, "measurement")
_SHOWN: Final = 20


def read(paths: Mapping[str, Path], options: ReadOptions) -> Recordings:
    """Read the runs below ``paths``: rollouts files, or folders that hold some.

    ``options.columns`` may have ``scores``, the fields beside the reward that are scores (``info.value`` is a field
    of a mapping), and ``task``, the field of the materialized inputs that names a task in place of its index.

    Raises:
        RecordingError: there is nothing, a file is damaged, two rows are of one rollout, or the options do not fit.
    """
    by, reading = options.variants, _reading(options)
    if by is not None and by not in VARIANTS:
        raise RecordingError(f"runner.variants: {by!r} is not known to the form gym", f"one of {', '.join(VARIANTS)}")
    counted: Counter[str] = Counter()
    runs = [Run(files, reading, counted) for files in find_runs(paths)]
    if not any(run.rollouts for run in runs):
        raise RecordingError(f"{', '.join(paths)}: there are no rollouts", "name the rollouts.jsonl of a run")
    if by is None:
        _check_choice(runs)
    _check_scores(runs, reading.scores)
    _check_outcomes(runs, reading)
    attempts = _attempts(runs, by or "agent")
    if by in (None, "agent"):
        _check_tasks(runs, attempts)
    return Recordings(
        attempts,
        {name: RecordedTask(name, outputs=_TOKEN_KINDS) for name in dict.fromkeys(found.task for found in attempts)},
        notes=_notes(runs, counted),
        files={name: path for run in runs for name, path in run.files.files.items()},
    )


def _reading(options: ReadOptions) -> Reading:
    if options.evidence is not None:
        raise RecordingError("runner.evidence: Gym's rollouts leave no files of their own", "remove the key")
    columns = options.columns
    for name in columns:
        if name not in _COLUMNS:
            raise RecordingError(f"runner.columns: {name!r} is not known to the form gym", "scores or task")
    task, scores = columns.get("task"), columns.get("scores") or []
    if isinstance(scores, str):
        scores = [scores]
    if task is not None and not isinstance(task, str):
        raise RecordingError("runner.columns.task is no text", "the field of the materialized inputs that names a task")
    if not isinstance(scores, list | tuple) or not all(isinstance(name, str) and name for name in scores):
        raise RecordingError("runner.columns.scores is no list of texts", "the fields of a row that are scores")
    return Reading(options.outcomes, [name for name in dict.fromkeys(scores) if name != REWARD], task)


# ---------------------------------------------------------------- attempts


def _attempts(runs: Sequence[Run], by: str) -> list[Recording]:
    """The attempts in their order: by run as given, then by task and rollout index."""
    places = _places(runs, by)
    attempts = []
    for run, place in zip(runs, places, strict=True):
        for key in run.rollouts:
            variant = place if place is not None else _agent(run, key)
            result, task, origin = run.results.get(key), run.task(key), run.files.name
            if result is None:
                why = f"rollout {key[1]} of task {key[0]} was planned, and left no row in {origin}"
                attempts.append(not_recorded(variant, task, origin, why))
            else:
                attempts.append(Recording(variant, task, result.outcome.trial_name or "", origin, result.outcome))
    return attempts


def _places(runs: Sequence[Run], by: str) -> list[str | None]:
    """What the variant of each run is called, where all of a run is of one; None where its agents are variants."""
    if by == "agent":
        return [None] * len(runs)
    if by == "folder":
        names = [run.files.folder or run.files.stem for run in runs]
    else:
        names = [run.files.name.removesuffix(".jsonl") for run in runs]
    short = short_names(sorted(set(names)))
    return [short[name] for name in names]


def _agent(run: Run, key: Key) -> str:
    agent = run.agent(key)
    if agent is None:
        message = f"{run.files.name}: rollout {trial_of(key, 0)} has no agent_ref.name, which would be its variant"
        raise RecordingError(message, "variants: folder or file takes it from where the file is")
    return agent


# ---------------------------------------------------------------- what does not fit


def _check_choice(runs: Sequence[Run]) -> None:
    """Several runs of one agent: repeats or versions? Nothing in them says it."""
    agents = {run.agent(key) for run in runs for key in run.rollouts}
    if len(runs) > 1 and len(agents) == 1:
        shown = first_names([run.files.name for run in runs], _SHOWN)
        message = f"{len(runs)} rollouts files are of one agent, {agents.pop()}: {shown}"
        remedy = "variants: folder or file where each is a version of it; variants: agent where they are repeats"
        raise RecordingError(message, remedy)


def _check_scores(runs: Sequence[Run], scores: Sequence[str]) -> None:
    there = set().union(*(run.fields for run in runs)) - {REWARD}
    for name in scores:
        if name not in there:
            numbers = sorted(field for field in there if not field.startswith("_"))
            remedy = f"fields with numbers or booleans: {first_names(numbers, _SHOWN)}" if numbers else "remove it"
            raise RecordingError(f"runner.columns.scores: no row has a field {name!r}", remedy)


def _check_outcomes(runs: Sequence[Run], reading: Reading) -> None:
    """A class that is nowhere and nearly one that is known was misspelt; any other may occur in another run."""
    known = FAILURE_CLASSES.keys() | {result.reason for run in runs for result in run.results.values() if result.reason}
    for name in reading.outcomes:
        meant = None if name in known else nearest(name, known, cutoff=0.8)
        if meant is not None:
            raise RecordingError(
                f"runner.outcomes: {name!r} is no failure class that is known or occurs", f"{meant!r} is"
            )


def _check_tasks(runs: Sequence[Run], attempts: Sequence[Recording]) -> None:
    """Gym numbers equal rows of a data set; where a row names its agent, two agents share no number."""
    tasks: dict[str, set[str]] = {}
    for found in attempts:
        tasks.setdefault(found.variant, set()).add(found.task)
    times = Counter(task for named in tasks.values() for task in named)
    if len(tasks) > 1 and max(times.values()) == 1:
        message = f"{runs[0].files.name}: the agents {first_names(sorted(tasks), _SHOWN)} have no task index in common"
        raise RecordingError(message, "columns: {task: FIELD} names tasks by a field of the materialized inputs")


# ---------------------------------------------------------------- notes


def _notes(runs: Sequence[Run], counted: Counter[str]) -> list[Note]:
    """What was decided while reading, each with how often."""
    reasons: Counter[tuple[str, str]] = Counter()
    inputs: dict[str, set[str]] = {}
    seen: set[str] = set()
    for run in runs:
        counted[MISSING] += sum(key not in run.results for key in run.rollouts)
        counted[TWICE] += len(seen & set(run.responses.values()))
        seen.update(run.responses.values())
        for result in run.results.values():
            if result.reason is not None:
                reasons[result.reason, result.outcome.kind] += 1
        for planned in run.planned.values():
            inputs.setdefault(planned.task, set()).add(planned.input)
    counted[OTHER_INPUT] = sum(len(digests) > 1 for digests in inputs.values())
    texts = (MISSING, RETRIED, FAILED_AGAIN, CUT, NOT_PLANNED, NAMELESS, OTHER_INPUT, TWICE)
    notes = [counted_note(_reason_text(*found), count) for found, count in sorted(reasons.items())]
    return [*notes, *counted_notes(texts, counted)]


def _reason_text(reason: str, kind: str) -> str:
    meaning = FAILURE_CLASSES.get(reason, UNKNOWN).meaning
    return f"rollout{{s}} with {reason} ({meaning}): counted as {kind}"
