"""Fixtures of the tests of the executor ``dask``."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

# Imported once here, since a session in this process forgets the modules that it imported itself.
with suppress(ImportError):
    import distributed  # noqa: F401

    import pytest_metricbench.executors.dask  # noqa: F401

from tests.dask_executor.dask_lab import Processes


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    """A scheduler and a worker of one thread: each thread of a worker costs every session a process."""
    pytest.importorskip("distributed")
    processes = Processes(tmp_path_factory.mktemp("cluster"))
    try:
        processes.add_worker()
        processes.await_workers(1)
        yield processes
    finally:
        processes.close()


@pytest.fixture(autouse=True)
def _usual(monkeypatch: pytest.MonkeyPatch, unasked: None, compiled_anew: None) -> None:
    monkeypatch.delenv("DASK_SCHEDULER_ADDRESS", raising=False)


@pytest.fixture
def folder(pytester: pytest.Pytester) -> Path:
    """Where sessions of a test run."""
    return pytester.path
