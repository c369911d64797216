"""Names that tests of the ``helix`` runner share."""

from collections.abc import Callable

from pytest_metricbench.contracts import AttemptRequest, Outcome
from pytest_metricbench.runners.helix.runner import HelixRunner

SCORED = """printf '{"scores": {"reward": 1.0}}' > response.json"""
Make = Callable[..., HelixRunner]
Ask = Callable[..., AttemptRequest]
Perform = Callable[..., Outcome]


def error_of(outcome: Outcome) -> tuple[str, str, str]:
    """Kind of outcome, type and phase of its error."""
    assert outcome.error is not None
    assert not outcome.scores
    return outcome.kind, outcome.error.type, outcome.error.phase


def message_of(outcome: Outcome) -> str:
    """What its error says."""
    assert outcome.error is not None
    return outcome.error.message


QUIET = ("randomly", "rerunfailures", "repeat", "timeout", "html", "html_fixtures", "metadata", "sugar", "pytest_cov")


def without_others() -> list[str]:
    return [part for name in QUIET for part in ("-p", f"no:{name}")]
