"""Collectors and the item: file -> case -> variant -> attempt.

What is collected is a function of the files alone, so that every worker of pytest-xdist collects the same ids in the
same order. Nothing here opens a store before an item runs.
"""

import os
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_metricbench import coverage, runners
from pytest_metricbench.ahead import Planned
from pytest_metricbench.attempts import NotCachedError
from pytest_metricbench.bases import CoverageSystem, Runner
from pytest_metricbench.budget import AllowanceError, BudgetReachedError
from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.definition.experiment import Case, Experiment, Task, Variant
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.definition.scoring import policy_at, status
from pytest_metricbench.generating.base import Makers
from pytest_metricbench.generating.builtin import MakerError, known_makers
from pytest_metricbench.kinds import Kinds
from pytest_metricbench.reporting.junit import attempt_properties, identity_properties
from pytest_metricbench.runs import Bench
from pytest_metricbench.sharding import Shard, read_durations, shards
from pytest_metricbench.store.layout import STORE_FOLDER
from pytest_metricbench.wire import to_wire

LEARNED: Final = "metricbench"
"""The attribute of a test report that carries what an attempt learned: JSON from a worker, then its word."""
LEFT: Final = "left"
"""The word of an attempt that was not started since the budget of this run was spent; its limit follows a colon."""


class AttemptUnmeasuredError(Exception):
    """An attempt about which nothing is known: the test fails with this."""

    def __init__(self, record: AttemptRecord, folder: Path) -> None:
        """Keep the record and the folder with what the attempt left."""
        super().__init__(record.trial_id)
        self.record = record
        self.folder = folder


# ---------------------------------------------------------------- experiments of this process


def store_root(experiment: Experiment, config: pytest.Config) -> Path:
    """The folder of an experiment's store."""
    given = config.getoption("metricbench_store")
    base = config.invocation_params.dir / given if given else experiment.folder / STORE_FOLDER
    return Path(base) / experiment.name


def cached_by(config: pytest.Config) -> str:
    """The option that forbids to run attempts; empty where they may run."""
    for name in ("cached-only", "cached-attempts"):
        if config.getoption(f"metricbench_{name.replace('-', '_')}"):
            return f"--metricbench-{name}"
    return ""


def shard_of(config: pytest.Config) -> tuple[Shard, Mapping[tuple[str, str, str, int], AttemptRecord]] | None:
    """The part of the attempts that this run is about, and the durations to balance the parts by.

    Raises:
        ValueError: the shard is not of the form 2/5.
        StoreError: the durations cannot be read.
    """
    text = config.getoption("metricbench_shard")
    if not text:
        return None
    file = config.getoption("metricbench_durations")
    return Shard.parse(text), read_durations(config.invocation_params.dir / file) if file else {}


@dataclass(slots=True)
class Benches:
    """The experiments loaded in this process, each file once."""

    _loaded: dict[Path, Bench | DefinitionError] = field(default_factory=dict)
    _targets: dict[str, Path] = field(default_factory=dict)
    """Module name -> file, for Python targets of all experiments: a module name means one file."""

    def load(self, path: Path, config: pytest.Config, hooks: Any) -> Bench:
        """The bench of an experiment file; ``hooks`` are those of the plugins that hold for that path.

        Raises:
            DefinitionError: the file is not a valid experiment.
        """
        path = Path(os.path.abspath(path))
        if path not in self._loaded:
            try:
                self._loaded[path] = self._bench(path, config, hooks)
            except DefinitionError as error:
                self._loaded[path] = error
        loaded = self._loaded[path]
        if isinstance(loaded, DefinitionError):
            raise loaded
        return loaded

    def __iter__(self) -> Iterator[Bench]:
        """Every bench that could be loaded."""
        return (bench for bench in self._loaded.values() if isinstance(bench, Bench))

    def _bench(self, path: Path, config: pytest.Config, hooks: Any) -> Bench:
        experiment = load_experiment(
            path,
            runners=_by_kind(runners.BUILTIN, hooks.pytest_metricbench_runners(), Runner),
            systems=_by_kind(coverage.BUILTIN, hooks.pytest_metricbench_coverage_systems(), CoverageSystem),
            makers=_makers(hooks),
            targets=self._targets,
            renew_lock=config.getoption("metricbench_lock"),
            cached_only=bool(cached_by(config)),
        )
        return Bench(
            experiment,
            store_root(experiment, config),
            retry_died=config.getoption("metricbench_retry_died"),
            cached=cached_by(config),
        )


BENCHES: Final = pytest.StashKey[Benches]()


def benches(config: pytest.Config) -> Benches:
    """The experiments of a pytest session."""
    return config.stash.setdefault(BENCHES, Benches())


def _by_kind(builtin: Kinds[Any], given: Iterable[Iterable[type[Any]]], base: type[Any]) -> Kinds[Any]:
    """Kind -> class, of the built-in classes and those that hooks gave.

    Raises:
        UsageError: something else than a class of that base, without a kind, or with a kind that is taken.
    """
    known = builtin
    for classes in given:
        for cls in classes:
            if not isinstance(cls, type) or not issubclass(cls, base):
                raise pytest.UsageError(f"metricbench: a hook gave {cls!r}; a subclass of {base.__name__} is expected")
            kind = cls.model_fields["kind"].default
            where = f"{cls.__module__}.{cls.__qualname__}"
            if not isinstance(kind, str):
                raise pytest.UsageError(f'metricbench: {where} names no kind; write kind: Literal["name"] = "name"')
            if kind in known and known[kind] is not cls:
                other = f"{known[kind].__module__}.{known[kind].__qualname__}"
                raise pytest.UsageError(f"metricbench: the kind {kind!r} of {where} is taken by {other}; rename one")
            known = known.also({kind: cls})
    return known


def _makers(hooks: Any) -> Makers:
    """The generators of mutants and operators over texts, built in and from plugins.

    Raises:
        UsageError: a plugin gives something else, or a name that is taken.
    """
    try:
        return known_makers(hooks.pytest_metricbench_generators(), hooks.pytest_metricbench_text_operators())
    except MakerError as error:
        raise pytest.UsageError(f"metricbench: {error}") from None


# ---------------------------------------------------------------- collectors


class ExperimentFile(pytest.File):
    """An experiment file; its children are cases."""

    def collect(self) -> Iterable["CaseCollector"]:
        """One collector a case."""
        try:
            bench = benches(self.config).load(self.path, self.config, self.session.gethookproxy(self.path))
        except DefinitionError as error:
            raise self.CollectError(str(error)) from None
        if not self.config.pluginmanager.has_plugin(ItemReports.NAME):
            self.config.pluginmanager.register(ItemReports(self.config), ItemReports.NAME)
        if bench.experiment.runner.ahead and not self.config.pluginmanager.has_plugin(ComingAttempts.NAME):
            self.config.pluginmanager.register(ComingAttempts(self.config), ComingAttempts.NAME)
        _register_marks(self.config, bench.experiment)
        for case in bench.experiment.cases:
            yield CaseCollector.from_parent(self, name=case.id, bench=bench, case=case)


class CaseCollector(pytest.Collector):
    """A case; its children are variants, the baseline first."""

    def __init__(self, *, bench: Bench, case: Case, **kwargs: Any) -> None:
        """Collect the variants of ``case``."""
        super().__init__(**kwargs)
        self._bench = bench
        self._case = case

    def collect(self) -> Iterable["VariantCollector"]:
        """One collector a variant."""
        for variant in self._case.variants:
            yield VariantCollector.from_parent(
                self, name=variant.id, bench=self._bench, case=self._case, variant=variant
            )


class VariantCollector(pytest.Collector):
    """The baseline or a mutant; its children are attempts."""

    def __init__(self, *, bench: Bench, case: Case, variant: Variant, **kwargs: Any) -> None:
        """Collect the attempts of ``variant``."""
        super().__init__(**kwargs)
        self._bench = bench
        self._case = case
        self._variant = variant
        for mark in (variant.kind, *variant.tags):
            self.add_marker(mark)

    def collect(self) -> Iterable["AttemptItem"]:
        """One item an attempt."""
        shared = Surroundings(self)
        for task in self._case.tasks:
            marks = [getattr(pytest.mark, tag).mark for tag in task.tags]
            marks.append(pytest.mark.metricbench(case=self._case.id, variant=self._variant.id, task=task.id).mark)
            for slot in self._case.slots(self._variant.id, task):
                name = f"{task.id}[{slot}]"
                spec = AttemptSpec(self._bench, self._case, self._variant, task, slot)
                # The id as a text: with a bracketed name of its own making, pytest 9.2 loses --lf (pytest#15045).
                item: AttemptItem = AttemptItem.from_parent(
                    self, name=name, nodeid=f"{self.nodeid}::{name}", spec=spec, shared=shared
                )
                item.own_markers.extend(marks)
                item.keywords.update((mark.name, mark) for mark in marks)
                yield item


class Surroundings:
    """What pytest asks of every item and what is the same for all items of a variant."""

    __slots__ = ("above", "file", "hooks", "keywords", "nearest_first")

    def __init__(self, variant: VariantCollector) -> None:
        """Of the items of ``variant``."""
        self.above: Final[list[Any]] = variant.listchain()
        self.nearest_first: Final[list[Any]] = self.above[::-1]
        self.hooks: Final = variant.ihook
        self.keywords: Final[dict[str, Any]] = dict(variant.keywords)
        self.file: str | None = None
        """The experiment file as reports name it; known when the first item was asked."""


@dataclass(frozen=True, slots=True)
class AttemptSpec:
    """Which attempt an item is."""

    bench: Bench
    case: Case
    variant: Variant
    task: Task
    slot: int

    @property
    def key(self) -> tuple[str, str, str, int]:
        """Case, variant, task, slot."""
        return (self.case.id, self.variant.id, self.task.id, self.slot)


class AttemptItem(pytest.Item):
    """One attempt. It passes when it was measured, whatever the agent did."""

    def __init__(self, *, spec: AttemptSpec, shared: Surroundings, **kwargs: Any) -> None:
        """The item of ``spec``, with what it shares with the others of its variant."""
        self._shared: Final = shared
        super().__init__(**kwargs)
        self.keywords = {**shared.keywords, self.name: True}
        self.spec: Final = spec
        self.learned: str | None = None
        """For the test report: the attempt's word where this process keeps the store, else all it learned as JSON."""

    def runtest(self) -> None:
        """Perform the attempt.

        Raises:
            AttemptUnmeasuredError: nothing is known about it.
            NotCachedError: it would have to run, and nothing may.
            AllowanceError: nobody knows whether the budget allows it.
            Skipped: pytest's own, for an attempt that is left for the next run.
        """
        spec = self.spec
        self.learned = None
        has_junit = bool(self.config.getoption("xmlpath", None))
        if has_junit:
            self.user_properties[:] = identity_properties(spec.key)
        try:
            performed = spec.bench.perform(spec.case, spec.variant, spec.task, spec.slot)
        except BudgetReachedError as reached:
            self.learned = f"{LEFT}:{reached}"
            if has_junit:
                self.user_properties.append(("outcome", LEFT))
            reason = f"the budget of {reached} was reached: left for the next run"
            raise pytest.skip.Exception(reason, _use_item_location=True) from None
        record = performed.record
        word = status(policy_at(spec.bench.experiment.score, spec.task), record)
        deliver = spec.bench.deliver
        self.learned = to_wire(word, performed.new) if deliver is None else deliver(spec.key, performed, word)
        if has_junit:
            self.user_properties += attempt_properties(record, word)
        if word == "unmeasured":
            raise AttemptUnmeasuredError(record, spec.bench.layout.left_by(record))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What went wrong, in which phase, and where the rest is; tracebacks only for faults that are ours."""
        error = excinfo.value
        if isinstance(error, NotCachedError | AllowanceError):
            return f"not measured: {error}"
        if not isinstance(error, AttemptUnmeasuredError):
            return super().repr_failure(excinfo, style)
        problem = error.record.error
        if problem is None:
            return "unmeasured: the primary score is missing"
        left = f"\nwhat it left: {error.folder}" if error.record.files else ""
        return f"unmeasured ({problem.phase}): {problem.type}: {problem.message}{left}"

    @property
    def ihook(self) -> Any:
        """The hooks that hold for the experiment file. pytest asks seven times an item."""
        return self._shared.hooks

    def iter_markers_with_node(self, name: str | None = None) -> Iterator[tuple[Any, pytest.Mark]]:
        """The marks of the item and its collectors, the closest first. pytest asks six times an item."""
        found: list[tuple[Any, pytest.Mark]] = [(self, m) for m in self.own_markers if name is None or m.name == name]
        for node in self._shared.nearest_first:
            if node.own_markers:
                found += [(node, mark) for mark in node.own_markers if name is None or mark.name == name]
        return iter(found)

    def listchain(self) -> list[Any]:
        """The collectors above and the item. pytest asks some ten times an item."""
        return [*self._shared.above, self]

    @cached_property
    def location(self) -> tuple[str, int | None, str]:
        """File below the root folder, line and name, as reports have them."""
        if self._shared.file is None:
            self._shared.file = super().location[0]
        _, line, name = self.reportinfo()
        return self._shared.file, line, name

    def reportinfo(self) -> tuple[Path, int, str]:
        """The task's line in the file, and the attempt in words."""
        spec = self.spec
        return self.path, spec.task.line - 1, f"{spec.case.id}::{spec.variant.id}::{self.name}"


class ItemReports:
    """Puts what an attempt learned on its test report. Registered when an experiment is collected, not before."""

    NAME: Final = "metricbench-items"

    def __init__(self, config: pytest.Config) -> None:
        """Of this session."""
        self._config: Final = config

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect the attempts of other shards. A shard is dealt from all attempts, whatever is selected of them."""
        shard = shard_of(self._config)
        if shard is None:
            return
        (mine, known), dealt = shard, {}
        for bench in {item.spec.bench for item in items if isinstance(item, AttemptItem)}:
            dealt[bench] = shards(list(bench.experiment.keys()), mine.count, known)
        others = [i for i in items if isinstance(i, AttemptItem) and dealt[i.spec.bench][i.spec.key] != mine.number]
        if others:
            gone = set(others)
            items[:] = [item for item in items if item not in gone]
            self._config.hook.pytest_deselected(items=others)

    def pytest_sessionfinish(self) -> None:
        """End what was begun before its turn and never asked for."""
        for bench in benches(self._config):
            bench.close()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach the attempt's JSON to the report of its call."""
        report = yield
        if call.when == "call" and isinstance(item, AttemptItem) and item.learned is not None:
            setattr(report, LEARNED, item.learned)
        return report


class ComingAttempts:
    """Tells runners that begin attempts ahead which come next. Registered where an experiment has such a runner."""

    NAME: Final = "metricbench-coming"

    def __init__(self, config: pytest.Config) -> None:
        """Of this session."""
        self._config: Final = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Tell each experiment's attempts in their order, where this process runs them all."""
        if not hasattr(self._config, "workerinput") and self._config.getoption("dist", "no") == "no":
            self._expect(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """A worker of pytest-xdist knows one attempt beyond the one it runs."""
        if hasattr(self._config, "workerinput"):
            self._expect([entry for entry in (item, nextitem) if entry is not None])

    def _expect(self, items: Iterable[pytest.Item]) -> None:
        planned: dict[Bench, list[Planned]] = {}
        for item in items:
            if isinstance(item, AttemptItem) and item.spec.bench.experiment.runner.ahead:
                spec = item.spec
                planned.setdefault(spec.bench, []).append(Planned(spec.case, spec.variant, spec.task, spec.slot))
        for bench, attempts in planned.items():
            bench.expect(attempts)


def _register_marks(config: pytest.Config, experiment: Experiment) -> None:
    """Register every tag as a mark, so that --strict-markers holds for an experiment too."""
    tags = {tag for case in experiment.cases for task in case.tasks for tag in task.tags}
    tags |= {tag for case in experiment.cases for variant in case.variants for tag in variant.tags}
    known = {line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers")}
    for tag in sorted(tags - known):
        config.addinivalue_line("markers", f"{tag}: a tag of the experiment {experiment.name}")
