"""The steps of one ``eval-author`` request: processes in its folder, one deadline for all of them, errors in words."""

import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from pytest_metricbench.answers import read_json_file
from pytest_metricbench.contracts import ContractError, CoverageError
from pytest_metricbench.coverage.eval_author.inputs import LOGS
from pytest_metricbench.coverage.eval_author.keys import PACKAGES
from pytest_metricbench.processes import CannotStartError, Finished, log_tail, run_process

DOCUMENT_LIMIT: Final = 64 << 20
"""Bytes that a JSON document of the scripts may have: details list every call of a trace."""

_SCRIPT_ENVIRONMENT: Final = {"PYTHONDONTWRITEBYTECODE": "1", "PYTHONHASHSEED": "0", "PYTHONUTF8": "1"}
"""So that nothing is written into the checkout, and texts are the same wherever the scripts run."""

_MEANING: Final = {
    "environment": "the interpreter's environment lacks something that the scripts need",
    "audit_spec": "the audit is not right",
    "trace": "the trace is not right",
    "measurement": "it cannot be measured",
    "coverage_input": "a coverage.json cannot be added up",
    "coverage_report": "the report would not be right",
}
"""``error_type`` of the scripts -> in words."""


class ScriptError(CoverageError):
    """A script of the audit that refused its input, or could not run; ``error_type`` is what it called that, if it did.

    The scripts print one JSON object: ``{"valid": .., "written": false, "error_type": .., "error": text}``, with exit
    status 1 for what is wrong with the input and 2 for the environment; usage errors are 2 too, on stderr.
    """

    def __init__(self, message: str, error_type: str | None) -> None:
        """Keep both."""
        super().__init__(message)
        self.error_type = error_type


class Output(NamedTuple):
    """The two files that hold what a step printed."""

    stdout: Path
    stderr: Path

    @classmethod
    def named(cls, workspace: Path, log: str) -> "Output":
        """Those of a step in a request's folder."""
        return cls(workspace / LOGS / f"{log}.stdout", workspace / LOGS / f"{log}.stderr")


class Steps:
    """Runs the steps of one request in its folder, until its time is over."""

    def __init__(self, workspace: Path, environment: Mapping[str, str], interpreter: str, timeout: float) -> None:
        """Start the clock: ``timeout`` is in seconds, for all steps together."""
        self._workspace = workspace
        self._environment = dict(environment)
        self._interpreter = interpreter
        self._timeout = timeout
        self._end = time.monotonic() + timeout

    @property
    def left(self) -> float:
        """Seconds that are left; zero when the time is over."""
        return max(0.0, self._end - time.monotonic())

    def late(self, step: str) -> CoverageError:
        """The error of a request whose time is over."""
        return CoverageError(
            f"the request took longer than {self._timeout:g} s, all its steps together, and was stopped in {step}; "
            "give it a longer timeout"
        )

    def author(self, argv: Sequence[str]) -> None:
        """Run the author command.

        Raises:
            CoverageError: it cannot be started, fails, or takes too long.
        """
        ended, log = self._run(argv, self._environment, "author", "the author command")
        problem = ended.describe(self._timeout)
        if problem is not None:
            tail = log_tail(log.stderr)
            raise CoverageError(f"the author command {problem}" + (f"; the end of its stderr:\n{tail}" if tail else ""))

    def script(self, path: str, arguments: Sequence[str], log: str, about: str) -> dict[str, Any]:
        """Run a script of the audit and give the JSON object that it prints.

        Args:
            path: of the script.
            arguments: of the script, paths relative to the request's folder.
            log: name of its outputs, below :data:`LOGS`.
            about: what it is run for, for errors; may be empty.

        Raises:
            ScriptError: it refused its input or could not run.
            CoverageError: it took too long, or printed something else.
        """
        name = Path(path).name + (f" for {about}" if about else "")
        environment = {**_SCRIPT_ENVIRONMENT, **self._environment}
        ended, output = self._run([self._interpreter, path, *arguments], environment, log, name)
        problem = ended.describe(self._timeout)
        said = _printed(output.stdout)
        if problem is not None:
            raise self._refusal(name, problem, said, log_tail(output.stderr))
        if said is None:
            raise CoverageError(
                f"{name} ended without an error and printed no JSON object; are these Eval Author's scripts? "
                f"The end of its stdout:\n{log_tail(output.stdout, 500)}"
            )
        return said

    def _run(self, argv: Sequence[str], environment: Mapping[str, str], log: str, step: str) -> tuple[Finished, Output]:
        output = Output.named(self._workspace, log)
        if not self.left:
            raise self.late(step)
        try:
            output.stdout.parent.mkdir(parents=True, exist_ok=True)
            ended = run_process(
                argv,
                cwd=self._workspace,
                env=environment,
                stdout=output.stdout,
                stderr=output.stderr,
                timeout=self.left,
            )
        except (CannotStartError, OSError) as error:
            raise CoverageError(f"{step} cannot be run: {error}") from None
        if ended.timed_out:
            raise self.late(step)
        return ended, output

    def _refusal(self, name: str, problem: str, said: dict[str, Any] | None, errors: str) -> ScriptError:
        error_type = said.get("error_type") if said is not None else None
        if said is None or not isinstance(error_type, str):
            return ScriptError(f"{name} {problem}" + (f"; the end of its stderr:\n{errors}" if errors else ""), None)
        error = said.get("error")
        text = error if isinstance(error, str) and error.strip() else json.dumps(said, sort_keys=True)
        message = f"{name} {problem}: {_MEANING.get(error_type, 'it says')} (error_type {error_type}): {text.strip()}"
        if error_type == "environment":
            message += f"\ninstall it with {self._interpreter} -m pip install {PACKAGES} (Python 3.12 or newer)"
        return ScriptError(message, error_type)


def _printed(output: Path) -> dict[str, Any] | None:
    """The JSON object that a script printed; None when it printed something else."""
    try:
        value = read_json_file(output, DOCUMENT_LIMIT)
    except ContractError:
        return None
    return value if isinstance(value, dict) else None
