"""Gates as they are written: what is read, and what is said of what cannot be."""

import re
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.definition.experiment import Gate
from pytest_metricbench.definition.gates import FIGURES, CaseScope, GateError, Scope, check_gate, parse_gate
from tests.definition.definition_lab import Folder

SCOPE = Scope(
    cases={
        "refunds": CaseScope(frozenset({"baseline", "skips", "shared", "control-1", "twice"}), 2, True, 5),
        "orders": CaseScope(frozenset({"baseline", "shared", "twice"}), 1, True, 3),
        "plain": CaseScope(frozenset({"baseline", "twice"}), 0, False, 1),
    },
    systems=frozenset({"tools", "lines", "refunds-tools"}),
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("pass@1 > 0.5", (None, None, "pass@k", 1, ">", 0.5)),
        ("baseline pass@1 >= 0.9", (None, "baseline", "pass@k", 1, ">=", 0.9)),
        ("refunds pass^3 >= 1", ("refunds", None, "pass^k", 3, ">=", 1.0)),
        ("refunds skips pass@5 <= .25", ("refunds", "skips", "pass@k", 5, "<=", 0.25)),
        ("skips pass@5 < 1e-1", ("refunds", "skips", "pass@k", 5, "<", 0.1)),
        ("refunds control-1 pass@1 != 0", ("refunds", "control-1", "pass@k", 1, "!=", 0.0)),
        ("twice pass@1 == 1", (None, "twice", "pass@k", 1, "==", 1.0)),
        ("refunds mutation_score >= 0.8", ("refunds", None, "mutation_score", None, ">=", 0.8)),
        ("orders mean_drop>=-0.1", ("orders", None, "mean_drop", None, ">=", -0.1)),
        ("coverage > 0", (None, None, "coverage", None, ">", 0.0)),
        ("tools coverage > 0", (None, "tools", "coverage", None, ">", 0.0)),
        ("refunds tools spearman >= 0.5", ("refunds", "tools", "spearman", None, ">=", 0.5)),
        ("orders pearson >= +0.5", ("orders", None, "pearson", None, ">=", 0.5)),
        ("  refunds   lines\tkendall   >0  ", ("refunds", "lines", "kendall", None, ">", 0.0)),
    ],
)
def test_gates(text: str, expected: tuple[Any, ...]) -> None:
    assert check_gate(text, SCOPE) == Gate(text, *expected)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "compares nothing"),
        ("baseline pass@1", "compares nothing"),
        (">= 0.5", "names no figure"),
        ("pass@1 = 0.5", "'=' is no comparison; write =="),
        ("pass@1 => 0.5", "'=>' is no comparison; one of"),
        ("pass@1 >= 90%", "'90%' is no number; write 0.9"),
        ("pass@1 >= nan", "'nan' is no number"),
        ("pass@1 >= inf", "'inf' is no number"),
        ("pass@1 >= 1e999", "is no number"),
        ("pass@1 >=", "'' is no number"),
        ("pass@1 >= 0.5 < 1", "is no number"),
        ("0.5 <= pass@1", "'pass@1' is no number"),
        ("pass@0 >= 1", "'0' is no k of pass@k"),
        ("pass@x >= 1", "'x' is no k of pass@k"),
        ("pass^1.5 >= 1", "'1.5' is no k of pass^k"),
        ("pass@k >= 1", "pass@k names no k; write pass@1"),
        ("mutation-score >= 1", "did you mean 'mutation_score'?"),
        ("refunds skips x pass@1 > 0", "names 3 things before the figure"),
        ("refund pass@1 > 0", "there is no case, variant or coverage system 'refund'; did you mean 'refunds'?"),
        ("refund skips pass@1 > 0", "there is no case 'refund'; did you mean 'refunds'?"),
        ("refunds skps pass@1 > 0", "has no variant 'skps'"),
        ("orders skips pass@1 > 0", "the case orders has no variant 'skips'"),
        ("shared pass@1 > 0", "not every case has 'shared'; name the case before it: refunds or orders"),
        ("skips mutation_score > 0", "'skips' is a variant and has no mutation_score"),
        ("skips coverage > 0", "'skips' is a variant and has no coverage; coverage is a figure of a coverage system"),
        ("tools pass@1 > 0", "'tools' is a coverage system and has no pass@k; pass@k is a figure of a variant"),
        ("tools mean_drop > 0", "leave the name out"),
        ("refunds tools mutation_score > 0", "leave the name out"),
        ("refunds skips spearman > 0", "has no spearman"),
        ("refunds pass@6 > 0", "no task of the case refunds gets 6 attempts; k is at most 5"),
        ("pass@2 > 0", "no task of the case plain gets 2 attempts"),
        ("mutation_score > 0", "the case plain has no mutants that count, so it has no mutation_score; name a case"),
        ("plain mean_drop > 0", "the case plain has no mutants that count"),
        ("plain tools spearman > 0", "the case plain has no mutants that count"),
    ],
)
def test_no_gates(text: str, said: str) -> None:
    with pytest.raises(GateError, match=re.escape(said)):
        check_gate(text, SCOPE)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("baseline pass@1 drop <= 0.05", Gate("", None, "baseline", "pass@k", 1, "<=", 0.05, drop=True)),
        ("refunds mutation_score drop < 0", Gate("", "refunds", None, "mutation_score", None, "<", 0.0, drop=True)),
        ("tools coverage drop == 0", Gate("", None, "tools", "coverage", None, "==", 0.0, drop=True)),
        (
            "significant refunds skips pass@3 drop <= 0",
            Gate("", "refunds", "skips", "pass@k", 3, "<=", 0.0, drop=True, significant=True),
        ),
        ("significant pass@1 drop >= 0", Gate("", None, None, "pass@k", 1, ">=", 0.0, drop=True, significant=True)),
        ("significant pass^1 drop > 0", Gate("", None, None, "pass^k", 1, ">", 0.0, drop=True, significant=True)),
        ("refunds no new survivors", Gate("", "refunds", None, "new_survivors", None, "<=", 0.0)),
        (
            " orders  no significant\tnew survivors ",
            Gate("", "orders", None, "new_survivors", None, "<=", 0.0, significant=True),
        ),
    ],
)
def test_gates_against_an_earlier_run(text: str, expected: Gate) -> None:
    assert check_gate(text, SCOPE) == replace(expected, text=text)


def test_no_new_survivors_of_any_case() -> None:
    scope = replace(SCOPE, cases={name: case for name, case in SCOPE.cases.items() if name != "plain"})
    text = "no new survivors"
    assert check_gate(text, scope) == Gate(text, None, None, "new_survivors", None, "<=", 0.0)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("drop <= 0", "names no figure; write baseline pass@1 drop <= 0"),
        ("significant drop <= 0", "names no figure; write baseline pass@1 drop <= 0"),
        ("baseline pass@1 dorp <= 0", "'dorp' is no figure; did you mean 'drop'?"),
        ("significant pass@1 drop == 0", "a significant drop cannot be compared by =="),
        ("significant pass@1 drop != 0", "a significant drop cannot be compared by !="),
        ("significant tools coverage drop <= 0", "the drop of coverage has no interval, so none can be significant"),
        ("significant kendall drop <= 0", "the drop of kendall has no interval, so none can be significant"),
        ("significant pass@1 >= 1", "only a drop can be significant; write significant pass@1 drop <= 0"),
        (
            "significant refunds pass@2 > 0",
            "only a drop can be significant; write significant refunds pass@2 drop <= 0",
        ),
        ("significant mean_drop >= 1", "only a drop can be significant; write significant mean_drop drop <= 0"),
        ("new survivors", "'new survivors' is no gate; write no new survivors"),
        ("no new survivor", "'no new survivor' is no gate"),
        ("significant no new survivors", "is no gate; write no new survivors or no significant new survivors"),
        ("refunds skips no new survivors", "is no gate"),
        ("no new survivors >= 0", "is no gate"),
        ("refund no new survivors", "there is no case, variant or coverage system 'refund'"),
        ("skips no new survivors", "'skips' is a variant and has no new_survivors"),
        ("plain no new survivors", "the case plain has no mutants that count, so it has no new_survivors"),
        ("pass >= 1", "pass names no k; write pass@1"),
        ("pass^k >= 1", "pass^k names no k; write pass^1"),
        ("pass@1000000000 >= 1", "'1000000000' is no k of pass@k; a whole number from 1 on"),
        ("pass@01 >= 1", "'01' is no k of pass@k"),
        ("refunds tool spearman > 0", "there is no coverage system of that id; did you mean 'tools'?"),
        ("coverage > 1 %", "'1 %' is no number; write 0.01"),
        ("coverage > 0x1", "'0x1' is no number; a number such as 0.9 is expected"),
    ],
)
def test_no_gates_against_an_earlier_run_and_other_slips(text: str, said: str) -> None:
    with pytest.raises(GateError, match=re.escape(said)):
        check_gate(text, SCOPE)


def test_an_id_that_is_a_word_of_gates() -> None:
    named = replace(SCOPE, systems=frozenset({"significant"}))
    with pytest.raises(GateError, match="'significant' is an id and a word of gates"):
        check_gate("significant pass@1 drop <= 0", named)
    assert check_gate("significant coverage >= 0", named).subject == "significant"


CLASH = Scope(
    cases={"x": CaseScope(frozenset({"baseline", "x", "tools"}), 2, True, 3)},
    systems=frozenset({"tools", "x", "baseline"}),
)


@pytest.mark.parametrize("text", ["x pass@1 > 0", "x coverage > 0", "x kendall > 0"])
def test_an_id_that_could_be_two_things(text: str) -> None:
    with pytest.raises(GateError, match="'x' is the id of a case and a"):
        check_gate(text, CLASH)


@pytest.mark.parametrize(
    ("text", "case", "subject"),
    [
        ("x mutation_score > 0", "x", None),
        ("x x pass@1 > 0", "x", "x"),
        ("tools pass@1 > 0", None, "tools"),
        ("tools coverage > 0", None, "tools"),
        ("baseline pass@1 > 0", None, "baseline"),
    ],
)
def test_an_id_of_two_things_of_which_one_has_the_figure(text: str, case: str | None, subject: str | None) -> None:
    gate = check_gate(text, CLASH)
    assert (gate.case, gate.subject) == (case, subject)


def test_figures_that_the_experiment_cannot_have() -> None:
    bare = Scope({"a": CaseScope(frozenset({"baseline", "m"}), 1, False, 1)}, frozenset())
    for text, said in (("coverage > 0", "needs a coverage system"), ("pearson > 0", "needs a coverage system")):
        with pytest.raises(GateError, match=said):
            check_gate(text, bare)
    with pytest.raises(GateError, match="the case a has no subsets, so it has no kendall; add subsets"):
        check_gate("a kendall > 0", Scope(bare.cases, frozenset({"tools"})))


@given(st.text(max_size=40))
def test_any_text_is_a_gate_or_an_error(text: str) -> None:
    with suppress(GateError):
        gate, names = parse_gate(text)
        assert gate.figure in FIGURES
        assert len(names) <= 2


def test_gates_of_an_experiment(folder: Folder, base: str) -> None:
    text = base + (
        "controls: 1\ncases:\n"
        "  - {id: a, tasks: [{id: t}, {id: u, attempts: 3}], mutants: [{id: m}, {id: c, control: true}]}\n"
        "coverage: [{id: tools, kind: fake}]\ngates:\n"
        "  - control-1 pass@3 > 0\n  - m pass@1 < 1\n  - mutation_score > 0\n  - tools coverage > 0\n"
    )
    assert [gate.subject for gate in folder.load(text).gates] == ["control-1", "m", None, "tools"]
    assert [p.key for p in folder.problems(text.replace("{id: m}, ", ""))] == ["gates[1]", "gates[2]"]
    reviewed = text.replace("{id: m}", "{id: m, equivalent: same}")
    assert [p.key for p in folder.problems(reviewed)] == ["gates[2]"]


def test_no_gate_is_told_for_what_another_problem_explains(folder: Folder, base: str) -> None:
    text = base + "cases: [{id: a, tasks: [{id: t}]}, absent.yml]\ngates: [b pass@1 > 0]\n"
    assert [problem.key for problem in folder.problems(text)] == ["cases[1]"]
    text = base + "attempts: x\ncases: [{id: a, tasks: [{id: t}]}]\ngates: [a pass@5 > 0]\nanalysis: {pass_at_k: [5]}\n"
    assert [problem.key for problem in folder.problems(text)] == ["attempts"]
