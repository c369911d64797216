"""``kill: first``: the tests of a mutant one after another, up to the first that kills it."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from pytest_metricbench.contracts import TIME_OUT, AttemptRequest, Outcome
from pytest_metricbench.suite.mutations import Mutation
from pytest_metricbench.suite.outcomes import passed
from pytest_metricbench.suite.reach import Ran


@dataclass(frozen=True, slots=True)
class Asked:
    """An attempt that was asked for."""

    request: AttemptRequest
    workspace: Path
    mutation: Mutation
    known: Sequence[Ran]
    """What the baseline's attempts at the test ran."""

    @property
    def nodeid(self) -> str:
        """The test."""
        return str(self.request.task.params["nodeid"])

    @property
    def file(self) -> str:
        """Its file."""
        return self.nodeid.partition("::")[0]

    @property
    def can_kill(self) -> bool:
        """Whether the baseline passes the test, as far as it is known: one that it fails tells it from nothing."""
        return bool(self.known) and all(ran.passed for ran in self.known)

    @property
    def cpu(self) -> float:
        """Seconds of CPU time that the baseline took at most; 0 where that is not known."""
        return max((ran.cpu for ran in self.known), default=0.0)


Row: TypeAlias = Callable[[Sequence[Asked]], Sequence[Outcome]]
"""Makes attempts at tests of one file in one process, in order: at the first at least, up to one that does not pass."""


@dataclass(slots=True)
class FirstKills:
    """Which mutants are killed, and what is known of attempts before it is their turn.

    A test that fails behind others is run again alone before it counts: what one test leaves behind must not make
    another one's kill.
    """

    row: Row
    _killed: dict[tuple[str, str], str] = field(default_factory=dict)
    """(case, variant) -> the test that killed it, in this process."""
    _coming: dict[tuple[str, str], dict[str, Asked]] = field(default_factory=dict)
    """(case, variant) -> the attempts that come next, by their id."""
    _outcomes: dict[str, Outcome] = field(default_factory=dict)
    """Id of an attempt -> what became of it, where that was not asked for yet."""
    _lines: dict[str, list[tuple[str, int]]] = field(default_factory=dict)
    """Test -> file and line of the changes that it found."""

    def expect(self, asked: Asked) -> None:
        """An attempt that comes soon."""
        self._coming.setdefault(_variant_of(asked), {})[asked.request.trial_id] = asked

    def outcome(self, asked: Asked) -> Outcome:
        """What becomes of an attempt: found out together with the mutant's others, as far as they are known."""
        if asked.request.trial_id not in self._outcomes and _variant_of(asked) not in self._killed:
            self._run(self._row_for(asked))
        known = self._outcomes.pop(asked.request.trial_id, None)
        killer = self._killed.get(_variant_of(asked))
        return known or Outcome.not_needed(f"{killer} has killed the mutant")

    def _row_for(self, asked: Asked) -> list[Asked]:
        """What is run now: one that cannot kill is run alone, the others with all that are known, in order."""
        coming = self._coming.get(_variant_of(asked), {})
        coming.pop(asked.request.trial_id, None)
        if not asked.can_kill:
            return [asked]
        self._coming.pop(_variant_of(asked), None)
        return self._ordered([asked, *(entry for entry in coming.values() if entry.can_kill)])

    def _run(self, waiting: list[Asked]) -> None:
        """Run them up to the first kill."""
        while waiting:
            row = [entry for entry in waiting if entry.file == waiting[0].file]
            made: list[tuple[Asked, Outcome]] = list(zip(row, self.row(row), strict=False))
            last, outcome = made[-1]
            if len(made) > 1 and not _is_certain(outcome):
                (alone,) = self.row([last])
                made[-1] = (last, alone)
            self._outcomes.update({entry.request.trial_id: outcome for entry, outcome in made})
            if self._note_kill(*made[-1]):
                return
            done = {entry.request.trial_id for entry, _ in made}
            waiting = [entry for entry in waiting if entry.request.trial_id not in done]

    def _note_kill(self, asked: Asked, outcome: Outcome) -> bool:
        if not asked.can_kill or outcome.kind not in ("scored", "died") or passed(outcome):
            return False
        self._killed.setdefault(_variant_of(asked), asked.nodeid)
        self._lines.setdefault(asked.nodeid, []).extend(_places_of(asked.mutation))
        return True

    def _ordered(self, asked: Iterable[Asked]) -> list[Asked]:
        """First those that run the change; of them those that found changes nearby, the nearest first; the fastest."""

        def rank(entry: Asked) -> tuple[bool, float, float]:
            found = self._lines.get(entry.nodeid, ())
            near = [abs(line - at) for name, line in _places_of(entry.mutation) for other, at in found if name == other]
            is_reached = any(ran.leads_to(entry.mutation) for ran in entry.known)
            return not is_reached, min(near, default=float("inf")), entry.cpu

        return sorted(asked, key=rank)


def _variant_of(asked: Asked) -> tuple[str, str]:
    return asked.request.case.id, asked.request.variant.id


def _places_of(mutation: Mutation) -> list[tuple[str, int]]:
    return [(name, min(lines)) for name, lines in mutation.leading.items() if lines]


def _is_certain(outcome: Outcome) -> bool:
    """Whether what a test did behind others needs no proof: it passed, or ran out of CPU time."""
    if outcome.kind == "died" and outcome.error is not None:
        return outcome.error.type == TIME_OUT and "CPU time" in outcome.error.message
    return passed(outcome)
