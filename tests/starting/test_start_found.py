"""What is written about a project that is there: it loads, it is about that project, and once filled in it runs."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import yaml

from pytest_metricbench import DefinitionError, load_experiment
from pytest_metricbench.starting.filling import templates
from tests.present import present
from tests.starting.starting_lab import COMMAND, DATASET, PYTHON, SUITE, TABLE, begin, make


def written(folder: Path) -> Any:
    return yaml.safe_load((folder / "experiment.yml").read_text("utf-8"))


def fill(folder: Path, asks: str = "good morning", expects: str = "morning") -> None:
    path = folder / "experiment.yml"
    text = path.read_text("utf-8")
    text = text.replace("FILL IN: what it is asked", asks).replace("FILL IN: what its answer must contain", expects)
    path.write_text(text, encoding="utf-8")


def killed(pytester: pytest.Pytester, name: str) -> dict[str, bool]:
    """Mutant -> whether it was caught, by the summary of a whole run."""
    summary = json.loads((pytester.path / ".metricbench" / name / "summary.json").read_text())
    (case,) = summary["cases"].values()
    return {mutant: "killed" in cells.values() for mutant, cells in case["kills"].items()}


# ---------------------------------------------------------------- agents


def test_a_function_that_takes_a_text(pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]) -> None:
    make(pytester.path, {**PYTHON, "nothing_that_is_here.py": ""})
    said = begin(pytester.path)
    assert "python: an experiment about an agent that is a Python function: the function answer in my_agent.py" in said
    lines = (pytester.path / "experiment.yml").read_text().splitlines()
    for number, line in enumerate(lines, 1):
        assert ("FILL IN" in line) == (f"experiment.yml:{number}: fill in: " in said)
    assert re.search(r"metricbench_attempt\.py:\d+: check: whether this tells a good answer from a bad one", said)
    experiment = load_experiment(pytester.path / "experiment.yml")
    assert [file.name for file in experiment.cases[0].inputs] == ["my_agent.py", "system_prompt.md"]
    fill(pytester.path)
    assert alone("experiment.yml").ret == 0
    assert killed(pytester, written(pytester.path)["name"]) == {"hears-half": True, "says-half": True}


def test_an_async_function_that_takes_the_request(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    text = "async def run(request):\n    return 'answer: ' + request.task.params['asks']\n"
    make(pytester.path, {"desk/__init__.py": "", "desk/agent.py": text})
    begin(pytester.path)
    assert written(pytester.path)["cases"][0]["inputs"] == ["desk/**"]
    fill(pytester.path)
    assert alone("experiment.yml").ret == 0
    assert killed(pytester, written(pytester.path)["name"]) == {"says-half": True}


def test_a_function_with_a_verifier_is_run_as_it_is(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    text = (
        "def agent(request):\n    return request.task.params['asks'] if not request.variant.params else ''\n\n\n"
        "def verify(request, output):\n    return float(output == request.task.params['expects'])\n"
    )
    make(pytester.path, {"house_agent.py": text})
    said = begin(pytester.path)
    assert "metricbench_attempt.py" not in said
    assert not (pytester.path / "metricbench_attempt.py").exists()
    assert written(pytester.path)["runner"]["verifier"] == "house_agent:verify"
    fill(pytester.path, expects="good morning")
    (pytester.path / "house_agent.py").write_text(
        text.replace("return float(", "return {'reward': ").replace("'])\n", "']}\n")
    )
    assert alone("experiment.yml").ret == 0
    assert killed(pytester, written(pytester.path)["name"]) == {"damaged": True}


@pytest.mark.slow
def test_a_program(pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]) -> None:
    make(pytester.path, COMMAND)
    said = begin(pytester.path)
    assert "command: an experiment about an agent that is a command: house-agent.sh is a script for bash" in said
    path = pytester.path / "experiment.yml"
    path.write_text(path.read_text().replace("attempts: 3", "attempts: 1"))
    fill(pytester.path)
    assert alone("experiment.yml").ret == 0
    assert killed(pytester, written(pytester.path)["name"]) == {"hears-half": True, "says-half": True}


@pytest.mark.parametrize(
    ("name", "text"),
    [("cli-agent.py", "import sys\nif __name__ == '__main__':\n    print(sys.argv[1])\n"), ("agent", "#!/bin/sh\n")],
)
def test_other_programs_load(tmp_path: Path, name: str, text: str) -> None:
    make(tmp_path, {name: text})
    os.chmod(tmp_path / name, 0o755)
    begin(tmp_path, "command")
    experiment = load_experiment(tmp_path / "experiment.yml")
    assert [file.name for file in experiment.cases[0].inputs] == [name]


# ---------------------------------------------------------------- datasets


def test_a_dataset(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult], monkeypatch: pytest.MonkeyPatch
) -> None:
    make(pytester.path, {**DATASET, "data/numbers/drafts/idea.md": ""})
    monkeypatch.setenv("METRICBENCH_HARBOR", "/bin/true")  # is asked nothing before an attempt begins
    said = begin(pytester.path)
    assert "harbor: an experiment about a Harbor dataset: found data/numbers/one/task.toml and 2 more" in said
    assert "can run" not in said.replace("docker is not on PATH", "")
    result = alone("experiment.yml", "--collect-only", "-q")
    assert result.ret == 0
    result.stdout.fnmatch_lines(["experiment.yml::numbers::baseline::one?1?", "6 tests collected*"])
    alone("experiment.yml", "--metricbench-show", "plan").stdout.fnmatch_lines(["attempts * 6 attempts: 6 to run"])


@pytest.mark.skipif(find_spec("harbor") is not None, reason="Harbor is installed")
def test_a_machine_without_docker_and_harbor_is_told_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, DATASET)
    monkeypatch.delenv("METRICBENCH_HARBOR", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    said = begin(tmp_path)
    assert "what it needs before it can run\n  experiment.yml:" in said
    assert "METRICBENCH_HARBOR" in said
    assert "docker is not on PATH" in said


@pytest.mark.slow
@pytest.mark.harbor
@pytest.mark.skipif(not os.environ.get("METRICBENCH_HARBOR"), reason="METRICBENCH_HARBOR names no Harbor")
def test_the_oracle_passes_and_an_agent_that_does_nothing_is_caught(
    pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]
) -> None:
    make(pytester.path, {**DATASET, "local_environment.py": templates("harbor")["local_environment.py"]})
    begin(pytester.path)
    path = pytester.path / "experiment.yml"
    path.write_text(
        path.read_text().replace("environment: docker ", "environment: local_environment:LocalEnvironment ")
    )
    assert alone("experiment.yml").ret == 0
    assert killed(pytester, written(pytester.path)["name"]) == {"does-nothing": True}


# ---------------------------------------------------------------- projects


@pytest.mark.slow
def test_a_project_with_tests(pytester: pytest.Pytester) -> None:
    make(
        pytester.path, {**SUITE, "pyproject.toml": "[project]\nname = 'shop'\nversion = '1'\n", "requirements.txt": ""}
    )
    said = begin(pytester.path)
    assert "suite: an experiment about a project's test suite: found tests/ with 3 test functions, and shop" in said
    assert "can run" not in said
    workflow = (pytester.path / ".github/workflows/metricbench.yml").read_text()
    assert "- run: pip install 'pytest-metricbench[suite]' -r requirements.txt -e .\n" in workflow
    tasks = {task.name for task in load_experiment(pytester.path / "experiment.yml").cases[0].tasks}
    assert tasks == {
        f"tests/test_prices.py::{test}" for test in ("test_light", "TestHeavy::test_heavy", "TestHeavy::test_border")
    }


# ---------------------------------------------------------------- tables


def test_a_table(pytester: pytest.Pytester, alone: Callable[..., pytest.RunResult]) -> None:
    make(pytester.path, TABLE)
    said = begin(pytester.path)
    assert re.search(r"experiment\.yml:\d+: check: that this is the undamaged version \(called so, of 3\)", said)
    assert written(pytester.path)["runner"] == {
        "kind": "recorded",
        "form": "table",
        "read": ["out/results.csv"],
        "baseline": "full",
        "columns": {
            "variant": "model",
            "task": "problem id",
            "trial": "run",
            "scores": {"passed": {"values": {"FAIL": False, "PASS": True}}},
        },
    }
    assert alone("experiment.yml").ret == 0
    assert set(killed(pytester, written(pytester.path)["name"]).values()) == {True}


@pytest.mark.parametrize(
    ("files", "attempts"),
    [
        ({"r.csv": "case,task,agent,score\nx y,a,full,80\nx y,b,full,90\nz,a,full,20\nz,a,cut,10\nx y,a,cut,10\n"}, 5),
        (
            {
                "r.jsonl": '{"task": "a", "agent": "on", "passed": true}\n'
                '{"task": "a", "agent": "no", "passed": false}\n'
            },
            2,
        ),
        ({"runs/full.csv": "task,reward\na,1\nb,1\n", "runs/cut 2.csv": "task,reward\na,0\nb,died\n"}, 4),
        ({"r.csv": "question,full,no tools\na,1,0\nb,1,died\nc,1,1\n"}, 6),
        ({"r.csv": "task,agent,status,error\na,full,ok,\na,cut,,lost\nb,full,failed,\nb,cut,FAILED,\n"}, 4),
        ({"r.tsv": "task\tagent\tscore\na\t1e3\t1\nb\ttrue\t0\n"}, 2),
    ],
    ids=["cases", "json", "files", "columns", "words", "names-that-yaml-reads-otherwise"],
)
def test_tables_of_other_forms_load(tmp_path: Path, files: dict[str, str], attempts: int) -> None:
    make(tmp_path, files)
    said = begin(tmp_path)
    assert said.startswith("table: "), said
    assert "can run" not in said, said
    experiment = load_experiment(tmp_path / "experiment.yml")
    assert sum(sum(present(case.recorded).values(), 0) for case in experiment.cases) == attempts


# ---------------------------------------------------------------- names


@pytest.mark.parametrize(
    ("folder", "name"),
    [
        ("my bench", "my-bench"),
        ("Büro_7", "Buro_7"),
        ("日本", "experiment"),
        ("not", "experiment"),
        ("...", "experiment"),
        ("a" * 200, "a" * 100),
    ],
)
def test_the_name_of_the_experiment_is_an_id_like_the_folders(tmp_path: Path, folder: str, name: str) -> None:
    begin(tmp_path / folder, "table")
    assert load_experiment(tmp_path / folder / "experiment.yml").name == name


def test_what_stands_in_names_cannot_break_the_file(tmp_path: Path) -> None:
    odd = 'it\'s: "odd" #1'
    make(tmp_path / odd, {f"{odd}.csv": f'task,"model {odd.replace(chr(34), chr(34) * 2)}",score\na,"x, y: [z]",1\n'})
    try:
        said = begin(tmp_path / odd)
    except DefinitionError as error:
        pytest.fail(str(error))
    assert "can run" not in said, said


def test_the_written_python_imports(tmp_path: Path) -> None:
    """A function called answer is not imported as itself, and others are imported under that name."""
    for number, name in enumerate(("answer", "run")):
        folder = make(tmp_path / str(number), {"my_agent.py": f"def {name}(text):\n    return text\n"})
        begin(folder)
        code = "import metricbench_attempt as m; print(m.answer('yes'))"
        done = subprocess.run([sys.executable, "-c", code], cwd=folder, capture_output=True, text=True, check=True)
        assert done.stdout == "yes\n"
        assert "answer as answer" not in (folder / "metricbench_attempt.py").read_text()
