"""From the YAML of an experiment to a checked :class:`~.experiment.Experiment`, or everything that is wrong with it."""

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.contracts import FORMAT_VERSION
from pytest_metricbench.definition.by_kind import coverage_of, executor_of, runner_of
from pytest_metricbench.definition.cases import (
    CaseDraft,
    check_case,
    expansion_of,
    ids_of,
    read_cases,
    subset_warnings,
    take_expanded,
)
from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.expanding import Expander
from pytest_metricbench.definition.experiment import (
    BASELINE,
    AnalysisSettings,
    Case,
    CoverageEntry,
    Experiment,
    Gate,
    KillRule,
    LockState,
    ScorePolicy,
)
from pytest_metricbench.definition.files import InputFinder
from pytest_metricbench.definition.gates import CaseScope, GateError, Scope, check_gate
from pytest_metricbench.definition.lock import Lock, lock_path
from pytest_metricbench.definition.making import CaseMaker
from pytest_metricbench.definition.models import (
    ATTEMPTS_LIMIT,
    CONTROLS_LIMIT,
    AnalysisForm,
    ExperimentForm,
)
from pytest_metricbench.definition.problems import ProblemList
from pytest_metricbench.definition.rules import (
    check_attempts_of_k,
    check_kill,
    check_primary_of_tasks,
    default_pass_at_k,
    primary_of,
)
from pytest_metricbench.definition.source import read_document
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.definition.wording import described
from pytest_metricbench.executor_settings import ExecutorSettings
from pytest_metricbench.generating.base import Makers
from pytest_metricbench.messages import unheard

_UPGRADE: Final = "pip install --upgrade pytest-metricbench"


def load_experiment(
    path: Path,
    *,
    runners: Mapping[str, type[Runner]],
    systems: Mapping[str, type[CoverageSystem]],
    makers: Makers | None = None,
    cached_only: bool = False,
    targets: dict[str, Path] | None = None,
    renew_lock: bool = False,
    progress: Callable[[str], None] = unheard,
) -> Experiment:
    """Read, check and expand an experiment file. Reads it, its lock and the files they name, and runs nothing.

    Args:
        path: the YAML file.
        runners: kind -> class of the runners that the file may name.
        systems: kind -> class of the coverage systems.
        makers: the generators of mutants and the operators over texts; none by default.
        cached_only: accept that inputs, scripts, modules and executables are absent: their digests are in the store.
        targets: module name -> file of the Python targets of other experiments in this process; added to.
        renew_lock: expand anew, whatever the lock says.
        progress: told what is expanded, which can take minutes.

    Raises:
        DefinitionError: with every problem of the file, its lock and the files of its cases and subsets.
    """
    problems = ProblemList()
    document = read_document(Path(os.path.abspath(path)), problems)
    if document is not None:
        _check_version(document.root, problems)
    if document is None:
        problems.stop_if_any()
        raise AssertionError("a document that cannot be read has a problem")
    folder = document.path.parent
    context = {"folder": folder, "cached_only": cached_only, "targets": targets, "problems": problems}
    lock = Lock(document.path, problems, renew=renew_lock, trusted=cached_only, progress=progress)
    reading = _Reading(document.root, Checker(problems, context), lock, makers or Makers())
    reading.check(runners, systems, InputFinder(folder, _own_files(document.path), cached_only, problems))
    state = reading.draw()
    problems.stop_if_any()
    return reading.make(state)


def _own_files(path: Path) -> frozenset[Path]:
    return frozenset({path, lock_path(path)})


def _check_version(root: Place, problems: ProblemList) -> None:
    """Refuse another format at once: what else looks wrong may be right there.

    Raises:
        DefinitionError: the file is no mapping, or of another version.
    """
    begin = f"an experiment begins with metricbench: {FORMAT_VERSION}"
    version = root.child("metricbench")
    if root.value is None:
        problems.add(root.problem("the file is empty", begin))
    elif not isinstance(root.value, dict):
        problems.add(root.problem(f"is {described(root.value)}", begin))
    elif version is None:
        for key in root.value:
            if problems.hint(key, ["metricbench"]) and key not in ExperimentForm.model_fields:
                place = Place(root.document, (key,), root.value[key])
                problems.add(place.problem("is an unknown key", "did you mean 'metricbench'?", at_key=True))
        if not problems:
            problems.add(root.missing("metricbench", begin))
    elif type(version.value) is not int:
        problems.add(version.problem(f"is {described(version.value)}", f"write metricbench: {FORMAT_VERSION}"))
    elif version.value > FORMAT_VERSION:
        message = f"the file is of format version {version.value} and this pytest-metricbench reads {FORMAT_VERSION}"
        problems.add(version.problem(message, _UPGRADE))
    elif version.value < FORMAT_VERSION:
        message = f"there is no format version {version.value}"
        problems.add(version.problem(message, f"write metricbench: {FORMAT_VERSION}"))
    else:
        return
    problems.stop_if_any()


class _Reading:
    """One experiment while it is read. Every check notes its problems and lets the next one go on."""

    def __init__(self, root: Place, checker: Checker, lock: Lock, makers: Makers) -> None:
        self.root = root
        self.lock = lock
        self.checker = checker
        self.problems = checker.problems
        self.form = checker.check(ExperimentForm, root)
        self.runner: Runner | None = None
        self.makers = makers
        self.executor: ExecutorSettings | None = None
        self.coverage: list[CoverageEntry] = []
        self.drafts: list[CaseDraft] = []
        self.maker: CaseMaker | None = None
        self.cases_are_right = False
        self.gates: list[Gate] = []
        self.primary: str | None = None

    # ------------------------------------------------------------ checking

    def check(
        self, runners: Mapping[str, type[Runner]], systems: Mapping[str, type[CoverageSystem]], finder: InputFinder
    ) -> None:
        """Check every part."""
        self.runner = runner_of(self.root, runners, self.checker)
        self.executor = executor_of(self.root, self.checker)
        self.coverage = coverage_of(self.root, systems, self.checker)
        before = len(self.problems)
        self.drafts = read_cases(self.root, self.checker, finder.folder)
        self._find_parts(runners)
        for draft in self.drafts:
            check_case(draft, self.checker, finder)
            _add_inputs(draft)
        self._prepare(finder)
        self.cases_are_right = len(self.problems) == before
        self.primary = primary_of(self.root, self.problems)
        if self.maker is not None:
            check_primary_of_tasks(self.root, self.maker.tasks, self.primary, self.problems)
        check_kill(self.root, self.problems)
        if all(draft.is_known for draft in self.drafts):
            check_attempts_of_k(self.root, self._largest_attempts(), self.problems)
        self._check_gates()

    def _find_parts(self, runners: Mapping[str, type[Runner]]) -> None:
        """The tasks and variants of every case, through the runner where they come from elsewhere."""
        kind = (self.root.child("runner") or self.root).text("kind")
        runner = self.runner
        expander = None
        if runner is not None:
            expander = Expander(runner, self.lock, self.checker, self.root.document.path, self.makers)
        cls = runners.get(kind) if kind is not None else None
        records = cls is not None and cls.case_source is not Runner.case_source
        for draft in self.drafts:
            listed = draft.place.child("tasks")
            if listed is None and not records and isinstance(draft.place.value, dict):
                self.problems.add(draft.place.missing("tasks", "the key tasks is needed"))
            elif listed is not None and listed.value is None and not records:
                self.problems.add(listed.problem(f"is {described(None)}", "a list of tasks is expected"))
            elif expander is not None and draft.id is not None:
                draft.parts = expander.parts(draft.id, draft.place)
        controls = self.root.child("controls")
        if records and controls is not None and controls.value != 0:
            remedy = "mark a recorded mutant as one: control: true"
            self.problems.add(controls.problem("recorded attempts cannot be run for copies of the baseline", remedy))
        asked = self.root.child("attempts")
        if records and asked is not None:
            remedy = "remove the key"
            self.problems.add(asked.problem("recorded attempts are as many as there are", remedy, at_key=True))

    def _prepare(self, finder: InputFinder) -> None:
        """Check tasks and variants against the runner and make them."""
        if self.runner is None:
            return
        form = self.form
        attempts, controls = (1, 0) if form is None else (form.attempts, form.controls)
        self.maker = CaseMaker(self.runner, self.checker, finder.folder, finder.cached_only, attempts, controls)
        self.maker.check_shared_files(self.root.child("runner") or self.root)
        for draft in self.drafts:
            self.maker.prepare(draft)

    def _attempts(self) -> int:
        """What tasks get that say nothing; the most there can be where that is wrong, so that no k is above it."""
        value = self.root.value.get("attempts", 1)
        return value if type(value) is int and value >= 1 else ATTEMPTS_LIMIT

    def _largest_attempts(self) -> int:
        default = self._attempts()
        return max((draft.largest_attempts(default) for draft in self.drafts), default=default)

    def _check_gates(self) -> None:
        places = [place for place in self.root.entries("gates") if isinstance(place.value, str)]
        scope = self._scope() if places else None
        for place in places:
            try:
                if scope is not None:
                    self.gates.append(check_gate(place.value, scope))
            except GateError as error:
                self.problems.add(place.problem(error.message, error.remedy))

    def _scope(self) -> Scope | None:
        """What gates can be about; None where a case or a system has no id yet, and no name can be called unknown."""
        systems = [place.text("id") for place in self.root.entries("coverage")]
        expected = len(self.root.entries("cases"))
        unnamed = None in systems or any(draft.id is None or not draft.is_known for draft in self.drafts)
        if not self.drafts or unnamed or len(self.drafts) < expected:
            return None
        controls = self.root.value.get("controls", 0)
        count = min(controls, CONTROLS_LIMIT) if type(controls) is int else 0
        copies = [f"control-{number}" for number in range(1, count + 1)]
        default = self._attempts()
        cases = {
            str(draft.id): CaseScope(
                variants=frozenset({BASELINE, *ids_of(draft.mutants), *copies}),
                scored_mutants=draft.scored_mutants,
                subsets=bool(draft.listed) or isinstance(draft.place.value.get("subsets"), dict),
                attempts=draft.largest_attempts(default),
            )
            for draft in self.drafts
        }
        return Scope(cases, frozenset(str(name) for name in systems))

    # ------------------------------------------------------------ making

    def draw(self) -> LockState | None:
        """Take what is drawn from the lock, or draw it, once the cases are right."""
        if not self.cases_are_right:
            return self.lock.finish(whole=False)
        for draft in self.drafts:
            asked = expansion_of(draft)
            expanded = None if asked is None else self.lock.take(asked)
            if expanded is not None:
                take_expanded(draft, expanded, self.checker)
        return self.lock.finish(whole=True)

    def make(self, lock: LockState | None) -> Experiment:
        """The experiment, when no problem was found."""
        form, runner, maker, path = self.form, self.runner, self.maker, self.root.document.path
        if form is None or runner is None or maker is None:
            raise AssertionError("an experiment that is not right has a problem")
        cases = tuple(maker.make(draft, path) for draft in self.drafts)
        return Experiment(
            path=path,
            name=form.name,
            seed=form.seed,
            retries=form.retries,
            runner=runner,
            score=ScorePolicy(self.primary, form.score.pass_at_least, form.score.outputs),
            cases=cases,
            coverage=tuple(self.coverage),
            analysis=_analysis(form.analysis, self._largest_attempts()),
            gates=tuple(self.gates),
            warnings=tuple(self._warnings(cases, lock)),
            lock=lock,
            budget=form.budget,
            executor=self.executor,
            items=form.items,
            items_chosen="items" in form.model_fields_set,
            documents=tuple(self.problems.documents),
        )

    def _warnings(self, cases: Sequence[Case], lock: LockState | None) -> list[str]:
        found = [text for draft, case in zip(self.drafts, cases, strict=True) for text in subset_warnings(draft, case)]
        for draft in self.drafts:
            found.extend(self.maker.warnings(draft) if self.maker is not None else ())
        unused = lock_path(self.root.document.path)
        if lock is None and os.path.lexists(unused):
            found.append(
                f"{unused.name} is not used any more: {self.root.document.path.name} expands nothing; delete it"
            )
        return found


def _add_inputs(draft: CaseDraft) -> None:
    """Count what generated mutants change among the case's inputs, whether or not it is named there."""
    named = {file.path for file in draft.inputs}
    found = () if draft.parts is None else draft.parts.inputs
    draft.inputs = (*draft.inputs, *(file for file in found if file.path not in named))


def _analysis(form: AnalysisForm, attempts: int) -> AnalysisSettings:
    resamples = form.resamples
    return AnalysisSettings(
        pass_at_k=default_pass_at_k(attempts) if form.pass_at_k is None else tuple(form.pass_at_k),
        kill=KillRule(form.kill.rule, form.kill.alpha, form.kill.q),
        mutation_score=form.mutation_score,
        permutation=resamples if isinstance(resamples, int) else resamples.permutation,
        bootstrap=resamples if isinstance(resamples, int) else resamples.bootstrap,
        seed=form.seed,
    )
