"""Files that an experiment names: inputs, cases and subsets in files of their own, links and ways out."""

import os
from typing import Any

import pytest

from tests.definition.definition_lab import Folder

CASE = "cases: [{{id: a, inputs: {inputs}, tasks: [{{id: t}}]}}]\n"


SOURCES = ["src/a.py", "src/b.py", "src/data.json", "src/deep/c.py", "src/deep/er/d.py"]


class Inputs:
    """The inputs of an experiment that names them so, and what is wrong with one."""

    def __init__(self, folder: Folder, base: str) -> None:
        self._folder = folder
        self._base = base

    def __call__(self, written: str, **options: Any) -> list[str]:
        experiment = self._folder.load(self._base + CASE.format(inputs=written), **options)
        return [file.name for file in experiment.cases[0].inputs]

    def problem(self, written: str, **options: Any) -> str:
        (found,) = self._folder.problems(self._base + CASE.format(inputs=written), **options)
        return str(found)


@pytest.fixture
def inputs(folder: Folder, base: str) -> Inputs:
    return Inputs(folder, base)


@pytest.fixture
def tree(folder: Folder) -> Folder:
    for name in (
        "agent.py",
        "notes.txt",
        ".hidden",
        "src/b.py",
        "src/a.py",
        "src/data.json",
        "src/deep/c.py",
        "src/deep/er/d.py",
        "src/__pycache__/a.pyc",
        "src/.git/config",
        "odd[1].txt",
    ):
        folder.write(name, name)
    return folder


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("[agent.py]", ["agent.py"]),
        ("[notes.txt, agent.py]", ["notes.txt", "agent.py"]),
        ("[./agent.py]", ["./agent.py"]),
        ("['*.py']", ["agent.py"]),
        ("['src/*.py']", ["src/a.py", "src/b.py"]),
        ("['src/?.py', agent.py, 'src/a.py']", ["src/a.py", "src/b.py", "agent.py"]),
        ("['src/**']", SOURCES),
        ("['src/**/*.py']", ["src/a.py", "src/b.py", "src/deep/c.py", "src/deep/er/d.py"]),
        ("['**/**/c.py']", ["src/deep/c.py"]),
        ("['src/*/c.py']", ["src/deep/c.py"]),
        ("['.hid*']", [".hidden"]),
        ("['odd[1].txt']", ["odd[1].txt"]),
        ("['[an]*.*']", ["agent.py", "notes.txt"]),
        ("['**']", ["agent.py", "notes.txt", "odd[1].txt", *SOURCES]),
    ],
)
def test_inputs(inputs: Inputs, tree: Folder, written: str, expected: list[str]) -> None:
    assert inputs(written) == expected


def test_no_glob_matches_the_experiment_and_its_lock(inputs: Inputs, tree: Folder) -> None:
    tree.write("experiment.lock.yml", "lock: 1\nexpansions: []\n")
    assert inputs("['*.yml', agent.py]", cached_only=True) == ["*.yml", "agent.py"]
    assert inputs("[experiment.yml]") == ["experiment.yml"]


def test_absolute_inputs(inputs: Inputs, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "x.txt").write_text("x")
    assert inputs(f"['{elsewhere}/x.txt']") == [f"{elsewhere}/x.txt"]
    assert inputs(f"['{elsewhere}/*.txt']") == [f"{elsewhere}/x.txt"]


def test_links_that_leave_the_folder(inputs: Inputs, folder: Folder, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "x.txt").write_text("x")
    os.symlink(elsewhere / "x.txt", folder.path / "link.txt")
    os.symlink(elsewhere, folder.path / "way")
    for written in ("[link.txt]", "['*.txt']", "[way/x.txt]", "['way/*']"):
        assert "leaves the experiment's folder" in inputs.problem(written)


def test_links_that_stay(inputs: Inputs, tree: Folder) -> None:
    os.symlink(tree.path / "agent.py", tree.path / "again.py")
    os.symlink(tree.path / "src", tree.path / "source")
    assert inputs("[again.py, source/a.py]") == ["again.py", "source/a.py"]


def test_a_circle_of_links_ends(inputs: Inputs, tree: Folder) -> None:
    os.symlink(tree.path, tree.path / "src" / "loop")
    os.symlink("circle", tree.path / "circle")
    assert inputs("['src/**/*.py']") == ["src/a.py", "src/b.py", "src/deep/c.py", "src/deep/er/d.py"]
    assert "circle" in inputs.problem("[circle]")


def test_what_is_no_file(inputs: Inputs, tree: Folder) -> None:
    os.mkfifo(tree.path / "pipe")
    assert "is no regular file" in inputs.problem("[pipe]")
    assert "name its files, as in 'src/**'" in inputs.problem("[src]")
    assert "as in 'src/**'" in inputs.problem("[src/]")
    assert "is no name of a file" in inputs.problem('["a\\0b"]')
    assert "is no name of a file" in inputs.problem(f"[{'x' * 2000}]")


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_what_cannot_be_read(inputs: Inputs, tree: Folder) -> None:
    (tree.path / "agent.py").chmod(0)
    assert "is not readable" in inputs.problem("[agent.py]")


def test_definition_files_stay_in_the_folder(
    folder: Folder, base: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    (elsewhere / "case.yml").write_text("id: a\ntasks: [{id: t}]\n")
    os.symlink(elsewhere / "case.yml", folder.path / "linked.yml")
    (folder.path / "folder.yml").mkdir()
    for name, said in (("linked.yml", "leaves the experiment's folder"), ("folder.yml", "no regular file")):
        (problem,) = folder.problems(f"{base}cases: [{name}]\n")
        assert said in problem.message


def test_paths_are_relative_to_the_file_they_stand_in(folder: Folder, base: str) -> None:
    folder.write("part/case.yml", "id: a\ninputs: [x.md, ../y.md]\ntasks: [{id: t}]\nsubsets: ../s.yml\n")
    folder.write("part/x.md", "x")
    folder.write("y.md", "y")
    folder.write("s.yml", "- {id: s, tasks: [t]}\n")
    case = folder.load(f"{base}cases: [part/case.yml]\n").cases[0]
    assert [file.path for file in case.inputs] == [folder.path / "part/x.md", folder.path / "y.md"]
    assert [subset.id for subset in case.subsets] == ["s"]


@pytest.mark.parametrize(
    ("content", "where", "said"),
    [
        ("{id: s}\n", (1, 1, ""), "a file of subsets holds a list"),
        ("", (1, 1, ""), "is null"),
        ("- {id: s, tasks: [t, x]}\n", (1, 22, "[0].tasks[1]"), "the case has no task 'x'"),
        ("- {id: s, task: [t]}\n", (1, 11, "[0].task"), "did you mean 'tasks'?"),
        ("- 5\n", (1, 3, "[0]"), "is the number 5"),
        ("- {id: s, tasks: [t]}\n- {id: s, tasks: [t]}\n", (2, 8, "[1].id"), "stands twice"),
        ("- [\n", (2, 1, ""), "is no YAML"),
    ],
)
def test_a_file_of_subsets(folder: Folder, base: str, content: str, where: tuple[int, int, str], said: str) -> None:
    folder.write("s.yml", content)
    problems = folder.problems(base + "cases: [{id: a, tasks: [{id: t}], subsets: s.yml}]\n")
    problem = problems[-1] if "task:" not in content else next(p for p in problems if p.key.endswith("task"))
    assert problem.file.name == "s.yml"
    assert (problem.line, problem.column, problem.key) == where
    assert said in str(problem)


@pytest.mark.parametrize("content", ["- 1\n", "", "5\n"])
def test_a_case_file_that_is_no_mapping(folder: Folder, base: str, content: str) -> None:
    folder.write("c.yml", content)
    (problem,) = folder.problems(base + "cases: [c.yml]\n")
    assert problem.file.name == "c.yml"
    assert "a mapping is expected" in str(problem)
