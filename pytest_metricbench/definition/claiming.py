"""Whether a YAML file is an experiment: its top-level mapping has the key ``metricbench``.

Imported in every pytest run, so it imports nothing heavy before a file is looked at.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, TypeAlias

KEY: Final = "metricbench"

Claimed: TypeAlias = Literal["ours", "misspelled", "lacking", "unreadable"]


@dataclass(frozen=True, slots=True)
class Claim:
    """What a look at a file's top-level keys found."""

    path: Path
    state: Claimed
    """``ours``; or why not: the key is misspelled, it is lacking, or the file is unreadable before it is reached."""
    message: str = ""
    """For a file that should be ours and is not: ``file:line:column: what is wrong``; empty when it is ours."""

    @property
    def ours(self) -> bool:
        """Whether the file is an experiment, however much is wrong with the rest of it."""
        return self.state == "ours"


def claim(path: Path) -> Claim:
    """Look for the key, quoted or not, after a byte order mark, in block or flow style, and read no further.

    A file that is broken behind the key is ours: loading it says what is wrong.
    """
    import yaml  # here, not above: see the module

    from pytest_metricbench.definition.problems import Problem, ProblemList
    from pytest_metricbench.definition.source import file_content, syntax_problem

    problems = ProblemList()
    data = file_content(path, problems)
    if data is None:
        return Claim(path, "unreadable", str(problems.found[0]))
    keys: list[tuple[str, int, int]] = []
    try:
        for key, line, column in _top_level_keys(data):
            if key == KEY:
                return Claim(path, "ours")
            keys.append((key, line, column))
    except _NoMappingError as error:
        return Claim(path, "lacking", str(Problem(path, 1, 1, "", str(error), f"an experiment begins with {KEY}: 1")))
    except yaml.YAMLError as error:
        return Claim(path, "unreadable", str(syntax_problem(path, error, data)))
    return _not_found(path, keys)


class _NoMappingError(Exception):
    """The document is something else than a mapping."""


def _top_level_keys(data: bytes) -> Iterator[tuple[str, int, int]]:
    import yaml

    depth, at_key = 0, True
    for event in yaml.parse(data, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.DocumentEndEvent):
            return
        if depth == 0 and isinstance(event, yaml.NodeEvent) and not isinstance(event, yaml.MappingStartEvent):
            raise _NoMappingError("is no experiment: it holds a list or a single value")
        if depth == 1 and at_key and isinstance(event, yaml.ScalarEvent):
            mark = event.start_mark
            yield event.value, (mark.line if mark else 0) + 1, (mark.column if mark else 0) + 1
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
            at_key = not at_key if depth == 1 else at_key
        elif depth == 1 and isinstance(event, yaml.NodeEvent):
            at_key = not at_key


def _not_found(path: Path, keys: list[tuple[str, int, int]]) -> Claim:
    from pytest_metricbench.definition.problems import Problem, shortened
    from pytest_metricbench.messages import nearest

    begin = f"an experiment has the top-level key {KEY}, as in {KEY}: 1"
    if not keys:
        return Claim(path, "lacking", str(Problem(path, 1, 1, "", "is no experiment: it has no keys", begin)))
    for key, line, column in keys:
        if nearest(key, [KEY], cutoff=0.75) == KEY:
            message = f"the key {shortened(key)!r} is unknown"
            return Claim(path, "misspelled", str(Problem(path, line, column, "", message, f"did you mean {KEY!r}?")))
    return Claim(path, "lacking", str(Problem(path, 1, 1, "", f"is no experiment: it lacks the key {KEY}", begin)))
