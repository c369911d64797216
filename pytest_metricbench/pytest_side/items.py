"""The items of an experiment: what all of them are to pytest, and the one that is a single attempt.

An item of ours is told by its class, :class:`ExperimentItem`: an :class:`AttemptItem` here, or one of the groups of
:mod:`pytest_metricbench.pytest_side.groups`. It passes when what is in it was measured, whatever the agent did.
"""

from abc import abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_metricbench.budget import AllowanceError, BudgetReachedError
from pytest_metricbench.contracts import AttemptKey, AttemptRecord
from pytest_metricbench.definition.experiment import Variant
from pytest_metricbench.definition.scoring import Status, policy_at, status
from pytest_metricbench.executors.base import ExecutorError
from pytest_metricbench.reporting.junit import attempt_properties, identity_properties
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.attempts import NotCachedError, Performed
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.stops import RunStoppedError
from pytest_metricbench.running.wire import to_wire

LEARNED: Final = "metricbench"
"""The attribute of a test report that carries what an item learned: JSON from a worker, then its word."""
SO_FAR: Final = "metricbench_so_far"
"""The attribute of a passed set-up report that carries what a worker's item of several attempts learned until now."""
LEFT: Final = "left"
"""The word of an attempt that was not started since the budget of this run was spent; its limit follows a colon."""


class AttemptUnmeasuredError(Exception):
    """An attempt about which nothing is known: the test fails with this."""

    def __init__(self, record: AttemptRecord, folder: Path) -> None:
        """Keep the record and the folder with what the attempt left."""
        super().__init__(record.trial_id)
        self.record = record
        self.folder = folder


class Surroundings:
    """What pytest asks of every item and what is the same for all items below one collector."""

    __slots__ = ("above", "bench", "file", "hooks", "keywords", "nearest_first")

    def __init__(self, collector: pytest.Collector, bench: Bench) -> None:
        """Of the items of ``collector``, which are of the experiment of ``bench``."""
        self.bench: Final = bench
        self.above: Final[list[Any]] = collector.listchain()
        self.nearest_first: Final[list[Any]] = self.above[::-1]
        self.hooks: Any = collector.ihook
        self.keywords: Final[dict[str, Any]] = dict(collector.keywords)
        self.file: str | None = None
        """The experiment file as reports name it; known when the first item was asked."""

    def collected(self) -> None:
        """All is collected: take the hooks anew, without those of other folders that were loaded since."""
        self.hooks = self.above[-1].ihook


class ExperimentItem(pytest.Item):
    """An item of an experiment: one attempt or a group of attempts.

    Attributes:
        learned: for the test report, set by :meth:`runtest`: the item's word where this process keeps the store, else
            all it learned as JSON; None while nothing is known.
    """

    def __init__(self, *, shared: Surroundings, **kwargs: Any) -> None:
        """An item, with what it shares with the others of its collector."""
        self._shared: Final = shared
        super().__init__(**kwargs)
        self.keywords = {**shared.keywords, self.name: True}
        self.learned: str | None = None

    @property
    def shared(self) -> Surroundings:
        """What it shares with the other items of its collector."""
        return self._shared

    @property
    def bench(self) -> Bench:
        """What the items of the experiment share in this process."""
        return self._shared.bench

    @property
    @abstractmethod
    def variant(self) -> Variant:
        """The variant that all of it is about."""

    @property
    @abstractmethod
    def keys(self) -> Sequence[AttemptKey]:
        """Its attempts by case, variant, task and slot, in the order in which they are made."""

    @property
    @abstractmethod
    def planned(self) -> Sequence[Planned]:
        """Its attempts, likewise."""

    @property
    def may_be_skipped(self) -> bool:
        """Whether a mark may keep pytest from running it, so that none of it must begin before its turn."""
        return any(_may_skip(mark) for mark in self.iter_markers())

    @property
    def has_junit(self) -> bool:
        """Whether a JUnit file is written, so that properties are wanted."""
        return bool(self.config.getoption("xmlpath", None))

    # ------------------------------------------------ what pytest asks

    @property
    def ihook(self) -> Any:
        """The hooks that hold for the experiment file. pytest asks seven times an item."""
        return self._shared.hooks

    def iter_markers_with_node(self, name: str | None = None) -> Iterator[tuple[Any, pytest.Mark]]:
        """The marks of the item and its collectors, the closest first. pytest asks six times an item."""
        found: list[tuple[Any, pytest.Mark]] = [(self, m) for m in self.own_markers if name is None or m.name == name]
        for node in self._shared.nearest_first:
            if node.own_markers:
                found += [(node, mark) for mark in node.own_markers if name is None or mark.name == name]
        return iter(found)

    def listchain(self) -> list[Any]:
        """The collectors above and the item. pytest asks some ten times an item."""
        return [*self._shared.above, self]

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """File below the root folder, line and name, as reports have them."""
        if self._shared.file is None:
            self._shared.file = super().location[0]
        _, line, name = self.reportinfo()
        return self._shared.file, line, name

    @abstractmethod
    def reportinfo(self) -> tuple[Path, int, str]:
        """The file, the line (from 0) of what it is about, and the item in words."""


def _may_skip(mark: pytest.Mark) -> bool:
    if mark.name == "skipif":
        conditions = (mark.kwargs["condition"],) if "condition" in mark.kwargs else mark.args
        return not conditions or any(condition is not False for condition in conditions)  # a text is code
    return mark.name == "skip" or (mark.name == "xfail" and mark.kwargs.get("run") is False)


# ---------------------------------------------------------------- one attempt


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt that has its outcome.

    Attributes:
        record: what is known of it.
        new: its new records, in order; none when it was taken from the store.
        status: what became of it.
        word: that, or ``reused``, once this process has kept it; None where another keeps the store.
        interrupted: something outside (pytest-timeout) ended it, so that nothing must follow in its item.
    """

    record: AttemptRecord
    new: tuple[AttemptRecord, ...]
    status: Status
    word: str | None
    interrupted: bool


def make(bench: Bench, planned: Planned) -> Ended:
    """Take an attempt from the store or make it, and keep at once what it learned where the store is written here.

    Raises:
        BudgetReachedError: it would have to be made, and the budget of this run is spent.
        AllowanceError: nobody knows what of the budget is left.
        NotCachedError: it would have to be made, and nothing may.
        RunStoppedError: this is a worker, and the run stops.
    """
    if bench.deliver is None and (why := bench.stop_note.read()):
        raise RunStoppedError(why)
    performed: Performed = bench.perform(planned)
    became = status(policy_at(bench.experiment.score, planned.task), performed.record)
    word = None if bench.deliver is None else bench.deliver(planned.key, performed, became)
    return Ended(performed.record, performed.new, became, word, performed.interrupted)


class AttemptItem(ExperimentItem):
    """One attempt."""

    def __init__(self, *, attempt: Planned, shared: Surroundings, **kwargs: Any) -> None:
        """The item of ``attempt``, with what it shares with the others of its variant."""
        super().__init__(shared=shared, **kwargs)
        self._attempt: Final = attempt

    @property
    def variant(self) -> Variant:
        """The variant of the attempt."""
        return self._attempt.variant

    @property
    def keys(self) -> Sequence[AttemptKey]:
        """The attempt alone."""
        return (self._attempt.key,)

    @property
    def planned(self) -> Sequence[Planned]:
        """The attempt alone."""
        return (self._attempt,)

    def runtest(self) -> None:
        """Perform the attempt.

        Raises:
            AttemptUnmeasuredError: nothing is known about it.
            NotCachedError: it would have to run, and nothing may.
            AllowanceError: nobody knows whether the budget allows it.
            Skipped: pytest's own, for an attempt that is left for the next run, or not started since this one stops.
        """
        self.learned = None
        has_junit = self.has_junit
        if has_junit:
            self.user_properties[:] = identity_properties(self._attempt.key)
        try:
            ended = make(self.bench, self._attempt)
        except BudgetReachedError as reached:
            self.learned = f"{LEFT}:{reached}"
            if has_junit:
                self.user_properties.append(("outcome", LEFT))
            reason = f"the budget of {reached} was reached: left for the next run"
            raise pytest.skip.Exception(reason, _use_item_location=True) from None
        except RunStoppedError as stopped:
            raise pytest.skip.Exception(f"not started: {stopped}", _use_item_location=True) from None
        self.learned = to_wire(ended.status, ended.new) if ended.word is None else ended.word
        if has_junit:
            self.user_properties += attempt_properties(ended.record, ended.status)
        if ended.status == "unmeasured":
            self.bench.remember(ended.record)
            raise AttemptUnmeasuredError(ended.record, self.bench.layout.left_by(ended.record))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What went wrong, in which phase, and where the rest is; tracebacks only for faults that are ours."""
        error = excinfo.value
        if isinstance(error, NotCachedError | AllowanceError | ExecutorError):
            return f"not measured: {error}"
        if not isinstance(error, AttemptUnmeasuredError):
            return super().repr_failure(excinfo, style)
        problem = error.record.error
        if problem is None:
            return "unmeasured: the primary score is missing"
        left = f"\nwhat it left: {error.folder}" if error.record.files else ""
        return f"unmeasured ({problem.phase}): {problem.type}: {problem.message}{left}"

    def reportinfo(self) -> tuple[Path, int, str]:
        """The task's line in the file, and the attempt in words."""
        this = self._attempt
        return self.path, this.task.line - 1, f"{this.case.id}::{this.variant.id}::{self.name}"
