"""Reaching a Dask cluster: named by an address, by a scheduler file, by Dask's own configuration, or started here."""

import json
import logging
import os
import signal
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import TYPE_CHECKING, Any, Final, TypeVar

from pytest_metricbench.executor_settings import DaskSettings
from pytest_metricbench.executors.base import ExecutorError

if TYPE_CHECKING:
    from distributed import Client, Future

T = TypeVar("T")

_NONE_NAMED: Final = (
    "no Dask scheduler is named: write dask:tcp://HOST:8786 or dask:scheduler.json, set DASK_SCHEDULER_ADDRESS, or "
    "write dask:4 for a cluster of four workers on this machine"
)
_HALF_WRITTEN: Final = 1.0
"""Seconds that a file is given to become whole."""
_CLOSING: Final = 2.0
"""Seconds that a cluster is given to answer that a client leaves."""
_ENDING: Final = 0.5
"""Seconds that a worker which was killed is given to be gone, before it is killed again."""


class Cluster:
    """A client of a Dask cluster, and the cluster itself where it was started here."""

    def __init__(self, settings: DaskSettings) -> None:
        """Connect.

        Raises:
            ExecutorError: distributed is not installed, no scheduler is named, or none answers.
        """
        try:
            import distributed  # noqa: F401
        except ImportError as error:
            if error.name is not None and error.name.partition(".")[0] not in ("distributed", "dask"):
                raise
            raise ExecutorError(
                "the executor dask needs distributed, which is not installed: pip install 'pytest-metricbench[dask]'"
            ) from None
        self._local: Any = None
        self.client: Final[Client] = self._started(settings) if settings.workers is not None else _named(settings)
        self.address: Final[str] = self.client.scheduler.address

    def _started(self, settings: DaskSettings) -> "Client":
        from distributed import Client, LocalCluster

        try:
            with _quietly():
                self._local = LocalCluster(
                    n_workers=settings.workers, threads_per_worker=1, dashboard_address=None, host="127.0.0.1"
                )
                client = Client(self._local, set_as_default=False)
                client.run(_leave_interrupts_to_the_run, on_error="ignore")
                return client
        except Exception as error:  # ports, processes and memory: whatever it is, there is no cluster
            if self._local is not None:
                within(_CLOSING, self._local.close)
            raise ExecutorError(f"a Dask cluster cannot be started here: {type(error).__name__}: {error}") from None

    def identity(self) -> dict[str, Any]:
        """What the scheduler says of itself and of all its workers.

        Raises:
            OSError: it does not answer.
        """
        scheduler = self.client.scheduler  # asked directly: the client's own copy loses its workers from time to time
        try:
            info: Any = self.client.sync(scheduler.identity, n_workers=-1)
        except TypeError:  # before 2025 all are told
            info = self.client.sync(scheduler.identity)
        return dict(info)

    def submit(self, function: Callable[..., Any], *arguments: Any, **options: Any) -> "Future[Any]":
        """Send a task to the scheduler, however large its arguments are: how large they may be is settled elsewhere."""
        with _quietly():
            return self.client.submit(function, *arguments, pure=False, **options)

    def close(self) -> None:
        """Leave the cluster; end it where it was started here."""
        with suppress(Exception):
            within(_CLOSING + 1, lambda: self.client.close(timeout=_CLOSING))
        if self._local is not None:
            with suppress(Exception):
                within(10, self._end_local)

    def _end_local(self) -> None:
        """End the cluster that was started here.

        Its workers are killed: nothing is left that they could do, and Dask gives each of them seconds to end, in which
        they say what they have lost.
        """
        import asyncio

        async def end_workers() -> None:
            nannies = list(self._local.workers.values())
            for nanny in nannies:
                nanny.auto_restart = False
                if nanny.pid:
                    with suppress(ProcessLookupError):
                        os.kill(nanny.pid, signal.SIGKILL)
            await asyncio.gather(*(nanny.close(timeout=_ENDING) for nanny in nannies), return_exceptions=True)

        told = logging.getLogger("distributed.nanny")
        before = told.level
        told.setLevel(logging.ERROR)  # else it says of each worker that it was killed
        try:
            self._local.sync(end_workers)
            self._local.close(timeout=5)
        finally:
            told.setLevel(before)


def _leave_interrupts_to_the_run() -> None:
    """In a worker that was started here: a terminal sends Ctrl-C to it as well, and it would end with what it runs.

    A handler, since programs that it starts would inherit that the signal is ignored.
    """
    signal.signal(signal.SIGINT, lambda number, frame: None)


def within(seconds: float, function: Callable[[], T]) -> T | None:
    """What a function gives, or None where it takes longer: it is left behind then.

    Raises:
        Exception: what the function raised in time.
    """
    import threading

    results: list[T] = []
    errors: list[Exception] = []

    def call() -> None:
        try:
            results.append(function())
        except Exception as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="metricbench-dask-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if errors:
        raise errors[0]
    return results[0] if results else None


def _quietly() -> "warnings.catch_warnings[None]":
    """Without Dask's warnings of versions that differ (what matters is checked) or of a busy port."""
    return warnings.catch_warnings(action="ignore")


def _named(settings: DaskSettings) -> "Client":
    import dask
    from distributed import Client

    address = settings.scheduler
    if settings.scheduler_file is not None:
        address = _address_in(Path(settings.scheduler_file))
    if address is None:
        address = dask.config.get("scheduler-address", None)
    if address is None and (file := dask.config.get("scheduler-file", None)) is not None:
        address = _address_in(Path(file))
    if address is None:
        raise ExecutorError(_NONE_NAMED)
    try:
        with _quietly():
            return Client(address, set_as_default=False, name="metricbench")
    except (OSError, ValueError, TypeError, ImportError) as error:
        seconds = dask.config.get("distributed.comm.timeouts.connect")
        raise ExecutorError(
            f"no Dask scheduler answers at {address} (waited up to {seconds}): see that it runs there (dask scheduler) "
            f"and that this machine reaches it; it is tls:// where the cluster wants TLS. {_brief(error)}"
        ) from None


def _address_in(path: Path) -> str:
    """The address that a scheduler file names; a scheduler that starts just now is given time to write it whole."""
    until = monotonic() + _HALF_WRITTEN
    while True:
        try:
            return str(json.loads(path.read_text("utf-8"))["address"])
        except OSError as error:
            raise ExecutorError(
                f"the scheduler file {path} cannot be read ({error.strerror}); dask scheduler --scheduler-file {path} "
                "writes it"
            ) from None
        except (ValueError, KeyError, TypeError):
            if monotonic() > until:
                raise ExecutorError(
                    f"{path} is no scheduler file: it names no address; dask scheduler --scheduler-file writes one"
                ) from None
        sleep(0.05)


def _brief(error: BaseException) -> str:
    text = str(error).strip().splitlines()
    return f"({type(error).__name__}{': ' + text[0] if text else ''})"
