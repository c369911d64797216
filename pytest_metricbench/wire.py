"""What an item learned, as the one JSON text that crosses from a worker to the controller on a test report."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from pydantic import TypeAdapter, ValidationError

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


_MESSAGE: Final = TypeAdapter(Message)


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
        raise WireError(str(error.errors(include_url=False, include_input=False)[0]["msg"])) from None
