"""A YAML file that was read: its value, and where every part of it stands."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

import yaml

from pytest_metricbench.contracts import Json
from pytest_metricbench.definition.problems import KeyPath, Problem, key_text

Pairs: TypeAlias = dict[str, tuple[yaml.Node, yaml.Node]]
"""The keys of a mapping, each with the nodes of the key and of its value."""


@dataclass(frozen=True, slots=True)
class Document:
    """One YAML file: its value, and where each part of it stands."""

    path: Path
    value: Json
    refused: frozenset[KeyPath]
    """Values that have a problem already; what stands for them is their text."""
    root_node: yaml.Node | None = field(repr=False)
    pairs: dict[int, Pairs] = field(repr=False)
    """Of each mapping node, by its ``id()``: its keys, merged ones included."""

    @property
    def root(self) -> "Place":
        """The document as a whole."""
        return Place(self, (), self.value)

    def position(self, keys: KeyPath, *, at_key: bool = False) -> tuple[int, int]:
        """Line and column, from 1, of the value at a path, or of its key; of the nearest parent where it has none."""
        node = place = self.root_node
        for part in keys:
            pair = self._step(node, part)
            if pair is None:
                break
            key, node = pair
            place = key if at_key else node
        if place is None:
            return 1, 1
        return place.start_mark.line + 1, place.start_mark.column + 1

    def written(self, keys: KeyPath) -> str | None:
        """How a scalar without quotes is written in the file; None for anything else."""
        node = self.root_node
        for part in keys:
            pair = self._step(node, part)
            if pair is None:
                return None
            node = pair[1]
        return node.value if isinstance(node, yaml.ScalarNode) and not node.style else None

    def _step(self, node: yaml.Node | None, part: str | int) -> tuple[yaml.Node, yaml.Node] | None:
        if isinstance(node, yaml.MappingNode):
            return self.pairs.get(id(node), {}).get(part) if isinstance(part, str) else None
        if isinstance(node, yaml.SequenceNode) and isinstance(part, int) and part < len(node.value):
            return node.value[part], node.value[part]
        return None


@dataclass(frozen=True, slots=True)
class Place:
    """A value in a document, whatever it is: where problems are told and what stands below can be asked for."""

    document: Document
    keys: KeyPath
    value: Json

    @property
    def line(self) -> int:
        """The line it begins in, from 1."""
        return self.document.position(self.keys)[0]

    def child(self, key: str) -> "Place | None":
        """The value of a key; None where there is no such key, or no mapping."""
        if not isinstance(self.value, dict) or key not in self.value:
            return None
        return Place(self.document, (*self.keys, key), self.value[key])

    def entries(self, key: str | None = None) -> list["Place"]:
        """The entries of this list, or of the list at a key; none where there is no list."""
        place = self if key is None else self.child(key)
        if place is None or not isinstance(place.value, list):
            return []
        return [Place(place.document, (*place.keys, index), value) for index, value in enumerate(place.value)]

    def text(self, key: str) -> str | None:
        """The text at a key; None where there is none."""
        value = self.value.get(key) if isinstance(self.value, dict) else None
        return value if isinstance(value, str) else None

    def problem(self, message: str, remedy: str = "", *, at_key: bool = False) -> Problem:
        """A problem of this value, or of its key."""
        line, column = self.document.position(self.keys, at_key=at_key)
        return Problem(self.document.path, line, column, key_text(self.keys), message, remedy)

    def missing(self, key: str, remedy: str) -> Problem:
        """The problem that a key is not there."""
        line, column = self.document.position(self.keys)
        return Problem(self.document.path, line, column, key_text((*self.keys, key)), "is missing", remedy)
