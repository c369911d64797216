"""Why attempts died: by kind of error, with the first message of each."""

from collections.abc import Iterator

from pytest_metricbench.analysis.figures import whole_text
from pytest_metricbench.analysis.kill_models import Death
from pytest_metricbench.analysis.outcomes import CaseOutcomes
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.contracts import AttemptError, AttemptRecord
from pytest_metricbench.definition.experiment import ScorePolicy
from pytest_metricbench.definition.scoring import status

_NULL_SCORE = AttemptError("NullScore", "the primary score is null", "verifier")


def deaths(results: Results, outcomes: CaseOutcomes, policy: ScorePolicy) -> tuple[Death, ...]:
    """The kinds of error that attempts of a case died of, the most frequent first; of equal ones the first met.

    Args:
        results: everything that is known.
        outcomes: of the case; its variants come in the order of the file, the baseline before the mutants.
        policy: with the primary score that decides in this experiment.
    """
    found: dict[str, list[AttemptRecord]] = {}
    for record in _records(results, outcomes):
        if status(policy, record) == "died":
            found.setdefault((record.error or _NULL_SCORE).type, []).append(record)
    ranked = sorted(found.items(), key=lambda kind: -len(kind[1]))
    return tuple(_death(kind, records) for kind, records in ranked)


def _records(results: Results, outcomes: CaseOutcomes) -> Iterator[AttemptRecord]:
    for variant in outcomes.cells:
        for task in outcomes.tasks:
            for slot in outcomes.case.slots(variant, task):
                record = results.attempts.get((outcomes.case.id, variant, task.id, slot))
                if record is not None:
                    yield record


def _death(kind: str, records: list[AttemptRecord]) -> Death:
    first = records[0]
    return Death(
        type=str(whole_text(kind)),
        attempts=len(records),
        variants=tuple(dict.fromkeys(record.variant for record in records)),
        first=f"{first.variant}::{first.task}[{first.attempt}]",
        message=(first.error or _NULL_SCORE).message,
    )
