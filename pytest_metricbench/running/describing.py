"""What ``experiment.json`` says of a run, written and read: versions, digests, subsets."""

import platform
from importlib import metadata
from typing import Any, Final

from pytest_metricbench.answers import read_json_file
from pytest_metricbench.contracts import ContractError
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.store.layout import Layout

_TOOLS: Final = ("pytest-metricbench", "pytest", "pytest-xdist", "pydantic", "scipy", "numpy")


def description(experiment: Experiment, fingerprints: Fingerprints) -> dict[str, Any]:
    """The mapping that ``experiment.json`` holds, apart from its format version."""
    return {
        "experiment": experiment.name,
        "versions": {"python": platform.python_version(), **{name: _version(name) for name in _TOOLS}},
        "digests": fingerprints.summary(),
        "subsets": {case.id: {subset.id: list(subset.tasks) for subset in case.subsets} for case in experiment.cases},
    }


def _version(distribution: str) -> str | None:
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None


def known_files(layout: Layout) -> dict[str, str]:
    """The digests of the files that the store's experiment was last run from; empty where it does not say."""
    try:
        description = read_json_file(layout.experiment, 1 << 30)
        files = description["digests"]["files"]
    except (ContractError, TypeError, KeyError):
        return {}
    return {str(name): str(digest) for name, digest in files.items()} if isinstance(files, dict) else {}
