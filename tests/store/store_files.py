"""Stores filled and looked at, for the tests of the store."""

from pathlib import Path

from pytest_metricbench.contracts import AttemptRecord, CoverageRecord
from pytest_metricbench.store.writing import StoreWriter


def fill(root: Path, *records: AttemptRecord | CoverageRecord) -> None:
    writer = StoreWriter(root)
    for record in records:
        if isinstance(record, AttemptRecord):
            writer.add_attempt(record)
        else:
            writer.add_coverage(record)
    writer.write_experiment({"experiment": "refund-agent"})
    writer.close()


def everything(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}
