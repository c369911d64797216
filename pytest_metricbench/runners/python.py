"""The ``python`` runner: an agent and a verifier that are functions, called in this process."""

import copy
import json
import os
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal

from pydantic import Field

from pytest_metricbench.answers import as_score_value, as_scores, named, plain_text, read_json_file, said_by
from pytest_metricbench.bases import Role, Runner
from pytest_metricbench.contracts import (
    OUTPUT_FILE,
    PHASE_OF_END,
    AttemptRequest,
    ContractError,
    Outcome,
    Seconds,
    TaskRef,
    VariantRef,
)
from pytest_metricbench.deadlines import DeadlineExceededError, call_and_await, call_within
from pytest_metricbench.plain_files import replace_file
from pytest_metricbench.score_values import ScoreValue
from pytest_metricbench.targets import Target, TargetError

_OUTPUT_LIMIT: Final = 64 << 20
"""Bytes of an output that is read again."""
_OURS: Final = str(Path(__file__).parents[1]) + os.sep


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

    thread_safe: Annotated[bool, Role.NEITHER] = Field(
        False, description="Agent and verifier may be called by several threads at a time (executor threads)."
    )

    makes_workspace: ClassVar[bool] = True

    @property
    def time_limit(self) -> float | None:
        """Seconds after which an agent is interrupted."""
        return self.timeout

    @property
    def concurrent(self) -> bool:
        """Only the experiment can say whether its functions may be called by several threads at a time."""
        return self.thread_safe

    @property
    def serial_advice(self) -> str:
        """Say that they may be."""
        return "set thread_safe: true where its agent and verifier may be called by several threads"

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
            return Outcome.unmeasured("TargetError", plain_text(str(error)), "setup")
        given = request if verifier is None else _copy(request)  # the agent may change its own
        try:
            output = self._call(agent, request)
        except KeyboardInterrupt:
            raise
        except DeadlineExceededError:
            message = f"the agent ran longer than {self.timeout:g} s and was stopped"
            return Outcome.died("TimeOut", message, time_limit=self.timeout)
        except BaseException as error:  # SystemExit and the like are the agent's doing too
            if _of_pytest_timeout(error):
                raise  # its limit says nothing about the agent, and would be reused for ever as if it did
            return Outcome.died(type(error).__name__, _describe(error))
        if verifier is None:
            return _scored(output)
        self._keep(given, output)
        return self._verify(verifier, given, output)

    def rescore(self, request: AttemptRequest, workspace: Path) -> Outcome | None:
        """Verify the output that an earlier attempt kept; None when it was not JSON and so was not kept."""
        try:
            verifier = self._verifier
            output = read_json_file(workspace / OUTPUT_FILE, _OUTPUT_LIMIT)
        except ContractError:
            return None
        except TargetError as error:  # no reason to pay for the agent again
            return Outcome.unmeasured("TargetError", plain_text(str(error)), "verifier")
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
            if _of_pytest_timeout(error):  # nothing may follow in that item, whose clock has run out
                setattr(error, PHASE_OF_END, "verifier")
                raise
            return Outcome.unmeasured(type(error).__name__, _describe(error), "verifier")

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        return call_within(self.timeout, call_and_await, function, *arguments)

    @staticmethod
    def _keep(request: AttemptRequest, output: Any) -> None:
        """Keep the output for a later scoring, as JSON and never as a pickle: a store is only data."""
        try:
            text = json.dumps(output)
            if json.loads(text) != output:
                return  # tuples or keys that are no texts: what came back would be something else
        except (TypeError, ValueError, RecursionError):
            return
        path = request.workspace / OUTPUT_FILE
        try:
            with os.fdopen(replace_file(path), "w", encoding="ascii") as file:
                file.write(text)
        except OSError:  # a folder in the way, a full disk: half an output could be read as another one
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _copy(request: AttemptRequest) -> AttemptRequest:
    """The same request with parameters of its own."""
    return replace(
        request,
        variant=VariantRef(request.variant.id, copy.deepcopy(request.variant.params)),
        task=TaskRef(request.task.id, copy.deepcopy(request.task.params)),
    )


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


def _of_pytest_timeout(error: BaseException) -> bool:
    """Whether the exception was raised by pytest-timeout's signal handler, in the middle of the agent."""
    frames = (frame for frame, _ in traceback.walk_tb(error.__traceback__))
    return any(frame.f_globals.get("__name__") == "pytest_timeout" for frame in frames)


def _describe(error: BaseException) -> str:
    """What an exception says, and where in the user's code it was raised; its type stands beside it."""
    frames = traceback.extract_tb(error.__traceback__)
    where = next((frame for frame in reversed(frames) if not frame.filename.startswith(_OURS)), None)
    place = "" if where is None else f" ({plain_text(where.filename)}:{where.lineno})"
    return (said_by(error) or "no message") + place
