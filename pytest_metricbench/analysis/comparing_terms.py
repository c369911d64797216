"""Whether two runs can be compared at all: the same experiment, read by the same rules, with a case in common."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import get_args

from pytest_metricbench.analysis.comparing_models import MutantGroup
from pytest_metricbench.analysis.kill_models import MutantGroups
from pytest_metricbench.analysis.summary import CaseSummary, Summary
from pytest_metricbench.analysis.variant_models import VariantSummary
from pytest_metricbench.definition.experiment import BASELINE, Experiment


class ComparisonError(ValueError):
    """Two runs that cannot be compared; the message says in what they differ."""


@dataclass(frozen=True, slots=True)
class Terms:
    """What must be equal for figures of two runs to mean the same."""

    experiment: str
    primary: str | None
    """None: not known before the run."""
    pass_at_least: float
    rule: str
    """Of kills, in words."""
    cases: frozenset[str]


def terms_of_summary(summary: Summary) -> Terms:
    """The terms of a run that is over."""
    rules = {_rule(case.detection.rule, case.detection.alpha, case.detection.q) for case in summary.cases.values()}
    settings = summary.settings
    rule = " and ".join(sorted(rules))
    return Terms(summary.experiment, settings.primary, settings.pass_at_least, rule, frozenset(summary.cases))


def terms_of_experiment(experiment: Experiment) -> Terms:
    """The terms of a run that is yet to come, so that hours are not spent on one that cannot be compared."""
    kill = experiment.analysis.kill
    return Terms(
        experiment.name,
        experiment.score.primary,
        experiment.score.pass_at_least,
        _rule(kill.rule, kill.alpha, kill.q),
        frozenset(case.id for case in experiment.cases),
    )


def require_comparable(then: Terms, now: Terms) -> None:
    """See that figures under both terms mean the same.

    Raises:
        ComparisonError: they do not; every difference is named.
    """
    found = []
    if then.experiment != now.experiment:
        found.append(f"it is of the experiment {then.experiment!r}, this one is {now.experiment!r}")
    if now.primary is not None and then.primary != now.primary:
        found.append(f"its primary score is {then.primary!r}, this run's is {now.primary!r}")
    if then.pass_at_least != now.pass_at_least:
        found.append(f"its attempts pass from {then.pass_at_least:g} on, this run's from {now.pass_at_least:g}")
    if then.rule != now.rule:
        found.append(f"its kill rule is {then.rule}, this run's is {now.rule}")
    if not found and not then.cases & now.cases:
        found.append(f"they have no case in common (it has {_names(then.cases)}, this run {_names(now.cases)})")
    if found:
        remedy = ""
        if then.experiment == now.experiment and then.cases & now.cases:
            remedy = (
                "; score and analysis are no part of an attempt: with today's keys in the earlier run's files, "
                "--metricbench-cached-only reads its store anew"
            )
        raise ComparisonError(f"the earlier run cannot be compared: {'; '.join(found)}{remedy}")


def _rule(rule: str, alpha: float | None, q: float | None) -> str:
    level = f" with alpha {alpha:g}" if alpha is not None else f" with q {q:g}" if q is not None else ""
    return f"{rule}{level}"


def _names(cases: Iterable[str], most: int = 5) -> str:
    names = sorted(cases)
    return (", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")) or "none"


# ---------------------------------------------------------------- a summary from elsewhere


def require_coherent(summary: Summary) -> None:
    """See that the parts of a summary agree with one another, as those do that the plugin wrote.

    Raises:
        ComparisonError: they do not; the first place is named.
    """
    for name, case in summary.cases.items():
        where = f"cases.{name}"
        _require(BASELINE in case.variants, f"{where}.variants", "it has no baseline")
        for variant, found in case.variants.items():
            _check_variant(f"{where}.variants.{variant}", found, set(case.tasks), summary.settings.primary)
        mutants = {variant for variant, found in case.variants.items() if found.kind == "mutant"}
        _require(set(case.kills) == mutants, f"{where}.kills", "its mutants are not those of the variants")
        for mutant, row in case.kills.items():
            _require(set(row) == set(case.tasks), f"{where}.kills.{mutant}", "its tasks are not those of the case")
        _check_groups(f"{where}.mutants", case.mutants, mutants)
        _check_subsets(where, case)


def groups_of(groups: MutantGroups) -> dict[str, MutantGroup]:
    """Mutant -> its group; ``invalid_controls`` where it is in two."""
    names: tuple[MutantGroup, ...] = get_args(MutantGroup)
    return {mutant: name for name in names for mutant in getattr(groups, name)}


def _check_variant(where: str, variant: VariantSummary, tasks: set[str], primary: str) -> None:
    _require(set(variant.tasks) == tasks, f"{where}.tasks", "its tasks are not those of the case")
    _require(set(variant.attempts) <= tasks, f"{where}.attempts", "its tasks are not those of the case")
    for task, result in variant.tasks.items():
        entries = len(variant.attempts.get(task, {}).get(primary, ()))
        counts = 0 <= result.passed <= result.n <= entries and 0 <= result.died <= result.n - result.passed
        _require(counts, f"{where}.tasks.{task}", "its counts do not add up")


def _check_groups(where: str, groups: MutantGroups, mutants: set[str]) -> None:
    _require(set(groups_of(groups)) == mutants, where, "its mutants are not those of the variants")


def _check_subsets(where: str, case: CaseSummary) -> None:
    _require(set(case.correlation) <= set(case.pool.coverage), f"{where}.correlation", "its systems are not the pool's")
    for name, subset in case.subsets.items():
        known = bool(subset.tasks) and set(subset.tasks) <= set(case.tasks)
        _require(known, f"{where}.subsets.{name}", "its tasks are not tasks of the case")
        same = set(subset.coverage) == set(case.pool.coverage)
        _require(same, f"{where}.subsets.{name}.coverage", "its systems are not those of the pool")
        values = [figure.value for figure in subset.coverage.values() if figure.value is not None]
        _require(
            all(0 <= value <= 1 for value in values), f"{where}.subsets.{name}.coverage", "it is not within 0 and 1"
        )


def _require(holds: bool, where: str, problem: str) -> None:
    if not holds:
        raise ComparisonError(f"the summary contradicts itself at {where}: {problem}")
