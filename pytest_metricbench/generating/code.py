"""``from: cosmic-ray``: mutants of Python source, made with cosmic-ray's operators, for the runner ``suite``.

What stands in the lock is a patch of each mutant. It is applied strictly whenever the experiment is read, so what was
reviewed is what runs, and neither reading nor running it needs cosmic-ray.
"""

import keyword
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import CodeType
from typing import ClassVar, Final

from pydantic import Field

from pytest_metricbench.generating.base import Context, Dropped, Generator, Proposal
from pytest_metricbench.generating.code_changes import CodeChange, changes_of, family, operators_named
from pytest_metricbench.generating.diffs import unified_diff
from pytest_metricbench.generating.prose import in_words
from pytest_metricbench.generating.texts import plain
from pytest_metricbench.messages import did_you_mean, joined
from pytest_metricbench.sources import SourceError
from pytest_metricbench.suite.bytecode import compiled, same_bytecode
from pytest_metricbench.suite.mutations import MutationError, decoded, encoded, read_source
from pytest_metricbench.suite.patches import PatchError, parse_patch
from pytest_metricbench.suite.places import PlaceError, compiled_twin
from pytest_metricbench.suite.project import Project

BROKEN: Final = "generated mutants that do not compile: dropped"
IMPOSSIBLE: Final = "generated mutants that cosmic-ray cannot make: dropped"
INEXPRESSIBLE: Final = "generated mutants that no patch can express: dropped"
MARKED: Final = "generated mutants on lines marked 'pragma: no mutate': dropped"

_MARK: Final = "pragma: no mutate"
_ROW: Final = 70
"""Characters of the longest line that a description shows whole."""
_PART: Final = 40
"""Characters of a part of a line that it shows."""


class CosmicRayGenerator(Generator):
    """Small faults in Python source: another operator, number or keyword, a condition turned round, a loop left out."""

    origin: ClassVar[str] = "cosmic-ray"

    modules: list[str] | None = Field(
        None,
        min_length=1,
        description="Modules or packages of the runner's source (shop.prices), or files of it. Default: all of it.",
    )
    operators: list[str] | None = Field(
        None,
        min_length=1,
        description="cosmic-ray's operators: names, families (ReplaceBinaryOperator), patterns with *. Default: all.",
    )

    def bound(self, context: Context) -> "CosmicRayGenerator":
        """See that there is source to change.

        Raises:
            SourceError: the runner is another one.
        """
        _project(context)
        return self

    def lock_files(self, context: Context) -> Mapping[str, Path]:
        """The files of the modules.

        Raises:
            SourceError: one does not exist, or is not what Python imports.
        """
        files = _sources(_project(context))
        if self.modules is None:
            return {name: path for name, path in files.items() if compiled_twin(path) is None}
        chosen: dict[str, Path] = {}
        for written in self.modules:
            chosen.update(_chosen(written, files))
        return dict(sorted(chosen.items()))

    def generate(self, context: Context) -> Iterator[Proposal | Dropped]:
        """Every change of every module, file by file.

        Raises:
            SourceError: cosmic-ray is missing or has no such operator; a module cannot be read.
        """
        operators = operators_named(self.operators)
        for name, path in self.lock_files(context).items():
            try:
                source = _Source.read(name, path)
            except MutationError as error:
                raise SourceError(error.message, error.remedy) from None
            for change in changes_of(source.text, operators):
                yield source.proposal(change)


def _project(context: Context) -> Project:
    project = getattr(context.runner, "project", None)
    if context.runner.kind != "suite" or not isinstance(project, Project):
        raise SourceError(
            f"from: cosmic-ray makes mutants of the source of the runner suite; this experiment's is "
            f"{context.runner.kind}",
            "write runner: {kind: suite, source: [...], tests: ...}",
        )
    return project


def _sources(project: Project) -> dict[str, Path]:
    try:
        return {name: path for name, path in project.source_files.items() if name.endswith(".py")}
    except PlaceError as error:
        raise SourceError(str(error)) from None


def _module_of(name: str) -> str:
    """The dotted name of a file of the source."""
    return name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")


def _chosen(written: str, files: Mapping[str, Path]) -> dict[str, Path]:
    """The files that an entry of ``modules`` means: a file, a module, or a package with all that is in it."""
    text = written.removeprefix("./").rstrip("/")
    found = {name: path for name, path in files.items() if text == name or f"/{text}".endswith(f"/{name}")}
    if not found:
        dotted = _module_of(text)
        found = {name: path for name, path in files.items() if f"{_module_of(name)}.".startswith(f"{dotted}.")}
    if not found:
        modules = [_module_of(name) for name in files]
        listed = f"its modules are {', '.join(modules[:5])}{' ...' if len(modules) > 5 else ''}"
        raise SourceError(joined(f"the source has no module {written!r}", did_you_mean(written, modules)), listed)
    for name, path in found.items():
        twin = compiled_twin(path)
        if twin is not None:
            message = f"{name} is not what Python imports: the compiled {twin.name} beside it is"
            raise SourceError(message, "a mutant needs a module that is imported from its source")
    return found


@dataclass(frozen=True)
class _Source:
    """A module, and what becomes of the changes of it."""

    name: str
    text: str
    """Its line ends as they are."""
    encoding: str
    code: CodeType

    @classmethod
    def read(cls, name: str, path: Path) -> "_Source":
        """The module in a file.

        Raises:
            MutationError: it cannot be read, or is no Python source.
        """
        content = read_source(path)
        text, encoding = decoded(content, name)
        code = compiled(content, name)
        if code is None:
            raise MutationError(f"{name} does not compile", "leave it out of modules, or repair it")
        return cls(name, text, encoding, code)

    def proposal(self, change: CodeChange) -> Proposal | Dropped:
        """The mutant of a change, or why there is none."""
        if _MARK in change.row:
            return Dropped(MARKED)
        if change.text is None:
            return Dropped(IMPOSSIBLE)
        wanted = self._compiled(change.text)
        if wanted is None:
            return Dropped(BROKEN)
        if same_bytecode(wanted, self.code):
            return Dropped()
        diff = unified_diff(self.name, plain(self.text), plain(change.text))
        if not self._makes(diff, change.text, wanted):
            return Dropped(INEXPRESSIBLE)
        words = _target(change) or self.name.removesuffix(".py")
        return Proposal(_operator(change), words, _description(change, self.name), listed={"patch": diff})

    def _compiled(self, text: str) -> CodeType | None:
        try:
            return compiled(encoded(text, self.encoding, self.name), self.name)
        except MutationError:
            return None

    def _makes(self, diff: str, text: str, wanted: CodeType) -> bool:
        """Whether the patch, applied as the runner does it, gives what was wanted; line ends apart."""
        try:
            patched = parse_patch(diff)[0].apply(self.text, self.name)
        except PatchError:
            return False
        found = wanted if patched == text else self._compiled(patched)
        return found is not None and same_bytecode(found, wanted)


def _operator(change: CodeChange) -> str:
    """The family of an operator, as a part of an id."""
    return re.sub(r"[^A-Za-z0-9]+", "-", family(change.operator)).strip("-") or "operator"


def _target(change: CodeChange) -> str:
    """What is changed, in words that do not say at which line."""
    swap = change.operator.split("_")[1:]
    if swap:
        words = " to ".join(swap)
    elif change.before[:1].isdigit() or change.before[:1] == ".":
        words = f"{change.before} to {change.after.replace('-', 'minus ')}"
    else:
        words = "" if keyword.iskeyword(change.before) else change.before
    return f"{change.function} {words}".strip()


def _description(change: CodeChange, name: str) -> str:
    where = f"{name}:{change.line}{f', in {change.function}' if change.function else ''}"
    if not change.after:
        return f"{where}: {in_words(change.before)!r} is gone."
    if max(len(change.row), len(change.new_row)) <= _ROW:
        return f"{where}: {change.row!r} became {change.new_row!r}."
    return f"{where}: {in_words(change.before, _PART)!r} became {in_words(change.after, _PART)!r}."
