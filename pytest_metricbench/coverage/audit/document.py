"""``audit.md`` read and checked: one marked block of YAML in a Markdown file, every problem with its line there."""

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pytest_metricbench.contracts import Json
from pytest_metricbench.coverage.audit.forms import EVIDENCE_FORMS, ITEM_FORMS, ItemKind, TopForm
from pytest_metricbench.definition.documents import Document, Place
from pytest_metricbench.definition.problems import Problem, ProblemList
from pytest_metricbench.definition.source import document_from, file_content
from pytest_metricbench.definition.validation import Checker
from pytest_metricbench.definition.wording import described
from pytest_metricbench.digests import digest_file
from pytest_metricbench.messages import did_you_mean, joined
from pytest_metricbench.named_files import problem_of

BEGIN: Final = "<!-- BEGIN:nemo-eval-author-audit:v1 -->"
END: Final = "<!-- END:nemo-eval-author-audit:v1 -->"
KINDS: Final[tuple[ItemKind, ...]] = ("tool", "capability", "failure_case")

_FENCE: Final = re.compile(r" {0,3}(?P<ticks>```+)[ \t]*(?P<language>[^`\s]*)[^`]*")
_MARKED: Final = f"put the audit's fenced ```yaml block between {BEGIN} and {END}"


@dataclass(frozen=True, slots=True)
class Evidence:
    """What a trace must show for an item: a tool call, found in the trace, or something that is judged."""

    kind: str
    description: str
    tool: str | None = None
    """The tool of a ``tool_call``; None for evidence of every other kind."""


@dataclass(frozen=True, slots=True)
class Item:
    """One thing that the audit counts."""

    kind: ItemKind
    name: str
    evidence: tuple[Evidence, ...]
    written: Mapping[str, Json]
    """The item as it stands in the audit."""

    def texts(self, key: str) -> tuple[str, ...]:
        """The texts under a key; none where it is not there."""
        return tuple(self.written.get(key, ()))


@dataclass(frozen=True, slots=True)
class Audit:
    """A checked audit."""

    name: str
    """Its file as the experiment names it."""
    agent: str
    status: str
    items: tuple[Item, ...]
    """In the order of the file."""

    def of_kind(self, *kinds: str) -> tuple[Item, ...]:
        """The items of these kinds, in the order of the file."""
        return tuple(item for item in self.items if item.kind in kinds)

    def item(self, name: str) -> Item | None:
        """The item of that name; None where there is none."""
        return next((item for item in self.items if item.name == name), None)


def read_audit(
    path: Path, name: str, problems: ProblemList, folder: Path | None = None, *, sources: bool = True
) -> Audit | None:
    """Read and check an audit. None, with at least one new problem, where it is not right.

    Args:
        path: the Markdown file.
        name: what the experiment calls it.
        problems: gets every problem that is found, each with its line and column in the Markdown file.
        folder: the experiment's; what the audit names as its sources may not lead out of it. Default: the audit's.
        sources: whether the digests of the sources are checked.
    """
    before = len(problems)
    document = _document(path, problems)
    if document is None:
        return None
    root, checker = document.root, Checker(problems, {})
    checker.check(TopForm, root)
    items = root.entries("items")
    for place in items:
        _check_item(place, checker)
    if sources:
        for place in root.entries("sources"):
            _check_source(place, path.parent, folder or path.parent, problems)
    _check_names(items, problems)
    _check_references(items, problems)
    if len(problems) > before:
        return None
    value = document.value
    return Audit(name, value["agent"], value["status"], tuple(_item(entry) for entry in value["items"]))


# ---------------------------------------------------------------- the block


def _document(path: Path, problems: ProblemList) -> Document | None:
    """The YAML of the block, its lines counted from the beginning of the Markdown file."""
    content = file_content(path, problems)
    if content is None:
        return None
    try:
        block = _block(content)
    except _BlockError as error:
        problems.add(Problem(path, error.line + 1, 1, "", error.message, error.remedy))
        return None
    return document_from(path, block, problems)


class _BlockError(Exception):
    """There is no block to read: the line, from 0, what is wrong with it and what to do."""

    def __init__(self, line: int, message: str, remedy: str) -> None:
        self.line = line
        self.message = message
        self.remedy = remedy


def _block(content: bytes) -> bytes:
    """The lines inside the fence, after as many empty ones as stand before them in the file."""
    lines = content.split(b"\n")
    begins = [number for number, line in enumerate(lines) if BEGIN.encode() in line]
    ends = [number for number, line in enumerate(lines) if END.encode() in line]
    if not begins and not ends:
        raise _BlockError(0, "has no marked block", _MARKED)
    for what, found in (("begins", begins), ("ends", ends)):
        if len(found) > 1:
            message = f"a second marked block {what} here, the first in line {found[0] + 1}"
            raise _BlockError(found[1], message, "an audit has one")
    if not ends or not begins or ends[0] <= begins[0]:
        where, missing, place = (begins[0], END, "after") if begins else (ends[0], BEGIN, "before")
        raise _BlockError(where, f"the marked block is not whole: {missing} is missing {place} this line", _MARKED)
    fences = list(_fences(lines, begins[0] + 1, ends[0]))
    if not fences:
        raise _BlockError(begins[0], "the marked block holds no fenced block", "begin it with ```yaml, end it with ```")
    if len(fences) > 1:
        message = f"a second fenced block, the first is in line {fences[0][0] + 1}"
        raise _BlockError(fences[1][0], message, "an audit has one")
    opened, closed, language = fences[0]
    if language != "yaml":
        raise _BlockError(opened, f"the fenced block is of the language {language!r}", "begin it with ```yaml")
    if closed is None:
        raise _BlockError(opened, "the fenced block has no end", "end it with ``` before the end marker")
    return b"\n" * (opened + 1) + b"\n".join(lines[opened + 1 : closed]) + b"\n"


def _fences(lines: list[bytes], begin: int, end: int) -> Iterator[tuple[int, int | None, str]]:
    """Line of the opening and of the closing fence, and the language, of each fenced block between two lines."""
    number = begin
    while number < end:
        match = _FENCE.fullmatch(lines[number].decode("utf-8", "replace").rstrip())
        if match is not None:
            ticks = match["ticks"]
            closing = re.compile(rb" {0,3}" + ticks.encode() + rb"`*\s*")
            closed = next((at for at in range(number + 1, end) if closing.fullmatch(lines[at])), None)
            yield number, closed, match["language"]
            number = end if closed is None else closed
        number += 1


# ---------------------------------------------------------------- checking


def _check_item(place: Place, checker: Checker) -> None:
    form = _form_of(place, ITEM_FORMS, "an item", checker)
    if form is None:
        return
    checker.check(form, place)
    for evidence in place.entries("evidence_required"):
        needed = _form_of(evidence, EVIDENCE_FORMS, "evidence", checker)
        if needed is not None:
            checker.check(needed, evidence)


def _form_of(place: Place, forms: Mapping[str, Any], what: str, checker: Checker) -> Any:
    """The form that the ``kind`` of a mapping names; None, with a problem, where it names none."""
    if not isinstance(place.value, dict):
        checker.problems.add(place.problem(f"is {described(place.value)}", f"{what} is a mapping with a kind"))
        return None
    kind, listed = place.child("kind"), f"the kinds are {', '.join(forms)}"
    if kind is None:
        checker.problems.add(place.missing("kind", listed))
    elif not isinstance(kind.value, str) or kind.value not in forms:
        hint = did_you_mean(kind.value, forms) if isinstance(kind.value, str) else ""
        checker.problems.add(kind.problem(f"is {described(kind.value)}", joined(hint, listed)))
    else:
        return forms[kind.value]
    return None


def _check_source(place: Place, base: Path, folder: Path, problems: ProblemList) -> None:
    written, digest = place.child("path"), place.child("sha256")
    if written is None or not isinstance(written.value, str) or not written.value:
        return
    path = Path(os.path.abspath(base / written.value)) if "\0" not in written.value else folder
    problem = problem_of(written.value, path, folder)
    if problem is not None:
        problems.add(written.problem(f"{written.value!r} {problem}"))
        return
    found = digest_file(path)
    if digest is not None and isinstance(digest.value, str) and digest.value != found:
        message = f"is not the digest of {written.value}, which is {found}"
        problems.add(digest.problem(message, "the file has changed since the audit was written: review the audit"))


def _check_names(items: list[Place], problems: ProblemList) -> None:
    first: dict[str, Place] = {}
    for place in items:
        name = place.text("name")
        holder = place if name is None else first.setdefault(name, place)
        if holder is not place:
            child = place.child("name") or place
            message = f"the item {name!r} stands twice, first in line {holder.line}"
            problems.add(child.problem(message, "each name is one item, whatever its kind"))


def _check_references(items: list[Place], problems: ProblemList) -> None:
    """Tools and capabilities that items name are items themselves; prohibited tools need not be."""
    tools, capabilities = (_named(items, kind) for kind in ("tool", "capability"))
    for item in items:
        for key in ("required_tools", "expected_tools"):
            _check_declared(item.entries(key), "tool", tools, problems)
        _check_declared(item.entries("applies_to"), "capability", capabilities, problems)
        calls = [entry for entry in item.entries("evidence_required") if entry.text("kind") == "tool_call"]
        named = [place for entry in calls if (place := entry.child("tool")) is not None]
        _check_declared(named, "tool", tools, problems)


def _named(items: list[Place], kind: str) -> list[str]:
    """The names of the items of a kind; those whose kind is told to be wrong count, for they may be meant."""
    named = [(place.text("kind"), place.text("name")) for place in items]
    return [name for found, name in named if name is not None and (found == kind or found not in ITEM_FORMS)]


def _check_declared(places: Iterable[Place], kind: str, known: list[str], problems: ProblemList) -> None:
    for place in places:
        if isinstance(place.value, str) and place.value not in known:
            hint = problems.hint(place.value, known)
            message = f"the {kind} {place.value!r} is no item of this audit"
            problems.add(place.problem(message, joined(hint, f"add an item of the kind {kind} with that name")))


def _item(value: Mapping[str, Json]) -> Item:
    evidence = (
        Evidence(entry["kind"], entry["description"], entry.get("tool")) for entry in value["evidence_required"]
    )
    return Item(value["kind"], value["name"], tuple(evidence), value)
