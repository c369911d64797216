"""Classes by the names that an experiment gives them, each imported when it is first asked for.

An experiment names one runner and a few coverage systems, and every process that collects it would import the others.
"""

from collections.abc import Iterator, Mapping
from importlib import import_module
from typing import Final, Generic, TypeVar

Kind = TypeVar("Kind")


class Kinds(Mapping[str, type[Kind]], Generic[Kind]):
    """Name -> class. Names are known without an import; only the class of a name that is looked up is imported."""

    def __init__(self, homes: Mapping[str, str | type[Kind]]) -> None:
        """``homes``: name -> the class, or where it is, ``package.module:Class``."""
        self._homes: Final = dict(homes)

    def also(self, others: Mapping[str, type[Kind]]) -> "Kinds[Kind]":
        """These and others, which win where a name is the same."""
        return Kinds({**self._homes, **others})

    def __getitem__(self, name: str) -> type[Kind]:
        """The class of that name, imported now if it was not before."""
        home = self._homes[name]
        if isinstance(home, type):
            return home
        module, _, attribute = home.partition(":")
        cls: type[Kind] = getattr(import_module(module), attribute)
        return cls

    def __contains__(self, name: object) -> bool:
        """Whether there is such a name; imports nothing."""
        return name in self._homes

    def __iter__(self) -> Iterator[str]:
        """The names."""
        return iter(self._homes)

    def __len__(self) -> int:
        """How many there are."""
        return len(self._homes)
