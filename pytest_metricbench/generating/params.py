"""``from: params``: mutants of the baseline's params: a value is missing, zero, one off, at a boundary, or flipped."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias

from pydantic import Field

from pytest_metricbench.contracts import Json
from pytest_metricbench.digests import canonical_json, digest_value
from pytest_metricbench.generating import values
from pytest_metricbench.generating.base import Context, Generator, Proposal
from pytest_metricbench.generating.generation import FILES
from pytest_metricbench.generating.prose import in_words
from pytest_metricbench.generating.tools import TOOL_FAULTS
from pytest_metricbench.sources import SourceError

ParamsOperator: TypeAlias = Literal["remove-param", "zero-param", "off-by-one", "boundary", "flip-boolean"]
_OWN: Final = frozenset({FILES, TOOL_FAULTS})
"""Keys that other generators fill."""


class ParamsGenerator(Generator):
    """Damages the settings of an agent that stand in the baseline's params, one value at a time."""

    origin: ClassVar[str] = "params"

    only: list[str] | None = Field(
        None, min_length=1, description="The params to damage, by their keys: model.temperature. Default: all."
    )
    ignore: list[str] = Field([], description="Params to leave as they are, with what is below them.")
    boundaries: dict[str, list[Any]] = Field(
        {}, description="Values to try for a param: {temperature: [0, 2]}. Shares are tried with 0 and 1 anyway."
    )
    operators: list[ParamsOperator] | None = Field(None, min_length=1, description="The operators; default: all.")

    def bound(self, context: Context) -> "ParamsGenerator":
        """See that there are params, and that those that are named exist.

        Raises:
            SourceError: there are none, or one does not.
        """
        if not context.baseline:
            raise SourceError(
                "from: params damages the baseline's params, and it has none", "write baseline: {params: ...}"
            )
        for name in (*(self.only or ()), *self.ignore, *self.boundaries):
            values.found(context.baseline, name)
        return self

    def lock_state(self, context: Context) -> Mapping[str, Json]:
        """The baseline's params."""
        return {"baseline": digest_value(dict(context.baseline))}

    def generate(self, context: Context) -> Iterator[Proposal]:
        """Every change of every value, value by value."""
        for path in self._paths(context.baseline):
            old, name = values.value_at(context.baseline, path), values.shown(path)
            if self._wants("remove-param"):
                changed = values.removed(context.baseline, path)
                yield Proposal(
                    "remove-param", name, f"the param {name} is missing (in place of {_shown(old)})", params=changed
                )
            for operator, new in self._others(name, old):
                said = f"the param {name} is {_shown(new)} in place of {_shown(old)}"
                target = name if operator in ("flip-boolean", "zero-param") else f"{name} {_in_id(new)}"
                yield Proposal(operator, target, said, params=values.replaced(context.baseline, path, new))

    def _paths(self, baseline: Mapping[str, Json]) -> Iterator[values.Path]:
        if self.only is not None:
            yield from (values.found(baseline, name) for name in dict.fromkeys(self.only))
            return
        left = [values.found(baseline, name) for name in self.ignore]
        for path in values.paths_of(baseline):
            in_list = any(isinstance(part, int) for part in path)
            if not in_list and path[0] not in _OWN and not any(path[: len(other)] == other for other in left):
                yield path

    def _others(self, name: str, old: Json) -> Iterator[tuple[str, Json]]:
        """Operator and value of everything that could stand in place of a value."""
        zero = _zero_of(old)
        found: list[tuple[str, Sequence[Json]]] = [
            ("zero-param", [] if zero is None else [zero]),
            ("off-by-one", [old - 1, old + 1] if type(old) is int else []),
            ("boundary", self.boundaries.get(name, _limits_of(old))),
            ("flip-boolean", [not old] if isinstance(old, bool) else []),
        ]
        for operator, candidates in found:
            for new in candidates:
                if self._wants(operator) and canonical_json(new) != canonical_json(old):
                    yield operator, new

    def _wants(self, operator: str) -> bool:
        return self.operators is None or operator in self.operators


def _zero_of(value: Json) -> Json | None:
    """The zero of a number, the empty text, list or mapping; None of anything else."""
    if isinstance(value, bool) or value is None:
        return None
    empty: Json = type(value)()
    return empty


def _limits_of(value: Json) -> list[Json]:
    """The ends of the range that a value seems to come from: a fraction between 0 and 1 is a share."""
    return [0.0, 1.0] if isinstance(value, float) and 0 <= value <= 1 else []


def _shown(value: Json) -> str:
    return in_words(canonical_json(value), 40)


def _in_id(value: Json) -> str:
    """A value as words of an id, in which a minus must not get lost."""
    return value if isinstance(value, str) else canonical_json(value).replace("-", "minus ")
