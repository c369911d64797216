"""What stands in an experiment in place of a list, and what it expands to: a folder of tasks, a suite, recorded runs.

An expansion is a deterministic function of the keys and of the files they name. It is written to the lock, so that it
is reviewed once and the same everywhere.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from pydantic import BaseModel, ConfigDict


class SourceError(Exception):
    """A source that cannot be expanded: what is wrong, and what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        """Keep both for the problem that is told; ``message`` names the file or the part of it that is wrong."""
        super().__init__(message)
        self.message = message
        self.remedy = remedy


class Source(BaseModel, ABC):
    """What stands under ``tasks`` or ``mutants`` in place of a list; its fields are the keys there.

    A runner names the classes it understands (:attr:`~pytest_metricbench.bases.Runner.task_sources`). The entries
    that a source expands to are checked like those that a user lists.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    def bound(self, runner: Any) -> Self:
        """The source with what it needs of its runner's settings; asked for once, before anything else."""
        return self

    @abstractmethod
    def expand(self, folder: Path) -> Sequence[Mapping[str, Any]]:
        """The entries, as the file would list them (``{"id": ..., "name": ..., "params": {...}}``), in a fixed order.

        Args:
            folder: the experiment's; relative paths start there.

        Raises:
            SourceError: there is nothing to expand, or something of it is broken.
        """

    def files(self, folder: Path) -> Mapping[str, Path]:
        """The files whose content decides what is expanded: name as the lock shows it -> where it is.

        Raises:
            SourceError: they cannot be found.
        """
        return {}

    def state(self, folder: Path) -> Mapping[str, Any]:
        """What else decides it beside the keys: name -> JSON value, large ones as digests (``{"listing": digest}``).

        Raises:
            SourceError: it cannot be read.
        """
        return {}


class CaseSource(Source, ABC):
    """A whole case that exists already: its tasks, its variants and how many attempts each of them left.

    What :meth:`expand` gives are mappings with one key each: ``{"task": entry}``, ``{"baseline": entry}`` (exactly
    one), ``{"mutant": entry}`` and ``{"note": {"text": ..., "count": n}}``. An entry is as a user would list it; that
    of a variant also has ``attempts``, a mapping of task id -> number of attempts (absent: none). A note is something
    that was decided while reading and belongs into the report.
    """
