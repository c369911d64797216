"""Checking a part of a document against its model, and saying in the words of the file what is wrong with it."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from pytest_metricbench.definition.documents import Place
from pytest_metricbench.definition.fields import annotation_at, known_keys
from pytest_metricbench.definition.problems import KeyPath, ProblemList
from pytest_metricbench.definition.wording import described, in_words
from pytest_metricbench.digests import canonical_json
from pytest_metricbench.messages import joined
from pytest_metricbench.origins import whose

Model = TypeVar("Model", bound=BaseModel)


@dataclass(frozen=True, slots=True)
class Checker:
    """Checks parts of documents and notes what is wrong with them."""

    problems: ProblemList
    context: Mapping[str, Any]
    """What the fields of runners and coverage systems are checked against: folder, cached_only, targets."""

    def check(self, model: type[Model], place: Place) -> Model | None:
        """A mapping of the experiment file as its model; None, with problems, where it is not right."""
        if not isinstance(place.value, dict):
            self.problems.add(place.problem(f"is {described(place.value)}", "a mapping is expected"))
            return None
        try:
            return model.model_validate(place.value)
        except ValidationError as error:
            self._note(model, place, error)
        return None

    def check_plugin(self, model: type[Model], place: Place, without: str | None = None) -> Model | None:
        """The mapping of a runner or a coverage system as its class, the key ``without`` left to others.

        Their authors may not have asked for strict types. Validation of JSON is strict without refusing a list where
        a tuple, or a text where a path, is wanted.
        """
        value = {key: entry for key, entry in place.value.items() if key != without}
        try:
            return model.model_validate_json(canonical_json(value), strict=True, context=dict(self.context))
        except ValidationError as error:
            self._note(model, place, error)
        except Exception as error:  # code of a third party
            who = f"{model.__module__}.{model.__qualname__}{whose(model)}"
            said = f"{who} cannot check this: {type(error).__name__}: {error}"
            self.problems.add(place.problem(said))
        return None

    def _note(self, model: type[BaseModel], place: Place, error: ValidationError) -> None:
        located = [_Located.of(details, place) for details in error.errors(include_url=False)]
        for entry in _without_wrong_members(located):
            if entry.keys not in place.document.refused:
                self._tell(model, place, entry)

    def _tell(self, model: type[BaseModel], place: Place, entry: "_Located") -> None:
        details, kind = entry.details, entry.details["type"]
        there = Place(place.document, entry.keys, details["input"])
        if kind == "missing":
            name = str(details["loc"][-1])
            wanted = annotation_at(model, details["loc"])
            self.problems.add(there.missing(name, f"the key {name} is needed{_as_mapping(wanted)}"))
        elif kind == "extra_forbidden":
            name, known = str(details["loc"][-1]), known_keys(model, details["loc"][:-1])
            hint = self.problems.hint(name, known)
            listed = f"the keys here are {', '.join(known)}" if known else ""
            self.problems.add(there.problem("is an unknown key", joined(hint, listed), at_key=True))
        elif entry.alternatives:
            expected = " or ".join(dict.fromkeys(entry.alternatives))
            self.problems.add(there.problem(f"is {described(details['input'])}", f"{expected} is expected"))
        else:
            words = in_words(details, annotation_at(model, details["loc"]), there.document.written(there.keys))
            remedy = joined(words.remedy, self.problems.hint(str(details["input"]), words.known))
            at_key = bool(details["loc"]) and details["loc"][-1] == "[key]"
            self.problems.add(there.problem(words.message, remedy, at_key=at_key))


def _as_mapping(annotation: object) -> str:
    is_model = isinstance(annotation, type) and issubclass(annotation, BaseModel)
    return f" (a mapping of {', '.join(known_keys(annotation, ()))})" if is_model else ""


@dataclass(frozen=True, slots=True)
class _Located:
    """One error of pydantic and the value of the document that it is about."""

    details: ErrorDetails
    keys: KeyPath
    union: tuple[KeyPath, str] | None
    """The value that may be of several kinds, and the kind this error is about."""
    at_union: bool
    """Nothing is known but that the value is not of that kind."""
    alternatives: tuple[str, ...] = ()

    @classmethod
    def of(cls, details: ErrorDetails, place: Place) -> "_Located":
        keys, value, union, last = list(place.keys), place.value, None, False
        location = details["loc"][:-1] if details["type"] == "missing" else details["loc"]
        for part in location:
            last = False
            if isinstance(value, dict) and part in value:
                value = value[str(part)]
            elif isinstance(value, list) and isinstance(part, int) and part < len(value):
                value = value[part]
            else:
                union, last = union or (tuple(keys), str(part)), True
                continue
            keys.append(part)
        return cls(details, tuple(keys), union, last and details["type"].endswith("_type"))


def _without_wrong_members(located: list[_Located]) -> list[_Located]:
    """Of a value that may be of several kinds, keep what is wrong with the kind it is; else say which there are."""
    kept: list[_Located] = []
    unions: dict[KeyPath, list[_Located]] = {}
    for entry in located:
        if entry.union is None:
            kept.append(entry)
        else:
            unions.setdefault(entry.union[0], []).append(entry)
    for entries in unions.values():
        wrong_members = {entry.union for entry in entries if entry.at_union}
        rest = [entry for entry in entries if entry.union not in wrong_members]
        if rest or len(entries) == 1:
            kept.extend(rest or entries)
        else:
            wanted = tuple(in_words(entry.details, None, None).expected for entry in entries)
            first = entries[0]
            kept.append(_Located(first.details, first.keys, None, False, wanted))
    return kept
