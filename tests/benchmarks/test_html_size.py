"""The page of a large experiment, 100 mutants, 200 tasks, 500 subsets: its size, and how long a browser takes."""

import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.benchmark

MUTANTS, TASKS, SUBSETS, ATTEMPTS = 100, 200, 500, 3
MOST_BYTES = 5_000_000
MOST_SECONDS = 1.0
IDLE = 0.5
"""Seconds that an empty page takes on an idle machine of two cores: a slower or busier one gets as much longer."""


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page, with long ids, descriptions, two coverage systems, and cells of most kinds."""
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    from pytest_metricbench.analysis.summarizing import summarize
    from pytest_metricbench.reporting.html import write_html
    from pytest_metricbench.reporting.html_origin import Origin
    from tests.analysis.results_builder import CaseTable, build

    rng = np.random.default_rng(3)
    tasks = [f"package.module_{number // 20}.test_of_a_task_{number:03d}" for number in range(TASKS)]
    rates = {"baseline": rng.choice([1.0, 1.0, 1.0, 0.8], TASKS)}
    rates |= {f"mutant-with-a-long-name-{m:03d}": rng.choice([1.0, 0.0], TASKS, p=[0.9, 0.1]) for m in range(MUTANTS)}
    outcomes = {
        variant: {
            task: [(None if rng.random() < 0.02 else float(rng.random() < rate)) for _ in range(ATTEMPTS)]
            for task, rate in zip(tasks, row, strict=True)
        }
        for variant, row in rates.items()
    }
    subsets = {
        f"subset-{n:03d}": [tasks[i] for i in rng.choice(TASKS, (5, 10, 20, 40)[n % 4], replace=False)]
        for n in range(SUBSETS)
    }
    coverage = {system: {subset: float(rng.random()) for subset in [*subsets, "pool"]} for system in ("line", "tools")}
    descriptions = dict.fromkeys(outcomes, "A change that somebody could have made without seeing it. " * 2)
    results = build(CaseTable(outcomes, subsets, coverage, descriptions=descriptions), bootstrap=20, permutation=19)
    path = tmp_path_factory.mktemp("page") / "report.html"
    write_html(path, results, summarize(results), Origin("pytest", "sha256:0", "experiment.yml", 1, {}, {}, None))
    return path


def test_it_is_under_5_mb(shown: Callable[[str], None], page: Path) -> None:
    size = page.stat().st_size
    shown(f"\n{size / 1e6:.2f} MB")
    assert size < MOST_BYTES


def test_it_opens_in_a_second(shown: Callable[[str], None], page: Path, tmp_path: Path) -> None:
    """From the start of a browser to a drawn page, less the same for an empty page; the least of five."""
    from tests.reporting_html.html_lab import CHROMIUM, browser

    if CHROMIUM is None:
        pytest.skip("needs Chromium")
    empty = tmp_path / "empty.html"
    empty.write_text("<!DOCTYPE html><title>empty</title>")

    def seconds(what: Path) -> float:
        found = []
        for number in range(5):
            start = time.perf_counter()
            subprocess.run(
                [*browser(tmp_path / f"{what.stem}-{number}"), f"--screenshot={tmp_path / 'page.png'}", what.as_uri()],
                check=True,
                capture_output=True,
                timeout=60,
            )
            found.append(time.perf_counter() - start)
        return min(found)

    without, within = seconds(empty), seconds(page)
    shown(f"\n{within - without:.2f} s over the {without:.2f} s of an empty page")
    assert within - without < MOST_SECONDS * max(1.0, without / IDLE)
