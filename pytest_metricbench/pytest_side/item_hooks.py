"""What is done about the items of a session in any process: shards, what goes on their reports, what comes next."""

import sys
from collections.abc import Generator, Iterable
from typing import Final

import pytest

from pytest_metricbench.origins import whose
from pytest_metricbench.pytest_side.benches import benches, shard_of
from pytest_metricbench.pytest_side.items import LEARNED, ExperimentItem
from pytest_metricbench.running.ahead import Planned
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.naming import ItemName
from pytest_metricbench.running.sharding import shards
from pytest_metricbench.workers import is_worker, worker_count


class ItemReports:
    """Puts what an item learned on its test report. Registered when an experiment is collected, not before."""

    NAME: Final = "metricbench-items"

    def __init__(self, config: pytest.Config) -> None:
        """Of this session."""
        self._config: Final = config

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Deselect the items of other shards. A shard is dealt from all of them, whatever is selected."""
        shard = shard_of(self._config)
        if shard is None:
            return
        mine, known = shard
        dealt: dict[Bench, dict[ItemName, int]] = {}
        for bench in {item.bench for item in items if isinstance(item, ExperimentItem)}:
            dealt[bench] = shards(bench.names.groups, mine.count, known)
        others = [item for item in items if isinstance(item, ExperimentItem) and _shard(item, dealt) != mine.number]
        if others:
            gone = set(others)
            items[:] = [item for item in items if item not in gone]
            self._config.hook.pytest_deselected(items=others)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Have each item call the hooks of its own folder: a ``conftest.py`` of another one may have come after it."""
        for shared in {item.shared for item in session.items if isinstance(item, ExperimentItem)}:
            shared.collected()

    def pytest_sessionfinish(self) -> None:
        """End what was begun before its turn and never asked for."""
        for bench in benches(self._config):
            try:
                bench.close()
            except Exception as error:  # code of a third party, and what was measured is in the store already
                runner = bench.experiment.runner
                problem = f"the runner {runner.kind!r}{whose(type(runner))} cannot be closed: {error!r}"
                if (reporter := self._config.pluginmanager.get_plugin("terminalreporter")) is not None:
                    reporter.ensure_newline()
                    reporter.write_line(f"metricbench: {problem}", yellow=True)
                else:  # a worker, which has no other way to its user
                    print(f"metricbench: {problem}", file=sys.stderr)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Attach what the item learned to the report of its call."""
        report = yield
        if call.when == "call" and isinstance(item, ExperimentItem) and item.learned is not None:
            setattr(report, LEARNED, item.learned)
        return report


def _shard(item: ExperimentItem, dealt: dict[Bench, dict[ItemName, int]]) -> int:
    return dealt[item.bench][item.bench.names.of(item.keys[0])]


class ComingAttempts:
    """Tells runners that begin attempts ahead which come next. Registered where an experiment has such a runner."""

    NAME: Final = "metricbench-coming"

    def __init__(self, config: pytest.Config) -> None:
        """Of this session."""
        self._config: Final = config

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Tell each experiment's attempts in their order, where this process runs them all."""
        if not is_worker(self._config) and not worker_count(self._config):
            self._expect(session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item, nextitem: pytest.Item | None) -> None:
        """A worker of pytest-xdist knows one item beyond the one it runs."""
        if is_worker(self._config):
            self._expect([entry for entry in (item, nextitem) if entry is not None])

    def _expect(self, items: Iterable[pytest.Item]) -> None:
        planned: dict[Bench, list[Planned]] = {}
        for item in items:
            if isinstance(item, ExperimentItem) and item.bench.experiment.runner.ahead and not item.may_be_skipped:
                planned.setdefault(item.bench, []).extend(item.planned)
        for bench, attempts in planned.items():
            bench.expect(attempts)
