"""Two runs in which everything changed, and Markdown read back as a reader sees it."""

from html.parser import HTMLParser
from typing import Any

import pytest

from pytest_metricbench.analysis.summary import Summary
from tests.analysis.results_builder import CaseTable
from tests.comparing.comparing_lab import BASE, table, with_gates

SUBSETS = {"s1": ["a"], "s2": ["b", "c"], "s3": ["a", "b"], "s4": ["c"]}
GATES = [
    "baseline pass@1 >= 0.5",
    "no new survivors",
    "significant baseline pass@1 drop <= 0",
    "x coverage drop <= 0.1",
]


def before(**fields: Any) -> CaseTable:
    mutants = {"m": {**BASE, "c": [0] * 5}, "n": BASE, "gone": BASE, "ill": {**BASE, "b": [0] * 5}}
    coverage = {"x": {"s1": 0.1, "s2": 0.5, "s3": 0.7, "s4": 0.6, "pool": 0.9}}
    return table(mutants, subsets=SUBSETS, coverage=coverage, **fields)


def after(**fields: Any) -> CaseTable:
    base = {**BASE, "a": [1, 1, 0, None, 1]}
    mutants = {"m": base, "n": {**base, "c": [0] * 5}, "ill": {task: [None] * 5 for task in BASE}, "added": base}
    coverage = {"x": {"s1": 0.7, "s2": 0.1, "s3": 0.1, "s4": 0.2, "pool": 0.6}}
    descriptions = {"m": "Never checks | the <b>date</b>.", "added": "Is new."}
    return table(mutants, base=base, subsets=SUBSETS, coverage=coverage, descriptions=descriptions, **fields)


def changed(gates: list[str] | None = None, **settings: Any) -> Summary:
    return with_gates(GATES if gates is None else gates, before(), after(), **settings)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.rows: list[list[str]] = []
        self.links: list[str] = []
        self.text: list[str] = []
        self._in_cell = False

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append("")
            self._in_cell = True
        self.links += [value for name, value in attrs if name in ("href", "src")]

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        self.text.append(data)
        if self._in_cell:
            self.rows[-1][-1] += data


def rendered(markdown: str) -> _Reader:
    """Markdown as its readers see it: with tables and struck text, and with HTML left as it is."""
    markdown_it = pytest.importorskip("markdown_it")
    reader = _Reader()
    html = markdown_it.MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"]).render(markdown)
    reader.feed(html)
    return reader
