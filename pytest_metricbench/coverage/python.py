"""The ``python`` coverage system: a function that is given the request and returns the score."""

import traceback
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field

from pytest_metricbench.answers import as_coverage_score, named, plain_text, said_by
from pytest_metricbench.bases import CoverageSystem, Role
from pytest_metricbench.contracts import ContractError, CoverageError, CoverageRequest, Json, Score, Seconds
from pytest_metricbench.deadlines import DeadlineExceededError, call_and_await, call_within
from pytest_metricbench.targets import Target, TargetError


class PythonCoverage(CoverageSystem):
    """Calls ``measure(request)``, which returns a number, or ``{"value": .., "reason": .., "goals": ..}``.

    An async function is awaited. The request has ``case``, ``subset``, ``tasks``, ``evidence`` (task id -> list of
    files) and ``settings``.
    """

    kind: Literal["python"] = "python"
    measure_with: Target = Field(alias="measure", description="package.module:function, called with the request.")
    timeout: Annotated[Seconds | None, Role.NEITHER] = Field(
        None, description="Seconds that one request may take; no limit without it."
    )
    settings: dict[str, Json] = Field({}, description="Whatever the function wants to know; part of its request.")

    @property
    def request_settings(self) -> Mapping[str, Json]:
        """The ``settings`` of the experiment, as they are."""
        return self.settings

    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        """Call the function and check what it returns."""
        try:
            answer = call_within(self.timeout, call_and_await, self.measure_with.load(), request)
        except TargetError as error:
            raise CoverageError(plain_text(str(error))) from None
        except DeadlineExceededError:
            raise CoverageError(f"the function ran longer than {self.timeout:g} s and was stopped") from None
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # SystemExit, or what pytest.fail raises, fails one request and not the run
            log = workspace / "function.stderr"
            log.write_text(traceback.format_exc(), encoding="utf-8", errors="backslashreplace")
            said = said_by(error) or "no message"
            raise CoverageError(f"the function raised {type(error).__name__}: {said}") from error
        try:
            return _as_score(answer)
        except ContractError as error:
            raise CoverageError(f"the function's answer: {error}") from None


def _as_score(answer: Any) -> Score:
    if not isinstance(answer, Mapping):
        if answer is None:
            raise ContractError('it is null; {"value": None, "reason": "..."} says that there is no score')
        return as_coverage_score({"value": answer})
    other = [key for key in answer if key not in ("value", "reason", "goals")]
    if other:
        raise ContractError(f"{named(other[0])} is no key of an answer; value, reason and goals are")
    return as_coverage_score({key: answer[key] for key in answer if key != "goals"}, answer.get("goals"))
