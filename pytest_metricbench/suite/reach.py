"""What a baseline attempt leaves as evidence: which lines of the source its test ran, and what follows for a mutant.

``reach.json``, the same bytes for the same lines::

    {"metricbench": 1, "key": DIGEST, "complete": true, "passed": true,
     "files": {"shop/prices.py": {"digest": DIGEST, "imported": [[-1, 1], [1, 3], ...], "test": [[4, 5], ...]}}}

An arc goes from a line to the next one; a negative number stands for entering or leaving code that begins at that
line. ``imported`` ran while pytest collected the test's file, once for all its tests; ``test`` in the attempt itself.
How long the test took stands in ``output.json``, which is no evidence.
"""

import json
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from pytest_metricbench.answers import read_json_file
from pytest_metricbench.contracts import FORMAT_VERSION, OUTPUT_FILE, ContractError
from pytest_metricbench.plain_files import replace_file
from pytest_metricbench.suite.mutations import Mutation

REACH_FILE: Final = "reach.json"
_LIMIT: Final = 64 << 20
"""Bytes that are read of one."""

Arcs: TypeAlias = Sequence[Sequence[int]]


@dataclass(frozen=True, slots=True)
class FileReach:
    """What ran of one file of the source."""

    digest: str
    """Of the file, as it was."""
    imported: Arcs
    test: Arcs


@dataclass(frozen=True, slots=True)
class Reach:
    """What a test ran of the source, in one baseline attempt."""

    key: str
    """Digest of what it depends on: source, test file, options; another one says that it is of another day."""
    complete: bool
    """False where lines may have run unseen: in a process that the test started, or a thread it left behind."""
    passed: bool
    files: Mapping[str, FileReach]
    seconds: float = 0.0
    """Of wall time that the test took."""
    cpu: float = 0.0
    """Seconds of CPU time, likewise."""


@dataclass(frozen=True, slots=True)
class Ran:
    """What is remembered of a baseline attempt while mutants are run: lines in place of arcs."""

    complete: bool
    passed: bool
    seconds: float
    cpu: float
    lines: Mapping[str, tuple[frozenset[int], frozenset[int]]]
    """File -> the lines that ran while the test's file was collected, and in the test."""

    def leads_to(self, mutation: Mutation) -> bool:
        """Whether the test may tell the mutant from the baseline: it ran a line that leads to a change."""
        if not self.complete:
            return True
        return any(
            not lines.isdisjoint(leading)
            for name, leading in mutation.leading.items()
            for lines in self.lines.get(name, ())
        )


class Memory:
    """What baseline attempts ran; what one left is read once."""

    def __init__(self) -> None:
        """Nothing is read yet."""
        self._ran: Final[dict[Path, tuple[str, Ran]]] = {}
        self._shared: Final[dict[frozenset[int], frozenset[int]]] = {}
        """All tests of a file import the same lines."""

    def of(self, folders: Iterable[Path], key: str) -> list[Ran]:
        """What the attempts ran that left these folders; those of another source, or without a trace, are left out.

        Args:
            folders: workspaces of baseline attempts of one task.
            key: of today's source and tests.
        """
        found = []
        for folder in folders:
            if folder not in self._ran:
                try:
                    reach = read_reach(folder)
                except ContractError:
                    continue
                self._ran[folder] = (reach.key, self._slim(reach))
            known, ran = self._ran[folder]
            if known == key:
                found.append(ran)
        return found

    def _slim(self, reach: Reach) -> Ran:
        lines = {name: (self._lines(file.imported), self._lines(file.test)) for name, file in reach.files.items()}
        return Ran(reach.complete, reach.passed, reach.seconds, reach.cpu, lines)

    def _lines(self, arcs: Arcs) -> frozenset[int]:
        lines = lines_of(arcs)
        return self._shared.setdefault(lines, lines)


def lines_of(arcs: Arcs) -> frozenset[int]:
    """The lines, from 1, that arcs lead from or to."""
    return frozenset(line for arc in arcs for line in arc if line > 0)


def write_reach(folder: Path, reach: Reach) -> None:
    """Leave it in an attempt's workspace.

    Raises:
        OSError: the folder cannot be written.
    """
    files = {
        name: {"digest": file.digest, "imported": file.imported, "test": file.test}
        for name, file in sorted(reach.files.items())
    }
    content = {
        "metricbench": FORMAT_VERSION,
        "key": reach.key,
        "complete": reach.complete,
        "passed": reach.passed,
        "files": files,
    }
    for name, value in ((REACH_FILE, content), (OUTPUT_FILE, {"seconds": reach.seconds, "cpu": reach.cpu})):
        with os.fdopen(replace_file(folder / name), "w", encoding="ascii") as file:
            file.write(json.dumps(value, separators=(",", ":")) + "\n")  # dump, in pieces, takes ten times as long


def read_reach(folder: Path) -> Reach:
    """What a baseline attempt left in its workspace.

    Raises:
        ContractError: there is none, or it is not of this form.
    """
    answer = read_json_file(folder / REACH_FILE, _LIMIT)
    try:
        if answer["metricbench"] != FORMAT_VERSION:
            raise ContractError(f"{REACH_FILE} is of format version {answer['metricbench']}")
        files = {
            name: FileReach(str(file["digest"]), _arcs(file["imported"]), _arcs(file["test"]))
            for name, file in answer["files"].items()
        }
        took = read_json_file(folder / OUTPUT_FILE)
        seconds, cpu = float(took["seconds"]), float(took.get("cpu", took["seconds"]))
        return Reach(str(answer["key"]), answer["complete"] is True, answer["passed"] is True, files, seconds, cpu)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ContractError(f"{REACH_FILE} is not what a baseline attempt leaves: {error!r}") from None


def _arcs(value: Any) -> tuple[tuple[int, int], ...]:
    return tuple((int(start), int(end)) for start, end in value)
