"""What JUnit files carry: properties of attempts and coverage requests, as texts."""

from pytest_metricbench.contracts import AttemptRecord, CoverageRecord
from pytest_metricbench.score_values import value_to_json


def attempt_properties(record: AttemptRecord, word: str) -> list[tuple[str, object]]:
    """Outcome, trial id and scores of an attempt; ``word`` is passed, missed, died or unmeasured."""
    properties: list[tuple[str, object]] = [("outcome", word), ("trial_id", record.shown_id)]
    properties += [(f"score.{name}", str(value_to_json(value))) for name, value in record.scores.items()]
    if record.error is not None:
        properties.append(("error", f"{record.error.phase}: {record.error.type}"))
    return properties


def coverage_properties(record: CoverageRecord) -> list[tuple[str, object]]:
    """Outcome and value of a coverage request, or the reason why there is none."""
    properties: list[tuple[str, object]] = [("outcome", record.outcome)]
    if record.value is not None:
        properties.append(("value", str(record.value)))
    if record.reason is not None:
        properties.append(("reason", record.reason))
    return properties
