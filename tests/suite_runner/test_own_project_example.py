"""``examples/own_project``: what its page shows is what it gives, and its lock is current."""

import re
import shutil
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "own_project"
OTHERS = ("randomly", "sugar", "timeout", "rerunfailures", "html", "metadata", "pytest_cov")


@pytest.fixture
def copied(pytester: pytest.Pytester, unasked: None) -> pytest.Pytester:
    ignored = shutil.ignore_patterns(".metricbench", "__pycache__", ".pytest_cache")
    shutil.copytree(EXAMPLE, pytester.path, dirs_exist_ok=True, ignore=ignored)
    return pytester


def test_the_page_shows_what_it_gives(copied: pytest.Pytester) -> None:
    lock = (copied.path / "experiment.lock.yml").read_text()
    result = copied.runpytest_inprocess("experiment.yml", *(f"-pno:{name}" for name in OTHERS))
    assert result.ret == 0
    page = (EXAMPLE / "README.md").read_text()
    shown = [line.strip() for line in page.splitlines() if re.match(r"    (kills|[a-z0-9-]+ +[x.-] |x killed)", line)]
    assert len(shown) == 6
    result.stdout.fnmatch_lines([line.replace("[", "[[]") for line in shown])
    assert (copied.path / "experiment.lock.yml").read_text() == lock
    assert not list(copied.path.rglob("*.pyc"))


def test_ten_lines_are_enough() -> None:
    lines = (EXAMPLE / "experiment.yml").read_text().splitlines()
    assert len(lines) - sum("patch" in line for line in lines) <= 10
