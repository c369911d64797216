"""Attempts that another system recorded, in the one form that every reader of ``interop`` gives them.

A form (Harbor's job folders, evaluator bundles, Gym rollouts, a table) is read by one function,

    ``read(paths: Mapping[str, Path], options: ReadOptions) -> Recordings``

where ``paths`` are the folders and files that the experiment names (name as reports show it -> where it is, in the
order to read them). It gives the same whatever the order of a folder's listing, the clock or the process: several
processes read by themselves and must agree on which attempt is which. Memory is bounded by values: of a file that an
attempt left only the path is kept.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, Protocol, TypeAlias

from pytest_metricbench.contracts import NOT_RECORDED, Json, Outcome, OutputKind
from pytest_metricbench.definition.experiment import Note
from pytest_metricbench.sources import SourceError

Treatment: TypeAlias = Literal["died", "unmeasured", "scored"]
"""What becomes of an attempt with an error of some type: ``scored`` takes the scores where there are any."""


LONGEST_MESSAGE: Final = 1000
"""Characters of an error: names of strangers may have any length."""


class RecordingError(SourceError):
    """Recorded attempts that cannot be read: the message names the file, the remedy says what to do."""

    def __init__(self, message: str, remedy: str = "") -> None:
        """Keep both as one line each that a terminal can be given: names in them are as strangers wrote them."""
        super().__init__(_one_line(message), _one_line(remedy))


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """What the experiment says about how to read; a form refuses what it does not understand."""

    case: str
    """The id of the case that is read; a form whose files hold several cases reads only that one."""
    variants: str | None = None
    """How variants are told apart, in the form's own words; None: the form's default."""
    outcomes: Mapping[str, Treatment] = field(default_factory=dict)
    """Type of an error -> what becomes of its attempts, over the form's own table."""
    columns: Mapping[str, Json] = field(default_factory=dict)
    """Of a table: what each column is."""
    evidence: Sequence[str] | None = None
    """Globs of the files to keep of each attempt, below its folder; None: the form's default."""


@dataclass(frozen=True, slots=True)
class Recording:
    """One attempt as another system recorded it."""

    variant: str
    """What its variant is called: a key of what belongs together, and what the experiment calls it by."""
    task: str
    """What its task is called there."""
    trial: str
    """What the attempt is called there; it may repeat, and is empty where nothing is left of it."""
    origin: str
    """The folder, bundle or file it comes from (a name, relative); with ``trial`` its identity."""
    outcome: Outcome
    """Its ``trial_name`` is ``trial``; a planned attempt that left no result is :func:`not_recorded`."""
    files: Mapping[str, Path] = field(default_factory=dict)
    """Evidence: name in the workspace (relative, forward slashes) -> where it is now."""


@dataclass(frozen=True, slots=True)
class RecordedTask:
    """What is known of a task beside its name. ``outputs``: kinds of its scores, where the system says them."""

    name: str
    description: str = ""
    outputs: Mapping[str, OutputKind] = field(default_factory=dict)
    tags: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class RecordedVariant:
    """What is known of a variant beside its name; ``alias``: a shorter name that the experiment may also call it by,
    where no other variant has it.
    """

    name: str
    description: str = ""
    alias: str = ""


@dataclass(frozen=True, slots=True)
class Recordings:
    """Everything that was recorded of one case."""

    attempts: Sequence[Recording]
    """In a fixed order: it decides which slot of a variant and task each of them gets."""
    tasks: Mapping[str, RecordedTask] = field(default_factory=dict)
    """By name, in order of appearance. A task without an attempt may stand here, and an attempt's task may be absent
    (then only its name is known)."""
    variants: Mapping[str, RecordedVariant] = field(default_factory=dict)
    """By name, likewise."""
    notes: Sequence[Note] = ()
    files: Mapping[str, Path] = field(default_factory=dict)
    """Every file whose content decided something: name as the lock shows it (below a key of ``paths``) -> path."""


class ReadForm(Protocol):
    """How a form is read."""

    def __call__(self, paths: Mapping[str, Path], options: ReadOptions) -> Recordings:
        """Read everything that was recorded of ``options.case`` below ``paths``.

        Raises:
            RecordingError: there is nothing, or something of it is broken: a broken file is never left out silently.
        """


def _one_line(text: str) -> str:
    if len(text) > LONGEST_MESSAGE:
        half = LONGEST_MESSAGE // 2
        text = f"{text[:half]} ... {text[-half:]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def not_recorded(variant: str, task: str, origin: str, why: str, trial: str = "") -> Recording:
    """An attempt that was planned and left no result: it counts as missing, never as a zero."""
    outcome = Outcome.unmeasured(NOT_RECORDED, why, "setup", trial_name=trial or None)
    return Recording(variant, task, trial, origin, outcome)
