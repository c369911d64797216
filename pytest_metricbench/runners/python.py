"""The ``python`` runner: an agent and a verifier that are functions, called in this process."""

import asyncio
import json
import traceback
from collections.abc import Callable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

from pydantic import Field

from pytest_metricbench.answers import as_score_value, as_scores, named
from pytest_metricbench.contracts import (
    OUTPUT_FILE,
    AttemptRequest,
    ContractError,
    Outcome,
    Role,
    Runner,
    ScoreValue,
    Seconds,
)
from pytest_metricbench.deadlines import DeadlineExceededError, call_within
from pytest_metricbench.targets import Target, TargetError


class PythonRunner(Runner):
    """Calls ``agent(request)`` and then ``verifier(request, output)``, which returns a mapping of scores.

    Without a verifier the agent's result is the scores: a mapping, or one number or boolean, then named ``reward``.
    What the agent raises means that it died; what the verifier raises leaves the attempt unmeasured. Async functions
    are awaited. Files written to ``request.workspace`` are evidence.
    """

    kind: Literal["python"] = "python"
    agent: Target = Field(description="package.module:function, called with the request.")
    verifier: Annotated[Target | None, Role.VERIFIER] = Field(
        None, description="package.module:function, called with the request and the agent's output."
    )
    timeout: Annotated[Seconds | None, Role.NEITHER] = Field(
        None, description="Seconds that each of the two may take; none without it."
    )

    makes_workspace: ClassVar[bool] = True

    @property
    def time_limit(self) -> float | None:
        """Seconds after which an agent is interrupted."""
        return self.timeout

    @cached_property
    def _agent(self) -> Callable[..., Any]:
        return self.agent.load()

    @cached_property
    def _verifier(self) -> Callable[..., Any] | None:
        return None if self.verifier is None else self.verifier.load()

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        """Call the agent and, when it returned, the verifier."""
        try:
            agent, verifier = self._agent, self._verifier
        except TargetError as error:
            return Outcome.unmeasured("TargetError", str(error), "setup")
        try:
            output = self._call(agent, request)
        except KeyboardInterrupt:
            raise
        except DeadlineExceededError:
            message = f"the agent ran longer than {self.timeout:g} s and was stopped"
            return Outcome.died("TimeOut", message, time_limit=self.timeout)
        except BaseException as error:  # SystemExit and the like are the agent's doing too
            return Outcome.died(type(error).__name__, _describe(error))
        if verifier is None:
            return _scored(output)
        self._keep(request, output)
        return self._verify(verifier, request, output)

    def rescore(self, request: AttemptRequest, workspace: Path) -> Outcome | None:
        """Verify the output that an earlier attempt kept; None when it was not JSON and so was not kept."""
        try:
            verifier = self._verifier
            output = json.loads((workspace / OUTPUT_FILE).read_bytes())
        except (OSError, ValueError, TargetError):
            return None
        return None if verifier is None else self._verify(verifier, request, output)

    def _verify(self, verifier: Callable[..., Any], request: AttemptRequest, output: Any) -> Outcome:
        try:
            return _scored(self._call(verifier, request, output), verified=True)
        except KeyboardInterrupt:
            raise
        except DeadlineExceededError:
            message = f"the verifier ran longer than {self.timeout:g} s and was stopped"
            return Outcome.unmeasured("TimeOut", message, "verifier")
        except BaseException as error:
            return Outcome.unmeasured(type(error).__name__, _describe(error), "verifier")

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return call_within(self.timeout, _call_and_await, function, *arguments)

    @staticmethod
    def _keep(request: AttemptRequest, output: Any) -> None:
        """Keep the output for a later scoring, as JSON and never as a pickle: a store is only data."""
        try:
            text = json.dumps(output)
            if json.loads(text) != output:
                return  # tuples or keys that are no texts: what came back would be something else
        except (TypeError, ValueError, RecursionError):
            return
        (request.workspace / OUTPUT_FILE).write_text(text, encoding="utf-8")


def _call_and_await(function: Callable[..., Any], *arguments: Any) -> Any:
    result = function(*arguments)
    if hasattr(result, "__await__"):
        return asyncio.run(_awaited(result))
    return result


async def _awaited(result: Any) -> Any:
    return await result


def _scored(answer: Any, *, verified: bool = False) -> Outcome:
    try:
        return Outcome.scored(_as_answer(answer))
    except ContractError as error:
        who = "verifier" if verified else "agent"
        return Outcome.unmeasured("ContractError", f"the {who}'s answer: {error}", "contract")


def _as_answer(answer: Any) -> Mapping[str, ScoreValue]:
    if isinstance(answer, Mapping):
        return as_scores(answer)
    if answer is None or isinstance(answer, str):
        raise ContractError(f"it is {named(answer)}; a mapping of scores, a number or a boolean is expected")
    return {"reward": as_score_value("reward", answer)}


def _describe(error: BaseException) -> str:
    """What an exception says, and where in the user's code it was raised; its type stands beside it."""
    text = str(error) or "no message"
    frames = traceback.extract_tb(error.__traceback__)
    where = next((frame for frame in reversed(frames) if frame.filename != __file__), None)
    return f"{text} ({where.filename}:{where.lineno})" if where is not None else text
