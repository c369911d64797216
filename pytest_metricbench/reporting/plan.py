"""What a run would do, as lines for a terminal: before any of it is paid for."""

import math
from typing import Final

from pytest_metricbench.budget import Budget
from pytest_metricbench.messages import counted
from pytest_metricbench.reporting.amounts import duration_text, money_text
from pytest_metricbench.reporting.layout import Column, Line, block, shortened, table
from pytest_metricbench.running.forecast import Plan, PlannedVariant, time_needed

MOST_VARIANTS: Final = 40
"""Lines of the table of variants; of more, those that have something to do come first."""
_ID_WIDTH: Final = 40
_REASONS: Final = {
    "it is not in the store": "not in the store",
    "what its result depends on has changed": "in the store, but what the result depends on has changed",
    "it died of a time-out that is longer now": "died of a time-out that is longer now",
    "it died, and died attempts are to run again": "died, and died attempts are to run again",
    "files that it left are missing or have changed": "in the store, but files that it left are gone or changed",
    "it was not needed then": "not needed the last time",
    "it could not be measured": "could not be measured the last time",
    "its verifier has changed": "in the store, but the verifier has changed",
    "it has no value for the primary score": "in the store, but without the primary score",
}


def plan_lines(plan: Plan, width: int) -> list[Line]:
    """The plan of one experiment: attempts by what would become of them and why, time, cost, coverage, budget."""
    part = f" of {plan.declared:,} of the experiment" if plan.selected < plan.declared else ""
    lines = block("attempts", [f"{counted(plan.selected, 'attempt')}{part}: {_counts(plan)}"], width, "bold")
    if plan.reasons:
        reasons = [f"{number:,}  {_REASONS.get(why, why)}" for why, number in plan.reasons.items()]
        lines += block("why", reasons, width)
    if plan.changes is not None:
        lines += block("stale", [plan.changes], width, "yellow")
    if plan.executor:
        lines += block("executor", [plan.executor], width)
    lines += block("time", [_time(plan)], width)
    lines += block("cost", [_cost(plan)], width)
    measure, kept = plan.requests
    if measure or kept:
        lines += block("coverage", [f"{counted(measure, 'request')} to measure, {kept:,} in the store"], width)
    if plan.budget is not None and plan.budget.limits:
        lines += block("budget", [_budget(plan, plan.budget)], width, "yellow")
    return [*lines, Line(), *_variants(plan, width)]


def _counts(plan: Plan) -> str:
    if plan.reused == plan.selected:
        return "all are reused, and no attempt runs"
    counts = (("to run", plan.run), ("to score again", plan.scored_again), ("reused", plan.reused))
    return ", ".join(f"{number:,} {word}" for word, number in counts if number)


def _time(plan: Plan) -> str:
    again = (
        "; scoring again comes to that, and agents run where what they left cannot be scored"
        if plan.scored_again
        else ""
    )
    if not plan.run:
        return f"none for attempts{again}"
    seconds = plan.seconds
    if not seconds:
        return f"unknown: the store has no duration of an attempt{again}"
    total = math.fsum(seconds)
    needed = time_needed(seconds, plan.at_a_time)
    text = f"about {duration_text(needed)}"
    if plan.at_a_time > 1:
        text += f" with {plan.at_a_time} at a time, {duration_text(total)} one after the other"
    unknown = plan.run - len(seconds)
    aside = f", without {unknown:,} of which nothing is known" if unknown else ""
    return f"{text} (from {counted(plan.seconds_known, 'recorded duration')}{aside}){again}"


def _cost(plan: Plan) -> str:
    if not plan.run:
        return "none for attempts"
    if not plan.costs_known:
        return "unknown: no attempt in the store says what it cost, as a score cost_usd or cost (budget.cost_scores)"
    text = money_text(math.fsum(plan.costs), plan.unit)
    return f"about {text} (from {counted(plan.costs_known, 'attempt')} that said what it cost)"


def _budget(plan: Plan, budget: Budget) -> str:
    limits = [
        f"{counted(budget.attempts, 'attempt')}" if budget.attempts is not None else "",
        duration_text(budget.seconds) if budget.seconds is not None else "",
        money_text(budget.cost, plan.unit) if budget.cost is not None else "",
    ]
    of_a_run = f"{', '.join(limit for limit in limits if limit)} a run"
    runs = plan.runs_needed()
    if runs is None:
        return of_a_run
    known = not (budget.seconds and not plan.seconds) and not (budget.cost and not plan.costs)
    least = "" if known else "at least "
    return f"{of_a_run}: enough for all of it" if runs == 1 and known else f"{of_a_run}: {least}{counted(runs, 'run')}"


def _variants(plan: Plan, width: int) -> list[Line]:
    """What would be done about each variant."""
    several = len({variant.case for variant in plan.variants}) > 1
    ranked = sorted(plan.variants, key=lambda variant: not (variant.run or variant.scored_again))
    shown = ranked[:MOST_VARIANTS] if len(ranked) > MOST_VARIANTS else list(plan.variants)
    columns = [
        Column("variant", [shortened(_name(variant, several), _ID_WIDTH) for variant in shown], "<"),
        Column("run", [f"{variant.run:,}" for variant in shown]),
    ]
    if plan.scored_again:
        columns.append(Column("score again", [f"{variant.scored_again:,}" for variant in shown]))
    columns.append(Column("reuse", [f"{variant.reused:,}" for variant in shown]))
    if plan.seconds:
        columns.append(Column("time", [_sum_of_time(variant) for variant in shown]))
    if plan.costs:
        columns.append(Column("cost", [_sum_of_cost(variant, plan.unit) for variant in shown]))
    left_out = len(plan.variants) - len(shown)
    return table(columns, width, (len(shown), f"and {counted(left_out, 'more variant')}") if left_out else None)


def _name(variant: PlannedVariant, several: bool) -> str:
    return f"{variant.case}::{variant.variant}" if several else variant.variant


def _sum_of_time(variant: PlannedVariant) -> str:
    return duration_text(math.fsum(variant.seconds)) if variant.seconds else "?" if variant.run else "-"


def _sum_of_cost(variant: PlannedVariant, unit: str) -> str:
    return money_text(math.fsum(variant.costs), unit) if variant.costs else "?" if variant.run else "-"
