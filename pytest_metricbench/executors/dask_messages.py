"""What a run and the workers of a Dask cluster tell each other.

Everything here crosses as a pickle between processes of one version of this package, which is checked before: a
worker of another version is not sent any of it. Records cross as the lines that a journal holds, and are checked as
such when they arrive.
"""

import importlib.metadata
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.contracts import AttemptKey, CoverageRequest

PACKAGE: Final = "pytest-metricbench"


def own_version() -> str:
    """The version of this package that is installed now."""
    try:
        return importlib.metadata.version(PACKAGE)
    except importlib.metadata.PackageNotFoundError:
        return "unknown"


def resource_of(site_id: str) -> str:
    """The resource of Dask that workers announce that were found fit for a site."""
    return f"metricbench-{site_id}"


@dataclass(frozen=True, slots=True)
class Home:
    """Where a class is that an experiment names by its kind and that this package does not have."""

    kind: str
    module: str
    """The module to import; or its name, where ``file`` says where it is."""
    name: str
    """The class in that module."""
    file: str | None = None
    """Its file, for what no import finds (a ``conftest.py``): absolute, or below the bundle's folder."""


@dataclass(frozen=True, slots=True)
class Site:
    """One experiment of one run, as workers are told of it."""

    id: str
    """Unique over all runs."""
    version: str
    """Of this package in the run."""
    experiment: str
    """The experiment file: absolute, or its name in the bundle."""
    bundle: Mapping[str, str] | None
    """Name -> digest of the bundled files; None where workers see the folder themselves."""
    documents: Mapping[str, str]
    """The YAML files that the experiment was read from, and its lock: as found from its folder -> digest."""
    digests: Mapping[str, Any]
    """What ``Fingerprints.summary`` says: it must say the same on a worker."""
    runners: tuple[Home, ...]
    systems: tuple[Home, ...]
    store: str
    """The folder of the run's store."""
    token: str
    """The name of a file in it, and its content: who sees both sees the same folder."""
    retry_died: bool
    limit: int
    """Bytes of the files that travel with one attempt or request, and of the bundle."""

    @property
    def resource(self) -> str:
        """What jobs of the site ask for, and only workers have that were found fit."""
        return resource_of(self.id)

    @property
    def answers(self) -> Path:
        """The folder in the store where workers keep answers until the run has them."""
        return Path(self.store) / f"{self.token}-answers"


@dataclass(frozen=True, slots=True)
class Greeting:
    """What a worker found when it was told of a site."""

    problem: str | None = None
    """Why it can make no attempts of it."""
    shares_store: bool = False
    """Whether it sees the run's store, and can write it."""


@dataclass(frozen=True, slots=True)
class AttemptJob:
    """An attempt to make."""

    key: AttemptKey
    record: str | None
    """The line of the store's record of it, where there is one that is not valid."""
    work: bytes | None = None
    """What that attempt left, packed, where it is to be scored again and the worker does not see the store."""


@dataclass(frozen=True, slots=True)
class AttemptMade:
    """What came of it."""

    records: tuple[str, ...]
    """The lines of the new records, in order."""
    left: tuple[bytes | None, ...]
    """What each left, packed; None where it lies in the store."""
    interrupted: bool = False


@dataclass(frozen=True, slots=True)
class CoverageJob:
    """A coverage request to measure. It knows nothing of any mutant."""

    system: str
    """The id of the coverage system."""
    request: CoverageRequest
    request_digest: str
    settings_digest: str
    unmeasurable: str | None
    evidence: bytes | None = None
    """The evidence, packed under its names below the request's folder, where the worker does not see the store."""


@dataclass(frozen=True, slots=True)
class CoverageMeasured:
    """What came of it."""

    record: str
    """The line of the record; its files are those of ``left``."""
    left: bytes


@dataclass(frozen=True, slots=True)
class Lost:
    """A job that is not done, since it was begun as often as it may be."""

    begun_on: tuple[str, ...]
    """The addresses of the workers that began it and did not end it."""


@dataclass(frozen=True, slots=True)
class Failed:
    """A job that could not be done."""

    message: str
    crashed: bool = False
    """The process that did it ended: it may be tried again."""
    unfit: bool = False
    """The worker cannot do any job of the site."""
