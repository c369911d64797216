"""``mutants: {generate: ...}`` in an experiment: what is loaded, what the lock holds, what is told when it is wrong."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ClassVar, Literal, Self

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pytest_metricbench.bases import Runner
from pytest_metricbench.contracts import AttemptRequest, Outcome
from pytest_metricbench.definition.experiment import Experiment, Note, Variant
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.lock import _block, _holds_lines
from pytest_metricbench.definition.problems import DefinitionError
from pytest_metricbench.generating.base import Context, Generator, Makers, Proposal, TextChange, TextOperator
from pytest_metricbench.generating.builtin import MakerError, known_makers
from pytest_metricbench.origins import origin_of
from pytest_metricbench.sources import CaseSource
from tests.generating.generating_lab import POLICY, Bench
from tests.present import present

ORIGINS = ", ".join(sorted(known_makers().generators))
TEXT = "generate: {from: text, files: [policy.md], operators: [drop-sentence, swap-numbers]}"


def ids(experiment: Experiment) -> list[str]:
    return [variant.id for variant in experiment.cases[0].variants]


def variant(experiment: Experiment, name: str) -> Variant:
    return next(variant for variant in experiment.cases[0].variants if variant.id == name)


# ---------------------------------------------------------------- what is loaded


def test_mutants_carry_the_whole_changed_text_beside_the_baselines_params(bench: Bench) -> None:
    experiment = bench.load(TEXT, baseline="{model: m}")
    assert (
        ids(experiment)
        == [
            "baseline",
            "drop-sentence-you-must-identify-the-customer-first",
            "drop-sentence-goods-are-taken-back-within-30-days",
            "drop-sentence-leave-a-note-e-g-on-the-order",
            "swap-numbers-30-and-500",
        ][:3]
        + ids(experiment)[3:]
    )
    swapped = variant(experiment, "swap-numbers-30-and-500")
    text = POLICY.replace("30", "?").replace("500", "30").replace("?", "500")
    assert swapped.params == {"model": "m", "files": {"policy.md": text}}
    assert swapped.description == "policy.md, line 3: '30' and '500' changed places (2 lines apart)"
    assert swapped.tags == ("generated", "swap-numbers")
    assert variant(experiment, "baseline").params == {"model": "m"}


def test_the_same_comes_from_the_lock_and_without_it(bench: Bench) -> None:
    anew = bench.locked(TEXT)
    kept = bench.load()
    assert kept.cases[0].variants == anew.cases[0].variants
    assert present(kept.lock).text == present(anew.lock).text


def test_listed_mutants_stand_in_front_and_say_more_about_generated_ones(bench: Bench) -> None:
    listed = (
        TEXT + "\nlisted:\n  - {id: by-hand, params: {x: 1}}\n"
        "  - {id: swap-numbers-30-and-500, equivalent: nobody cares, tags: [known]}"
    )
    experiment = bench.load(listed)
    assert ids(experiment)[:2] == ["baseline", "by-hand"]
    known = variant(experiment, "swap-numbers-30-and-500")
    assert known.equivalent == "nobody cares"
    assert known.tags == ("known",)
    assert "500" in known.params["files"]["policy.md"]


def test_several_generators_and_notes(bench: Bench) -> None:
    several = (
        "generate:\n  - {from: text, files: [policy.md], sample: 2, seed: 4}\n"
        "  - {from: params, operators: [zero-param, remove-param]}"
    )
    experiment = bench.load(several, baseline="{steps: 0, top: 2}")
    assert len(ids(experiment)) == 1 + 2 + 3
    assert variant(experiment, "zero-param-top").params == {"steps": 0, "top": 0}
    repeated, left = experiment.cases[0].notes
    assert repeated == Note("generated mutants equal to another one: dropped", 1)  # a rule of one sentence
    assert left == Note("generated mutants left out of the sample", 11)


def test_params_texts_can_be_damaged_too(bench: Bench) -> None:
    experiment = bench.load(
        "generate: {from: text, params: [prompt.system], operators: [weaken-modal]}",
        baseline='{prompt: {system: "You must ask. Never shout.\\n", other: 1}}',
    )
    found = [variant.params["prompt"]["system"] for variant in experiment.cases[0].variants]
    assert found == [
        "You must ask. Never shout.\n",
        "You may ask. Never shout.\n",
        "You must ask. Rarely shout.\n",
    ]


def test_a_merging_runner_gets_whole_mutants(bench: Bench) -> None:
    experiment = bench.locked(
        "generate: [{from: params}, {from: tools, names: [a]}]",
        runner="merging",
        baseline="{model: m, kwargs: {steps: 3}}",
    )
    assert variant(bench.load(), "zero-param-kwargs-steps").params == {"model": "m", "kwargs": {"steps": 0}}
    assert variant(experiment, "remove-param-model").params == {"kwargs": {"steps": 3}}
    assert [(note.text, note.count) for note in experiment.cases[0].notes] == [
        ("generated mutants equal to another one: dropped", 1),
        ("generated mutants that the runner's params cannot express: dropped", 4),
    ]


# ---------------------------------------------------------------- inputs and fingerprints


def test_a_changed_file_is_an_input_of_the_case_and_part_of_every_fingerprint(bench: Bench) -> None:
    def digests(experiment: Experiment) -> dict[str, str]:
        prints = Fingerprints(experiment)
        case = experiment.cases[0]
        return {variant.id: prints.attempt(case, variant, case.tasks[0]) for variant in case.variants}

    before = bench.load(TEXT)
    assert [file.name for file in before.cases[0].inputs] == ["policy.md"]
    one = digests(before)
    (bench.path / "policy.md").write_text(POLICY + "\nBe kind.\n")
    other = digests(bench.load(TEXT))
    assert set(one) < set(other)
    assert not {name for name in one if one[name] == other[name]}


def test_an_input_that_is_named_already_stands_once(bench: Bench) -> None:
    path = bench.write(TEXT)
    path.write_text(path.read_text().replace("    tasks:", "    inputs: ['*.md']\n    tasks:"))
    assert [file.name for file in bench.load().cases[0].inputs] == ["policy.md"]


# ---------------------------------------------------------------- the lock


def test_the_lock_can_be_reviewed(bench: Bench) -> None:
    experiment = bench.load("generate: {from: text, files: [policy.md], operators: [swap-numbers]}", baseline="{a: 1}")
    digest = yaml.safe_load(present(experiment.lock).text)["expansions"][0]["files"]["policy.md"]
    assert (
        present(experiment.lock).text
        == f"""\
# What experiment.yml expands to: review it and commit it.
# pytest --metricbench-lock experiment.yml writes it again.
lock: 1
expansions:
  - kind: mutants
    case: desk
    made_from: {{from: text, files: [policy.md], operators: [swap-numbers]}}
    files: {{policy.md: "{digest}"}}
    entries:
      - id: swap-numbers-30-and-500
        description: "policy.md, line 3: '30' and '500' changed places (2 lines apart)"
        tags: [generated, swap-numbers]
        diff: |
          --- a/policy.md
          +++ b/policy.md
          @@ -1,6 +1,6 @@
           # Refunds
{"           "}
          -You must identify the customer first. Goods are taken back within 30 days.
          +You must identify the customer first. Goods are taken back within 500 days.
{"           "}
          -- Never refund more than 500 EUR by yourself.
          +- Never refund more than 30 EUR by yourself.
           - Leave a note, e.g. on the order.
"""
    )


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda bench: (bench.path / "policy.md").write_text(POLICY + "More.\n"),
            "experiment.lock.yml disagrees: the file policy.md changed; renew it with --metricbench-lock",
        ),
        (
            lambda bench: bench.write(TEXT.replace("}", ", seed: 3}")),
            "experiment.lock.yml disagrees: seed was null and is 3; renew it with --metricbench-lock",
        ),
        (
            lambda bench: bench.write("generate: {from: text, files: [policy.md]}"),
            "experiment.lock.yml disagrees: operators was",
        ),
        (lambda bench: (bench.path / "policy.md").unlink(), "the file 'policy.md' does not exist; it would be"),
    ],
)
def test_a_lock_that_disagrees_says_what_changed(bench: Bench, change: Callable[..., Any], message: str) -> None:
    bench.locked(TEXT)
    change(bench)
    (problem,) = bench.problems()
    assert message in problem


def test_params_that_changed_make_it_disagree_where_mutants_are_made_of_them(bench: Bench) -> None:
    bench.locked("generate: {from: params}", baseline="{a: 1}")
    bench.write("generate: {from: params}", baseline="{a: 2}")
    (problem,) = bench.problems()
    assert problem.endswith("experiment.lock.yml disagrees: the baseline changed; renew it with --metricbench-lock")
    assert bench.load(renew_lock=True).cases[0].variants[1].params == {}


def test_a_lock_that_was_written_by_hand_is_held_to_the_files(bench: Bench) -> None:
    bench.locked("generate: {from: text, files: [policy.md], operators: [swap-numbers]}")
    lock = bench.path / "experiment.lock.yml"
    lock.write_text(lock.read_text().replace("-You must identify", "-You should identify"))
    (problem,) = bench.problems()
    assert problem == (
        "experiment.lock.yml:13:15: expansions[0].entries[0].diff: the diff does not fit: hunk 1 (@@ -1,6 "
        "+1,6 @@) does not "
        "apply: line 3 of policy.md is 'You must identify the customer first. Goods are taken back within 30 "
        "days.', the "
        "patch expects 'You should identify the customer first. Goods are taken back within 30 days.'; renew it with "
        "--metricbench-lock"
    )


def test_a_param_that_is_no_text(bench: Bench) -> None:
    (problem,) = bench.problems("generate: {from: text, params: [model]}", baseline="{model: 5}")
    assert problem == (
        "experiment.yml:9:17: cases[0].mutants.generate: the baseline's param 'model' is no text; name a text"
    )


def test_a_lock_whose_params_the_runner_does_not_take(bench: Bench) -> None:
    bench.locked("generate: {from: params}", baseline="{model: m, kwargs: {a: 1}}", runner="merging")
    lock = bench.path / "experiment.lock.yml"
    lock.write_text(lock.read_text().replace("+model: ''\n", "+other: m\n", 1))
    (problem,) = bench.problems()
    assert problem == (
        "experiment.lock.yml:22:15: expansions[0].entries[1].diff: the runner 'merging' cannot express what the diff "
        "makes of the params; renew it with --metricbench-lock"
    )


def test_of_many_changed_files_the_first_are_told(bench: Bench) -> None:
    names = [f"{letter}.md" for letter in "abcdefgh"]
    for name in names:
        (bench.path / name).write_text("You must ask.\n")
    asked = f"generate: {{from: text, files: [{', '.join(names)}], operators: [weaken-modal]}}"
    bench.locked(asked)
    for name in names[:6]:
        (bench.path / name).write_text("You must not ask.\n")
    (six,) = bench.problems()
    (bench.path / "g.md").write_text("You must not ask.\n")
    (seven,) = bench.problems()
    where, said = "experiment.yml:9:17: cases[0].mutants.generate", "experiment.lock.yml disagrees: "
    five = ", ".join(f"the file {name} changed" for name in names[:5])
    assert six == f"{where}: {said}{five}, the file f.md changed; renew it with --metricbench-lock"
    assert seven == f"{where}: {said}{five}, and 2 more changes; renew it with --metricbench-lock"


def test_a_diff_in_the_lock_leads_to_no_other_file(bench: Bench, tmp_path: Path) -> None:
    (tmp_path.parent / "secret.txt").write_text("one\n")
    bench.locked("generate: {from: text, files: [policy.md], operators: [swap-numbers]}")
    lock = bench.path / "experiment.lock.yml"
    content = yaml.safe_load(lock.read_text())
    entry = content["expansions"][0]["entries"][0]
    entry["diff"] = "--- a/../secret.txt\n+++ b/../secret.txt\n@@ -1 +1 @@\n-one\n+two\n"
    lock.write_text(yaml.safe_dump(content))
    (problem,) = bench.problems()
    assert "'../secret.txt' does not name a file of the experiment's folder" in problem


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.lists(
    st.sampled_from(
        ["a", " b", "\t", "", " ", "--- x", "...", "# c", "k: v", "\x85", "\u2028", "\ufeff", "\r", "\u202e"]
    ),
    max_size=5,
).map("\n".join)


@settings(max_examples=300)
@given(
    entry=st.dictionaries(
        st.text("ab", min_size=1, max_size=3),
        TEXTS | st.integers() | st.dictionaries(TEXTS, TEXTS, max_size=2),
        min_size=1,
    )
)
def test_texts_of_several_lines_are_read_back_from_a_lock_as_they_were(entry: dict[str, Any]) -> None:
    if _holds_lines(entry):
        text = "list:\n" + "\n".join(["  - x: 1", *_block(entry, " " * 4)]) + "\n  - end\n"
        assert yaml.load(text, getattr(yaml, "CSafeLoader", yaml.SafeLoader)) == {"list": [{"x": 1, **entry}, "end"]}


# ---------------------------------------------------------------- what is wrong


@pytest.mark.parametrize(
    ("mutants", "problem"),
    [
        (
            "generate: {from: txt, files: [policy.md]}",
            "9:24: cases[0].mutants.generate.from: there is no generator 'txt'; did you mean 'text'? the "
            f"generators are {ORIGINS}",
        ),
        (
            "generate: {files: [policy.md]}",
            "9:17: cases[0].mutants.generate.from: is missing; it says which generator this is; the generators "
            f"are {ORIGINS}",
        ),
        (
            "generate: text",
            "9:17: cases[0].mutants.generate: is the text 'text'; a mapping with from is expected, or a list of such",
        ),
        ("generate: []", "9:17: cases[0].mutants.generate: is empty; name a generator, or leave the key out"),
        (
            "generate: {from: text, files: [policy.md], operatosr: [x]}",
            "9:50: cases[0].mutants.generate.operatosr: is an unknown key; did you mean 'operators'? the keys "
            "here are seed, "
            "sample, files, params, operators",
        ),
        (
            "generate: {from: text, files: [policy.md], operators: [drop-sentense]}",
            "9:17: cases[0].mutants.generate: there is no operator 'drop-sentense'; they are drop-rule, drop-sentence, "
            "invert-bound, invert-modal, remove-example, swap-dates, swap-numbers, truncate, weaken-modal",
        ),
        (
            "generate: {from: text}",
            "9:17: cases[0].mutants.generate: from: text names no text; write files: [policy.md], or params: "
            "[system_prompt]",
        ),
        (
            "generate: {from: text, params: [prompt]}",
            "9:17: cases[0].mutants.generate: the baseline's params have no 'prompt'; the baseline has no params",
        ),
        (
            "generate: {from: text, files: [policy.md], operators: [swap-dates]}",
            "9:17: cases[0].mutants.generate: no mutant can be generated; use other operators or files",
        ),
        (
            "generate: {from: text, files: [latin.md]}",
            "9:17: cases[0].mutants.generate: line 2 of the file 'latin.md' is no UTF-8; save it as UTF-8 text",
        ),
        (
            "generate: {from: text, files: [big.md]}",
            "9:17: cases[0].mutants.generate: the file 'big.md' has more than 128 KiB; name a smaller one",
        ),
        (
            "generate: {from: text, files: [folder]}",
            "9:17: cases[0].mutants.generate: 'folder' is not a regular file; name a text file",
        ),
        (
            "generate: {from: text, files: [link.md]}",
            "9:17: cases[0].mutants.generate: 'link.md' leaves the experiment's folder by a link; copy the file "
            "into the folder",
        ),
        (
            "generate: {from: params}",
            "9:17: cases[0].mutants.generate: from: params damages the baseline's params, and it has none; write "
            "baseline: "
            "{params: ...}",
        ),
        (
            "generate: {from: text, files: [policy.md], sample: 0}",
            "9:58: cases[0].mutants.generate.sample: is the number 0; at least 1 is expected",
        ),
        (
            "generate: {from: tools, names: [a], operators: [return-nothing]}",
            "cases[0].mutants.generate.operators[0]: is the text 'return-nothing'; 'remove-tool', 'rename-tool', "
            "'blank-description',",
        ),
        (
            "generate: {from: text, files: [policy.md]}\nlist: []",
            "10:7: cases[0].mutants.list: is an unknown key; did you mean 'listed'? the keys here are generate, listed",
        ),
        (
            "generate: {from: text, files: [policy.md]}\nlisted: [{id: x, parms: {}}]",
            "10:24: cases[0].mutants.listed[0].parms: is an unknown key; did you mean 'params'?",
        ),
        (
            "genrate: {from: params}",
            "9:7: cases[0].mutants.genrate: is an unknown key; did you mean 'generate'? the keys here are "
            "generate, listed",
        ),
        (
            "listed: []",
            "9:7: cases[0].mutants: the runner 'bare' expands no mutants; list the mutants",
        ),
    ],
)
def test_bad_input(bench: Bench, tmp_path_factory: pytest.TempPathFactory, mutants: str, problem: str) -> None:
    (bench.path / "latin.md").write_bytes(b"good\nb\xe4d\n")
    (bench.path / "big.md").write_text("x\n" * (129 << 10))
    (bench.path / "folder").mkdir()
    outside = tmp_path_factory.mktemp("outside") / "policy.md"
    outside.write_text("You must.\n")
    (bench.path / "link.md").symlink_to(outside)
    told = bench.problems(mutants)
    assert any(problem in line for line in told), told
    assert len(told) == 1, told


def test_an_id_that_a_listed_mutant_has_is_joined_and_two_listed_ones_are_told(bench: Bench) -> None:
    (problem,) = bench.problems(TEXT + "\nlisted: [{id: a}, {id: a}]")
    assert "the mutant 'a' stands twice" in problem


def test_recorded_attempts_have_no_generated_mutants(bench: Bench) -> None:
    class Records(CaseSource):
        def expand(self, folder: Path) -> list[dict[str, Any]]:
            return [{"task": {"id": "a"}}, {"baseline": {"attempts": {"a": 1}}}]

    class Recorder(Runner):
        kind: Literal["recorder"] = "recorder"

        def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
            raise NotImplementedError

        def case_source(self, case: str, folder: Path) -> CaseSource:
            return Records()

    path = bench.write(TEXT, runner="recorder")
    with pytest.raises(DefinitionError) as caught:
        load_experiment(path, runners={"recorder": Recorder}, systems={}, makers=known_makers())
    assert str(caught.value) == (
        "experiment.yml:9:7: cases[0].mutants: the mutants of recorded attempts are those that were recorded; list "
        "what is to be said about them, by id"
    )


# ---------------------------------------------------------------- plugins


def test_generators_and_operators_of_plugins(bench: Bench) -> None:
    class Personas(Generator):
        origin: ClassVar[str] = "personas"
        names: list[str]

        def generate(self, context: Context) -> Iterator[Proposal]:
            for name in self.names:
                yield Proposal("persona", name, f"speaks like {name}", params={**context.baseline, "persona": name})

    def shout(text: str) -> Iterator[TextChange]:
        yield TextChange(text.upper(), "everything", "all of it is shouted")

    makers = known_makers([[Personas]], [[TextOperator("shout", shout)]])
    experiment = bench.load(
        "generate: [{from: personas, names: [a pirate]}, {from: text, files: [policy.md], operators: [shout]}]",
        makers=makers,
    )
    assert ids(experiment)[1:] == ["persona-a-pirate", "shout-everything"]
    assert variant(experiment, "shout-everything").params["files"]["policy.md"] == POLICY.upper()


def test_a_generator_that_fails_is_named(bench: Bench) -> None:
    class Broken(Generator):
        origin: ClassVar[str] = "broken"
        where: str

        def bound(self, context: Context) -> Self:
            if self.where == "bound":
                raise RuntimeError("boom")
            return self

        def lock_state(self, context: Context) -> dict[str, Any]:
            if self.where == "state":
                raise RuntimeError("boom")
            return {}

        def generate(self, context: Context) -> Iterator[Proposal]:
            raise RuntimeError("boom")

    shown = origin_of(Broken)
    for where, message in (
        (
            "bound",
            f"test_generated_in_experiments.test_a_generator_that_fails_is_named.<locals>.Broken of {shown} cannot "
            "check this: RuntimeError: boom",
        ),
        ("state", f"Broken of {shown} cannot say what it depends on: RuntimeError: boom"),
        (
            "generate",
            f"test_generated_in_experiments.test_a_generator_that_fails_is_named.<locals>.Broken of {shown} cannot "
            "generate: RuntimeError: boom",
        ),
    ):
        (problem,) = bench.problems(
            f"generate: {{from: broken, where: {where}}}", makers=Makers({"broken": Broken}, {})
        )
        assert problem.endswith(message)


def test_what_is_no_generator_or_has_no_free_name_is_refused() -> None:
    def nothing(text: str) -> list[TextChange]:
        return []

    class Nameless(Generator):
        def generate(self, context: Context) -> list[Proposal]:
            return []

    class Taken(Nameless):
        origin: ClassVar[str] = "text"

    for groups, message in (
        (([[int]], []), "<class 'int'> is no generator; a subclass of Generator is expected"),
        (([[Nameless]], []), 'names no origin; write origin: ClassVar[str] = "name"'),
        (([[Taken]], []), "is taken by pytest_metricbench.generating.text.TextGenerator; rename one"),
        (([], [["x"]]), "'x' is no operator; a TextOperator is expected"),
        (
            ([], [[TextOperator("a b", nothing)]]),
            "the operator name 'a b' is none: at most 40 letters, digits and - are allowed",
        ),
        (([], [[TextOperator("truncate", nothing)]]), "there are two operators 'truncate'; rename one"),
    ):
        with pytest.raises(MakerError) as caught:
            known_makers(*groups)
        assert str(caught.value).endswith(message)
