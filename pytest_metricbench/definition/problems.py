"""What is wrong with an experiment file: every problem at its place, all of them at once."""

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, TypeAlias

from pytest_metricbench.messages import counted, did_you_mean

KeyPath: TypeAlias = tuple[str | int, ...]
"""The way to a value in a file: keys of mappings and positions in lists."""

SHOWN: Final = 50
"""Problems that one error tells in full."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One mistake: where it stands, what it is, and what would be right."""

    file: Path
    line: int
    """From 1."""
    column: int
    """From 1, in characters."""
    key: str
    """The path of the key, ``cases[0].mutants[2].id``; empty for the file as a whole."""
    message: str
    remedy: str = ""

    def __str__(self) -> str:
        """``file:line:column: key: message; remedy``."""
        where = f"{shown_path(self.file)}:{self.line}:{self.column}: "
        key = f"{self.key}: " if self.key else ""
        remedy = f"; {self.remedy}" if self.remedy else ""
        return " ".join(f"{where}{key}{self.message}{remedy}".splitlines())


class DefinitionError(Exception):
    """An experiment file, or a file that belongs to it, is not right. Carries all problems that were found."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        """Keep the problems, those of one file together and in the order of its lines."""
        found = list(problems)
        files = list(dict.fromkeys(problem.file for problem in found))
        found.sort(key=lambda problem: (files.index(problem.file), problem.line, problem.column, problem.key))
        self.problems: Final = tuple(dict.fromkeys(found))
        super().__init__(self.problems)

    def __str__(self) -> str:
        """One problem a line, at most :data:`SHOWN` of them."""
        lines = [str(problem) for problem in self.problems[:SHOWN]]
        more = len(self.problems) - SHOWN
        if more > 0:
            lines.append(f"and {counted(more, 'more problem')}")
        return "\n".join(lines)


class ProblemList:
    """The problems found so far while one experiment is read."""

    def __init__(self) -> None:
        """Begin with none."""
        self.found: list[Problem] = []
        self.documents: list[Path] = []
        """The YAML files that were read so far."""

    def __len__(self) -> int:
        """How many were found."""
        return len(self.found)

    def add(self, problem: Problem) -> None:
        """Note one problem."""
        self.found.append(problem)

    def hint(self, word: str, known: Iterable[str]) -> str:
        """``did you mean 'x'?``, or nothing; nothing either when so many problems were found that none is read."""
        return did_you_mean(word, known) if len(self.found) < SHOWN else ""

    def stop_if_any(self) -> None:
        """End the reading here when something is wrong already.

        Raises:
            DefinitionError: with every problem found so far.
        """
        if self.found:
            raise DefinitionError(self.found)


def key_text(keys: KeyPath) -> str:
    """A key path as it is shown: ``cases[0].params['a b']``."""
    text = ""
    for part in keys:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part.replace("-", "_").isidentifier():
            text += f".{part}" if text else part
        else:
            text += f"[{shortened(part)!r}]"
    return text


def shortened(text: str, limit: int = 60) -> str:
    """A text cut to what fits in a message."""
    return text if len(text) <= limit else f"{text[: limit - 3]}..."


def first_names(names: Sequence[str], most: int = 8) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more


def shown_path(path: Path) -> str:
    """A path as a message shows it: relative to the current folder when it is below it, else whole."""
    try:
        return str(path.relative_to(os.getcwd()))
    except (ValueError, OSError):
        return str(path)
