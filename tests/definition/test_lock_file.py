"""The lock: written whole, read back, and at odds with what has changed."""

import errno
import os
from pathlib import Path
from typing import Any, NoReturn

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from pytest_metricbench.definition import lock as lock_module
from pytest_metricbench.definition.experiment import LockState
from pytest_metricbench.definition.lock import lock_path, write_lock
from tests.definition.definition_lab import Folder
from tests.present import present

DRAWN = (
    "cases:\n"
    "  - id: a\n"
    "    tasks: [{id: t1}, {id: t2}, {id: t3}, {id: 'on'}, {id: '123'}]\n"
    "    subsets: {sizes: [2, 3], per_size: 4, seed: 1}\n"
    "  - id: b\n"
    "    tasks: [{id: u1}, {id: u2}]\n"
    "    subsets: {sizes: [1], per_size: 2}\n"
)


@pytest.fixture
def drawn(folder: Folder, base: str) -> Folder:
    folder.write("experiment.yml", base + DRAWN)
    return folder


def locked(folder: Folder) -> Path:
    write_lock(present(folder.load().lock))
    return folder.path / "experiment.lock.yml"


def test_the_name_of_the_lock(tmp_path: Path) -> None:
    assert lock_path(tmp_path / "experiment.yml") == tmp_path / "experiment.lock.yml"
    assert lock_path(tmp_path / "a.experiment.yaml") == tmp_path / "a.experiment.lock.yml"


def test_a_missing_lock_is_said_and_not_written(drawn: Folder) -> None:
    experiment = drawn.load()
    assert present(experiment.lock).missing
    assert present(experiment.lock).path == drawn.path / "experiment.lock.yml"
    assert not present(experiment.lock).path.exists()
    assert [len(case.subsets) for case in experiment.cases] == [8, 2]


def test_a_written_lock_is_used(drawn: Folder) -> None:
    before = drawn.load()
    path = locked(drawn)
    after = drawn.load()
    assert after.cases == before.cases
    assert not present(after.lock).missing
    assert present(after.lock).text == path.read_text() == present(before.lock).text
    assert os.listdir(drawn.path).count("experiment.lock.yml") == 1
    assert not [name for name in os.listdir(drawn.path) if name.endswith(".tmp")]


def test_the_lock_is_yaml_to_be_read(drawn: Folder) -> None:
    held = yaml.safe_load(locked(drawn).read_text())
    assert held["lock"] == 1
    assert [(e["kind"], e["case"]) for e in held["expansions"]] == [("subsets", "a"), ("subsets", "b")]
    assert held["expansions"][0]["made_from"]["sizes"] == [2, 3]
    entries = held["expansions"][0]["entries"]
    assert [entry["id"] for entry in entries[:2]] == ["n2-01", "n2-02"]
    assert all(isinstance(task, str) for entry in entries for task in entry["tasks"])


def test_the_lock_decides_over_the_draw(drawn: Folder) -> None:
    path = locked(drawn)
    path.write_text(path.read_text().replace("{id: n1-01, tasks: [u1]}", "{id: mine, tasks: [u2, u1]}"))
    subsets = drawn.load().case("b").subsets
    assert [(subset.id, subset.tasks) for subset in subsets] == [("mine", ("u2", "u1")), ("n1-02", ("u2",))]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("sizes: [2, 3]", "sizes: [2]", "sizes was [2, 3] and is [2]"),
        ("per_size: 4", "per_size: 5", "per_size was 4 and is 5"),
        ("seed: 1", "seed: 2", "seed was 1 and is 2"),
        ("{id: t3}", "{id: t4}", "the tasks changed"),
        ("per_size: 4, seed: 1", "per_size: 5, seed: 3", "per_size was 4 and is 5, seed was 1 and is 3"),
        ("id: a\n", "id: z\n", "it does not hold the subsets of the case z"),
    ],
)
def test_a_lock_that_disagrees(drawn: Folder, base: str, old: str, new: str, said: str) -> None:
    locked(drawn)
    problems = drawn.problems((base + DRAWN).replace(old, new))
    assert str(problems[0]).startswith("experiment.yml:7:14: cases[0].subsets: experiment.lock.yml disagrees: ")
    assert said in str(problems[0])
    assert all(str(problem).endswith("renew it with --metricbench-lock") for problem in problems)


def test_a_lock_that_holds_more(drawn: Folder, base: str) -> None:
    locked(drawn)
    text = (base + DRAWN).replace("    subsets: {sizes: [1], per_size: 2}\n", "")
    (problem,) = drawn.problems(text)
    assert problem.file.name == "experiment.lock.yml"
    assert problem.key == "expansions[1]"
    assert "the subsets of the case b are not expanded any more; renew it with --metricbench-lock" in str(problem)


@pytest.mark.parametrize("new", ["{id: t1, params: {x: 1}}", "{id: t1, tags: [x], description: y, attempts: 2}"])
def test_what_the_subsets_do_not_depend_on(drawn: Folder, base: str, new: str) -> None:
    locked(drawn)
    assert drawn.load((base + DRAWN).replace("{id: t1}", new)).lock is not None
    assert drawn.load((base + DRAWN).replace("[{id: t1}, {id: t2}, ", "[{id: t2}, {id: t1}, ")).lock is not None


def test_renewing(drawn: Folder, base: str) -> None:
    path = locked(drawn)
    changed = (base + DRAWN).replace("seed: 1", "seed: 2")
    drawn.problems(changed)
    experiment = drawn.load(changed, renew_lock=True)
    assert not present(experiment.lock).missing
    assert present(experiment.lock).text != path.read_text()
    write_lock(present(experiment.lock))
    assert drawn.load().cases == experiment.cases


@pytest.mark.parametrize(
    "content", ["", "[", "lock: 2\nexpansions: []\n", "lock: 1\n", "- 1\n", "lock: 1\nexpansions: [{}]\n"]
)
def test_a_broken_lock(drawn: Folder, content: str) -> None:
    path = locked(drawn)
    path.write_text(content)
    problems = drawn.problems()
    assert all(problem.file == path and "renew it with --metricbench-lock" in str(problem) for problem in problems)
    assert present(drawn.load(renew_lock=True).lock).text


@pytest.mark.parametrize(
    ("new", "key", "said"),
    [
        ("{id: n1-01, tasks: [u9]}", "tasks[0]", "no task 'u9'"),
        ("{id: n1-02, tasks: [u1]}", "id", "stands twice"),
        ("{id: pool, tasks: [u1]}", "id", "reserved"),
        ("{id: n1-01, tasks: []}", "tasks", "is empty"),
        ("{id: n1-01}", "tasks", "is missing"),
    ],
)
def test_an_edited_lock_is_checked(drawn: Folder, new: str, key: str, said: str) -> None:
    path = locked(drawn)
    path.write_text(path.read_text().replace("{id: n1-01, tasks: [u1]}", new))
    (problem,) = drawn.problems()
    assert problem.file == path
    assert problem.key.startswith("expansions[1].entries[")
    assert problem.key.endswith(key)
    assert said in str(problem)


def test_a_lock_that_nothing_needs_is_a_warning(folder: Folder, base: str) -> None:
    text = base + "cases: [{id: a, tasks: [{id: t}]}]\n"
    assert folder.load(text).lock is None
    folder.write("experiment.lock.yml", "whatever")
    experiment = folder.load(text)
    assert experiment.lock is None
    assert "experiment.lock.yml is not used any more" in experiment.warnings[0]


def test_problems_of_experiment_and_lock_together(drawn: Folder, base: str) -> None:
    locked(drawn)
    problems = drawn.problems((base + DRAWN).replace("seed: 1", "seed: 2") + "gates: [x > 1]\n")
    assert [problem.key for problem in problems] == ["cases[0].subsets", "gates[0]"]


def test_where_a_case_is_wrong_nothing_is_said_of_what_was_not_asked_for(drawn: Folder, base: str) -> None:
    locked(drawn)
    (problem,) = drawn.problems((base + DRAWN).replace("{id: t1}", "{id: t1, wrong: 1}"))
    assert problem.key == "cases[0].tasks[0].wrong"


def test_a_lock_is_written_whole_or_not_at_all(drawn: Folder, monkeypatch: pytest.MonkeyPatch) -> None:
    path = locked(drawn)
    before = path.read_text()

    def full(_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_lock(LockState(path, "half", missing=False))
    assert path.read_text() == before
    assert sorted(os.listdir(drawn.path)) == ["experiment.lock.yml", "experiment.yml"]


def test_a_folder_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="No such file"):
        write_lock(LockState(tmp_path / "absent" / "x.lock.yml", "x", missing=True))


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=20), inner, max_size=3),
        max_leaves=8,
    )
)
def test_every_value_is_read_back(value: Any) -> None:
    read = yaml.safe_load(f"x: {lock_module._flow(value)}")["x"]
    assert read == value
    assert type(read) is type(value)


LINES = st.lists(st.sampled_from(["a", " b", "  c ", "# d", "e: f", "- g", "", "'", '"h"', "---", "..."]), max_size=5)


@given(LINES, st.booleans())
def test_every_text_of_several_lines_is_read_back(lines: list[str], ends: bool) -> None:
    text = "\n".join(lines) + ("\n" if ends else "")
    entry = {"id": "m", "params": {"patch": text, "more": {"deep": text}}, "tags": ["x"]}
    assert yaml.safe_load("\n".join(["      - 1", *lock_module._listed(entry)])) == [1, entry]


def test_texts_of_several_lines_stand_as_such() -> None:
    entry = {"id": "m", "params": {"patch": "--- a\n+++ b\n", "open": "x\ny", "more": "x\n\n"}}
    assert lock_module._listed(entry) == [
        "      - id: m",
        "        params:",
        "          patch: |",
        "            --- a",
        "            +++ b",
        "          open: |-",
        "            x",
        "            y",
        "          more: |+",
        "            x",
        "",
    ]


@pytest.mark.parametrize(
    "text", ["on", "No", "y", "null", "123", "1e3", "2024-01-01", "a: b", "a #b", "=", "<<", "é\x7f\u2028", ""]
)
def test_words_with_a_meaning_are_quoted(text: str) -> None:
    assert yaml.safe_load(f"[{lock_module._flow(text)}]") == [text]


def test_an_expansion_of_files(drawn: Folder) -> None:
    from dataclasses import replace

    from pytest_metricbench.definition.lock import Expansion, Lock
    from pytest_metricbench.definition.problems import ProblemList
    from pytest_metricbench.definition.source import read_document

    experiment = drawn.path / "experiment.yml"
    document = present(read_document(experiment, ProblemList()))
    entries = [{"id": "x", "tasks": ["t1"], "share": 1e-07, "note": "é: 'on'\n", "none": None}]
    wanted = Expansion(
        "tasks",
        "a",
        document.root,
        {"folder": "data set"},
        lambda: entries,
        files={"a/b c.toml": "sha256:1", "d": "sha256:2"},
    )
    problems = ProblemList()
    lock = Lock(experiment, problems)
    expanded, state = present(lock.take(wanted)), present(lock.finish(whole=True))
    assert (expanded.entries, expanded.place, state.missing) == (entries, None, True)
    write_lock(state)
    lock = Lock(experiment, problems)
    again, state = present(lock.take(wanted)), present(lock.finish(whole=True))
    assert (again.entries, state.missing) == (entries, False)
    assert present(again.place).value == entries
    assert not problems
    for files, said in (
        ({"a/b c.toml": "sha256:9", "d": "sha256:2"}, "the file a/b c.toml changed"),
        ({"d": "sha256:2"}, "the file a/b c.toml is gone"),
        ({**wanted.files, "e": "sha256:3"}, "the file e is new"),
    ):
        problems = ProblemList()
        assert Lock(experiment, problems).take(replace(wanted, files=files)) is None
        assert str(problems.found[0]).endswith(
            f"experiment.lock.yml disagrees: {said}; renew it with --metricbench-lock"
        )
