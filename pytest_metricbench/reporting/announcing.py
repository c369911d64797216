"""What is said of a run before it begins, and of one that stopped at its budget."""

import os
from pathlib import Path
from typing import Final

from pytest_metricbench.runs import Bench, ExperimentRun

BUDGET_REACHED: Final = 6
"""Exit status when nothing went wrong and attempts are left for the next run. pytest's own end at 5."""


def headline(bench: Bench, folder: Path) -> str:
    """A line on an experiment: what it holds, and where its store is as seen from ``folder``."""
    experiment = bench.experiment
    attempts = sum(1 for _ in experiment.attempts())
    requests = experiment.coverage_requests
    cases = f"{len(experiment.cases)} cases, " if len(experiment.cases) > 1 else ""
    coverage = f", {requests} coverage requests" if requests else ""
    store = os.path.relpath(bench.layout.root, folder)
    return f"metricbench: {experiment.name}: {cases}{attempts} attempts{coverage}, store: {store}"


def budget_sentence(run: ExperimentRun) -> str:
    """What was reached, what is left, and how to go on."""
    count = "1 attempt is" if len(run.left) == 1 else f"{len(run.left):,} attempts are"
    return (
        f"the budget of {run.reached} was reached; {count} left for the next run: run the same command again to go on "
        f"(exit status {BUDGET_REACHED} where nothing failed)"
    )
