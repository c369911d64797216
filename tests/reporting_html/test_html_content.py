"""What the page says: every number of it is that of the summary, and nothing is left out in silence."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.contracts import AttemptError
from pytest_metricbench.definition.experiment import Gate, InputFile, ScorePolicy
from pytest_metricbench.reporting.amounts import amount_text
from pytest_metricbench.reporting.html_attempts import MOST_ATTEMPTS
from pytest_metricbench.reporting.html_kills import kill_matrix_view
from pytest_metricbench.reporting.html_words import headline
from pytest_metricbench.sources import SourceError
from tests.analysis.results_builder import CaseTable, NoRunner, build
from tests.reporting_html.html_lab import ORIGIN, Element, page_of, read

TASKS = ["a", "b", "c", "d"]
GOOD = {task: [1.0, 1.0] for task in TASKS}
BAD = [0.0, 0.0]


def results(**changes: Any) -> Results:
    """Four tasks; c kills two mutants, a one of them and another; d kills nothing; one mutant survives."""
    outcomes: dict[str, dict[str, list[Any]]] = {
        "baseline": GOOD | {"d": [1.0, 0.0]},
        "twice": GOOD | {"a": BAD, "c": BAD},
        "once": GOOD | {"c": BAD},
        "slow": GOOD | {"b": ["TimeOut", "TimeOut"]},
        "crash": GOOD | {"a": [None, None]},
        "alive": GOOD,
        "unknown": GOOD | {"a": ["unmeasured", "missing"]},
        "skipped": GOOD | {"a": ["not_reached"] * 2},
    }
    table = CaseTable(outcomes, descriptions={"alive": "Says please too often."})
    return build({"shop": table}, **changes)


def section(page: Element, name: str) -> Element:
    """The section of a heading's id."""
    (found,) = [e for e in page.all("section") if e.attributes.get("aria-labelledby") == name]
    return found


def test_the_headline_says_how_good_what_is_missed_and_whether_gates_hold() -> None:
    gate = Gate("mutation_score >= 0.9", None, None, "mutation_score", None, ">=", 0.9)
    lines = headline(summarize(results(gates=[gate])))
    assert lines == [
        "The results are incomplete: some attempts or coverage requests have no result.",
        "The baseline solves 3 of 4 tasks in every attempt; its pass@1 is 0.88 [0.62, 1.00].",
        "The tasks catch 4 of 7 mutants: a mutation score of 0.57 [0.25, 0.84].",
        "Nothing catches alive, unknown, skipped: 3 blind spots.",
        "1 task catches no mutant.",
        "1 of 1 gate does not hold: mutation_score >= 0.9.",
    ]


def test_the_headline_of_several_cases_adds_up() -> None:
    table = CaseTable({"baseline": GOOD, "m": GOOD | {"a": BAD}, "n": GOOD})
    lines = headline(summarize(build({"one": table, "two": table})))
    assert lines == ["2 cases. Their tasks catch 2 of 4 mutants; nothing catches the other 2."]
    page = read(page_of(build({"one": table, "two": table})))
    assert "The tasks catch 1 of 2 mutants" in section(page, "case-one").words


def test_a_coverage_system_that_predicts_is_told_from_one_that_does_not() -> None:
    tasks = [f"t{n}" for n in range(8)]
    outcomes = {"baseline": {task: [1.0] for task in tasks}}
    outcomes |= {f"m{n}": {task: [float(task != f"t{n}")] for task in tasks} for n in range(5)}
    subsets = {f"s{i}{j}": [tasks[i], tasks[j]] for i in range(8) for j in range(i)}
    goals = {
        "tells": {task: [task] if n < 5 else [] for n, task in enumerate(tasks)},
        "does-not": {task: [f"g{n * 5 % 8 % 3}"] for n, task in enumerate(tasks)},
    }
    table = CaseTable(outcomes, subsets=subsets, goals=goals)
    lines = "\n".join(headline(summarize(build(table, permutation=999))))
    assert "Coverage by tells and the kill share go together at 1.00" in lines
    assert "p = 0.0" in lines.split("Coverage by tells")[1]
    assert "more than by chance." in lines
    assert "not told apart from chance." in lines.split("Coverage by does-not")[1]


# ---------------------------------------------------------------- kills


def test_the_matrix_tells_every_kind_of_cell_and_stands_in_the_order_of_its_structure() -> None:
    found = results()
    matrix = kill_matrix_view(summarize(found).cases["shop"])
    assert matrix is not None
    assert [(row.mutant, "".join(cell.sign for cell in row.cells), row.kills) for row in matrix.rows] == [
        ("twice", "x.x.", 2),
        ("crash", "d...", 1),
        ("slow", ".t..", 1),
        ("once", "..x.", 1),
        ("alive", "....", 0),
        ("unknown", "?...", 0),
        ("skipped", "-...", 0),
    ]
    assert [task for task, _ in matrix.tasks] == ["a", "b", "c", "d"]
    assert matrix.kills == (2, 1, 2, 0)
    assert [state for state, _, _ in matrix.legend] == [
        "killed", "timed-out", "died", "survived", "not-reached", "missing",
    ]  # fmt: skip
    assert matrix.rows[0].cells[0].title == "twice at a: killed (mutant passed 0 of 2; baseline passed 2 of 2)"


def test_mutants_that_are_in_no_score_stand_last_and_say_so() -> None:
    table = CaseTable(
        {
            "baseline": GOOD,
            "dead": {t: [None, None] for t in TASKS},
            "same": GOOD,
            "copy": GOOD,
            "m": GOOD | {"a": BAD},
        },
        controls=["copy"],
        equivalent={"same": "nobody can tell"},
    )
    matrix = kill_matrix_view(summarize(build(table)).cases["c"])
    assert matrix is not None
    assert [(row.mutant, row.group) for row in matrix.rows] == [
        ("m", ""),
        ("copy", "control"),
        ("dead", "invalid"),
        ("same", "equivalent"),
    ]


def test_the_table_of_the_matrix_is_the_matrix() -> None:
    page = read(page_of(results()))
    (table,) = page.all("table", "matrix")
    assert table.rows()[0] == ["twice", "2", "x", ".", "x", "."]
    assert [cell.attributes["class"] for cell in table.all("tbody")[0].all("tr")[2].all("td")[1:]] == [
        "k-survived", "k-timed-out", "k-survived", "k-survived",
    ]  # fmt: skip


def test_survivors_are_described() -> None:
    page = read(page_of(results()))
    found = page.all("article", "survivor")
    assert [survivor.all("h3")[0].words for survivor in found] == ["alive", "unknown", "skipped"]
    assert "Says please too often. 4 tasks could have caught it." in found[0].words
    assert "No description. 3 tasks could have caught it; 1 task not measured on both sides." in found[1].words


# ---------------------------------------------------------------- tasks and their attempts


def test_tasks_say_what_they_alone_kill_and_those_that_kill_nothing() -> None:
    page = read(page_of(results()))
    table = section(page, "tasks-shop").all("table", "sortable")[0]
    assert table.rows() == [
        ["a", "solved", "pp", "1.00", "2", "6", "crash"],
        ["b", "solved", "pp", "1.00", "1", "7", "slow"],
        ["c", "solved", "pp", "1.00", "2", "7", "once"],
        ["d", "flaky", "pm", "0.50", "0", "7", "kills nothing"],
    ]
    strip = table.all("span", "strip")[3]
    assert strip.attributes["aria-label"] == "attempts of the baseline: passed, missed"
    assert [mark.attributes["title"] for mark in strip.all("span")[1:]] == [
        "passed, shop-baseline-d-1",
        "missed, shop-baseline-d-2",
    ]


def test_every_attempt_is_listed_with_its_outcome_and_its_trial_id() -> None:
    page = read(page_of(results()))
    listed = next(found for found in page.all("details", "attempts") if found.all("summary")[0].words == "a")
    rows = dict(listed.all("table")[0].rows())
    assert rows["baseline"] == "p shop-baseline-a-1 p shop-baseline-a-2"
    assert rows["unknown"] == "u shop-unknown-a-1 ? no record"
    assert rows["crash"] == "d shop-crash-a-1 d shop-crash-a-2"
    assert rows["skipped"] == "- shop-skipped-a-1 - shop-skipped-a-2"
    legend = section(page, "tasks-shop").all("p", "keys")[0].words
    assert legend == "p passed m missed d died t timed out u unmeasured - not reached ? missing"


def test_attempts_that_are_called_otherwise_elsewhere_are_shown_by_that_name() -> None:
    found = results()
    key = ("shop", "baseline", "a", 1)
    attempts = {**found.attempts, key: replace(found.attempts[key], trial_name="a__XyZ")}
    assert "p a__XyZ p shop-baseline-a-2" in read(page_of(replace(found, attempts=attempts))).words


def test_of_too_many_attempts_only_the_baselines_are_listed_and_the_page_says_where_the_others_are() -> None:
    many = {f"t{n}": [1.0] * 1000 for n in range(6)}
    page = read(page_of(build({"shop": CaseTable({"baseline": many, "m": many})})))
    assert MOST_ATTEMPTS < 2 * 6 * 1000
    assert not page.all("details", "attempts")
    assert "More than 10,000 attempts: only those of the baseline are listed here" in page.words
    assert len(page.all("span", "strip")[0].all("span")) == 1001


def test_why_attempts_died() -> None:
    found = results()
    key = ("shop", "crash", "a", 1)
    error = AttemptError("AgentFailed", "exit status 3\nKeyError: 'order'", "agent")
    page = read(page_of(replace(found, attempts={**found.attempts, key: replace(found.attempts[key], error=error)})))
    row = ["AgentFailed", "1", "crash", "crash::a[1]exit status 3 KeyError: 'order'"]
    assert row in section(page, "tasks-shop").all("table")[-1].rows()


# ---------------------------------------------------------------- variants, noise, cost


def test_variants_have_pass_at_k_with_intervals() -> None:
    found = results(ks=(1, 2))
    page = read(page_of(found))
    rows = section(page, "variants-shop").all("table")[0].rows()
    assert rows[0] == ["baseline", "3", "1", "0", "0.88 [0.62, 1.00]", "", "1.00", "4 of 4"]
    assert rows[1][0] == "twice"
    assert len(section(page, "variants-shop").all("svg", "bar")) == 8


def test_noise_is_shown_beside_kills() -> None:
    table = CaseTable(
        {"baseline": GOOD | {"d": [1.0, 0.0]}, "copy": GOOD | {"d": BAD}, "m": GOOD | {"a": [None, None]}},
        controls=["copy"],
    )
    page = read(page_of(build(table)))
    rows = section(page, "variants-c").all("table")[1].rows()
    assert rows[0][0] == "the baseline against itself (A/A)"
    assert rows[0][2] == "4 tasks"
    assert "its attempts split in two 200 times at random" in rows[0][3]
    assert rows[1][:3] == ["control mutants", "0", "4 cells"]
    assert rows[2][:3] == ["kills that need attempts that died", "1", "1 kill"]
    assert "nothing else kills m" in rows[2][3]


def test_cost_and_time_are_those_of_the_attempts_that_report_them() -> None:
    outcomes: dict[str, dict[str, list[Any]]] = {
        "baseline": {
            "a": [{"reward": 1.0, "cost": 0.25, "tokens": 1200}, {"reward": 1.0, "cost": 0.75, "tokens": 800}]
        },
        "m": {"a": [{"reward": 0.0, "cost": 2.0, "tokens": 10_000}, None]},
        "n": {"a": ["unmeasured", {"reward": 1.0, "cost": float("nan"), "tokens": 5}]},
    }
    score = ScorePolicy("reward", 1.0, {"cost": "measurement", "tokens": "measurement"})
    page = read(page_of(build(CaseTable(outcomes), score=score)))
    table = section(page, "costs-c").all("table")[0]
    assert table.rows() == [
        ["baseline", "2", "0.2 s", "0.1 s", "1", "0.5", "2,000", "1,000"],
        ["m", "2", "0.2 s", "0.1 s", "2", "2", "10,000", "10,000"],
        ["n", "2", "0.2 s", "0.1 s", "n/a", "n/a", "5", "5"],
    ]
    foot = [cell.words for cell in table.all("tfoot")[0].all("td")]
    assert foot == ["6", "0.6 s", "0.1 s", "3", "0.75", "12,005", "1,000"]


def test_where_nothing_is_reported_the_page_says_so() -> None:
    assert (
        "they report no measurement (cost, tokens) of their own"
        in section(read(page_of(results())), "costs-shop").words
    )


@pytest.mark.parametrize(
    ("value", "text"), [(0, "0"), (0.000421, "0.000421"), (3.14159, "3.14"), (999.6, "1,000"), (12345.6, "12,346")]
)
def test_amounts_are_short(value: float, text: str) -> None:
    assert amount_text(value) == text


# ---------------------------------------------------------------- coverage


def covered(**changes: Any) -> Results:
    subsets = {f"s{n}": [TASKS[n], TASKS[(n + 1) % 4]] for n in range(4)} | {"s9": TASKS[:3]}
    outcomes = {"baseline": GOOD, "m": GOOD | {"a": BAD}, "n": GOOD | {"c": BAD, "b": BAD}}
    values: dict[str, float | str | None] = {"s0": 0.1, "s1": 0.5, "s2": 0.5, "s3": "no trace", "s9": 0.75, "pool": 1.0}
    table = CaseTable(outcomes, subsets, {"tools": values})
    return build({"one": table, **changes}, ks=(1,))


def test_each_mark_of_the_picture_has_the_names_of_its_subsets() -> None:
    page = read(page_of(covered()))
    (svg,) = page.all("svg", "plot")
    titles = [title.words for title in svg.all("title")[1:]]
    assert titles == [
        "s1, s2: size 2, coverage 0.5, score 0.5",
        "s0: size 2, coverage 0.1, score 1",
        "s9: size 3, coverage 0.75, score 1",
    ]
    assert "4 subsets of sizes 2 to 3. Coverage goes from 0.10 to 0.75" in svg.all("desc")[0].words
    fills = {use.attributes["fill"] for use in svg.all("use") if use.attributes.get("fill", "").startswith("#")}
    legend = {circle.attributes["fill"] for circle in page.all("figcaption")[0].all("circle")}
    assert len(fills) == 2
    assert fills == legend


def test_marks_are_those_of_their_case() -> None:
    outcomes = {"baseline": GOOD, "m": GOOD | {"a": BAD}}
    table = CaseTable(outcomes, {"only": ["a", "b"]}, {"tools": {"only": 0.3, "pool": 1.0}})
    page = read(page_of(covered(two=table)))
    titles = [title.words for title in page.all("svg", "plot")[0].all("title")]
    assert "only of two: size 2, coverage 0.3, score 1" in titles
    assert page.all("span", "keys")[0].words == "● one ■ two"
    marks = {g.all("title")[0].words: g.all("use")[0].attributes["href"] for g in page.all("g") if g.all("title")}
    assert marks["only of two: size 2, coverage 0.3, score 1"] != marks["s0 of one: size 2, coverage 0.1, score 1"]


def test_the_picture_stands_as_a_table_too_and_says_what_has_no_value() -> None:
    page = read(page_of(covered()))
    (table,) = [t for t in page.all("table", "sortable") if t.all("caption")[0].words.startswith("Coverage by tools")]
    assert table.rows()[3:] == [["s3", "2", "n/a", "0.50"], ["s9", "3", "0.75", "1.00"]]


def test_coefficients_stand_beside_the_picture_by_size() -> None:
    found = covered()
    summary = summarize(found)
    page = read(page_of(found))
    table = page.all("div", "tables")[0].all("table")[0]
    rows = table.rows()
    assert [row[:2] for row in rows] == [["2", "3"], ["3", "1"], ["all", "4"]]
    kendall = summary.cases["one"].correlation["tools"]["kill_share"].overall.kendall.value
    assert kendall is not None
    assert rows[2][2].startswith(f"{kendall:.2f}")


# ---------------------------------------------------------------- what is missing, gates, and how to get it again


def test_unavailable_figures_stand_under_their_reason() -> None:
    page = read(page_of(covered()))
    reasons = section(page, "unavailable")
    given = dict(zip((dt.words for dt in reasons.all("dt")), (dd.words for dd in reasons.all("dd")), strict=True))
    assert any("correlation tools kill share by size 3 kendall" in text for text in given.values())
    assert len(given) == len(reasons.all("dt"))


def test_gates_say_what_was_found_and_why_not() -> None:
    gates = [
        Gate("baseline pass@1 >= 0.5", None, "baseline", "pass@k", 1, ">=", 0.5),
        Gate("mutation_score >= 0.9", None, None, "mutation_score", None, ">=", 0.9),
    ]
    page = read(page_of(results(gates=gates)))
    rows = section(page, "gates").all("table")[0].rows()
    assert rows[0] == ["baseline pass@1 >= 0.5", "yes", "0.88", ""]
    assert rows[1][:3] == ["mutation_score >= 0.9", "no", "0.57"]
    (reason,) = rows[1][3:]
    assert reason
    (holding,) = section(read(page_of(results(gates=gates[:1]))), "gates").all("table")[0].rows()
    assert holding == ["baseline pass@1 >= 0.5", "yes", "0.88"]


def test_how_to_get_it_again() -> None:
    origin = replace(ORIGIN, versions={"Python": "3.11", "numpy": "2.1"}, started=("2026-01-02", "2026-01-03"))
    again = section(read(page_of(results(), origin)), "again")
    given = dict(zip((dt.words for dt in again.all("dt")), (dd.words for dd in again.all("dd")), strict=True))
    assert given == {
        "command": "pytest experiment.yml",
        "experiment": "experiment.yml, format 1",
        "digest of all that results depend on": f"sha256:{'0' * 64}",
        "seeds": "7 for running, 5 for the analysis",
        "analysis": "passes where reward is at least 1.0; 99 relabellings, 200 redraws; gates mean the kill share",
        "kinds": "runner: command",
        "versions": "Python 3.11; numpy 2.1",
        "attempts began": "2026-01-02 to 2026-01-03",
    }


def test_a_digest_that_cannot_be_computed_is_said_to_be_unavailable() -> None:
    words = section(read(page_of(results(), replace(ORIGIN, digest=None))), "again").words
    assert "unavailable: a file of the experiment cannot be read" in words


def test_problems_and_warnings_are_shown() -> None:
    page = read(page_of(results(warnings=["s1 and s2 have equal tasks"])))
    assert "1 warning s1 and s2 have equal tasks" in section(page, "headline").words
    assert page.all("details", "problem")


def test_what_changed_since_an_earlier_run() -> None:
    then = {"baseline": GOOD, "m": GOOD | {"a": BAD}, "n": GOOD, "gone": GOOD}
    now = {"baseline": GOOD | {"d": [1.0, 0.0]}, "m": GOOD, "n": GOOD | {"b": BAD}}
    described = {"m": "Forgets the tax."}
    later = build(CaseTable(now, descriptions=described))
    page = read(page_of(later, earlier=build(CaseTable(then, descriptions=described))))
    changes = section(page, "changes")
    tables = {table.all("caption")[0].words: table.rows() for table in changes.all("table")}
    assert list(tables) == ["Figures", "New survivors", "Newly killed", "Tasks with another verdict"]
    assert tables["Figures"][0][:3] == ["baseline pass@1", "1.00", "0.88"]
    assert tables["New survivors"][0][:3] == ["m", "Forgets the tax.", "a"]
    assert tables["Newly killed"][0][:3] == ["n", "", "b"]
    assert tables["Tasks with another verdict"][0][:4] == ["d", "baseline", "solved 2/2", "flaky 1/2"]
    assert tables["Tasks with another verdict"][0][6] == "c-baseline-d-1, c-baseline-d-2"
    assert [item.words for item in changes.all("li")] == ["removed: mutant gone"]


def test_cases_and_systems_that_one_run_has_are_listed_as_changes() -> None:
    pool = {"s1": 0.5, "pool": 0.5}
    mutants = {"baseline": GOOD, "m": GOOD | {"a": BAD}}
    then = {
        "old": CaseTable(mutants),
        "one": CaseTable(mutants, subsets={"s1": ["a"]}, coverage={"x": pool, "y": pool}),
    }
    now = {
        "new": CaseTable(mutants),
        "one": CaseTable({**mutants, "n": GOOD}, subsets={"s1": ["a"]}, coverage={"z": pool}),
    }
    page = read(page_of(build(now), earlier=build(then)))
    assert [item.words for item in section(page, "changes").all("li")] == [
        "added: case new",
        "added: coverage system z",
        "one: added: mutant n",
        "removed: case old",
        "removed: 2 coverage systems x, y",
    ]


def test_without_an_earlier_run_nothing_is_said_of_changes() -> None:
    assert "What changed" not in read(page_of(results())).words


def test_every_two_systems_are_compared() -> None:
    tasks = [f"t{n}" for n in range(6)]
    outcomes = {"baseline": {task: [1.0] for task in tasks}}
    outcomes |= {f"m{n}": {task: [float(task != f"t{n}")] for task in tasks} for n in range(4)}
    subsets = {f"s{i}{j}": [tasks[i], tasks[j]] for i in range(6) for j in range(i)}
    goals = {"own": {task: [task] for task in tasks}, "few": {task: [f"g{n % 3}"] for n, task in enumerate(tasks)}}
    found = build(CaseTable(outcomes, subsets=subsets, goals=goals))
    (comparison,) = summarize(found).cases["c"].comparisons
    page = read(page_of(found))
    (table,) = [t for t in page.all("table") if t.all("caption")[0].words.startswith("Kendall's tau-b of the first")]
    assert [row[:3] for row in table.rows()] == [
        [f"{comparison.first} less {comparison.second}", "2", "15"],
        [f"{comparison.first} less {comparison.second}", "all", "15"],
    ]


# ---------------------------------------------------------------- what mutants change


def with_params(params: dict[str, object], inputs: tuple[InputFile, ...] = (), baseline: Any = None) -> Results:
    found = build(CaseTable({"baseline": GOOD, "m": GOOD}))
    (case,) = found.experiment.cases
    variants = (replace(case.variants[0], params=baseline or {}), replace(case.variants[1], params=params))
    changed = replace(case, variants=variants, inputs=inputs)
    return replace(found, experiment=replace(found.experiment, cases=(changed,)))


def diff_lines(found: Results) -> list[tuple[str, str]]:
    (pre,) = read(page_of(found)).all("pre", "diff")
    return [(line.attributes["class"].removeprefix("d-"), line.text.rstrip("\n")) for line in pre.all("span")]


PATCH = "--- a/shop.py\n+++ b/shop.py\n@@ -1,2 +1,2 @@\n def total():\n-    return price < 3\n+    return price > 3\n"
PATCHED = [
    ("head", "--- a/shop.py"),
    ("head", "+++ b/shop.py"),
    ("hunk", "@@ -1,2 +1,2 @@"),
    ("same", " def total():"),
    ("removed", "-    return price < 3"),
    ("added", "+    return price > 3"),
]


def test_a_patch_in_the_params_is_shown() -> None:
    assert diff_lines(with_params({"apply": PATCH})) == PATCHED


def test_a_patch_that_the_params_name_and_the_inputs_hold_is_shown(tmp_path: Path) -> None:
    (tmp_path / "m.patch").write_text(PATCH)
    found = with_params({"patch": "mutants/m.patch"}, (InputFile("mutants/m.patch", tmp_path / "m.patch"),))
    assert diff_lines(found) == PATCHED


def test_a_file_that_is_no_input_is_not_read_whatever_the_params_name(tmp_path: Path) -> None:
    secret = tmp_path / "secret.patch"
    secret.write_text(PATCH)
    assert diff_lines(with_params({"patch": str(secret)})) == [("added", f"+patch: {secret}")]


def test_a_patch_that_is_gone_is_left_out() -> None:
    found = with_params({"patch": "m.patch"}, (InputFile("m.patch", Path("/nowhere/m.patch")),))
    page = read(page_of(found))
    assert not page.all("pre", "diff")
    assert len(page.all("article", "survivor")) == 1


def test_params_are_compared_line_by_line_where_there_is_no_patch() -> None:
    prompt = "You sell lamps.\nBe kind.\nAsk first.\n"
    found = with_params({"prompt": prompt.replace("Be kind.\n", ""), "k": 1}, baseline={"prompt": prompt, "k": 1})
    assert diff_lines(found) == [
        ("same", " prompt: |"),
        ("same", "   You sell lamps."),
        ("removed", "-  Be kind."),
        ("same", "   Ask first."),
        ("same", " k: 1"),
    ]


def test_an_input_that_a_generated_mutant_changes_is_compared(tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("Ask for the date.\nBe kind.\n")
    params = {"files": {"policy.md": "Be kind.\n", "other.md": "x"}, "k": 1}
    found = with_params(params, (InputFile("policy.md", tmp_path / "policy.md"),), baseline={"k": 1})
    shown = read(page_of(found)).all("pre", "diff")
    lines = [[line.text.rstrip("\n") for line in pre.all("span")] for pre in shown]
    assert lines == [
        ["--- policy.md", "+++ policy.md", "@@ -1,2 +1 @@", "-Ask for the date.", " Be kind."],
        [" k: 1", "+files:", "+  other.md: x"],
    ]


def test_a_changed_file_that_the_baseline_has_in_its_params_is_compared_with_that() -> None:
    found = with_params({"files": {"a": "new\n"}}, baseline={"files": {"a": "old\n"}})
    assert diff_lines(found)[3:] == [("removed", "-old"), ("added", "+new")]


def test_a_long_patch_is_cut_and_says_so() -> None:
    page = read(page_of(with_params({"apply": "@@ -1 +1,500 @@\n" + "+line\n" * 500})))
    assert len(page.all("pre", "diff")[0].all("span")) == 400
    assert "101 more lines not shown." in page.words


class Replacing(NoRunner):
    """A runner whose mutants put files in the place of files of a source."""

    places: dict[str, str]

    def variant_files(self, params: Mapping[str, object], folder: Path) -> Mapping[str, Path]:
        if not Path(self.places["mutant:new.py"]).exists():
            raise SourceError("the file new.py does not exist", "")
        return {name: Path(path) for name, path in self.places.items() if name.startswith("mutant:")}

    def shared_files(self, folder: Path) -> Mapping[str, Path]:
        shared = {name: Path(path) for name, path in self.places.items() if name.startswith("source:")}
        if not all(map(Path.exists, shared.values())):
            raise SourceError("the source is gone", "")
        return shared


def test_a_file_that_stands_in_for_another_is_compared_with_it(tmp_path: Path) -> None:
    old, new = tmp_path / "old.py", tmp_path / "new.py"
    old.write_text("a = 1\nb = 2\n")
    new.write_text("a = 1\nb = 3\n")
    found = with_params({"replace": {"shop/old.py": "new.py"}})
    runner = Replacing(places={"source:shop/old.py": str(old), "mutant:new.py": str(new)})
    found = replace(found, experiment=replace(found.experiment, runner=runner))
    assert diff_lines(found) == [
        ("head", "--- shop/old.py"),
        ("head", "+++ new.py"),
        ("hunk", "@@ -1,2 +1,2 @@"),
        ("same", " a = 1"),
        ("removed", "-b = 2"),
        ("added", "+b = 3"),
    ]
    params = [("added", "+replace:"), ("added", "+  shop/old.py: new.py")]
    new.rename(tmp_path / "aside.py")
    assert diff_lines(found) == params
    (tmp_path / "aside.py").rename(new)
    old.unlink()
    assert diff_lines(found) == params


# ---------------------------------------------------------------- anything

ENTRIES = st.sampled_from(
    [1.0, 0.0, 0.5, None, True, False, "unmeasured", "missing", "outside", "not_reached", "not_needed", "TimeOut"]
)


@st.composite
def tables(draw: st.DrawFn) -> CaseTable:
    """A case of any shape with anything as its attempts."""
    tasks = [f"t{n}" for n in range(draw(st.integers(1, 4)))]
    mutants = [f"m{n}" for n in range(draw(st.integers(0, 3)))]
    has_control, has_equivalent = draw(st.booleans()), draw(st.booleans())
    attempts = draw(st.integers(1, 3))
    row = st.fixed_dictionaries(dict.fromkeys(tasks, st.lists(ENTRIES, min_size=attempts, max_size=attempts)))
    subsets = draw(st.lists(st.lists(st.sampled_from(tasks), min_size=1, unique=True), max_size=5))
    named = {f"s{n}": members for n, members in enumerate(subsets)}
    value = st.one_of(st.floats(0, 1), st.none(), st.just("no trace"))
    coverage = {name: draw(st.fixed_dictionaries({}, optional=dict.fromkeys([*named, "pool"], value))) for name in "xy"}
    return CaseTable(
        {variant: draw(row) for variant in ("baseline", *mutants)},
        named,
        coverage,
        controls=mutants[:1] if has_control else (),
        equivalent={mutants[-1]: "why"} if mutants and has_equivalent else {},
    )


@pytest.mark.slow
@settings(max_examples=20)
@given(cases=st.lists(tables(), min_size=1, max_size=2))
def test_any_results_make_a_page_whose_matrix_is_that_of_the_summary(cases: list[CaseTable]) -> None:
    found = build({f"c{n}": table for n, table in enumerate(cases)}, bootstrap=5, permutation=5)
    page = read(page_of(found))
    signs = {"killed": "xdt", "survived": ".", "missing": "?", "not_reached": "-"}
    with_mutants = [case for case in summarize(found).cases.values() if case.kills]
    for case, table in zip(with_mutants, page.all("table", "matrix"), strict=True):
        tasks = [span.attributes["title"] for span in table.all("thead")[0].all("span")]
        for row in table.rows():
            states = case.kills[row[0].split(" ")[0]]
            assert all(sign in signs[states[task]] for task, sign in zip(tasks, row[2:], strict=True))
