"""The attempts of Harbor jobs: the trials that lie there, and those that were planned and left nothing."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pytest_metricbench.contracts import Json
from pytest_metricbench.interop.harbor.folders import RESULT, JobFolder, PlanKey, TrialFolder
from pytest_metricbench.interop.harbor.variants import settings_key
from pytest_metricbench.interop.recordings import RecordingError

INTERRUPTED: Final = "the job was interrupted or is still running"
"""What a job is that has not ended: from its files the one cannot be told from the other."""


@dataclass(frozen=True, slots=True)
class JobAttempt:
    """An attempt of a job, whether or not it left a result."""

    job: JobFolder
    settings: Mapping[str, Json]
    """What tells its variant from others: the agent's configuration, and what the job adds to it."""
    task: str
    folder: TrialFolder | None
    """None where nothing is left of it."""
    why_missing: str = ""

    @property
    def result(self) -> Mapping[str, Any] | None:
        """What it left; None where that is nothing."""
        return None if self.folder is None else self.folder.result


def attempts_of(job: JobFolder) -> Iterator[JobAttempt]:
    """The trials of a job in the order of their names, then what its plan says beyond them.

    The plan is used where it speaks of the same agents and tasks as the trials do; only then does it say which of
    them are missing.
    """
    found: Counter[PlanKey] = Counter()
    for trial in job.trials:
        found[trial.key] += 1
        why = "" if trial.result is not None else f"{trial.name} has no {RESULT}: {_why(job)}"
        yield JobAttempt(job, _settings(job, trial.agent), trial.task, trial, why)
    if job.plan is None or not all(key in job.plan for key in found):
        return
    for key, planned in sorted(job.plan.items()):
        for _ in range(planned - found[key]):
            why = f"the job {job.name} planned it and holds no folder of it: {_why(job)}"
            yield JobAttempt(job, _settings(job, job.agents[key[0]]), key[1], None, why)


def refuse_copies(attempts: Sequence[JobAttempt]) -> None:
    """Refuse one trial that stands in two folders, or beside one that only verified it again: it would count twice.

    Raises:
        RecordingError: there is one.
    """
    results = [(attempt.folder.name, attempt.result) for attempt in attempts if attempt.folder and attempt.result]
    seen: dict[str, str] = {}
    for name, result in results:
        first = seen.setdefault(str(result["id"]), name) if result["id"] else name
        if first != name:
            raise RecordingError(f"{name} is a copy of {first}: the id of both is the same", "read one of the two")
    for name, result in results:
        source = result["regrade_of"]
        if source and str(source) in seen:
            raise RecordingError(f"{name} is {seen[str(source)]}, verified again", "read one of the two")


def _why(job: JobFolder) -> str:
    if job.has_ended:
        return "the job has ended, so it was removed, or another process of the job took it for unfinished"
    return INTERRUPTED


def _settings(job: JobFolder, agent: Mapping[str, Json]) -> dict[str, Json]:
    settings = {**agent, **job.common}
    digests = job.skills.get(settings_key(agent))
    return {**settings, "skill_digests": digests} if digests else settings
