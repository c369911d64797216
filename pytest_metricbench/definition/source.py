"""A YAML file read safely into JSON values, with the line and column of every key.

Composed with a safe loader and built here, so that what YAML allows and an experiment does not (duplicate keys, keys
that are no texts, dates, tags, aliases that multiply) is told at its place instead of being resolved silently.
"""

import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NoReturn, cast

import yaml

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.documents import Document, Pairs
from pytest_metricbench.definition.problems import KeyPath, Problem, ProblemList, key_text, shortened

FILE_LIMIT: Final = 16 << 20
"""Bytes of the largest file that is read."""
NODE_LIMIT: Final = 1_000_000
"""Values of the largest file, those that aliases repeat included."""
DEPTH_LIMIT: Final = 100
"""Levels of nesting."""

_LOADER: Final[Any] = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_TAG: Final = "tag:yaml.org,2002:"
_BOOLEANS: Final = {"yes": True, "true": True, "on": True, "no": False, "false": False, "off": False}


def read_document(path: Path, problems: ProblemList) -> Document | None:
    """Read one YAML file. None, with at least one new problem, where nothing of it can be used.

    Problems of single values are noted and the document is given nonetheless, so that more can be found in it.
    """
    data = file_content(path, problems)
    if data is None:
        return None
    problems.documents.append(path)
    return document_from(path, data, problems)


def document_from(path: Path, data: bytes, problems: ProblemList) -> Document | None:
    """The document that the bytes of a file, or of a part of it, hold; None, with a problem, where there is none."""
    try:
        return _Reader(path, problems).read(data)
    except _RefusedError as error:
        problems.add(error.problem)
    except yaml.YAMLError as error:
        problems.add(syntax_problem(path, error, data))
    except RecursionError:
        problems.add(Problem(path, 1, 1, "", "is nested too deeply", f"{DEPTH_LIMIT} levels are allowed"))
    return None


def syntax_problem(path: Path, error: yaml.YAMLError, data: bytes) -> Problem:
    """What a YAML parser says about a file it cannot read."""
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    if isinstance(error, yaml.reader.ReaderError):
        before = data[: error.position] if isinstance(error.position, int) else b""
        line, column = before.count(b"\n") + 1, len(before) - (before.rfind(b"\n") + 1) + 1
        return Problem(path, line, column, "", f"is no YAML: {error.reason}", "save the file as UTF-8 text")
    line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
    said = str(getattr(error, "problem", None) or error)
    if "another document" in said:
        return Problem(path, line, column, "", "a second YAML document begins here", "a file holds one; remove ---")
    context = getattr(error, "context", None)
    began = getattr(error, "context_mark", None)
    since = f" ({context}, which begins at line {began.line + 1})" if context and began is not None else ""
    return Problem(path, line, column, "", f"is no YAML: {said}{since}")


def file_content(path: Path, problems: ProblemList) -> bytes | None:
    """The bytes of a regular file of at most :data:`FILE_LIMIT` bytes; None, with a problem, where it is none."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            problems.add(Problem(path, 1, 1, "", "is not a regular file"))
            return None
        if status.st_size > FILE_LIMIT:
            message = f"has {status.st_size} bytes"
            problems.add(Problem(path, 1, 1, "", message, f"at most {FILE_LIMIT >> 20} MiB are read"))
            return None
        return path.read_bytes()
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        problems.add(Problem(path, 1, 1, "", f"cannot be read: {reason}"))
        return None


class _RefusedError(Exception):
    """A file that is not read to its end."""

    def __init__(self, problem: Problem) -> None:
        self.problem = problem


class _Reader:
    """Builds one document."""

    def __init__(self, path: Path, problems: ProblemList) -> None:
        self.path = path
        self.problems = problems
        self.refused: set[KeyPath] = set()
        self.pairs: dict[int, Pairs] = {}
        self.merging: set[int] = set()
        self.open: set[int] = set()
        self.left = NODE_LIMIT

    def read(self, data: bytes) -> Document:
        self._refuse_too_many(data)
        loader = _LOADER(data)
        try:
            root = cast("yaml.Node | None", loader.get_single_node())
        finally:
            loader.dispose()
        value = None if root is None else self.build(root, ())
        return Document(self.path, value, frozenset(self.refused), root, self.pairs)

    def _refuse_too_many(self, data: bytes) -> None:
        """A composed value takes 100 times its text; events take nothing, so they are counted first."""
        if len(data) < NODE_LIMIT:
            return
        count = 0
        for event in yaml.parse(data, Loader=_LOADER):
            count += isinstance(event, yaml.NodeEvent)
            if count > NODE_LIMIT:
                self._refuse(event, (), *_TOO_MANY)

    def build(self, node: yaml.Node, keys: KeyPath) -> Json:
        self._spend(1, node, keys)
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node, keys)
        if id(node) in self.open:
            self._refuse(node, keys, "holds an alias of itself", "write the value out")
        if len(keys) >= DEPTH_LIMIT:
            self._refuse(node, keys, "is nested too deeply", f"{DEPTH_LIMIT} levels are allowed")
        if node.tag not in (f"{_TAG}map", f"{_TAG}seq"):
            return self._wrong(node, keys, *_wrong_tag(node.tag))
        self.open.add(id(node))
        try:
            if isinstance(node, yaml.SequenceNode):
                return [self.build(entry, (*keys, index)) for index, entry in enumerate(node.value)]
            pairs = self._flattened(cast("yaml.MappingNode", node), keys)
            return {key: self.build(value, (*keys, key)) for key, (_, value) in pairs.items()}
        finally:
            self.open.discard(id(node))

    def _flattened(self, node: yaml.MappingNode, keys: KeyPath) -> Pairs:
        """The keys of a mapping, those of ``<<`` included; told once what is wrong with them."""
        known = self.pairs.get(id(node))
        if known is not None:
            return known
        if id(node) in self.merging:
            self._refuse(node, keys, "merges itself with <<", "write the keys out")
        self.merging.add(id(node))
        own: Pairs = {}
        merged: Pairs = {}
        for key, value in node.value:
            if key.tag == f"{_TAG}merge":
                for source in self._merge_sources(value, keys):
                    pairs = self._flattened(source, keys)
                    self._spend(len(pairs), key, keys)
                    merged = {**pairs, **merged}
                continue
            name = self._key(key, keys)
            if name is None:
                continue
            if name in own:
                first = own[name][0].start_mark.line + 1
                self._note(key, (*keys, name), f"the key {shortened(name)!r} stands twice, first in line {first}")
            else:
                own[name] = (key, value)
        self.merging.discard(id(node))
        self.pairs[id(node)] = {**merged, **own}
        return self.pairs[id(node)]

    def _merge_sources(self, value: yaml.Node, keys: KeyPath) -> Iterator[yaml.MappingNode]:
        for source in value.value if isinstance(value, yaml.SequenceNode) else [value]:
            if isinstance(source, yaml.MappingNode):
                yield source
            else:
                self._note(source, (*keys, "<<"), "a merge key << needs a mapping or a list of mappings")

    def _key(self, node: yaml.Node, keys: KeyPath) -> str | None:
        if isinstance(node, yaml.ScalarNode):
            if node.tag in (f"{_TAG}str", f"{_TAG}value"):
                return cast("str", node.value)
            kind = {"bool": "a boolean", "int": "a number", "float": "a number", "null": "null", "timestamp": "a date"}
            read = kind.get(node.tag.removeprefix(_TAG), node.tag)
            self._note(node, keys, f"the key {shortened(node.value)!r} is read as {read}", "quote it; keys are texts")
        else:
            self._note(node, keys, "a key is a list or a mapping", "keys are texts")
        return None

    def _scalar(self, node: yaml.ScalarNode, keys: KeyPath) -> Json:
        kind, text = node.tag.removeprefix(_TAG), cast("str", node.value)
        if kind in ("str", "value"):
            if any("\ud800" <= character <= "\udfff" for character in text):
                return self._wrong(node, keys, "holds half of a surrogate pair", "write the character itself")
            return text
        if kind == "null":
            return None
        try:
            if kind == "bool":
                return _BOOLEANS[text.lower()]
            if kind == "int":
                return _integer(text)
            if kind == "float":
                return _number(text)
        except _AmbiguousError as error:
            return self._wrong(node, keys, error.message, error.remedy)
        except (KeyError, ValueError):
            return self._wrong(node, keys, f"{shortened(text)!r} is no {kind}")
        if kind == "timestamp":
            return self._wrong(node, keys, f"{text} is read as a date, which JSON does not have", f'quote it: "{text}"')
        return self._wrong(node, keys, *_wrong_tag(node.tag))

    def _spend(self, count: int, node: yaml.Node, keys: KeyPath) -> None:
        self.left -= count
        if self.left < 0:
            self._refuse(node, keys, *_TOO_MANY)

    def _wrong(self, node: yaml.Node, keys: KeyPath, message: str, remedy: str = "") -> str:
        self._note(node, keys, message, remedy)
        self.refused.add(keys)
        return node.value if isinstance(node, yaml.ScalarNode) else ""

    def _note(self, node: yaml.Node, keys: KeyPath, message: str, remedy: str = "") -> None:
        self.problems.add(self._problem(node, keys, message, remedy))

    def _refuse(self, node: yaml.Node | yaml.Event, keys: KeyPath, message: str, remedy: str) -> NoReturn:
        raise _RefusedError(self._problem(node, keys, message, remedy))

    def _problem(self, node: yaml.Node | yaml.Event, keys: KeyPath, message: str, remedy: str) -> Problem:
        mark = node.start_mark
        line, column = (mark.line + 1, mark.column + 1) if mark is not None else (1, 1)
        return Problem(self.path, line, column, key_text(keys), message, remedy)


_TOO_MANY: Final = (
    f"holds more than {NODE_LIMIT} values, those that aliases repeat included",
    "split the experiment, or write fewer aliases",
)


class _AmbiguousError(ValueError):
    """A number that YAML reads as another one than a reader does."""

    def __init__(self, message: str, remedy: str) -> None:
        self.message = message
        self.remedy = remedy


def _integer(text: str) -> int:
    plain = text.replace("_", "")
    digits = plain.lstrip("+-")
    if ":" in digits:
        raise _AmbiguousError(f"{text} is read as a number to the base 60", f'quote it: "{text}"')
    if len(digits) > 1 and digits[0] == "0" and digits.isdigit():
        raise _AmbiguousError(f"{text} is read as an octal number", f'quote it: "{text}", or leave the 0 out')
    return int(plain, 0)


def _number(text: str) -> float:
    plain = text.replace("_", "").lower()
    if ":" in plain:
        raise _AmbiguousError(f"{text} is read as a number to the base 60", f'quote it: "{text}"')
    number = float(plain.replace(".inf", "inf").replace(".nan", "nan"))
    if number != number or number in (float("inf"), float("-inf")):
        raise _AmbiguousError(f"{text} is no finite number", "write a finite one, or quote it where a text is meant")
    return number


def _wrong_tag(tag: str) -> tuple[str, str]:
    shown = tag.replace(_TAG, "!!", 1)
    return f"the tag {shortened(shown)} is not allowed", "texts, numbers, booleans, null, lists and mappings are"
