"""Attempts written as bundles of NVIDIA's evaluator SDK, one a variant, that its released models accept.

What a bundle holds are names, scores, outcomes and the first line of each error. Params, environments, logs and
evidence stay in the store: a bundle is made to be passed on.
"""

import json
import os
import secrets
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.answers import plain_text, read_json_file
from pytest_metricbench.contracts import AttemptKey, AttemptRecord, ContractError
from pytest_metricbench.definition.experiment import Case, Experiment, Variant
from pytest_metricbench.definition.scoring import output_kinds
from pytest_metricbench.digests import digest_value
from pytest_metricbench.interop.nemo.files import METADATA, RUN, SCORES, SUMMARY, TASKS, TRIALS
from pytest_metricbench.interop.nemo.summary import Counted, bundle_summary
from pytest_metricbench.interop.nemo.trials import BundleError, Names, TaskPlan, WrittenTrial, written_trials
from pytest_metricbench.plain_files import write_whole

_RUN_ID: Final = "metricbench-"
"""What the ids of runs that are written here begin with."""
_ARTIFACTS: Final = {
    "metadata": METADATA,
    "tasks": TASKS,
    "trials": TRIALS,
    "scores": SCORES,
    "summary": SUMMARY,
}


def write_bundles(
    directory: Path,
    experiment: Experiment,
    records: Mapping[AttemptKey, AttemptRecord],
    *,
    primary: str | None = None,
) -> list[Path]:
    """Write one bundle a variant, to ``<directory>/<experiment>/<case>/<variant>``.

    Every bundle is written beside its place first, and all take their places at the end: a bundle that is there is
    replaced whole or stays as it was. The same records give the same bytes.

    Args:
        directory: made where it is missing.
        experiment: whose attempts these are.
        records: the record that counts of each attempt that has one.
        primary: the score that decides, where the experiment leaves it open.

    Returns:
        The folders, in the order of the experiment. A variant without a record has none.

    Raises:
        BundleError: the scores cannot be written in the SDK's form, or something that is no bundle stands in the way.
        OSError: the directory cannot be written.
    """
    staged: list[tuple[Path, Path]] = []
    try:
        for case in experiment.cases:
            plan = _plan(experiment, case, records, primary)
            for variant in case.variants:
                trials = plan.trials(case, variant, records)
                if not trials:
                    continue
                place = directory / experiment.name / case.id / variant.id
                _check_place(place)
                place.parent.mkdir(parents=True, exist_ok=True)
                temporary = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
                staged.append((temporary, place))
                _write(temporary, experiment, case, variant, plan, trials)
        for temporary, place in staged:
            _take_place(temporary, place)
    finally:
        for temporary, _ in staged:
            shutil.rmtree(temporary, ignore_errors=True)
    return [place for _, place in staged]


@dataclass(frozen=True, slots=True)
class _Plan:
    """The tasks of a case as bundles have them."""

    tasks: Sequence[TaskPlan]

    def trials(self, case: Case, variant: Variant, records: Mapping[AttemptKey, AttemptRecord]) -> list[WrittenTrial]:
        """The trials of one variant, by task and slot."""
        found: list[WrittenTrial] = []
        for index, task in enumerate(self.tasks):
            of_task = (records.get((case.id, variant.id, task.id, slot)) for slot in case.slots(variant.id, task.task))
            found.extend(written_trials(task, index, (record for record in of_task if record is not None)))
        return found


def _plan(
    experiment: Experiment, case: Case, records: Mapping[AttemptKey, AttemptRecord], primary: str | None
) -> _Plan:
    policy = experiment.score if primary is None else replace(experiment.score, primary=primary)
    tasks = []
    for task in case.tasks:
        of_task = [
            record
            for variant in case.variants
            for slot in case.slots(variant.id, task)
            if (record := records.get((case.id, variant.id, task.id, slot))) is not None
        ]
        kinds = output_kinds(policy, task, of_task)
        tasks.append(TaskPlan(task, Names(kinds)))
    return _Plan(tasks)


# ---------------------------------------------------------------- files


def _write(
    folder: Path,
    experiment: Experiment,
    case: Case,
    variant: Variant,
    plan: _Plan,
    trials: Sequence[WrittenTrial],
) -> None:
    folder.mkdir()
    run_id = _run_id(experiment, case, variant, trials)
    rows = [row for trial in trials for row in trial.score_rows(run_id)]
    seen = [observation for trial in trials for observation in trial.observations()]
    lacking = {(one.task, one.metric, one.output) for one in seen if one.state == "missing"}
    summary = bundle_summary(
        [declared for task in plan.tasks for declared in task.declared()],
        seen,
        Counted(
            tasks=len(plan.tasks),
            trials=len(trials),
            scores=len(rows),
            errors=[(str(trial.error["type"]), trial.id) for trial in trials if trial.error is not None],
        ),
    )
    _write_json(folder / METADATA, _metadata(experiment, case, variant, trials))
    _write_rows(folder / TASKS, (task.row(lacking) for task in plan.tasks))
    _write_rows(folder / TRIALS, (trial.row() for trial in trials))
    _write_rows(folder / SCORES, rows)
    _write_json(folder / SUMMARY, summary)
    run = {"run_id": run_id, "output_dir": ".", "dashboard_path": None, "artifacts": _ARTIFACTS}
    _write_json(folder / RUN, run)


def _write_json(path: Path, value: Mapping[str, Any]) -> None:
    write_whole(path, json.dumps(value, indent=2, sort_keys=True, allow_nan=False) + "\n")


def _write_rows(path: Path, rows: Iterable[Mapping[str, Any]]) -> None:
    with path.open("x", encoding="utf-8") as file:
        for row in rows:
            file.write(json.dumps(row, sort_keys=True, allow_nan=False))
            file.write("\n")


def _check_place(place: Path) -> None:
    """Only a bundle that was written here is ever replaced: somebody else's may be all there is of a run."""
    if not os.path.lexists(place):
        return
    if place.is_symlink() or not place.is_dir():
        raise BundleError(f"{place} is in the way: it is no folder; name another directory, or move it")
    if any(place.iterdir()) and not (place / RUN).is_file():
        raise BundleError(f"{place} is in the way: it holds other files than a bundle; name another directory")
    if any(place.iterdir()) and not _is_written_here(place):
        raise BundleError(f"{place} is in the way: it is a bundle of somebody else; name another directory, or move it")


def _is_written_here(place: Path) -> bool:
    try:
        run = read_json_file(place / RUN)
    except ContractError:
        return False
    return isinstance(run, dict) and str(run.get("run_id", "")).startswith(_RUN_ID)


def _take_place(temporary: Path, place: Path) -> None:
    old = None
    if os.path.lexists(place):
        old = place.with_name(f".{place.name}.{secrets.token_hex(4)}")
        place.rename(old)
    try:
        temporary.rename(place)
    except OSError:
        if old is not None:
            old.rename(place)
        raise
    if old is not None:
        shutil.rmtree(old, ignore_errors=True)


# ---------------------------------------------------------------- what is said of the run


def _run_id(experiment: Experiment, case: Case, variant: Variant, trials: Sequence[WrittenTrial]) -> str:
    """Stable for the same attempts, so that the same results give the same bundle."""
    made_of = [experiment.name, case.id, variant.id, [trial.record.trial_id for trial in trials]]
    return f"{_RUN_ID}{digest_value(made_of).partition(':')[2][:16]}"


def _metadata(experiment: Experiment, case: Case, variant: Variant, trials: Sequence[WrittenTrial]) -> dict[str, Any]:
    times = [found for trial in trials if (found := _times(trial.record)) is not None]
    started = min((begin for begin, _ in times), default=None)
    finished = max((end for _, end in times), default=None)
    return {
        "labels": {"experiment": experiment.name, "case": case.id, "variant": variant.id, "kind": variant.kind},
        "target": {
            "name": plain_text(variant.name or variant.id),
            "kind": "agent",
            "version": None,
            "config": {"producer": "pytest-metricbench", "version": _version(), "runner": experiment.runner.kind},
        },
        "started_at": None if started is None else started.isoformat(),
        "finished_at": None if finished is None else finished.isoformat(),
        "duration_sec": None if started is None or finished is None else (finished - started).total_seconds(),
        "sdk_version": None,
    }


def _times(record: AttemptRecord) -> tuple[datetime, datetime] | None:
    try:
        started = datetime.fromisoformat(record.started)
    except ValueError:
        return None
    started = started if started.tzinfo is not None else started.replace(tzinfo=UTC)
    return started, started + timedelta(seconds=max(record.duration, 0))


def _version() -> str | None:
    try:
        return version("pytest-metricbench")
    except PackageNotFoundError:
        return None
