"""What may be absent, where a test knows that it is there."""

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value, which must be there: the test fails where it is not."""
    assert value is not None
    return value
