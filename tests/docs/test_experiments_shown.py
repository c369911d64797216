"""Every whole experiment that the documentation shows can be read, where what it names exists."""

import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from pytest_metricbench import DefinitionError, load_experiment
from tests.docs import block_lab
from tests.docs.block_lab import ROOT, Block

SAMPLES = ROOT / "tests"
SHOWN = [
    block
    for block in block_lab.blocks()
    if block.language == "yaml" and re.search(r"^metricbench: 1", block.text, re.M) and "keys.md" not in block.page
]


def named_files(block: Block, folder: Path) -> None:
    """Empty files for those that an experiment names."""
    for name in re.findall(r"[\w/]+\.(?:py|md|json)\b", block.text):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")


def harbor_jobs(block: Block, folder: Path) -> None:
    shutil.copytree(SAMPLES / "interop_harbor/samples/jobs/variants-0.25", folder / "jobs/2026-11")


def rollouts(block: Block, folder: Path) -> None:
    for version in ("baseline", "no-tools"):
        shutil.copytree(SAMPLES / "interop_gym/samples", folder / "runs" / version)


def bundle(block: Block, folder: Path) -> None:
    shutil.copytree(SAMPLES / "interop_nemo/samples/geo", folder / "runs/geo")
    path = folder / "runs/geo/metadata.json"
    metadata = json.loads(path.read_text("utf-8"))
    metadata["labels"]["variant"] = "good"
    path.write_text(json.dumps(metadata), encoding="utf-8")


def project(block: Block, folder: Path) -> None:
    ours = shutil.ignore_patterns("*.lock.yml", ".metricbench", "__pycache__")
    shutil.copytree(ROOT / "examples/own_project", folder, dirs_exist_ok=True, ignore=ours)


def table(block: Block, folder: Path) -> None:
    text = next(other.text for other in block_lab.blocks() if other.page == block.page and other.language == "csv")
    (folder / "results.csv").write_text(text)


FEW_TASKS = r"no subset has \d+ tasks"
SCENES: dict[tuple[str, str], tuple[Callable[[Block, Path], None], str]] = {
    ("docs/harbor.md", "form: harbor"): (harbor_jobs, ""),
    ("docs/nemo.md", "form: nemo"): (bundle, ""),
    ("docs/nemo.md", "form: gym"): (rollouts, FEW_TASKS),
    ("docs/suite.md", "kind: suite"): (project, FEW_TASKS),
    ("docs/tables.md", "form: table"): (table, ""),
}
"""Page and words of an experiment -> what is put where it looks, and what may be said of that."""
TRIED_BY_OTHERS = {
    ("docs/harbor.md", "kind: harbor"): "tests/harbor_runner/test_runner_harbor_collected.py",
    ("docs/start.md", ""): "tests/starting/test_start_examples.py",
}


def scene_of(block: Block) -> tuple[Callable[[Block, Path], None], str]:
    found = [scene for (page, words), scene in SCENES.items() if page == block.page and words in block.text]
    return found[0] if found else (named_files, "")


def is_tried_by_others(block: Block) -> bool:
    return any(page == block.page and words in block.text for page, words in TRIED_BY_OTHERS)


HERE = [block for block in SHOWN if not is_tried_by_others(block)]


def problems_of(path: Path) -> list[str]:
    try:
        experiment = load_experiment(path)
    except DefinitionError as error:
        return str(error).splitlines()
    return [] if experiment.cases else ["no case"]


@pytest.mark.parametrize("block", HERE, ids=lambda block: f"{block.page}-{block.line}")
def test_an_experiment_can_be_read(block: Block, tmp_path: Path) -> None:
    make, allowed = scene_of(block)
    make(block, tmp_path)
    path = tmp_path / "experiment.yml"
    path.write_text(block.text)
    assert [line for line in problems_of(path) if not (allowed and re.search(allowed, line))] == []


def test_every_scene_is_of_an_experiment() -> None:
    for page, words in [*SCENES, *TRIED_BY_OTHERS]:
        assert any(page == block.page and words in block.text for block in SHOWN), (page, words)
    assert all((ROOT / path).exists() for path in TRIED_BY_OTHERS.values())
    assert len(SHOWN) >= 10
