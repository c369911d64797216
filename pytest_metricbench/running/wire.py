"""What an item learned, as the one JSON text that crosses from a worker to the controller on a test report.

An item that is one attempt sends a :class:`Message`, a group of attempts a :class:`GroupMessage`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

from pydantic import Field, TypeAdapter, ValidationError

from pytest_metricbench.contracts import AttemptRecord
from pytest_metricbench.definition.scoring import Status
from pytest_metricbench.store.records import attempt_to_json, to_line


class WireError(ValueError):
    """A text that is not what an item sends; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Message:
    """What became of an attempt, and its new records; none when it was taken from the store."""

    status: Status
    records: tuple[AttemptRecord, ...]


GroupWord: TypeAlias = Literal[
    "solved", "flaky", "mixed", "missed", "died", "reused", "left", "not_reached", "not_needed", "unmeasured"
]
"""What became of a group: ``flaky`` of a task and ``mixed`` of a variant mean that some of its attempts passed."""


@dataclass(frozen=True, slots=True)
class Part:
    """An attempt of a group: its task and slot, and what a :class:`Message` says of an attempt."""

    task: str
    slot: Annotated[int, Field(ge=1)]
    status: Status
    records: tuple[AttemptRecord, ...]


@dataclass(frozen=True, slots=True)
class LeftPart:
    """An attempt of a group that was not started since a limit of the budget, in words, was reached."""

    task: str
    slot: Annotated[int, Field(ge=1)]
    reached: str


@dataclass(frozen=True, slots=True)
class GroupMessage:
    """What became of a group, and of each attempt of it about which anything is known."""

    word: GroupWord
    attempts: tuple[Part, ...]
    left: tuple[LeftPart, ...]


_MESSAGE: Final = TypeAdapter(Message)
_GROUP: Final = TypeAdapter(GroupMessage)


def to_wire(status: Status, records: Sequence[AttemptRecord]) -> str:
    """The text of a message: ASCII, so that no transport stumbles over it."""
    return to_line({"status": status, "records": [attempt_to_json(record) for record in records]})


def from_wire(text: str) -> Message:
    """Read a message.

    Raises:
        WireError: it is none.
    """
    try:
        return _MESSAGE.validate_json(text)
    except ValidationError as error:
        raise _unreadable(error) from None


def group_to_wire(message: GroupMessage) -> str:
    """The text of a group's message, likewise."""
    attempts = [
        {
            "task": part.task,
            "slot": part.slot,
            "status": part.status,
            "records": [attempt_to_json(record) for record in part.records],
        }
        for part in message.attempts
    ]
    left = [{"task": part.task, "slot": part.slot, "reached": part.reached} for part in message.left]
    return to_line({"word": message.word, "attempts": attempts, "left": left})


def group_from_wire(text: str) -> GroupMessage:
    """Read a group's message.

    Raises:
        WireError: it is none.
    """
    try:
        return _GROUP.validate_json(text)
    except ValidationError as error:
        raise _unreadable(error) from None


def _unreadable(error: ValidationError) -> WireError:
    return WireError(str(error.errors(include_url=False, include_input=False)[0]["msg"]))
