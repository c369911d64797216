"""Attempts under a budget: none is started, in whichever process, that the allowance does not grant."""

from collections import deque
from collections.abc import Iterable
from typing import Final

from pytest_metricbench.bases import Runner
from pytest_metricbench.budget import Allowance, BudgetReachedError
from pytest_metricbench.contracts import AttemptKey
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.attempts import Attempts, Performed


class BudgetedAttempts:
    """The attempts of one experiment in this process, as far as its budget goes."""

    def __init__(self, attempts: Attempts, runner: Runner, allowance: Allowance) -> None:
        """Nothing is granted yet.

        Args:
            attempts: performs them.
            runner: it says how many attempts it begins before their turn.
            allowance: what is asked before each.
        """
        self._attempts: Final = attempts
        self._runner: Final = runner
        self._allowance: Final = allowance
        self._planned: deque[Planned] = deque()
        self._granted: Final[dict[AttemptKey, Planned]] = {}
        """Attempts that may begin before their turn: what is in flight when the budget is spent is finished."""

    def expect(self, planned: Iterable[Planned]) -> None:
        """Say which attempts of this process come next; only what is granted begins before its turn."""
        self._planned = deque(planned)

    def perform(self, this: Planned) -> Performed:
        """Take an attempt from the store, or make it if that is granted.

        Raises:
            BudgetReachedError: it would have to be made, and the budget of this run is spent.
            AllowanceError: nobody knows what of the budget is left.
        """
        standing = self._attempts.standing(this.case, this.variant, this.task, this.slot)
        if standing.record is not None and standing.state == "reusable":
            return Performed(standing.record, ())
        if self._granted.pop(this.key, None) is None and (reached := self._allowance.take()) is not None:
            raise BudgetReachedError(reached)
        if self._planned or self._granted:
            self._grant_ahead(this)
        performed = self._attempts.perform(this.case, this.variant, this.task, this.slot)
        if performed.record.outcome in ("not_reached", "not_needed"):
            self._allowance.give_back()
        return performed

    def _grant_ahead(self, this: Planned) -> None:
        """Take from the allowance what may begin together with this attempt."""
        while self._planned and len(self._granted) < self._runner.ahead - 1:
            planned = self._planned[0]
            if planned.key != this.key and planned.key not in self._granted and self._has_to_run(planned):
                if self._allowance.take() is not None:
                    break
                self._granted[planned.key] = planned
            self._planned.popleft()
        self._attempts.expect([this, *self._granted.values()])

    def _has_to_run(self, planned: Planned) -> bool:
        standing = self._attempts.standing(planned.case, planned.variant, planned.task, planned.slot)
        return standing.state in ("absent", "stale")
