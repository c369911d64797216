"""The bundles of NVIDIA's evaluator SDK, read as recorded attempts.

Read are the released shape of ``summary.json`` (``task_metric_values`` and ``error_trial_ids``: nemo-platform-plugin
0.4 to 0.6, nemo-helix-plugin 0.7 and 0.8) and the one before it (``task_metric_attempts``). What became of a trial is
decided in :mod:`pytest_metricbench.interop.nemo.outcomes`.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from pytest_metricbench.contracts import OutputKind
from pytest_metricbench.definition.experiment import Note
from pytest_metricbench.definition.scoring import fits_kind
from pytest_metricbench.digests import digest_stream
from pytest_metricbench.interop.counted_notes import counted_note
from pytest_metricbench.interop.harbor.exceptions import RULES
from pytest_metricbench.interop.nemo.content import Content, read_content
from pytest_metricbench.interop.nemo.files import METADATA, NEEDED, SCORES, TRIALS, Bundle, find_bundles, listed
from pytest_metricbench.interop.nemo.outcomes import DECISIONS, INFRASTRUCTURE, Decision, outcome_of
from pytest_metricbench.interop.nemo.rows import MEASUREMENT_PREFIX, TaskRow
from pytest_metricbench.interop.nemo.values import SHAPES
from pytest_metricbench.interop.nemo.variants import Labelled, of_case, variants_of
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
from pytest_metricbench.plain_files import open_regular
from pytest_metricbench.score_values import ScoreValue

_PLANS: Final = ("n_attempts", "num_repeats")
"""Settings of a target that say how many trials a task was to get."""


def read(paths: Mapping[str, Path], options: ReadOptions) -> Recordings:
    """Read the bundles in and below ``paths``.

    ``options.variants`` is ``label:<key>``, ``target`` or ``folder``. Attempts stand in the order of the bundles, and
    within one in the order of ``trials.jsonl``; trial ids may repeat, within a bundle and between them.

    Raises:
        RecordingError: there is nothing, a bundle is not whole or contradicts itself, or nothing tells variants apart.
    """
    if options.columns:
        raise RecordingError("runner.columns: the form nemo has no columns", "remove the key")
    bundles, others = of_case(find_bundles(paths), options.case)
    variants = variants_of(bundles, options.variants)
    reading = _Reading(options)
    runs: dict[str, list[Bundle]] = {}
    for labelled, variant in zip(bundles, variants, strict=True):
        content = read_content(labelled.bundle, options.evidence)
        _refuse_copies(content, runs.setdefault(content.run_id, []))
        reading.add(content, variant.name)
    reading.check_outcomes()
    if others:
        reading.notes["bundles of other cases, by their label: not read"] += others
    return Recordings(
        reading.attempts,
        reading.recorded_tasks(),
        _by_name(variants),
        reading.recorded_notes(),
        _files(bundles),
    )


@dataclass(slots=True)
class _Reading:
    """What was read so far."""

    options: ReadOptions
    attempts: list[Recording] = field(default_factory=list)
    notes: Counter[str] = field(default_factory=Counter)
    _raised: set[str] = field(default_factory=set)
    """Types of errors that some attempt has."""
    _intents: dict[str, str] = field(default_factory=dict)
    _kinds: dict[str, dict[str, tuple[OutputKind, str]]] = field(default_factory=dict)
    """Task -> output -> kind, and the bundle that declares it."""
    _misfits: set[tuple[str, str]] = field(default_factory=set)
    """Outputs at tasks that have a value which is not of their kind."""
    _measured: dict[str, set[str]] = field(default_factory=dict)
    """Task -> the measurements that some trial of it has."""

    def add(self, content: Content, variant: str) -> None:
        """Take in a bundle."""
        origin, counts, ids = content.bundle.name, Counter[str](), Counter[tuple[str, str]]()
        for task in content.tasks.values():
            self._add_task(task, origin)
        for trial in content.trials:
            kinds = content.tasks[trial.task].kinds
            outcome, decision = outcome_of(trial, kinds, self.options.outcomes)
            self._note(decision)
            self._raised.update(told.type for told in (trial.told or trial.cause,) if told is not None)
            self._check_kinds(trial.task, kinds, trial.scores)
            measured = self._measured.setdefault(trial.task, set())
            measured.update(name for name in outcome.scores if name.startswith(MEASUREMENT_PREFIX))
            self.attempts.append(Recording(variant, trial.task, trial.id, origin, outcome, trial.files))
            counts[trial.task] += 1
            ids[trial.task, trial.id] += 1
        self._add_missing(content, variant, counts)
        self._add_notes(content, ids)

    def check_outcomes(self) -> None:
        """Refuse a type of error in ``outcomes`` that nobody knows and nobody raised.

        Raises:
            RecordingError: there is one; probably it is misspelt.
        """
        known = {*RULES, *INFRASTRUCTURE, *self._raised}
        for name in self.options.outcomes:
            if name not in known:
                remedy = did_you_mean(name, known) or f"the types here are {listed(self._raised) or 'none'}"
                raise RecordingError(f"runner.outcomes: no attempt has an error of the type {name!r}", remedy)

    def recorded_tasks(self) -> dict[str, RecordedTask]:
        """What is known of the tasks, in order of appearance."""
        found = {}
        for task, intent in self._intents.items():
            outputs: dict[str, OutputKind] = {
                name: kind for name, (kind, _) in self._kinds[task].items() if (task, name) not in self._misfits
            }
            outputs.update(dict.fromkeys(sorted(self._measured.get(task, ())), "measurement"))
            found[task] = RecordedTask(task, intent, outputs)
        return found

    def recorded_notes(self) -> tuple[Note, ...]:
        """What was decided: first what became of errors, in a fixed order, then the rest."""
        first = [text for text in DECISIONS.values() if text in self.notes]
        rest = [text for text in self.notes if text not in first]
        return tuple(counted_note(text, self.notes[text]) for text in (*first, *rest))

    def _add_task(self, task: TaskRow, origin: str) -> None:
        self._intents[task.id] = self._intents.get(task.id) or task.intent
        known = self._kinds.setdefault(task.id, {})
        for name, kind in task.kinds.items():
            before, where = known.setdefault(name, (kind, origin))
            if before != kind:
                message = f"{name} of the task {task.id!r} is declared as {before} in {where} and as {kind} in {origin}"
                raise RecordingError(message, "bundles whose metrics differ cannot be compared; read them apart")

    def _check_kinds(self, task: str, kinds: Mapping[str, OutputKind], scores: Mapping[str, ScoreValue]) -> None:
        for name, value in scores.items():
            if value is not None and name in kinds and not fits_kind(kinds[name], value):
                self._misfits.add((task, name))

    def _add_missing(self, content: Content, variant: str, counts: Mapping[str, int]) -> None:
        """Attempts that were planned and left no trial: Harbor's broken results, and tasks that nobody ran."""
        planned = _planned(content)
        for task in content.tasks:
            there = counts.get(task, 0)
            wanted = planned if planned is not None else 1
            for number in range(there + 1, wanted + 1):
                why = f"trial {number} of {wanted} of the task {task} is not in {content.bundle.name}"
                self.attempts.append(not_recorded(variant, task, content.bundle.name, why))
                self.notes["planned trials that are not in their bundle: missing"] += 1
            if planned is not None and there > planned:
                self.notes["trials beyond those planned for their task: each counts"] += there - planned

    def _note(self, decision: Decision | None) -> None:
        if decision is not None:
            self.notes[DECISIONS[decision]] += 1

    def _add_notes(self, content: Content, ids: Mapping[tuple[str, str], int]) -> None:
        notes = {
            "trials whose id another trial of their task has in the same bundle: each counts": sum(
                count - 1 for count in ids.values()
            ),
            "texts where a number or a boolean is declared: not measured": content.texts,
            "outputs of tasks that are models: kept out": sum(len(task.models) for task in content.tasks.values()),
            f"bundles in the shape before the release ({SHAPES[1]})": int(content.shape == SHAPES[1]),
            "bundles that record no errors of trials: a crash scored 0.0 counts as a zero there": int(
                not content.knows_errors
            ),
        }
        self.notes.update({text: count for text, count in notes.items() if count})
        for (what, key), count in sorted(content.unknown.keys.items()):
            self.notes[f"unknown key {key!r} of a {what}: ignored" if "." not in what else _in_file(what, key)] += count


def _in_file(file: str, key: str) -> str:
    return f"unknown key {key!r} in {file}: ignored"


def _planned(content: Content) -> int | None:
    config = content.target.get("config")
    for key in _PLANS:
        planned = config.get(key) if isinstance(config, dict) else None
        if isinstance(planned, int) and not isinstance(planned, bool) and 0 < planned <= 10_000:
            return planned
    return None


def _refuse_copies(content: Content, same_run: list[Bundle]) -> None:
    """One run in two folders would count twice; a run id that was given by hand may stand for two runs."""
    for other in same_run:
        if all(_digest(other, file) == _digest(content.bundle, file) for file in (TRIALS, SCORES)):
            message = f"{content.bundle.name} and {other.name} are copies of one run, {content.run_id!r}"
            raise RecordingError(message, "read one of the two")
    same_run.append(content.bundle)


def _digest(bundle: Bundle, file: str) -> str:
    with open_regular(bundle.folder / file) as stream:
        return digest_stream(stream)


def _by_name(variants: Sequence[RecordedVariant]) -> dict[str, RecordedVariant]:
    found: dict[str, RecordedVariant] = {}
    for variant in variants:
        found.setdefault(variant.name, variant)
    return found


def _files(bundles: Sequence[Labelled]) -> dict[str, Path]:
    return {
        labelled.bundle.where(file): path
        for labelled in bundles
        for file in (*NEEDED, METADATA)
        if (path := labelled.bundle.folder / file).exists()
    }
