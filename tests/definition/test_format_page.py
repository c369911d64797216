"""docs/experiment.md tells every key, and its example is an experiment."""

import json
import re
from pathlib import Path

import pytest

from pytest_metricbench import coverage, runners
from pytest_metricbench.definition.ids import OWN_MARKS, PLUGIN_MARKS, PYTEST_MARKS
from pytest_metricbench.definition.loading import load_experiment
from pytest_metricbench.definition.schema import experiment_schema
from pytest_metricbench.generating.builtin import BUILTIN as GENERATORS

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "experiment.md").read_text("utf-8")
KEYS_OF_KINDS = "".join(
    (DOCS / name).read_text("utf-8")
    for name in ("dask.md", "harbor.md", "helix.md", "mutants.md", "suite.md", "usage.md")
)
"""Pages that have the keys of a kind of runner, generator or executor; the page of the format leads to them."""
SCHEMA = experiment_schema(runners.BUILTIN, coverage.BUILTIN, GENERATORS)
KEYS = sorted({key for place in (SCHEMA, *SCHEMA["$defs"].values()) for key in place["properties"]})
DEFAULTS = [
    (key, field["default"])
    for place in (SCHEMA, *SCHEMA["$defs"].values())
    for key, field in place["properties"].items()
    if isinstance(field.get("default"), int | float) and not isinstance(field["default"], bool)
]


@pytest.mark.parametrize("key", KEYS)
def test_every_key_is_told(key: str) -> None:
    assert f"`{key}`" in PAGE + KEYS_OF_KINDS


@pytest.mark.parametrize(("key", "default"), DEFAULTS)
def test_every_number_that_is_a_default_is_told(key: str, default: float) -> None:
    rows = [line for line in (PAGE + KEYS_OF_KINDS).splitlines() if line.startswith(f"| `{key}`")]
    assert any(f" {default} |" in row for row in rows) or f"`{key}` ({default})" in PAGE + KEYS_OF_KINDS


@pytest.mark.parametrize("kind", [*runners.BUILTIN, *coverage.BUILTIN])
def test_every_kind_is_told(kind: str) -> None:
    assert f"### `kind: {kind}`" in PAGE


@pytest.mark.parametrize("tag", sorted(OWN_MARKS | PLUGIN_MARKS | PYTEST_MARKS))
def test_every_refused_tag_is_told(tag: str) -> None:
    assert f"`{tag}`" in PAGE


def test_the_example_is_an_experiment(tmp_path: Path) -> None:
    for name in ("agent.py", "verify.py", "policy.md", "house_metric.py"):
        (tmp_path / name).write_text("")
    path = tmp_path / "experiment.yml"
    path.write_text(re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)[0])
    experiment = load_experiment(path, runners=runners.BUILTIN, systems=coverage.BUILTIN)
    assert (len(experiment.gates), len(experiment.coverage), len(experiment.cases[0].subsets)) == (3, 2, 3)
    assert json.dumps(experiment.cases[0].tasks[2].attempts) == "3"
