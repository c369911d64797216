"""What a folder holds that an experiment can be about: nothing is imported or run to find it out."""

import os
import sys
from pathlib import Path
from typing import Any

import pytest

from pytest_metricbench.starting.agents import find_command, find_python_agent
from pytest_metricbench.starting.looking import look
from pytest_metricbench.starting.projects import find_dataset, find_suite
from pytest_metricbench.starting.tables import find_table
from tests.present import present
from tests.starting.starting_lab import COMMAND, DATASET, PYTHON, SUITE, TABLE, make


def kinds(folder: Path) -> list[str]:
    return [finding.kind for finding in look(folder)]


def test_an_empty_folder_and_none_at_all(tmp_path: Path) -> None:
    assert look(tmp_path) == []
    assert look(tmp_path / "nowhere") == []


def test_everything_at_once_has_an_order(tmp_path: Path) -> None:
    make(tmp_path, {**DATASET, **SUITE, **TABLE, **PYTHON, **COMMAND})
    assert kinds(tmp_path) == ["harbor", "table", "python", "suite", "command"]
    assert "nothing_that_is_here" not in sys.modules


def test_what_only_may_be_an_agent_comes_after_a_test_suite(tmp_path: Path) -> None:
    make(tmp_path, {**SUITE, "shop/chat.py": "def run(text):\n    return text\n"})
    assert kinds(tmp_path) == ["suite", "python"]


def test_reasons_name_what_was_found(tmp_path: Path) -> None:
    make(tmp_path, {**DATASET, **SUITE, **TABLE, **PYTHON, **COMMAND})
    reasons = {finding.kind: finding.reason for finding in look(tmp_path)}
    assert reasons == {
        "harbor": "found data/numbers/one/task.toml and 2 more",
        "table": "out/results.csv has versions in 'model', tasks in 'problem id', scores in 'passed'",
        "python": "the function answer in my_agent.py, line 8, takes a text",
        "suite": "found tests/ with 3 test functions, and shop",
        "command": "house-agent.sh is a script for bash",
    }


# ---------------------------------------------------------------- agents


@pytest.mark.parametrize(
    ("files", "module", "function", "takes_request"),
    [
        ({"agent.py": "def agent(request):\n    return 1\n"}, "agent", "agent", True),
        ({"agent.py": "async def run(prompt, tools=()):\n    return 1\n"}, "agent", "run", False),
        ({"bot.py": "def ask(x: str):\n    return x\n"}, "bot", "ask", False),
        ({"desk/__init__.py": "def my_agent(query):\n    return 1\n"}, "desk", "my_agent", False),
        ({"desk/__init__.py": "", "desk/core.py": "def solve(task):\n    pass\n"}, "desk.core", "solve", False),
        ({"a.py": "def run(task): ...\n", "b.py": "def agent(task): ...\n"}, "b", "agent", False),
    ],
)
def test_functions_that_look_like_agents(
    tmp_path: Path, files: dict[str, str], module: str, function: str, takes_request: bool
) -> None:
    finding = present(find_python_agent(make(tmp_path, files)))
    found = {key: finding.values[key] for key in ("module", "function", "takes_request")}
    assert found == {"module": module, "function": function, "takes_request": takes_request}


@pytest.mark.parametrize(
    "text",
    [
        "def agent(question, tools):\n    pass\n",  # needs more than is known
        "def agent(question, *, tools):\n    pass\n",
        "def _agent(question):\n    pass\n",
        "def agent(number: int):\n    pass\n",
        "def shorten(text):\n    pass\n",
        "class Agent:\n    def run(self, question):\n        pass\n",
        "def agent(question:\n",
        "\x00",
        "x = '\\d'\n",
    ],
)
def test_functions_that_do_not(tmp_path: Path, text: str) -> None:
    assert find_python_agent(make(tmp_path, {"agent.py": text})) is None


def test_agents_are_not_looked_for_where_tools_are_kept(tmp_path: Path) -> None:
    files = ("conftest.py", "setup.py", "test_agent.py", "my-agent.py", ".venv/agent.py", "node_modules/agent.py")
    make(tmp_path, dict.fromkeys((*files, "tests/__init__.py", "tests/agent.py"), "def agent(request):\n    pass\n"))
    assert find_python_agent(tmp_path) is None


def test_a_verifier_beside_an_agent_is_found(tmp_path: Path) -> None:
    text = "def agent(request):\n    pass\n\n\ndef grade(request, output):\n    pass\n"
    assert present(find_python_agent(make(tmp_path, {"a.py": text}))).values["verifier"] == "grade"


@pytest.mark.parametrize(
    ("name", "text", "executable", "words"),
    [
        ("agent", "#!/usr/bin/env -S node --flag\n", True, ["/usr/bin/env", "-S", "node", "--flag", "agent"]),
        ("agent.rb", "#!/usr/bin/ruby\n", False, ["/usr/bin/ruby", "agent.rb"]),
        ("agent.sh", "echo\n", False, ["/bin/sh", "agent.sh"]),
        ("agent", "\x7fELF", True, ["/usr/bin/env", "agent"]),
        ("cli.py", "import argparse\np = argparse.ArgumentParser()\na = p.parse_args()\n", False, ["cli.py"]),
        ("main.py", "import sys\nprint(sys.argv[1])\n", False, ["main.py"]),
        ("cli.py", "import argparse\nif __name__ == '__main__':\n    main()\n", False, ["cli.py"]),
    ],
)
def test_programs(tmp_path: Path, name: str, text: str, executable: bool, words: list[str]) -> None:
    make(tmp_path, {name: text})
    if executable:
        os.chmod(tmp_path / name, 0o755)
    assert present(find_command(tmp_path)).values["words"] == words


@pytest.mark.parametrize("name", ["build.sh", "run_tests.sh", "install.sh", "notes.txt", "lib.py", "Makefile"])
def test_what_is_no_agent_that_could_be_run(tmp_path: Path, name: str) -> None:
    assert find_command(make(tmp_path, {name: "echo\n"})) is None


# ---------------------------------------------------------------- datasets and projects


def test_a_dataset_may_be_the_folder_itself_and_hold_what_is_no_task(tmp_path: Path) -> None:
    files = {name.removeprefix("data/numbers/"): text for name, text in DATASET.items()}
    made = make(tmp_path, {**files, "drafts/readme.md": "", "four/task.toml": "x = 1\n"})
    finding = present(find_dataset(made))
    assert finding.values["dataset"] == "."
    assert finding.values["tasks"] == 3
    assert finding.values["strangers"] == ["drafts", "four"]


def test_a_single_task_and_other_tools_files_are_no_dataset(tmp_path: Path) -> None:
    make(
        tmp_path / "single",
        {name.removeprefix("data/numbers/one/"): text for name, text in DATASET.items() if "/one/" in name},
    )
    make(tmp_path / "other", {"a/task.toml": "x = 1\n", "b/task.toml": "[", "b/instruction.md": ""})
    assert find_dataset(tmp_path / "single") is None
    assert find_dataset(tmp_path / "other") is None
    assert present(find_dataset(tmp_path)).values["dataset"] == "."  # a folder with one task in it


@pytest.mark.parametrize(
    ("files", "tests", "source"),
    [
        ({"src/shop/__init__.py": "", "tests/test_a.py": ""}, "tests", ["src"]),
        ({"shop/__init__.py": "", "shop/tests/test_a.py": ""}, "shop/tests", ["shop"]),
        ({"a/__init__.py": "", "b/__init__.py": "", "test/unit/a_test.py": ""}, "test", ["a", "b"]),
        ({"prices.py": "", "setup.py": "", "conftest.py": "", "tests/test_a.py": ""}, "tests", ["prices.py"]),
    ],
)
def test_projects(tmp_path: Path, files: dict[str, str], tests: str, source: list[str]) -> None:
    values = present(find_suite(make(tmp_path, files))).values
    assert (values["tests"], values["source"]) == (tests, source)


def test_tests_of_nothing_and_source_without_tests_are_no_project(tmp_path: Path) -> None:
    assert find_suite(make(tmp_path / "a", {"tests/test_a.py": ""})) is None
    assert find_suite(make(tmp_path / "b", {"shop/__init__.py": "", "tests/readme.md": ""})) is None


# ---------------------------------------------------------------- tables


def table(tmp_path: Path, text: str, name: str = "results.csv") -> Any:
    return find_table(make(tmp_path, {name: text}))


def test_a_table_in_a_folder_with_semicolons_and_words(tmp_path: Path) -> None:
    values = present(find_table(make(tmp_path, TABLE))).values
    assert values["roles"] == {"variant": "model", "task": "problem id", "trial": "run", "scores": "passed"}
    assert values["words"] == {"PASS": True, "FAIL": False}
    assert (values["baseline"], values["why"]) == ("full", "called so, of 3")
    assert values["tasks"] == ["p1", "p2", "p3", "p4"]
    assert values["pass_at_least"] is None
    assert values["rest"] == ["tokens"]


def test_the_best_version_is_taken_for_the_baseline_where_none_is_called_so(tmp_path: Path) -> None:
    values = table(tmp_path, "agent,task,score\na,t,0\nb,t,1\na,u,1\nb,u,1\nc,t,died\nc,u,NaN\n").values
    assert (values["baseline"], values["why"]) == ("b", "the best of 3")


@pytest.mark.parametrize(
    ("scores", "passing"),
    [("0.2 0.4 0.9", 0.4), ("10 70 100", 70), ("0 1 0.5", None), ("0 0 0", None), ("2 inf nan", 2)],
)
def test_from_which_value_on_an_attempt_passes_is_asked_where_1_would_be_wrong(
    tmp_path: Path, scores: str, passing: float | None
) -> None:
    rows = "".join(f"full,t{number},{score}\n" for number, score in enumerate(scores.split()))
    assert table(tmp_path, f"agent,task,score\n{rows}").values["pass_at_least"] == passing


def test_lines_of_json(tmp_path: Path) -> None:
    text = '{"agent": "full", "task": "a", "correct": true}\n{"agent": "b", "task": "a", "correct": false}\n'
    values = table(tmp_path, text, "results.jsonl").values
    assert values["roles"]["scores"] == "correct"
    assert values["baseline"] == "full"


def test_a_file_for_each_version(tmp_path: Path) -> None:
    make(tmp_path, {f"runs/{name}.csv": f"task,reward\na,{value}\n" for name, value in (("base", 1), ("cut", 0))})
    finding = present(find_table(make(tmp_path, {"runs/other.csv": "x,y\n1,2\n"})))
    assert finding.values["files"] == ["runs/base.csv", "runs/cut.csv"]
    assert finding.values["baseline"] == "base"
    assert not finding.sure


def test_a_column_for_each_version(tmp_path: Path) -> None:
    values = table(tmp_path, "question,full,no-tools\na,1,0\nb,1,died\nc,,1\n").values
    assert values["versions"] == ["full", "no-tools"]
    assert values["roles"] == {"task": "question"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "name,price\nmilk,2\n",
        "task,owner\na,Kim\n",
        "task,score\n",
        "task,score\na,much\n",
        "task,score\na,\n",
        "task,score\na,1,2\n",
        "task,task,score\na,a,1\n",
        "task,width,height\na,100,200\n",
        "task\ta;b|score\na\n",
    ],
)
def test_what_is_no_table_of_results(tmp_path: Path, text: str) -> None:
    assert table(tmp_path, text) is None


def test_numbers_in_quotes_are_no_scores_in_json(tmp_path: Path) -> None:
    assert table(tmp_path, '{"task": "a", "score": "1"}\n', "results.jsonl") is None


@pytest.mark.parametrize("score", ["NaN", "1e400", "1" * 400, "[1]", '{"a": 1}', "null"])
def test_numbers_that_are_none(tmp_path: Path, score: str) -> None:
    text = f'{{"task": "a", "score": {score}}}\n{{"task": "b", "score": 1}}\n'
    finding = table(tmp_path, text, "results.jsonl")
    assert finding is None or finding.values["baseline"] == "results"
