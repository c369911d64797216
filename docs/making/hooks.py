"""``docs/reference/hooks.md``: the extension points, from their specifications."""

import inspect
from collections.abc import Callable, Iterator
from typing import Any

from making.docstrings import as_markdown, signature
from pytest_metricbench import hookspecs

PREFIX = "pytest_metricbench_"

INTRODUCTION = """\
# Hooks

{text}

[Extending](../extending.md) shows a runner and a coverage system whole; the classes are in the [API](api.md).
"""


def hooks() -> dict[str, Callable[..., Any]]:
    """Name -> specification, in the order in which they are declared."""
    found = {name: value for name, value in vars(hookspecs).items() if name.startswith(PREFIX) and callable(value)}
    return dict(sorted(found.items(), key=lambda item: inspect.getsourcelines(item[1])[1]))


def page() -> str:
    """The page."""
    first, *rest = (hookspecs.__doc__ or "").partition(":")[2].strip().splitlines()
    text = as_markdown("\n".join([first[0].upper() + first[1:], *rest])).strip()
    return "\n".join([INTRODUCTION.format(text=text), *_sections()])


def _sections() -> Iterator[str]:
    for name, hook in hooks().items():
        yield f"## `{name}`\n\n```text\n{name}{signature(hook)}\n```\n\n{as_markdown(hook.__doc__ or '')}"
