"""Which experiment and which attempts a node id names, on the controller."""

import os
from pathlib import Path
from typing import Final

import pytest

from pytest_metricbench.contracts import AttemptKey
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.pytest_side.benches import benches
from pytest_metricbench.pytest_side.opening import load_conftests
from pytest_metricbench.reporting.request_reports import COVERAGE
from pytest_metricbench.running.bench import Bench


class NamedAttempts:
    """What the node ids of a session name.

    Under pytest-xdist the controller collects nothing: an experiment is loaded when the first id names its file.
    """

    def __init__(self, session: pytest.Session) -> None:
        """Nothing is loaded yet."""
        self._session: Final = session
        self._known: Final[dict[str, Bench | None]] = {}
        """The file part of node ids -> the experiment it stands for."""

    def find(self, nodeid: str) -> tuple[Bench, tuple[AttemptKey, ...]] | None:
        """The experiment and the attempts that a node id names; None for anything but an item of ours."""
        file, *path = nodeid.split("::")
        if not 2 <= len(path) <= 3 or not file.endswith((".yml", ".yaml")) or path[1] == COVERAGE:
            return None
        if file not in self._known:
            self._known[file] = self._load(file)
        bench = self._known[file]
        keys = None if bench is None else bench.names.attempts(path)
        return None if bench is None or keys is None else (bench, keys)

    def file_of(self, bench: Bench) -> str:
        """The file part of the node ids of an experiment of which an id was found."""
        return next(file for file, known in self._known.items() if known is bench)

    def _load(self, file: str) -> Bench | None:
        config = self._session.config
        path = Path(os.path.normpath(config.rootpath / file))
        for bench in benches(config):
            if bench.experiment.path == path:
                return bench
        if not path.is_file():
            return None
        load_conftests(self._session, path)
        try:
            return benches(config).load(path, config, self._session.gethookproxy(path))
        except DefinitionError:
            return None  # the workers said so when they collected it
