"""For the tests of the runner ``harbor``."""

import pytest


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "harbor: runs real trials; skipped where Harbor is neither installed nor named by METRICBENCH_HARBOR",
    )
