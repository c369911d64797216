"""The experiment of docs/agents.md is run as it stands there."""

import json
import re
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/agents.md"


@pytest.mark.slow
def test_the_experiment_of_the_page(pytester: pytest.Pytester) -> None:
    files = re.findall(r"^```(?:yaml|python)\n# (\S+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    assert [name for name, _ in files] == ["experiment.yml", "agent.py", "verify.py", "house_metric.py"]
    for name, text in files:
        (pytester.path / name).write_text(text)
    result = pytester.runpytest_subprocess("experiment.yml", "-W", "error")
    assert result.ret == 0
    case = json.loads((pytester.path / ".metricbench/desk/summary.json").read_text())["cases"]["desk"]
    assert case["mutants"]["detected"] == ["no-refund", "no-track"]
    assert {name: case["pool"]["coverage"][name]["value"] for name in ("tools", "pairs")} == {
        "tools": 1.0,
        "pairs": 0.5,
    }
    random_goals = case["correlation"]["pairs"]["kill_share"]["overall"]["kendall"]["random"]
    assert "universe" not in str(random_goals)  # the same universe in every request
