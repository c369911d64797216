"""Coverage requests as test reports, so that terminal, JUnit and exit status know them."""

from typing import Final

import pytest

from pytest_metricbench.contracts import CoverageKey, CoverageRecord
from pytest_metricbench.reporting.junit import coverage_properties

COVERAGE: Final = "coverage"
"""Stands in a coverage request's node id where an attempt's has its variant; no variant may be called so."""


def report_request(
    config: pytest.Config, file: str, key: CoverageKey, record: CoverageRecord, *, reused: bool, attribute: str
) -> None:
    """Give a request the three reports of a test.

    Args:
        config: of this session.
        file: the experiment file as node ids name it.
        key: case, system, subset.
        record: the answer.
        reused: it was taken from the store.
        attribute: the one of a test report that carries the word.
    """
    case, system, subset = key
    nodeid = f"{file}::{case}::{COVERAGE}::{system}[{subset}]"
    location = (file, None, f"{case}::coverage::{system}[{subset}]")
    config.hook.pytest_runtest_logstart(nodeid=nodeid, location=location)
    for when in ("setup", "call", "teardown"):
        failed = when == "call" and record.outcome == "failed"
        report = pytest.TestReport(
            nodeid=nodeid,
            location=location,
            keywords={},
            outcome="failed" if failed else "passed",
            longrepr=f"coverage {case} {system} {subset}: {record.error}" if failed else None,
            when=when,
            user_properties=coverage_properties(record),
            duration=record.duration if when == "call" and not reused else 0.0,
        )
        if when == "call":
            setattr(report, attribute, "reused" if reused else record.outcome)
        config.hook.pytest_runtest_logreport(report=report)
    config.hook.pytest_runtest_logfinish(nodeid=nodeid, location=location)
