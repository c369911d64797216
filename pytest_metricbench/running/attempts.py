"""One attempt: taken from the store when what is kept there still holds, else run, with retries."""

import copy
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Final, Literal

from pytest_metricbench.contracts import (
    AttemptKey,
    AttemptRecord,
    AttemptRequest,
    CaseRef,
    Json,
    Outcome,
    TaskRef,
    VariantRef,
)
from pytest_metricbench.definition.experiment import BASELINE, Case, Experiment, ScorePolicy, Task, Variant
from pytest_metricbench.definition.fingerprints import Fingerprints, attempt_seed
from pytest_metricbench.definition.scoring import policy_at, status
from pytest_metricbench.running.ahead import FORESEEN, Ahead, Begun, Foresight, Planned
from pytest_metricbench.running.runner_answers import as_outcome, checked, copy_work, guarded, where_room_is, with_files
from pytest_metricbench.store.files import files_match
from pytest_metricbench.store.layout import Layout


@dataclass(frozen=True, slots=True)
class Performed:
    """What came of an attempt: the record that counts, and the new ones that led to it."""

    record: AttemptRecord
    new: tuple[AttemptRecord, ...]
    """In order; more than one after retries, empty when the record was taken from the store."""
    interrupted: bool = False
    """Something outside ended it, whose clock runs once an item: another attempt in that item must not follow."""

    @property
    def reused(self) -> bool:
        """Whether nothing was run."""
        return not self.new


@dataclass(frozen=True, slots=True)
class Standing:
    """What the store's record of an attempt is worth."""

    record: AttemptRecord | None
    state: Literal["absent", "reusable", "rescorable", "stale"]
    """``rescorable``: the agent's work still holds, its score does not."""
    why: str
    """In words, where it is not reusable."""


@dataclass(slots=True)
class _Tried:
    """What a record says of how an attempt was made."""

    trial_id: str
    started: str
    clock: float
    """When it began, of ``time.perf_counter``."""
    ended: float | None = None
    """When it ended, likewise; None: now."""
    files: dict[str, str] = field(default_factory=dict)


class NotCachedError(Exception):
    """An attempt that would have to run where nothing may; the message says why it would."""


class Attempts:
    """Performs the attempts of one experiment in this process."""

    def __init__(
        self,
        experiment: Experiment,
        fingerprints: Fingerprints,
        layout: Layout,
        stored: Callable[[], Mapping[AttemptKey, AttemptRecord]],
        *,
        retry_died: bool = False,
        cached: str = "",
    ) -> None:
        """Nothing is read yet.

        Args:
            experiment: what to run.
            fingerprints: of that experiment.
            layout: where workspaces are made.
            stored: gives the records to reuse; called before each attempt, so it should keep what it read.
            retry_died: run attempts again whose record says that they died.
            cached: the option that forbids to run anything; empty where attempts may run.
        """
        self._experiment: Final = experiment
        self._fingerprints: Final = fingerprints
        self._layout: Final = layout
        self._stored: Final = stored
        self._retry_died: Final = retry_died
        self._cached: Final = cached
        self._workspaces: Final = str(layout.workspaces)
        self._baselines: Final[dict[str, tuple[list[str], tuple[Path, ...]]]] = {}
        """Folder of a task's baseline attempts -> what is in it: each mutant asks for it."""
        self._ahead: Final = Ahead(experiment.runner, self._has_to_run, self._try_ahead)
        self._foresight: Final = Foresight(
            experiment.runner, lambda planned: self._left_by_baseline(planned.case, planned.variant, planned.task)
        )

    def expect(self, planned: Iterable[Planned]) -> None:
        """Say which attempts of this experiment come next, so that a runner may begin them before their turn."""
        if not self._cached:
            self._ahead.expect(planned)

    def close(self) -> None:
        """End what was begun and never asked for; no attempt is performed after this."""
        self._ahead.close()

    def standing(self, case: Case, variant: Variant, task: Task, slot: int) -> Standing:
        """What the store's record of an attempt is worth today."""
        record = self._stored().get((case.id, variant.id, task.id, slot))
        if record is None:
            return Standing(None, "absent", "it is not in the store")
        if record.fingerprint != self._fingerprints.attempt(case, variant, task):
            return Standing(record, "stale", "what its result depends on has changed")
        if self._had_less_time(record):
            return Standing(record, "stale", "it died of a time-out that is longer now")
        if record.outcome == "died" and self._retry_died:
            return Standing(record, "stale", "it died, and died attempts are to run again")
        if record.files and not files_match(self._layout.left_by(record), record.files):
            return Standing(record, "stale", "files that it left are missing or have changed")
        if record.outcome == "not_needed":
            return Standing(record, "stale", "it was not needed then")
        if record.outcome == "unmeasured":
            state: Literal["rescorable", "stale"] = "rescorable" if _verifier_failed(record) else "stale"
            return Standing(record, state, "it could not be measured")
        if record.outcome == "scored" and record.verifier != self._fingerprints.verifier():
            return Standing(record, "rescorable", "its verifier has changed")
        if status(self._policy_at(task), record) == "unmeasured":
            return Standing(record, "rescorable", "it has no value for the primary score")
        return Standing(record, "reusable", "")

    def reusable(self, case: Case, variant: Variant, task: Task, slot: int) -> AttemptRecord | None:
        """The stored record of an attempt, if it is measured and everything it depends on is as it was."""
        standing = self.standing(case, variant, task, slot)
        return standing.record if standing.state == "reusable" else None

    def unmeasured(self, case: Case, variant: Variant, task: Task, slot: int) -> AttemptRecord | None:
        """The stored record of an attempt of today's inputs that could not be measured, or was not needed."""
        record = self._stored().get((case.id, variant.id, task.id, slot))
        if record is None or status(self._policy_at(task), record) not in (
            "unmeasured",
            "not_needed",
        ):
            return None
        return record if record.fingerprint == self._fingerprints.attempt(case, variant, task) else None

    def perform(self, case: Case, variant: Variant, task: Task, slot: int) -> Performed:
        """Take the attempt from the store, or score what it left again, or run it; again while ``retries`` are left.

        Raises:
            NotCachedError: it would have to run, and nothing may.
        """
        standing = self.standing(case, variant, task, slot)
        if standing.record is not None and standing.state == "reusable":
            return Performed(standing.record, ())
        if self._cached:
            raise NotCachedError(f"{standing.why}, and with {self._cached} no attempt runs")
        last, rescorable = standing.record, standing.state == "rescorable"
        new: list[AttemptRecord] = []
        ended = False
        for _ in range(1 + self._experiment.retries):
            record, ended = None, False
            if rescorable and last is not None:
                record, ended = self._rescore(case, variant, task, last)
            if record is None:
                record, ended = self._run(case, variant, task, slot, None if last is None else last.trial_id)
            new.append(record)
            if record.outcome != "unmeasured" or ended:
                break
            last, rescorable = record, _verifier_failed(record)
        return Performed(new[-1], tuple(new), ended)

    def _rescore(
        self, case: Case, variant: Variant, task: Task, record: AttemptRecord
    ) -> tuple[AttemptRecord | None, bool]:
        """Score a copy of what an attempt left; None where the runner cannot, and the agent must run again.

        The agent's work is paid for: what it left stays as it is until the new record is kept, and where it could not
        be copied the new record still speaks of it. The second value is as for :meth:`_run`.
        """
        folder, files = f"{record.trial_id[:80]}.{secrets.token_hex(4)}", record.files
        kept, copied = self._layout.left_by(record), self._layout.workspace(case.id, variant.id, task.id, folder)
        request = self._request(case, variant, task, record.attempt, record.trial_id, str(copied))
        answer, ended = guarded(self._experiment.runner, lambda: copy_work(kept, copied, files), "verifier")
        is_copied = answer is None
        if is_copied:
            answer, ended = guarded(
                self._experiment.runner, lambda: self._experiment.runner.rescore(request, copied), "verifier"
            )
        if answer is None or not is_copied:
            shutil.rmtree(copied, ignore_errors=True)
        if answer is None:
            return None, False
        outcome = checked(as_outcome(answer, self._experiment.runner), self._policy_at(task))
        if is_copied:
            outcome, files = with_files(outcome, str(copied))
        scored = replace(
            record,
            outcome=outcome.kind,
            scores=dict(outcome.scores),
            error=outcome.error,
            verifier=self._fingerprints.verifier(),
            files=files,
            supersedes=record.trial_id,
            folder=folder if is_copied else record.folder,
        )
        return scored, ended

    def _request(
        self, case: Case, variant: Variant, task: Task, slot: int, trial_id: str, workspace: str
    ) -> AttemptRequest:
        return AttemptRequest(
            self._experiment.name,
            CaseRef(case.id),
            VariantRef(variant.request_id or variant.id, _own_copy(variant.params)),
            TaskRef(task.id, _own_copy(task.params)),
            slot,
            attempt_seed(self._experiment.seed, case.id, variant.id, task.id, slot),
            trial_id,
            workspace,
            self._left_by_baseline(case, variant, task),
            self._fingerprints.attempt(case, variant, task),
        )

    def _left_by_baseline(self, case: Case, variant: Variant, task: Task) -> tuple[Path, ...]:
        """The folders of baseline attempts at a task, for a mutant's attempt of a runner that builds on them."""
        if variant.kind == "baseline" or not self._experiment.runner.baseline_first:
            return ()
        folder = f"{self._workspaces}/{case.id}/{BASELINE}/{task.id}"
        try:
            names = sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return ()
        known = self._baselines.get(folder)
        if known is None or known[0] != names:
            known = self._baselines[folder] = (names, tuple(Path(folder, name) for name in names))
        return known[1]

    def _run(
        self, case: Case, variant: Variant, task: Task, slot: int, supersedes: str | None
    ) -> tuple[AttemptRecord, bool]:
        """The record of one try, and whether somebody outside ended it, so that another try must not follow."""
        clock, planned = perf_counter(), Planned(case, variant, task, slot)
        runner, stopped, ended = self._experiment.runner, None, False
        if runner.ahead or runner.foresees:
            stopped, ended = guarded(self._experiment.runner, lambda: self._before(planned), "setup")
        begun = self._ahead.take(planned.key)
        outcome = stopped if isinstance(stopped, Outcome) else None
        if begun is None and outcome is not None and outcome.kind in FORESEEN:
            return self._record_of(planned, outcome, _Tried(secrets.token_hex(16), _now(), clock), supersedes), False
        if begun is None:
            begun = self._try(case, variant, task, slot)
            outcome = outcome or self._make_workspace(begun.workspace)
        request, folder = begun.request, begun.workspace
        if outcome is None:
            outcome, ended = self._outcome(request, folder)
        tried = _Tried(request.trial_id, begun.started, begun.clock, perf_counter())
        outcome, tried.files = with_files(checked(where_room_is(outcome, folder), self._policy_at(task)), str(folder))
        return self._record_of(planned, outcome, tried, supersedes), ended

    def _record_of(self, planned: Planned, outcome: Outcome, tried: "_Tried", supersedes: str | None) -> AttemptRecord:
        case, variant, task, slot = planned.key
        return AttemptRecord(
            case=case,
            variant=variant,
            task=task,
            attempt=slot,
            trial_id=tried.trial_id,
            outcome=outcome.kind,
            scores=dict(outcome.scores),
            error=outcome.error,
            time_limit=outcome.time_limit,
            fingerprint=self._fingerprints.attempt(planned.case, planned.variant, planned.task),
            verifier=self._fingerprints.verifier(),
            seed=attempt_seed(self._experiment.seed, case, variant, task, slot),
            started=tried.started,
            duration=round((tried.ended or perf_counter()) - tried.clock, 6),
            files=tried.files,
            supersedes=supersedes,
            trial_name=outcome.trial_name,
        )

    def _before(self, planned: Planned) -> Outcome | None:
        """Begin what comes next; gives what becomes of this attempt where it need not be made."""
        if self._experiment.runner.ahead:
            self._ahead.fill()
        return self._foresight.take(planned)

    def _try(self, case: Case, variant: Variant, task: Task, slot: int) -> Begun:
        """A new try of an attempt, from now on."""
        trial_id = secrets.token_hex(16)
        workspace = f"{self._workspaces}/{case.id}/{variant.id}/{task.id}/{trial_id}"
        request = self._request(case, variant, task, slot, trial_id, workspace)
        return Begun(request, Path(workspace), _now(), perf_counter())

    def _try_ahead(self, planned: Planned) -> Begun | None:
        begun = self._try(planned.case, planned.variant, planned.task, planned.slot)
        return begun if self._make_workspace(begun.workspace) is None else None

    def _has_to_run(self, planned: Planned) -> bool:
        standing = self.standing(planned.case, planned.variant, planned.task, planned.slot)
        return standing.state in ("absent", "stale") and not self._foresight.knows(planned)

    def _make_workspace(self, workspace: Path) -> Outcome | None:
        """Make an attempt's workspace, where its runner does not; gives what is wrong where that is not possible."""
        if self._experiment.runner.makes_workspace:
            return None
        try:
            workspace.mkdir(parents=True)
        except OSError as error:
            return Outcome.unmeasured(type(error).__name__, f"the workspace cannot be made: {error}", "setup")
        return None

    def _outcome(self, request: AttemptRequest, workspace: Path) -> tuple[Outcome, bool]:
        """What the runner says, and whether something outside ended it."""
        runner = self._experiment.runner
        answer, ended = guarded(self._experiment.runner, lambda: runner.run(request, workspace), "setup")
        return as_outcome(answer, runner), ended

    def _policy_at(self, task: Task) -> ScorePolicy:
        return policy_at(self._experiment.score, task)

    def _had_less_time(self, record: AttemptRecord) -> bool:
        """Whether the attempt died of a time-out that is longer today."""
        limit = self._experiment.runner.time_limit
        return record.time_limit is not None and (limit is None or limit > record.time_limit)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")


def _verifier_failed(record: AttemptRecord) -> bool:
    """Whether the agent did its work and only the scoring went wrong."""
    return record.error is not None and record.error.phase in ("verifier", "contract")


def _own_copy(params: Mapping[str, Json]) -> dict[str, Json]:
    """A copy that the agent may change without changing the next attempt."""
    return {name: value if type(value) is str else copy.deepcopy(value) for name, value in params.items()}
