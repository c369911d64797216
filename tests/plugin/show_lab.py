"""What ``--metricbench-show`` prints, and an agent that says what it cost."""

import pytest

from tests.plugin.plugin_lab import AGENT, Lab

PRICED = AGENT.replace('"tone": "dry"}', '"tone": "dry", "cost_usd": 0.25}')


def show(lab: Lab, part: str, *args: str, file: str = "experiment.yml") -> pytest.RunResult:
    return lab.run(file, "--metricbench-show", part, *args)


def shown(lab: Lab, part: str, *args: str) -> list[str]:
    """The lines below the title, blank ones at the end left out."""
    result = show(lab, part, *args)
    assert result.ret == 0, result.outlines + result.errlines
    assert result.outlines[0].strip("= ") == f"metricbench: shop: {part}"
    return "\n".join(result.outlines[1:]).rstrip().split("\n")
