"""The lock beside an experiment: what it expands to, written down to be reviewed and committed.

An expansion is a deterministic function of files. Whoever has no lock expands in memory and gets the same; a lock
keeps an experiment as it was reviewed, and disagrees when what it was made from has changed.
"""

import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pydantic import Field

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.experiment import LockState
from pytest_metricbench.definition.models import Form
from pytest_metricbench.definition.problems import Problem, ProblemList, joined, shortened
from pytest_metricbench.definition.source import read_document
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.digests import PREFIX
from pytest_metricbench.plain_files import write_whole

RENEW: Final = "renew it with --metricbench-lock"

_PLAIN: Final = re.compile(r"[A-Za-z][A-Za-z0-9._+-]*", re.ASCII)
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
    """What is expanded: ``subsets``."""
    case: str
    place: Place
    """The key that asks for it."""
    made_from: Mapping[str, Json]
    """The keys and values it is a function of; large ones as digests."""
    expand: Callable[[], list[Json]]
    files: Mapping[str, str] = field(default_factory=dict)
    """Files it is a function of: name -> digest."""

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


def expand_all(
    experiment: Path, wanted: Sequence[Expansion], problems: ProblemList, *, renew: bool = False
) -> tuple[list[Expanded], LockState | None]:
    """Take every expansion from the lock, or expand it where there is no lock or it is to be renewed.

    Where the lock disagrees there are new problems, and the list is not complete. The state is None where there is
    nothing to expand.
    """
    if not wanted:
        return [], None
    path = lock_path(experiment)
    exists = os.path.lexists(path)
    if exists and not renew:
        return _from_lock(path, wanted, problems)
    expanded = [Expanded(expansion.expand()) for expansion in wanted]
    return expanded, LockState(path, _text(experiment, wanted, expanded), missing=not exists)


def write_lock(state: LockState) -> None:
    """Write the lock whole, or leave what is there as it is.

    Raises:
        OSError: the folder cannot be written.
    """
    write_whole(state.path, state.text)


# ---------------------------------------------------------------- agreement


def _from_lock(
    path: Path, wanted: Sequence[Expansion], problems: ProblemList
) -> tuple[list[Expanded], LockState | None]:
    own = ProblemList()
    document = read_document(path, own)
    form = None
    if document is not None:
        form = Checker(own, {}).check(LockForm, document.root)
    if document is None or form is None or own:
        for problem in own.found:
            problems.add(_with_renewal(problem))
        return [], None
    places = dict(zip([(e.kind, e.case) for e in form.expansions], document.root.entries("expansions"), strict=True))
    forms = {(expansion.kind, expansion.case): expansion for expansion in form.expansions}
    expanded: list[Expanded] = []
    for expansion in wanted:
        key = (expansion.kind, expansion.case)
        held, place = forms.pop(key, None), places.get(key)
        changes = [f"it does not hold {expansion.title}"] if held is None else _changes(expansion, held)
        if changes:
            problems.add(expansion.place.problem(f"{path.name} disagrees: {', '.join(changes)}", RENEW))
        elif held is not None and place is not None:
            expanded.append(Expanded(held.entries, place.child("entries")))
    for kind, case in forms:
        problems.add(places[kind, case].problem(f"the {kind} of the case {case} are not expanded any more", RENEW))
    return expanded, LockState(path, path.read_text("utf-8"), missing=False)


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
            changes.append(f"the {name} changed")
        else:
            changes.append(f"{name} was {shortened(json.dumps(old))} and is {shortened(json.dumps(new))}")
    for name in sorted({*held.files, *expansion.files}):
        if name not in expansion.files:
            changes.append(f"the file {name} is gone")
        elif name not in held.files:
            changes.append(f"the file {name} is new")
        elif held.files[name] != expansion.files[name]:
            changes.append(f"the file {name} changed")
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
            f"    made_from: {_flow(expansion.made_from)}",
        ]
        if expansion.files:
            lines.append(f"    files: {_flow(expansion.files)}")
        lines.append("    entries:" if result.entries else "    entries: []")
        lines += [f"      - {_flow(entry)}" for entry in result.entries]
    return "\n".join(lines) + "\n"


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
