"""Line coverage in whole sessions: over the ``suite`` runner, and over coverage.py's data that another agent leaves."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_project"
OTHERS = ("randomly", "sugar", "timeout", "rerunfailures", "html", "metadata", "pytest_cov")
OFF = [f"-pno:{name}" for name in OTHERS]
MORE = """\
    subsets: {sizes: [1, 2, 4], per_size: 4, seed: 1}
coverage:
  - {id: line, kind: line, source: [shop], html: [pool]}
  - {id: branch, kind: line, source: [shop], measure: branch}
  - {id: function, kind: line, source: [shop], scope: function}
"""


@pytest.fixture
def project(pytester: pytest.Pytester, unasked: None) -> pytest.Pytester:
    ignored = shutil.ignore_patterns(".metricbench", "__pycache__", ".pytest_cache", "*.lock.yml")
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True, ignore=ignored)
    return pytester


def case_of(pytester: pytest.Pytester) -> Any:
    return json.loads((pytester.path / ".metricbench/shop/summary.json").read_text())["cases"]["shop"]


@pytest.mark.slow
def test_over_the_suite_runner(project: pytest.Pytester) -> None:
    path = project.path / "experiment.yml"
    path.write_text(path.read_text() + MORE)
    result = project.runpytest_inprocess(*OFF, "experiment.yml")
    assert result.ret == 0, result.stdout.str()
    case = case_of(project)
    coverage = {system: found["value"] for system, found in case["pool"]["coverage"].items()}
    assert set(coverage) == {"line", "branch", "function"}
    assert 0.5 < coverage["branch"] <= coverage["line"] <= 1
    assert coverage["function"] == 1
    overall = case["correlation"]["line"]["kill_share"]["overall"]
    assert overall["pairs"] == 12
    assert "p" in overall["kendall"]  # goals were given, so the test of task labels is there
    assert overall["kendall"]["p"]["value"] is not None
    pages = list((project.path / ".metricbench/shop/coverage").rglob("html/index.html"))
    assert len(pages) == 1
    assert "shop: pool" in pages[0].read_text()
    again = project.runpytest_inprocess(*OFF, "experiment.yml")
    again.stdout.fnmatch_lines(["* reused in *"])
    # Another source is another universe: attempts and requests are made again.
    prices = project.path / "shop/prices.py"
    prices.write_text(prices.read_text() + "\n\ndef unused():\n    return 1\n")
    assert project.runpytest_inprocess(*OFF, "experiment.yml").ret == 0
    assert case_of(project)["pool"]["coverage"]["function"]["value"] < 1


AGENT = """\
import json, subprocess, sys
from pathlib import Path

request = json.loads(Path("request.json").read_text())
home = request["task"]["params"]["home"]
code = f"import sys; sys.path.insert(0, {home!r}); from shop.prices import *; " + request["task"]["params"]["code"]
Path("code.py").write_text(code)
run = [sys.executable, "-m", "coverage", "run", "--branch", "code.py"]
ended = subprocess.run(run)
Path("code.py").unlink()
Path("response.json").write_text(json.dumps({"scores": {"reward": 1.0 if ended.returncode == 0 else 0.0}}))
"""
EXPERIMENT = """\
metricbench: 1
name: shop
runner: {{kind: command, agent: ["{{python}}", agent.py]}}
cases:
  - id: shop
    tasks:
      - {{id: one, params: {{home: "{home}", code: "f(1)"}}}}
      - {{id: two, params: {{home: "{home}", code: "f(0)"}}}}
    subsets: [{{id: s1, tasks: [one]}}, {{id: s2, tasks: [one, two]}}]
coverage:
  - {{id: line, kind: line, source: [shop]}}
  - {{id: branch, kind: line, source: [shop], measure: branch}}
"""


@pytest.mark.slow
def test_over_the_data_of_another_agent(project: pytest.Pytester) -> None:
    (project.path / "shop/prices.py").write_text("def f(x):\n    if x:\n        return 1\n    return 2\n")
    (project.path / "shop/__init__.py").write_text("")
    (project.path / "agent.py").write_text(AGENT)
    (project.path / "experiment.yml").write_text(EXPERIMENT.format(home=project.path))
    result = project.runpytest_inprocess(*OFF, "experiment.yml")
    assert result.ret == 0, result.stdout.str()
    case = case_of(project)
    assert case["subsets"]["s1"]["coverage"]["line"]["value"] == 3 / 4
    assert case["subsets"]["s2"]["coverage"]["line"]["value"] == 1
    assert case["subsets"]["s1"]["coverage"]["branch"]["value"] == 1 / 2
    assert case["subsets"]["s2"]["coverage"]["branch"]["value"] == 1
