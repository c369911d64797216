"""Whatever an experiment, an agent or a coverage system says is text on the page, and nothing but text."""

import re
from dataclasses import replace
from importlib import resources
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.analysis.figures import whole_text
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.contracts import AttemptError
from pytest_metricbench.definition.experiment import Note, ScorePolicy
from pytest_metricbench.reporting.html_origin import Origin
from tests.analysis.results_builder import CaseTable, build
from tests.reporting_html.html_lab import CHROMIUM, ORIGIN, Element, loaded, page_of, read

SCRIPT = "<script>document.documentElement.setAttribute('data-ran', 'script')</script>"
IMAGE = "<img src=x onerror=\"document.documentElement.setAttribute('data-ran', 'image')\">"
HOSTILE = f"</title></style></pre></svg>-->{SCRIPT}{IMAGE}\"'><b onmouseover=alert(1)>&amp;&lt;${{x}}{{{{ 7 * 7 }}}}]]>"


def hostile(name: str) -> str:
    """A hostile text that says which field it stands in."""
    return f"{name} {HOSTILE}"


def hostile_results() -> tuple[Results, dict[str, int]]:
    """Results with markup and a script in every text, ids included (which no experiment file could have).

    Returns:
        The results, and the fields with how often each must be on the page at least.
    """
    tasks = [hostile("task-1"), hostile("task-2"), hostile("task-3")]
    mutant, survivor, dead = hostile("mutant"), hostile("survivor"), hostile("dead")
    outcomes: dict[str, dict[str, list[Any]]] = {
        "baseline": {task: [1.0, 1.0, 1.0] for task in tasks},
        mutant: {tasks[0]: [0.0, 0.0, None], tasks[1]: [1.0, 1.0, 1.0], tasks[2]: ["unmeasured"] * 3},
        survivor: {task: [1.0, 0.0, 1.0] for task in tasks},
        dead: {task: [None, "TimeOut", None] for task in tasks},
        hostile("control"): {task: [1.0, 1.0, 1.0] for task in tasks},
        hostile("equal"): {task: [1.0, 1.0, 1.0] for task in tasks},
    }
    system = hostile("system")
    shares: dict[str, float | str | None] = {
        hostile(f"subset-{n}"): value for n, value in enumerate((0.9, 0.4, 0.2, 1.0))
    }
    table = CaseTable(
        outcomes,
        subsets={
            hostile(f"subset-{n}"): [tasks[i] for i in picked] for n, picked in enumerate(([0], [1], [2], [0, 1]))
        },
        coverage={system: shares | {"pool": hostile("coverage-reason")}},
        controls=[hostile("control")],
        equivalent={hostile("equal"): hostile("equivalent")},
        descriptions={survivor: hostile("described"), mutant: hostile("described-too")},
    )
    built = build(
        {hostile("case"): table, hostile("other"): table},
        score=ScorePolicy("reward", 1.0, {hostile("measured"): "measurement"}),
        warnings=[hostile("warning")],
        part=hostile("part"),
    )
    experiment = replace(
        built.experiment,
        name=hostile("experiment"),
        cases=tuple(
            replace(
                case,
                description=hostile("case-description"),
                tasks=tuple(
                    replace(task, description=hostile("task-description"), tags=(hostile("tag"),), name=hostile("name"))
                    for task in case.tasks
                ),
                variants=tuple(
                    replace(variant, params={hostile("param"): hostile("value")} if variant.id == survivor else {})
                    for variant in case.variants
                ),
                notes=(Note(hostile("note"), 2),),
            )
            for case in built.experiment.cases
        ),
    )
    attempts = {
        key: replace(
            record,
            trial_name=hostile("trial"),
            scores={**record.scores, hostile("measured"): 3.0} if record.outcome == "scored" else {},
            error=None
            if record.error is None
            else AttemptError(
                record.error.type if record.error.type == "TimeOut" else hostile("error"), hostile("message"), "agent"
            ),
        )
        for key, record in built.attempts.items()
    }
    fields = (
        "experiment case other part warning case-description task-1 task-2 task-description tag name mutant survivor "
        "dead control equal equivalent described described-too system subset-0 subset-3 note trial error "
        "message measured coverage-reason command file kind package"
    )
    return replace(built, experiment=experiment, attempts=attempts), dict.fromkeys(fields.split(), 1)


def hostile_earlier() -> Results:
    """The same, but that the mutant survives and the survivor is killed."""
    results, _ = hostile_results()
    other = {hostile("mutant"): hostile("survivor"), hostile("survivor"): hostile("mutant")}
    swapped = {
        (case, variant, task, slot): results.attempts[case, other.get(variant, variant), task, slot]
        for case, variant, task, slot in results.attempts
    }
    return replace(results, attempts=swapped)


def hostile_origin() -> Origin:
    return replace(
        ORIGIN,
        command=hostile("command"),
        digest=hostile("digest"),
        file_name=hostile("file"),
        kinds={"runner": hostile("kind")},
        versions={hostile("package"): hostile("version")},
        started=(hostile("first"), hostile("last")),
    )


def everything_said(page: Element) -> str:
    """All text and all attributes of a page, without its own style and script."""
    own = {id(element) for tag in ("style", "script") for element in page.all(tag)}
    parts = []
    for element in page.walk():
        if id(element) not in own:
            parts += [child for child in element.children if isinstance(child, str)]
            parts += element.attributes.values()
    return "\n".join(parts)


def assert_only_text(page: Element, fields: dict[str, int]) -> None:
    assert not page.all("img")
    assert not page.all("b", None) or all("class" in found.attributes for found in page.all("b"))
    assert len(page.all("script")) == 1
    assert not [e for e in page.walk() if any(name.startswith("on") or name == "style" for name in e.attributes)]
    said = everything_said(page)
    (diff,) = {found.words for found in page.all("pre", "diff")}
    assert SCRIPT in diff
    for name, times in fields.items():
        assert said.count(hostile(name)) >= times, name


def test_markup_and_a_script_in_every_field_stay_text() -> None:
    results, fields = hostile_results()
    assert_only_text(read(page_of(results, hostile_origin(), earlier=hostile_earlier())), fields)


@pytest.mark.skipif(CHROMIUM is None, reason="needs Chromium")
@pytest.mark.slow
@pytest.mark.parametrize("policy", [True, False], ids=["with its policy", "without its policy"])
def test_nothing_of_it_runs_in_a_browser(tmp_path: Path, policy: bool) -> None:
    """Without the page's own policy, only the escaping stands between a text and its execution."""
    results, fields = hostile_results()
    text = page_of(results, hostile_origin(), earlier=hostile_earlier())
    before, _, after = text.partition('<meta http-equiv="Content-Security-Policy"')
    if not policy:
        text = before + after.partition(">")[2]
    page = tmp_path / "page.html"
    page.write_text(text, encoding="utf-8")
    dumped, console = loaded(page, tmp_path / "profile")
    seen = read(dumped)
    assert "data-ran" not in seen.all("html")[0].attributes
    assert_only_text(seen, fields)
    assert seen.all("button"), "the page's own script has not run"
    assert "Refused" not in console
    assert "violates" not in console
    assert sorted(set(everything_said(read(text)).split("\n"))) == sorted(
        set(everything_said(seen).split("\n")) - {"Show rows with", "filter", "search", "button"}
    )


@pytest.mark.slow
def test_the_probe_would_run_if_it_were_markup(tmp_path: Path) -> None:
    """The test above can fail: unescaped, both parts of the text do what they are there for."""
    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    for part, name in ((SCRIPT, "script"), (IMAGE, "image")):
        page = tmp_path / f"{name}.html"
        page.write_text(f"<!DOCTYPE html><p>{part}</p>")
        dumped, _ = loaded(page, tmp_path / name)
        assert f'data-ran="{name}"' in dumped


@pytest.mark.slow
@settings(max_examples=30)
@given(text=st.text(min_size=1, max_size=60))
def test_any_text_is_on_the_page_as_it_is(text: str) -> None:
    table = CaseTable({"baseline": {"t": [1.0]}, "m": {"t": [1.0]}}, descriptions={"m": f"[{text}]"})
    page = read(page_of(build(table)))
    (survivor,) = page.all("article", "survivor")
    shown = survivor.all("p")[0].text
    expected = whole_text(f"[{text}]")
    assert isinstance(expected, str)
    if all(character.isprintable() or character in "\n\t" for character in expected):
        assert shown == expected
    else:
        assert len(shown) == len(expected)
        assert not set(shown) & {chr(code) for code in (*range(9), 11, 12, 13, *range(14, 32), 0x202E)}


def test_control_characters_are_shown_as_pictures() -> None:
    table = CaseTable(
        {"baseline": {"t": [1.0]}, "m": {"t": [1.0]}}, descriptions={"m": "a\x1b[31mb\rc\x00d\u202ee\ud800f"}
    )
    (survivor,) = read(page_of(build(table))).all("article", "survivor")
    assert survivor.all("p")[0].text == "a\u241b[31mb\u240dc\u2400d\ufffde\\ud800f"


def test_templates_trust_nothing_but_what_is_the_pages_own() -> None:
    """Three things are put in as they are: the style sheet, the script, and pictures, whose texts are escaped there."""
    folder = resources.files("pytest_metricbench.reporting") / "templates"
    trusted = [
        found.strip()
        for file in folder.iterdir()
        if file.name.endswith(".html")
        for found in re.findall(r"\{\{([^}]*)\|\s*safe\s*\}\}", file.read_text("utf-8"))
    ]
    assert sorted(trusted) == ["script", "style", "view.svg"]
    assert not any("autoescape" in file.read_text("utf-8") for file in folder.iterdir())
