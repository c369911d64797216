"""Where a report comes from, and what it takes to get it again."""

import platform
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import metadata
from typing import Final

from pytest_metricbench.analysis.results import Results
from pytest_metricbench.definition.experiment import Experiment
from pytest_metricbench.definition.fingerprints import Fingerprints
from pytest_metricbench.digests import digest_value

_PACKAGES: Final = ("pytest-metricbench", "pytest", "pytest-xdist", "numpy", "scipy", "pydantic")


@dataclass(frozen=True, slots=True)
class Origin:
    """How to get the same report again."""

    command: str
    """The command line, as a shell takes it; empty where there was none."""
    digest: str | None
    """Of everything that results depend on; None where a file of the experiment cannot be read any more."""
    file_name: str
    seed: int
    kinds: Mapping[str, str]
    """``runner`` and each coverage system -> its kind."""
    versions: Mapping[str, str]
    """Package or program -> version."""
    started: tuple[str, str] | None
    """When the first and the last of the attempts began, UTC, ISO 8601; None without any."""


def origin_of(results: Results, *, command: str = "", fingerprints: Fingerprints | None = None) -> Origin:
    """Where the results of an experiment come from.

    Args:
        results: all that is known.
        command: the command line that made the report.
        fingerprints: those of the session, which has read the files already.
    """
    experiment = results.experiment
    starts = sorted(record.started for record in results.attempts.values())
    return Origin(
        command=command,
        digest=experiment_digest(fingerprints or Fingerprints(experiment)),
        file_name=experiment.path.name,
        seed=experiment.seed,
        kinds=_kinds(experiment),
        versions=_versions(_PACKAGES),
        started=(starts[0], starts[-1]) if starts else None,
    )


def experiment_digest(fingerprints: Fingerprints) -> str | None:
    """One digest of what an experiment's results depend on: runner, verifier, inputs, variants, tasks, coverage.

    It is the same wherever the experiment's folder is, and another one as soon as a file changes that counts. None
    where a file cannot be read.
    """
    try:
        summary = fingerprints.summary()
    except OSError:
        return None
    return digest_value({key: value for key, value in summary.items() if key != "files"})


def _kinds(experiment: Experiment) -> dict[str, str]:
    kinds = {"runner": experiment.runner.kind}
    return kinds | {f"coverage {entry.id}": entry.system.kind for entry in experiment.coverage}


def _versions(packages: Iterable[str]) -> dict[str, str]:
    found = {"Python": f"{platform.python_version()} on {sys.platform}"}
    for package in packages:
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:  # run from its source
            continue
    return found
