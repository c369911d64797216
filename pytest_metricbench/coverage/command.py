"""The ``command`` coverage system: a program that reads ``request.json`` and writes ``response.json``."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, ClassVar, Literal

from pydantic import Field

from pytest_metricbench.answers import read_coverage
from pytest_metricbench.argv import Argv
from pytest_metricbench.bases import CoverageSystem, Role
from pytest_metricbench.contracts import (
    GOALS_FILE,
    RESPONSE_FILE,
    ContractError,
    CoverageError,
    CoverageRequest,
    Json,
    Score,
    Seconds,
)
from pytest_metricbench.processes import (
    CannotStartError,
    MissingVariableError,
    clean_environment,
    log_tail,
    run_process,
)


class CommandCoverage(CoverageSystem):
    """Runs ``command`` with a private folder as its working directory.

    It finds the request in ``request.json`` and the evidence under ``evidence/<task>/<trial id>/``, and writes
    ``response.json`` (``{"value": x}``, or ``{"value": null, "reason": "..."}``) and, if it can, ``goals.json``.
    """

    kind: Literal["command"] = "command"
    command: Argv = Field(description="The command line: an absolute executable or {python}, and arguments.")
    timeout: Annotated[Seconds, Role.NEITHER] = Field(600, description="Seconds that one request may take.")
    settings: dict[str, Json] = Field({}, description="Whatever the command wants to know; part of its request.")
    env: dict[str, str | None] = Field(
        {},
        description="Environment variables beside PATH, HOME and LANG. null takes the value from the environment.",
    )

    concurrent: ClassVar[bool] = True

    @property
    def request_settings(self) -> Mapping[str, Json]:
        """The ``settings`` of the experiment, as they are."""
        return self.settings

    def measure(self, request: CoverageRequest, workspace: Path) -> Score:
        """Run the command and read its answer."""
        errors = workspace / "command.stderr"
        try:
            ended = run_process(
                self.command.resolved,
                cwd=workspace,
                env=clean_environment(self.env),
                stdout=workspace / "command.stdout",
                stderr=errors,
                timeout=self.timeout,
            )
        except (CannotStartError, MissingVariableError) as error:
            raise CoverageError(str(error)) from None
        problem = ended.describe(self.timeout)
        if problem is not None:
            tail = log_tail(errors)
            raise CoverageError(f"the command {problem}" + (f"; the end of its stderr:\n{tail}" if tail else ""))
        try:
            return read_coverage(workspace / RESPONSE_FILE, workspace / GOALS_FILE)
        except ContractError as error:
            raise CoverageError(f"the command's answer: {error}") from None
