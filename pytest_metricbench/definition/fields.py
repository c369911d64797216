"""What a model says about its fields: the keys a mapping may have, and the type and role of a field."""

import types
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo

from pytest_metricbench.bases import Role

_UNIONS = (Union, types.UnionType)


def known_keys(model: object, location: tuple[str | int, ...]) -> tuple[str, ...]:
    """The keys of the mapping at a location of a model, in their order; empty where that is not known."""
    found = annotation_at(model, location)
    if not (isinstance(found, type) and issubclass(found, BaseModel)):
        return ()
    return tuple(field.alias or name for name, field in found.model_fields.items())


def annotation_at(model: object, location: tuple[str | int, ...]) -> object:
    """The type at the location of an error of pydantic, names of union members included; None where unknown."""
    found = _plain(model)
    for part in location:
        found = _plain(_step(found, part))
    return found


def role_of(field: FieldInfo) -> Role:
    """The role of a runner's or a coverage system's field; one without a role shapes results."""
    for found in (*field.metadata, *_metadata(field.annotation)):
        if isinstance(found, Role):
            return found
    return Role.RESULT


def _metadata(annotation: object) -> list[object]:
    """What ``Annotated`` says anywhere inside a type, as in ``Annotated[int, Role.NEITHER] | None``."""
    own = list(getattr(annotation, "__metadata__", ()))
    return own + [entry for argument in get_args(annotation) for entry in _metadata(argument)]


def _plain(annotation: object) -> object:
    """A type without ``Annotated``, and without ``| None``."""
    while get_origin(annotation) is Annotated:
        annotation = get_args(annotation)[0]
    if get_origin(annotation) in _UNIONS:
        members = [member for member in get_args(annotation) if member is not type(None)]
        if len(members) == 1:
            return _plain(members[0])
    return annotation


def _step(annotation: object, part: str | int) -> object:
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        for name, field in annotation.model_fields.items():
            if part in (field.alias, name):
                return field.annotation
        return annotation if part == annotation.__name__ else None
    if origin in _UNIONS:
        return _member(arguments, part)
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return arguments[1] if isinstance(part, str) else None
    if isinstance(origin, type) and isinstance(part, int) and arguments:
        if origin is tuple and arguments[-1] is not Ellipsis:
            return arguments[part] if part < len(arguments) else None
        return arguments[0] if issubclass(origin, list | tuple | set | frozenset | AbstractSet) else None
    return None


def _member(members: tuple[Any, ...], part: str | int) -> object:
    """The member of a union that pydantic calls so, or the first one that has such a part."""
    for member in map(_plain, members):
        if part in (getattr(member, "__name__", None), str(member)) and get_origin(member) is None:
            return member
        if get_origin(member) is list and isinstance(part, str) and part.startswith("list["):
            return member
    for member in map(_plain, members):
        found = _step(member, part)
        if found is not None:
            return found
    return None
