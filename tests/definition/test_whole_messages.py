"""Bad experiment files: the whole line that is told, what to do included, of each kind of problem once."""

import pytest
from pydantic import Field

from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.problems import DefinitionError
from tests.definition.definition_lab import Folder, PlainRunner

HEAD = "metricbench: 1\nname: shop\nrunner: {kind: plain}\n"
CASE = HEAD + "cases:\n  - id: a\n    tasks: [{id: t1}, {id: t2}]\n"

RULE = (
    "an id is made of the letters A-Z and a-z, digits and . _ + -, and begins with a letter or a digit, "
    "at most 100 characters"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (HEAD + "cases: [/etc/hosts]\n", "4:9: cases[0]: '/etc/hosts' is absolute; name a file relative to this one"),
        (
            HEAD + "cases: [absent.yml]\n",
            "4:9: cases[0]: 'absent.yml' does not exist; name a YAML file beside this one",
        ),
        (HEAD + "cases: [{id: a}]\n", "4:9: cases[0].tasks: is missing; the key tasks is needed"),
        (
            CASE + "coverage: [tools]\n",
            "7:12: coverage[0]: is the text 'tools'; a coverage system is a mapping with id and kind",
        ),
        (
            CASE + "analysis: {kill: {rule: fisher}}\n",
            "7:18: analysis.kill: says neither alpha nor q; write {rule: fisher, alpha: 0.05} or {rule: "
            "fisher, q: 0.05}",
        ),
        (
            CASE + "score: {primary: a, outputs: {a: label, b: boolean}}\n",
            "7:18: score.primary: the score 'a' is declared as a label; those that count are b",
        ),
        (
            CASE + "score: {outputs: {a: label}}\n",
            "7:9: score.outputs: declares no score that can decide; declare one that is a number or a boolean",
        ),
        (
            CASE + "gates: [pass]\n",
            "7:9: gates[0]: 'pass' compares nothing; a gate is written [case] [variant or coverage system] "
            "figure op number, as in baseline pass@1 >= 0.9",
        ),
        (
            CASE + "gates: [pas@1 > 0]\n",
            "7:9: gates[0]: 'pas@1' is no figure; did you mean 'pass@k'? the figures are pass@k, pass^k, "
            "mutation_score, mean_drop, coverage, pearson, spearman, kendall, and behind each drop",
        ),
        (
            CASE + "gates: [kendall > 0]\n",
            "7:9: gates[0]: the case a has no mutants that count, so it has no kendall; name a case that has "
            "some before the figure",
        ),
        (
            CASE + "gates: [a mutation_score > 0]\n",
            "7:9: gates[0]: the case a has no mutants that count, so it has no mutation_score; add mutants",
        ),
        (
            CASE + "coverage: [{id: a, kind: fake}]\ngates: [a coverage > 0]\n",
            "8:9: gates[0]: 'a' is the id of a case and a coverage system; give one of them another id, or "
            "name the case before it",
        ),
        (
            CASE + "    mutants: [{id: m}]\ngates: [a coverage > 0]\n",
            "8:9: gates[0]: coverage needs a coverage system and there is none; add one under coverage",
        ),
        (
            CASE + "    mutants: [{id: m}]\ncoverage: [{id: c, kind: fake}]\ngates: [a c kendall > 0]\n",
            "9:9: gates[0]: the case a has no subsets, so it has no kendall; add subsets",
        ),
        (
            CASE + "    mutants: [{id: m}, {id: m}]\n",
            "7:29: cases[0].mutants[1].id: the mutant 'm' stands twice, first in line 7; choose another id",
        ),
        (
            CASE + "    mutants: [{id: m, control: true, equivalent: x}]\n",
            "7:38: cases[0].mutants[0].equivalent: a control needs no reason why it is equivalent; a control "
            "is in no score anyway; keep one of control and equivalent",
        ),
        (CASE + "    mutants: [{id: ''}]\n", f"7:20: cases[0].mutants[0].id: an id is empty; {RULE}"),
        (
            CASE + f"    mutants: [{{id: {'x' * 101}}}]\n",
            "7:20: cases[0].mutants[0].id: an id of 101 characters is too long: 'xxxxxxxxxxxxxxxxxxxx'...; "
            "at most 100 are allowed",
        ),
        (CASE + "    mutants: [{id: a/b}]\n", f"7:20: cases[0].mutants[0].id: 'a/b' is no id; {RULE}, such as 'a-b'"),
        (
            CASE + "    mutants: [{id: and}]\n",
            "7:20: cases[0].mutants[0].id: 'and' is a word of pytest's -k expressions; choose another id",
        ),
        (
            CASE + "    mutants: [{id: control-3}]\n",
            "7:20: cases[0].mutants[0].id: 'control-3' is reserved; baseline, coverage and control-<n> are "
            "no ids of mutants; choose another",
        ),
        (
            CASE + "    mutants: [{id: m, tags: [mutant]}]\n",
            "7:30: cases[0].mutants[0].tags[0]: the tag 'mutant' is a mark that items carry already; choose "
            "another tag",
        ),
        (
            CASE + "    mutants: [{id: m, tags: [skip]}]\n",
            "7:30: cases[0].mutants[0].tags[0]: the tag 'skip' is a mark that pytest gives a meaning; choose "
            "another tag",
        ),
        (
            CASE + "    mutants: [{id: m, tags: [timeout]}]\n",
            "7:30: cases[0].mutants[0].tags[0]: the tag 'timeout' is a mark that a pytest plugin acts upon; "
            "choose another tag",
        ),
        (
            CASE + "    mutants: [{id: m, tags: [a b]}]\n",
            f"7:30: cases[0].mutants[0].tags[0]: 'a b' is no id; a tag follows the rule of ids: {RULE}, such as 'a-b'",
        ),
        (
            CASE + "    subsets: [{id: pool, tasks: [t1]}]\n",
            "7:20: cases[0].subsets[0].id: 'pool' is reserved for the subset of all tasks; choose another id",
        ),
        (
            CASE + "    subsets: [{id: s, tasks: [t1, t1]}]\n",
            "7:35: cases[0].subsets[0].tasks[1]: the task 't1' stands twice in this subset; name it once",
        ),
        (
            CASE + "    subsets: {sizes: [3], per_size: 1}\n",
            "7:23: cases[0].subsets.sizes[0]: no subset has 3 tasks: the case has 2; at most 2",
        ),
        (CASE + "seed: &x {<<: *x}\n", "7:7: seed: merges itself with <<; write the keys out"),
        (CASE + "seed: {<<: 5}\n", "7:12: seed['<<']: a merge key << needs a mapping or a list of mappings"),
        (CASE + "---\na: 1\n", "7:1: a second YAML document begins here; a file holds one; remove ---"),
        (CASE + "yes: 1\n", "7:1: the key 'yes' is read as a boolean; quote it; keys are texts"),
        (CASE + "? [a]\n: 1\n", "7:3: a key is a list or a mapping; keys are texts"),
        (
            CASE + "seed: 2024-01-01\n",
            '7:7: seed: 2024-01-01 is read as a date, which JSON does not have; quote it: "2024-01-01"',
        ),
        (
            CASE + "seed: .inf\n",
            "7:7: seed: .inf is no finite number; write a finite one, or quote it where a text is meant",
        ),
        (
            CASE + "analysis: {kill: {rule: fisher, alpha: 0}}\n",
            "7:40: analysis.kill.alpha: is the number 0; a number above 0 is expected",
        ),
        (
            CASE + "analysis: {kill: {rule: fisher, alpha: 1}}\n",
            "7:40: analysis.kill.alpha: is the number 1; a number below 1 is expected",
        ),
        (
            CASE + f"budget: {{cost: 5, cost_scores: [{'x' * 201}]}}\n",
            "7:33: budget.cost_scores[0]: is too long; at most 200 characters",
        ),
        (CASE + f"score: {{primary: {'x' * 201}}}\n", "7:18: score.primary: is too long; at most 200 characters"),
    ],
)
def test_the_whole_line(folder: Folder, text: str, said: str) -> None:
    assert f"experiment.yml:{said}" in [str(problem) for problem in folder.problems(text)]


class Bounded(PlainRunner):
    """Its keys have bounds that none of our own has."""

    pair: list[int] = Field(default=[1, 2], min_length=2, max_length=2)
    letter: str = Field("a", max_length=1)
    one: list[int] = Field(default=[], max_length=1)
    word: str = Field("abc", min_length=3)
    weight: float = Field(1.0, allow_inf_nan=False)


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ("pair: [1]", "pair: is too short; at least 2 entries"),
        ("pair: [1, 2, 3]", "pair: is too long; at most 2 entries"),
        ("one: [1, 2]", "one: is too long; at most 1 entry"),
        ("letter: ab", "letter: is too long; at most 1 character"),
        ("word: ab", "word: is too short; at least 3 characters"),
        (f"weight: {'9' * 400}", f"weight: is the number {'9' * 57}...; a finite number is expected"),
    ],
)
def test_the_whole_line_of_a_key_with_bounds(folder: Folder, keys: str, said: str) -> None:
    path = folder.write("experiment.yml", CASE.replace("kind: plain", f"kind: plain, {keys}"))
    with pytest.raises(DefinitionError) as caught:
        load_experiment(path, runners={"plain": Bounded}, systems={})
    column = len(f"runner: {{kind: plain, {keys.partition(' ')[0]} ") + 1
    assert [str(problem) for problem in caught.value.problems] == [f"experiment.yml:3:{column}: runner.{said}"]
