"""What makes attempts beneath the items of pytest: executors, and what stands between them and the items."""

from typing import Final

from pytest_metricbench.executors.base import Executor
from pytest_metricbench.kinds import Kinds

EXECUTORS: Final = Kinds[Executor](
    {
        "threads": "pytest_metricbench.executors.threads:ThreadsExecutor",
        "dask": "pytest_metricbench.executors.dask:DaskExecutor",
    }
)
"""Kind -> class, made with the settings of that kind. ``local`` is none: items make their attempts themselves."""
