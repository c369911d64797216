"""Every figure without a value that the page would show, under its reason."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from pytest_metricbench.analysis.figures import Figure, SummaryModel
from pytest_metricbench.analysis.summary import CaseSummary, Summary

MOST_NAMES: Final = 12
"""Figures named under one reason."""


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A reason, and the figures that are missing because of it."""

    reason: str
    figures: tuple[str, ...]
    more: int
    """Figures that are not named."""


def unavailable_figures(summary: Summary) -> list[Unavailable]:
    """The reasons in the order of the summary, each once. Intervals and p values count as figures too.

    The figures of single subsets are left out where the table of subsets shows them; so is what a kill rule does not
    have (``flip`` knows no threshold), and how high a coefficient could get (``balance``).
    """
    by_reason: dict[str, list[str]] = {}
    several = len(summary.cases) > 1
    for name, case in summary.cases.items():
        start = f"{name}: " if several else ""
        for path, reason in _of_case(case):
            by_reason.setdefault(reason, []).append(f"{start}{path}")
    for path, reason in _walk(summary.over_cases, ("over the cases",)):
        by_reason.setdefault(reason, []).append(path)
    return [
        Unavailable(reason, tuple(names[:MOST_NAMES]), max(len(names) - MOST_NAMES, 0))
        for reason, names in by_reason.items()
    ]


def _of_case(case: CaseSummary) -> Iterator[tuple[str, str]]:
    for name, variant in case.variants.items():
        if variant.valid:  # of an invalid one the table says so
            yield from _walk(variant.pass_at_k, (name, "pass@k"))
    if case.kills:
        yield from _walk({"kill share": case.pool.kill_share, "mean drop": case.pool.mean_drop}, ("pool",))
        yield from _walk(case.against_itself, ("baseline against itself",))
        if case.mutants.controls:
            yield from _walk(case.false_kills, ("false kills",))
    yield from _walk(case.pool.coverage, ("pool", "coverage"))
    if case.kills and case.subsets:
        for word in ("correlation", "comparisons", "reliability", "choice"):
            yield from _walk(getattr(case, word), (word,))


def _walk(value: object, path: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """Every figure without a value in a part of the summary: where it is, and why."""
    if isinstance(value, Figure) and value.reason is not None:
        yield " ".join(path), value.reason
        return
    if isinstance(value, SummaryModel):
        reason = getattr(value, "interval_reason", None)
        if reason is not None:
            yield " ".join((*path, "interval")), reason
        for name in (name for name in type(value).model_fields if name != "balance"):
            yield from _walk(getattr(value, name), (*path, name.replace("_", " ")))
    elif isinstance(value, Mapping):
        for name, item in value.items():
            yield from _walk(item, (*path, str(name).replace("_", " ") if "_" in str(name) else str(name)))
    elif isinstance(value, tuple) and value and isinstance(value[0], SummaryModel):
        for item in value:
            first, second = getattr(item, "first", ""), getattr(item, "second", "")
            yield from _walk(item, (*path, f"{first} and {second}") if first else path)
