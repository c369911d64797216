"""The words and forms of figures that cannot be computed."""

from typing import Any

from pytest_metricbench.messages import counted


def missing(reason: str) -> dict[str, Any]:
    """Fields of a figure without a value."""
    return {"value": None, "reason": reason}


def outside(needed: int, of: int) -> dict[str, Any]:
    """Fields of a figure that needs attempts which are outside this part and not in the store."""
    return {"value": None, "reason": outside_reason(needed, of), "outside": True}


def outside_reason(needed: int, of: int) -> str:
    """Why such a figure is unavailable."""
    verb = "is" if needed == 1 else "are"
    return f"{needed} of {counted(of, 'attempt')} {verb} outside this part and not in the store"


def subsets_outside_reason(needed: int, of: int) -> str:
    """Why a figure of several subsets is unavailable."""
    verb = "needs" if needed == 1 else "need"
    return f"{needed} of {counted(of, 'subset')} {verb} attempts that are outside this part and not in the store"


def briefly(message: str) -> str:
    """An error in a line: its first, and of what a command wrote to stderr the last, which says what happened."""
    head, *rest = message.strip().splitlines() or ["no message"]
    said, found, _ = head.partition("; the end of its stderr:")
    if rest and rest[-1].startswith("kept in "):  # of a coverage request: where, not what
        rest.pop()
    last = next((line.strip() for line in reversed(rest) if line.strip()), "")
    return f"{said}: {last}" if found and last else said
