"""Two runs from small tables, and trial ids as the plugin draws them."""

import hashlib
from dataclasses import replace
from typing import Any

from pytest_metricbench.analysis.comparing import compare_runs, compared
from pytest_metricbench.analysis.comparing_models import CaseComparison, RunComparison
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import GateResult, Summary
from pytest_metricbench.definition.gates import parse_gate
from tests.analysis.results_builder import CaseTable, build

BASE: dict[str, list[Any]] = {"a": [1] * 5, "b": [1, 1, 1, 1, 0], "c": [1] * 5}


def table(variants: dict[str, dict[str, list[Any]]] | None = None, base: Any = BASE, **fields: Any) -> CaseTable:
    return CaseTable({"baseline": base, **(variants or {})}, **fields)


def summary_of(tables: Any, *, run: str | None = None, **settings: Any) -> Summary:
    """A summary; with ``run`` the trial ids are those that the plugin would draw in a run of that name."""
    results = build(tables, **{"permutation": 999, **settings})
    if run is not None:
        attempts = {
            key: replace(record, trial_id=hashlib.md5(f"{run} {key}".encode()).hexdigest())
            for key, record in results.attempts.items()
        }
        results = replace(results, attempts=attempts)
    return summarize(results)


def comparison(before: Any, after: Any, **settings: Any) -> RunComparison:
    return compare_runs(summary_of(before, **settings), summary_of(after, **settings), "before")


def case(before: Any, after: Any, **settings: Any) -> CaseComparison:
    return comparison(before, after, **settings).cases["c"]


def checked(text: str, before: Any, after: Any, **settings: Any) -> GateResult:
    """A gate of the later run, with the ids in front of its figure taken for case and subject."""
    (result,) = with_gates([text], before, after, **settings).gates
    return result


def with_gates(texts: list[str], before: Any, after: Any, **settings: Any) -> Summary:
    gates = [resolved(text) for text in texts]
    later = summary_of(after, **settings)
    return later if before is None else compared(later, summary_of(before, **settings), "before", gates)


def resolved(text: str) -> Any:
    gate, names = parse_gate(text)
    of_case = names[:1] if len(names) == 2 or gate.figure == "new_survivors" else ()
    subject = names[len(of_case) :]
    return replace(gate, case=of_case[0] if of_case else None, subject=subject[0] if subject else None)
