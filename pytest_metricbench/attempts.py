"""One attempt: taken from the store when what is kept there still holds, else run, with retries."""

import copy
import os
import secrets
import traceback
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from time import perf_counter
from typing import Final

from pytest_metricbench.contracts import (
    AttemptRecord,
    AttemptRequest,
    CaseRef,
    Json,
    Outcome,
    TaskRef,
    VariantRef,
)
from pytest_metricbench.definition.experiment import Case, Experiment, Task, Variant
from pytest_metricbench.definition.fingerprints import Fingerprints, attempt_seed
from pytest_metricbench.definition.scoring import contract_problem, status
from pytest_metricbench.store.files import digest_folder, files_match
from pytest_metricbench.store.layout import Layout

AttemptKey = tuple[str, str, str, int]


@dataclass(frozen=True, slots=True)
class Performed:
    """What came of an attempt: the record that counts, and the new ones that led to it."""

    record: AttemptRecord
    new: tuple[AttemptRecord, ...]
    """In order; more than one after retries, empty when the record was taken from the store."""

    @property
    def reused(self) -> bool:
        """Whether nothing was run."""
        return not self.new


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
    ) -> None:
        """Nothing is read yet.

        Args:
            experiment: what to run.
            fingerprints: of that experiment.
            layout: where workspaces are made.
            stored: gives the records to reuse; called before each attempt, so it should keep what it read.
            retry_died: run attempts again whose record says that they died.
        """
        self._experiment: Final = experiment
        self._fingerprints: Final = fingerprints
        self._layout: Final = layout
        self._stored: Final = stored
        self._retry_died: Final = retry_died
        self._workspaces: Final = str(layout.workspaces)

    def reusable(self, case: Case, variant: Variant, task: Task, slot: int) -> AttemptRecord | None:
        """The stored record of an attempt, if it is measured and everything it depends on is as it was."""
        record = self._stored().get((case.id, variant.id, task.id, slot))
        if record is None or record.outcome == "unmeasured":
            return None
        if status(self._experiment.score, record) == "unmeasured" or (self._retry_died and record.outcome == "died"):
            return None
        if record.fingerprint != self._fingerprints.attempt(case, variant, task):
            return None
        if record.verifier != self._fingerprints.verifier() or self._had_less_time(record):
            return None
        if record.files and not files_match(self._workspace(record), record.files):
            return None
        return record

    def unmeasured(self, case: Case, variant: Variant, task: Task, slot: int) -> AttemptRecord | None:
        """The stored record of an attempt of today's inputs that could not be measured."""
        record = self._stored().get((case.id, variant.id, task.id, slot))
        if record is None or status(self._experiment.score, record) != "unmeasured":
            return None
        return record if record.fingerprint == self._fingerprints.attempt(case, variant, task) else None

    def perform(self, case: Case, variant: Variant, task: Task, slot: int) -> Performed:
        """Take the attempt from the store or run it, again while it is unmeasured and ``retries`` are left."""
        kept = self.reusable(case, variant, task, slot)
        if kept is not None:
            return Performed(kept, ())
        earlier = self._stored().get((case.id, variant.id, task.id, slot))
        supersedes = None if earlier is None else earlier.trial_id
        new: list[AttemptRecord] = []
        for _ in range(1 + self._experiment.retries):
            record, ended = self._run(case, variant, task, slot, supersedes)
            new.append(record)
            if record.outcome != "unmeasured" or ended:
                break
            supersedes = record.trial_id
        return Performed(new[-1], tuple(new))

    def _run(
        self, case: Case, variant: Variant, task: Task, slot: int, supersedes: str | None
    ) -> tuple[AttemptRecord, bool]:
        """The record of one try, and whether somebody outside ended it, so that another try must not follow."""
        seed = attempt_seed(self._experiment.seed, case.id, variant.id, task.id, slot)
        trial_id = secrets.token_hex(16)
        workspace = f"{self._workspaces}/{case.id}/{variant.id}/{task.id}/{trial_id}"
        request = AttemptRequest(
            self._experiment.name,
            CaseRef(case.id),
            VariantRef(variant.request_id or variant.id, _own_copy(variant.params)),
            TaskRef(task.id, _own_copy(task.params)),
            slot,
            seed,
            trial_id,
            workspace,
        )
        started = datetime.now(UTC).isoformat(timespec="milliseconds")
        began = perf_counter()
        outcome, ended = self._outcome(request, Path(workspace))
        duration = round(perf_counter() - began, 6)
        outcome, files = _with_files(self._checked(outcome), workspace)
        record = AttemptRecord(
            case=case.id,
            variant=variant.id,
            task=task.id,
            attempt=slot,
            trial_id=trial_id,
            outcome=outcome.kind,
            scores=dict(outcome.scores),
            error=outcome.error,
            time_limit=outcome.time_limit,
            fingerprint=self._fingerprints.attempt(case, variant, task),
            verifier=self._fingerprints.verifier(),
            seed=seed,
            started=started,
            duration=duration,
            files=files,
            supersedes=supersedes,
        )
        return record, ended

    def _outcome(self, request: AttemptRequest, workspace: Path) -> tuple[Outcome, bool]:
        """What the runner says, and whether something outside ended it: pytest-timeout, whose clock runs once."""
        runner = self._experiment.runner
        try:
            if not runner.makes_workspace:
                workspace.mkdir(parents=True)
            outcome = runner.run(request, workspace)
        except KeyboardInterrupt:
            raise
        except Exception as error:  # a runner's fault says nothing about the agent
            message = f"the runner {runner.kind!r} raised:\n{''.join(traceback.format_exception(error)).strip()}"
            return Outcome.unmeasured(type(error).__name__, message, "setup"), False
        except BaseException as error:  # pytest's own exceptions are of this kind
            message = f"the attempt was ended by {''.join(traceback.format_exception_only(error)).strip()}"
            return Outcome.unmeasured(type(error).__name__, message, "setup"), True
        return _as_outcome(outcome, runner.kind), False

    def _checked(self, outcome: Outcome) -> Outcome:
        if outcome.kind != "scored":
            return outcome
        problem = contract_problem(self._experiment.score, outcome.scores)
        return outcome if problem is None else Outcome.unmeasured("ContractError", problem, "contract")

    def _had_less_time(self, record: AttemptRecord) -> bool:
        """Whether the attempt died of a time-out that is longer today."""
        limit = self._experiment.runner.time_limit
        return record.time_limit is not None and (limit is None or limit > record.time_limit)

    def _workspace(self, record: AttemptRecord) -> Path:
        return self._layout.workspace(record.case, record.variant, record.task, record.trial_id)


def _as_outcome(answer: object, kind: str) -> Outcome:
    """What a runner of somebody else's returned, held to the contract."""
    if isinstance(answer, Outcome):
        return answer
    message = f"the runner {kind!r} returned {type(answer).__name__}; an Outcome is expected"
    return Outcome.unmeasured("ContractError", message, "contract")


def _with_files(outcome: Outcome, workspace: str) -> tuple[Outcome, dict[str, str]]:
    """The outcome, and the digests of what the attempt left."""
    if os.path.islink(workspace):  # whatever it leads to, and was scored, is not what the attempt left
        if outcome.kind == "scored":
            message = f"the workspace {workspace} was replaced by a link"
            outcome = Outcome.unmeasured("ContractError", message, "contract")
        return outcome, {}
    if not os.path.isdir(workspace):
        return outcome, {}
    return outcome, digest_folder(Path(workspace))


def _own_copy(params: Mapping[str, Json]) -> dict[str, Json]:
    """A copy that the agent may change without changing the next attempt."""
    return copy.deepcopy(dict(params)) if params else {}
