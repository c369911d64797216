"""What the reader of a report should know about the Harbor jobs it was made from."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pytest_metricbench.contracts import Outcome
from pytest_metricbench.definition.experiment import Note
from pytest_metricbench.definition.problems import first_names
from pytest_metricbench.interop.harbor.folders import JobFolder
from pytest_metricbench.interop.harbor.planned import INTERRUPTED, JobAttempt
from pytest_metricbench.interop.harbor.results import STEP_PREFIX
from pytest_metricbench.interop.harbor.variants import MASKED

_SHOWN: Final = 8


class ErrorTally:
    """Counts what exceptions did to rewards: where a figure of ours differs from Harbor's, it is for one of these."""

    def __init__(self) -> None:
        """Nothing is counted yet."""
        self._in_spite: Counter[str] = Counter()
        self._dropped: Counter[tuple[str, str]] = Counter()

    def add(self, outcome: Outcome, rewards: Mapping[str, object] | None) -> None:
        """Count one trial."""
        if outcome.error is None or not rewards:
            return
        if outcome.kind == "scored":
            self._in_spite[outcome.error.type] += 1
        else:
            self._dropped[outcome.kind, outcome.error.type] += 1

    def notes(self) -> Iterator[Note]:
        """What was counted, in words."""
        if self._in_spite:
            said = _counted(self._in_spite, "is scored in spite of", "are scored in spite of")
            yield Note(f"{said} an error ({_listed(self._in_spite)})", self._in_spite.total())
        for kind in ("died", "unmeasured"):
            types = Counter({name: count for (given, name), count in self._dropped.items() if given == kind})
            if types:
                said = _counted(types, f"has rewards and counts as {kind}", f"have rewards and count as {kind}")
                yield Note(f"{said}, for an error ({_listed(types)})", types.total())


def job_notes(jobs: Sequence[JobFolder], attempts: Sequence[JobAttempt]) -> Iterator[Note]:
    """What is missing, what there is too much of, and who wrote it."""
    by_job: dict[int, list[JobAttempt]] = {}
    for attempt in attempts:
        by_job.setdefault(id(attempt.job), []).append(attempt)
    for job in jobs:
        own = by_job.get(id(job), [])
        measured = sum(attempt.result is not None for attempt in own)
        total = len(own) if job.planned_total is None else job.planned_total
        missing = max(len(own), total) - measured
        if missing:
            verb = "has" if missing == 1 else "have"
            state = ", although the job has ended" if job.has_ended else f": {INTERRUPTED}"
            yield Note(f"{_attempts(missing)} of {job.name} {verb} no result{state}", missing)
        if total > len(own):
            text = f"of the missing attempts of {job.name} cannot be placed: no plan says of which agent and task"
            yield Note(text, total - len(own))
        if measured > total:
            more = "more result" if measured - total == 1 else "more results"
            text = f"{more} in {job.name} than it planned ({total}): two processes wrote into it; all count"
            yield Note(text, measured - total)
    yield from _version_notes(attempts)


def _version_notes(attempts: Sequence[JobAttempt]) -> Iterator[Note]:
    versions: dict[str, list[JobFolder]] = {}
    for attempt in attempts:
        if attempt.result is not None and attempt.job.version is not None:
            versions.setdefault(attempt.job.version, []).append(attempt.job)
    for version, jobs in sorted(versions.items()):
        newer = ", which is newer than what is known here: read like 0.26" if jobs[0].is_newer else ""
        yield Note(f"{_attempts(len(jobs))} by Harbor {version}{newer}", len(jobs))


def task_notes(attempts: Sequence[JobAttempt]) -> Iterator[Note]:
    """Tasks that were not the same in all of the trials: then variants were not asked the same."""
    checksums: dict[str, set[str]] = {}
    for attempt in attempts:
        checksum = None if attempt.result is None else attempt.result["task_checksum"]
        if isinstance(checksum, str):
            checksums.setdefault(attempt.task, set()).add(checksum)
    changed = sorted(task for task, different in checksums.items() if len(different) > 1)
    if changed:
        tasks = "task had" if len(changed) == 1 else "tasks had"
        shown = first_names(changed, _SHOWN)
        yield Note(f"{tasks} other files in some of the trials than in others ({shown})", len(changed))


def reward_notes(attempts: Sequence[tuple[str, Outcome]]) -> Iterator[Note]:
    """Rewards that some tasks give and others do not: a primary score that is missing leaves an attempt unmeasured."""
    names: dict[str, set[str]] = {}
    for task, outcome in attempts:
        if outcome.kind == "scored":
            names.setdefault(task, set()).update(name for name in outcome.scores if not name.startswith(STEP_PREFIX))
    different = {tuple(sorted(given)) for given in names.values()}
    if len(different) > 1:
        common = set.intersection(*names.values())
        shown = f"common to all: {', '.join(sorted(common))}" if common else "none is common to all"
        yield Note(f"different sets of rewards, depending on the task ({shown}); see score.primary", len(different))


def mixed_folders(attempts: Sequence[JobAttempt], keys: Sequence[str]) -> Iterator[Note]:
    """Folders that were made one variant and hold agents with different configurations."""
    found: dict[str, set[str]] = {}
    for attempt, key in zip(attempts, keys, strict=True):
        found.setdefault(attempt.job.name, set()).add(key)
    for name, different in found.items():
        if len(different) > 1:
            yield Note(f"different configurations of agents in {name}, which counts as one variant", len(different))


def mask_notes(attempts: Sequence[JobAttempt]) -> Iterator[Note]:
    """Environment variables that Harbor masked: agents that differ in nothing else look equal."""
    names = {
        name.partition(".")[2]
        for attempt in attempts
        for name, value in attempt.settings.items()
        if isinstance(value, str) and value.startswith(f"{MASKED} ")
    }
    if names:
        what = "environment variable is" if len(names) == 1 else "environment variables are"
        shown = ", ".join(sorted(names))
        yield Note(f"{what} masked by Harbor ({shown}): agents that differ only there may count as one", len(names))


def _attempts(count: int) -> str:
    return "attempt" if count == 1 else "attempts"


def _counted(types: Counter[str], one: str, many: str) -> str:
    return f"attempt {one}" if types.total() == 1 else f"attempts {many}"


def _listed(types: Counter[str]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(types.items()))
