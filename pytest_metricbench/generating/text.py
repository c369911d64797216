"""``from: text``: mutants of the prompts and policies that stand in text files, or in the baseline's params."""

from collections.abc import Iterator, Mapping
from itertools import zip_longest
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from pytest_metricbench.contracts import Json
from pytest_metricbench.digests import digest_value
from pytest_metricbench.generating.base import Context, Generator, Proposal, TextChange, TextOperator
from pytest_metricbench.generating.texts import located, plain, read_text
from pytest_metricbench.generating.values import found, replaced, value_at
from pytest_metricbench.sources import SourceError


class TextGenerator(Generator):
    """Damages prompts and policies: a sentence or a rule is dropped, a modal weakened or inverted, values swapped."""

    origin: ClassVar[str] = "text"

    files: list[str] = Field([], description="Text files of the experiment's folder; they become inputs of the case.")
    params: list[str] = Field(
        [], description="Texts in the baseline's params, by their keys: system_prompt, messages.0.content."
    )
    operators: list[str] = Field([], description="The operators to use; default: all that are known.")

    def bound(self, context: Context) -> "TextGenerator":
        """See that there is something to damage, and that the operators exist.

        Raises:
            SourceError: there is not, or they do not.
        """
        if not self.files and not self.params:
            raise SourceError("from: text names no text", "write files: [policy.md], or params: [system_prompt]")
        for name in self.operators:
            if name not in context.operators:
                raise SourceError(f"there is no operator {name!r}", f"they are {', '.join(sorted(context.operators))}")
        for name in self.files:
            located(context.folder, name)
        for name in self.params:
            self._text_in_params(context, name)
        return self

    def input_files(self, context: Context) -> Mapping[str, Path]:
        """The files."""
        return {name: located(context.folder, name) for name in self.files}

    def lock_state(self, context: Context) -> Mapping[str, Json]:
        """The operators, where they are not named; the baseline's params, where they hold a text."""
        state: dict[str, Json] = {}
        if not self.operators:
            state["operators"] = list(context.operators)
        if self.params:
            state["baseline"] = digest_value(dict(context.baseline))
        return state

    def generate(self, context: Context) -> Iterator[Proposal]:
        """Every change of every operator, text by text.

        Raises:
            SourceError: a text cannot be read.
        """
        chosen = [context.operators[name] for name in self.operators or context.operators]
        for name in dict.fromkeys(self.files):
            old = plain(read_text(context.folder, name))
            for operator in chosen:
                for change in operator.find(old):
                    yield _proposal(operator, change, name, old, files={name: change.text})
        for name in dict.fromkeys(self.params):
            old = self._text_in_params(context, name)
            path = found(context.baseline, name)
            for operator in chosen:
                for change in operator.find(plain(old)):
                    changed = replaced(context.baseline, path, change.text)
                    yield _proposal(operator, change, f"params {name}", plain(old), params=changed)

    def _text_in_params(self, context: Context, name: str) -> str:
        text = value_at(context.baseline, found(context.baseline, name))
        if not isinstance(text, str):
            raise SourceError(f"the baseline's param {name!r} is no text", "name a text")
        return text


def _proposal(
    operator: TextOperator,
    change: TextChange,
    name: str,
    old: str,
    files: Mapping[str, str] | None = None,
    params: Mapping[str, Json] | None = None,
) -> Proposal:
    line = _first_difference(old, change.text)
    where = f"{name}, line {line}" if "\n" in old.rstrip("\n") else name
    return Proposal(
        operator=operator.name,
        target=change.target,
        description=f"{where}: {change.description}",
        files=files or {},
        params=params,
    )


def _first_difference(old: str, new: str) -> int:
    """The line, from 1, in which two texts differ first."""
    lines = zip_longest(old.split("\n"), new.split("\n"))
    return next((number for number, (one, other) in enumerate(lines, start=1) if one != other), 1)
