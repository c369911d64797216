"""Tasks, mutants and whole cases that come from elsewhere: expanded through the lock, joined with what is listed."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, TypeVar

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.documents import Document, Place
from pytest_metricbench.definition.experiment import BASELINE, InputFile, Note
from pytest_metricbench.definition.generated import GENERATE, Generated, MutantGeneration
from pytest_metricbench.definition.lock import RENEW, Expanded, Expansion, Lock, lock_path
from pytest_metricbench.definition.models import BaselineForm, Form, MutantForm, TaskForm
from pytest_metricbench.definition.problems import ProblemList
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.digests import digest_file
from pytest_metricbench.generating.base import Makers
from pytest_metricbench.messages import joined
from pytest_metricbench.origins import whose
from pytest_metricbench.sources import CaseSource, Source, SourceError

LISTED: Final = "listed"
"""The key of a mapping under ``tasks`` or ``mutants`` that lists further entries, or says more about expanded ones."""
_MOST_SHOWN: Final = 8

Given = TypeVar("Given")


class NoteForm(Form):
    """A note as the lock holds it."""

    text: str
    count: int


@dataclass
class Parts:
    """The tasks and variants of a case, wherever they come from."""

    tasks: list[Place] = field(default_factory=list)
    mutants: list[Place] = field(default_factory=list)
    baseline: Place | None = None
    recorded: dict[tuple[str, str], int] | None = None
    """(variant, task) -> attempts, where they exist already."""
    notes: tuple[Note, ...] = ()
    inputs: tuple[InputFile, ...] = ()
    """Files that define the system beside those that the case names: those that generated mutants change."""


class Expander:
    """Finds the parts of the cases of one experiment."""

    def __init__(self, runner: Runner, lock: Lock, checker: Checker, experiment: Path, makers: Makers) -> None:
        """Expand for ``runner``, through ``lock``; ``makers`` are the generators of mutants that are known."""
        self._runner: Final = runner
        self._lock: Final = lock
        self._checker: Final = checker
        self._problems: Final[ProblemList] = checker.problems
        self._experiment: Final = experiment
        self._folder: Final = experiment.parent
        self._generation: Final = MutantGeneration(makers, runner, lock, checker, experiment)

    def parts(self, case: str, place: Place) -> Parts | None:
        """The parts of a case; None, with problems, where they cannot be had."""
        before = len(self._problems)
        source = self._guarded(place, lambda: self._runner.case_source(case, self._folder))
        if len(self._problems) > before:
            return None
        if source is not None:
            return self._recorded(case, place, source)
        parts = Parts(baseline=place.child("baseline"))
        for key, found, classes in (
            ("tasks", parts.tasks, self._runner.task_sources),
            ("mutants", parts.mutants, self._runner.mutant_sources),
        ):
            asked = place.child(key)
            if key == "mutants" and asked is not None and asked.child(GENERATE) is not None:
                self._add_generated(case, asked, parts)
            elif asked is not None and isinstance(asked.value, dict):
                found.extend(self._from_source(case, key, asked, classes))
            else:
                found.extend(place.entries(key))
        return parts if len(self._problems) == before else None

    # ------------------------------------------------------------ tasks and mutants

    def _from_source(self, case: str, key: str, asked: Place, classes: Sequence[type[Source]]) -> list[Place]:
        """The entries of a mapping that stands in place of a list."""
        by_key = {next(iter(cls.model_fields.values())).alias or next(iter(cls.model_fields)): cls for cls in classes}
        names = [name for name in asked.value if name in by_key]
        if key == "mutants" and not names and self._is_misspelt(asked):
            return []
        if len(names) != 1:
            self._problems.add(asked.problem(*self._no_source(key, names, by_key)))
            return []
        checked = self._checker.check_plugin(by_key[names[0]], asked, without=LISTED)
        source = None if checked is None else self._guarded(asked, lambda: checked.bound(self._runner))
        if source is None:
            return []
        listed = asked.entries(LISTED)
        for entry in listed:
            self._checker.check(TaskForm if key == "tasks" else MutantForm, entry)
        expanded = self._lock.take(self._expansion(key, case, asked, source))
        if expanded is None:
            return []
        return self._joined(self._places(expanded), listed, key, may_add=True)

    def _add_generated(self, case: str, asked: Place, parts: Parts) -> None:
        """The mutants that generators make, with what is listed beside them."""
        for name in asked.value:
            if name not in (GENERATE, LISTED):
                place = asked.child(name) or asked
                hint = joined(self._problems.hint(name, (GENERATE, LISTED)), f"the keys here are {GENERATE}, {LISTED}")
                self._problems.add(place.problem("is an unknown key", hint, at_key=True))
        listed = asked.entries(LISTED)
        for entry in listed:
            self._checker.check(MutantForm, entry)
        params = parts.baseline.child("params") if parts.baseline is not None else None
        wanted = asked.child(GENERATE)
        made: Generated | None = None
        if wanted is not None:
            made = self._generation.of(case, wanted, {} if params is None else params.value)
        if made is None:
            return
        notes = [note for entry in made.entries if (note := entry.child("note")) is not None]
        mutants = [entry for entry in made.entries if entry.child("note") is None]
        parts.notes = tuple(form for note in notes if (form := self._note(note)) is not None)
        parts.inputs = made.inputs
        parts.mutants.extend(self._joined(mutants, listed, "mutants", may_add=True))

    def _is_misspelt(self, asked: Place) -> bool:
        """Whether a key is meant to be ``generate``, which is then told."""
        for name in asked.value:
            hint = self._problems.hint(name, [GENERATE]) if name != LISTED else ""
            if hint:
                place = asked.child(name) or asked
                remedy = joined(hint, f"the keys here are {GENERATE}, {LISTED}")
                self._problems.add(place.problem("is an unknown key", remedy, at_key=True))
                return True
        return False

    def _no_source(self, key: str, names: Sequence[str], known: Iterable[str]) -> tuple[str, str]:
        kinds = sorted(known)
        if names:
            return f"names {' and '.join(names)}", "one of them at a time"
        runner = self._runner.kind
        if not kinds:
            return f"the runner {runner!r} expands no {key}", f"list the {key}"
        return f"names nothing that the runner {runner!r} expands {key} from", f"it knows {', '.join(kinds)}"

    def _expansion(self, kind: str, case: str, asked: Place, source: Source) -> Expansion:
        """What a source asks of the lock."""
        made_from: dict[str, Json] = dict(source.model_dump(mode="json", by_alias=True, exclude_defaults=True))
        digests: dict[str, str] = {}
        unreadable = None
        try:
            made_from.update(source.state(self._folder))
            digests = {name: digest_file(path) for name, path in sorted(source.files(self._folder).items())}
        except SourceError as error:
            unreadable = error
        except OSError as error:
            unreadable = SourceError(f"{error.filename} cannot be read: {error.strerror}")

        def expand() -> list[Json]:
            return [dict(entry) for entry in source.expand(self._folder)]

        return Expansion(kind, case, asked, made_from, expand, digests, unreadable)

    def _places(self, expanded: Expanded) -> list[Place]:
        """Where the entries stand: in the lock, or nowhere yet."""
        if expanded.place is not None:
            return expanded.place.entries()
        nowhere = Document(lock_path(self._experiment), list(expanded.entries), frozenset(), None, {})
        return nowhere.root.entries()

    def _joined(self, expanded: list[Place], listed: list[Place], key: str, *, may_add: bool) -> list[Place]:
        """The expanded entries with what is listed about them; further listed ones in front, where they may be."""
        own: dict[str | None, Place] = {}
        repeated = [entry for entry in listed if own.setdefault(entry.text("id"), entry) is not entry]
        own.pop(None, None)
        joined_entries = []
        for entry in expanded:
            more = own.pop(entry.text("id"), None)
            if more is None or self._checker.check(TaskForm if key == "tasks" else MutantForm, entry) is None:
                joined_entries.append(entry)
            else:
                joined_entries.append(Place(more.document, more.keys, {**entry.value, **more.value}))
        if may_add:
            self._refuse_reviews(list(own.values()))
            return [*own.values(), *repeated, *joined_entries]
        known = [name for entry in expanded if (name := entry.text("id")) is not None]
        for name, entry in own.items():
            shown = known if len(known) <= _MOST_SHOWN else [*known[:_MOST_SHOWN], f"{len(known) - _MOST_SHOWN} more"]
            remedy = joined(self._problems.hint(str(name), known), f"there are {', '.join(shown)}" if known else "")
            self._problems.add(
                (entry.child("id") or entry).problem(f"nothing is recorded of the {key[:-1]} {name!r}", remedy)
            )
        return [*joined_entries, *repeated]

    def _refuse_reviews(self, further: list[Place]) -> None:
        """Refuse further mutants that are found to be equivalent and change nothing: what was reviewed is gone."""
        for entry in further:
            if entry.child("equivalent") is not None and entry.child("params") is None:
                message = f"there is no mutant {entry.text('id')!r} any more that this could be said of"
                remedy = "remove the entry, or give it params where it is a mutant of its own"
                self._problems.add((entry.child("id") or entry).problem(message, remedy))

    # ------------------------------------------------------------ cases that exist already

    def _recorded(self, case: str, place: Place, source: CaseSource) -> Parts | None:
        before = len(self._problems)
        for key in ("tasks", "mutants"):
            asked = place.child(key)
            if asked is not None and isinstance(asked.value, dict):
                told = f"the {key} of recorded attempts are those that were recorded"
                self._problems.add(asked.problem(told, "list what is to be said about them, by id"))
        expanded = self._lock.take(self._expansion("recordings", case, place, source))
        if expanded is None:
            return None
        found: dict[str, list[Place]] = {"task": [], "baseline": [], "mutant": [], "note": []}
        for entry in self._places(expanded):
            for key in found:
                child = entry.child(key)
                if child is not None and isinstance(child.value, dict):
                    found[key].append(child)
        if len(found["baseline"]) != 1 or not found["task"]:
            self._problems.add(place.problem(f"the recordings have {len(found['baseline'])} baselines"))
            return None
        recorded: dict[tuple[str, str], int] = {}
        variants = [self._counted(entry, recorded) for entry in (*found["baseline"], *found["mutant"])]
        own = place.child("baseline")
        baseline = variants[0]
        if own is not None and isinstance(own.value, dict) and self._checker.check(BaselineForm, baseline) is not None:
            baseline = Place(own.document, own.keys, {**baseline.value, **own.value})
        parts = Parts(
            tasks=self._joined(found["task"], place.entries("tasks"), "tasks", may_add=False),
            mutants=self._joined(variants[1:], place.entries("mutants"), "mutants", may_add=False),
            baseline=baseline,
            recorded=recorded,
            notes=tuple(form for note in found["note"] if (form := self._note(note)) is not None),
        )
        return parts if len(self._problems) == before else None

    def _counted(self, variant: Place, recorded: dict[tuple[str, str], int]) -> Place:
        """A variant without its ``attempts``, which are noted by task."""
        name = variant.text("id") or BASELINE
        attempts = variant.child("attempts")
        counts = attempts.value if attempts is not None else {}
        if not isinstance(counts, dict) or any(type(count) is not int or count < 0 for count in counts.values()):
            self._problems.add((attempts or variant).problem("is no mapping of tasks to numbers of attempts", RENEW))
        else:
            recorded.update({(name, task): count for task, count in counts.items()})
        value = {key: entry for key, entry in variant.value.items() if key != "attempts"}
        return Place(variant.document, variant.keys, value)

    def _note(self, place: Place) -> Note | None:
        form = self._checker.check(NoteForm, place)
        return None if form is None else Note(form.text, form.count)

    def _guarded(self, place: Place, ask: Callable[[], Given]) -> Given | None:
        """What a runner's code gives; a problem where it refuses or fails."""
        return guarded(self._problems, place, self._runner, ask)


def guarded(problems: ProblemList, place: Place, runner: Runner, ask: Callable[[], Given]) -> Given | None:
    """What code of a runner gives while an experiment is read; None, with a problem, where it refuses or fails."""
    try:
        return ask()
    except SourceError as error:
        problems.add(place.problem(error.message, error.remedy))
    except Exception as error:  # code of a third party
        who = f"{type(runner).__module__}.{type(runner).__qualname__}{whose(type(runner))}"
        problems.add(place.problem(f"{who} cannot check this: {type(error).__name__}: {error}"))
    return None
