"""Bad experiment files: where each problem is told, and what it says."""

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import pytest

from pytest_metricbench.contracts import AttemptRequest, Outcome
from pytest_metricbench.definition.problems import DefinitionError, Problem
from tests.definition.definition_lab import Folder

HEAD = "metricbench: 1\nname: shop\nrunner: {kind: plain}\n"
CASE = HEAD + "cases:\n  - id: a\n    tasks: [{id: t1}, {id: t2}]\n"

ANYWHERE = [
    # the file as a whole
    ("", 1, 1, "", "the file is empty"),
    ("- 1\n", 1, 1, "", "is a list; an experiment begins with metricbench: 1"),
    ("metricbench: 2\nnew: 5\n", 1, 14, "metricbench", "version 2 and this pytest-metricbench reads 1; pip install"),
    ("metricbench: 0\n", 1, 14, "metricbench", "there is no format version 0"),
    ('metricbench: "1"\n', 1, 14, "metricbench", "is the text '1'; write metricbench: 1"),
    ("metricbench: true\n", 1, 14, "metricbench", "is the boolean true"),
    ("metricbench: 1.0\n", 1, 14, "metricbench", "is the number 1.0"),
    ("metricbnech: 1\nname: x\n", 1, 1, "metricbnech", "did you mean 'metricbench'?"),
    ("name: x\n", 1, 1, "metricbench", "is missing"),
    ("metricbench: 1\nname: [\n", 3, 1, "", "is no YAML"),
]

TOP = [
    # keys of the experiment, in the line after HEAD without cases: line 4
    ("casess: []\n", 4, 1, "casess", "is an unknown key; did you mean 'cases'?"),
    ("cases: []\n", 4, 8, "cases", "is empty; at least one entry is expected"),
    ("cases:\n", 4, 7, "cases", "is null; a list is expected"),
    ("cases: {id: a}\n", 4, 8, "cases", "is a mapping; a list is expected"),
    ("cases: [7]\n", 4, 9, "cases[0]", "is the number 7; a case is a mapping, or the name of the file"),
    ("cases: [absent.yml]\n", 4, 9, "cases[0]", "'absent.yml' does not exist"),
    ("cases: [/etc/hosts]\n", 4, 9, "cases[0]", "is absolute"),
    ("cases: [../x.yml]\n", 4, 9, "cases[0]", "leaves the experiment's folder"),
    ('cases: [""]\n', 4, 9, "cases[0]", "is no name of a file"),
]

EXPERIMENT = [
    # appended to CASE: line 7
    ("seed: -1\n", 7, 7, "seed", "is the number -1; at least 0"),
    ("seed: x\n", 7, 7, "seed", "is the text 'x'; a whole number"),
    ("attempts: 0\n", 7, 11, "attempts", "is the number 0; at least 1"),
    ("attempts: -3\n", 7, 11, "attempts", "at least 1"),
    ("attempts: 1.5\n", 7, 11, "attempts", "is the number 1.5; a whole number"),
    ("attempts: 2.0\n", 7, 11, "attempts", "is the number 2.0; a whole number"),
    ("attempts: true\n", 7, 11, "attempts", "is the boolean true; a whole number"),
    ('attempts: "5"\n', 7, 11, "attempts", "is the text '5'; a whole number is expected; write 5 without quotes"),
    ("attempts: 1e3\n", 7, 11, "attempts", "YAML reads 1e3 as a text, write 1000"),
    ("attempts: 1000000\n", 7, 11, "attempts", "at most 10000"),
    ("attempts: 0xFFFFFFFFFFFFFFFFFFFFF\n", 7, 11, "attempts", "at most 10000"),
    ("retries: -1\n", 7, 10, "retries", "at least 0"),
    ("retries: 101\n", 7, 10, "retries", "at most 100"),
    ("controls: -1\n", 7, 11, "controls", "is the number -1; at least 0"),
    ("seed: 18446744073709551616\n", 7, 7, "seed", "below 18446744073709551616"),
    ("controls: yes\n", 7, 11, "controls", "is the boolean true"),
    ("controls: 1000000000\n", 7, 11, "controls", "at most 100"),
    ("seed: 1\nseed: 2\n", 8, 1, "seed", "stands twice, first in line 7"),
    ("score: {primary: ''}\n", 7, 18, "score.primary", "is empty"),
    ("score: {pass_at_least: true}\n", 7, 24, "score.pass_at_least", "is the boolean true; a number"),
    ("score: {pass_at_least: .nan}\n", 7, 24, "score.pass_at_least", "no finite number"),
    ("score: {pass_at_leats: 1}\n", 7, 9, "score.pass_at_leats", "did you mean 'pass_at_least'?"),
    ("score: {outputs: {a: numbr}}\n", 7, 22, "score.outputs.a", "'continuous', 'discrete', 'boolean', 'label'"),
    ("score: {outputs: [a]}\n", 7, 18, "score.outputs", "is a list; a mapping"),
    ("score: {primary: b, outputs: {a: boolean}}\n", 7, 18, "score.primary", "'b' is not among the outputs"),
    ("score: {primary: a, outputs: {a: label, b: boolean}}\n", 7, 18, "score.primary", "is declared as a label"),
    ("score: {outputs: {a: boolean, b: boolean}}\n", 7, 9, "score.outputs", "name one of a, b in score.primary"),
    ("score: {outputs: {a: label}}\n", 7, 9, "score.outputs", "declares no score that can decide"),
    ("coverage: {id: x}\n", 7, 11, "coverage", "is a mapping; a list"),
    ("coverage: [tools]\n", 7, 12, "coverage[0]", "is the text 'tools'"),
    ("coverage: [{kind: fake}]\n", 7, 12, "coverage[0].id", "is missing"),
    (
        "coverage: [{id: x}]\n",
        7,
        12,
        "coverage[0].kind",
        "is missing; it says which coverage system this is; the kinds",
    ),
    ("coverage: [{id: x, kind: fkae}]\n", 7, 26, "coverage[0].kind", "did you mean 'fake'? the kinds are fake"),
    ("coverage: [{id: x, kind: 3}]\n", 7, 26, "coverage[0].kind", "is the number 3"),
    ("coverage: [{id: x y, kind: fake}]\n", 7, 17, "coverage[0].id", "'x y' is no id"),
    ("coverage: [{id: x, kind: fake, tiemout: 3}]\n", 7, 32, "coverage[0].tiemout", "did you mean 'timeout'?"),
    ("coverage: [{id: x, kind: fake, timeout: 0}]\n", 7, 41, "coverage[0].timeout", "a number above 0"),
    ("coverage:\n  - {id: x, kind: fake}\n  - {id: x, kind: fake}\n", 9, 10, "coverage[1].id", "first in line 8"),
    ("analysis: {pass_at_k: []}\n", 7, 23, "analysis.pass_at_k", "is empty"),
    ("analysis: {pass_at_k: [0]}\n", 7, 24, "analysis.pass_at_k[0]", "at least 1"),
    ("analysis: {pass_at_k: [1, 1]}\n", 7, 23, "analysis.pass_at_k", "1 stands twice"),
    ("analysis: {pass_at_k: [1, 3]}\n", 7, 27, "analysis.pass_at_k[1]", "k = 3 is above the 1 attempt of a task"),
    ("analysis: {kill: flip}\n", 7, 18, "analysis.kill", "is the text 'flip'; a mapping"),
    ("analysis: {kill: {}}\n", 7, 18, "analysis.kill.rule", "is missing"),
    ("analysis: {kill: {rule: fishr}}\n", 7, 25, "analysis.kill.rule", "did you mean 'fisher'?"),
    ("analysis: {kill: {rule: fisher}}\n", 7, 18, "analysis.kill", "alpha: 0.05} or {rule: fisher, q: 0.05}"),
    ("analysis: {kill: {rule: fisher, q: 0.1, alpha: 0.1}}\n", 7, 18, "analysis.kill", "says both alpha and q"),
    ("analysis: {kill: {rule: fisher, alpha: 0}}\n", 7, 40, "analysis.kill.alpha", "a number above 0"),
    ("analysis: {kill: {rule: fisher, q: 1}}\n", 7, 36, "analysis.kill.q", "a number below 1"),
    ("analysis: {kill: {rule: flip, q: 0.1}}\n", 7, 31, "analysis.kill.q", "the rule flip has no q"),
    ("analysis: {mutation_score: killshare}\n", 7, 28, "analysis.mutation_score", "did you mean 'kill_share'?"),
    ("analysis: {resamples: 0}\n", 7, 23, "analysis.resamples", "at least 1"),
    ("analysis: {resamples: many}\n", 7, 23, "analysis.resamples", "a mapping or a whole number is expected"),
    ("analysis: {resamples: {bootstrap: 1.5}}\n", 7, 35, "analysis.resamples.bootstrap", "a whole number"),
    ("analysis: {resamples: {boostrap: 1}}\n", 7, 24, "analysis.resamples.boostrap", "did you mean 'bootstrap'?"),
    ("gates: baseline pass@1 > 0\n", 7, 8, "gates", "a list is expected"),
    ("gates: [5]\n", 7, 9, "gates[0]", "is the number 5; a text"),
    ("gates:\n  - baseline pass@1 >= 0.5\n  - refund pass@1 >= 1\n", 9, 5, "gates[1]", "no case, variant or coverage"),
]

IN_CASE = [
    # appended to CASE, indented: line 7
    ("descriptin: x", 7, 5, "cases[0].descriptin", "did you mean 'description'?"),
    ("inputs: agent.py", 7, 13, "cases[0].inputs", "is the text 'agent.py'; a list"),
    ("inputs: [agent.py]", 7, 14, "cases[0].inputs[0]", "the file 'agent.py' does not exist"),
    ("inputs: ['*.md']", 7, 14, "cases[0].inputs[0]", "no file matches '*.md'"),
    ("inputs: [../x.py]", 7, 14, "cases[0].inputs[0]", "leaves the experiment's folder; name it absolutely"),
    ("inputs: [../*.py]", 7, 14, "cases[0].inputs[0]", "leaves the experiment's folder; name it absolutely"),
    ("inputs: [.]", 7, 14, "cases[0].inputs[0]", "is a folder; name its files, as in './**'"),
    ("baseline: {id: x}", 7, 16, "cases[0].baseline.id", "is an unknown key"),
    ("baseline:", 7, 14, "cases[0].baseline", "is null; a mapping"),
    ("baseline: {params: [1]}", 7, 24, "cases[0].baseline.params", "is a list; a mapping"),
    ("mutants: [{}]", 7, 15, "cases[0].mutants[0].id", "is missing"),
    ("mutants: [{id: baseline}]", 7, 20, "cases[0].mutants[0].id", "is reserved"),
    ("mutants: [{id: coverage}]", 7, 20, "cases[0].mutants[0].id", "is reserved"),
    ("mutants: [{id: control-3}]", 7, 20, "cases[0].mutants[0].id", "is reserved"),
    (
        "mutants: [{id: no}]",
        7,
        20,
        "cases[0].mutants[0].id",
        'is the boolean false; a text is expected; quote it: "no"',
    ),
    ("mutants: [{id: 12}]", 7, 20, "cases[0].mutants[0].id", 'quote it: "12"'),
    ("mutants: [{id: ~}]", 7, 20, "cases[0].mutants[0].id", "is null"),
    ("mutants: [{id: and}]", 7, 20, "cases[0].mutants[0].id", "-k expressions"),
    ("mutants: [{id: a/b}]", 7, 20, "cases[0].mutants[0].id", "such as 'a-b'"),
    ("mutants: [{id: ..}]", 7, 20, "cases[0].mutants[0].id", "is no id"),
    ("mutants: [{id: é}]", 7, 20, "cases[0].mutants[0].id", "is no id"),
    ("mutants: [{id: " + "x" * 300 + "}]", 7, 20, "cases[0].mutants[0].id", "300 characters is too long"),
    ("mutants: [{id: m, control: 1}]", 7, 32, "cases[0].mutants[0].control", "true or false"),
    ("mutants: [{id: m, equivalent: ''}]", 7, 35, "cases[0].mutants[0].equivalent", "is empty"),
    ("mutants: [{id: m, control: true, equivalent: x}]", 7, 38, "cases[0].mutants[0].equivalent", "keep one"),
    ("mutants: [{id: m}, {id: m}]", 7, 29, "cases[0].mutants[1].id", "'m' stands twice, first in line 7"),
    ("mutants: [{id: m, tags: [skip]}]", 7, 30, "cases[0].mutants[0].tags[0]", "that pytest gives a meaning"),
    ("mutants: [{id: m, tags: [mutant]}]", 7, 30, "cases[0].mutants[0].tags[0]", "carry already"),
    ("mutants: [{id: m, tags: [a b]}]", 7, 30, "cases[0].mutants[0].tags[0]", "a tag follows the rule of ids"),
    ("mutants: [{id: m, tags: [x, x]}]", 7, 29, "cases[0].mutants[0].tags", "'x' stands twice"),
    ("mutants: [{id: m, params: {d: 2024-02-03}}]", 7, 35, "cases[0].mutants[0].params.d", "is read as a date"),
    ("mutants: [{id: m, params: {no: 1}}]", 7, 32, "cases[0].mutants[0].params", "the key 'no' is read as a boolean"),
    ("subsets: [{id: s}]", 7, 15, "cases[0].subsets[0].tasks", "is missing"),
    ("subsets: [{id: pool, tasks: [t1]}]", 7, 20, "cases[0].subsets[0].id", "is reserved"),
    ("subsets: [{id: s, tasks: []}]", 7, 30, "cases[0].subsets[0].tasks", "is empty"),
    ("subsets: [{id: s, tasks: [t3]}]", 7, 31, "cases[0].subsets[0].tasks[0]", "the case has no task 't3'"),
    ("subsets: [{id: s, tasks: [t1, t1]}]", 7, 35, "cases[0].subsets[0].tasks[1]", "stands twice"),
    ("subsets: [{id: s, tasks: [1]}]", 7, 31, "cases[0].subsets[0].tasks[0]", "a text is expected"),
    ("subsets: [{id: s, tasks: [t1]}, {id: s, tasks: [t2]}]", 7, 42, "cases[0].subsets[1].id", "stands twice"),
    ("subsets: 5", 7, 14, "cases[0].subsets", "a list or a mapping or a text is expected"),
    ("subsets: absent.yml", 7, 14, "cases[0].subsets", "does not exist"),
    ("subsets: {sizes: [3], per_size: 1}", 7, 23, "cases[0].subsets.sizes[0]", "the case has 2; at most 2"),
    ("subsets: {sizes: [0], per_size: 1}", 7, 23, "cases[0].subsets.sizes[0]", "at least 1"),
    ("subsets: {sizes: [1, 1], per_size: 1}", 7, 26, "cases[0].subsets.sizes[1]", "the size 1 stands twice"),
    ("subsets: {sizes: [], per_size: 1}", 7, 22, "cases[0].subsets.sizes", "is empty"),
    ("subsets: {sizes: [1]}", 7, 14, "cases[0].subsets.per_size", "is missing"),
    ("subsets: {sizes: [1], per_size: 0}", 7, 37, "cases[0].subsets.per_size", "at least 1"),
    ("subsets: {sizes: [1], persize: 1, per_size: 1}", 7, 27, "cases[0].subsets.persize", "did you mean 'per_size'?"),
]

RUNNER = [
    # the value of runner, in line 3
    ("{}", 3, 9, "runner.kind", "is missing; it says which runner this is; the kinds are fake, plain"),
    ("plain", 3, 9, "runner", "is the text 'plain'; a mapping"),
    ("{kind: plian}", 3, 16, "runner.kind", "there is no runner 'plian'; did you mean 'plain'?"),
    ("{kind: true}", 3, 16, "runner.kind", "is the boolean true"),
    ("{kind: plain, x: 1}", 3, 23, "runner.x", "is an unknown key"),
    ("{kind: fake}", 3, 9, "runner.agent", "is missing; the key agent is needed"),
    ("{kind: fake, agent: run.sh}", 3, 29, "runner.agent", "is the text 'run.sh'; a list"),
    ("{kind: fake, agent: []}", 3, 29, "runner.agent", "is empty"),
    ("{kind: fake, agent: [python, x.py]}", 3, 29, "runner.agent", "'python' is not an absolute path"),
    ("{kind: fake, agent: [/no/such/thing]}", 3, 29, "runner.agent", "/no/such/thing does not exist"),
    ("{kind: fake, agent: [/bin/sh, 5]}", 3, 39, "runner.agent[1]", "is the number 5; a text is expected; quote it"),
    ("{kind: fake, agent: ['{python}', nope.py]}", 3, 29, "runner.agent", "'nope.py' does not exist"),
    ("{kind: fake, agent: [/bin/sh], timeout: 0}", 3, 49, "runner.timeout", "is the number 0; a number above 0"),
    ('{kind: fake, agent: [/bin/sh], timeout: "5"}', 3, 49, "runner.timeout", "write 5 without quotes"),
    ("{kind: fake, agent: [/bin/sh], model: 5}", 3, 47, "runner.model", 'quote it: "5"'),
    ("{kind: fake, agent: [/bin/sh], sizes: 5}", 3, 47, "runner.sizes", "a list is expected"),
    ("{kind: fake, agent: [/bin/sh], sizes: [1, x]}", 3, 51, "runner.sizes[1]", "is the text 'x'"),
    ("{kind: fake, agent: [/bin/sh], shape: {widht: 5}}", 3, 48, "runner.shape.widht", "did you mean 'width'?"),
    ("{kind: fake, agent: [/bin/sh], shape: 5}", 3, 47, "runner.shape", "a mapping is expected"),
    ("{kind: fake, agent: [/bin/sh], with_alias: x}", 3, 40, "runner.with_alias", "did you mean 'with-alias'?"),
    ("{kind: fake, agent: [/bin/sh], hook: foo}", 3, 46, "runner.hook", "is named as package.module:function"),
    (
        "{kind: fake, agent: [/bin/sh], hook: 'no_such_mod:f'}",
        3,
        46,
        "runner.hook",
        "neither beside the file nor installed",
    ),
]


def check(problems: Sequence[Problem], line: int, column: int, key: str, said: str) -> None:
    assert [(p.line, p.column, p.key) for p in problems] == [(line, column, key)], "\n".join(map(str, problems))
    assert said in str(problems[0])
    assert str(problems[0]).startswith(f"experiment.yml:{line}:{column}: ")


@pytest.mark.parametrize(("text", "line", "column", "key", "said"), ANYWHERE)
def test_the_file(folder: Folder, text: str, line: int, column: int, key: str, said: str) -> None:
    check(folder.problems(text), line, column, key, said)


@pytest.mark.parametrize(("text", "line", "column", "key", "said"), TOP)
def test_cases(folder: Folder, text: str, line: int, column: int, key: str, said: str) -> None:
    problems = [problem for problem in folder.problems(HEAD + text) if problem.message != "is missing"]
    check(problems, line, column, key, said)


@pytest.mark.parametrize(("text", "line", "column", "key", "said"), EXPERIMENT)
def test_the_experiment(folder: Folder, text: str, line: int, column: int, key: str, said: str) -> None:
    check(folder.problems(CASE + text), line, column, key, said)


@pytest.mark.parametrize("text", ["1e999", "nan", "-inf", '"2.5"'])
def test_nothing_is_advised_that_would_be_refused_again(folder: Folder, text: str) -> None:
    (problem,) = folder.problems(f"{CASE}attempts: {text}\n")
    assert str(problem).endswith(f": attempts: is the text {text.strip(chr(34))!r}; a whole number is expected")


@pytest.mark.parametrize(("text", "line", "column", "key", "said"), IN_CASE)
def test_a_case(folder: Folder, text: str, line: int, column: int, key: str, said: str) -> None:
    check(folder.problems(f"{CASE}    {text}\n"), line, column, key, said)


@pytest.mark.parametrize(("text", "line", "column", "key", "said"), IN_CASE)
def test_a_case_in_a_file_of_its_own(folder: Folder, text: str, line: int, column: int, key: str, said: str) -> None:
    folder.write("part/one.yml", f"id: a\ntasks: [{{id: t1}}, {{id: t2}}]\n{text}\n")
    (problem,) = folder.problems(HEAD + "cases: [part/one.yml]\n")
    assert str(problem).startswith(f"part/one.yml:3:{column - 4}: {key.removeprefix('cases[0].')}: ") or "inputs" in key
    assert (problem.line, problem.column, problem.key) == (3, column - 4, key.removeprefix("cases[0]."))


@pytest.mark.parametrize(("text", "line", "column", "key", "said"), RUNNER)
def test_the_runner(folder: Folder, text: str, line: int, column: int, key: str, said: str) -> None:
    rest = CASE.partition("runner: {kind: plain}\n")
    check(folder.problems(f"{rest[0]}runner: {text}\n{rest[2]}"), line, column, key, said)


SEVERAL = [
    # one wrong thing does not hide the next: (text behind HEAD, where each problem is told)
    ("cases: [7, {id: b, wrong: 1, tasks: [{id: t}]}]\n", ["cases[0]", "cases[1].wrong"]),
    (
        "cases: [{id: a, tasks: [{id: t}]}]\ncoverage: [tools, {id: x, kind: fkae}]\n",
        ["coverage[0]", "coverage[1].kind"],
    ),
    (
        "cases: [{id: a, tasks: [{id: t}], subsets: {sizes: [x, 3], per_size: 1}}]\n",
        ["cases[0].subsets.sizes[0]", "cases[0].subsets.sizes[1]"],
    ),
    (
        "cases: [{id: a, tasks: [{id: t}], subsets: [{id: s, tasks: [1, u, v]}]}]\n",
        [f"cases[0].subsets[0].tasks[{position}]" for position in range(3)],
    ),
    (
        "cases: [{id: a, tasks: [{id: t}], mutants: [{}, {id: m}, {id: m}]}]\n",
        ["cases[0].mutants[0].id", "cases[0].mutants[2].id"],
    ),
    ("cases: [{id: a, tasks: [{id: t}]}]\ngates: [1, x > 1, y > 1]\n", ["gates[0]", "gates[1]", "gates[2]"]),
]


@pytest.mark.parametrize(("text", "keys"), SEVERAL)
def test_the_first_of_several_problems_hides_no_other(folder: Folder, text: str, keys: list[str]) -> None:
    assert [problem.key for problem in folder.problems(HEAD + text)] == keys


EXECUTORS = [
    ("executor: 3\n", 7, 11, "executor", "is the number 3"),
    ("executor: ''\n", 7, 11, "executor", "is empty"),
    ("executor: thread:4\n", 7, 11, "executor", "did you mean 'threads'?"),
    ("executor: {workers: 4}\n", 7, 11, "executor.kind", "it says which executor this is; the kinds are"),
    ("executor: {kind: theads}\n", 7, 18, "executor.kind", "did you mean 'threads'?"),
    ("executor: {kind: threads, wrkers: 2}\n", 7, 27, "executor.wrkers", "did you mean 'workers'?"),
]


@pytest.mark.parametrize(("text", "line", "column", "key", "said"), EXECUTORS)
def test_the_executor(folder: Folder, text: str, line: int, column: int, key: str, said: str) -> None:
    check(folder.problems(CASE + text), line, column, key, said)


@pytest.mark.parametrize("key", ["name", "runner", "cases"])
def test_keys_that_are_needed(folder: Folder, key: str) -> None:
    text = "".join(part for part in ("metricbench: 1\n", "name: x\n", "runner: {kind: plain}\n") if key not in part)
    text += "" if key == "cases" else "cases: [{id: a, tasks: [{id: t}]}]\n"
    (problem,) = folder.problems(text)
    assert problem.key == key
    assert problem.message == "is missing"


def test_tasks(folder: Folder) -> None:
    text = (
        HEAD
        + "cases:\n  - id: a\n    tasks:\n      - {id: t, attempts: 0}\n      - {id: on}\n      - {id: t}\n      - u\n"
    )
    assert [(p.line, p.column, p.key) for p in folder.problems(text)] == [
        (7, 27, "cases[0].tasks[0].attempts"),
        (8, 14, "cases[0].tasks[1].id"),
        (9, 14, "cases[0].tasks[2].id"),
        (10, 9, "cases[0].tasks[3]"),
    ]


def test_cases_with_one_id(folder: Folder) -> None:
    folder.write("b.yml", "id: a\ntasks: [{id: t}]\n")
    (problem,) = folder.problems(CASE + "  - b.yml\n")
    assert str(problem).startswith("b.yml:1:5: id: the case 'a' stands twice, first in experiment.yml, line 5")


def test_all_problems_of_all_files_at_once(folder: Folder) -> None:
    folder.write("b.yml", "id: b\ntasks: [{id: t, atempts: 3}]\nsubsets: s.yml\n")
    folder.write("s.yml", "- {id: s1, tasks: [u]}\n")
    text = CASE.replace("shop", "sh op") + "  - b.yml\nseed: x\ngates:\n  - b pass@9 > 1\n"
    assert [str(problem).partition(" ")[0] for problem in folder.problems(text)] == [
        "experiment.yml:2:7:",
        "experiment.yml:8:7:",
        "experiment.yml:10:5:",
        "b.yml:2:17:",
        "s.yml:1:20:",
    ]


def test_a_wrong_value_is_told_once(folder: Folder) -> None:
    (problem,) = folder.problems(CASE + "score: {pass_at_least: .inf}\n")
    assert "no finite number" in problem.message


def test_at_most_fifty_are_shown(folder: Folder) -> None:
    tasks = "".join(f"      - {{id: t{n}, wrong: 1}}\n" for n in range(60))
    with pytest.raises(DefinitionError) as caught:
        folder.load(HEAD + "cases:\n  - id: a\n    tasks:\n" + tasks)
    lines = str(caught.value).splitlines()
    assert len(caught.value.problems) == 60
    assert len(lines) == 51
    assert lines[-1] == "and 10 more problems"


def test_a_problem_is_one_line(tmp_path: Path) -> None:
    problem = Problem(tmp_path / "x.yml", 1, 2, "a", "two\nlines")
    assert str(problem) == f"{tmp_path}/x.yml:1:2: a: two lines"


def test_many_unknown_names_do_not_take_long(folder: Folder) -> None:
    tasks = "".join(f"      - {{id: task-number-{n}}}\n" for n in range(1500))
    names = ", ".join(f"taks-number-{n}" for n in range(1500))
    text = f"{HEAD}cases:\n  - id: a\n    tasks:\n{tasks}    subsets: [{{id: s, tasks: [{names}]}}]\n"
    assert len(folder.problems(text)) == 1500


@pytest.mark.parametrize(
    "content", [b"metricbench: 1\nname: \xff\n", b"\x00\x01\x02", b"metricbench: 1\n- x\n", b"%", b"{", b"'"]
)
def test_whatever_is_in_the_file_is_a_definition_error(folder: Folder, content: bytes) -> None:
    assert folder.problems(content)


def test_a_file_that_is_not_there(folder: Folder) -> None:
    (problem,) = folder.problems()
    assert "cannot be read: No such file" in problem.message


def test_a_broken_check_of_a_third_party_is_told(folder: Folder) -> None:
    from pydantic import model_validator

    from pytest_metricbench.bases import Runner
    from pytest_metricbench.definition.loading import load_experiment

    class Broken(Runner):
        @model_validator(mode="after")
        def check(self) -> Self:
            raise TypeError("oh no")

        def run(self, request: AttemptRequest, workspace: Path) -> Outcome:
            raise NotImplementedError

    path = folder.write("experiment.yml", CASE)
    with pytest.raises(DefinitionError, match=r"Broken of .*test_bad_definitions\.py cannot check this: TypeError"):
        load_experiment(path, runners={"plain": Broken}, systems={})
