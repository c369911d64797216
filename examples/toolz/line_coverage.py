"""The coverage system of this example: the share of the library's executable lines that a subset's tests run.

``request.json`` names the subset's tasks and, for each, the files its baseline attempts left; ``coverage.sqlite``
among them is coverage.py's record of the lines that ran. Which lines could run is coverage.py's word too, so the
figure is the one ``coverage report`` prints. ``goals.json`` says which task runs which line.
"""

import bisect
import importlib.metadata
import importlib.util
import json
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Any

import coverage

COVERAGE_DATA = "coverage.sqlite"


class Module:
    """One measured module: its executable lines, and the lines coverage.py leaves out of account."""

    def __init__(self, name: str, analysis: coverage.Coverage) -> None:
        spec = importlib.util.find_spec(name)
        if spec is None or spec.origin is None:
            sys.exit(f"{name} is not installed")
        self.name = name
        self.file = spec.origin
        _, self.statements, excluded, _, _ = analysis.analysis2(self.file)
        self.excluded = frozenset(excluded)

    def executed(self, lines: list[int]) -> set[int]:
        """The statements that the recorded lines belong to: a statement of several lines is known by its first."""
        return {
            self.statements[bisect.bisect_right(self.statements, line) - 1]
            for line in lines
            if line not in self.excluded and line >= self.statements[0]
        }

    def goal(self, line: int) -> str:
        return f"{self.name}:{line}"


def main() -> None:
    request = json.loads(Path("request.json").read_text(encoding="utf-8"))
    settings = request["settings"]
    if importlib.metadata.version("toolz") != settings["toolz"]:
        sys.exit(f"lines are counted in the source of toolz {settings['toolz']}, and another version is installed")
    analysis = coverage.Coverage(data_file=None, config_file=False)
    modules = [Module(name, analysis) for name in settings["modules"]]
    unknown = [task for task in request["tasks"] if not data_files(request, task)]
    if unknown:
        answer({"value": None, "reason": f"no {COVERAGE_DATA} among the evidence of {', '.join(unknown)}"})
        return
    universe = [module.goal(line) for module in modules for line in module.statements]
    by_task = {task: sorted(covered_by(data_files(request, task), modules)) for task in request["tasks"]}
    covered = set().union(*by_task.values())
    Path("goals.json").write_text(json.dumps({"universe": universe, "by_task": by_task}), encoding="utf-8")
    answer({"value": len(covered) / len(universe)})


def answer(response: dict[str, Any]) -> None:
    Path("response.json").write_text(json.dumps(response), encoding="utf-8")


def data_files(request: dict[str, Any], task: str) -> list[Path]:
    return [Path(file["path"]) for file in request["evidence"][task] if file["name"] == COVERAGE_DATA]


def covered_by(files: list[Path], modules: list[Module]) -> set[str]:
    """The goals that the recorded attempts of one task cover."""
    covered: set[str] = set()
    with tempfile.TemporaryDirectory() as folder:
        for file in files:
            # Evidence must stay as it is, and SQLite may write to a database that it was only asked to read.
            copy = shutil.copy(file, folder)
            data = coverage.CoverageData(copy)
            data.read()
            # The record names files where they were when the attempt ran, maybe on another machine.
            lines = {tuple(Path(name).parts[-2:]): data.lines(name) or [] for name in data.measured_files()}
            data.close()
            for module in modules:
                recorded = lines.get(tuple(Path(module.file).parts[-2:]), [])
                covered.update(module.goal(line) for line in module.executed(recorded))
    return covered


if __name__ == "__main__":
    main()
