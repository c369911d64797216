"""The stores that a session writes: opened before anything runs, with what other stores hold taken over, and closed."""

from collections.abc import Iterator
from typing import Final, NoReturn

import pytest

from pytest_metricbench.messages import counted
from pytest_metricbench.pytest_side.benches import benches
from pytest_metricbench.pytest_side.executor_choice import refuse_workers
from pytest_metricbench.pytest_side.publishing import Publisher, PublishError
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.store.journal import DiskError, StoreError
from pytest_metricbench.store.merging import merge_stores, store_in
from pytest_metricbench.store.writing import StoreWriter

STORE_FAILED: Final = 3
"""Exit status when a store cannot be written any more: the run is not the experiment's answer."""


def refuse(error: Exception) -> NoReturn:
    """End before anything runs: a store that cannot be used, or one whose disk is full or read-only."""
    if isinstance(error, DiskError):
        pytest.exit(f"metricbench: {error}", returncode=STORE_FAILED)
    raise pytest.UsageError(f"metricbench: {error}") from None


class OpenStores:
    """One writer for each experiment of a session."""

    def __init__(self, config: pytest.Config, publisher: Publisher) -> None:
        """None is open yet; ``publisher`` is told of each experiment first, since it may read the same store."""
        self._config: Final = config
        self._publisher: Final = publisher
        self.writers: Final[dict[Bench, StoreWriter]] = {}
        self.notes: Final[list[str]] = []
        """What was taken over from other stores, in words."""

    def open(self, bench: Bench) -> None:
        """Open the store of an experiment for writing.

        Raises:
            UsageError: it cannot be opened.
        """
        if bench in self.writers:
            return
        refuse_workers(self._config, bench)
        for other in self.writers:
            if other.layout.root == bench.layout.root:
                raise pytest.UsageError(
                    f"metricbench: {bench.experiment.path} and {other.experiment.path} are both named "
                    f"{bench.experiment.name!r} and would share the store {bench.layout.root}; rename one"
                )
        try:
            self._publisher.begin(bench.experiment)  # before: it may read the store that is opened
            writer = StoreWriter(bench.layout.root, fresh=self._config.getoption("metricbench_fresh"))
        except (StoreError, PublishError) as error:
            refuse(error)
        self.writers[bench] = writer
        bench.stored = writer.contents.attempts
        self._merge(bench, writer)

    def _merge(self, bench: Bench, writer: StoreWriter) -> None:
        """Take over what the stores hold that the command line names."""
        named: list[str] = self._config.getoption("metricbench_merge")
        if not named:
            return
        if len(list(benches(self._config))) > 1:
            raise pytest.UsageError("metricbench: --metricbench-merge: name one experiment; these are several")
        folders = [self._config.invocation_params.dir / name for name in named]
        try:
            merged = merge_stores(writer, [store_in(folder, bench.experiment.name) for folder in folders])
        except StoreError as error:
            raise pytest.UsageError(f"metricbench: --metricbench-merge: {error}") from None
        self.notes.append(
            f"took over {counted(merged.attempts, 'attempt')} and {counted(merged.coverage, 'coverage result')} from "
            f"{counted(merged.stores, 'store')}"
        )

    def close(self) -> Iterator[str]:
        """Close every store; gives, in words, what could not be written any more."""
        for writer in self.writers.values():
            try:
                writer.close()
            except StoreError as error:
                yield str(error)
