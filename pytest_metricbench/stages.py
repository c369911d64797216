"""The stages as plain functions, for a notebook or a script: the same numbers from a saved store, without pytest.

experiment = load_experiment("experiment.yml")
store = open_store(".metricbench/refund-agent")
measure_coverage(experiment, store)
summary = analyze(experiment, store)
"""

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path

from pytest_metricbench import coverage, runners
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.contracts import AttemptRecord, CoverageKey, CoverageRecord
from pytest_metricbench.definition import loading
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.generating.base import Makers
from pytest_metricbench.generating.builtin import known_makers
from pytest_metricbench.messages import unheard
from pytest_metricbench.running.attempts import Attempts
from pytest_metricbench.running.coverage_plan import plan_coverage
from pytest_metricbench.running.describing import known_files
from pytest_metricbench.running.measuring import measure_requests
from pytest_metricbench.store.reading import Store, read_store
from pytest_metricbench.store.writing import StoreWriter


def load_experiment(
    path: str | os.PathLike[str],
    *,
    runners_by_kind: Mapping[str, type[Runner]] | None = None,
    systems_by_kind: Mapping[str, type[CoverageSystem]] | None = None,
    makers: Makers | None = None,
    cached_only: bool = False,
    progress: Callable[[str], None] = unheard,
) -> Experiment:
    """Read and check an experiment file.

    Args:
        path: the YAML file.
        runners_by_kind: runners beside the built-in ones.
        systems_by_kind: coverage systems beside the built-in ones.
        makers: the generators of mutants and operators over texts, as
            :func:`~pytest_metricbench.generating.builtin.known_makers` gives them; default: the built-in ones.
        cached_only: accept that inputs, modules and executables are absent: nothing will be run.
        progress: told what is expanded where there is no lock, which can take minutes; default: nobody is.

    Raises:
        DefinitionError: the file is not a valid experiment; the message lists every problem with line and key.
    """
    return loading.load_experiment(
        Path(path).absolute(),
        runners=runners.BUILTIN.also(runners_by_kind or {}),
        systems=coverage.BUILTIN.also(systems_by_kind or {}),
        makers=makers or known_makers(),
        cached_only=cached_only,
        progress=progress,
    )


def open_store(path: str | os.PathLike[str]) -> Store:
    """Read the store in a folder; an absent folder is an empty store.

    Raises:
        StoreError: the store is damaged.
    """
    return read_store(Path(path).absolute())


def measure_coverage(experiment: Experiment, store: Store) -> dict[CoverageKey, CoverageRecord]:
    """Measure every coverage score that the store's attempts allow and the store does not have; keep them there.

    Returns:
        Case, system, subset -> the record that counts.

    Raises:
        StoreError: another run writes the store, or it cannot be written.
    """
    results = gather(experiment, store)
    writer = StoreWriter(store.layout.root)
    try:
        plan = plan_coverage(
            experiment,
            Fingerprints(experiment, known=known_files(store.layout)),
            store.layout,
            results.attempts,
            store.coverage,
            outside=results.outside,
        )
        measured = {}
        with closing(measure_requests(plan.requests, store.layout, workers=os.cpu_count() or 1)) as answers:
            for planned, record in answers:
                if record is not planned.kept:
                    writer.add_coverage(record)
                measured[planned.key] = record
    finally:
        writer.close()
    store.coverage.update(measured)
    return measured


def analyze(experiment: Experiment, store: Store) -> Summary:
    """The summary of everything in the store that still belongs to the experiment. Runs and writes nothing."""
    return summarize(gather(experiment, store))


def gather(experiment: Experiment, store: Store) -> Results:
    """What the store knows of an experiment: the attempts and coverage scores whose inputs are as they were."""
    fingerprints = Fingerprints(experiment, known=known_files(store.layout))
    desk = Attempts(experiment, fingerprints, store.layout, lambda: store.attempts)
    attempts: dict[tuple[str, str, str, int], AttemptRecord] = {}
    outside = set()
    for case, variant, task, slot in experiment.attempts():
        key = (case.id, variant.id, task.id, slot)
        record = desk.reusable(case, variant, task, slot) or desk.unmeasured(case, variant, task, slot)
        if record is None:
            outside.add(key)
        else:
            attempts[key] = record
    plan = plan_coverage(experiment, fingerprints, store.layout, attempts, store.coverage, outside=outside)
    answered = {planned.key: known for planned in plan.requests if (known := planned.kept or planned.failed)}
    absent = {planned.key: "not measured yet" for planned in plan.requests if planned.key not in answered}
    return Results(experiment, attempts, answered, {**absent, **plan.absent}, outside, set(attempts), None)
