"""Pages for tests: made of small tables, looked at with a parser and in headless Chromium."""

import re
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path

from pytest_metricbench.analysis.comparing import compared
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.reporting.html import html_page
from pytest_metricbench.reporting.html_origin import Origin

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")

ORIGIN = Origin("pytest experiment.yml", "sha256:" + "0" * 64, "experiment.yml", 7, {"runner": "command"}, {}, None)

VOID = frozenset({"meta", "link", "br", "hr", "img", "input", "path", "circle", "use", "rect"})
OPTIONAL_END = frozenset({"td"})
"""Elements whose end may be left out, and is, in the kill matrix."""


def browser(profile: Path) -> list[str]:
    """The command of a headless browser that asks nobody anything, with a profile of its own."""
    assert CHROMIUM is not None
    flags = ("headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-background-networking")
    more = ("disable-component-update", "disable-sync", "hide-scrollbars", "window-size=1200,900")
    return [CHROMIUM, *(f"--{flag}" for flag in (*flags, *more)), f"--user-data-dir={profile}"]


def loaded(page: Path | str, profile: Path) -> tuple[str, str]:
    """What a browser makes of a page once its scripts have run, and what it says on its console."""
    address = page.as_uri() if isinstance(page, Path) else page
    done = subprocess.run(
        [*browser(profile), "--enable-logging=stderr", "--v=0", "--dump-dom", address],
        check=True,
        capture_output=True,
        timeout=60,
    )
    return done.stdout.decode("utf-8"), done.stderr.decode("utf-8", "replace")


def page_of(results: Results, origin: Origin = ORIGIN, earlier: Results | None = None) -> str:
    """The page of results, compared with earlier ones where there are some."""
    summary = summarize(results)
    if earlier is not None:
        summary = compared(summary, summarize(earlier), "summary.json", results.experiment.gates)
    return html_page(results, summary, origin)


@dataclass
class Element:
    """An element of a page."""

    tag: str
    attributes: dict[str, str]
    parent: "Element | None" = None
    children: list["Element | str"] = field(default_factory=list)

    def walk(self) -> Iterator["Element"]:
        """This element and all within it."""
        yield self
        for child in self.children:
            if isinstance(child, Element):
                yield from child.walk()

    def all(self, tag: str, cls: str | None = None) -> list["Element"]:
        """All elements of a tag, and of a class."""
        return [
            found
            for found in self.walk()
            if found.tag == tag and (cls is None or cls in found.attributes.get("class", "").split())
        ]

    def with_id(self, name: str) -> "Element":
        """The one element of that id."""
        (found,) = [element for element in self.walk() if element.attributes.get("id") == name]
        return found

    @property
    def text(self) -> str:
        """Its text, as it stands."""
        return "".join(child if isinstance(child, str) else child.text for child in self.children)

    @property
    def words(self) -> str:
        """Its text with blanks and newlines as one blank."""
        return re.sub(r"\s+", " ", self.text).strip()

    def rows(self) -> list[list[str]]:
        """A table's body, cell by cell."""
        (body,) = self.all("tbody")
        return [
            [cell.words for cell in row.children if isinstance(cell, Element) and cell.tag in ("th", "td")]
            for row in body.all("tr")
        ]


class Reader(HTMLParser):
    """Reads a page strictly: what is opened is closed, in order."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Element("#", {})
        self._at = self.root

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"<{tag}> has an attribute twice"
        if tag in ("td", "tr", "th") and self._at.tag in OPTIONAL_END:
            assert self._at.parent is not None
            self._at = self._at.parent
        element = Element(tag, {name: value or "" for name, value in attrs}, self._at)
        self._at.children.append(element)
        if tag not in VOID:
            self._at = element

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self._at.children.append(Element(tag, {name: value or "" for name, value in attrs}, self._at))

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if self._at.tag in OPTIONAL_END and tag != self._at.tag:
            assert self._at.parent is not None
            self._at = self._at.parent
        assert self._at.tag == tag, f"</{tag}> ends <{self._at.tag}>"
        assert self._at.parent is not None
        self._at = self._at.parent

    def handle_data(self, data: str) -> None:
        self._at.children.append(data)


def read(page: str) -> Element:
    """A page as elements; fails where it is not well-formed."""
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader._at is reader.root, f"<{reader._at.tag}> is not closed"
    return reader.root
