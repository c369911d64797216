"""What an experiment or a command line says of the executor: which one makes the attempts, and with what settings.

It is a mapping with the key ``kind``, or its short form, a text: ``threads``, ``threads:100``.
"""

import re
from collections.abc import Mapping
from typing import Annotated, Final, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from pytest_metricbench.messages import counted

USUAL_THREADS: Final = 32
"""Attempts at a time of the executor ``threads`` where nothing says how many."""
MOST_THREADS: Final = 10_000
MOST_DASK_WORKERS: Final = 1_000


class ExecutorTextError(ValueError):
    """A short form that cannot be read: what is wrong with it, and what would be right."""

    def __init__(self, message: str, remedy: str, unknown: str = "") -> None:
        """Keep both for a message that names where it stands; ``unknown`` may be a misspelt kind."""
        super().__init__(f"{message}; {remedy}")
        self.message = message
        self.remedy = remedy
        self.unknown = unknown


class ExecutorSettings(BaseModel):
    """The settings of one kind of executor. They are part of no fingerprint: another executor runs nothing again."""

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)

    kind: str

    @classmethod
    def of_text(cls, rest: str) -> Self:
        """The settings of a short form; ``rest`` is what follows the kind and a colon, or empty.

        Raises:
            ExecutorTextError: it cannot be read.
        """
        if rest:
            kind = cls.model_fields["kind"].default
            raise ExecutorTextError(f"the executor {kind} takes nothing behind a colon", f"write {kind}")
        return cls.model_validate({})

    @property
    def at_a_time(self) -> int | None:
        """How many attempts are under way at a time, where the settings say it."""
        return None

    def describe(self) -> str:
        """The kind and the settings that matter, in words, for a header."""
        return self.kind


class LocalSettings(ExecutorSettings):
    """Each attempt is made by the process whose item it is, when the item's turn comes."""

    kind: Literal["local"] = "local"


class ThreadsSettings(ExecutorSettings):
    """Many attempts at a time in threads of one process, for runners that wait for a program or a network."""

    kind: Literal["threads"] = "threads"
    workers: Annotated[int, Field(ge=1, le=MOST_THREADS)] = Field(
        default=USUAL_THREADS, description="Attempts, and coverage requests, at a time."
    )

    @classmethod
    def of_text(cls, rest: str) -> Self:
        """``threads:100``: a hundred at a time.

        Raises:
            ExecutorTextError: it is no number, or none that there can be.
        """
        if not rest:
            return cls()
        number = int(rest) if rest.isascii() and rest.isdecimal() and len(rest) < 10 else 0
        if not 1 <= number <= MOST_THREADS:
            raise ExecutorTextError(
                f"{rest!r} is no number of threads",
                f"write threads:N with a whole number from 1 to {MOST_THREADS:,}, as threads:100",
            )
        return cls(workers=number)

    @property
    def at_a_time(self) -> int:
        """The number of threads."""
        return self.workers

    def describe(self) -> str:
        """As ``threads, 32 at a time``."""
        return f"threads, {self.workers:,} at a time"


class DaskSettings(ExecutorSettings):
    """Attempts on the workers of a Dask cluster; without an address, the one that Dask's own configuration names."""

    kind: Literal["dask"] = "dask"
    scheduler: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The scheduler's address, as tcp://host:8786. Default: DASK_SCHEDULER_ADDRESS."
    )
    scheduler_file: Annotated[str, Field(min_length=1)] | None = Field(
        default=None, description="The file that dask scheduler --scheduler-file writes, in its place."
    )
    workers: Annotated[int, Field(ge=1, le=MOST_DASK_WORKERS)] | None = Field(
        default=None, description="In its place, a cluster of so many workers on this machine, for the run."
    )
    files: Literal["shared", "bundle"] = Field(
        default="shared",
        description="shared: workers see the experiment's folder at the same place. bundle: they are sent its files.",
    )
    wait: Annotated[float, Field(gt=0, allow_inf_nan=False)] = Field(
        default=300, description="Seconds that work may wait while there is no worker for it."
    )
    evidence_limit: Annotated[int, Field(ge=1, le=1024)] = Field(
        default=100, description="MiB of files that travel with one attempt or request where workers see no store."
    )

    @model_validator(mode="after")
    def _one_cluster(self) -> Self:
        named = [name for name in ("scheduler", "scheduler_file", "workers") if getattr(self, name) is not None]
        if len(named) > 1:
            raise PydanticCustomError(
                "dask_cluster",
                "{first} and {second} both say which cluster it is; keep one of them",
                {"first": named[0], "second": named[1]},
            )
        return self

    @classmethod
    def of_text(cls, rest: str) -> Self:
        """``dask``, ``dask:tcp://host:8786``, ``dask:scheduler.json``, ``dask:4``.

        Raises:
            ExecutorTextError: it is none of these.
        """
        if not rest:
            return cls()
        if rest.isascii() and rest.isdecimal() and len(rest) < 10 and 1 <= int(rest) <= MOST_DASK_WORKERS:
            return cls(workers=int(rest))
        if rest.endswith(".json"):
            return cls(scheduler_file=rest)
        if re.fullmatch(r"[a-z]+://\S+|[^\s:/]+:\d+", rest):
            return cls(scheduler=rest)
        raise ExecutorTextError(
            f"{rest!r} names no Dask cluster",
            "write dask:tcp://HOST:8786, dask:scheduler.json, or dask:N for N workers on this machine",
        )

    @property
    def at_a_time(self) -> int | None:
        """The number of workers that are started; of another cluster nobody knows."""
        return self.workers

    def describe(self) -> str:
        """As ``dask at tcp://host:8786``."""
        sent = ", files sent in a bundle" if self.files == "bundle" else ""
        if self.workers is not None:
            return f"dask, {counted(self.workers, 'worker')} on this machine{sent}"
        return f"dask at {self.scheduler or self.scheduler_file or 'the address that Dask is configured with'}{sent}"


SETTINGS: Final[Mapping[str, type[ExecutorSettings]]] = {
    "local": LocalSettings,
    "threads": ThreadsSettings,
    "dask": DaskSettings,
}
"""Kind -> class of its settings."""


def settings_of_text(text: str) -> ExecutorSettings:
    """The settings of a short form: a kind, and perhaps a colon and more.

    Raises:
        ExecutorTextError: there is no such kind, or what follows it cannot be read.
    """
    kind, _, rest = text.strip().partition(":")
    if kind not in SETTINGS:
        known = ", ".join(sorted(SETTINGS))
        raise ExecutorTextError(f"there is no executor {kind!r}", f"the kinds are {known}", unknown=kind)
    return SETTINGS[kind].of_text(rest.strip())
