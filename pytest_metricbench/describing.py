"""What ``experiment.json`` says of a run: versions, digests, subsets."""

import platform
from importlib import metadata
from typing import Any, Final

from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints

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
