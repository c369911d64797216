"""Values inside params, named by a path of keys and positions: ``model.temperature``, ``messages.0.content``."""

import copy
from collections.abc import Iterator, Mapping
from typing import Any, Final, TypeAlias

from pytest_metricbench.contracts import Json
from pytest_metricbench.sources import SourceError

Path: TypeAlias = tuple[str | int, ...]
_MOST_SHOWN: Final = 12


def shown(path: Path) -> str:
    """A path as it is written."""
    return ".".join(str(part) for part in path)


def paths_of(params: Json, above: Path = ()) -> Iterator[Path]:
    """The path of every value, a mapping or list before what is in it."""
    if above:
        yield above
    if isinstance(params, Mapping):
        for key, value in params.items():
            yield from paths_of(value, (*above, key))
    elif isinstance(params, list):
        for number, value in enumerate(params):
            yield from paths_of(value, (*above, number))


def found(params: Mapping[str, Json], written: str) -> Path:
    """The path of a value as it is written.

    Raises:
        SourceError: there is no such value in the baseline's params.
    """
    known = {shown(path): path for path in paths_of(params)}
    if written in known:
        return known[written]
    names = [name for name, path in known.items() if not any(isinstance(part, int) for part in path)]
    more = [*names[:_MOST_SHOWN], f"{len(names) - _MOST_SHOWN} more"] if len(names) > _MOST_SHOWN else names
    remedy = f"there are {', '.join(more)}" if names else "the baseline has no params"
    raise SourceError(f"the baseline's params have no {written!r}", remedy)


def value_at(params: Json, path: Path) -> Json:
    """The value at a path that exists."""
    for part in path:
        params = params[part]
    return params


def replaced(params: Mapping[str, Json], path: Path, value: Json) -> dict[str, Any]:
    """A copy of params with another value at a path that exists."""
    changed: Any = copy.deepcopy(dict(params))
    value_at(changed, path[:-1])[path[-1]] = copy.deepcopy(value)
    return dict(changed)


def removed(params: Mapping[str, Json], path: Path) -> dict[str, Any]:
    """A copy of params without the value at a path that exists."""
    changed: Any = copy.deepcopy(dict(params))
    del value_at(changed, path[:-1])[path[-1]]
    return dict(changed)
