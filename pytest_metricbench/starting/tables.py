"""Tables of results in a folder: which columns they have, and what each of them seems to be."""

import math
import os
import re
import statistics
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.interop.recordings import RecordingError
from pytest_metricbench.interop.table.columns import DEFAULTS
from pytest_metricbench.interop.table.rows import Table, large_cells
from pytest_metricbench.starting.finding import Finding, files_in, folders_in

SUFFIXES: Final = (".csv", ".tsv", ".jsonl", ".ndjson")
_ROLES: Final[Mapping[str, tuple[str, ...]]] = {
    "variant": ("variant", "agent", "model", "version", "system", "configuration", "config", "candidate", "solver"),
    "task": (
        *("task", "taskid", "taskname", "question", "questionid", "problem", "problemid", "instanceid", "exampleid"),
        *("itemid", "item", "promptid", "scenario"),
    ),
    "trial": ("trialid", "trial", "runid", "run", "attemptid", "attempt", "sample", "epoch", "seed", "repeat"),
    "error": ("error", "errormessage", "exception"),
}
"""Names that columns of a role have, best first, without case and marks between words."""
_SCORES: Final = ("reward", "score", "correct", "iscorrect", "passed", "pass", "success", "resolved", "solved")
_SCORES_TOO: Final = ("accuracy", "result", "verdict", "status", "outcome")
_GOOD: Final = frozenset({"pass", "passed", "ok", "success", "correct", "right", "resolved", "solved", "yes"})
_BAD: Final = frozenset({"fail", "failed", "failure", "incorrect", "wrong", "unresolved", "unsolved", "no"})
_DEAD: Final = frozenset({"died", "null"})
_BASELINE: Final = re.compile(r"base(line)?|main|control|reference|original|full|undamaged", re.IGNORECASE)
_LARGEST: Final = 1e300
_ROWS: Final = 20_000
_ROWS_OF_LARGE: Final = 500
_LARGE: Final = 64 << 20
"""Rows that are looked at; and of a file of so many bytes, whose rows may hold whole traces."""
_FILES: Final = 50


@dataclass(slots=True)
class _Read:
    """What the rows that were looked at say."""

    tasks: dict[str, None] = field(default_factory=dict)
    cases: dict[str, None] = field(default_factory=dict)
    values: defaultdict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    """Variant -> its values; a death is 0."""
    words: dict[str, bool] = field(default_factory=dict)
    """Words that stand for passes and misses."""


def find_table(folder: Path) -> Finding | None:
    """The first table, in a folder or directly below it, that has a column of tasks and one of scores.

    A table that says which version a row is of is a surer find than one file of a single version.
    """
    paths = [path for place in (folder, *folders_in(folder)) for path in files_in(place) if path.suffix in SUFFIXES]
    found = []
    for path in paths[:_FILES]:
        with large_cells():
            try:
                finding = _find(path, folder)
            except (RecordingError, OSError):
                continue  # no table that could be read later
        if finding is not None and finding.sure:
            return finding
        found.append(finding)
    return next((finding for finding in found if finding is not None), None)


def _find(path: Path, folder: Path) -> Finding | None:
    name = path.relative_to(folder).as_posix()
    table = Table(path, name, [])
    roles = _roles(table.columns)
    if "task" not in roles:
        return None
    limit = _ROWS if os.path.getsize(path) < _LARGE else _ROWS_OF_LARGE
    rows = [row.cells for row in islice(table.rows(), limit)]
    column = next((one for one in _named(table.columns, (*_SCORES, *_SCORES_TOO)) if _is_score(rows, one, table)), None)
    if column is None or not rows:
        return _find_wide(table, rows, name, roles)
    files = [name] if "variant" in roles else _alike(path, folder, table.columns)
    read = _read(rows, roles, column, Path(name).stem)
    if len(files) > 1:
        read.values.update({Path(file).stem: read.values.get(Path(file).stem, []) for file in files})
    roles = {**roles, "scores": column}
    return Finding("table", _reason(files, roles), _values(files, roles, read, table), sure="variant" in roles)


def _find_wide(table: Table, rows: Sequence[Mapping[str, Any]], name: str, roles: Mapping[str, str]) -> Finding | None:
    """A table with a row a task and a column a version: every other column has nothing but passes and misses."""
    if "variant" in roles or not rows:
        return None
    others = [column for column in table.columns if column and column not in roles.values()]
    versions = [column for column in others if _is_score(rows, column, table, shares=True)]
    if len(versions) < 2:
        return None
    read = _Read(tasks=dict.fromkeys(str(row.get(roles["task"], "")) for row in rows))
    for row in rows:
        for column in versions:
            if (value := _number(row.get(column), read.words)) is not None:
                read.values[column].append(value)
    kept = {"task": roles["task"]}
    reason = f"{name} has the tasks in {roles['task']!r} and a column for each of {len(versions)} versions"
    values = {**_values([name], kept, read, table), "versions": versions}
    return Finding("table", reason, values, sure=False)


def _roles(columns: Sequence[str]) -> dict[str, str]:
    """Role -> the column that is called so."""
    found = {role: next(iter(_named(columns, names)), None) for role, names in _ROLES.items()}
    roles = {role: column for role, column in found.items() if column is not None}
    return roles | ({"case": DEFAULTS["case"]} if DEFAULTS["case"] in columns else {})


def _named(columns: Iterable[str], names: Sequence[str]) -> list[str]:
    """The columns of these names, in the order of the names."""
    plain = {re.sub(r"[\W_]", "", column).casefold(): column for column in reversed(list(columns))}
    return [plain[name] for name in names if name in plain]


def _is_score(rows: Sequence[Mapping[str, Any]], column: str, table: Table, *, shares: bool = False) -> bool:
    """Whether every cell is a value, a word for one, a death, or empty, and some are no death and not empty."""
    seen = 0
    for row in rows:
        cell = row.get(column)
        if _is_nothing(cell):
            continue
        value = _number(cell, {})
        if value is None or (table.is_json and isinstance(cell, str) and _word(cell) not in _GOOD | _BAD | _DEAD):
            return False
        if shares and not 0 <= value <= 1:
            return False
        seen += _word(cell) not in _DEAD
    return seen > 0


def _is_nothing(cell: object) -> bool:
    return cell is None or (isinstance(cell, str) and not cell.strip())


def _word(cell: object) -> str:
    return cell.strip().casefold() if isinstance(cell, str) else ""


def _number(cell: object, words: dict[str, bool]) -> float | None:
    """The value of a cell, and the words for one that were met; None where it has none."""
    if isinstance(cell, bool | int | float):
        return None if abs(cell) > _LARGEST else float(cell)
    word = _word(cell)
    if word in ("true", "false") or word in _DEAD:
        return float(word == "true")
    if word in _GOOD | _BAD:
        words[str(cell).strip()] = word in _GOOD
        return float(word in _GOOD)
    try:
        return float(word)
    except ValueError:
        return None


def _read(rows: Sequence[Mapping[str, Any]], roles: Mapping[str, str], column: str, stem: str) -> _Read:
    read = _Read()
    for row in rows:
        read.tasks.setdefault(str(row.get(roles["task"], "")))
        if "case" in roles and not _is_nothing(row.get("case")):
            read.cases.setdefault(str(row["case"]).strip())
        variant = str(row.get(roles["variant"], "")).strip() if "variant" in roles else stem
        values = read.values[variant]  # a version of which no attempt has a value is one too
        if (value := _number(row.get(column), read.words)) is not None:
            values.append(value)
    return read


def _alike(path: Path, folder: Path, columns: Sequence[str]) -> list[str]:
    """The files beside a table that have the same columns: of one version each."""
    alike = []
    for other in files_in(path.parent)[:_FILES]:
        if other.suffix != path.suffix:
            continue
        try:
            same = Table(other, other.name, list(columns)).columns == list(columns)
        except RecordingError:
            same = False
        if same:
            alike.append(other.relative_to(folder).as_posix())
    return alike


def _reason(files: Sequence[str], roles: Mapping[str, str]) -> str:
    words = {"variant": "versions", "task": "tasks", "scores": "scores"}
    columns = ", ".join(f"{what} in {roles[role]!r}" for role, what in words.items() if role in roles)
    others = f" and {len(files) - 1} files like it" if len(files) > 1 else ""
    return f"{files[0]}{others} has {columns}"


def _values(files: Sequence[str], roles: Mapping[str, str], read: _Read, table: Table) -> dict[str, Any]:
    baseline, why = _baseline(read.values)
    numbers = [value for values in read.values.values() for value in values if math.isfinite(value)]
    passing = None
    if numbers and max(numbers) != 1 and not set(numbers) <= {0, 1}:
        own = [value for value in read.values[baseline] if math.isfinite(value)]
        passing = round(statistics.median(own or numbers), 6)
    return {
        "files": list(files),
        "roles": dict(roles),
        "words": read.words,
        "baseline": baseline,
        "why": why,
        "tasks": [task for task in read.tasks if task.strip()],
        "cases": list(read.cases),
        "span": (min(numbers), max(numbers)) if numbers else None,
        "pass_at_least": passing,
        "rest": [name for name in table.columns if name and name not in roles.values()],
    }


def _baseline(values: Mapping[str, Sequence[float]]) -> tuple[str, str]:
    """The version that seems to be the undamaged one, and why."""
    variants = [variant for variant in values if variant]
    if len(variants) == 1:
        return variants[0], "the only one"
    called = [variant for variant in variants if _BASELINE.search(variant)]
    if len(called) == 1:
        return called[0], f"called so, of {len(variants)}"
    means = {variant: statistics.fmean(values[variant] or [0.0]) for variant in called or variants}
    best = max(means, key=lambda variant: -math.inf if math.isnan(means[variant]) else means[variant], default="")
    return best, f"the best of {len(variants)}"
