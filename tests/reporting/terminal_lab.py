"""Summaries of tables, and what the terminal says of them."""

import itertools
from typing import Any

from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.reporting.terminal import section_lines
from tests.analysis.results_builder import CaseTable, build


def summary_of(table: CaseTable | dict[str, CaseTable], **given_settings: Any) -> Summary:
    return summarize(build(table, **{"ks": [1, 5], **given_settings}))


def rendered(summary: Summary, width: int = 80, **options: Any) -> list[str]:
    lines = [line.text for line in section_lines(summary, width=width, **options)]
    assert all(len(text) <= width and text == text.rstrip() for text in lines), lines
    assert lines[0]
    assert lines[-1]
    assert all(a or b for a, b in itertools.pairwise(lines)), "no two empty lines in a row"
    return lines


def block_of(lines: list[str], label: str) -> list[str]:
    """The lines of the block that starts with a label."""
    start = next(index for index, text in enumerate(lines) if text.startswith(label))
    end = next((index for index in range(start + 1, len(lines)) if lines[index][:1].strip() or not lines[index]), None)
    return [text[16:] for text in lines[start:end]]
