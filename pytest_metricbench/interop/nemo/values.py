"""The values of a bundle's trials: from ``summary.json``, each for the trial whose score it is.

``scores.jsonl`` says which trial each value belongs to, also where ids repeat and some metric failed; ``summary.json``
says every value with its type. They must agree.
"""

import math
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NoReturn, TypeAlias

from pytest_metricbench.answers import named
from pytest_metricbench.interop.nemo.files import SCORES, SUMMARY, TASKS, Bundle
from pytest_metricbench.interop.nemo.rows import (
    MODEL,
    Entry,
    TaskRow,
    TrialRow,
    Unknown,
    entry_value,
    number_or_text,
)
from pytest_metricbench.interop.recordings import RecordingError
from pytest_metricbench.score_values import NON_FINITE, ScoreValue, value_to_json

Shape: TypeAlias = Literal["task_metric_values", "task_metric_attempts"]
"""The key of ``summary.json`` that holds the values: as released (nemo-platform-plugin 0.4 and later), or as in the
months before, when labels were not kept there and numbers had no type."""
Records: TypeAlias = Mapping[str, Mapping[str, Sequence[Entry]]]
"""Task -> output -> entries."""

SHAPES: Final[tuple[Shape, ...]] = ("task_metric_values", "task_metric_attempts")
MIXED: Final = "the files are not of one run, were cut, or are being written; write the bundle again"


def join_values(
    bundle: Bundle,
    tasks: Mapping[str, TaskRow],
    trials: Sequence[TrialRow],
    shape: Shape,
    records: Records,
    unknown: Unknown,
) -> int:
    """Give each trial its values.

    Returns:
        How many texts are left out where a number or a boolean is declared.

    Raises:
        RecordingError: summary and scores disagree.
    """
    if strangers := sorted(records.keys() - tasks.keys()):
        message = f"{bundle.where(SUMMARY)} has values of the task {strangers[0]!r}, which {TASKS} does not have"
        raise RecordingError(message, MIXED)
    by_task: dict[str, list[TrialRow]] = {task: [] for task in tasks}
    for trial in trials:
        by_task[trial.task].append(trial)
    texts = 0
    for task, row in tasks.items():
        listed = records.get(task, {})
        for name in sorted(row.kinds.keys() | listed.keys()):
            kind = row.kinds.get(name)
            values = _Values(bundle, row, name, by_task[task])
            if name not in listed and (kind == "measurement" or (kind == "label" and shape == SHAPES[1])):
                values.take_from_scores()
            else:
                values.take(listed.get(name, ()), unknown, keeps_types=shape == SHAPES[0])
            if kind not in (None, "label"):
                texts += values.drop_texts()
    return texts


@dataclass(frozen=True, slots=True)
class _Values:
    """The values of one output at one task."""

    bundle: Bundle
    task: TaskRow
    name: str
    trials: Sequence[TrialRow]

    def take_from_scores(self) -> None:
        """Take the values of ``scores.jsonl``, where the summary has none of this kind."""
        for trial in self.trials:
            state, value = self._in_scores(trial)
            if state == "trial_failed":
                trial.scores[self.name] = None
            elif state == "scored" and value is not None and value is not MODEL:
                if self.task.kinds.get(self.name) != "label" and isinstance(value, str):
                    value = NON_FINITE.get(value, value)
                trial.scores[self.name] = number_or_text(value, self._where(trial.id, SCORES))

    def take(self, entries: Sequence[Entry], unknown: Unknown, *, keeps_types: bool) -> None:
        """Take the values of the summary, each for the trial whose score it is."""
        waiting: dict[str, deque[ScoreValue]] = {}
        for entry in entries:
            unknown.keys.update((SUMMARY, key) for key in entry.others)
            value = entry_value(entry, self._where(entry.trial_id, SUMMARY))
            waiting.setdefault(entry.trial_id, deque()).append(value)
        for trial in self.trials:
            state, scored = self._in_scores(trial)
            if state not in ("scored", "trial_failed") or scored is MODEL:
                continue
            expected = waiting.get(trial.id)
            if state == "scored" and scored is None and not (expected and _is_infinite(expected[0])):
                continue  # nothing that a trial can record; an infinite number is null in scores.jsonl
            if not expected:
                self._refuse(trial.id, f"{SCORES} has {_shown(scored)} and {SUMMARY} has no entry")
            value = expected.popleft()
            if not _agree(scored, value):
                self._refuse(trial.id, f"{SCORES} has {_shown(scored)} and {SUMMARY} has {_shown(value)}")
            is_typed = keeps_types or not isinstance(value, float) or not isinstance(scored, bool | int)
            trial.scores[self.name] = value if is_typed else scored
        for trial_id, left in waiting.items():
            if left:
                self._refuse(trial_id, f"{SUMMARY} has {_shown(left[0])} and {SCORES} has no such value")

    def drop_texts(self) -> int:
        """Leave out texts: they say nothing of whether an attempt passed. Returns how many there were."""
        texts = [trial for trial in self.trials if isinstance(trial.scores.get(self.name), str)]
        for trial in texts:
            del trial.scores[self.name]
        return len(texts)

    def _in_scores(self, trial: TrialRow) -> tuple[str, Any]:
        """What ``scores.jsonl`` says of this output: the state of its metric (``absent``: nothing), and the value."""
        metric = self.task.metrics.get(self.name)
        if metric is None:  # the bundle declares nothing of it
            metric = max((found for found in trial.metrics if self.name.startswith(f"{found}.")), key=len, default="")
        row = trial.metrics.get(metric)
        if row is None or (row.state == "scored" and self.name not in row.outputs):
            return "absent", None
        return row.state, row.outputs.get(self.name)

    def _where(self, trial_id: str, file: str) -> str:
        return f"{self.bundle.where(file)}: {self.name} of the trial {trial_id!r} at the task {self.task.id!r}"

    def _refuse(self, trial_id: str, how: str) -> NoReturn:
        raise RecordingError(f"{self._where(trial_id, SUMMARY)}: {how}", MIXED)


def _agree(scored: object, value: ScoreValue) -> bool:
    """Whether a value of ``scores.jsonl`` is that of the summary: NaN is a text in both, infinities are null there."""
    if isinstance(value, float) and not math.isfinite(value):
        is_float = isinstance(scored, float) and (scored == value or (math.isnan(scored) and math.isnan(value)))
        return is_float or (scored == "NaN" if math.isnan(value) else scored is None)
    return scored == value and isinstance(scored, str) == isinstance(value, str)


def _is_infinite(value: ScoreValue) -> bool:
    return isinstance(value, float) and math.isinf(value)


def _shown(value: Any) -> str:
    return named(value_to_json(value))
