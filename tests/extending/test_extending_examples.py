"""The examples of extending run as their pages say, and are as short as those say."""

import ast
import json
import re
import shutil
import subprocess
import sys
import threading
import tomllib
from collections.abc import Iterator
from http.server import ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples/extending"


@pytest.fixture
def agent_url(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The example's agent, listening on a port of its own."""
    monkeypatch.syspath_prepend(str(EXAMPLE))
    monkeypatch.setitem(sys.modules, "agent_server", None)
    del sys.modules["agent_server"]
    import agent_server

    server = ThreadingHTTPServer(("127.0.0.1", 0), agent_server.Agent)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def copied(folder: pytest.Pytester, url: str, *, models: str = "") -> Path:
    """The example in the test's folder, its agent at another place."""
    for name in ("conftest.py", "experiment.yml", "experiment.lock.yml"):
        shutil.copy(EXAMPLE / name, folder.path / name)
    path = folder.path / "experiment.yml"
    text = path.read_text().replace("http://127.0.0.1:8700", url)
    path.write_text(text.replace("{tone: formal}", models) if models else text)
    return path


def summary(folder: pytest.Pytester, name: str = "extending") -> Any:
    return json.loads((folder.path / f".metricbench/{name}/summary.json").read_text())


@pytest.mark.parametrize("name", ["Endpoint", "Sections"])
def test_each_is_under_thirty_lines(name: str) -> None:
    tree = ast.parse((EXAMPLE / "conftest.py").read_text())
    (cls,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name]
    assert cls.end_lineno is not None
    assert cls.end_lineno - cls.lineno + 1 < 30


def test_the_page_shows_the_example() -> None:
    page = (ROOT / "docs/extending.md").read_text("utf-8")
    shown = {found[0]: found[1] for found in re.findall(r"^```python\n# ([\w/.]+)\n(.*?)^```$", page, re.M | re.S)}
    assert shown == {
        "conftest.py": (EXAMPLE / "conftest.py").read_text(),
        "metricbench_models/plugin.py": (EXAMPLE / "package/metricbench_models/plugin.py").read_text(),
        "metricbench_models/mutants.py": (EXAMPLE / "package/metricbench_models/mutants.py").read_text(),
    }
    (keys,) = re.findall(r"^```yaml\n(.*?)^```$", page, re.M | re.S)
    experiment = yaml.safe_load((EXAMPLE / "experiment.yml").read_text())
    assert yaml.safe_load(keys) == {"runner": experiment["runner"], "coverage": experiment["coverage"]}
    (table,) = re.findall(r"^```toml\n(.*?)^```$", page, re.M | re.S)
    project = tomllib.loads((EXAMPLE / "package/pyproject.toml").read_text())["project"]
    assert tomllib.loads(table)["project"]["entry-points"] == project["entry-points"]


def test_a_misspelt_field_of_such_a_runner_is_told_with_its_place(folder: pytest.Pytester) -> None:
    path = copied(folder, "http://127.0.0.1:9")
    path.write_text(path.read_text().replace("  url:", "  ulr:"))
    result = folder.runpytest_inprocess("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["*experiment.yml:10:*runner.ulr: *did you mean 'url'*"])


def test_the_example_finds_what_each_question_is_for(folder: pytest.Pytester, agent_url: str) -> None:
    copied(folder, agent_url)
    result = folder.runpytest_inprocess("experiment.yml")
    assert result.ret == 0
    found = summary(folder)["cases"]["support"]
    killers = {
        mutant: [task for task, cell in row.items() if cell == "killed"] for mutant, row in found["kills"].items()
    }
    assert killers == {
        "no-returns": ["too-late"],
        "no-shipping": ["where-is-it"],
        "no-damage": ["in-pieces"],
        "no-privacy": ["forget-me"],
        "other-tone": [],
    }
    overall = found["correlation"]["sections"]["kill_share"]["overall"]
    assert overall["pairs"] == 12
    assert overall["kendall"]["value"] > 0.5
    assert overall["kendall"]["p"] is not None, "its goals allow the permutation test"
    assert found["pool"]["coverage"]["sections"]["value"] == 1.0


def test_an_agent_that_fails_died_and_one_that_is_not_there_is_unmeasured(
    folder: pytest.Pytester, agent_url: str
) -> None:
    path = copied(folder, agent_url, models="{model: withdrawn}")
    result = folder.runpytest_inprocess("experiment.yml", "-k", "baseline or other-tone")
    assert result.parseoutcomes()["died"] == 4
    path.write_text(path.read_text().replace(agent_url, "http://127.0.0.1:9"))
    result = folder.runpytest_inprocess("experiment.yml::support::no-damage::in-pieces")
    assert result.ret == 1
    result.stdout.fnmatch_lines(["unmeasured (setup): Unreachable: http://127.0.0.1:9: *"])


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder into which the example's package was installed, with its entry point."""
    pytest.importorskip("hatchling")
    source = shutil.copytree(EXAMPLE / "package", tmp_path_factory.mktemp("source") / "package")
    target = tmp_path_factory.mktemp("site")
    pip = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run([*pip, "--target", str(target), str(source)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.mark.slow
def test_a_package_is_found_by_its_entry_point_in_workers_too(
    folder: pytest.Pytester, installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(installed))
    for name in ("agent.py", "prompt.md", "experiment.yml", "experiment.lock.yml"):
        shutil.copy(EXAMPLE / "package" / name, folder.path / name)
    result = folder.runpytest_subprocess("experiment.yml", "-n2")
    assert result.ret == 0, result.stdout.str()
    found = summary(folder, "models")["cases"]["support"]["kills"]
    assert set(found) == {"model-medium", "model-small", "calm-never", "calm-always"}
    assert all("killed" in row.values() for row in found.values())


@pytest.mark.slow
def test_an_error_of_a_package_names_it(
    folder: pytest.Pytester, installed: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = shutil.copytree(installed, tmp_path / "site")
    (broken / "metricbench_models/mutants.py").write_text("import a_module_that_is_not_there\n")
    monkeypatch.setenv("PYTHONPATH", str(broken))
    for name in ("agent.py", "prompt.md", "experiment.yml"):
        shutil.copy(EXAMPLE / "package" / name, folder.path / name)
    result = folder.runpytest_subprocess("experiment.yml")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(
        [
            "ERROR: metricbench: the hook pytest_metricbench_generators of metricbench-models 0.1.0 raised "
            "ModuleNotFoundError: No module named 'a_module_that_is_not_there'; mend it (*mutants.py:1), or leave the "
            "plugin out: -p no:metricbench-models"
        ]
    )
    without = folder.runpytest_subprocess("experiment.yml", "-p", "no:metricbench-models")
    without.stderr.fnmatch_lines(["*'models'*"])
