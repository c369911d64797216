"""``docs/reference/api.md``: the names that ``pytest_metricbench`` exports, from their docstrings."""

import inspect
from collections.abc import Iterator
from enum import Enum
from typing import Annotated, Any, get_args, get_origin

from pydantic import BaseModel

import pytest_metricbench
from making.docstrings import as_markdown, attributes, plain, signature

INTRODUCTION = """\
# Python API

Everything stands in `pytest_metricbench` and is imported on first use. Other modules may change with any version.
"""

CHAPTERS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("The stages", ("load_experiment", "open_store", "Store", "measure_coverage", "analyze", "Experiment", "Summary")),
    ("Runners", ("Runner", "Role", "Argv", "Target", "AttemptRequest", "Outcome", "AttemptError", "AttemptRecord")),
    ("Coverage systems", ("CoverageSystem", "CoverageRequest", "Score", "Goals", "CoverageRecord")),
    ("Sources of tasks and mutants", ("Source", "CaseSource")),
    ("Generators of mutants", ("Generator", "Proposal", "Dropped", "TextOperator", "TextChange")),
    ("In an agent", ("text_of", "with_faults")),
    ("Errors", ("DefinitionError", "StoreError", "SourceError", "CoverageError")),
)
"""Every exported name, once."""


def page() -> str:
    """The page."""
    parts = [INTRODUCTION]
    for chapter, names in CHAPTERS:
        parts.append(f"## {chapter}\n")
        parts += [text for name in names for text in _entry(name)]
    return "\n".join(parts)


def _entry(name: str) -> Iterator[str]:
    found = getattr(pytest_metricbench, name)
    yield f"### `{name}`\n"
    if get_origin(found) is Annotated:
        yield f"A type of fields: {plain(get_args(found)[0].__doc__ or '')}\n"
    elif inspect.isclass(found):
        yield from _class(found)
    else:
        yield f"```text\n{name}{signature(found)}\n```\n"
        yield as_markdown(found.__doc__ or "")


def _class(cls: type) -> Iterator[str]:
    bases = [base.__name__ for base in cls.__bases__ if base not in (object, Enum) and base.__name__ != "ABC"]
    yield f"```text\nclass {cls.__name__}{'(' + ', '.join(bases) + ')' if bases else ''}\n```\n"
    yield as_markdown(vars(cls).get("__doc__") or "")
    if rows := list(_rows(cls)):
        yield "\n".join(["| name | type | meaning |", "|---|---|---|", *rows]) + "\n"
    for name, method in _methods(cls):
        yield f"#### `{cls.__name__}.{name}`\n"
        if not isinstance(method, property):
            yield f"```text\n{name}{signature(method)}\n```\n"
        yield as_markdown(inspect.getdoc(method) or "")


def _rows(cls: type) -> Iterator[str]:
    """A row of the table for each field, class variable and member that the class declares."""
    fields = cls.model_fields if issubclass(cls, BaseModel) else {}
    for name, kind, text in attributes(cls):
        if not name.startswith("_") and name != "model_config":
            meaning = text or (fields[name].description or "" if name in fields else "")
            yield f"| `{name}` | `{_cell(kind)}` | {_cell(plain(meaning))} |"


def _methods(cls: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties of the class itself, without pydantic's."""
    for name, value in vars(cls).items():
        inner = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        function = inner.fget if isinstance(inner, property) else inner
        is_method = inspect.isfunction(function) and function.__module__.startswith("pytest_metricbench")
        if is_method and not name.startswith(("_", "model_")):
            yield name, inner


def _cell(text: str) -> str:
    return text.replace("|", "\\|")
