"""The text of a summary: exact, deterministic, readable again, and documented."""

import json
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import BaseModel

from pytest_metricbench.analysis.figures import Figure
from pytest_metricbench.analysis.results import Results
from pytest_metricbench.analysis.summarizing import summarize
from pytest_metricbench.analysis.summary import Summary
from pytest_metricbench.analysis.summary_json import SummaryError, summary_from_json, summary_to_json
from pytest_metricbench.analysis.variant_models import AttemptValue
from pytest_metricbench.definition.experiment import Gate, KillRule
from tests.analysis.order_lab import shuffled
from tests.analysis.results_builder import OUTSIDE, UNMEASURED, CaseTable, build

DOCUMENT = Path(__file__).parents[2] / "docs" / "summary.md"
SKELETON = {
    "variants": ["kind", "valid", "verdicts", "attempts", "pass_at_k", "pass_hat_k"],
    "subsets": ["tasks", "kill_share", "mean_drop", "coverage"],
}


def results() -> Results:
    odd: list[Any] = [
        {"reward": math.nan},
        {"reward": math.inf},
        {"reward": -math.inf},
        {"reward": 0.1 + 0.2, "tone": "schön \ud800"},
    ]
    base: dict[str, list[Any]] = {"t1": [1, True, None, UNMEASURED], "t2": odd, "t10": [1, 1, 1, 1]}
    mutants = {"m1": {**base, "t10": [0, 0, 0, 0]}, "m2": base, "copy": base}
    subsets = {"s1": ["t1"], "s2": ["t2"], "s10": ["t10", "t1"], "s3": ["t10", "t2", "t1"]}
    coverage: dict[str, dict[str, float | str | None]] = {
        "sys": {"pool": 1.0, "s1": 0.25, "s2": 0.5, "s10": "none", "s3": 0.75}
    }
    table = CaseTable({"baseline": base, **mutants}, subsets, coverage, controls=["copy"], equivalent={"m2": 'a "b"\n'})
    gate = Gate("baseline pass@1 >= 0.5", None, "baseline", "pass@k", 1, ">=", 0.5)
    return build(table, ks=[1, 3], gates=[gate], warnings=["two\x1b[31m lines\n"])


def parsed(text: str) -> dict[str, Any]:
    def refuse(token: str) -> None:
        raise AssertionError(f"a bare {token} is no JSON")

    content: dict[str, Any] = json.loads(text, parse_constant=refuse)
    return content


def test_the_text_reads_back_as_the_same_summary() -> None:
    summary = summarize(results())
    text = summary_to_json(summary)
    again = summary_from_json(text)
    assert again == summary
    assert summary_to_json(again) == text
    assert text.endswith("}\n")
    assert text.isascii()


def test_the_skeleton_has_its_names() -> None:
    content = parsed(summary_to_json(summarize(results())))
    assert {"metricbench", "experiment", "complete", "counts", "cases", "gates"} <= set(content)
    assert {"passed", "missed", "died", "unmeasured", "missing", "reused"} <= set(content["counts"])
    case = content["cases"]["c"]
    assert {"variants", "kills", "pool", "subsets", "correlation"} <= set(case)
    for group, names in SKELETON.items():
        assert all(set(names) <= set(entry) for entry in case[group].values())
    assert case["variants"]["baseline"]["attempts"]["t10"]["reward"][0] == {
        "trial_id": "c-baseline-t10-1", "value_type": "number", "value": 1,
    }  # fmt: skip
    figure = case["variants"]["baseline"]["pass_at_k"]["reward"]["1"]
    assert {"value", "count", "nan_count", "interval"} <= set(figure)
    overall = case["correlation"]["sys"]["kill_share"]["overall"]
    assert {"pairs", "pearson", "spearman", "kendall"} <= set(overall)
    assert {"text", "value", "holds", "reason"} <= set(content["gates"][0])


def test_values_are_written_as_they_are() -> None:
    attempts = parsed(summary_to_json(summarize(results())))["cases"]["c"]["variants"]["baseline"]["attempts"]
    assert [entry["value"] for entry in attempts["t2"]["reward"]] == ["NaN", "Infinity", "-Infinity", 0.1 + 0.2]
    assert [entry["value_type"] for entry in attempts["t2"]["reward"]] == ["number"] * 4
    assert [entry["value"] for entry in attempts["t1"]["reward"]] == [1, True, None]
    assert attempts["t2"]["tone"] == [{"trial_id": "c-baseline-t2-4", "value_type": "label", "value": "schön \\ud800"}]


def test_every_figure_has_a_value_or_a_reason() -> None:
    def walk(value: Any) -> int:
        if isinstance(value, dict):
            found = 0
            if "value" in value and "value_type" not in value and "holds" not in value:
                assert (value["value"] is None) == ("reason" in value), value
                found = 1
            return found + sum(map(walk, value.values()))
        return sum(map(walk, value)) if isinstance(value, list) else 0

    assert walk(parsed(summary_to_json(summarize(results())))) > 50


@pytest.mark.parametrize("fields", [{"value": None}, {"value": 1.0, "reason": "x"}, {"value": math.nan}])
def test_a_figure_refuses_to_be_neither_or_both(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match="value"):
        Figure(**fields)


@given(st.integers(0, 2**32), st.sampled_from([KillRule(), KillRule("fisher", 0.3), KillRule("fisher", None, 0.4)]))
@settings(max_examples=25)
def test_no_order_of_the_files_changes_a_byte(seed: int, rule: KillRule) -> None:
    given_results = results()
    analysis = replace(given_results.experiment.analysis, kill=rule)
    given_results = replace(given_results, experiment=replace(given_results.experiment, analysis=analysis))
    assert summary_to_json(summarize(shuffled(given_results, seed))) == summary_to_json(summarize(given_results))


entry = st.one_of(st.none(), st.sampled_from([0, 1, True, 0.5, UNMEASURED, OUTSIDE, "missing", math.nan]))


@given(st.data())
@settings(max_examples=60)
def test_any_outcomes_make_a_summary_that_reads_back(data: st.DataObject) -> None:
    tasks = [f"t{number}" for number in range(data.draw(st.integers(1, 4)))]
    attempts = {task: data.draw(st.integers(1, 4)) for task in tasks}
    variants = ["baseline", *(f"m{number}" for number in range(data.draw(st.integers(0, 3))))]
    outcomes = {
        v: {t: data.draw(st.lists(entry, min_size=n, max_size=n)) for t, n in attempts.items()} for v in variants
    }
    sets = data.draw(st.lists(st.lists(st.sampled_from(tasks), min_size=1, unique=True), max_size=4))
    subsets = {f"s{number}": members for number, members in enumerate(sets)}
    value = st.one_of(st.none(), st.just("no trace"), st.floats(0, 1))
    coverage = {"sys": {subset: data.draw(value) for subset in (*subsets, "pool") if data.draw(st.booleans())}}
    rule = data.draw(st.sampled_from([KillRule(), KillRule("fisher", 0.3), KillRule("fisher", None, 0.4)]))
    table = CaseTable(outcomes, subsets, coverage, controls=variants[3:])
    summary = summarize(build(table, rule=rule, ks=[1, 2], bootstrap=20, part=data.draw(st.sampled_from([None, "x"]))))
    text = summary_to_json(summary)
    assert summary_from_json(text) == summary
    parsed(text)
    case = summary.cases["c"]
    for variant in case.variants.values():
        assert sum(variant.verdicts.model_dump().values()) == len(tasks)
        for figure in (figure for by_k in variant.pass_at_k.values() for figure in by_k.values()):
            assert figure.count + figure.nan_count + figure.excluded == len(tasks)
    groups = case.mutants.model_dump()
    groups.pop("invalid_controls")
    assert sorted(sum(groups.values(), ())) == sorted(variants[1:])


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the summary is no JSON"),
        ("[]", "format version null"),
        ('{"metricbench": 2}', "format version 2; this version reads 1"),
        ('{"metricbench": 1}', "not as documented at experiment"),
    ],
)
def test_a_text_that_is_no_summary_says_why(text: str, words: str) -> None:
    with pytest.raises(SummaryError, match=words):
        summary_from_json(text)


def test_an_unknown_or_wrong_field_is_named() -> None:
    content = json.loads(summary_to_json(summarize(results())))
    content["cases"]["c"]["pool"]["kill_share"]["killed"] = "many"
    with pytest.raises(SummaryError, match=r"cases\.c\.pool\.kill_share\.killed"):
        summary_from_json(json.dumps(content))
    content = json.loads(summary_to_json(summarize(results())))
    content["cases"]["c"]["variants"]["baseline"]["attempts"]["t1"]["reward"][0]["extra"] = 1
    with pytest.raises(SummaryError, match="extra"):
        summary_from_json(json.dumps(content))


# ---------------------------------------------------------------- the document


def models() -> set[type[BaseModel]]:
    """Every model that a summary is made of."""
    found: set[type[BaseModel]] = set()

    def visit(annotation: Any) -> None:
        if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in found:
            found.add(annotation)
            for field in annotation.model_fields.values():
                visit(field.annotation)
        for argument in get_args(annotation):
            visit(argument)

    visit(Summary)
    return found


def documented() -> dict[str, set[str]]:
    """Section of the document -> the names that its tables explain."""
    sections: dict[str, set[str]] = {}
    name = ""
    for text in DOCUMENT.read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"#+ .*?`(\w+)`.*", text):
            name = heading.group(1)
            sections[name] = set()
        elif row := re.match(r"\| `(\w+)` \| .*\S.* \|", text):
            sections.setdefault(name, set()).add(row.group(1))
    return sections


def own_fields(model: type[BaseModel | AttemptValue]) -> set[str]:
    """Fields that the models it extends do not have: the document explains those where they come from."""
    if not issubclass(model, BaseModel):
        return set(AttemptValue.__slots__)
    inherited = {name for base in model.__mro__[1:] if issubclass(base, BaseModel) for name in base.model_fields}
    return set(model.model_fields) - inherited


def test_every_field_is_documented_and_nothing_else() -> None:
    fields = {model.__name__: own_fields(model) for model in models() | {AttemptValue}}
    assert len(fields) > 20
    assert documented() == fields


def test_every_figure_extends_the_one_that_is_explained_first() -> None:
    figures = [model for model in models() if {"value", "reason", "outside"} <= set(model.model_fields)]
    assert len(figures) == 19
    assert all(issubclass(model, Figure) for model in figures)
