"""The page as a document: well-formed, self-contained, readable without styles, scripts, colours or sight."""

import base64
import hashlib
import re
import threading
from functools import cache
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.definition.experiment import Gate
from pytest_metricbench.reporting.plots import size_colours
from tests.analysis.results_builder import CaseTable, build
from tests.reporting_html.html_lab import CHROMIUM, Element, loaded, page_of, read

TASKS = [f"t{n}" for n in range(6)]


def table(**changes: object) -> CaseTable:
    """Two mutants that are caught, one that survives, six tasks, twelve subsets of two sizes, two systems."""
    passing = {task: [1.0, 1.0] for task in TASKS}
    subsets = {f"s{n}": [TASKS[n], TASKS[(n + 1) % 6]] for n in range(6)}
    subsets |= {f"l{n}": [TASKS[(n + i) % 6] for i in range(4)] for n in range(6)}
    goals = {task: [f"g{i}" for i in range(n + 1)] for n, task in enumerate(TASKS)}
    given: dict[str, Any] = {
        "outcomes": {
            "baseline": passing,
            "m1": passing | {"t1": [0.0, 0.0]},
            "m2": passing | {"t1": [0.0, 0.0], "t4": [0.0, None]},
            "m3": passing,
        },
        "subsets": subsets,
        "goals": {"line": goals, "tools": {task: [f"g{n % 3}"] for n, task in enumerate(TASKS)}},
    }
    return CaseTable(**(given | changes))


GATE = Gate("baseline pass@1 >= 0.9", None, "baseline", "pass@k", 1, ">=", 0.9)
SHAPES = {
    "one case": lambda: build(table(), gates=[GATE], ks=(1, 2)),
    "several cases": lambda: build({"a": table(), "b": table(subsets={}), "c": table(goals={})}),
    "only a baseline": lambda: build(CaseTable({"baseline": {"t": [1.0]}})),
    "nothing measured": lambda: build(
        table(outcomes={v: {t: ["unmeasured", "missing"] for t in TASKS} for v in ("baseline", "m")})
    ),
    "a part": lambda: build(
        table(outcomes={"baseline": {t: [1.0] for t in TASKS}, "m": {t: ["outside"] for t in TASKS}}),
        part="6 of 12 attempts selected",
    ),
    "everything died": lambda: build(
        table(outcomes={v: {t: [None, "TimeOut"] for t in TASKS} for v in ("baseline", "m")})
    ),
    "controls and equivalents": lambda: build(table(controls=["m3"], equivalent={"m2": "the same"})),
    "not run": lambda: build(
        table(
            outcomes={
                "baseline": {t: [1.0] for t in TASKS},
                "m": {t: ["not_reached" if t != "t1" else "not_needed"] for t in TASKS},
            }
        )
    ),
    "many tasks": lambda: build(
        CaseTable({v: {f"t{n}": [float(v != "m" or n != 3)] for n in range(60)} for v in ("baseline", "m")})
    ),
}


@pytest.fixture(scope="module", params=list(SHAPES))
def page(request: pytest.FixtureRequest) -> Element:
    return read(page_of(SHAPES[request.param]()))


def test_it_is_one_document_with_a_title_a_language_and_an_order(page: Element) -> None:
    (html,) = page.all("html")
    assert html.attributes["lang"] == "en"
    assert page.all("title")[0].text == "built: metricbench report"
    assert len(page.all("h1")) == len(page.all("main")) == 1
    levels = [int(element.tag[1]) for element in page.walk() if re.fullmatch("h[1-6]", element.tag)]
    assert levels[0] == 1
    assert all(after - before <= 1 for before, after in pairwise(levels)), levels


def test_ids_are_unique_and_what_refers_to_one_finds_it(page: Element) -> None:
    ids = [element.attributes["id"] for element in page.walk() if "id" in element.attributes]
    assert len(ids) == len(set(ids))
    for element in page.walk():
        for name in ("aria-labelledby", "aria-describedby"):
            assert set(element.attributes.get(name, "").split()) <= set(ids)
        if "href" in element.attributes:
            assert element.attributes["href"].startswith("#")
            assert element.attributes["href"][1:] in ids
        for value in element.attributes.values():
            for reference in re.findall(r"url\(#([^)]+)\)", value):
                assert reference in ids


def test_nothing_is_fetched_and_nothing_is_styled_or_run_inline(page: Element) -> None:
    for element in page.walk():
        assert element.tag not in ("link", "img", "iframe", "object", "embed", "base", "form")
        assert not {"src", "style", "srcset", "action"} & element.attributes.keys()
        assert not [name for name in element.attributes if name.startswith("on")]
    css = page.all("style")[0].text
    assert "url(" not in css
    assert "@import" not in css


def test_its_policy_allows_its_own_style_and_script_and_nothing_else(page: Element) -> None:
    (policy,) = [
        found.attributes["content"]
        for found in page.all("meta")
        if found.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
    assert rules.pop("default-src") == rules.pop("base-uri") == rules.pop("form-action") == "'none'"
    for tag in ("style", "script"):
        (own,) = page.all(tag)
        digest = base64.b64encode(hashlib.sha256(own.text.encode()).digest()).decode()
        assert rules.pop(f"{tag}-src") == f"'sha256-{digest}'"
    assert not rules


def test_tables_have_a_caption_and_their_headings_a_scope(page: Element) -> None:
    tables = page.all("table")
    assert tables
    for found in tables:
        assert found.all("caption")[0].words
        assert all(head.attributes.get("scope") in ("col", "row") for head in found.all("th"))
        columns = len(found.all("thead")[0].all("th"))
        assert all(len(row) == columns for row in found.rows()), found.all("caption")[0].words


def test_pictures_have_a_text_in_their_place(page: Element) -> None:
    for svg in page.all("svg"):
        if svg.attributes.get("aria-hidden") == "true":
            continue
        title, description = svg.attributes["aria-labelledby"].split()
        assert svg.attributes["role"] == "img"
        assert svg.with_id(title).words
        assert "table below" in svg.with_id(description).words
    for strip in page.all("span", "strip"):
        assert strip.attributes["aria-label"].startswith("attempts of the baseline: ")


def test_no_number_is_nan_and_no_python_shows_through(page: Element) -> None:
    words = page.all("main")[0].words
    for wrong in ("nan", "inf", "None", "True", "False", "Undefined", "object at", "{{", "{%"):
        assert not re.search(rf"(?<![\w-]){re.escape(wrong)}(?![\w-])", words), wrong


def test_the_same_results_give_the_same_page() -> None:
    assert page_of(SHAPES["one case"]()) == page_of(SHAPES["one case"]())


# ---------------------------------------------------------------- colours

TEXTS = [
    *(("text", "page"), ("text", "panel"), ("text", "gap"), ("soft", "page"), ("soft", "panel"), ("link", "page")),
    *(("good", "good-back"), ("bad", "bad-back"), ("warn", "warn-back"), ("text", "warn-back"), ("text", "bad-back")),
    *(("kill-text", "kill"), ("weak-text", "weak"), ("quiet-text", "quiet")),
]
"""Colours of text, and what they stand on."""


def luminance(colour: str) -> float:
    """Relative luminance (WCAG 2.2) of ``#rgb`` or ``#rrggbb``."""
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    channels = [int(digits[i : i + 2], 16) / 255 for i in (0, 2, 4)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(part * weight for part, weight in zip(linear, (0.2126, 0.7152, 0.0722), strict=True))


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@cache
def palettes() -> dict[str, dict[str, str]]:
    css = read(page_of(results())).all("style")[0].text
    found = re.findall(r":root \{ color-scheme[^}]*\}|:root \{ --page[^}]*\}", css)
    assert len(found) == 3
    named = [dict(re.findall(r"--([a-z-]+): (#[0-9a-f]+)", rule)) for rule in found]
    return dict(zip(("light", "dark", "print"), named, strict=True))


@pytest.mark.parametrize("palette", ["light", "dark", "print"])
def test_text_can_be_read_in_every_palette(palette: str) -> None:
    colours = palettes()[palette]
    low = {pair: round(contrast(colours[pair[0]], colours[pair[1]]), 2) for pair in TEXTS}
    assert not {pair: found for pair, found in low.items() if found < 4.5}


@pytest.mark.parametrize("sizes", [[3], [3, 6], [3, 6, 9], list(range(2, 14))])
def test_marks_stand_out_in_light_and_dark(sizes: list[int]) -> None:
    for colour in size_colours(sizes).values():
        for palette in ("light", "dark"):
            assert contrast(colour, palettes()[palette]["page"]) >= 3
    assert len(set(size_colours(sizes).values())) == len(sizes)


# ---------------------------------------------------------------- in a browser


class _Strict(BaseHTTPRequestHandler):
    """Serves one page as a CI server does that trusts no report: sandboxed, and without inline styles."""

    page = b""

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        policy = "sandbox allow-same-origin; default-src 'none'; img-src 'self'; style-src 'self';"
        self.send_header("Content-Security-Policy", policy)
        self.end_headers()
        self.wfile.write(self.page)

    def log_message(self, *_: object) -> None:
        """Nothing is logged."""


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_all_is_there_under_a_policy_that_allows_no_style_and_no_script(tmp_path: Path) -> None:
    text = page_of(results())
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Page", (_Strict,), {"page": text.encode()}))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        dumped, console = loaded(f"http://127.0.0.1:{server.server_address[1]}/", tmp_path / "profile")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    seen, given = read(dumped), read(text)
    assert not seen.all("button")
    assert seen.all("main")[0].words == given.all("main")[0].words
    marks = [svg for svg in seen.all("svg", "plot")[0].all("use") if svg.attributes.get("fill", "").startswith("#")]
    assert marks, "the marks keep their colours without a style"
    assert "violates" in console or "Refused" in console or "Blocked" in console


def without_policy(text: str, more: str) -> str:
    """A page that lets a test act on it: without its policy, with one more script at its end."""
    before, _, after = text.partition('<meta http-equiv="Content-Security-Policy"')
    return before + after.partition(">")[2] + f"<script>{more}</script>"


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_its_script_runs_under_its_own_policy(tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    page.write_text(page_of(SHAPES["many tasks"]()), encoding="utf-8")
    dumped, console = loaded(page, tmp_path / "profile")
    seen = read(dumped)
    heads = [head for found in seen.all("table", "sortable") for head in found.all("thead")[0].all("th")]
    assert heads
    assert all(head.all("button") for head in heads if head.attributes.get("class") != "plain")
    assert len(seen.all("input")) == 1, "only a long table has a filter"
    assert "violates" not in console


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
def test_tables_sort_by_number_and_filter_by_text(tmp_path: Path) -> None:
    rates = {f"t{n}": [1.0] * (10 - n) + [0.0] * n for n in range(10)}
    outcomes: dict[str, dict[str, list[Any]]] = {"baseline": {**rates, "t-other": ["unmeasured"], "t-more": [1.0]}}
    act = """
      const [table] = document.querySelectorAll("table.sortable");
      const [head] = [...table.tHead.rows[0].cells].filter((cell) => cell.textContent === "pass rate");
      head.firstChild.click();
      const first = [...table.tBodies[0].rows].map((row) => row.cells[3].textContent).join(" ");
      head.firstChild.click();
      const second = [...table.tBodies[0].rows].map((row) => row.cells[3].textContent).join(" ");
      const input = document.querySelector("input");
      input.value = "T-";
      input.dispatchEvent(new Event("input"));
      const shown = [...table.tBodies[0].rows].filter((row) => !row.hidden).length;
      document.body.append([first, second, shown, head.getAttribute("aria-sort")].join("|"));
    """
    page = tmp_path / "page.html"
    page.write_text(without_policy(page_of(build(CaseTable(outcomes))), act), encoding="utf-8")
    dumped, _ = loaded(page, tmp_path / "profile")
    up = "0.10 0.20 0.30 0.40 0.50 0.60 0.70 0.80 0.90 1.00 1.00 n/a"
    down = "1.00 1.00 0.90 0.80 0.70 0.60 0.50 0.40 0.30 0.20 0.10 n/a"
    assert f"{up}|{down}|2|descending" in dumped


def results() -> Results:
    return SHAPES["one case"]()
