"""A mutant put in the place of functions that a process has imported unmutated: no import, no collection for each.

It is done to the code of function objects, which all who have a function share. Where anything might still rest on the
baseline's code, the mutant is refused, and gets a process that imports it:

- it differs outside functions: defaults, decorators, classes and constants were evaluated on import;
- a changed function ran while the tests were collected, or may have: what it did then is not undone;
- the code is held by something else than functions: a generator that was made and not run, a list, a copy.

What read a function's code on import and kept something else of it is not found: a compiler that was given the types.
"""

import gc
import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.util import decode_source
from types import AsyncGeneratorType, CodeType, CoroutineType, FunctionType, GeneratorType
from typing import Any, Final

from pytest_metricbench.suite.alike import Swap, UnfitError, swaps
from pytest_metricbench.suite.bytecode import typed
from pytest_metricbench.suite.overlay import Overlay

_SUSPENDED: Final = {GeneratorType: "gi_code", CoroutineType: "cr_code", AsyncGeneratorType: "ag_code"}


@dataclass(frozen=True, slots=True)
class Plan:
    """What a fork has to do to be the mutant."""

    sources: Mapping[str, bytes]
    """Real path -> mutated source."""
    codes: tuple[tuple[FunctionType, CodeType], ...]
    """Functions, and the code that each is to have."""

    def carry_out(self, overlay: Overlay) -> str | None:
        """Be the mutant from now on; gives what is wrong where a function does not have its new code."""
        for function, code in self.codes:
            function.__code__ = code
        for function, code in self.codes:
            if function.__code__ is not code:
                return f"{function.__qualname__} does not have the mutant's code"
        for path, source in self.sources.items():
            overlay.exchange(path, source, [code for _, code in self.codes])
        return None


class Imported:
    """What a process has imported of the source: its code, and all that holds it. It must not change any more."""

    def __init__(self, overlay: Overlay, seen: Mapping[int, CodeType]) -> None:
        """Look through all objects there are.

        Args:
            overlay: with the source, all of which it has compiled.
            seen: codes that have run, by identity.
        """
        self._overlay: Final = overlay
        self._ran: Final = frozenset(seen)
        self._known: Final[dict[CodeType, list[CodeType]]] = {}
        """Code -> the equal ones: more than one where a file was imported under two names."""
        self._at_top: Final[set[int]] = set()
        """Code that a module or a class makes functions of, by identity."""
        self._functions: Final[dict[int, list[FunctionType]]] = {}
        self._held: Final[set[int]] = set()
        """Code that is held by something else than functions and other code."""
        self._strange: Final[set[str]] = set()
        """Files of which there is code that nobody compiled here."""
        self._constants: Final[dict[object, Any]] = {}
        for root in overlay.roots():
            self._note_constants(root)
            for code, is_at_top in _codes_in(root, is_at_top=True):
                self._known.setdefault(code, []).append(code)
                if is_at_top:
                    self._at_top.add(id(code))
                self._note_constants(code)
        self._look(skipped={id(seen), id(self._known), *map(id, self._known.values())})

    def _note_constants(self, code: CodeType) -> None:
        for constant in code.co_consts:
            if not isinstance(constant, CodeType):
                self._constants.setdefault(typed(constant), constant)

    def _look(self, skipped: set[int]) -> None:
        known = {id(code): code for codes in self._known.values() for code in codes}
        files = {code.co_filename for code in known.values()}
        skipped |= {id(known), *map(id, self._overlay.holders())}
        skipped |= {id(code.co_consts) for code in (*self._overlay.roots(), *known.values())}
        gc.unfreeze()  # whoever froze them: what is frozen is not listed
        others = []
        for entry in gc.get_objects():
            kind = type(entry)
            code = entry.__code__ if kind is FunctionType else None
            if kind in _SUSPENDED:
                code = getattr(entry, _SUSPENDED[kind])
                self._held.add(id(code))
            if code is None:
                if id(entry) not in skipped:
                    others.append(entry)
            elif id(code) in known:
                if kind is FunctionType:
                    self._functions.setdefault(id(code), []).append(entry)
            elif code.co_filename in files:
                self._strange.add(code.co_filename)
        self._held.update(
            id(entry) for entry in gc.get_referents(*others) if type(entry) is CodeType and id(entry) in known
        )

    def plan(self, sources: Mapping[str, bytes]) -> Plan:
        """How a fork becomes a mutant.

        Args:
            sources: real path of a file -> its mutated source.

        Raises:
            UnfitError: it cannot.
        """
        codes: list[tuple[FunctionType, CodeType]] = []
        for path, source in sources.items():
            before = self._overlay.source_of(path)
            if before is None:
                raise UnfitError(f"{path} is none of the files that were put in place")
            roots = self._overlay.roots_of(path)
            if not roots:  # it is imported in the fork, mutated
                continue
            if any(root.co_filename in self._strange for root in roots):
                raise UnfitError(f"there are functions of {path} that came past Python's loader, or were changed")
            for swap in swaps(_text(before), _text(source), roots[0]):
                codes += self._exchanged(swap, len(roots))
        return Plan(sources, tuple(codes))

    def _exchanged(self, swap: Swap, count: int) -> Iterator[tuple[FunctionType, CodeType]]:
        """The functions that have the old code, in all of so many modules, each with its new one."""
        found = self._known.get(swap.old, [])
        if len(found) != count:
            raise UnfitError(f"{swap.old.co_qualname} was compiled in another way")
        new = self._with_shared_constants(swap.new)
        for code in found:
            name, functions = code.co_qualname, self._functions.get(id(code), [])
            if swap.does_other and id(code) in self._ran:
                raise UnfitError(f"{name} ran while the tests were collected")
            if id(code) in self._held:
                raise UnfitError(f"the code of {name} is held by more than functions")
            if not functions and id(code) in self._at_top:
                raise UnfitError(f"what was {name} is no function any more")
            yield from ((function, new) for function in functions)

    def _with_shared_constants(self, code: CodeType) -> CodeType:
        """The code with the very constants of its module, where it has such: ``is`` may be asked of them."""
        shared = tuple(
            self._with_shared_constants(constant)
            if isinstance(constant, CodeType)
            else self._constants.get(typed(constant), constant)
            for constant in code.co_consts
        )
        return code if all(map(_is, shared, code.co_consts)) else code.replace(co_consts=shared)


def _text(source: bytes) -> str:
    """A source as Python reads it.

    Raises:
        UnfitError: it cannot.
    """
    try:
        return decode_source(source)
    except (SyntaxError, ValueError) as error:
        raise UnfitError(f"it cannot be read: {error}") from None


def _is(one: object, other: object) -> bool:
    return one is other


def _codes_in(code: CodeType, *, is_at_top: bool) -> Iterator[tuple[CodeType, bool]]:
    """All code that a module's code holds, and whether a module or class makes functions of it."""
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            is_function = bool(constant.co_flags & inspect.CO_OPTIMIZED)
            yield constant, is_at_top and is_function
            yield from _codes_in(constant, is_at_top=is_at_top and not is_function)
