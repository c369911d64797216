"""Collectors: file -> case -> variant -> item.

What is collected is a function of the files alone, so that every worker of pytest-xdist collects the same ids in the
same order. Nothing here opens a store before an item runs.
"""

from collections.abc import Iterable, Iterator
from typing import Any

import pytest

from pytest_metricbench.definition.experiment import Case, Experiment, Task, Variant
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.pytest_side.benches import benches
from pytest_metricbench.pytest_side.groups import GroupItem, GroupSpec, TaskItem, VariantItem
from pytest_metricbench.pytest_side.item_hooks import ComingAttempts, ItemReports
from pytest_metricbench.pytest_side.items import AttemptItem, ExperimentItem, Surroundings
from pytest_metricbench.pytest_side.protocol import ShortProtocol
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.bench import Bench


class ExperimentFile(pytest.File):
    """An experiment file; its children are cases."""

    def collect(self) -> Iterable["CaseCollector"]:
        """One collector a case."""
        try:
            bench = benches(self.config).load(self.path, self.config, self.session.gethookproxy(self.path))
        except (
            DefinitionError,
            pytest.UsageError,
        ) as error:  # one that was named on the command line ended the session
            raise self.CollectError(str(error)) from None
        if not self.config.pluginmanager.has_plugin(ItemReports.NAME):
            self.config.pluginmanager.register(ItemReports(self.config), ItemReports.NAME)
            self.config.pluginmanager.register(ShortProtocol(), ShortProtocol.NAME)
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

    def collect(self) -> Iterable["VariantCollector | VariantItem"]:
        """One collector a variant, or the variant as one item."""
        if self._bench.experiment.items == "variant":
            return self._items()
        return self._collectors()

    def _collectors(self) -> Iterator["VariantCollector"]:
        for variant in self._case.variants:
            yield VariantCollector.from_parent(
                self, name=variant.id, bench=self._bench, case=self._case, variant=variant
            )

    def _items(self) -> Iterator[VariantItem]:
        shared = Surroundings(self, self._bench)
        for variant in self._case.variants:
            tasks = [task for task in self._case.tasks if self._case.slots(variant.id, task)]
            if not tasks:
                continue
            item: VariantItem = _group(VariantItem, self, shared, variant.id, (self._case, variant, tasks))
            marks = [getattr(pytest.mark, name).mark for name in (variant.kind, *variant.tags)]
            _mark(item, [*marks, pytest.mark.metricbench(case=self._case.id, variant=variant.id).mark])
            yield item


class VariantCollector(pytest.Collector):
    """The baseline or a mutant; its children are attempts, or tasks with their attempts inside."""

    def __init__(self, *, bench: Bench, case: Case, variant: Variant, **kwargs: Any) -> None:
        """Collect the attempts of ``variant``."""
        super().__init__(**kwargs)
        self._bench = bench
        self._case = case
        self._variant = variant
        for mark in (variant.kind, *variant.tags):
            self.add_marker(mark)

    def collect(self) -> Iterable[ExperimentItem]:
        """One item an attempt or a task."""
        shared = Surroundings(self, self._bench)
        case, variant, is_grouped = self._case, self._variant, self._bench.experiment.items == "task"
        for task in case.tasks:
            marks = [getattr(pytest.mark, tag).mark for tag in task.tags]
            marks.append(pytest.mark.metricbench(case=case.id, variant=variant.id, task=task.id).mark)
            slots = case.slots(variant.id, task)
            if is_grouped and slots:
                group = _group(TaskItem, self, shared, task.id, (case, variant, [task]))
                _mark(group, marks)
                yield group
            for slot in () if is_grouped else slots:
                name = f"{task.id}[{slot}]"
                attempt = Planned(case, variant, task, slot)
                # The id as a text: with a bracketed name of its own making, pytest 9.2 loses --lf (pytest#15045).
                item: AttemptItem = AttemptItem.from_parent(
                    self, name=name, nodeid=f"{self.nodeid}::{name}", attempt=attempt, shared=shared
                )
                _mark(item, marks)
                yield item


def _group(
    kind: type[GroupItem],
    parent: CaseCollector | VariantCollector,
    shared: Surroundings,
    name: str,
    about: tuple[Case, Variant, list[Task]],
) -> Any:
    spec = GroupSpec(*about)
    return kind.from_parent(parent, name=name, nodeid=f"{parent.nodeid}::{name}", spec=spec, shared=shared)


def _mark(item: pytest.Item, marks: list[pytest.Mark]) -> None:
    """Give an item marks that several share; ``add_marker`` would make each anew."""
    item.own_markers.extend(marks)
    item.keywords.update((mark.name, mark) for mark in marks)


def _register_marks(config: pytest.Config, experiment: Experiment) -> None:
    """Register every tag as a mark, so that --strict-markers holds for an experiment too."""
    tags = {tag for case in experiment.cases for task in case.tasks for tag in task.tags}
    tags |= {tag for case in experiment.cases for variant in case.variants for tag in variant.tags}
    known = {line.partition(":")[0].partition("(")[0].strip() for line in config.getini("markers")}
    for tag in sorted(tags - known):
        config.addinivalue_line("markers", f"{tag}: a tag of the experiment {experiment.name}")
