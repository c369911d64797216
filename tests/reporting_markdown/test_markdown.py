"""The Markdown of a run, read as it is shown, and cut where a job summary has its limit."""

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.definition.experiment import Gate
from pytest_metricbench.reporting.layout import one_line
from pytest_metricbench.reporting.markdown import LIMIT, gate_text, markdown_text
from pytest_metricbench.reporting.markdown_files import MarkdownError, MarkdownWriter
from pytest_metricbench.reporting.markdown_text import bullets, code, joined, text
from pytest_metricbench.reporting.markdown_text import table as markdown_table
from tests.analysis.results_builder import OUTSIDE, UNMEASURED
from tests.comparing.comparing_lab import BASE, summary_of, table, with_gates
from tests.reporting_markdown.markdown_lab import after, before, changed, rendered

EXPECTED = Path(__file__).with_name("expected_summary.md")


def test_the_whole_page() -> None:
    """Reviewed by eye; delete the file and run again to write it anew."""
    shown = markdown_text(changed(), summary_path=".metricbench/built/summary.json")
    if not EXPECTED.exists():
        EXPECTED.write_text(shown, encoding="utf-8")
    assert shown == EXPECTED.read_text(encoding="utf-8")


def test_its_tables_are_tables() -> None:
    page = rendered(markdown_text(changed()))
    assert {len(row) for row in page.rows} == {4, 5, 6}
    assert ["❌ FAIL", "no new survivors", "1", "1 new survivor: m"] in page.rows
    assert ["🆕 new", "m", "Never checks | the <b>date</b>.", "3"] in page.rows
    assert "b" not in page.tags
    assert page.links == []


def test_green_without_gates_and_without_an_earlier_run() -> None:
    shown = markdown_text(summary_of(table({"m": {**BASE, "c": [0] * 5}})))
    assert "✅ **measured; no gates**" in shown
    assert "What changed" not in shown
    assert "Survivors" not in shown
    assert "| `c` | 3 | 0.93 [0.80, 1.00] | 1 of 1 = 1.00 [0.21, 1.00] | no control |" in shown


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        (["pass@1 >= 0.5"], "✅ **1 of 1 gate holds**"),
        (["pass@1 >= 0.5", "no new survivors"], "✅ **1 of 2 gates holds, 1 not checked**"),
        (["pass@1 >= 1", "pass@1 >= 0.5"], "❌ **1 of 2 gates does not hold**"),
        (["pass@1 >= 1", "pass@1 >= 0.99"], "❌ **2 of 2 gates do not hold**"),
    ],
)
def test_the_first_sentence(texts: list[str], said: str) -> None:
    from tests.comparing.comparing_lab import resolved

    assert said in markdown_text(summary_of(table({"m": BASE}), gates=[resolved(text) for text in texts]))


def test_problems_and_parts_come_first() -> None:
    summary = summary_of(table(base={**BASE, "a": [UNMEASURED] * 5}), part="-k 'a|b'")
    shown = markdown_text(summary)
    assert "❌ **1 problem**" in shown
    assert shown.index("⚪ A part of the experiment: \\-k 'a\\|b'") < shown.index("### Problems")
    unavailable = markdown_text(summary_of(table({"m": {**BASE, "a": [OUTSIDE] * 5}})))
    assert "n/a: 5 of 30 attempts are outside this part and not in the store" in unavailable


def test_several_cases_have_a_column() -> None:
    summary = with_gates(["no new survivors"], {"one": before(), "two": before()}, {"one": after(), "two": before()})
    page = rendered(markdown_text(summary))
    assert ["🆕 new", "one", "m", "Never checks | the <b>date</b>.", "3"] in page.rows
    over = next(row for row in page.rows if row[0] == "all")
    assert over[1] == "baseline pass@1"
    assert over[-1] == "6 tasks, clustered by case"


def test_nothing_changed() -> None:
    shown = markdown_text(with_gates(["no new survivors"], before(), before()))
    assert "Compared with before." in shown
    assert "Nothing changed in what both runs have." in shown
    assert "New survivors" not in shown


def test_new_survivors_are_counted_in_their_gate() -> None:
    (gate,) = changed(["no new survivors"]).gates
    assert gate_text(gate) == "1"
    (share,) = changed(["mutation_score >= 0.1"]).gates
    assert gate_text(share) == "0.33"


def test_of_many_changes_the_first_are_shown() -> None:
    dead = {**BASE, "c": [0] * 5}
    killed, died = [f"m{number:02}" for number in range(33)], [f"d{number:02}" for number in range(32)]
    then = table(dict.fromkeys([*killed, *died], dead))
    now = table({**dict.fromkeys(killed, BASE), **{name: {task: [None] * 5 for task in BASE} for name in died}})
    lines = _of_changes(with_gates([], then, now, bootstrap=10))
    assert [line for line in lines if "more" in line or line.startswith("**")] == [
        "**New survivors: 33**",
        "| and 3 more |  |  |  |",
        "**Tasks with another verdict: 97**",
        "| and 67 more |  |  |  |  |",
        "- and 2 more mutants count in another way than before",
    ]
    lines = _of_changes(with_gates([], {"c": then, "x": then}, {"c": now, "x": now}, bootstrap=10))
    assert [line for line in lines if "more" in line or line.startswith("**")] == [
        "**New survivors: 66**",
        "| and 36 more |  |  |  |  |",
        "**Tasks with another verdict: 194**",
        "| and 164 more |  |  |  |  |  |",
        "- and 2 more mutants of `c` count in another way than before",
        "- and 2 more mutants of `x` count in another way than before",
    ]


def _of_changes(summary: Any) -> list[str]:
    """The lines between the head of the changes and the next one."""
    lines = markdown_text(summary).splitlines()
    begin = next(number for number, line in enumerate(lines) if line.startswith("### ") and "changed" in line)
    end = next(number for number, line in enumerate(lines) if line.startswith("### ") and number > begin)
    return lines[begin:end]


# ---------------------------------------------------------------- the limit


def many(cases: int, mutants: int) -> Any:
    rows = {f"mutant-{number}": BASE for number in range(mutants)}
    words = dict.fromkeys(rows, "It says so at length. " * 20)
    return {f"case-{number}": table(rows, descriptions=words) for number in range(cases)}


@pytest.mark.parametrize("limit", [700, 1500, 3000, 8000])
def test_it_is_cut_between_lines_with_a_note(limit: int) -> None:
    summary = summary_of(many(3, 30), bootstrap=10)
    shown = markdown_text(summary, limit=limit, summary_path="s.json")
    assert len(shown.encode()) <= limit
    assert shown.endswith("\n*Cut: a job summary has a limit. The rest is in `s.json`.*\n")
    whole = markdown_text(summary, summary_path="s.json").splitlines()
    assert set(shown.splitlines()[:-1]) <= set(whole)
    page = rendered(shown)
    assert all(len(row) == len(page.rows[0]) or len(row) == 5 for row in page.rows)
    assert "|" not in "".join(page.text), "no half table"


def test_what_fits_is_not_cut() -> None:
    shown = markdown_text(changed(), limit=LIMIT)
    assert "Cut:" not in shown
    assert markdown_text(changed(), limit=len(shown.encode())) == shown
    assert "Cut:" in markdown_text(changed(), limit=len(shown.encode()) - 1)


@given(
    st.lists(st.lists(st.text(st.characters(exclude_categories=["C", "Z"]), min_size=1), min_size=1), max_size=6),
    st.integers(40, 300),
)
@settings(max_examples=60)
def test_no_cut_is_over_the_limit(blocks: list[list[str]], limit: int) -> None:
    note = "*Cut.*"
    shown = joined(blocks, limit, note)
    assert len(shown.encode()) <= limit
    assert shown.endswith("\n")


def test_a_heading_or_the_head_of_a_table_does_not_stay_alone() -> None:
    blocks = [["words"], ["### title"], ["| a |", "| ---: |", "| 1 |", "| 2 |"]]
    whole = joined(blocks, 1000, "cut")
    for limit in range(12, len(whole)):
        shown = joined(blocks, limit, "cut")
        assert shown in ("cut\n", "words\n\ncut\n", "words\n\n### title\n\n| a |\n| ---: |\n| 1 |\n\ncut\n")


# ---------------------------------------------------------------- text of the user's

PIECES = [
    *("|", "`", "``", "\\", "*", "_", "[a](http://x.y)", "<b>", "</table>", "<script>", "&lt;", "&", "~~", "$x$"),
    *("http://a.b", "www.a.de", "me@x.org", "@bob", "#12", "1.", "2)", "- ", "+ ", "# ", "=", "---", "\n\n", ":smile:"),
    *("| a |\n|---|", "![i](x)", "\t", "<!-- x -->", "\u202e", "a", " ", "é", "\ud800", "\x00", "`|`", "\\|"),
]  # fmt: skip
ANY_TEXT = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join)


@given(ANY_TEXT)
@settings(max_examples=400)
def test_any_text_is_shown_as_it_is(given_text: str) -> None:
    words = one_line(given_text)
    page = rendered("\n".join(markdown_table(["h", "k"], [[text(given_text), code(given_text)]])))
    cells = [cell.strip() for cell in page.rows[1]]
    assert [" ".join(cell.split()) for cell in cells] == [words, words]
    assert set(page.tags) <= {"table", "thead", "tbody", "tr", "th", "td", "code"}
    item = rendered("\n".join(bullets([text(given_text)])))
    assert set(item.tags) <= {"ul", "li"}
    assert " ".join("".join(item.text).split()) == words
    alone = rendered(text(given_text))
    assert set(alone.tags) <= {"p"}


@pytest.mark.parametrize(
    ("given_text", "escaped"),
    [
        ("Asks @team, see #12 and org/repo#7", "Asks @<!-- -->team, see #<!-- -->12 and org/repo#<!-- -->7"),
        ("at http://a.b or www.a.b, me@a.b", "at http:<!-- -->//a.b or www<!-- -->.a.b, me@<!-- -->a.b"),
        (":smile: 10:30", ":<!-- -->smile: 10:30"),
        ("pass@1 >= 0.9", "pass@1 &gt;= 0.9"),
        ("a_b *c* [d]", "a\\_b \\*c\\* \\[d\\]"),
        ("1. first", "1\\. first"),
        ("- item", "\\- item"),
        ("costs $5, $6", "costs \\$<!-- -->5, \\$<!-- -->6"),
    ],
)  # fmt: skip
def test_what_would_become_a_link_is_kept_apart(given_text: str, escaped: str) -> None:
    assert text(given_text) == escaped


def test_long_text_is_cut() -> None:
    assert text("a" * 600) == "a" * 498 + ".."
    assert code("b" * 600, 10) == "`bbbbbbbb..`"


def test_every_text_of_an_experiment_is_escaped() -> None:
    evil = "<script>alert(1)</script> | @team `x` [l](http://e.v) ![i](http://e.v/p.png)"
    tables = {
        "c": table({"m": BASE}, descriptions={"m": evil}, coverage={"x": {"pool": evil}}),
        "d": table({"m": BASE}, descriptions={"m": evil}),
    }
    gate = Gate(f"pass@1 >= 2 {evil}", None, None, "pass@k", 1, ">=", 2.0)
    summary = summary_of(tables, gates=[gate], warnings=[evil], part=evil)
    summary = summary.model_copy(update={"problems": (evil,), "experiment": evil})
    page = rendered(markdown_text(summary, summary_path=evil))
    assert page.links == []
    assert not {"script", "a", "img"} & set(page.tags)


# ---------------------------------------------------------------- files


def test_a_file_is_written_whole_and_a_step_summary_is_added_to(tmp_path: Path) -> None:
    file, step = tmp_path / "out.md", tmp_path / "step.md"
    file.write_text("old")
    step.write_text("# Before\n")
    writer = MarkdownWriter(file, {"GITHUB_STEP_SUMMARY": str(step)})
    writer.check()
    assert file.read_text() == "old", "checking writes nothing"
    assert writer.write(changed(), "s.json") == [f"wrote {file}"]
    once = markdown_text(changed(), summary_path="s.json")
    assert file.read_text() == once
    assert step.read_text() == f"# Before\n\n{once}"


def test_a_second_experiment_follows_in_the_same_files(tmp_path: Path) -> None:
    file, step = tmp_path / "out.md", tmp_path / "step.md"
    writer = MarkdownWriter(file, {"GITHUB_STEP_SUMMARY": str(step)})
    second = replace_name(changed(), "second")
    writer.write(changed())
    writer.write(second)
    expected = f"{markdown_text(changed())}\n{markdown_text(second)}"
    assert file.read_text() == step.read_text() == expected


def replace_name(summary: Any, name: str) -> Any:
    return summary.model_copy(update={"experiment": name})


def test_the_step_summary_named_as_the_file_is_written_once(tmp_path: Path) -> None:
    step = tmp_path / "step.md"
    step.write_text("mine\n")
    (tmp_path / "link.md").symlink_to(step)
    for name in ("step.md", "link.md"):
        step.write_text("mine\n")
        writer = MarkdownWriter(tmp_path / name, {"GITHUB_STEP_SUMMARY": str(step)})
        writer.check()
        writer.write(changed())
        assert step.read_text() == f"mine\n\n{markdown_text(changed())}"


def test_without_either_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    writer = MarkdownWriter(None, {})
    writer.check()
    assert writer.write(changed()) == []
    assert list(tmp_path.iterdir()) == []


def test_a_full_step_summary_is_left_alone_and_said(tmp_path: Path) -> None:
    step = tmp_path / "step.md"
    step.write_text("x" * (LIMIT - 3000))
    writer = MarkdownWriter(None, {"GITHUB_STEP_SUMMARY": str(step)})
    big = summary_of(many(3, 30), bootstrap=10)
    assert writer.write(big) == []
    assert LIMIT - 1000 < step.stat().st_size <= LIMIT
    size = step.stat().st_size
    assert writer.write(big) == ["GITHUB_STEP_SUMMARY has no room left for built: a step's summary has a limit"]
    assert step.stat().st_size == size


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("folder", "{root}/folder is no file; name another one"),
        ("gone/out.md", "there is no folder {root}/gone; make it, or name another file"),
    ],
)
def test_what_cannot_be_written_is_told_before_anything_runs(tmp_path: Path, name: str, said: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(MarkdownError) as raised:
        MarkdownWriter(tmp_path / name, {}).check()
    assert str(raised.value) == said.format(root=tmp_path)


def test_a_device_is_no_file() -> None:
    with pytest.raises(MarkdownError, match="/dev/null is no file"):
        MarkdownWriter(Path("/dev/null"), {}).check()


def test_one_place_that_fails_does_not_keep_the_other_from_being_written(tmp_path: Path) -> None:
    writer = MarkdownWriter(tmp_path / "out.md", {"GITHUB_STEP_SUMMARY": str(tmp_path / "gone" / "step.md")})
    with pytest.raises(MarkdownError, match=re.escape("step.md (GITHUB_STEP_SUMMARY): No such file or directory")):
        writer.write(changed())
    assert (tmp_path / "out.md").read_text() == markdown_text(changed())
