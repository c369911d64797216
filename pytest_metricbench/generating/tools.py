"""``from: tools``: mutants of what an agent's tools are called, say about themselves, ask for and answer."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field

from pytest_metricbench.contracts import Json
from pytest_metricbench.digests import digest_value
from pytest_metricbench.generating import values
from pytest_metricbench.generating.base import Context, Generator, Proposal
from pytest_metricbench.generating.prose import in_words
from pytest_metricbench.generating.structured import Edit, Put, Remove, Rename, Structured, edited, read_structured
from pytest_metricbench.generating.texts import located, plain, read_text
from pytest_metricbench.generating.tool_lists import Tool, path_of, tools_in
from pytest_metricbench.sources import SourceError

TOOL_FAULTS: Final = "tool_faults"
"""The key of a mutant's params that says which tools answer wrongly: ``{tool: {"returns": "error"}}``."""

ToolOperator: TypeAlias = Literal[
    "remove-tool",
    "rename-tool",
    "blank-description",
    "swap-descriptions",
    "drop-required-parameter",
    "return-error",
    "return-stale",
    "return-empty",
    "delay-tool",
]
_FAULTS: Final[dict[str, str]] = {
    "return-error": "answers with an error",
    "return-stale": "answers the same question as it did the first time",
    "return-empty": "answers with nothing in it",
}


@dataclass(frozen=True, slots=True)
class _Listing:
    """Where a list of tools stands, and what it holds."""

    where: str
    """As descriptions name it."""
    tools: tuple[Tool, ...]
    file: Structured | None = None
    """The file in which it stands; None where it stands in the baseline's params, or nowhere."""


class ToolsGenerator(Generator):
    """Damages tools: one is missing, called otherwise, badly described, or answers with an error, nothing or late.

    The first five operators change the list of tools itself, in its file or in the baseline's params. The others
    leave it and say in the params what a tool does: ``tool_faults``.
    """

    origin: ClassVar[str] = "tools"

    file: str | None = Field(None, description="The JSON or YAML file that lists the tools; an input of the case.")
    at: str = Field("", description="Where in the file the list stands: agent.tools. Default: the whole, or its tools.")
    params: str | None = Field(None, description="The list of tools in the baseline's params, by its keys.")
    names: list[str] | None = Field(
        None, min_length=1, description="The names of tools that are listed nowhere: only what they answer is changed."
    )
    only: list[str] | None = Field(None, min_length=1, description="The tools to damage; default: all.")
    operators: list[ToolOperator] | None = Field(None, min_length=1, description="The operators to use; default: all.")
    delay: Annotated[float, Field(gt=0, le=86_400, allow_inf_nan=False)] | None = Field(
        None, description="Seconds by which delay-tool delays a tool; without it there are no such mutants."
    )

    def bound(self, context: Context) -> "ToolsGenerator":
        """See that there is one list of tools, and that it holds those that are named.

        Raises:
            SourceError: there is not, or it does not.
        """
        given = [key for key in ("file", "params", "names") if getattr(self, key) is not None]
        if len(given) != 1:
            said = f"names {' and '.join(given)}" if given else "names no list of tools"
            raise SourceError(f"from: tools {said}", "write one of file: tools.json, params: tools, names: [a, b]")
        if self.at and self.file is None:
            raise SourceError("at says where in a file the list of tools stands, and there is no file", "remove at")
        if self.delay is None and "delay-tool" in (self.operators or ()):
            raise SourceError(
                "delay-tool needs to know how long", "write delay: seconds; every call of the tool takes it"
            )
        known = [tool.name for tool in self._listing(context).tools]
        for name in self.only or ():
            if name not in known:
                raise SourceError(f"there is no tool {name!r}", f"they are {', '.join(known)}")
        return self

    def input_files(self, context: Context) -> Mapping[str, Path]:
        """The file, if there is one."""
        return {} if self.file is None else {self.file: located(context.folder, self.file)}

    def lock_state(self, context: Context) -> Mapping[str, Json]:
        """The baseline's params, to which faults are added."""
        return {"baseline": digest_value(dict(context.baseline))}

    def generate(self, context: Context) -> Iterator[Proposal]:
        """Every damage of every tool, operator by operator.

        Raises:
            SourceError: the list cannot be read.
        """
        listing = self._listing(context)
        chosen = [tool for tool in listing.tools if self.only is None or tool.name in self.only]
        if self.names is None:
            for operator, target, said, edits in _declarations(chosen, {tool.name for tool in listing.tools}):
                if self._wants(operator):
                    yield _changed(listing, context, operator, target, said, edits)
        for operator, said in _FAULTS.items():
            if self._wants(operator):
                for tool in chosen:
                    fault = {"returns": operator.removeprefix("return-")}
                    yield _faulty(context, operator, tool.name, f"the tool {tool.name} {said}", fault)
        if self.delay is not None and self._wants("delay-tool"):
            for tool in chosen:
                late = f"the tool {tool.name} answers {self.delay:g} s late"
                yield _faulty(context, "delay-tool", tool.name, late, {"delay": self.delay})

    def _wants(self, operator: str) -> bool:
        return self.operators is None or operator in self.operators

    def _listing(self, context: Context) -> _Listing:
        if self.file is not None:
            where = f"the file {self.file!r}"
            read = read_structured(self.file, plain(read_text(context.folder, self.file)))
            path = path_of(read.value, self.at, where)
            return _Listing(self.file, tuple(tools_in(read.value, path, where)), file=read)
        if self.params is not None:
            path = values.found(context.baseline, self.params)
            tools = tools_in(context.baseline, path, f"the baseline's param {self.params!r}")
            return _Listing(f"params {self.params}", tuple(tools))
        return _Listing("", tuple(tools_in(list(self.names or ()), (), "names")))


def _declarations(tools: Sequence[Tool], taken: set[str]) -> Iterator[tuple[str, str, str, list[Edit]]]:
    """Operator, target, description and edits of every change of the list itself."""
    for tool in tools:
        yield "remove-tool", tool.name, f"the tool {tool.name} is missing", [Remove(tool.path)]
    for tool in tools:
        new = _other_name(tool.name, taken)
        edit = Rename(tool.path, new) if tool.name_path is None else Put(tool.name_path, new)
        yield "rename-tool", tool.name, f"the tool {tool.name} is called {new}", [edit]
    for tool in tools:
        if tool.description:
            said = f"the tool {tool.name} has an empty description in place of {in_words(tool.description)!r}"
            yield "blank-description", tool.name, said, [Put(tool.description_path, "")]
    described = [tool for tool in tools if tool.description]
    for one, other in pairwise(described):
        edits = [Put(one.description_path, str(other.description)), Put(other.description_path, str(one.description))]
        said = f"the descriptions of the tools {one.name} and {other.name} changed places"
        yield "swap-descriptions", f"{one.name} {other.name}", said, list(edits)
    for tool in tools:
        for parameter, number in tool.required:
            said = f"the tool {tool.name} does not know its required parameter {parameter}"
            yield "drop-required-parameter", f"{tool.name} {parameter}", said, _without(tool, parameter, number)


def _without(tool: Tool, parameter: str, number: int) -> list[Edit]:
    return [Remove((*tool.schema_path, "properties", parameter)), Remove((*tool.schema_path, "required", number))]


def _other_name(name: str, taken: set[str]) -> str:
    number = 2
    while f"{name}_v{number}" in taken:
        number += 1
    return f"{name}_v{number}"


def _changed(
    listing: _Listing, context: Context, operator: str, target: str, said: str, edits: Sequence[Edit]
) -> Proposal:
    files: dict[str, str] = {}
    params: dict[str, Any] | None = None
    if listing.file is not None:
        files[listing.file.name] = listing.file.edited(edits)
    else:
        params = dict(edited(dict(context.baseline), edits))
    return Proposal(operator, target, f"{listing.where}: {said}", files=files, params=params)


def _faulty(context: Context, operator: str, name: str, said: str, fault: Mapping[str, Json]) -> Proposal:
    there = context.baseline.get(TOOL_FAULTS, {})
    if not isinstance(there, Mapping):
        raise SourceError(
            f"the baseline's params have a key {TOOL_FAULTS!r} that is no mapping",
            "call it otherwise: generated mutants say there which tools answer wrongly",
        )
    return Proposal(operator, name, said, params={**context.baseline, TOOL_FAULTS: {**there, name: dict(fault)}})
