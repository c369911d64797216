"""The ``command`` runner: an agent and a verifier that are programs, in a workspace of their own."""

import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from pytest_metricbench.answers import read_scores
from pytest_metricbench.argv import Argv
from pytest_metricbench.bases import Role, Runner
from pytest_metricbench.contracts import REQUEST_FILE, RESPONSE_FILE, AttemptRequest, ContractError, Outcome, Seconds
from pytest_metricbench.generating.generation import FILES as CHANGED_FILES
from pytest_metricbench.plain_files import replace_file
from pytest_metricbench.processes import (
    CannotStartError,
    Finished,
    MissingVariableError,
    clean_environment,
    env_problem,
    log_tail,
    run_process,
)


class CommandRunner(Runner):
    """Runs ``agent`` and then ``verifier``, both with the workspace as their working directory.

    Where the variant's params hold another text of a file that the agent's command line names (``files``, as generated
    mutants have it), the agent is given a file with that text, in the workspace, in its place.

    The request stands in ``request.json``. An agent that ends with status 0 is verified; one that ends otherwise, or
    runs out of time, died. The verifier writes ``response.json``: ``{"scores": {name: value}}``; whatever goes wrong
    there leaves the attempt unmeasured. Without a verifier the agent writes the response.
    """

    kind: Literal["command"] = "command"
    agent: Argv = Field(description="The agent's command line: an absolute executable or {python}, and arguments.")
    verifier: Annotated[Argv | None, Role.VERIFIER] = Field(
        None, description="The verifier's command line, run when the agent ended with exit status 0."
    )
    timeout: Annotated[Seconds, Role.NEITHER] = Field(600, description="Seconds that each of the two may take.")
    env: dict[str, str | None] = Field(
        {},
        description="Environment variables beside PATH, HOME and LANG. null takes the value from the environment.",
    )

    @property
    def time_limit(self) -> float | None:
        """Seconds after which an agent is stopped."""
        return self.timeout

    @property
    def concurrent(self) -> bool:
        """Every attempt is in processes and a workspace of its own."""
        return True

    def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
        """Run the agent and, when it ended well, the verifier."""
        _write_request(request, workspace)
        try:
            environment = clean_environment(self.env)
            agent = _with_changed_files(self.agent, request, workspace)
            ended = self._step("agent", agent, workspace, environment)
        except (MissingVariableError, CannotStartError) as error:
            return Outcome.unmeasured(type(error).__name__, str(error), "setup")
        not_found = env_problem(self.agent.resolved, ended, workspace / "agent.stderr")
        if not_found is not None:
            return Outcome.unmeasured("CannotStartError", not_found, "setup")
        problem = ended.describe(self.timeout)
        if problem is not None:
            kind = "TimeOut" if ended.timed_out else "AgentFailed"
            limit = self.timeout if ended.timed_out else None
            return Outcome.died(kind, _with_log(f"the agent {problem}", workspace / "agent.stderr"), time_limit=limit)
        return self._verify(request, workspace, environment)

    def rescore(self, request: AttemptRequest, workspace: Path) -> Outcome | None:
        """Run the verifier on what an earlier attempt left; None without a verifier: the agent wrote the response."""
        if self.verifier is None:
            return None
        try:
            environment = clean_environment(self.env)
        except MissingVariableError as error:
            return Outcome.unmeasured(type(error).__name__, str(error), "verifier")
        return self._verify(request, workspace, environment)

    def _verify(self, request: AttemptRequest, workspace: Path, environment: dict[str, str]) -> Outcome:
        if self.verifier is None:
            return _scores(workspace, "agent")
        try:
            _remove(workspace / RESPONSE_FILE)  # what the agent wrote under this name is not the verifier's word
            _write_request(request, workspace)  # nor is what it made of the request
        except OSError as error:
            message = f"the agent left no workspace that can be written: {error}"
            return Outcome.unmeasured(type(error).__name__, message, "verifier")
        try:
            ended = self._step("verifier", self.verifier, workspace, environment)
        except CannotStartError as error:
            return Outcome.unmeasured(type(error).__name__, str(error), "verifier")
        problem = ended.describe(self.timeout)
        if problem is not None:
            message = _with_log(f"the verifier {problem}", workspace / "verifier.stderr")
            return Outcome.unmeasured("TimeOut" if ended.timed_out else "VerifierFailed", message, "verifier")
        return _scores(workspace, "verifier")

    def _step(self, step: str, argv: Argv, workspace: Path, environment: dict[str, str]) -> Finished:
        return run_process(
            argv.resolved,
            cwd=workspace,
            env=environment,
            stdout=workspace / f"{step}.stdout",
            stderr=workspace / f"{step}.stderr",
            timeout=self.timeout,
        )


def _write_request(request: AttemptRequest, workspace: Path) -> None:
    with os.fdopen(replace_file(workspace / REQUEST_FILE), "w", encoding="ascii") as file:
        json.dump(request.to_json(), file, indent=1)


def _with_changed_files(argv: Argv, request: AttemptRequest, workspace: Path) -> Argv:
    """A command line in which each file that the variant changes is the changed one.

    Raises:
        CannotStartError: it cannot be written.
    """
    texts = request.variant.params.get(CHANGED_FILES)
    if not isinstance(texts, dict):
        return argv
    resolved = list(argv.resolved)
    for number, written in enumerate(argv.written):
        name = os.path.normpath(written)
        text = texts.get(name)
        if number == 0 or not isinstance(text, str) or written not in dict(argv.files):
            continue
        changed = workspace / "variant" / name
        try:
            changed.parent.mkdir(parents=True, exist_ok=True)
            with os.fdopen(replace_file(changed), "w", encoding="utf-8", newline="") as file:
                file.write(text)
        except OSError as error:
            raise CannotStartError(f"the changed file {written} cannot be written: {error.strerror}") from error
        resolved[number] = str(changed)
    return replace(argv, resolved=tuple(resolved))


def _remove(path: Path) -> None:
    """Remove whatever stands under a name; a link, not what it leads to."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _scores(workspace: Path, writer: str) -> Outcome:
    try:
        return Outcome.scored(read_scores(workspace / RESPONSE_FILE))
    except ContractError as error:
        return Outcome.unmeasured("ContractError", f"the {writer}'s answer: {error}", "contract")


def _with_log(message: str, log: Path) -> str:
    tail = log_tail(log)
    return f"{message}; the end of its stderr:\n{tail}" if tail else f"{message}; it wrote nothing to stderr"
