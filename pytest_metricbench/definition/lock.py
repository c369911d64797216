"""The lock beside an experiment: what it expands to, written down to be reviewed and committed.

An expansion is a deterministic function of files. Whoever has no lock expands in memory and gets the same; a lock
keeps an experiment as it was reviewed, and disagrees when what it was made from has changed.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.experiment import LockState
from pytest_metricbench.definition.models import Form
from pytest_metricbench.definition.problems import Problem, ProblemList, shortened
from pytest_metricbench.definition.source import read_document
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.digests import PREFIX
from pytest_metricbench.messages import joined, unheard
from pytest_metricbench.plain_files import write_whole
from pytest_metricbench.sources import SourceError

RENEW: Final = "renew it with --metricbench-lock"

_MOST_CHANGES: Final = 6
_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9._+-]*", re.ASCII)
_LONG_LINE: Final = 200
_BLOCK: Final = re.compile(
    r"[!-~\xa1-\u1fff]"
    r"[\t\n -~\xa0-\u1fff\u2010-\u2027\u202f-\u205f\u2070-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]*"
)
"""A text that YAML gives back as it is when its lines stand as such, and in which a reader sees everything there is."""
_WORDS: Final = frozenset({"y", "n", "yes", "no", "true", "false", "on", "off", "null"})


class ExpansionForm(Form):
    """One expansion as the lock holds it."""

    kind: str
    case: str
    made_from: dict[str, Any]
    files: dict[str, str] = Field(default={})
    entries: list[Any]


class LockForm(Form):
    """The lock file."""

    lock: Literal[1]
    expansions: list[ExpansionForm]


@dataclass(frozen=True, slots=True)
class Expansion:
    """Something of an experiment that stands for more than is written."""

    kind: str
    """What is expanded: ``subsets``, ``tasks``, ``mutants``, ``recordings``."""
    case: str
    place: Place
    """The key that asks for it."""
    made_from: Mapping[str, Json]
    """The keys and values it is a function of; large ones as digests."""
    expand: Callable[[], Sequence[Json]]
    files: Mapping[str, str] = field(default_factory=dict)
    """Files it is a function of: name -> digest."""
    unreadable: SourceError | None = None
    """Why what it is made from cannot be read."""

    @property
    def title(self) -> str:
        """What it is, in words."""
        return f"the {self.kind} of the case {self.case}"


@dataclass(frozen=True, slots=True)
class Expanded:
    """What an expansion gives, and where the lock lists it; no place where it was expanded just now."""

    entries: Sequence[Json]
    place: Place | None = None


def lock_path(experiment: Path) -> Path:
    """``experiment.lock.yml`` for ``experiment.yml``."""
    return experiment.with_name(f"{experiment.stem}.lock.yml")


def write_lock(state: LockState) -> None:
    """Write the lock whole, or leave what is there as it is.

    Raises:
        OSError: the folder cannot be written.
    """
    write_whole(state.path, state.text)


class Lock:
    """The lock of an experiment while it is read: gives what it holds, or expands where there is none."""

    def __init__(
        self,
        experiment: Path,
        problems: ProblemList,
        *,
        renew: bool = False,
        trusted: bool = False,
        progress: Callable[[str], None] = unheard,
    ) -> None:
        """Read the lock, if there is one and it is not to be renewed.

        Args:
            experiment: the experiment file.
            problems: what is wrong with the lock, or disagrees with it, is noted here.
            renew: expand anew, whatever the lock says.
            trusted: take the lock's word where what it was made from cannot be read.
            progress: told what is expanded, which can take minutes.
        """
        self.progress: Final = progress
        self._experiment: Final = experiment
        self._problems: Final = problems
        self._trusted: Final = trusted
        self._path: Final = lock_path(experiment)
        self._exists: Final = os.path.lexists(self._path)
        self._is_used: Final = self._exists and not renew
        self._held: dict[tuple[str, str], tuple[ExpansionForm, Place]] | None = None
        self._is_broken = False
        self._taken: list[tuple[Expansion, Expanded]] = []

    def take(self, expansion: Expansion) -> Expanded | None:
        """What an expansion gives; None, with a problem noted, where it cannot be had."""
        expanded = self._from_lock(expansion) if self._is_used else self._anew(expansion)
        if expanded is not None:
            self._taken.append((expansion, expanded))
        return expanded

    def finish(self, *, whole: bool) -> LockState | None:
        """The lock's state once everything was taken; None where nothing is expanded.

        ``whole``: everything that the experiment expands was asked for, so what is left in the lock is not used.
        """
        if self._is_used and whole and self._held is not None:
            for kind, case in self._held:
                place = self._held[kind, case][1]
                self._problems.add(place.problem(f"the {kind} of the case {case} are not expanded any more", RENEW))
        if not self._taken:
            return None
        if self._is_used:
            return LockState(self._path, self._path.read_text("utf-8"), missing=False)
        cases = list(dict.fromkeys(expansion.case for expansion, _ in self._taken))
        ordered = sorted(self._taken, key=lambda taken: cases.index(taken[0].case))
        text = _text(self._experiment, [entry for entry, _ in ordered], [entry for _, entry in ordered])
        return LockState(self._path, text, missing=not self._exists)

    def _anew(self, expansion: Expansion) -> Expanded | None:
        if expansion.unreadable is None:
            self.progress(f"expanding {expansion.title}")
            try:
                return Expanded(expansion.expand())
            except SourceError as error:
                expansion = replace(expansion, unreadable=error)
        self._tell_unreadable(expansion)
        return None

    def _tell_unreadable(self, expansion: Expansion) -> None:
        error = expansion.unreadable
        if error is not None:
            self._problems.add(expansion.place.problem(error.message, error.remedy))

    def _from_lock(self, expansion: Expansion) -> Expanded | None:
        if self._held is None and not self._is_broken:
            self._held = self._read()
            self._is_broken = self._held is None
        if self._held is None:
            return None
        held, place = self._held.pop((expansion.kind, expansion.case), (None, None))
        if expansion.unreadable is not None and not (self._trusted and held is not None):
            self._tell_unreadable(expansion)
            return None
        if held is None or place is None:
            changes = [f"it does not hold {expansion.title}"]
        else:
            changes = [] if expansion.unreadable is not None else _changes(expansion, held)
        if changes:
            told = expansion.place.problem(f"{self._path.name} disagrees: {', '.join(changes)}", RENEW)
            self._problems.add(told)
            return None
        return None if held is None or place is None else Expanded(held.entries, place.child("entries"))

    def _read(self) -> dict[tuple[str, str], tuple[ExpansionForm, Place]] | None:
        own = ProblemList()
        document = read_document(self._path, own)
        form = None if document is None else Checker(own, {}).check(LockForm, document.root)
        if document is None or form is None or own:
            for problem in own.found:
                self._problems.add(_with_renewal(problem))
            return None
        places = document.root.entries("expansions")
        pairs = zip(form.expansions, places, strict=True)
        return {(expansion.kind, expansion.case): (expansion, place) for expansion, place in pairs}


# ---------------------------------------------------------------- agreement


def _with_renewal(problem: Problem) -> Problem:
    remedy = joined(problem.remedy, RENEW)
    return Problem(problem.file, problem.line, problem.column, problem.key, problem.message, remedy)


def _changes(expansion: Expansion, held: ExpansionForm) -> list[str]:
    changes = []
    for name in dict.fromkeys([*held.made_from, *expansion.made_from]):
        old, new = held.made_from.get(name), expansion.made_from.get(name)
        if old == new:
            continue
        if str(new).startswith(PREFIX) or str(old).startswith(PREFIX):
            changes.append(f"the {name} {'is new' if old is None else 'is gone' if new is None else 'changed'}")
        else:
            changes.append(f"{name} was {shortened(json.dumps(old))} and is {shortened(json.dumps(new))}")
    for name in sorted({*held.files, *expansion.files}):
        if name not in expansion.files:
            changes.append(f"the file {name} is gone")
        elif name not in held.files:
            changes.append(f"the file {name} is new")
        elif held.files[name] != expansion.files[name]:
            changes.append(f"the file {name} changed")
    if len(changes) > _MOST_CHANGES:
        changes[_MOST_CHANGES - 1 :] = [f"and {len(changes) - _MOST_CHANGES + 1} more changes"]
    return changes


# ---------------------------------------------------------------- text


def _text(experiment: Path, wanted: Sequence[Expansion], expanded: Sequence[Expanded]) -> str:
    lines = [
        f"# What {experiment.name} expands to: review it and commit it.",
        f"# pytest --metricbench-lock {experiment.name} writes it again.",
        "lock: 1",
        "expansions:",
    ]
    for expansion, result in zip(wanted, expanded, strict=True):
        lines += [
            f"  - kind: {_flow(expansion.kind)}",
            f"    case: {_flow(expansion.case)}",
            *_keyed("made_from", expansion.made_from),
        ]
        if expansion.files:
            lines += _keyed("files", expansion.files)
        lines.append("    entries:" if result.entries else "    entries: []")
        for entry in result.entries:
            lines += _listed(entry)
    return "\n".join(lines) + "\n"


def _keyed(key: str, value: Mapping[str, Json]) -> list[str]:
    """A mapping on one line, or a line for each of its keys where it would be too long to be read."""
    line = f"    {key}: {_flow(value)}"
    if len(line) <= _LONG_LINE:
        return [line]
    return [f"    {key}:", *(f"      {_flow(name)}: {_flow(entry)}" for name, entry in value.items())]


def _listed(entry: Json) -> list[str]:
    """An entry of a list: on one line, or with texts of several lines as such, so that they can be reviewed."""
    if not _holds_lines(entry):
        return [f"      - {_flow(entry)}"]
    lines = _block(entry, " " * 8)
    return [f"      - {lines[0].lstrip(' ')}", *lines[1:]]


def _holds_lines(value: Json) -> bool:
    if isinstance(value, Mapping):
        return any(_holds_lines(entry) for entry in value.values())
    return isinstance(value, str) and "\n" in value and _BLOCK.fullmatch(value) is not None


def _block(value: Mapping[str, Json], pad: str) -> list[str]:
    """The lines of a mapping that holds a text of several lines."""
    lines = []
    for key, entry in value.items():
        begun = f"{pad}{_flow(key)}:"
        if not _holds_lines(entry):
            lines.append(f"{begun} {_flow(entry)}")
        elif isinstance(entry, Mapping):
            lines += [begun, *_block(entry, f"{pad}  ")]
        else:
            body = entry.split("\n")
            kept = "-" if body[-1] else "+" if len(body) > 2 and not body[-2] else ""
            lines.append(f"{begun} |{kept}")
            lines += [f"{pad}  {line}" if line else "" for line in (body if body[-1] else body[:-1])]
    return lines


def _flow(value: Json) -> str:
    """A JSON value as YAML on one line, read back as the same value."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_flow(key)}: {_flow(entry)}" for key, entry in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_flow(entry) for entry in value) + "]"
    if isinstance(value, str):
        return _scalar(value)
    text = json.dumps(value)
    if isinstance(value, float) and "." not in text:
        return text.replace("e", ".0e")  # YAML reads 1e-07 as a text
    return text


def _scalar(text: str) -> str:
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    return '"' + "".join(_escaped(character) for character in text) + '"'


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if " " <= character <= "~":
        return character
    return f"\\U{ord(character):08x}"
