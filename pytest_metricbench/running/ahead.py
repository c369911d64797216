"""What is done before an attempt's turn: it is begun, so that a cluster is busy meanwhile, or need not be made."""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import AttemptKey, AttemptRequest, Outcome
from pytest_metricbench.definition.experiment import Case, Experiment, Task, Variant


@dataclass(frozen=True, slots=True)
class Planned:
    """An attempt that is part of this run."""

    case: Case
    variant: Variant
    task: Task
    slot: int

    @property
    def key(self) -> AttemptKey:
        """Case, variant, task, slot."""
        return (self.case.id, self.variant.id, self.task.id, self.slot)

    @classmethod
    def of(cls, experiment: Experiment, key: AttemptKey) -> "Planned":
        """The attempt of an experiment that has this key."""
        case = experiment.case(key[0])
        variant = next(variant for variant in case.variants if variant.id == key[1])
        task = next(task for task in case.tasks if task.id == key[2])
        return cls(case, variant, task, key[3])


@dataclass(frozen=True, slots=True)
class Begun:
    """A try of an attempt: what the runner is asked, where, and since when."""

    request: AttemptRequest
    workspace: Path
    started: str
    """UTC, ISO 8601."""
    clock: float
    """Of ``time.perf_counter``."""


FORESEEN: Final = ("not_reached", "not_needed")
"""What may become of an attempt that is not made."""


class Foresight:
    """What becomes of attempts that need not be made, as far as the runner knows it beforehand."""

    def __init__(self, runner: Runner, baseline: Callable[[Planned], tuple[Path, ...]]) -> None:
        """Nothing is known yet.

        Args:
            runner: it is asked.
            baseline: gives the folders that the baseline left at an attempt's task.
        """
        self._runner: Final = runner
        self._baseline: Final = baseline
        self._known: Final[dict[AttemptKey, Outcome]] = {}
        """Of attempts that were looked at before their turn."""

    def knows(self, planned: Planned) -> bool:
        """Whether an attempt that would have to be made need not be."""
        outcome = self._ask(planned)
        if outcome is not None:
            self._known[planned.key] = outcome
        return outcome is not None

    def take(self, planned: Planned) -> Outcome | None:
        """What becomes of an attempt whose turn it is; None where it is to be made."""
        return self._known.pop(planned.key, None) or self._ask(planned)

    def _ask(self, planned: Planned) -> Outcome | None:
        if not self._runner.foresees or planned.variant.kind == "baseline":
            return None
        try:
            answer = self._runner.foreseen(planned.variant.params, planned.task.params, self._baseline(planned))
        except Exception:  # the runner says what is wrong when it is asked to make the attempt
            return None
        return answer if isinstance(answer, Outcome) and answer.kind in FORESEEN else None


class Ahead:
    """Keeps as many attempts begun as the runner wants; for a runner that wants none it does nothing."""

    def __init__(
        self, runner: Runner, is_needed: Callable[[Planned], bool], make: Callable[[Planned], Begun | None]
    ) -> None:
        """Nothing is begun yet.

        Args:
            runner: it begins attempts.
            is_needed: whether an attempt has to be run, and is not taken from a store.
            make: prepares a try of an attempt; None where its workspace cannot be made.
        """
        self._runner: Final = runner
        self._is_needed: Final = is_needed
        self._make: Final = make
        self._waiting: deque[Planned] = deque()
        self._begun: dict[AttemptKey, Begun] = {}

    def expect(self, planned: Iterable[Planned]) -> None:
        """Say which attempts come next, in their order; what was said before is forgotten."""
        self._waiting = deque(planned)

    def fill(self) -> None:
        """Begin the next attempts, up to as many as the runner wants in flight."""
        wanted = self._runner.ahead
        while self._waiting and len(self._begun) < wanted:
            planned = self._waiting.popleft()
            if planned.key in self._begun or not self._is_needed(planned):
                continue
            begun = self._make(planned)
            if begun is None:
                continue
            try:
                self._runner.begin(begun.request, begun.workspace)
            except Exception:  # the runner begins it when its turn comes, and says then what is wrong
                return
            self._begun[planned.key] = begun

    def take(self, key: AttemptKey) -> Begun | None:
        """The try of an attempt that was begun; None where it was not. It is not waited for any more."""
        if self._waiting and self._waiting[0].key == key:
            self._waiting.popleft()
        return self._begun.pop(key, None)

    def close(self) -> None:
        """End what was begun and never asked for."""
        self._waiting.clear()
        self._begun.clear()
        self._runner.close()
