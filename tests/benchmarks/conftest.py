"""Fixtures of the benchmarks: what runs cost, experiments and tests to run, and what to show of it."""

from collections.abc import Callable
from pathlib import Path

import pytest

from tests.benchmarks.cost_lab import (
    PYTEST,
    Cost,
    run_and_measure,
    run_and_measure_each,
    write_experiment,
    write_plain_tests,
)


@pytest.fixture
def measured() -> Callable[..., Cost]:
    """Run a command and say what it cost."""
    return run_and_measure


@pytest.fixture
def bare_pytest() -> list[str]:
    """The command that runs pytest with our plugin and as little else as possible."""
    return PYTEST


@pytest.fixture
def measured_each() -> Callable[..., tuple[Cost, dict[str, Cost]]]:
    """Run a session and say what each of its processes cost."""
    return run_and_measure_each


@pytest.fixture
def experiment() -> Callable[..., None]:
    """Write an experiment to a folder."""
    return write_experiment


@pytest.fixture
def plain_tests() -> Callable[[Path, int], None]:
    """Write plain tests to a folder."""
    return write_plain_tests


@pytest.fixture
def shown(capsys: pytest.CaptureFixture[str]) -> Callable[[str], None]:
    """Print a line of the result although output is captured."""

    def show(line: str) -> None:
        with capsys.disabled():
            print(line)

    return show
