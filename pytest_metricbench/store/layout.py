"""Where everything of a store lies."""

import itertools
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_metricbench.contracts import AttemptRecord

STORE_FOLDER: Final = ".metricbench"
"""The folder beside an experiment file that holds a store for each experiment name."""

RECEIPT_FILE: Final = "receipt.json"
"""In the folder of a coverage request: what proves that the answer belongs to it."""


@dataclass(frozen=True, slots=True)
class Layout:
    """The paths of one experiment's store below its root."""

    root: Path

    @property
    def experiment(self) -> Path:
        """What was run: versions, fingerprints, subset manifests."""
        return self.root / "experiment.json"

    @property
    def attempts(self) -> Path:
        """The journal of attempts."""
        return self.root / "attempts.jsonl"

    @property
    def coverage(self) -> Path:
        """The journal of coverage requests."""
        return self.root / "coverage.jsonl"

    @property
    def summary(self) -> Path:
        """The answer of a whole run."""
        return self.root / "summary.json"

    @property
    def partial_summary(self) -> Path:
        """The answer of a part of the experiment, or of a run that was cut short."""
        return self.root / "summary.partial.json"

    @property
    def lock(self) -> Path:
        """Held by the one process that writes."""
        return self.root / "lock"

    @property
    def known(self) -> frozenset[Path]:
        """What of a store can stand in its folder, beside the lock."""
        files = (self.experiment, self.attempts, self.coverage, self.summary, self.partial_summary)
        return frozenset((*files, self.workspaces, self.stale, self.interrupted, self.root / "coverage"))

    @property
    def workspaces(self) -> Path:
        """Where attempts leave what they leave: ``<case>/<variant>/<task>/<trial id>`` below it."""
        return self.root / "attempts"

    @property
    def stale(self) -> Path:
        """What superseded attempts left."""
        return self.root / "stale"

    @property
    def interrupted(self) -> Path:
        """What attempts left that were in flight when a run ended."""
        return self.root / "interrupted"

    def workspace(self, case: str, variant: str, task: str, folder: str) -> Path:
        """What an attempt left."""
        return self.workspaces / case / variant / task / folder

    def left_by(self, record: AttemptRecord) -> Path:
        """The workspace that a record speaks of."""
        return self.workspace(record.case, record.variant, record.task, record.folder or record.trial_id)

    def coverage_folder(self, case: str, system: str, subset: str) -> Path:
        """What a coverage request left."""
        return self.root / "coverage" / case / system / subset

    def failed_coverage_folder(self, case: str, system: str, subset: str) -> Path:
        """A name that is free for the workspace of a request that failed."""
        folders = self.root / "coverage" / case / system
        return next(
            folder for number in itertools.count(1) if not (folder := folders / f"failed-{subset}-{number}").exists()
        )


def free_name(path: Path) -> Path:
    """A path that nothing has yet: this one, or the first of ``NAME-2``, ``NAME-3``, ..."""
    names = (path if number == 1 else path.with_name(f"{path.name}-{number}") for number in itertools.count(1))
    return next(name for name in names if not name.exists())
