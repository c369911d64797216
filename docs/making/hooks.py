"""``docs/reference/hooks.md``: the extension points, from their specifications."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from making.docstrings import as_markdown, signature
from pytest_metricbench import hookspecs

PREFIX = "pytest_metricbench_"

INTRODUCTION = """\
# Hooks

A `conftest.py` beside the experiment, or an installed plugin, implements these to add kinds of its own.
[Extending](../extending.md) shows a runner and a coverage system whole; the classes are in the [API](api.md).
"""


def hooks() -> dict[str, Callable[..., Any]]:
    """Name -> specification, in the order in which they are declared."""
    found = {name: value for name, value in vars(hookspecs).items() if name.startswith(PREFIX) and callable(value)}
    return dict(sorted(found.items(), key=lambda item: inspect.getsourcelines(item[1])[1]))


def page() -> str:
    """The page."""
    return "\n".join([INTRODUCTION, *_sections()])


def _sections() -> Iterator[str]:
    for name, hook in hooks().items():
        yield f"## `{name}`\n\n```text\n{name}{signature(hook)}\n```\n\n{as_markdown(hook.__doc__ or '')}"
