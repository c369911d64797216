"""For the agent: how it becomes the variant that a request asks for. Nothing here needs more than Python itself.

``params`` is always the variant's: ``request.variant.params`` in Python, ``request["variant"]["params"]`` from
``request.json``. What the two functions read is documented, so an agent in any language can do the same.
"""

import asyncio
import copy
import inspect
import json
import os
import time
from collections.abc import Callable, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, Final

FAULTS: Final = ("error", "stale", "empty")
"""What ``returns`` may say."""


def text_of(params: Mapping[str, Any], name: str, folder: str | os.PathLike[str] = ".") -> str:
    """The text of a prompt or policy as the variant has it.

    Args:
        params: the variant's.
        name: as the experiment names the file, relative to its folder.
        folder: where the agent's own files are: what the variant does not change is read there.

    Raises:
        OSError: the agent has no such file.
    """
    files = params.get("files") or {}
    text = files.get(name)
    return text if isinstance(text, str) else Path(folder, name).read_text("utf-8")


def with_faults(
    tools: Mapping[str, Callable[..., Any]],
    params: Mapping[str, Any],
    *,
    as_error: Callable[[str], Any] = lambda message: {"error": message},
) -> dict[str, Callable[..., Any]]:
    """The tools as the variant has them: those that ``params["tool_faults"]`` names answer wrongly, or late.

    ``{"returns": "error"}``: the tool is not called and answers with an error. ``{"returns": "empty"}``: it is called
    and answers with an empty value of the same type. ``{"returns": "stale"}``: asked again with the same arguments it
    answers as it did the first time, without being called. ``{"delay": seconds}``: it is called after that time.
    Async tools stay async.

    Args:
        tools: name -> function.
        params: the variant's.
        as_error: makes the answer of a tool that fails from a message; it may raise instead.

    Raises:
        KeyError: a fault names no tool.
        ValueError: a fault is none of these.
    """
    changed = dict(tools)
    for name, fault in (params.get("tool_faults") or {}).items():
        if name not in changed:
            raise KeyError(f"tool_faults names the tool {name!r}; there are {', '.join(changed)}")
        changed[name] = _with_fault(name, changed[name], fault, as_error)
    return changed


def _with_fault(
    name: str, tool: Callable[..., Any], fault: Mapping[str, Any], as_error: Callable[[str], Any]
) -> Callable[..., Any]:
    kind, delay = fault.get("returns"), fault.get("delay", 0)
    if (kind is None and not delay) or kind not in (None, *FAULTS) or not isinstance(delay, int | float) or delay < 0:
        raise ValueError(
            f"tool_faults of {name}: {dict(fault)} is neither returns: {'|'.join(FAULTS)} nor delay: seconds"
        )
    answers = _FaultyAnswers(name, kind, as_error)
    if inspect.iscoroutinefunction(tool):

        @wraps(tool)
        async def faulty_later(*args: Any, **kwargs: Any) -> Any:
            await asyncio.sleep(delay)
            asked = _asked(args, kwargs)
            is_known, answer = answers.known(asked)
            return answer if is_known else answers.changed(asked, await tool(*args, **kwargs))

        return faulty_later

    @wraps(tool)
    def faulty(*args: Any, **kwargs: Any) -> Any:
        time.sleep(delay)
        asked = _asked(args, kwargs)
        is_known, answer = answers.known(asked)
        return answer if is_known else answers.changed(asked, tool(*args, **kwargs))

    return faulty


class _FaultyAnswers:
    """What a tool with a fault answers."""

    def __init__(self, name: str, kind: str | None, as_error: Callable[[str], Any]) -> None:
        self._name: Final = name
        self._kind: Final = kind
        self._as_error: Final = as_error
        self._remembered: Final[dict[str, Any]] = {}

    def known(self, asked: str) -> tuple[bool, Any]:
        """Whether the tool need not be called, and its answer."""
        if self._kind == "error":
            return True, self._as_error(f"{self._name} is not available")
        if self._kind == "stale" and asked in self._remembered:
            return True, copy.deepcopy(self._remembered[asked])
        return False, None

    def changed(self, asked: str, answer: Any) -> Any:
        """What becomes of the tool's own answer."""
        if self._kind == "empty":
            return _empty(answer)
        if self._kind == "stale":
            self._remembered[asked] = copy.deepcopy(answer)
        return answer


def _asked(args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
    """The arguments that are plain values: a client or a database among them says nothing about the question."""
    plain = [value for value in args if value is None or isinstance(value, str | int | float)]
    return json.dumps([plain, dict(sorted(kwargs.items()))], default=lambda value: type(value).__name__)


def _empty(answer: Any) -> Any:
    if isinstance(answer, dict):
        return {}
    if isinstance(answer, list | tuple):
        return type(answer)()
    return "" if isinstance(answer, str) else None
