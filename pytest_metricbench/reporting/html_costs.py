"""Time, and what attempts measured of themselves (cost, tokens, calls), by variant."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from statistics import median

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.definition.experiment import Case


@dataclass(frozen=True, slots=True)
class Amount:
    """What the attempts of a variant took of one thing."""

    attempts: int
    """Attempts that say so."""
    total: float
    middle: float
    """The median of an attempt."""


@dataclass(frozen=True, slots=True)
class CostRow:
    """A variant: its time, and each measurement; None where no attempt has it."""

    variant: str
    seconds: Amount | None
    measurements: tuple[Amount | None, ...]


@dataclass(frozen=True, slots=True)
class Costs:
    """What a case took: a row each variant, and all of them."""

    names: tuple[str, ...]
    """Of the measurements, in the order of each row."""
    rows: tuple[CostRow, ...]
    total: CostRow


def case_costs(results: Results, case: Case) -> Costs:
    """Time and measurements of a case's attempts.

    Time is that of the agent and the verifier together, of every attempt that there is a record of, those that were
    taken from the store among them. Measurements are the scores that the experiment, or the task, declares as
    ``measurement``.
    """
    names = tuple(sorted(_measurements(results, case)))
    records = {variant.id: list(_records(results, case, variant.id)) for variant in case.variants}
    rows = tuple(_row(variant, found, names) for variant, found in records.items())
    everything = [record for found in records.values() for record in found]
    return Costs(names, rows, _row("all variants", everything, names))


def _measurements(results: Results, case: Case) -> set[str]:
    outputs = [results.experiment.score.outputs, *(task.outputs for task in case.tasks)]
    return {name for kinds in outputs for name, kind in kinds.items() if kind == "measurement"}


def _records(results: Results, case: Case, variant: str) -> Iterator[AttemptRecord]:
    for task in case.tasks:
        for slot in case.slots(variant, task):
            record = results.attempts.get((case.id, variant, task.id, slot))
            if record is not None:
                yield record


def _row(variant: str, records: list[AttemptRecord], names: tuple[str, ...]) -> CostRow:
    run = [record for record in records if record.outcome not in ("not_reached", "not_needed")]
    return CostRow(
        variant,
        _amount(record.duration for record in run),
        tuple(_amount(_numbers(run, name)) for name in names),
    )


def _numbers(records: Iterable[AttemptRecord], name: str) -> Iterator[float]:
    for record in records:
        value = record.scores.get(name)
        if isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value):
            yield float(value)


def _amount(values: Iterable[float]) -> Amount | None:
    found = list(values)
    return Amount(len(found), math.fsum(found), median(found)) if found else None
