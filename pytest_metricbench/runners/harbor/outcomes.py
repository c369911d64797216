"""What became of a trial, read from what it left: its result, or else what Harbor printed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, Literal

from pytest_metricbench.contracts import ContractError, Json, Outcome
from pytest_metricbench.interop.harbor.results import HarborResultError, HarborTrial, read_trial, trial_outcome
from pytest_metricbench.processes import log_tail
from pytest_metricbench.runners.harbor.config import OutcomeName
from pytest_metricbench.runners.harbor.trials import read_result

_CANCELLED: Final = "CancelledError"
_CORNER: Final = "\u256f"
"""The last corner of the frame around a traceback; mostly the error itself follows it."""
_NO_HARBOR: Final = "No module named 'harbor'"
_NO_MODULE: Final = re.compile(r"Failed to import module '([^']+)': No module named '\1'")
_UNSEEN: Final = re.compile(r"Environment variable '(\w+)' not found in host environment")
_FRAME: Final = " \u2502\u2500\u2570\u256f\u256d\u256e"


def result_outcome(trial: Path, version: str | None, overrides: Mapping[str, OutcomeName]) -> Outcome | None:
    """What the ``result.json`` in a folder says; None where there is none.

    Args:
        trial: the trial's folder, or the workspace that its files were moved to.
        version: of the Harbor that wrote it, where it is known.
        overrides: exception type -> outcome, over the table.
    """
    try:
        result = read_result(trial)
        return None if result is None else trial_outcome(result, version=version, overrides=overrides)
    except (ContractError, HarborResultError) as error:
        return Outcome.unmeasured(type(error).__name__, f"the trial's result.json: {error}", "contract")


def late_outcome(trial: Path, version: str | None, limit: float) -> Outcome | None:
    """What a trial is that the runner's own limit of so many seconds ended.

    It died when the agent was at work, and is unmeasured otherwise. None where the limit ended nothing: the result
    came just in time, or there is none that could tell.
    """
    try:
        result = read_result(trial)
        found = None if result is None else read_trial(result, version=version)
    except (ContractError, HarborResultError):
        return None
    phase = None if found is None else _ended_in(result, found)
    if found is None or phase is None:
        return None
    message = f"the trial ran longer than {limit:g} s and was stopped"
    if phase == "agent":
        worked = f"{message} while the agent worked"
        return Outcome.died("TimeOut", worked, time_limit=limit, trial_name=found.name)
    return Outcome.unmeasured("TimeOut", message, phase, trial_name=found.name)


def _ended_in(result: Mapping[str, Any], found: HarborTrial) -> Literal["setup", "agent", "verifier"] | None:
    """The phase in which a trial was cancelled; None where it was not."""
    moments = [error.moment for error in found.exceptions if error.type == _CANCELLED]
    if moments:
        moment = "agent" if "agent" in moments else moments[0]
        return "verifier" if moment == "after" else moment
    if found.rewards or found.exceptions:
        return None
    if result.get("verifier"):
        return "verifier"
    return "agent" if result.get("agent_execution") else "setup"


def told(workspace: Path) -> str:
    """The end of what Harbor printed: most of its errors go to stderr, some to stdout."""
    tails = [log_tail(workspace / f"agent.{stream}", 1500) for stream in ("stdout", "stderr")]
    said = "\n".join(plain for tail in tails if (plain := _without_frame(tail)))
    return f"; the end of what it printed:\n{said}" if said else "; it printed nothing"


def _without_frame(text: str) -> str:
    """What stands after the last framed traceback, or else at its end inside."""
    inside, corner, after = text.rpartition(_CORNER)
    if not corner or after.strip():
        return after.strip()
    lines = [line.strip(_FRAME) for line in inside.splitlines()]
    return "\n".join([line for line in lines if line][-4:])


def advised(outcome: Outcome, job: Path, executable: str | None, python_path: Sequence[str]) -> Outcome:
    """The outcome with a message that helps: what to do about slips that Harbor only states, and no folder of the job.

    Args:
        outcome: of a trial.
        job: the job's folder, which is removed; what the message names below the trial's is kept in the workspace.
        executable: what ran the trial; None for this process.
        python_path: where its modules were looked for.
    """
    error = outcome.error
    if error is None:
        return outcome
    message = re.sub(rf"{re.escape(str(job))}/[^/\s]+/", "", error.message)
    variable, module = _UNSEEN.search(message), _NO_MODULE.search(message)
    if _NO_HARBOR in message and executable is not None:
        remedy = (
            f"Harbor is not installed for {executable}: name bin/harbor of the environment that it is in, or that "
            "environment's interpreter"
        )
    elif variable is not None:
        remedy = (
            "Harbor sees PATH, HOME, LANG and what env of the runner names; there, "
            f"{{{variable[1]}: null}} takes it from the environment"
        )
    elif module is not None:
        remedy = f"it is looked for in python_path ({', '.join(python_path)}) and among what is installed beside Harbor"
    else:
        remedy = ""
    return replace(outcome, error=replace(error, message="\n".join(part for part in (message, remedy) if part)))


def as_text(value: Json) -> str | None:
    """A JSON value that is a text; None for any other."""
    return value if isinstance(value, str) else None
