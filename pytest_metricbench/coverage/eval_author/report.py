"""What the audit's scripts wrote, read; and what follows from it: the score and its goals, or why there is none."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from pytest_metricbench.answers import named, read_json_file
from pytest_metricbench.contracts import ContractError, CoverageError, Goals, Score
from pytest_metricbench.coverage.eval_author.inputs import Run
from pytest_metricbench.coverage.eval_author.keys import KIND_OF, Kind, Method, Scope
from pytest_metricbench.coverage.eval_author.steps import DOCUMENT_LIMIT

MEASUREMENTS: Final = "measurements"
"""Folder of what ``measure.py`` writes, below the request's."""
REPORT_FILE: Final = "report.json"
KINDS: Final[tuple[Kind, ...]] = tuple(KIND_OF.values())
_UNDECIDED: Final = ("unjudged", "unsupported")
"""``status`` of evidence about which nothing is known."""
_WORDS: Final = {"tool": "tool", "capability": "capability", "failure_case": "failure case"}


def kinds_of(scope: Scope) -> tuple[Kind, ...]:
    """The kinds of items that a scope counts."""
    return KINDS if scope == "overall" else (scope,)


def folder_of(run: Run, method: Method) -> str:
    """Where ``measure.py`` writes the two documents of a method, below the request's folder."""
    return f"{MEASUREMENTS}/task={quote(run.task, safe='')}/run={quote(run.id, safe='')}/{method}"


@dataclass(frozen=True, slots=True)
class Pending:
    """Evidence of an item about which nothing is known: a judgment is missing, or its kind is not supported."""

    run: Run
    kind: Kind
    item: str
    evidence: str
    status: str


@dataclass(frozen=True, slots=True)
class Measurement:
    """What one method found in one run."""

    run: Run
    kind: Kind
    covered: tuple[str, ...]
    pending: tuple[Pending, ...]


@dataclass(frozen=True, slots=True)
class Report:
    """What ``report.py`` counted: per kind (items, covered), and every item's kind by its name."""

    counts: Mapping[Kind, tuple[int, int]]
    kinds: Mapping[str, Kind]
    inputs: int
    """How many coverage.json it added up."""


# ---------------------------------------------------------------- reading


def read_measurement(workspace: Path, run: Run, method: Method) -> Measurement:
    """Read the two documents of a method.

    The kind is that of ``coverage.json``: the details of capabilities and of failure cases do not say it.

    Raises:
        CoverageError: a document is missing or not of the documented form.
    """
    folder = folder_of(run, method)
    document = _Document(workspace, f"{folder}/coverage.json")
    kind = _kind(document, document.get("item_kind", str))
    items = document.get("item_kind_count", int)
    covered = document.texts("covered")
    if kind == "tool":
        return Measurement(run, kind, covered, ())
    details = _Document(workspace, f"{folder}/details.json")
    results = details.get(f"{kind}_results", dict)
    if len(results) != items:
        raise details.wrong(f"{kind}_results has {len(results)} entries, and the audit {items} such items")
    pending = tuple(entry for item, result in results.items() for entry in _pending(details, run, kind, item, result))
    return Measurement(run, kind, covered, pending)


def _pending(details: "_Document", run: Run, kind: Kind, item: str, result: Any) -> Iterator[Pending]:
    evidence = result.get("evidence_results") if isinstance(result, dict) else None
    if not isinstance(evidence, list):
        raise details.wrong(f"{kind}_results of {item} has no list evidence_results")
    for number, entry in enumerate(evidence):
        status = entry.get("status") if isinstance(entry, dict) else None
        if not isinstance(status, str):
            raise details.wrong(f"evidence {number} of {item} has no status")
        if status in _UNDECIDED:
            index, what = entry.get("evidence_index", number), entry.get("kind", "of an unknown kind")
            yield Pending(run, kind, item, f"evidence {index} ({what})", status)


def read_report(workspace: Path) -> Report:
    """Read ``report.json``.

    Raises:
        CoverageError: it is missing or not of the documented form, or its numbers contradict its lists.
    """
    document = _Document(workspace, REPORT_FILE)
    by_kind = document.get("coverage", dict).get("by_kind")
    counts: dict[Kind, tuple[int, int]] = {}
    for kind in KINDS:
        entry = by_kind.get(kind) if isinstance(by_kind, dict) else None
        items, covered = (entry.get("item_count"), entry.get("covered_count")) if isinstance(entry, dict) else (0, None)
        if type(items) is not int or type(covered) is not int or not 0 <= covered <= items:
            raise document.wrong(
                f"coverage.by_kind.{kind} is {named(entry)}; item_count and covered_count are expected"
            )
        counts[kind] = (items, covered)
    inputs = document.get("input_reports", list)
    kinds: dict[str, Kind] = {}
    for entry in (*inputs, *document.get("uncovered_items", list)):
        if not isinstance(entry, dict):
            raise document.wrong("an entry of input_reports or uncovered_items is no mapping")
        kind = _kind(document, entry.get("item_kind", entry.get("kind")))
        names = entry["covered"] if isinstance(entry.get("covered"), list) else [entry.get("name")]
        kinds.update({name: kind for name in names if isinstance(name, str)})
    listed = Counter(kinds.values())
    if any(listed[kind] != items for kind, (items, _) in counts.items()):
        raise document.wrong("covered and uncovered items are not as many as coverage.by_kind counts")
    return Report(counts, kinds, len(inputs))


def _kind(document: "_Document", value: object) -> Kind:
    for kind in KINDS:
        if value == kind:
            return kind
    raise document.wrong(f"the kind {named(value)} is none of {', '.join(KINDS)}")


class _Document:
    """A JSON object that a script wrote, and how its errors name it."""

    def __init__(self, workspace: Path, name: str) -> None:
        self._name = name
        try:
            self._value = read_json_file(workspace / name, DOCUMENT_LIMIT)
        except ContractError as error:
            raise CoverageError(f"{name.rpartition('/')[0] or 'the report'}: {error}") from None
        if not isinstance(self._value, dict):
            raise self.wrong(f"it holds {named(self._value)}; a mapping is expected")

    def wrong(self, problem: str) -> CoverageError:
        return CoverageError(f"{self._name}: {problem}; are these the scripts of Eval Author's audit?")

    def get(self, key: str, kind: type) -> Any:
        value = self._value.get(key)
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise self.wrong(f"{key} is {named(value)}")
        return value

    def texts(self, key: str) -> tuple[str, ...]:
        values = self.get(key, list)
        if not all(isinstance(value, str) for value in values):
            raise self.wrong(f"{key} is no list of names")
        return tuple(values)


# ---------------------------------------------------------------- the score


def score_of(
    scope: Scope,
    tasks: Sequence[str],
    report: Report,
    measurements: Sequence[Measurement],
    *,
    judged: Mapping[str, bool],
) -> Score:
    """Covered items / items of a scope, with the covered item names of each task; or null with the reason.

    Null only for what concerns the scope: it has no items; a kind of its items was not measured (the report counts
    such items as uncovered); or evidence of one of its items is unjudged or unsupported in some run. So a further
    method never changes the score of a scope that had one.

    Args:
        scope: which items count.
        tasks: of the subset.
        report: over all measurements.
        measurements: of every run and method.
        judged: run id -> whether a judgment file was there for it, when the experiment names some; for the reason.

    Raises:
        CoverageError: report and measurements contradict one another.
    """
    kinds = kinds_of(scope)
    items = sum(report.counts[kind][0] for kind in kinds)
    if not items:
        return Score(None, f"the audit has no {_WORDS.get(scope, '')} items".replace("  ", " "))
    measured = {measurement.kind for measurement in measurements}
    lacking = [kind for kind in kinds if report.counts[kind][0] and kind not in measured]
    if lacking:
        method = next(method for method, kind in KIND_OF.items() if kind == lacking[0])
        what = f"{_WORDS[lacking[0]]} items are not measured, which the scope {scope} counts"
        return Score(None, f"{what}; add {method} to methods")
    inside = [measurement for measurement in measurements if measurement.kind in kinds]
    pending = [entry for measurement in inside for entry in measurement.pending]
    if pending:
        return Score(None, _why_pending(pending, judged))
    return _counted(kinds, items, tasks, report, inside)


def _why_pending(pending: Sequence[Pending], judged: Mapping[str, bool]) -> str:
    first = pending[0]
    more = f" (and {len(pending) - 1} more)" if len(pending) > 1 else ""
    where = f"{first.evidence} of the {_WORDS[first.kind]} {first.item} in {first.run.words}"
    if first.status == "unsupported":
        return f"the scripts cannot measure {where}{more}"
    hint = ""
    if judged.get(first.run.id) is False:
        hint = f"; no file under judgments is for its trace, {first.run.sha256}"
    return f"a judgment is missing: {where}{more}{hint}"


def _counted(
    kinds: Sequence[Kind], items: int, tasks: Sequence[str], report: Report, measurements: Sequence[Measurement]
) -> Score:
    universe = sorted(name for name, kind in report.kinds.items() if kind in kinds)
    by_task: dict[str, set[str]] = {task: set() for task in tasks}
    for measurement in measurements:
        by_task[measurement.run.task].update(measurement.covered)
    covered = sum(report.counts[kind][1] for kind in kinds)
    found = set().union(*by_task.values())
    if len(found) != covered or not found <= set(universe):
        raise CoverageError(
            f"{REPORT_FILE} counts {covered} covered items, and the measurements cover {len(found)}: "
            f"{', '.join(sorted(found)) or 'none'}"
        )
    return Score(covered / items, goals=Goals(tuple(universe), {task: tuple(sorted(by_task[task])) for task in tasks}))
