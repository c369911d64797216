"""What a run would do and what it would take, before it does: from the store, without running anything.

Durations and costs are those that records of the store have: of the very attempt, else the mean of its variant at its
task, else of its task, its case, or of all.
"""

import math
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from typing import Final

from pytest_metricbench.budget import Budget, agent_ran, cost_of
from pytest_metricbench.contracts import AttemptKey, AttemptRecord
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.running.attempts import Attempts, Standing

_RUN_AGAIN: Final = ("unmeasured", "not_needed")
"""Outcomes that are never reused."""


class Means:
    """Means of something that attempts have, at ever wider places."""

    def __init__(self) -> None:
        """Nothing is known yet."""
        self._sums: Final[dict[tuple[object, ...], tuple[float, int]]] = {}

    def __len__(self) -> int:
        """How many values are behind the widest mean."""
        return self._sums.get((), (0.0, 0))[1]

    def add(self, key: AttemptKey, value: float) -> None:
        """Take the value of an attempt into account."""
        for place in _places(key):
            total, count = self._sums.get(place, (0.0, 0))
            self._sums[place] = (total + value, count + 1)

    def of(self, key: AttemptKey) -> float | None:
        """What an attempt is expected to have; None where nothing is known."""
        for place in _places(key):
            if place in self._sums:
                total, count = self._sums[place]
                return total / count
        return None


def _places(key: AttemptKey) -> Iterator[tuple[object, ...]]:
    case, variant, task, _ = key
    yield from (key, (case, variant, task), (case, task), (case,), ())


class Estimates:
    """What attempts take, from records of attempts whose agent ran.

    Attributes:
        seconds: durations.
        cost: what they say that they cost.
        unit: what the first score that said so is called; empty where none did.
    """

    def __init__(self, records: Iterable[AttemptRecord], cost_scores: Sequence[str]) -> None:
        """From the records of a store."""
        self.seconds: Final = Means()
        self.cost: Final = Means()
        self.unit = ""
        self._cost_scores: Final = cost_scores
        for record in records:
            self.add(record)

    def add(self, record: AttemptRecord) -> None:
        """Take another record into account."""
        if not agent_ran(record):
            return
        self.seconds.add(record.key, record.duration)
        found = cost_of(record.scores, self._cost_scores)
        if found is not None:
            self.unit = self.unit or found[0]
            self.cost.add(record.key, found[1])


def standings(experiment: Experiment, attempts: Attempts) -> dict[AttemptKey, Standing]:
    """What the store's record of every attempt is worth today; reads what they left."""
    return {
        (case.id, variant.id, task.id, slot): attempts.standing(case, variant, task, slot)
        for case, variant, task, slot in experiment.attempts()
    }


def likely_to_run(
    experiment: Experiment,
    fingerprints: Fingerprints,
    stored: Mapping[AttemptKey, AttemptRecord],
    selected: AbstractSet[AttemptKey],
) -> set[AttemptKey]:
    """The selected attempts that will most likely have to run, told without looking at what the others left."""
    found = set()
    for case, variant, task, slot in experiment.attempts():
        key = (case.id, variant.id, task.id, slot)
        if key not in selected:
            continue
        record = stored.get(key)
        if record is None or record.outcome in _RUN_AGAIN:
            found.add(key)
            continue
        if record.fingerprint != fingerprints.attempt(case, variant, task):
            found.add(key)
    return found


def time_needed(seconds: Collection[float], at_a_time: int) -> float:
    """Seconds of clock that attempts need, so many at a time: never less than the longest."""
    return max(math.fsum(seconds) / max(at_a_time, 1), max(seconds, default=0.0))


class Remaining:
    """What is left of a run, kept up to date in constant time for each attempt that ends.

    Attributes:
        pending: attempts that will most likely run -> seconds expected of each, where anything was known.
        total: attempts that are part of the run.
    """

    def __init__(self, pending: Iterable[AttemptKey], estimates: Estimates, total: int) -> None:
        """Before the first attempt ended."""
        self.pending: Final[dict[AttemptKey, float | None]] = {key: estimates.seconds.of(key) for key in pending}
        self.total: Final = total
        self._known = math.fsum(seconds for seconds in self.pending.values() if seconds is not None)
        self._unknown = sum(1 for seconds in self.pending.values() if seconds is None)
        self._measured, self._count = 0.0, 0

    def ended(self, key: AttemptKey, seconds: float | None) -> None:
        """An attempt has its outcome; ``seconds`` where it was run now."""
        expected = self.pending.pop(key, math.nan)
        if expected is None:
            self._unknown -= 1
        elif not math.isnan(expected):
            self._known -= expected
        if seconds is not None:
            self._measured, self._count = self._measured + seconds, self._count + 1

    def seconds(self) -> float | None:
        """What is left, one after the other; None where nothing is known of some: nothing ran, nothing is recorded."""
        if not self._unknown:
            return max(self._known, 0.0)
        return max(self._known, 0.0) + self._unknown * self._measured / self._count if self._count else None


# ---------------------------------------------------------------- the plan


@dataclass(slots=True)
class PlannedVariant:
    """What a run would do about one variant."""

    case: str
    variant: str
    run: int = 0
    scored_again: int = 0
    reused: int = 0
    seconds: list[float] = field(default_factory=list)
    """Of those that would run, as far as anything is known."""
    costs: list[float] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run of the selected attempts would do now.

    Attributes:
        variants: what it would do, by variant, in the order of the file.
        reasons: why attempts would run or be scored again -> how many.
        declared: attempts of the whole experiment.
        seconds_known: recorded durations behind the estimate.
        costs_known: recorded costs behind the estimate.
        unit: what the score is called that says what attempts cost.
        at_a_time: attempts that run at a time.
        changes: a sentence on what has changed since stale attempts were made; None where none is stale.
        requests: coverage requests that would be measured, and that are in the store; those whose baseline would run
            count as measured.
        budget: what one run may spend.
        executor: what would make the attempts, in words; empty where the items themselves would.
    """

    experiment: str
    variants: Sequence[PlannedVariant]
    reasons: Mapping[str, int]
    declared: int
    seconds_known: int
    costs_known: int
    unit: str
    at_a_time: int
    changes: str | None
    requests: tuple[int, int]
    budget: Budget | None
    executor: str = ""

    @property
    def run(self) -> int:
        """Attempts that would run."""
        return sum(variant.run for variant in self.variants)

    @property
    def scored_again(self) -> int:
        """Attempts whose agent would not run and whose score would be made anew."""
        return sum(variant.scored_again for variant in self.variants)

    @property
    def reused(self) -> int:
        """Attempts that would be taken from the store."""
        return sum(variant.reused for variant in self.variants)

    @property
    def selected(self) -> int:
        """Attempts that the run would be about."""
        return self.run + self.scored_again + self.reused

    @property
    def seconds(self) -> list[float]:
        """Expected durations of the attempts that would run, of those about which anything is known."""
        return [seconds for variant in self.variants for seconds in variant.seconds]

    @property
    def costs(self) -> list[float]:
        """Expected costs, likewise."""
        return [cost for variant in self.variants for cost in variant.costs]

    def runs_needed(self) -> int | None:
        """Runs that it takes within the budget, the first one included; None without a budget or with nothing to do."""
        budget, todo = self.budget, self.run + self.scored_again
        if budget is None or not budget.limits or not todo:
            return None
        needed = [1.0]
        if budget.attempts is not None:
            needed.append(todo / budget.attempts)
        if budget.seconds is not None:
            needed.append(time_needed(self.seconds, self.at_a_time) / budget.seconds)
        if budget.cost is not None:
            needed.append(math.fsum(self.costs) / budget.cost)
        return math.ceil(round(max(needed), 9))


def plan_of(
    experiment: Experiment,
    found: Mapping[AttemptKey, Standing],
    estimates: Estimates,
    *,
    at_a_time: int,
    changes: str | None,
    requests: tuple[int, int],
    budget: Budget | None,
    executor: str,
) -> Plan:
    """The plan of a run.

    Args:
        experiment: what would be run.
        found: the standing of each selected attempt.
        estimates: what attempts take.
        at_a_time: attempts that run at a time.
        changes: a sentence on what has changed since stale attempts were made.
        requests: coverage requests that would be measured, and that are in the store.
        budget: what one run may spend.
        executor: what would make the attempts, in words.
    """
    keys = [(case.id, variant.id, task.id, slot) for case, variant, task, slot in experiment.attempts()]
    standings = [(key, found[key]) for key in keys if key in found]
    reasons = Counter(standing.why for _, standing in standings if standing.state != "reusable")
    return Plan(
        experiment=experiment.name,
        variants=_variants(standings, estimates),
        reasons=dict(reasons.most_common()),
        declared=len(keys),
        seconds_known=len(estimates.seconds),
        costs_known=len(estimates.cost),
        unit=estimates.unit,
        at_a_time=at_a_time,
        changes=changes,
        requests=requests,
        budget=budget,
        executor=executor,
    )


def _variants(standings: Iterable[tuple[AttemptKey, Standing]], estimates: Estimates) -> tuple[PlannedVariant, ...]:
    """What would become of the attempts of each variant, in the order of the file."""
    variants: dict[tuple[str, str], PlannedVariant] = {}
    for key, standing in standings:
        row = variants.setdefault(key[:2], PlannedVariant(*key[:2]))
        if standing.state == "reusable":
            row.reused += 1
        elif standing.state == "rescorable":
            row.scored_again += 1
        else:
            row.run += 1
            seconds, cost = estimates.seconds.of(key), estimates.cost.of(key)
            row.seconds += [] if seconds is None else [seconds]
            row.costs += [] if cost is None else [cost]
    return tuple(variants.values())
