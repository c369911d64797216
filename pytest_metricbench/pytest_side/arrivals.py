"""What arrives from items, kept at once: from workers on test reports, from this process directly."""

import traceback
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import pytest

from pytest_metricbench.contracts import AttemptKey
from pytest_metricbench.definition.scoring import Status
from pytest_metricbench.pytest_side.items import LEARNED, LEFT, SO_FAR
from pytest_metricbench.pytest_side.sorting import Find
from pytest_metricbench.reporting.progress import ProgressLine
from pytest_metricbench.running.attempts import Performed
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.running.crashes import crash_to_wire
from pytest_metricbench.running.runs import ExperimentRun
from pytest_metricbench.running.wire import WireError
from pytest_metricbench.store.journal import StoreError


class Arrivals:
    """Keeps what items learned, and leaves the word for it where others look."""

    def __init__(
        self, runs: Mapping[Bench, ExperimentRun], find: Find, stop: Callable[[str], None], faults: list[str]
    ) -> None:
        """Nothing has arrived yet.

        Args:
            runs: the experiments that are under way.
            find: which experiment and attempts a node id names.
            stop: ends the session where a store cannot be written, which it is told in words.
            faults: takes, in words, what cannot be kept; the session is not green then.
        """
        self._runs: Final = runs
        self._find: Final = find
        self._stop: Final = stop
        self._faults: Final = faults
        self.line: ProgressLine | None = None
        """Shows how far items of several attempts are."""

    def receive(self, report: pytest.TestReport) -> None:
        """Keep what a report carries, and put its word in that place for whoever shows it."""
        attribute = LEARNED if report.when == "call" else SO_FAR
        wire = getattr(report, attribute, None)
        if wire is None:
            return
        if isinstance(wire, str) and not wire.startswith("{"):
            self._note_left(report, *wire.partition(":"))
            return
        found = self._find(report.nodeid)
        if found is None or found[0] not in self._runs:
            self._faults.append(f"{report.nodeid}: what arrived is not kept: its experiment is not known here")
            return
        try:
            word = self._received(self._runs[found[0]], found[1], wire)
        except WireError as error:
            word = "unmeasured"
            self._faults.append(f"{report.nodeid}: what arrived cannot be read ({error}); it counts as missing")
        except StoreError as error:
            word = "unmeasured"
            self._stop(str(error))
        setattr(report, attribute, word)

    def _received(self, run: ExperimentRun, keys: Sequence[AttemptKey], wire: str) -> str:
        """Keep what arrived from a worker of an item, and give the item's word."""
        unit = run.bench.experiment.items
        if unit == "attempt":
            return run.receive(keys[0], wire)
        word = run.receive_group(keys, wire)
        if self.line is not None:
            self.line.arrived(run, keys)
        return f"{unit} {word}"

    def _note_left(self, report: pytest.TestReport, word: str, _: str, reached: str) -> None:
        """Note that an attempt was not started, where that is what its word says."""
        found = self._find(report.nodeid) if word == LEFT else None
        if found is not None and found[0] in self._runs:
            self._runs[found[0]].leave(found[1][0], reached)
            setattr(report, LEARNED, LEFT)

    def keep(self, run: ExperimentRun, key: AttemptKey, performed: Performed, status: Status) -> str:
        """Keep what an attempt of this process learned, at once."""
        try:
            word = run.keep(key, performed.new, status)
        except StoreError as error:
            self._stop(str(error))
            return "unmeasured"
        if self.line is not None and run.bench.experiment.items != "attempt":
            self.line.kept(run, key)
        return word

    def crashed(self, nodeid: str, report: pytest.TestReport) -> None:
        """Put on the report of a crash what is known of the attempts that the worker was running."""
        found = self._find(nodeid)
        if found is None:
            return
        report.when = "call"
        try:
            bench, keys = found
            if bench in self._runs:  # what it has sent is known
                keys = tuple(key for key in keys if key not in self._runs[bench].arrived)
            if keys:
                setattr(report, LEARNED, crash_to_wire(bench, keys, str(report.longrepr)))
        except Exception:  # then it counts as missing
            self._faults.append(f"{nodeid}: its crash cannot be recorded:\n{traceback.format_exc()}")
