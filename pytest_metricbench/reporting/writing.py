"""Writes an experiment's section with pytest's terminal reporter: styles, width, and where the whole answer is."""

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.reporting.terminal import section_lines, section_title


def write_section(reporter: pytest.TerminalReporter, summary: Summary, path: Path, notes: Sequence[str]) -> None:
    """Print the section of one experiment.

    Args:
        reporter: where to print; its width and colours are used.
        summary: the answer.
        path: where the answer was written.
        notes: what was done beside it, in words.
    """
    width = reporter.config.get_terminal_writer().fullwidth
    reporter.write_sep("=", section_title(summary))
    shown_path = os.path.relpath(path, reporter.config.invocation_params.dir)
    brief = reporter.verbosity < 0
    for line in section_lines(summary, width=width, brief=brief, summary_path=shown_path):
        for span in line.spans:
            reporter.write(span.text, **({span.style: True} if span.style else {}))
        reporter.line("")
    for note in notes:
        reporter.line(f"note: {note}")
