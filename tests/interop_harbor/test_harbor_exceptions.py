"""The table of exceptions beside Harbor's own, where a Harbor is at hand, and as the documentation shows it."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any, Final

import pytest

from pytest_metricbench.interop.harbor.exceptions import RULES, ExceptionRule, rule_for

PAGE: Final = Path(__file__).parents[2] / "docs" / "harbor.md"
VERIFIED: Final = {(True, True): "both", (False, True): "0.26", (True, False): "0.25", (False, False): "no", None: "-"}

ASK: Final = """
import json
from harbor.models.trial.error_policy import ERROR_POLICIES
print(json.dumps({name: [getattr(policy, "should_grade", None), getattr(policy, "has_valid_reward", None)]
                  for name, policy in ERROR_POLICIES.items()}))
"""


@pytest.fixture(scope="module")
def policies() -> dict[str, tuple[bool | None, bool | None]]:
    """(verified, counted) of every type in the table of the Harbor that METRICBENCH_HARBOR names."""
    harbor = os.environ.get("METRICBENCH_HARBOR")
    if not harbor:
        pytest.skip("METRICBENCH_HARBOR names no executable of Harbor")
    python = Path(harbor).parent / "python"
    said = subprocess.run([str(python), "-c", ASK], capture_output=True, text=True, check=True, timeout=60)
    found: dict[str, Any] = json.loads(said.stdout)
    return {name: tuple(policy) for name, policy in found.items()}


@pytest.mark.slow
def test_no_type_of_harbors_own_is_unknown_here(policies: dict[str, Any]) -> None:
    assert sorted(set(policies) - set(RULES)) == []


@pytest.mark.slow
def test_the_facts_about_harbor_are_right(policies: dict[str, Any]) -> None:
    """Those of 0.26, whose table says them; up to 0.25 the table says something else than the code does."""
    if None in next(iter(policies.values())):
        pytest.skip("this Harbor is older than 0.26")
    for name, (verified, counted) in policies.items():
        rule = RULES[name]
        assert rule.counted == counted, name
        assert rule.verified is None or rule.verified[1] == verified, name


def rows() -> list[str]:
    """The table as the page shows it: types that are treated alike in one row."""
    groups: dict[tuple[str, ...], list[str]] = {}
    for rule in (*RULES.values(), rule_for("every other type")):
        groups.setdefault(cells(rule), []).append(rule.type if rule.type not in RULES else f"`{rule.type}`")
    return [f"| {', '.join(types)} | {' | '.join(shown)} |" for shown, types in groups.items()]


def cells(rule: ExceptionRule) -> tuple[str, ...]:
    counted = "yes" if rule.counted else "no"
    return (rule.blame, VERIFIED[rule.verified], counted, rule.with_reward, rule.without_reward)


@pytest.mark.skipif(
    not PAGE.is_file() or "What an exception means" not in PAGE.read_text("utf-8"), reason="the page is not there"
)
@pytest.mark.parametrize("row", rows())
def test_the_page_shows_every_row(row: str) -> None:
    assert row in re.sub(" +", " ", PAGE.read_text("utf-8"))  # columns may be aligned
