"""What a folder holds that an experiment can be about, the likeliest first."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from pytest_metricbench.starting.agents import find_command, find_python_agent
from pytest_metricbench.starting.finding import Finding, Kind
from pytest_metricbench.starting.projects import find_dataset, find_suite
from pytest_metricbench.starting.tables import find_table

_FINDERS: Final[Mapping[Kind, Callable[[Path], Finding | None]]] = {
    "harbor": find_dataset,
    "table": find_table,
    "python": find_python_agent,
    "suite": find_suite,
    "command": find_command,
}


def look(folder: Path) -> list[Finding]:
    """Everything in a folder that an experiment can be about, at most one of a kind, the likeliest first.

    What can hardly be anything else comes before what may be: a table that names versions, tasks and scores before
    the tests of a project, and those before a function that only might be an agent. Nothing is imported or run.
    """
    if not os.path.isdir(folder):
        return []
    found = [finding for find in _FINDERS.values() if (finding := find(folder)) is not None]
    return sorted(found, key=lambda finding: not finding.sure)
