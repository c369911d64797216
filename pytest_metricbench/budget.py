"""What one run may spend before it starts no further attempt: the ``budget`` of an experiment.

The process that keeps the store opens an :class:`Allowance`, a small file in the store; every process that runs
attempts, a worker of pytest-xdist too, takes from it before it starts one. So the number of attempts is exact however
many workers there are; seconds and cost are exceeded by what is in flight, which is never cut short.
"""

import fcntl
import json
import math
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field

from pytest_metricbench.contracts import AttemptRecord, Seconds
from pytest_metricbench.messages import counted
from pytest_metricbench.score_values import ScoreValue

COST_NAMES: Final = ("cost_usd", "cost")
"""Last parts of the names of scores that say what an attempt cost, where the budget names none; the first that an
attempt has."""
_LARGEST: Final = 1 << 16


class Budget(BaseModel):
    """What one run may spend. Part of no fingerprint: another budget runs nothing again."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    attempts: Annotated[int, Field(ge=1)] | None = Field(
        default=None, description="Attempts that one run starts, those that are only scored again among them."
    )
    seconds: Seconds | None = Field(default=None, description="Seconds of clock in which one run starts attempts.")
    cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] | None = Field(
        default=None, description="What the attempts of one run may cost, in the unit of the scores that say it."
    )
    cost_scores: list[Annotated[str, Field(min_length=1, max_length=200)]] = Field(
        default=[],
        description="Scores that say what an attempt cost, added up; default: cost_usd, or else cost.",
    )

    @property
    def limits(self) -> bool:
        """Whether it limits anything."""
        return self.attempts is not None or self.seconds is not None or self.cost is not None


# ---------------------------------------------------------------- what attempts cost


def cost_of(scores: Mapping[str, ScoreValue], names: Sequence[str] = ()) -> tuple[str, float] | None:
    """What an attempt says that it cost, and what the score that says so is called; None where it does not say.

    Args:
        scores: of the attempt.
        names: the scores to add up. Without: those called ``cost_usd``, alone or behind a metric's name and a point;
            or else those called ``cost``, likewise.

    Numbers that are not finite, negative ones, texts and booleans say nothing of a cost.
    """
    if names:
        chosen = [("cost", [name for name in names if name in scores])]
    else:
        chosen = [(last, [name for name in scores if name.rpartition(".")[2] == last]) for last in COST_NAMES]
    for unit, found in chosen:
        amounts = [amount for name in found if (amount := _amount(scores[name])) is not None]
        if amounts:
            return ("cost_usd" if all(name.endswith("cost_usd") for name in found) else unit), math.fsum(amounts)
    return None


def _amount(value: ScoreValue) -> float | None:
    if isinstance(value, bool | str) or value is None:
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if math.isfinite(amount) and amount >= 0 else None


def agent_ran(record: AttemptRecord) -> bool:
    """Whether an attempt's agent was started, so that it may have cost something."""
    if record.outcome in ("not_reached", "not_needed"):
        return False
    return record.outcome != "unmeasured" or (record.error is not None and record.error.phase != "setup")


@dataclass(slots=True)
class Spending:
    """What the attempts of this run cost, as far as they say so.

    Attributes:
        names: the scores that say it; empty: the usual ones.
        unit: what the first score that said so is called: ``cost_usd`` or ``cost``; empty before.
        known: trial id -> cost, of agents that ran in this run.
    """

    names: Sequence[str] = ()
    unit: str = ""
    known: dict[str, float | None] = field(default_factory=dict)

    def add(self, record: AttemptRecord, *, ran_before: bool = False) -> None:
        """Take the record of an attempt into account.

        Args:
            record: as it arrived.
            ran_before: its agent ran before this run, and only its score is new.
        """
        if (ran_before and record.trial_id not in self.known) or not agent_ran(record):
            return
        found = cost_of(record.scores, self.names)
        if found is not None:
            self.unit = self.unit or found[0]
            self.known[record.trial_id] = found[1]
        else:
            self.known.setdefault(record.trial_id, None)

    @property
    def total(self) -> float | None:
        """What they say together; None where none says anything."""
        amounts = self._amounts()
        return math.fsum(amounts) if amounts else None

    @property
    def silent(self) -> int:
        """Attempts whose agent ran and that do not say what it cost."""
        return len(self.known) - len(self._amounts())

    @property
    def assumed(self) -> float:
        """The total, with those that do not say counted as the mean of those that do: an agent that died cost too."""
        amounts = self._amounts()
        return math.fsum(amounts) * len(self.known) / len(amounts) if amounts else 0.0

    def _amounts(self) -> list[float]:
        return [amount for amount in self.known.values() if amount is not None]


def unpriced_note(budget: Budget | None, spending: Spending) -> str | None:
    """A sentence where the cost is limited and no attempt says what it cost; else None."""
    if budget is None or budget.cost is None or not spending.known or spending.total is not None:
        return None
    names = " or ".join(budget.cost_scores or COST_NAMES)
    return f"no attempt says what it cost (a score {names}), so the budget of cost {budget.cost:,g} limited nothing"


# ---------------------------------------------------------------- what may still be started


class BudgetReachedError(Exception):
    """An attempt that is not started in this run; the message says which limit was reached."""


class AllowanceError(Exception):
    """The allowance cannot be read: nobody knows whether an attempt may start."""


@dataclass(frozen=True, slots=True)
class Allowance:
    """The file that says whether a run may start another attempt. Every change of it is made under a lock."""

    path: Path

    def open(self, budget: Budget) -> None:
        """Begin a run: whatever an earlier one left is replaced.

        Raises:
            OSError: it cannot be written.
        """
        until = None if budget.seconds is None else time.time() + budget.seconds
        state = {"attempts": budget.attempts, "left": budget.attempts, "seconds": budget.seconds, "until": until}
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o644)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            _write(descriptor, {**state, "over": None})
        finally:
            os.close(descriptor)

    def take(self) -> str | None:
        """Take one attempt from it; gives the limit that was reached, in words, where none may start.

        Raises:
            AllowanceError: it cannot be read or written.
        """
        return self._change(_take)

    def give_back(self) -> None:
        """Give back what was taken for an attempt that did not have to run after all.

        Raises:
            AllowanceError: it cannot be read or written.
        """
        self._change(_give_back)

    def end(self, reason: str) -> None:
        """Let no further attempt start.

        Raises:
            AllowanceError: it cannot be read or written.
        """

        def set_over(state: dict[str, Any]) -> None:
            state["over"] = state["over"] or reason

        self._change(set_over)

    def close(self) -> None:
        """End of the run; closing again does nothing."""
        self.path.unlink(missing_ok=True)

    def _change(self, change: Callable[[dict[str, Any]], str | None]) -> str | None:
        try:
            descriptor = os.open(self.path, os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
                state = json.loads(os.pread(descriptor, _LARGEST, 0))
                answer = change(state)
                _write(descriptor, state)
                return answer
            finally:
                os.close(descriptor)
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise AllowanceError(
                f"{self.path}: the budget of this run cannot be read ({error}), so no attempt is started; every "
                "process of a run needs the folder of the store"
            ) from None


def _take(state: dict[str, Any]) -> str | None:
    over: str | None = state["over"]
    if over is not None:
        return over
    if state["until"] is not None and time.time() >= state["until"]:
        return "1 second" if state["seconds"] == 1 else f"{state['seconds']:,g} seconds"
    if state["left"] is not None:
        if state["left"] < 1:
            return counted(state["attempts"], "attempt")
        state["left"] -= 1
    return None


def _give_back(state: dict[str, Any]) -> None:
    if state["left"] is not None:
        state["left"] += 1


def _write(descriptor: int, state: Mapping[str, Any]) -> None:
    data = json.dumps(state).encode("ascii")
    os.pwrite(descriptor, data, 0)
    os.ftruncate(descriptor, len(data))
