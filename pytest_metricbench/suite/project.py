"""The tested project: its source, its tests, its options, and the processes in which its tests run."""

import math
import os
import platform
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.digests import digest_bytes, digest_value
from pytest_metricbench.processes import clean_environment
from pytest_metricbench.suite.mutations import Mutation, read_source
from pytest_metricbench.suite.places import SourcePlace, TestsPlace
from pytest_metricbench.suite.processes import Processes, Server, SuiteError
from pytest_metricbench.suite.reach import FileReach

_SLACK: Final = 10.0
"""Seconds that a mutant may take beside what its baseline took: a busy machine is no endless loop."""
_CPU_SLACK: Final = 0.1
"""Seconds of CPU time, likewise; of that a busy machine takes hardly more, and every endless loop costs them."""
_COLLECTING: Final = 0.1
"""Seconds of CPU time that collecting a file took at least."""
_LISTING: Final = 600.0
"""Seconds that collecting the whole suite may take, at least."""
BASELINE: Final = "baseline"
"""The key of the baseline's servers."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an attempt, or a collection, may take: seconds of wall time, and of CPU time or None."""

    seconds: float
    cpu: float | None


@dataclass
class Project:
    """What is the same for all attempts of one runner, and what this process has running for them."""

    folder: Path
    """Of the experiment: the working directory of the tests."""
    source: Sequence[SourcePlace]
    tests: TestsPlace
    pytest_args: Sequence[str]
    env: Mapping[str, str | None]
    timeout: float
    slowdown: float
    preload: bool
    trace: bool
    """Whether the lines that baseline attempts run are noted."""
    _processes: Processes | None = None
    _refused: SuiteError | None = None
    """Why they cannot be started."""
    _digests: dict[Path, str] = field(default_factory=dict)
    _keys: dict[str, str] = field(default_factory=dict)
    _unfit: dict[tuple[str, str], str] = field(default_factory=dict)
    """Mutant and test file -> why no fork of the baseline's server can become it."""
    _collecting: dict[str, float] = field(default_factory=dict)
    """Test file -> seconds that collecting it took, nothing mutated."""

    # ------------------------------------------------ files

    def file_of(self, nodeid: str) -> Path | None:
        """The test file of a node id: beside the experiment, or where the tests are; None where there is none."""
        name = nodeid.partition("::")[0]
        found = (Path(os.path.abspath(base / name)) for base in (self.tests.base, self.folder))
        return next((path for path in found if path.is_file() and self.tests.holds(path)), None)

    @property
    def source_files(self) -> dict[str, Path]:
        """All files of the source that are no tests: name -> file."""
        return {
            name: path
            for place in self.source
            for name, path in place.files.items()
            if place.path == self.tests.path or not self.tests.holds(path)
        }

    def key_of(self, nodeid: str) -> str:
        """Digest of what a test's lines depend on: the source, its file and what all tests share, the options.

        Raises:
            MutationError: a file cannot be read.
        """
        file = nodeid.partition("::")[0]
        if file not in self._keys:
            path = self.file_of(nodeid)
            shared = {f"tests:{name}": self._digest(found) for name, found in self.tests.support.items()}
            value = {
                "source": {name: self._digest(found) for name, found in self.source_files.items()},
                "tests": shared | {file: "" if path is None else self._digest(path)},
                "options": [list(self.pytest_args), self.preload],
                "versions": [platform.python_version(), *map(metadata.version, ("pytest", "coverage"))],
            }
            self._keys[file] = digest_value(value)
        return self._keys[file]

    def _digest(self, path: Path) -> str:
        if path not in self._digests:
            self._digests[path] = digest_bytes(read_source(path))
        return self._digests[path]

    # ------------------------------------------------ processes

    def attempts(
        self, nodeid: str, path: Path, mutation: Mutation, request: dict[str, Any]
    ) -> tuple[Server, dict[str, Any], Path]:
        """Make one attempt at a test, or several in a row at tests of its file.

        Forks of the baseline's server become the mutant, where that can be; else it gets a server of its own.

        Args:
            nodeid: of the first test.
            path: the test file.
            mutation: the mutant, or the baseline.
            request: what the fork is asked, see :class:`.inside_fork.Fork`.

        Returns:
            The server, with what is wrong where it can make none; what it says, and the folder with what was left.

        Raises:
            SuiteError: the server is gone, or cannot be started, through no fault of the mutant.
            MissingVariableError: a variable that ``env`` takes from the environment is not set there.
        """
        file, name = nodeid.partition("::")[0], self._variant(mutation)
        server = self._server(file, path, Mutation({}))
        if not mutation.changes:
            return self._asked(server, request | {"mutant": None, "sources": None, "trace": self.trace})
        if (name, file) not in self._unfit and server.problem is None:
            sources = None if server.mutant == name else _as_text(mutation.sources)
            server.mutant = name
            made = self._asked(server, request | {"mutant": name, "sources": sources, "trace": False})
            if "unfit" not in made[1]:
                return made
            self._unfit[name, file] = made[1]["unfit"]
        server = self._server(file, path, mutation)
        return self._asked(server, request | {"mutant": None, "sources": None, "trace": False})

    def _asked(self, server: Server, request: dict[str, Any]) -> tuple[Server, dict[str, Any], Path]:
        if server.problem is not None:
            return server, {}, server.scratch
        return server, *self._running().attempt(server, request)

    def _server(self, file: str, path: Path, mutation: Mutation) -> Server:
        processes = self._running()
        if file not in self._collecting:
            self._collecting[file] = self._probe(processes, path)
        limits, trace = Limits(self.timeout, None), self.trace and not mutation.changes
        if mutation.changes:
            limits = self.limits(self._collecting[file], self._collecting[file] + _COLLECTING)
        return processes.server(
            self._variant(mutation),
            file,
            lambda: self._job([str(path)], mutation, limits, trace=trace, shared=not mutation.changes),
            limits.seconds,
        )

    def limits(self, seconds: float, cpu: float) -> Limits:
        """Those of a mutant whose baseline took so many seconds of wall time, and of CPU time."""
        return Limits(
            min(self.timeout, _SLACK + self.slowdown * seconds), min(self.timeout, _CPU_SLACK + self.slowdown * cpu)
        )

    def close(self) -> None:
        """End all processes."""
        processes, self._processes = self._processes, None
        if processes is not None:
            processes.close()

    def listing(self, paths: Sequence[Path], options: Sequence[str]) -> list[dict[str, Any]]:
        """The tests that pytest collects: ``file``, ``test`` (what follows it in the node id) and ``idle``.

        ``idle`` tests are marked as skipped, or as expected to fail.

        Raises:
            SuiteError: collecting fails, or gives none.
            MissingVariableError: a variable that ``env`` takes from the environment is not set there.
        """
        limits = Limits(max(self.timeout, _LISTING), None)
        try:
            job = self._job([*map(str, paths), *options], Mutation({}), limits, listed=True)
            server = self._running().new_server(job, limits.seconds)
            if server.problem is not None:
                raise SuiteError(f"collecting {', '.join(map(str, paths))} fails: {server.problem[1]}")
            return list(server.ready["tests"])
        finally:
            self.close()  # whoever lists may well run nothing

    def _running(self) -> Processes:
        if self._refused is not None:
            raise self._refused
        if self._processes is None or self._processes.owner != os.getpid():
            try:
                self._processes = Processes(clean_environment(self.env), self._homes())
            except SuiteError as error:  # it would fail the same way for every attempt
                self._refused = error
                raise
        return self._processes

    def _probe(self, processes: Processes, path: Path) -> float:
        """Collect a file with nothing mutated, and import what it needs in the warm process; gives the seconds it took.

        What the tests change in the environment while they are imported may be meant for a dependency, so then
        nothing is imported ahead.
        """
        job = self._job([str(path)], Mutation({}), Limits(self.timeout, None), listed=True)
        began = time.monotonic()
        server = processes.new_server(job | {"bytecode": None}, self.timeout)
        seconds = time.monotonic() - began
        try:
            if self.preload and server.problem is None and server.ready["calm"] and server.ready["modules"]:
                processes.preload(server.ready["modules"], self._homes())
        finally:
            processes.end(server)
        return seconds

    def _job(
        self,
        collect: list[str],
        mutation: Mutation,
        limits: Limits,
        *,
        trace: bool = False,
        listed: bool = False,
        shared: bool = False,
    ) -> dict[str, Any]:
        expected = {name: [os.path.realpath(path)] for name, path in self._tops().items()}
        bases = [str(place.base) for place in (*self.source, self.tests) if not place.installed]
        return {
            "collect": collect,
            "arguments": list(self.pytest_args),
            "folder": str(self.folder),
            "path": list(dict.fromkeys([*bases[:-1], str(self.folder)])),
            "sources": _as_text(self._sources(mutation)),
            "homes": self._homes(),
            "expected": expected,
            "trace": trace,
            "list": listed,
            "shared": shared,
            "cpu": None if limits.cpu is None else math.ceil(limits.cpu),
            "bytecode": str(self._running().scratch / "bytecode"),
        }

    def _sources(self, mutation: Mutation) -> Mapping[str, bytes]:
        """What the overlay holds: what a mutant changes; of the baseline the source as it is, to be proven too."""
        if mutation.changes:
            return mutation.sources
        files = (path for path in self.source_files.values() if path.suffix == ".py")
        return {os.path.realpath(path): read_source(path) for path in files}

    def _homes(self) -> list[str]:
        return sorted(map(os.path.realpath, self._tops().values()))

    def _tops(self) -> dict[str, Path]:
        """The modules and packages of the source by their names, those that are tests left out."""
        return {
            name: path
            for place in self.source
            for name, path in place.tops.items()
            if path == place.path or not self.tests.holds(path)
        }

    @staticmethod
    def _variant(mutation: Mutation) -> str:
        return digest_value(dict(mutation.digests)) if mutation.changes else BASELINE

    # ------------------------------------------------ what baseline attempts ran

    def reached(self, imported: Mapping[str, Any], arcs: Mapping[str, Any]) -> dict[str, FileReach]:
        """What was run of each file of the source, while its test's file was collected and in the test itself.

        Raises:
            MutationError: a file cannot be read.
        """
        names = {os.path.realpath(path): name for name, path in self.source_files.items()}
        found = {names[path] for path in (*imported, *arcs) if path in names}
        by_name = {name: path for path, name in names.items()}
        return {
            name: FileReach(
                self._digest(Path(by_name[name])), imported.get(by_name[name], ()), arcs.get(by_name[name], ())
            )
            for name in sorted(found)
        }


def _as_text(sources: Mapping[str, bytes]) -> dict[str, str]:
    """Sources with a character for each byte, as they go over a channel."""
    return {path: source.decode("latin-1") for path, source in sources.items()}
