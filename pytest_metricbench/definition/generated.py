"""Mutants that are made: what ``mutants: {generate: ...}`` of a case asks for, through the lock, as entries."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeVar

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.documents import Document, Place
from pytest_metricbench.definition.experiment import InputFile
from pytest_metricbench.definition.lock import RENEW, Expanded, Expansion, Lock, lock_path
from pytest_metricbench.definition.problems import ProblemList
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.definition.wording import described
from pytest_metricbench.digests import digest_file
from pytest_metricbench.generating.base import Context, Generator, Makers
from pytest_metricbench.generating.generation import DIFF, Generation
from pytest_metricbench.messages import joined
from pytest_metricbench.origins import whose
from pytest_metricbench.sources import SourceError

GENERATE: Final = "generate"
"""The key under ``mutants`` that asks for mutants to be made."""
FROM: Final = "from"
"""The key that names a generator."""

Given = TypeVar("Given")


@dataclass(frozen=True, slots=True)
class Generated:
    """What was made for one case."""

    entries: list[Place]
    """Mutants as a user would list them, and ``{"note": {"text": ..., "count": n}}``."""
    inputs: tuple[InputFile, ...]
    """The files that are changed; they define the system."""


@dataclass(frozen=True, slots=True)
class MutantGeneration:
    """Makes the mutants of the cases of one experiment."""

    makers: Makers
    runner: Runner
    lock: Lock
    checker: Checker
    experiment: Path

    def of(self, case: str, asked: Place, baseline: Json) -> Generated | None:
        """The mutants that a case asks for; None, with problems, where they cannot be had.

        Args:
            case: its id.
            asked: the value of ``generate``.
            baseline: the params of the baseline as they are written.
        """
        before = len(self._problems)
        params = copy.deepcopy(baseline) if isinstance(baseline, dict) else {}
        context = Context(self._folder, case, self.runner, params, self.makers.operators)
        makers = [maker for place in self._places(asked) if (maker := self._maker(place, context)) is not None]
        if len(self._problems) > before:
            return None
        generation = Generation(makers, context, self.lock.progress)
        expansion = self._expansion(case, asked, generation)
        expanded = self.lock.take(expansion)
        if expanded is None:
            return None
        entries = [self._realized(entry, generation) for entry in self._listed(expanded)]
        inputs = self._guarded(asked, Generation, lambda: generation.inputs)
        if len(self._problems) > before:
            return None
        return Generated(entries, tuple(InputFile(name, path) for name, path in (inputs or {}).items()))

    @property
    def _problems(self) -> ProblemList:
        return self.checker.problems

    @property
    def _folder(self) -> Path:
        return self.experiment.parent

    # ------------------------------------------------------------ generators

    def _places(self, asked: Place) -> list[Place]:
        found = asked.entries() if isinstance(asked.value, list) else [asked]
        for place in found:
            if not isinstance(place.value, dict):
                remedy = "a mapping with from is expected, or a list of such"
                self._problems.add(place.problem(f"is {described(place.value)}", remedy))
        if not found:
            self._problems.add(asked.problem("is empty", "name a generator, or leave the key out"))
        return [place for place in found if isinstance(place.value, dict)]

    def _maker(self, place: Place, context: Context) -> Generator | None:
        known = self.makers.generators
        listed = f"the generators are {', '.join(sorted(known))}" if known else ""
        origin = place.child(FROM)
        if origin is None:
            self._problems.add(place.missing(FROM, joined("it says which generator this is", listed)))
        elif not isinstance(origin.value, str):
            self._problems.add(origin.problem(f"is {described(origin.value)}", joined("a text is expected", listed)))
        elif origin.value not in known:
            hint = joined(self._problems.hint(origin.value, known), listed)
            self._problems.add(origin.problem(f"there is no generator {origin.value!r}", hint))
        else:
            cls = known[origin.value]
            checked = self.checker.check_plugin(cls, place, without=FROM)
            if checked is not None:
                return self._guarded(place, cls, lambda: checked.bound(context))
        return None

    def _guarded(self, place: Place, cls: type, ask: Callable[[], Given]) -> Given | None:
        try:
            return ask()
        except SourceError as error:
            self._problems.add(place.problem(error.message, error.remedy))
        except Exception as error:  # code of a third party
            who = f"{cls.__module__}.{cls.__qualname__}{whose(cls)}"
            self._problems.add(place.problem(f"{who} cannot check this: {type(error).__name__}: {error}"))
        return None

    # ------------------------------------------------------------ the lock

    def _expansion(self, case: str, asked: Place, generation: Generation) -> Expansion:
        made_from: Mapping[str, Json] = {}
        digests: dict[str, str] = {}
        unreadable = None
        try:
            made_from = generation.made_from
            digests = {name: digest_file(path) for name, path in sorted(generation.files.items())}
        except SourceError as error:
            unreadable = error
        except OSError as error:
            unreadable = SourceError(f"{error.filename} cannot be read: {error.strerror}")
        except Exception as error:  # code of a third party
            classes = [type(generator) for generator in generation.generators]
            who = " or ".join(f"{cls.__qualname__}{whose(cls)}" for cls in classes if whose(cls)) or "a generator"
            unreadable = SourceError(f"{who} cannot say what it depends on: {type(error).__name__}: {error}")
        return Expansion("mutants", case, asked, made_from, generation.entries, digests, unreadable)

    def _listed(self, expanded: Expanded) -> list[Place]:
        if expanded.place is not None:
            return expanded.place.entries()
        nowhere = Document(lock_path(self.experiment), list(expanded.entries), frozenset(), None, {})
        return nowhere.root.entries()

    def _realized(self, entry: Place, generation: Generation) -> Place:
        """An entry with the params that its diff makes of the baseline."""
        diff = entry.child(DIFF)
        if diff is None:
            return entry
        value = {key: part for key, part in entry.value.items() if key != DIFF}
        if not isinstance(diff.value, str) or "params" in value:
            self._problems.add(diff.problem("a diff is a text, and stands in place of params", RENEW))
            return Place(entry.document, entry.keys, value)
        try:
            value["params"] = dict(generation.params(diff.value))
        except SourceError as error:
            self._problems.add(diff.problem(error.message, joined(error.remedy, RENEW)))
        except Exception as error:  # code of a third party
            who = f"{type(self.runner).__module__}.{type(self.runner).__qualname__}"
            self._problems.add(diff.problem(f"{who} cannot take this: {type(error).__name__}: {error}"))
        return Place(entry.document, entry.keys, value)
