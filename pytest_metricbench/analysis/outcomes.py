"""From records to entries: what each attempt counts as under today's ``score`` key, and its values score by score.

An attempt that died has a null entry for every score of its task and counts as not passed. An unmeasured or missing
one has no entry and counts nowhere. Whether an attempt passed is no part of its record: it is decided here.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from pytest_metricbench.analysis.figures import whole_text
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.variant_models import AttemptValue
from pytest_metricbench.contracts import NOT_RECORDED, TIME_OUT, AttemptRecord, OutputKind
from pytest_metricbench.definition.experiment import BASELINE, Case, ScorePolicy, Task, Variant
from pytest_metricbench.definition.scoring import UNCOUNTED, output_kinds, status
from pytest_metricbench.score_values import ScoreValue, value_to_json, value_type

DEFAULT_PRIMARY: Final = "reward"
_PARTS: Final = re.compile(r"[0-9]+|[^0-9]+")


def passes(value: ScoreValue, pass_at_least: float) -> bool:
    """Whether a value of a score passes: a boolean when it is true, a number from the threshold on; NaN never.

    The one threshold of the ``score`` key holds for every score that counts, not only for the primary one.
    """
    if isinstance(value, bool):
        return value
    return isinstance(value, int | float) and value >= pass_at_least


def primary_score(results: Results) -> str:
    """The one score that decides in all of an experiment.

    The declared one, else the only one that its scored attempts have (labels and measurements aside), else ``reward``.
    An attempt that alone has another single score is judged by that while it runs, and is unmeasured here.
    """
    policy = results.experiment.score
    if policy.primary is not None:
        return policy.primary
    kinds = {(case.id, task.id): {**policy.outputs, **task.outputs} for case, task in _tasks(results)}
    seen = {name for declared in kinds.values() for name, kind in declared.items() if kind not in UNCOUNTED}
    if len(seen) > 1:
        return DEFAULT_PRIMARY
    for record in results.attempts.values():
        if record.outcome == "scored":
            declared = kinds.get((record.case, record.task), policy.outputs)
            seen.update(name for name in record.scores if declared.get(name) not in UNCOUNTED)
            if len(seen) > 1:
                return DEFAULT_PRIMARY
    return seen.pop() if seen else DEFAULT_PRIMARY


def _tasks(results: Results) -> Iterator[tuple[Case, Task]]:
    return ((case, task) for case in results.experiment.cases for task in case.tasks)


def entry_passes(entry: AttemptValue, pass_at_least: float) -> bool:
    """Whether an entry of a score that counts passes."""
    return entry.value == "Infinity" or passes(entry.value, pass_at_least)


@dataclass(slots=True)
class Tally:
    """Entries of one score at one task under one variant, and how many of them pass."""

    n: int = 0
    passed: int = 0


@dataclass(slots=True)
class Cell:
    """One variant at one task: attempts by what they count as, entries by score."""

    n: int = 0
    """Entries of the primary score."""
    passed: int = 0
    died: int = 0
    timed_out: int = 0
    """Of those that died."""
    unmeasured: int = 0
    not_reached: int = 0
    not_needed: int = 0
    missing: int = 0
    outside: int = 0
    reused: int = 0
    values: dict[str, tuple[AttemptValue, ...]] = field(default_factory=dict)
    tallies: dict[str, Tally] = field(default_factory=dict)
    """By score that counts at this task."""

    @property
    def declared(self) -> int:
        """Attempts that were asked for."""
        return self.known + self.missing + self.outside

    @property
    def known(self) -> int:
        """Attempts that an outcome arrived of."""
        return self.n + self.unmeasured + self.not_reached + self.not_needed


@dataclass(frozen=True, slots=True)
class CaseOutcomes:
    """The outcomes of one case: cells by variant and task, both in a fixed order."""

    case: Case
    tasks: tuple[Task, ...]
    """By id, so that nothing depends on their order in the file."""
    cells: Mapping[str, Mapping[str, Cell]]
    """Variant -> task -> cell; variants in the order of the file."""
    counting: Mapping[str, frozenset[str]]
    """Task -> the scores that count there: neither labels nor measurements."""

    @property
    def baseline(self) -> Mapping[str, Cell]:
        """The baseline's cells by task."""
        return self.cells[BASELINE]

    @property
    def scores(self) -> list[str]:
        """The scores that count at some task, sorted."""
        return sorted(set().union(*self.counting.values()))


def natural_key(name: str) -> tuple[list[tuple[bool, int, str]], str]:
    """Sorts ids as people count: ``s2`` before ``s10``; independent of everything but the id."""
    parts = ((part, part[0] not in "0123456789") for part in _PARTS.findall(name))
    return [(text, 0, part) if text else (text, int(part), "") for part, text in parts], name


def case_outcomes(results: Results, case: Case, primary: str) -> CaseOutcomes:
    """Every attempt of a case as an entry, or as the absence of one."""
    policy = replace(results.experiment.score, primary=primary)
    tasks = tuple(sorted(case.tasks, key=lambda task: natural_key(task.id)))
    records = {
        (variant.id, task.id): _records(results, case, variant, task) for variant in case.variants for task in tasks
    }
    kinds = {
        task.id: output_kinds(
            policy, task, (record for variant in case.variants for record in records[variant.id, task.id])
        )
        for task in tasks
    }
    cells = {
        variant.id: {task.id: _cell(policy, records[variant.id, task.id], kinds[task.id]) for task in tasks}
        for variant in case.variants
    }
    for variant in case.variants:
        for task in tasks:
            _add_absent(
                results, (case.id, variant.id, task.id), case.slots(variant.id, task), cells[variant.id][task.id]
            )
    counting = {
        task: frozenset(name for name, kind in named.items() if kind not in UNCOUNTED) for task, named in kinds.items()
    }
    return CaseOutcomes(case, tasks, cells, counting)


def _records(results: Results, case: Case, variant: Variant, task: Task) -> list[AttemptRecord]:
    """The records of the attempts that the experiment declares today, by slot."""
    found = (results.attempts.get((case.id, variant.id, task.id, slot)) for slot in case.slots(variant.id, task))
    return [record for record in found if record is not None]


def _cell(policy: ScorePolicy, records: list[AttemptRecord], kinds: Mapping[str, OutputKind]) -> Cell:
    """What the records of one variant at one task say: pass@k comes from the very entries that the summary lists."""
    cell = Cell()
    for record in records:
        word = status(policy, record)
        if word == "not_reached":
            cell.not_reached += 1
            continue
        if word == "not_needed":
            cell.not_needed += 1
            continue
        if word == "unmeasured":
            if record.error is not None and record.error.type == NOT_RECORDED:
                cell.missing += 1
            else:
                cell.unmeasured += 1
            continue
        cell.n += 1
        cell.passed += word == "passed"
        cell.died += word == "died"
        cell.timed_out += word == "died" and record.error is not None and record.error.type == TIME_OUT
    for name, kind in kinds.items():
        cell.values[name] = entries = _entries(records, name, kind)
        if kind not in UNCOUNTED:
            passed = sum(1 for entry in entries if entry_passes(entry, policy.pass_at_least))
            cell.tallies[name] = Tally(len(entries), passed)
    return cell


def _add_absent(results: Results, place: tuple[str, str, str], slots: range, cell: Cell) -> None:
    """Count the attempts that have no record, and those that were reused."""
    if not results.reused and cell.known + cell.missing == len(slots):
        return
    for slot in slots:
        key = (*place, slot)
        if key in results.attempts:
            cell.reused += key in results.reused
        elif key in results.outside:
            cell.outside += 1
        else:
            cell.missing += 1


def _entries(records: list[AttemptRecord], name: str, kind: OutputKind) -> tuple[AttemptValue, ...]:
    """The entries of one score: none for an unmeasured attempt, null for one that died.

    A text where the score is a number or a boolean is no entry: it says nothing of whether the attempt passed.
    """
    entries: list[AttemptValue] = []
    for record in records:
        if record.outcome == "died":
            entries.append(AttemptValue(record.shown_id, "missing", None))
        elif name in record.scores:
            value = record.scores[name]
            if isinstance(value, str):
                if kind not in UNCOUNTED:
                    continue
                value = str(whole_text(value))
            entries.append(AttemptValue(record.shown_id, value_type(value), value_to_json(value)))
    return tuple(entries)
