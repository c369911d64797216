"""What was found in a folder, and which folders are looked into."""

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, get_args

Kind: TypeAlias = Literal["python", "command", "harbor", "suite", "table"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
WORDS: Final[Mapping[Kind, str]] = {
    "python": "an agent that is a Python function",
    "command": "an agent that is a command",
    "harbor": "a Harbor dataset",
    "suite": "a project's test suite",
    "table": "a table of results",
}
"""What each kind is, in words."""

_SKIPPED: Final = frozenset(
    {"node_modules", "venv", "env", "site-packages", "build", "dist", "__pycache__", "htmlcov", "vendor"}
)
_TEXT_LIMIT: Final = 1 << 20
_ENTRIES: Final = 500
"""How much of a folder is looked at."""


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a folder that an experiment can be about."""

    kind: Kind
    reason: str
    """What was found, and where."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """What the experiment is filled with; which keys there are depends on the kind."""
    sure: bool = True
    """Whether it can hardly be anything else."""


def folders_in(folder: Path) -> list[Path]:
    """The folders directly below, sorted: none that is hidden, installed or built, none that cannot be read."""
    return [path for path in _entries(folder) if path.name not in _SKIPPED and os.path.isdir(path)]


def files_in(folder: Path) -> list[Path]:
    """The regular files directly in a folder, sorted, without hidden ones."""
    return [path for path in _entries(folder) if os.path.isfile(path)]


def text_of(path: Path) -> str | None:
    """The text of a small file; None where it is large, no UTF-8 or cannot be read."""
    try:
        if path.stat().st_size > _TEXT_LIMIT:
            return None
        return path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError):
        return None


def _entries(folder: Path) -> Iterator[Path]:
    try:
        found = sorted(folder.iterdir())
    except OSError:
        return
    yield from (path for path in found[:_ENTRIES] if not path.name.startswith("."))
