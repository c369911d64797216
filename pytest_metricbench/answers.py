"""Answers of other people's code, read and checked: the one place that decides what a response may be.

A response is a regular file of bounded size inside the workspace; what it holds is data and nothing else.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from pytest_metricbench.contracts import ContractError, Goals, Json, Score
from pytest_metricbench.plain_files import open_regular
from pytest_metricbench.score_values import ScoreValue

RESPONSE_LIMIT: Final = 1 << 20
"""Bytes that a response may have."""
LARGEST_INT: Final = 10**308
"""The largest whole number that a score may be: floats end there."""
MESSAGE_LIMIT: Final = 2000
"""Characters of a message that are kept."""
_PLAIN: Final = (bool, int, float, str, type(None))
GOALS_LIMIT: Final = 64 << 20
"""Bytes that ``goals.json`` may have: it lists every line or tool that a task covers."""


def read_json_file(path: Path, limit: int = RESPONSE_LIMIT) -> Json:
    """The JSON value of a file that somebody else wrote; a bare NaN or Infinity is a number.

    Raises:
        ContractError: no such file, a link or device in its place, empty, larger than ``limit`` bytes, no JSON, or a
            mapping with a key given twice.
    """
    name = path.name
    try:
        with open_regular(path) as file:
            size = os.fstat(file.fileno()).st_size
            if size > limit:
                raise ContractError(f"{name} has {size} bytes; at most {limit} are read")
            content = file.read(min(size, limit) + 1)
    except FileNotFoundError:
        raise ContractError(f"{name} was not written") from None
    except OSError as error:
        raise ContractError(f"{name} cannot be read: {error.strerror}") from None
    if not content.strip():
        raise ContractError(f"{name} is empty")
    try:
        return json.loads(content, object_pairs_hook=without_repeats)
    except RepeatedKeyError as error:
        raise ContractError(f"{name} has the key {error} twice") from None
    except (ValueError, RecursionError) as error:
        raise ContractError(f"{name} is not JSON: {error or type(error).__name__}") from None


class RepeatedKeyError(Exception):
    """A key that a mapping has twice: which of the two values was meant is anybody's guess. No ``ValueError``, which a
    cut text raises.
    """


def without_repeats(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """The mapping of some pairs, for ``object_pairs_hook`` of :mod:`json`.

    Raises:
        RepeatedKeyError: a key stands twice.
    """
    mapping = dict(pairs)
    if len(mapping) < len(pairs):
        keys = [key for key, _ in pairs]
        raise RepeatedKeyError(repr(next(key for key in mapping if keys.count(key) > 1)))
    return mapping


def plain_text(text: str) -> str:
    """A text as every file and terminal can take it: a plain ``str``, half a surrogate pair replaced by U+FFFD."""
    text = str.__str__(text)
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def kept_message(message: object) -> str:
    """A message of somebody else's as it is kept: plain, of a long one the beginning and how much more there is.

    Empty for what is no text.
    """
    text = plain_text(message) if isinstance(message, str) else ""
    left = len(text) - MESSAGE_LIMIT
    return text if left <= 0 else f"{text[:MESSAGE_LIMIT]} [... {left} more characters]"


def said_by(error: BaseException) -> str:
    """What an exception of somebody else's says, as :func:`kept_message` keeps it; empty where it cannot say it."""
    try:
        return kept_message(str(error))
    except Exception:  # its ``__str__`` is somebody else's too
        return ""


def read_scores(path: Path) -> dict[str, ScoreValue]:
    """The scores of an attempt's ``response.json``: ``{"scores": {name: value}}``.

    Raises:
        ContractError: the file or what it holds is not of that form.
    """
    answer = read_json_file(path)
    if not isinstance(answer, dict) or "scores" not in answer:
        raise ContractError(f'{path.name} holds {named(answer)}; {{"scores": {{name: value}}}} is expected')
    _refuse_other_keys(answer, {"scores"}, path.name)
    return as_scores(answer["scores"])


def read_coverage(response: Path, goals: Path) -> Score:
    """The score of a coverage command: ``response.json``, and ``goals.json`` when it wrote one.

    Raises:
        ContractError: a file or what it holds is not of the documented form.
    """
    answer = read_json_file(response)
    if not isinstance(answer, dict):
        raise ContractError(f'{response.name} holds {named(answer)}; {{"value": number}} is expected')
    _refuse_other_keys(answer, {"value", "reason"}, response.name)
    score = as_coverage_score(answer)
    return replace(score, goals=as_goals(read_json_file(goals, GOALS_LIMIT))) if os.path.lexists(goals) else score


def as_coverage_score(answer: Mapping[str, object], goals: object = None) -> Score:
    """A coverage answer ``{"value": .., "reason": ..}`` and its goals, checked.

    Raises:
        ContractError: no value, a value outside [0, 1], a null without a reason, or malformed goals.
    """
    if "value" not in answer:
        raise ContractError('the answer has no "value"; a number from 0 to 1, or null with a reason, is expected')
    value, reason = answer["value"], answer.get("reason")
    if reason is not None and not isinstance(reason, str):
        raise ContractError(f"reason is {named(reason)}; a text is expected")
    reason = None if reason is None else plain_text(reason).strip()
    checked_goals = None if goals is None else as_goals(goals)
    if value is None:
        if not reason:
            raise ContractError("value is null and no reason is given; say why there is no score")
        return Score(None, reason, checked_goals)
    return Score(as_coverage_value(value), reason, checked_goals)


def as_goals(answer: object) -> Goals:
    """Goals ``{"universe": [...], "by_task": {task: [goal, ...]}}``, checked, each list sorted and without repeats.

    Raises:
        ContractError: another form, or a task that covers a goal outside the universe.
    """
    if not isinstance(answer, Mapping) or set(answer) != {"universe", "by_task"}:
        raise ContractError(f'goals are {named(answer)}; {{"universe": [..], "by_task": {{task: [..]}}}} is expected')
    universe = _goal_list("universe", answer["universe"])
    by_task = answer["by_task"]
    if not isinstance(by_task, Mapping):
        raise ContractError(f"by_task is {named(by_task)}; a mapping of task ids to lists of goals is expected")
    known = set(universe)
    checked = {}
    for task, goals in by_task.items():
        if not isinstance(task, str):
            raise ContractError(f"by_task: {task!r} is no task id; a text is expected")
        covered = _goal_list(f"by_task[{task!r}]", goals)
        unknown = [goal for goal in covered if goal not in known]
        if unknown:
            raise ContractError(f"by_task[{task!r}] has the goal {unknown[0]!r}, which the universe does not have")
        checked[plain_text(task)] = covered
    return Goals(universe, checked)


def _goal_list(where: str, goals: object) -> tuple[str, ...]:
    if not isinstance(goals, list | tuple | set | frozenset) or not all(isinstance(goal, str) for goal in goals):
        raise ContractError(f"{where} is {named(goals)}; a list of texts is expected")
    return tuple(sorted({plain_text(goal) for goal in goals}))


def _refuse_other_keys(answer: Mapping[str, object], known: set[str], name: str) -> None:
    other = [key for key in answer if key not in known]
    if other:
        raise ContractError(f"{name} has the key {other[0]!r}; only {' and '.join(sorted(known))} are known")


def as_score_value(name: str, value: object) -> ScoreValue:
    """A score as a plain Python value; numpy's scalars become numbers.

    Raises:
        ContractError: it is neither a number, a boolean, a text nor None.
    """
    if not isinstance(value, _PLAIN):
        value = _from_array(value)
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return plain_text(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, int):
        if abs(value) > LARGEST_INT:
            raise ContractError(f"score {name!r} has {_digits(value)} digits; a number up to 1e308 is expected")
        return int(value)
    raise ContractError(f"score {name!r} is {named(value)}; a score is a number, a boolean, a label or null")


def _from_array(value: object) -> object:
    """The plain value behind a scalar of numpy or of another array library; anything else as it is."""
    item = getattr(value, "item", None)
    if not callable(item) or getattr(value, "ndim", None) != 0:
        return value
    try:
        plain = item()
    except Exception:  # somebody else's object: then it is no score
        return value
    return plain if isinstance(plain, _PLAIN) else value


def _digits(value: int) -> str:
    try:
        return str(len(str(abs(value))))
    except ValueError:  # Python writes out no larger ones
        return "thousands of"


def as_scores(answer: object) -> dict[str, ScoreValue]:
    """A verifier's mapping of scores, checked.

    Raises:
        ContractError: not a mapping, a name that is not a text, or a value that is no score.
    """
    if not isinstance(answer, Mapping):
        raise ContractError(f"the scores are {named(answer)}; a mapping of score names to values is expected")
    if not answer:
        raise ContractError("the mapping of scores is empty; at least the primary score is expected")
    scores: dict[str, ScoreValue] = {}
    for name, value in answer.items():
        if not isinstance(name, str) or not name or len(name) > 200:
            raise ContractError(f"{name!r} is no name of a score; a text of 1 to 200 characters is expected")
        scores[plain_text(name)] = as_score_value(name, value)
    return scores


def as_coverage_value(value: object) -> float:
    """A coverage score as a plain float.

    Raises:
        ContractError: not a finite number in [0, 1]; booleans and texts are none.
    """
    plain = value if isinstance(value, _PLAIN) else _from_array(value)
    if isinstance(plain, bool) or not isinstance(plain, int | float):
        problem = f"value is {named(value)}"
    elif isinstance(plain, int) and abs(plain) > LARGEST_INT:
        problem = f"value has {_digits(plain)} digits"
    elif 0 <= plain <= 1:
        return float(plain)
    else:
        problem = f"value is {plain}"
    raise ContractError(f"{problem}; a number from 0 to 1, or null with a reason, is expected")


def named(value: object) -> str:
    """How an error names a wrong value: its type, and itself where that is short."""
    try:
        text = json.dumps(value)
    except (TypeError, ValueError, RecursionError):
        text = ""
    kinds = {dict: "a mapping", list: "a list", str: "the text", bool: "the boolean", type(None): "null"}
    numbers = {int: "the number", float: "the number"}
    kind = (kinds | numbers).get(type(value), f"of type {type(value).__name__}")
    if kind == "null":
        return kind
    if text and len(text) <= 60:
        return f"{kind} {text}"
    if isinstance(value, str):
        return f"a text of {len(value):,} characters"
    return "a long number" if kind == "the number" else kind
