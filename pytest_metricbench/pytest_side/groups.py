"""Items of several attempts: all of a variant at a task, or all of a variant.

What pytest does for an item costs more than an attempt that returns at once; and an item is the smallest thing that it
can select, stop before or send to another process. The experiment's ``items`` chooses.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import Any, Final

import pytest

from pytest_metricbench.budget import AllowanceError, BudgetReachedError
from pytest_metricbench.contracts import AttemptKey, AttemptRecord
from pytest_metricbench.definition.experiment import Case, Task, Variant
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.messages import counted
from pytest_metricbench.pytest_side.items import SO_FAR, Ended, ExperimentItem, Surroundings, make
from pytest_metricbench.reporting.junit import attempt_properties, group_properties
from pytest_metricbench.reporting.words import GroupUnit, group_word
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.attempts import NotCachedError
from pytest_metricbench.running.stops import RunStoppedError
from pytest_metricbench.running.wire import GroupMessage, LeftPart, Part, group_to_wire

MOST_SHOWN: Final = 10
"""Attempts that a failure message of a group lists."""
LONGEST_LINE: Final = 300
SEND_EVERY: Final = 1.0
"""Seconds after which a worker sends what has ended of a group: it costs a report, and a crash loses what is unsent."""


class GroupUnmeasuredError(Exception):
    """A group in which something could not be measured; the message lists what, one attempt below the other."""


@dataclass(frozen=True, slots=True)
class GroupSpec:
    """Which attempts a group is about: all of a variant at these tasks."""

    case: Case
    variant: Variant
    tasks: Sequence[Task]

    @property
    def planned(self) -> list[Planned]:
        """The attempts, in the order of the file."""
        return [
            Planned(self.case, self.variant, task, slot)
            for task in self.tasks
            for slot in self.case.slots(self.variant.id, task)
        ]


@dataclass(slots=True)
class SoFar:
    """What became of a group's attempts until now, in order."""

    ended: list[tuple[AttemptKey, Ended]] = field(default_factory=list)
    left: list[tuple[AttemptKey, str]] = field(default_factory=list)
    """Not started, and the limit of the budget that was reached."""
    problems: list[tuple[AttemptKey, str]] = field(default_factory=list)
    """Attempts about which nothing is known, and why, the first line in short."""
    never: int = 0
    """Not started since the run stops for a reason that is not of this group."""
    sent: int = 0
    """How many of those that ended the controller knows already."""
    sent_at: float = field(default_factory=monotonic)

    def lacks(self, total: int) -> bool:
        """Whether anything of ``total`` attempts is neither measured nor left for the next run."""
        return bool(self.problems) or len(self.ended) + len(self.left) < total


class GroupItem(ExperimentItem):
    """A group of attempts, made one after the other."""

    def __init__(self, *, spec: GroupSpec, shared: Surroundings, **kwargs: Any) -> None:
        """The item of ``spec``, with what it shares with the others of its collector."""
        super().__init__(shared=shared, **kwargs)
        self.spec: Final = spec

    @property
    def variant(self) -> Variant:
        """The variant of the group."""
        return self.spec.variant

    @property
    def keys(self) -> Sequence[AttemptKey]:
        """Its attempts by case, variant, task and slot."""
        return self.bench.names.groups[self._name]

    @property
    def planned(self) -> Sequence[Planned]:
        """Its attempts."""
        return self.spec.planned

    def runtest(self) -> None:
        """Perform the attempts, and keep each as it ends where this process keeps the store.

        Raises:
            GroupUnmeasuredError: something could not be measured.
            Skipped: pytest's own, for a group of which attempts are left for the next run, or not started since this
                one stops.
        """
        self.learned = None
        if self.has_junit:
            self.user_properties[:] = group_properties(self._name)
        so_far = SoFar()
        try:
            stopped = self._make_all(so_far)
        finally:
            self._learn(so_far)
        if so_far.problems:
            raise GroupUnmeasuredError(self._message(so_far))
        total = counted(len(self.keys), "attempt")
        if stopped:
            reason = f"{so_far.never:,} of {total} not started: {stopped}"
            raise pytest.skip.Exception(reason, _use_item_location=True)
        if so_far.left:
            part = f"{len(so_far.left):,} of {total}"
            reason = f"{part} left for the next run: the budget of {so_far.left[0][1]} was reached"
            raise pytest.skip.Exception(reason, _use_item_location=True)

    def _make_all(self, so_far: SoFar) -> str:
        """Make the attempts; gives why the run stops where that has nothing to do with this group."""
        waiting, stopped = self.planned, ""
        for index, this in enumerate(waiting):
            if stopped and not self._has_ended(this):
                how = "not started" if self.bench.elsewhere is None else "not waited for"
                so_far.problems.append((this.key, f"{how}: {stopped}"))
                continue
            try:
                ended = self._make(so_far, this)
            except RunStoppedError as error:
                if so_far.problems:
                    so_far.problems += [(never.key, f"not started: {error}") for never in waiting[index:]]
                    return ""
                so_far.never = len(waiting) - index
                return str(error)
            if ended is not None:
                stopped = stopped or self._stops(so_far, ended)
        return ""

    def _make(self, so_far: SoFar, this: Planned) -> Ended | None:
        """Make an attempt and note what became of it; None where it did not come to that."""
        try:
            ended = make(self.bench, this)
        except BudgetReachedError as reached:
            so_far.left.append((this.key, str(reached)))
            if self.bench.leave is not None:
                self.bench.leave(this.key, str(reached))
            return None
        except (NotCachedError, AllowanceError, ExecutorError) as error:
            so_far.problems.append((this.key, f"not measured: {error}"))
            return None
        so_far.ended.append((this.key, ended))
        if self.has_junit:
            self.user_properties += attempt_properties(ended.record, ended.status, self._prefix(this.key))
        if ended.status == "unmeasured":
            so_far.problems.append((this.key, self._why(ended.record)))
        self._send(so_far)
        return ended

    def _has_ended(self, this: Planned) -> bool:
        """Whether an executor has the answer, so that nothing has to be started or waited for."""
        ended = self.bench.ended_elsewhere
        return ended is not None and ended(this.key)

    def _stops(self, so_far: SoFar, last: Ended) -> str:
        """Why no further attempt is to start; empty where nothing is against it."""
        session = self.session
        if last.interrupted:
            return "the item was ended before it"
        if session.shouldfail or session.shouldstop:
            return str(session.shouldfail or session.shouldstop)
        most = self.config.getvalue("maxfail")
        if most and so_far.problems and session.testsfailed + 1 >= most:
            return "the run stops at the failure before it"
        return ""

    # ------------------------------------------------ what is told of it

    @property
    def _unit(self) -> GroupUnit:
        return "task" if self.bench.experiment.items == "task" else "variant"

    @property
    def _name(self) -> tuple[str, ...]:
        """Case and variant, and the task where it has one."""
        spec = self.spec
        return (spec.case.id, spec.variant.id, *(task.id for task in spec.tasks if self._unit == "task"))

    def _prefix(self, key: AttemptKey) -> str:
        """What the names of an attempt's properties begin with."""
        return f"attempt.{key[3]}." if self._unit == "task" else f"{key[2]}.{key[3]}."

    def _learn(self, so_far: SoFar) -> None:
        lacks = so_far.lacks(len(self.keys))
        if lacks:  # should something run the item again, what it has is not made again
            for _, ended in so_far.ended:
                self.bench.remember(ended.record)
        word = group_word(
            self._unit,
            [ended.status for _, ended in so_far.ended],
            is_reused=all(not ended.new for _, ended in so_far.ended),
            lacks=lacks,
            left=bool(so_far.left),
        )
        if self.has_junit:
            self.user_properties.append(("outcome", word))
        if self.bench.deliver is not None:
            self.learned = f"{self._unit} {word}"
            return
        left = tuple(LeftPart(key[2], key[3], reached) for key, reached in so_far.left)
        self.learned = group_to_wire(GroupMessage(word, _unsent(so_far), left))

    @property
    def _send_every(self) -> float:
        """Seconds; what attempts cost is heeded by the process that is told of them."""
        budget = self.bench.budget
        return SEND_EVERY if budget is None or budget.cost is None else 0.0

    def _send(self, so_far: SoFar) -> None:
        """Send what has ended to the process that keeps the store, from time to time; the item goes on.

        It travels on a report that says nothing to anybody else: set-up has passed.
        """
        if self.bench.deliver is not None or monotonic() - so_far.sent_at < self._send_every:
            return
        report = pytest.TestReport(self.nodeid, self.location, {}, "passed", None, "setup")
        setattr(report, SO_FAR, group_to_wire(GroupMessage("unmeasured", _unsent(so_far), ())))
        self.ihook.pytest_runtest_logreport(report=report)
        so_far.sent, so_far.sent_at = len(so_far.ended), monotonic()

    def _why(self, record: AttemptRecord) -> str:
        problem = record.error
        if problem is None:
            return "unmeasured: the primary score is missing"
        left = f"\n  what it left: {self.bench.layout.left_by(record)}" if record.files else ""
        return f"unmeasured ({problem.phase}): {problem.type}: {_shortened(problem.message)}{left}"

    def _message(self, so_far: SoFar) -> str:
        count, total = len(so_far.problems), len(self.keys)
        lines = [f"{count:,} of {counted(total, 'attempt')} not measured"]
        for key, why in so_far.problems[:MOST_SHOWN]:
            name = f"[{key[3]}]" if self._unit == "task" else f"{key[2]}[{key[3]}]"
            lines.append(f"{name} {why}")
        if count > MOST_SHOWN:
            lines.append(f"and {count - MOST_SHOWN:,} more")
        return "\n".join(lines)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Which attempts could not be measured, and why; tracebacks only for faults that are ours."""
        if isinstance(excinfo.value, GroupUnmeasuredError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """The line of the task, or of the variant, in the file, and the item in words."""
        spec = self.spec
        line = spec.tasks[0].line if self._unit == "task" else spec.variant.line
        return self.path, line - 1, "::".join(self._name)


class TaskItem(GroupItem):
    """All attempts of a variant at a task."""


class VariantItem(GroupItem):
    """All attempts of a variant."""


def _unsent(so_far: SoFar) -> tuple[Part, ...]:
    return tuple(Part(key[2], key[3], ended.status, ended.new) for key, ended in so_far.ended[so_far.sent :])


def _shortened(message: str) -> str:
    """The first line of a message, or of a traceback the last, which says what was raised."""
    lines = message.strip().splitlines() or [""]
    text = lines[0] if len(lines) == 1 else f"{lines[0]} ... {lines[-1].strip()}"
    return text if len(text) <= LONGEST_LINE else f"{text[: LONGEST_LINE - 3]}..."
