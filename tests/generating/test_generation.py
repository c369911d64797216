"""From proposals to mutants: ids, what is dropped, samples, and params that the runner takes."""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.bases import Runner
from pytest_metricbench.definition.ids import variant_id_problem
from pytest_metricbench.generating import generation as generation_module
from pytest_metricbench.generating.base import Context, Dropped, Generator, Proposal
from pytest_metricbench.generating.builtin import known_makers
from pytest_metricbench.generating.generation import Generation, sampled, slug
from pytest_metricbench.generating.text import TextGenerator
from pytest_metricbench.sources import SourceError
from tests.generating.generating_lab import BareRunner, Bench, MergingRunner


class Given(Generator):
    """Proposes what a test gives it."""

    origin: ClassVar[str] = "given"
    given: list[Any]

    def generate(self, context: Context) -> Iterator[Proposal]:
        yield from self.given


def generation(
    bench: Bench,
    *proposals: Proposal | Dropped,
    baseline: dict[str, Any] | None = None,
    runner: Runner | None = None,
    **keys: Any,
) -> Generation:
    maker = Given.model_construct(given=list(proposals), seed=keys.get("seed", 0), sample=keys.get("sample"))
    return Generation([maker], bench.context(baseline, runner))


def mutants(entries: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    return [entry for entry in entries if "id" in entry]


def notes(entries: Iterable[dict[str, Any]]) -> dict[str, int]:
    return {entry["note"]["text"]: entry["note"]["count"] for entry in entries if "note" in entry}


def change(target: str, text: str, **more: Any) -> Proposal:
    return Proposal("op", target, f"{target} changed", files={"policy.md": text}, **more)


# ---------------------------------------------------------------- what is dropped


def test_what_is_equal_to_the_baseline_or_stands_already_is_dropped_and_counted(bench: Bench) -> None:
    policy = (bench.path / "policy.md").read_text()
    entries = generation(
        bench,
        change("same", policy),
        change("spaced", policy.replace(". ", ".   ").replace("\n\n", "\n\n\n")),
        change("one", "x\n"),
        change("again", " x"),
        Proposal("op", "params", "same params", params={"b": 1, "a": 1.5}),
        Proposal("op", "params2", "another type", params={"a": 1.5, "b": 1.0}),
        Dropped(count=3),
        Dropped("something else: dropped", 2),
        baseline={"a": 1.5, "b": 1},
    ).entries()
    assert [entry["id"] for entry in mutants(entries)] == ["op-one", "op-params2"]
    assert notes(entries) == {
        "generated mutants equal to the baseline: dropped": 6,
        "generated mutants equal to another one: dropped": 1,
        "something else: dropped": 2,
    }


def test_nothing_to_generate_is_told(bench: Bench) -> None:
    with pytest.raises(SourceError) as caught:
        generation(bench, change("same", (bench.path / "policy.md").read_text())).entries()
    assert caught.value.message == "no mutant can be generated (1 generated mutants equal to the baseline: dropped)"
    assert caught.value.remedy == "use other operators or files"


# ---------------------------------------------------------------- ids


def test_ids_say_what_is_changed_and_stay_when_something_else_changes(bench: Bench) -> None:
    first = change("must identify the customer, always", "x\n")
    twins = [change("twin", "y\n"), change("twin!", "z\n")]
    before = [entry["id"] for entry in mutants(generation(bench, first, *twins).entries())]
    assert before[0] == "op-must-identify-the-customer-always"
    assert [re.fullmatch(r"op-twin-[0-9a-f]{6}", name) is not None for name in before[1:]] == [True, True]
    after = [
        entry["id"] for entry in mutants(generation(bench, change("new", "n\n"), *reversed(twins), first).entries())
    ]
    assert after == ["op-new", before[2], before[1], before[0]]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Don't do it, ever!", "dont-do-it-ever"),
        ("caf\xe9 n\xb0 5", "cafe-n-5"),
        ("30.5 and 1,000", "30_5-and-1-000"),
        ("\u4e2d\u6587", ""),
        ("a" * 50, "a" * 36),
        ("word " * 20, "word-word-word-word-word-word-word"),
    ],
)
def test_slugs(text: str, expected: str) -> None:
    assert slug(text) == expected


@settings(max_examples=100)
@given(targets=st.lists(st.text(max_size=8) | st.sampled_from(["a", "A", "a-2", ""]), min_size=1, max_size=12))
def test_ids_are_unique_and_valid_whatever_the_targets(
    tmp_path_factory: pytest.TempPathFactory, targets: list[str]
) -> None:
    folder = tmp_path_factory.getbasetemp()
    made = [Proposal("op", target, "d", listed={"n": number}) for number, target in enumerate(targets)]
    maker = Given.model_construct(given=made, seed=0, sample=None)
    entries = mutants(Generation([maker], Context(folder, "c", None, {})).entries())  # type: ignore[arg-type]
    names = [str(entry["id"]) for entry in entries]
    assert len(set(names)) == len(targets)
    assert [variant_id_problem(name) for name in names] == [None] * len(names)


# ---------------------------------------------------------------- samples


def test_a_sample_is_even_over_the_operators_and_keeps_the_order() -> None:
    ids = [f"{operator}-{number}" for operator, count in (("a", 20), ("b", 3), ("c", 1)) for number in range(count)]
    strata: dict[str, list[int]] = {}
    for number, name in enumerate(ids):
        strata.setdefault(name[0], []).append(number)
    chosen = sampled(strata, ids, seed=1, size=9)
    assert Counter(ids[number][0] for number in chosen) == {"a": 5, "b": 3, "c": 1}
    assert chosen == sampled(strata, ids, seed=1, size=9)
    assert chosen != sampled(strata, ids, seed=2, size=9)
    assert sampled(strata, ids, seed=1, size=5) <= chosen
    assert sampled(strata, ids, seed=1, size=None) == set(range(24))
    assert len(sampled(strata, ids, seed=1, size=1)) == 1


def test_what_a_sample_leaves_out_is_counted(bench: Bench) -> None:
    proposals = [change(f"t{number}", f"{number}\n") for number in range(5)]
    entries = generation(bench, *proposals, sample=2).entries()
    names = [entry["id"] for entry in mutants(entries)]
    assert len(names) == 2
    assert names == sorted(names)
    assert notes(entries) == {"generated mutants left out of the sample": 3}


# ---------------------------------------------------------------- entries and params


@settings(max_examples=60)
@given(
    lines=st.lists(
        st.sampled_from(
            [
                "You must ask.",
                "- Never pay 30 or 500.",
                "",
                "# Head",
                "1. do not go (e.g. x). Always.",
                "caf\xe9 may\x85",
                "\tshould",
            ]
        ),
        max_size=9,
    ),
    ends=st.sampled_from(["\n", "\r\n"]),
    seed=st.integers(0, 3),
    sample=st.none() | st.integers(1, 6),
)
def test_the_params_of_a_mutant_hold_the_whole_changed_text(
    tmp_path_factory: pytest.TempPathFactory, lines: list[str], ends: str, seed: int, sample: int | None
) -> None:
    folder = tmp_path_factory.mktemp("any")
    text = ends.join(lines)
    (folder / "p.md").write_bytes(text.encode())
    context = Context(folder, "c", BareRunner(), {"x": 1}, known_makers().operators)
    maker = TextGenerator(files=["p.md"], seed=seed, sample=sample).bound(context)
    try:
        entries = Generation([maker], context).entries()
    except SourceError:
        found = (change for operator in context.operators.values() for change in operator.find("\n".join(lines)))
        assert all(change.text.split() == text.split() for change in found)
        return
    assert entries == Generation([maker], context).entries()
    seen = set()
    for entry in mutants(entries):
        params = Generation([maker], context).params(entry["diff"])
        changed = params["files"]["p.md"]
        assert params == {"x": 1, "files": {"p.md": changed}}
        assert changed.split() != text.split()
        assert ("\r\n" in changed) <= ("\r\n" in text)
        assert changed not in seen
        seen.add(changed)
        assert entry["tags"][0] == "generated"


def test_listed_params_stand_as_they_are(bench: Bench) -> None:
    proposal = Proposal("op", "x", "d", listed={"patch": "--- a\n+++ b\n"}, tags=("module-a", "op"))
    assert generation(bench, proposal).entries() == [
        {
            "id": "op-x",
            "description": "d",
            "tags": ["generated", "op", "module-a"],
            "params": {"patch": "--- a\n+++ b\n"},
        }
    ]


def test_files_of_the_baselines_params_are_kept_beside_the_changed_ones(bench: Bench) -> None:
    made = generation(bench, change("x", "new\n"), baseline={"files": {"other.md": "o"}})
    (entry,) = made.entries()
    assert made.params(entry["diff"]) == {"files": {"other.md": "o", "policy.md": "new\n"}}
    odd = generation(bench, change("x", "new\n"), baseline={"files": 3})
    with pytest.raises(SourceError, match="the baseline's params have a key 'files' that is no mapping"):
        odd.entries()


def test_params_that_are_merged_are_listed_so_that_they_come_to_what_was_meant(bench: Bench) -> None:
    baseline = {"model": "m", "kwargs": {"steps": 3, "deep": {"a": 1, "b": 2}}}
    runner = MergingRunner()
    wanted: list[dict[str, Any]] = [
        {"model": "m", "kwargs": {"steps": 3}},
        {"kwargs": {"steps": 3, "deep": {"a": 1, "b": 2}}},
        {"model": "m", "kwargs": {"steps": 3, "deep": {"a": 1}}},
        {"model": "n", "kwargs": {"steps": 3, "deep": {"a": 1, "b": 2}, "new": 1}},
    ]
    proposals = [Proposal("op", str(number), "d", params=whole) for number, whole in enumerate(wanted)]
    proposals.append(Proposal("op", "no", "d", params={**baseline, "tool_faults": {"a": {"delay": 1}}}))
    made = generation(bench, *proposals, baseline=baseline, runner=runner)
    entries = made.entries()
    assert notes(entries) == {"generated mutants that the runner's params cannot express: dropped": 1}
    assert [runner.inherit(baseline, made.params(entry["diff"])) for entry in mutants(entries)] == wanted


def test_what_a_generator_gives_is_looked_at(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    def refusal(*given: Any, **keys: Any) -> tuple[str, str]:
        with pytest.raises(SourceError) as caught:
            list(generation(bench, *given, **keys).entries())
        return caught.value.message, caught.value.remedy

    message, remedy = refusal(3)
    who = message.removesuffix(" gave 3")
    assert "Given" in who
    assert who != message
    assert remedy == "a generator gives Proposal and Dropped"
    odd = Proposal("an op", "x", "x changed", files={"policy.md": "x"})
    assert refusal(odd) == (f"{who} names an operator 'an op'", "letters, digits and - are allowed")
    there = {"files": "policy.md"}
    assert refusal(change("x", "x"), baseline=there) == (
        "the baseline's params have a key 'files' that is no mapping",
        "call it otherwise: generated mutants give the agent changed files there",
    )
    monkeypatch.setattr(generation_module, "_MUTANTS_LIMIT", 2)
    many = [change(name, name) for name in "abc"]
    assert refusal(*many) == ("from: given makes more than 2 mutants", "narrow it")


def test_what_a_generator_raises_names_it(bench: Bench) -> None:
    class Broken(Generator):
        origin: ClassVar[str] = "broken"

        def generate(self, context: Context) -> Iterator[Proposal]:
            yield change("x", "y\n")
            raise RuntimeError("boom")

    for makers, message in (
        ([Broken()], "cannot generate: RuntimeError: boom"),
        ([Given.model_construct(given=["nonsense"], seed=0, sample=None)], "gave 'nonsense'"),
        ([Given.model_construct(given=[Proposal("a b", "", "")], seed=0, sample=None)], "names an operator 'a b'"),
    ):
        with pytest.raises(SourceError, match=rf"^.*test_generation.*{re.escape(message)}$"):
            Generation(makers, bench.context()).entries()
