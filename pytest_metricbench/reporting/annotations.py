"""Survivors and broken gates where a CI system shows them: beside the lines of the experiment file.

GitHub reads workflow commands from the output of a step (``::warning file=..,line=..,title=..::message``), GitLab a
code quality report, a JSON file that the job names as an artifact.
"""

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from pytest_metricbench.analysis.summary import CaseSummary, GateResult, Summary
from pytest_metricbench.definition.experiment import Case, Experiment
from pytest_metricbench.messages import counted
from pytest_metricbench.plain_files import open_regular, write_whole
from pytest_metricbench.reporting.layout import one_line, shortened

MOST_OF_A_KIND: Final = 10
"""Errors, and warnings, that GitHub shows of one step."""
_MOST_OF_MESSAGE: Final = 500
_MOST_OF_FILE: Final = 1 << 24
_SEVERITIES: Final = {"error": "major", "warning": "minor"}


class AnnotationError(Exception):
    """A report of annotations cannot be written; the message says why."""


@dataclass(frozen=True, slots=True)
class Annotation:
    """Something to show beside a line of a file."""

    level: Literal["error", "warning"]
    kind: str
    """``metricbench-gate`` or ``metricbench-survivor``."""
    key: str
    """What it is about, the same in every run."""
    title: str
    message: str
    file: Path
    line: int
    """From 1."""


def annotations(experiment: Experiment, summary: Summary) -> list[Annotation]:
    """Broken gates, then mutants that survive and did not before, then the other survivors.

    Args:
        experiment: where everything stands.
        summary: of this run.
    """
    survivors = list(_survivors(experiment, summary))
    survivors.sort(key=lambda pair: not pair[0])
    return [*_gates(experiment, summary.gates), *(found for _, found in survivors)]


def _gates(experiment: Experiment, gates: Sequence[GateResult]) -> Iterator[Annotation]:
    broken = [gate for gate in gates if gate.holds is False]
    lines = _lines_of(experiment.path, [gate.text for gate in broken]) if broken else {}
    for gate in broken:
        title = f"gate does not hold: {one_line(gate.text)}"
        message = one_line(gate.reason or title)
        line = lines.get(gate.text, 1)
        yield Annotation("error", "metricbench-gate", gate.text, title, message, experiment.path, line)


def _lines_of(file: Path, texts: Sequence[str]) -> dict[str, int]:
    """The last line of a file that has each text: gates stand at its end; none where it cannot be read or found."""
    try:
        with open_regular(file) as opened:
            lines = opened.read(_MOST_OF_FILE).decode("utf-8", "replace").splitlines()
    except OSError:
        return {}
    return {text: number for number, line in enumerate(lines, start=1) for text in texts if text in line}


def _survivors(experiment: Experiment, summary: Summary) -> Iterator[tuple[bool, Annotation]]:
    """Whether it is new, and the annotation."""
    compared = summary.comparison.cases if summary.comparison is not None else {}
    for case in experiment.cases:
        found: CaseSummary = summary.cases[case.id]
        new = {change.mutant for change in compared[case.id].new_survivors} if case.id in compared else frozenset[str]()
        lines = {mutant.id: mutant.line for mutant in case.mutants}
        for survivor in found.survivors:
            is_new = survivor.mutant in new
            title = f"{'new survivor' if is_new else 'survivor'}: {case.id}::{survivor.mutant}"
            message = "; ".join(filter(None, (one_line(survivor.description).rstrip("."), _unseen(survivor.cells))))
            key = f"{case.id}::{survivor.mutant}"
            file, line = _file_of(experiment, case), lines[survivor.mutant]
            yield is_new, Annotation("warning", "metricbench-survivor", key, title, message, file, line)


def _unseen(cells: int) -> str:
    tasks = f"none of {counted(cells, 'task')} tells" if cells > 1 else "its one task does not tell"
    return f"{tasks} it from the baseline"


def _file_of(experiment: Experiment, case: Case) -> Path:
    return case.file if case.file is not None else experiment.path


# ---------------------------------------------------------------- GitHub


def asks_github(environment: Mapping[str, str]) -> bool:
    """Whether the output is read by a GitHub runner."""
    return environment.get("GITHUB_ACTIONS") == "true"


def github_lines(found: Sequence[Annotation], root: Path) -> list[str]:
    """Workflow commands, a line each; of more than GitHub shows of a kind the last says how many are left out.

    Args:
        found: most important first.
        root: of the repository; files below it are named relative to it.
    """
    lines = []
    for level in ("error", "warning"):
        of_level = [annotation for annotation in found if annotation.level == level]
        shown = of_level if len(of_level) <= MOST_OF_A_KIND else of_level[: MOST_OF_A_KIND - 1]
        lines += [_command(annotation, root) for annotation in shown]
        if len(of_level) > len(shown):
            more = f"and {len(of_level) - len(shown)} more: see summary.json"
            lines.append(f"::{level} title=metricbench::{_data(more)}")
    return lines


def _command(annotation: Annotation, root: Path) -> str:
    properties = {
        "file": _relative(annotation.file, root),
        "line": str(annotation.line),
        "title": shortened(annotation.title, _MOST_OF_MESSAGE),
    }
    given = ",".join(f"{name}={_property(value)}" for name, value in properties.items())
    return f"::{annotation.level} {given}::{_data(shortened(annotation.message, _MOST_OF_MESSAGE))}"


def _data(text: str) -> str:
    """A message as a command carries it."""
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    """The value of a property, which ends at a comma or colon."""
    return _data(text).replace(":", "%3A").replace(",", "%2C")


def _relative(file: Path, root: Path) -> str:
    return os.path.relpath(file, root).replace(os.sep, "/")


# ---------------------------------------------------------------- GitLab


class CodeQualityReport:
    """A GitLab code quality report of a session: all its experiments in one file."""

    def __init__(self, file: Path, root: Path) -> None:
        """Nothing is written yet.

        Args:
            file: the report, absolute.
            root: of the repository; GitLab wants files named relative to it.
        """
        self._file, self._root = Path(os.path.realpath(file)), root
        self._entries: Final[list[dict[str, object]]] = []

    def check(self) -> None:
        """See, before anything runs, that the report can be written.

        Raises:
            AnnotationError: it cannot.
        """
        file = self._file
        if os.path.lexists(file) and not file.is_file():
            raise AnnotationError(f"{file} is no file; name another one")
        if not file.parent.is_dir():
            raise AnnotationError(f"there is no folder {file.parent}; make it, or name another file")
        if not os.access(file.parent, os.W_OK | os.X_OK):
            raise AnnotationError(f"{file} cannot be written; name another file")

    def write(self, experiment: str, found: Sequence[Annotation]) -> str:
        """Write the report with the annotations of one more experiment; a sentence that says so.

        Raises:
            AnnotationError: it cannot be written.
        """
        self._entries.extend(_entry(experiment, annotation, self._root) for annotation in found)
        try:
            write_whole(self._file, json.dumps(self._entries, indent=1) + "\n")
        except OSError as error:
            raise AnnotationError(f"{self._file}: {error.strerror}") from None
        return f"wrote {self._file}"


def _entry(experiment: str, annotation: Annotation, root: Path) -> dict[str, object]:
    """One finding; its fingerprint says whether two reports mean the same one, wherever it stands in the file."""
    identity = "\0".join((experiment, annotation.kind, annotation.key))
    return {
        "description": shortened(f"{annotation.title}: {annotation.message}", _MOST_OF_MESSAGE),
        "check_name": annotation.kind,
        "fingerprint": hashlib.sha256(identity.encode("utf-8", "backslashreplace")).hexdigest(),
        "severity": _SEVERITIES[annotation.level],
        "location": {"path": _relative(annotation.file, root), "lines": {"begin": annotation.line}},
    }
