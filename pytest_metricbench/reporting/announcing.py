"""What is said of a run before it begins, and of one that stopped at its budget."""

import os
from pathlib import Path
from typing import Final

from pytest_metricbench.messages import counted
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.runs import ExperimentRun

BUDGET_REACHED: Final = 6
"""Exit status when nothing went wrong and attempts are left for the next run. pytest's own end at 5."""
MANY_ITEMS: Final = 20_000
"""More items than that are not made without saying that there is another way."""


def headline(bench: Bench, folder: Path) -> str:
    """A line on an experiment: what it holds, what makes it, and where its store is as seen from ``folder``."""
    experiment = bench.experiment
    attempts = sum(1 for _ in experiment.attempts())
    requests = experiment.coverage_requests
    items = "" if experiment.items == "attempt" else f" in {counted(len(bench.names.groups), 'item')}"
    cases = f"{len(experiment.cases)} cases, " if len(experiment.cases) > 1 else ""
    coverage = f", {counted(requests, 'coverage request')}" if requests else ""
    store = os.path.relpath(bench.layout.root, folder)
    executor = f", executor: {bench.executor.describe()}" if bench.executor is not None else ""
    selected = f"{cases}{counted(attempts, 'attempt')}{items}{coverage}"
    return f"metricbench: {experiment.name}: {selected}{executor}, store: {store}"


def many_items_notice(bench: Bench, items: int) -> str | None:
    """How to have fewer items, where an experiment has very many and does not say that this is meant; else None."""
    experiment = bench.experiment
    if items <= MANY_ITEMS or experiment.items_chosen:
        return None
    variants = sum(len(case.variants) for case in experiment.cases)
    tasks = sum(len(case.variants) * len(case.tasks) for case in experiment.cases)
    ways = [f"`items: task` makes {tasks:,}"] if tasks <= items / 2 else []
    ways.append(f"`items: variant` makes {variants:,}")
    return (
        f"{experiment.name}: {items:,} items, one an attempt, and pytest takes its time and memory for each; in "
        f"{experiment.path.name} {', and '.join(ways)} (`items: attempt` says that this is meant)"
    )


def budget_sentence(run: ExperimentRun) -> str:
    """What was reached, what is left, and how to go on."""
    count = "1 attempt is" if len(run.left) == 1 else f"{len(run.left):,} attempts are"
    return (
        f"the budget of {run.reached} was reached; {count} left for the next run: run the same command again to go on "
        f"(exit status {BUDGET_REACHED} where nothing failed)"
    )
