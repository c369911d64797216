"""The tasks and variants of a case as the runner takes them, and the case made of them."""

import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

from pydantic import BaseModel

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.cases import CaseDraft
from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.expanding import Parts, guarded
from pytest_metricbench.definition.experiment import BASELINE, Case, Task, Variant
from pytest_metricbench.definition.models import BaselineForm, Form, MutantForm, TaskForm
from pytest_metricbench.definition.problems import ProblemList, shown_path
from pytest_metricbench.definition.subsets import subsets_from
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.origins import whose

Entry = TypeVar("Entry", bound=Form)

CONTROL_DESCRIPTION: Final = "An unchanged copy of the baseline."


@dataclass
class CaseMaker:
    """Checks the parts of cases against the runner and makes tasks and variants of them."""

    runner: Runner
    checker: Checker
    folder: Path
    """The experiment's."""
    cached_only: bool
    """Accept that files are absent."""
    attempts: int
    """What tasks get that say nothing."""
    controls: int
    _made: dict[int, tuple[tuple[Task, ...], tuple[Variant, ...]]] = field(default_factory=dict)

    def prepare(self, draft: CaseDraft) -> None:
        """Check a case's tasks and variants, forms and params and the files they name, noting every problem."""
        parts = draft.parts
        if parts is not None:
            tasks = tuple(task for place in parts.tasks if (task := self._task(place, draft)) is not None)
            self._made[id(draft)] = tasks, tuple(self._variants(parts, draft))

    @property
    def tasks(self) -> Iterator[Task]:
        """The tasks of all cases that were prepared."""
        return (task for tasks, _ in self._made.values() for task in tasks)

    def warnings(self, draft: CaseDraft) -> Iterator[str]:
        """What is allowed in a case's variants and probably not meant."""
        if self.cached_only:
            return
        for variant in self._made.get(id(draft), ((), ()))[1]:
            where = f"{shown_path(draft.place.document.path)}:{variant.line}: {draft.id}::{variant.id}"
            yield from (f"{where}: {text}" for text in self._warnings_of(variant))

    def _warnings_of(self, variant: Variant) -> tuple[str, ...]:
        """What the runner warns of in a variant; that it cannot, where its code fails."""
        try:
            return tuple(self.runner.variant_warnings(variant.params, self.folder))
        except Exception as error:  # code of a third party
            who = f"the runner {self.runner.kind!r}{whose(type(self.runner))}"
            return (f"{who} cannot check this: {type(error).__name__}: {error}",)

    def make(self, draft: CaseDraft, experiment: Path) -> Case:
        """The case of a draft that was prepared without problems."""
        form, parts, place = draft.form, draft.parts, draft.place
        if form is None or parts is None:
            raise ValueError("a case that is not right cannot be made")
        tasks, variants = self._made[id(draft)]
        if parts.recorded is not None:
            most = {task.id: [parts.recorded.get((variant.id, task.id), 0) for variant in variants] for task in tasks}
            tasks = tuple(replace(task, attempts=max(1, *most[task.id])) for task in tasks)
        listed = subsets_from([entry.value for entry in draft.listed])
        return Case(
            id=form.id,
            description=form.description,
            inputs=draft.inputs,
            tasks=tasks,
            variants=variants,
            subsets=listed if draft.drawn is None else draft.drawn,
            line=place.line,
            file=place.document.path if place.document.path != experiment else None,
            recorded=parts.recorded,
            notes=parts.notes,
        )

    # ------------------------------------------------------------ tasks

    def _task(self, place: Place, draft: CaseDraft) -> Task | None:
        form = self._form(TaskForm, place, draft)
        if form is None:
            return None
        if self._params(place, self.runner.task_params):
            self._check_files(place, lambda: self.runner.task_files(form.params, self.folder))
        return Task(
            id=form.id,
            attempts=self.attempts if form.attempts is None else form.attempts,
            params=form.params,
            tags=tuple(form.tags),
            description=form.description,
            name=form.name,
            outputs=form.outputs,
            line=_line(place, draft, "tasks"),
        )

    # ------------------------------------------------------------ variants

    def _variants(self, parts: Parts, draft: CaseDraft) -> list[Variant]:
        found = []
        own = parts.baseline or Place(draft.place.document, draft.place.keys, {})
        baseline = self._variant(own, BaselineForm, None, draft)
        for place in parts.mutants:
            mutant = self._variant(place, MutantForm, baseline, draft)
            if mutant is not None:
                found.append(mutant)
        if baseline is None:
            return found
        copies = [_control(baseline, number, draft.place.line) for number in range(1, self.controls + 1)]
        return [baseline, *found, *(copies if parts.recorded is None else ())]

    def _variant(
        self, place: Place, model: type[BaselineForm] | type[MutantForm], baseline: Variant | None, draft: CaseDraft
    ) -> Variant | None:
        form = self._form(model, place, draft)
        if form is None or not self._params(place, self.runner.variant_params):
            return None
        params: Mapping[str, Json] | None = form.params
        mutant = form if isinstance(form, MutantForm) else None
        if mutant is not None and baseline is not None:
            params = guarded(
                self.checker.problems, place, self.runner, lambda: self.runner.inherit(baseline.params, form.params)
            )
        if params is None:
            return None
        whole = params
        self._check_files(place, lambda: self.runner.variant_files(whole, self.folder))
        name = BASELINE if mutant is None else mutant.id
        return Variant(
            id=name,
            kind="baseline" if mutant is None else "mutant",
            params=params,
            description=form.description,
            tags=tuple(form.tags),
            name=form.name,
            control=mutant is not None and mutant.control,
            equivalent=None if mutant is None else mutant.equivalent,
            request_id=name,
            line=_line(place, draft, "baseline" if mutant is None else "mutants"),
        )

    def _form(self, model: type[Entry], place: Place, draft: CaseDraft) -> Entry | None:
        """An entry as its form. What stands in the case's own file was checked with it, and is not told twice."""
        elsewhere = place.document is not draft.place.document
        checker = self.checker if elsewhere else Checker(ProblemList(), self.checker.context)
        return checker.check(model, place)

    # ------------------------------------------------------------ the runner's part

    def _params(self, place: Place, model: type[BaseModel] | None) -> bool:
        """Whether ``params`` are of the form that the runner asks for."""
        if model is None:
            return True
        params = place.child("params") or Place(place.document, place.keys, {})
        return self.checker.check_plugin(model, params) is not None

    def check_shared_files(self, place: Place) -> None:
        """Check those that the runner names for all attempts; ``place`` is the runner's."""
        self._check_files(place, lambda: self.runner.shared_files(self.folder))

    def _check_files(self, place: Place, ask: Callable[[], Mapping[str, Path]]) -> None:
        where = place.child("params") or place
        named = guarded(self.checker.problems, where, self.runner, ask) if not self.cached_only else None
        for name, path in (named or {}).items():
            if not os.path.isfile(path):
                self.checker.problems.add(where.problem(f"the file {name!r} does not exist", f"it would be {path}"))


def _line(place: Place, draft: CaseDraft, key: str) -> int:
    """The line of an entry in its case's file; of the key that asks for it, where it comes from elsewhere."""
    if place.document is draft.place.document:
        return place.line
    return (draft.place.child(key) or draft.place).line


def _control(baseline: Variant, number: int, line: int) -> Variant:
    return replace(
        baseline,
        id=f"control-{number}",
        kind="mutant",
        description=CONTROL_DESCRIPTION,
        tags=(),
        name="",
        control=True,
        line=line,
    )
