"""Between the items of pytest, which ask in their order, and an executor, whose attempts end in any order.

What has ended is kept in the store at once, whatever its item's turn is, so that a run that is killed loses nothing
that was paid for; the item is told when it asks.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Final, TypeAlias

from pytest_metricbench.contracts import AttemptKey, CoverageRecord
from pytest_metricbench.definition.scoring import Status, policy_at, status
from pytest_metricbench.executors.base import Completed, Executor, ExecutorError
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.attempts import Performed
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.coverage_plan import PlannedRequest

AT_ONCE: Final = 256
"""Attempts that are submitted together: looking at what the store has of the next ones must not delay the first."""
_LOOK_EVERY: Final = 0.2
"""Seconds between two looks at whether the run has ended."""

Keep: TypeAlias = Callable[[AttemptKey, Performed, Status], str]
"""Keeps what came of an attempt in the store and gives its word."""
_Place: TypeAlias = tuple[Bench, AttemptKey]


@dataclass(slots=True)
class _Answer:
    """What an attempt's item will be told: what became of it, and the word that it was kept under."""

    performed: Performed | None = None
    error: BaseException | None = None
    word: str | None = None
    """None where it was not kept yet: there is nothing new, or it was not performed."""


class Dispatcher:
    """Has attempts made by an executor, keeps what has ended, and answers the items."""

    def __init__(self, executor: Executor, why_ended: Callable[[], str | None]) -> None:
        """Nothing is expected yet.

        Args:
            executor: makes the attempts.
            why_ended: says why nobody waits any more; None while somebody does.
        """
        self._executor: Final = executor
        self._why_ended: Final = why_ended
        self._keeps: Final[dict[Bench, Keep]] = {}
        self._durations: list[float] = []
        self._expected: list[tuple[Bench, Planned]] = []
        self._known: Final[dict[_Place, Planned]] = {}
        """In flight."""
        self._arriving: Final[deque[Completed]] = deque()
        """Ended, and not kept yet."""
        self._answers: Final[dict[_Place, _Answer]] = {}
        """Ended, and not asked for yet."""
        self._given: Final[dict[_Place, _Answer]] = {}
        """Told to an item that has not asked for its word yet; at most one an item."""
        self._broken: str | None = None
        """Why nothing more will be answered."""
        self._ended = False

    # ------------------------------------------------ experiments

    def accept(self, bench: Bench) -> None:
        """Check that the executor can serve an experiment.

        Raises:
            ExecutorError: it cannot.
        """
        self._executor.accept(bench)

    @property
    def warning(self) -> str | None:
        """As :attr:`Executor.warning`."""
        return self._executor.warning

    @property
    def notes(self) -> Sequence[str]:
        """As :attr:`Executor.notes`."""
        return self._executor.notes

    def serve(self, bench: Bench) -> None:
        """Have whoever asks the bench for an attempt, or delivers one to it, come here."""
        assert bench.deliver is not None
        self._keeps[bench] = bench.deliver
        bench.elsewhere = partial(self.perform, bench)
        bench.deliver = partial(self.word, bench)
        bench.ended_elsewhere = lambda key: (bench, key) in self._answers

    def serves(self, bench: Bench) -> bool:
        """Whether the attempts of that bench are made here."""
        return bench in self._keeps

    # ------------------------------------------------ from the items

    def expect(self, planned: Iterable[tuple[Bench, Planned]]) -> None:
        """Say which attempts the items of this process will ask for, in their order.

        They are submitted when the first of them is asked for: a session may turn out to run none of its items.
        """
        self._expected = list(planned)

    def perform(self, bench: Bench, planned: Planned) -> Performed:
        """Wait until an attempt has ended, keeping whatever else ends meanwhile.

        An attempt that was told already is made again: something runs its item a second time.

        Raises:
            ExecutorError: nothing is answered any more.
            BaseException: what making it raised.
        """
        place = (bench, planned.key)
        self._submit_expected()
        if place not in self._answers and place not in self._known:
            self._submit(bench, [planned])
        while place not in self._answers:
            if (ended := self._why_ended()) is not None:
                self.give_up(ended)
            if self._broken is not None:
                raise ExecutorError(self._broken)
            self.take_completed(_LOOK_EVERY)
        answer = self._answers.pop(place)
        if answer.performed is None:
            assert answer.error is not None
            raise answer.error
        self._given[place] = answer
        self._durations += [record.duration for record in answer.performed.new] or [0.0]
        return answer.performed

    def take_seconds(self) -> float | None:
        """Seconds that the attempts took together that were given since this was asked last; None without any."""
        durations, self._durations = self._durations, []
        return sum(durations) if durations else None

    def word(self, bench: Bench, key: AttemptKey, performed: Performed, outcome: Status) -> str:
        """The word of an attempt that :meth:`perform` gave; it is kept now if it was not when it ended."""
        answer = self._given.pop((bench, key), None)
        if answer is None or answer.word is None:
            return self._keeps[bench](key, performed, outcome)
        return answer.word

    # ------------------------------------------------ from the executor

    def take_completed(self, seconds: float = 0.0) -> None:
        """Keep what has ended since; waits at most so long for the first of it."""
        try:
            completed = self._executor.completed(seconds)
        except ExecutorError as error:
            self.give_up(str(error))
            return
        self._arriving.extend(completed)
        while self._arriving:  # what an interrupt, or a time-out of an item, leaves here is kept the next time
            self._receive(self._arriving[0])
            self._arriving.popleft()

    def _receive(self, completed: Completed) -> None:
        place = (completed.bench, completed.key)
        planned = self._known.get(place)
        if planned is None:
            return  # nobody waits for it: a second answer about one attempt, which is kept once
        answer = self._answers[place] = _Answer(completed.performed, completed.error)
        del self._known[place]  # from here on its item gets an answer, even if keeping it now is interrupted
        if completed.performed is not None:
            record = completed.performed.record
            outcome = status(policy_at(completed.bench.experiment.score, planned.task), record)
            answer.word = self._keeps[completed.bench](completed.key, completed.performed, outcome)

    def _submit_expected(self) -> None:
        expected, self._expected = self._expected, []
        for start in range(0, len(expected), AT_ONCE):
            by_bench: dict[Bench, list[Planned]] = {}
            for bench, planned in expected[start : start + AT_ONCE]:
                by_bench.setdefault(bench, []).append(planned)
            for bench, some in by_bench.items():
                self._submit(bench, some)
            self.take_completed()

    def _submit(self, bench: Bench, planned: Sequence[Planned]) -> None:
        """Submit what has to be made; what the store answers is ready for its item."""
        wanted = []
        for one in planned:
            place = (bench, one.key)
            record = bench.attempts.reusable(one.case, one.variant, one.task, one.slot)
            if record is not None:
                self._answers[place] = _Answer(Performed(record, ()))
            elif self._broken is None and place not in self._known:
                bench.fingerprints.attempt(one.case, one.variant, one.task)  # files are read once, and by no thread
                self._known[place] = one
                wanted.append(one)
        try:
            if wanted:
                self._executor.submit(bench, wanted)
        except ExecutorError as error:
            self.give_up(str(error))

    # ------------------------------------------------ coverage and the end

    def measure(
        self, bench: Bench, requests: Sequence[PlannedRequest], waiting: Callable[[int], None]
    ) -> Generator[tuple[PlannedRequest, CoverageRecord]]:
        """Measure coverage requests, as :meth:`Executor.measure`."""
        self.take_completed()
        return self._executor.measure(bench, requests, waiting)

    def give_up(self, reason: str) -> None:
        """Answer nothing more that has not ended: who waits, and who asks later, is told the reason."""
        if self._broken is None:
            self._broken = reason

    @property
    def broken(self) -> str | None:
        """Why nothing more is answered; None while all is well."""
        return self._broken

    def end(self) -> None:
        """Start nothing more, end what runs, and keep what had ended."""
        if self._ended:
            return
        self._ended = True
        self.give_up("the run has ended")
        self._expected = []
        with suppress(KeyboardInterrupt):  # the second one: it does not wait for what cleans up
            self._executor.stop()
        self.take_completed()
        self._executor.close()
