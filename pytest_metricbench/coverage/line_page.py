"""coverage.py's HTML report of a subset: its lines, and for each the tasks that ran it."""

import os
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from pytest_metricbench.contracts import CoverageError
from pytest_metricbench.coverage.line_data import TaskRan
from pytest_metricbench.coverage.line_source import SourceFile

PAGE_FOLDER: Final = "html"
"""Where a request's workspace holds the report: ``html/index.html``."""


def write_page(folder: Path, title: str, files: Mapping[str, SourceFile], ran: Mapping[str, Sequence[TaskRan]]) -> None:
    """Write the report into a folder that does not exist yet.

    Args:
        folder: where to.
        title: of its pages.
        files: the source.
        ran: task id -> what its attempts ran.

    Raises:
        CoverageError: it cannot be written.
    """
    import coverage
    from coverage.exceptions import CoverageException

    branch = all(attempt.has_arcs for attempts in ran.values() for attempt in attempts)
    with tempfile.TemporaryDirectory(prefix="metricbench-line-") as scratch:
        measured = coverage.Coverage(data_file=os.path.join(scratch, "data"), config_file=False, branch=branch)
        data = measured.get_data()
        for task, attempts in ran.items():
            data.set_context(task)
            for attempt in attempts:
                known = {str(files[name].path): part for name, part in attempt.files.items() if name in files}
                if branch:
                    data.add_arcs({path: part.arcs or () for path, part in known.items()})
                else:
                    data.add_lines({path: part.lines for path, part in known.items()})
        data.touch_files([str(file.path) for file in files.values()])
        try:
            measured.html_report(directory=str(folder), title=title, show_contexts=True)
        except (CoverageException, OSError) as error:
            raise CoverageError(f"the HTML report cannot be written: {error}") from None
        finally:
            data.close(force=True)
