"""Job folders of Harbor: real ones to read, copies of them to damage, and results made by hand."""

import json
import shutil
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.interop.harbor import jobs as harbor_jobs
from pytest_metricbench.interop.recordings import ReadOptions, Recording, RecordingError, Recordings

SAMPLES: Final = Path(__file__).parent / "samples" / "jobs"
"""Jobs that Harbor 0.25.0 and 0.26.0 ran: the toy agent, without Docker.

``oracle`` and ``errors`` came with one trial of each pair removed; ``variants`` has four configurations of one agent
(one breaks a task, one crashes, one runs out of time), ``steps`` tasks of two steps, and ``killed`` was killed.
"""

AGENT_TIMES: Final = {"started_at": "2026-01-01T00:00:01Z", "finished_at": "2026-01-01T00:00:02Z"}
VERIFIER_TIMES: Final = {"started_at": "2026-01-01T00:00:03Z", "finished_at": "2026-01-01T00:00:04Z"}
IN_AGENT, IN_VERIFIER = "2026-01-01T00:00:02.1Z", "2026-01-01T00:00:04.1Z"


def error(type_name: str, at: str | None = IN_AGENT, **more: Any) -> dict[str, Any]:
    """An ``exception_info``."""
    return {
        "exception_type": type_name,
        "exception_message": f"a {type_name}",
        "exception_traceback": "Traceback ...",
        "occurred_at": at,
        **more,
    }


def result(
    rewards: Any = None, exception: dict[str, Any] | None = None, *, name: str = "alpha__1234567", **more: Any
) -> dict[str, Any]:
    """A trial's ``result.json``; the verifier ran where there are rewards."""
    return {
        "id": f"id of {name}",
        "task_name": name.partition("__")[0],
        "trial_name": name,
        "source": "ds",
        "config": {"agent": {"name": "toy", "kwargs": {}}},
        "agent_info": {"name": "toy", "version": "1", "model_info": None},
        "verifier_result": None if rewards is None else {"rewards": rewards},
        "exception_info": exception,
        "agent_execution": AGENT_TIMES,
        "verifier": None if rewards is None else VERIFIER_TIMES,
        "step_results": None,
        **more,
    }


def step(name: str, rewards: Any = None, exception: dict[str, Any] | None = None, **more: Any) -> dict[str, Any]:
    """One of ``step_results``."""
    return {
        "step_name": name,
        "verifier_result": None if rewards is None else {"rewards": rewards},
        "exception_info": exception,
        "agent_execution": AGENT_TIMES,
        "verifier": None if rewards is None else VERIFIER_TIMES,
        **more,
    }


class HarborLab:
    """A folder with jobs in it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def copy(self, sample: str, name: str = "") -> Path:
        """A sample of its own, to be changed."""
        target = self.folder / "jobs" / (name or sample)
        shutil.copytree(SAMPLES / sample, target)
        return target

    def job(self, *results: dict[str, Any], name: str = "made", agents: int = 1, **own: Any) -> Path:
        """A job of those results. ``own``: keys of its ``result.json``."""
        folder = self.folder / "jobs" / name
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "config.json").write_text(json.dumps({"job_name": name, "n_attempts": 1}))
        ended = {"id": name, "finished_at": "2026-01-01T00:01:00", "n_total_trials": len(results), "stats": {}}
        (folder / "result.json").write_text(json.dumps({**ended, **own}))
        for entry in results:
            self.trial(folder, entry)
        return folder

    def trial(self, job: Path, content: dict[str, Any] | str, name: str = "") -> Path:
        """Write one trial's result into a job; gives the trial's folder."""
        folder = job / (name or (content["trial_name"] if isinstance(content, dict) else "broken__1234567"))
        folder.mkdir()
        text = content if isinstance(content, str) else json.dumps(content)
        (folder / "result.json").write_text(text)
        return folder

    def read(self, *jobs: Path, **options: Any) -> Recordings:
        """Read jobs under the names they have below the folder."""
        paths = {job.relative_to(self.folder).as_posix(): job for job in jobs}
        return harbor_jobs.read(paths, ReadOptions("case", **options))

    def refused(self, *jobs: Path, **options: Any) -> tuple[str, str]:
        """What is said about jobs that cannot be read, and what to do."""
        try:
            self.read(*jobs, **options)
        except RecordingError as refusal:
            return refusal.message, refusal.remedy
        raise AssertionError("it was read")


def read_sample(*names: str, **options: Any) -> Recordings:
    return harbor_jobs.read({f"jobs/{name}": SAMPLES / name for name in names}, ReadOptions("case", **options))


def kinds(recordings: Recordings) -> dict[tuple[str, str], list[str]]:
    """(variant, task) -> what its attempts count as."""
    found: dict[tuple[str, str], list[str]] = {}
    for entry in recordings.attempts:
        found.setdefault((entry.variant, entry.task), []).append(shown(entry))
    return found


def shown(entry: Recording) -> str:
    """An attempt in a word or two."""
    outcome = entry.outcome
    if outcome.kind == "scored":
        value = outcome.scores.get("reward", sorted(outcome.scores))
        return f"{value}" if outcome.error is None else f"{value} {outcome.error.type}"
    return f"{outcome.kind} {outcome.error.type if outcome.error else ''}".strip()


def notes(recordings: Recordings) -> dict[str, int]:
    return {note.text: note.count for note in recordings.notes}
