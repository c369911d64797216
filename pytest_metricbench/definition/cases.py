"""The cases of an experiment: found, and checked one against another."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition import subsets
from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.expanding import Parts
from pytest_metricbench.definition.experiment import Case, InputFile, Subset
from pytest_metricbench.definition.files import InputFinder, read_named
from pytest_metricbench.definition.lock import RENEW, Expanded, Expansion
from pytest_metricbench.definition.models import CaseForm, DrawForm, SubsetForm
from pytest_metricbench.definition.problems import ProblemList, shown_path
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.definition.wording import described
from pytest_metricbench.digests import digest_value
from pytest_metricbench.messages import counted


@dataclass
class CaseDraft:
    """A case while it is being checked."""

    place: Place
    """Its mapping, in the experiment file or in one of its own."""
    form: CaseForm | None
    """None where something of it is wrong; what is right is then in ``place`` only."""
    inputs: tuple[InputFile, ...] = ()
    parts: Parts | None = None
    """Its tasks and variants; None where they cannot be had."""
    listed: list[Place] = field(default_factory=list)
    """Its subsets where they are listed, wherever that is."""
    drawn: tuple[Subset, ...] | None = None
    """Its subsets where they are drawn."""

    @property
    def id(self) -> str | None:
        """Its id, where it has one."""
        return self.place.text("id")

    @property
    def is_known(self) -> bool:
        """Whether its tasks and mutants can be named: they are listed, or were expanded."""
        listed = self.place.child("tasks") is not None and not any(
            isinstance(asked.value, dict) for key in ("tasks", "mutants") if (asked := self.place.child(key))
        )
        return listed or self.parts is not None

    @property
    def knows_tasks(self) -> bool:
        """Whether its tasks can be named: they are listed, or were expanded; what went wrong with that is told then."""
        asked = self.place.child("tasks")
        return self.parts is not None or (asked is not None and not isinstance(asked.value, dict))

    @property
    def tasks(self) -> list[Place]:
        """Its tasks, wherever they come from."""
        return self.place.entries("tasks") if self.parts is None else self.parts.tasks

    @property
    def mutants(self) -> list[Place]:
        """Its mutants, wherever they come from."""
        return self.place.entries("mutants") if self.parts is None else self.parts.mutants

    @property
    def scored_mutants(self) -> int:
        """How many of its mutants count in a mutation score: not the controls, nor those found to be equivalent."""
        mutants = [entry.value for entry in self.mutants if isinstance(entry.value, dict)]
        return sum(mutant.get("control") is not True and mutant.get("equivalent") is None for mutant in mutants)

    def largest_attempts(self, default: int) -> int:
        """The most attempts that one of its tasks gets."""
        if self.parts is not None and self.parts.recorded is not None:
            return max(self.parts.recorded.values(), default=default)
        own = [task.value.get("attempts") for task in self.tasks if isinstance(task.value, dict)]
        return max((default if type(attempts) is not int else attempts for attempts in own), default=default)


def read_cases(root: Place, checker: Checker, folder: Path) -> list[CaseDraft]:
    """The cases of an experiment, those in files of their own read, each checked by itself."""
    drafts = []
    for entry in root.entries("cases"):
        place: Place | None = entry
        if isinstance(entry.value, str):
            document = read_named(entry, folder, checker.problems)
            place = document.root if document is not None else None
        elif not isinstance(entry.value, dict):
            message = f"is {described(entry.value)}"
            checker.problems.add(entry.problem(message, "a case is a mapping, or the name of the file it stands in"))
            continue
        if place is not None:
            drafts.append(CaseDraft(place, checker.check(CaseForm, place)))
    check_unique([draft.place for draft in drafts], "case", checker.problems)
    return drafts


def check_unique(places: Sequence[Place], what: str, problems: ProblemList) -> None:
    """Note which ids of a list stand twice."""
    first: dict[str, Place] = {}
    for place in places:
        name = place.text("id")
        if name is None:
            continue
        holder = first.setdefault(name, place)
        if holder is not place:
            where = f"line {holder.line}"
            if holder.document is not place.document:
                where = f"{shown_path(holder.document.path)}, {where}"
            child = place.child("id") or place
            problems.add(child.problem(f"the {what} {name!r} stands twice, first in {where}", "choose another id"))


def ids_of(places: Sequence[Place]) -> list[str]:
    """The ids in a list."""
    return [name for entry in places if (name := entry.text("id")) is not None]


def check_case(draft: CaseDraft, checker: Checker, finder: InputFinder) -> None:
    """Check what one part of a case says about another, and find its files."""
    problems, place = checker.problems, draft.place
    check_unique(draft.tasks, "task", problems)
    check_unique(draft.mutants, "mutant", problems)
    for mutant in draft.mutants:
        reason = mutant.child("equivalent")
        if reason is not None and isinstance(mutant.value, dict) and mutant.value.get("control") is True:
            remedy = "a control is in no score anyway; keep one of control and equivalent"
            problems.add(reason.problem("a control needs no reason why it is equivalent", remedy, at_key=True))
    draft.inputs = finder.find(place.entries("inputs"))
    asked = place.child("subsets")
    if asked is not None and isinstance(asked.value, str):
        _read_subsets(draft, asked, checker, finder.folder)
    elif asked is not None and isinstance(asked.value, dict):
        _check_draw(draft, asked, problems)
    else:
        draft.listed = place.entries("subsets")
    _check_listed(draft, checker)


def _read_subsets(draft: CaseDraft, asked: Place, checker: Checker, folder: Path) -> None:
    document = read_named(asked, folder, checker.problems)
    if document is None:
        return
    if not isinstance(document.value, list):
        problem = document.root.problem(f"is {described(document.value)}", "a file of subsets holds a list of them")
        checker.problems.add(problem)
        return
    draft.listed = document.root.entries()
    for place in draft.listed:
        checker.check(SubsetForm, place)


def _check_listed(draft: CaseDraft, checker: Checker, remedy: str = "") -> None:
    check_unique(draft.listed, "subset", checker.problems)
    if draft.knows_tasks:
        subsets.check_subsets(draft.listed, ids_of(draft.tasks), checker.problems, remedy)


def _check_draw(draft: CaseDraft, asked: Place, problems: ProblemList) -> None:
    count = len(draft.tasks)
    seen: set[int] = set()
    for size in asked.entries("sizes"):
        if type(size.value) is not int:
            continue
        if count and size.value > count:
            problems.add(size.problem(f"no subset has {size.value} tasks: the case has {count}", f"at most {count}"))
        elif size.value in seen:
            problems.add(size.problem(f"the size {size.value} stands twice", "name it once"))
        seen.add(size.value)


# ---------------------------------------------------------------- drawn subsets


def expansion_of(draft: CaseDraft) -> Expansion | None:
    """What a case whose subsets are drawn asks of the lock; None where they are listed."""
    form, asked = draft.form, draft.place.child("subsets")
    if form is None or draft.parts is None or asked is None or not isinstance(form.subsets, DrawForm):
        return None
    wanted, tasks = form.subsets, ids_of(draft.tasks)

    def expand() -> list[Json]:
        return list(subsets.draw(tasks, wanted.sizes, wanted.per_size, wanted.seed))

    made_from = {
        "sizes": wanted.sizes,
        "per_size": wanted.per_size,
        "seed": wanted.seed,
        "tasks": digest_value(sorted(tasks)),
    }
    return Expansion("subsets", form.id, asked, made_from, expand)


def take_expanded(draft: CaseDraft, expanded: Expanded, checker: Checker) -> None:
    """Give a case its drawn subsets; those of a lock are checked like any others."""
    before = len(checker.problems)
    if expanded.place is not None:
        draft.listed = expanded.place.entries()
        for place in draft.listed:
            checker.check(SubsetForm, place)
        _check_listed(draft, checker, RENEW)
    if len(checker.problems) == before:
        draft.drawn = subsets.subsets_from(expanded.entries)


def subset_warnings(draft: CaseDraft, case: Case) -> Iterator[str]:
    """What is allowed about a case's subsets and probably not meant."""
    asked = draft.place.child("subsets")
    if asked is None:
        return
    if draft.form is not None and isinstance(draft.form.subsets, DrawForm):
        wanted = draft.form.subsets
        for size, count in subsets.short_sizes(len(case.tasks), wanted.sizes, wanted.per_size):
            where = f"{shown_path(asked.document.path)}:{asked.line}"
            asked_for = f"{wanted.per_size} subsets of {counted(size, 'task')} are asked for"
            yield f"{where}: {asked_for}, and all that there are, {count}, are taken"
    places = {place.text("id"): place for place in draft.listed}
    for ids in subsets.equal_subsets(case.subsets):
        yield subsets.duplicates_warning(places.get(ids[1], asked), ids)
