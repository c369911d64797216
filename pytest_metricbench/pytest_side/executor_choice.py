"""Which executor makes the attempts of an experiment: what the option says, else its file."""

from typing import Final

import pytest

from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.executor_settings import (
    SETTINGS,
    ExecutorSettings,
    ExecutorTextError,
    LocalSettings,
    settings_of_text,
)
from pytest_metricbench.messages import did_you_mean, joined
from pytest_metricbench.running.bench import Bench
from pytest_metricbench.workers import worker_count

OPTION: Final = "--metricbench-executor"
"""On the command line, or in the ini file as its twin."""


def chosen_executor(config: pytest.Config, experiment: Experiment) -> ExecutorSettings | None:
    """What makes the attempts of an experiment: as the option says, else its file. None: the items themselves.

    Raises:
        UsageError: the option names none that there is.
    """
    chosen = _asked_for(config) or experiment.executor
    return None if isinstance(chosen, LocalSettings) else chosen


def check_executor(config: pytest.Config) -> None:
    """Check what the option says, before anything is touched.

    Raises:
        UsageError: it names no executor that there is, or one that goes without workers of pytest-xdist.
    """
    chosen = _asked_for(config)
    if chosen is not None and not isinstance(chosen, LocalSettings) and worker_count(config):
        raise _beside_workers(OPTION, chosen, f"leave {OPTION} out")


def refuse_workers(config: pytest.Config, bench: Bench) -> None:
    """Refuse an executor where pytest-xdist sends the items to workers.

    Raises:
        UsageError: it does.
    """
    if bench.executor is not None and not bench.cached and worker_count(config):
        raise _beside_workers(str(bench.experiment.path), bench.executor, f"take {OPTION} local")


def _beside_workers(where: str, chosen: ExecutorSettings, other: str) -> pytest.UsageError:
    return pytest.UsageError(
        f"metricbench: {where}: the executor {chosen.kind} makes the attempts of one pytest process, and pytest -n "
        f"gives them to several; run with -n 0, or {other}"
    )


def _asked_for(config: pytest.Config) -> ExecutorSettings | None:
    text = config.getoption("metricbench_executor")
    if not text:
        return None
    try:
        return settings_of_text(text)
    except ExecutorTextError as error:
        hint = did_you_mean(error.unknown, SETTINGS) if error.unknown else ""
        raise pytest.UsageError(f"metricbench: {OPTION}: {joined(error.message, hint, error.remedy)}") from None
