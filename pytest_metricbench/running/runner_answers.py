"""What a runner answers, whatever it does: an outcome that holds to the contract, and the files that are left."""

import os
import stat
import traceback
from collections.abc import Callable, Collection
from pathlib import Path

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import PHASE_OF_END, AttemptError, Outcome, Phase
from pytest_metricbench.definition.experiment import ScorePolicy
from pytest_metricbench.definition.scoring import kind_problem, primary_problem, primary_score
from pytest_metricbench.messages import without_traceback
from pytest_metricbench.origins import whose
from pytest_metricbench.store.files import copy_file, digest_folder, no_room


def guarded(runner: Runner, ask: Callable[[], object], phase: Phase) -> tuple[object, bool]:
    """What a call gives, or else an unmeasured outcome; and whether something outside ended it.

    That is pytest-timeout, whose clock runs once an item.

    Args:
        runner: whose code is called, for the message.
        ask: the call.
        phase: of the attempt, where the exception does not say another.
    """
    try:
        return ask(), False
    except KeyboardInterrupt:
        raise
    except Exception as error:  # a runner's fault says nothing about the agent
        raised = "".join(traceback.format_exception(error)).strip()
        message = f"the runner {runner.kind!r}{whose(type(runner))} raised:\n{raised}"
        return Outcome.unmeasured(type(error).__name__, message, phase), False
    except BaseException as error:  # pytest's own exceptions are of this kind
        phase = getattr(error, PHASE_OF_END, phase)
        message = f"the attempt was ended by {without_traceback(error)}"
        return Outcome.unmeasured(type(error).__name__, message, phase), True


def as_outcome(answer: object, runner: Runner) -> Outcome:
    """What a runner of somebody else's returned, held to the contract."""
    if isinstance(answer, Outcome):
        return answer
    who = f"the runner {runner.kind!r}{whose(type(runner))}"
    message = f"{who} returned {type(answer).__name__}; an Outcome is expected"
    return Outcome.unmeasured("ContractError", message, "contract")


def checked(outcome: Outcome, policy: ScorePolicy) -> Outcome:
    """The outcome, unmeasured where its scores are not what ``policy``, that of its task, declares or needs."""
    if outcome.kind != "scored":
        return outcome
    wrong = kind_problem(policy, outcome.scores)
    problem = wrong or primary_problem(policy, outcome.scores)
    if problem is None:
        return outcome
    error = AttemptError("ContractError", problem, "contract")
    if not wrong and outcome.error is not None and outcome.error.phase == "verifier":
        error = outcome.error  # it says why the primary score is missing
    is_absent = not wrong and primary_score(policy, outcome.scores) is None
    left = outcome.scores if is_absent else {}  # what lacks is the primary; the others are what they are
    return Outcome("unmeasured", left, error, None, outcome.trial_name)


def where_room_is(outcome: Outcome, workspace: Path) -> Outcome:
    """The outcome, unless the disk is full: then whatever went wrong says nothing about the agent or its verifier."""
    problem = None if outcome.kind in ("scored", "not_reached", "not_needed") else no_room(workspace)
    if problem is None:
        return outcome
    phase = outcome.error.phase if outcome.kind == "unmeasured" and outcome.error is not None else "setup"
    return Outcome.unmeasured("NoRoom", f"{problem}; make room and run the same command again", phase)


def with_files(outcome: Outcome, workspace: str) -> tuple[Outcome, dict[str, str]]:
    """The outcome, and the digests of what the attempt left."""
    try:
        mode = os.lstat(workspace).st_mode
    except OSError:
        return outcome, {}
    if stat.S_ISLNK(mode):  # whatever it leads to, and was scored, is not what the attempt left
        if outcome.kind == "scored":
            message = f"the workspace {workspace} was replaced by a link"
            outcome = Outcome.unmeasured("ContractError", message, "agent")  # nothing is left to score again
        return outcome, {}
    return outcome, digest_folder(Path(workspace)) if stat.S_ISDIR(mode) else {}


def copy_work(kept: Path, copied: Path, names: Collection[str]) -> Outcome | None:
    """Copy the files that an attempt left; gives what is wrong where that is not possible."""
    try:
        copied.mkdir(parents=True, exist_ok=True)
        for name in names:
            copy_file(kept / name, copied / name)
    except OSError as error:
        message = f"what the attempt left cannot be copied to score it again: {error}"
        return Outcome.unmeasured(type(error).__name__, message, "verifier")
    return None
