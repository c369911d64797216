"""What is known of the attempts of an item whose process died under it."""

import secrets
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Final

from pytest_metricbench.contracts import AttemptError, AttemptKey, AttemptRecord
from pytest_metricbench.definition.fingerprints import attempt_seed
from pytest_metricbench.definition.scoring import policy_at, status
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.wire import GroupMessage, Part, group_to_wire, to_wire

_CRASHED: Final = "WorkerCrashed"


def crash_to_wire(bench: Bench, keys: Sequence[AttemptKey], message: str) -> str:
    """What is known of the attempts of an item whose process died under it: what the store has, else nothing."""
    parts = tuple(_crashed(bench, key, message) for key in keys)
    if bench.experiment.items == "attempt":
        (part,) = parts
        return to_wire(part.status, part.records)
    return group_to_wire(GroupMessage("unmeasured", parts, ()))


def _crashed(bench: Bench, key: AttemptKey, message: str) -> Part:
    this = Planned.of(bench.experiment, key)
    kept = bench.attempts.reusable(this.case, this.variant, this.task, this.slot)
    if kept is not None:
        return Part(key[2], key[3], status(policy_at(bench.experiment.score, this.task), kept), ())
    return Part(key[2], key[3], "unmeasured", (unmeasured_record(bench, this, _CRASHED, message),))


def unmeasured_record(bench: Bench, planned: Planned, kind: str, message: str) -> AttemptRecord:
    """The record of an attempt about which nothing is known; ``kind`` is the type of its error."""
    case_id, variant_id, task_id, slot = planned.key
    earlier = (bench.stored or {}).get(planned.key)
    return AttemptRecord(
        case=case_id,
        variant=variant_id,
        task=task_id,
        attempt=slot,
        trial_id=secrets.token_hex(16),
        outcome="unmeasured",
        scores={},
        error=AttemptError(kind, message, "setup"),
        time_limit=None,
        fingerprint=bench.fingerprints.attempt(planned.case, planned.variant, planned.task),
        verifier=bench.fingerprints.verifier(),
        seed=attempt_seed(bench.experiment.seed, case_id, variant_id, task_id, slot),
        started=datetime.now(UTC).isoformat(timespec="milliseconds"),
        duration=0.0,
        files={},
        supersedes=None if earlier is None else earlier.trial_id,
    )
