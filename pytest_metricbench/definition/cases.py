"""The cases of an experiment: found, checked one against another, and made."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition import subsets
from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.experiment import BASELINE, Case, InputFile, Subset, Task, Variant
from pytest_metricbench.definition.files import InputFinder, read_named
from pytest_metricbench.definition.lock import RENEW, Expanded, Expansion
from pytest_metricbench.definition.models import BaselineForm, CaseForm, DrawForm, MutantForm, SubsetForm
from pytest_metricbench.definition.problems import ProblemList, shown_path
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.definition.wording import described
from pytest_metricbench.digests import digest_value

CONTROL_DESCRIPTION: Final = "An unchanged copy of the baseline."


@dataclass
class CaseDraft:
    """A case while it is being checked."""

    place: Place
    """Its mapping, in the experiment file or in one of its own."""
    form: CaseForm | None
    """None where something of it is wrong; what is right is then in ``place`` only."""
    inputs: tuple[InputFile, ...] = ()
    listed: list[Place] = field(default_factory=list)
    """Its subsets where they are listed, wherever that is."""
    drawn: tuple[Subset, ...] | None = None
    """Its subsets where they are drawn."""

    @property
    def id(self) -> str | None:
        """Its id, where it has one."""
        return self.place.text("id")

    def ids(self, key: str) -> list[str]:
        """The ids in one of its lists."""
        return [name for entry in self.place.entries(key) if (name := entry.text("id")) is not None]

    @property
    def scored_mutants(self) -> int:
        """How many of its mutants count in a mutation score: not the controls, nor those found to be equivalent."""
        mutants = [entry.value for entry in self.place.entries("mutants") if isinstance(entry.value, dict)]
        return sum(mutant.get("control") is not True and mutant.get("equivalent") is None for mutant in mutants)

    def largest_attempts(self, default: int) -> int:
        """The most attempts that one of its tasks gets."""
        own = [task.value.get("attempts") for task in self.place.entries("tasks") if isinstance(task.value, dict)]
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


def check_case(draft: CaseDraft, checker: Checker, finder: InputFinder) -> None:
    """Check what one part of a case says about another, and find its files."""
    problems, place = checker.problems, draft.place
    check_unique(place.entries("tasks"), "task", problems)
    check_unique(place.entries("mutants"), "mutant", problems)
    for mutant in place.entries("mutants"):
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
    subsets.check_subsets(draft.listed, draft.ids("tasks"), checker.problems, remedy)


def _check_draw(draft: CaseDraft, asked: Place, problems: ProblemList) -> None:
    count = len(draft.place.entries("tasks"))
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
    if form is None or asked is None or not isinstance(form.subsets, DrawForm):
        return None
    wanted, tasks = form.subsets, [task.id for task in form.tasks]

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
            yield f"{where}: of {size} tasks there are {count} subsets, all taken; {wanted.per_size} are asked for"
    places = {place.text("id"): place for place in draft.listed}
    for ids in subsets.equal_subsets(case.subsets):
        yield subsets.duplicates_warning(places.get(ids[1], asked), ids)


# ---------------------------------------------------------------- making


def make_case(draft: CaseDraft, experiment: Path, attempts: int, controls: int) -> Case:
    """The case of a draft without problems."""
    form, place = draft.form, draft.place
    if form is None:
        raise ValueError("a case that is not right cannot be made")
    listed = subsets.subsets_from([entry.value for entry in draft.listed])
    return Case(
        id=form.id,
        description=form.description,
        inputs=draft.inputs,
        tasks=tuple(_tasks(form, place, attempts)),
        variants=tuple(_variants(form, place, controls)),
        subsets=listed if draft.drawn is None else draft.drawn,
        line=place.line,
        file=place.document.path if place.document.path != experiment else None,
    )


def _tasks(form: CaseForm, place: Place, attempts: int) -> Iterator[Task]:
    for task, entry in zip(form.tasks, place.entries("tasks"), strict=True):
        yield Task(
            id=task.id,
            attempts=attempts if task.attempts is None else task.attempts,
            params=task.params,
            tags=tuple(task.tags),
            description=task.description,
            name=task.name,
            line=entry.line,
        )


def _variants(form: CaseForm, place: Place, controls: int) -> Iterator[Variant]:
    own = place.child("baseline") or place
    baseline = _variant(form.baseline, own.line)
    yield baseline
    for mutant, entry in zip(form.mutants, place.entries("mutants"), strict=True):
        yield _variant(mutant, entry.line)
    for number in range(1, controls + 1):
        yield replace(
            baseline,
            id=f"control-{number}",
            kind="mutant",
            description=CONTROL_DESCRIPTION,
            tags=(),
            name="",
            control=True,
            line=place.line,
        )


def _variant(form: BaselineForm | MutantForm, line: int) -> Variant:
    name = form.id if isinstance(form, MutantForm) else BASELINE
    return Variant(
        id=name,
        kind="mutant" if isinstance(form, MutantForm) else "baseline",
        params=form.params,
        description=form.description,
        tags=tuple(form.tags),
        name=form.name,
        control=isinstance(form, MutantForm) and form.control,
        equivalent=form.equivalent if isinstance(form, MutantForm) else None,
        request_id=name,
        line=line,
    )
