"""Ids: what one may look like and which are taken.

Ids become parts of node ids, words of ``-k`` expressions, names of marks and names of folders; the alphabet is what
all four bear.
"""

import hashlib
import re
from typing import Final

ID_PATTERN: Final = r"^[A-Za-z0-9][A-Za-z0-9._+-]*$"
ID_LIMIT: Final = 100
"""Characters of the longest id."""

EXPRESSION_WORDS: Final = frozenset({"and", "or", "not", "True", "False", "None"})
"""What pytest's ``-k`` and ``-m`` expressions read as something else than a name."""
RESERVED_VARIANTS: Final = frozenset({"baseline", "coverage"})
RESERVED_SUBSETS: Final = frozenset({"pool"})
OWN_MARKS: Final = frozenset({"baseline", "mutant", "metricbench"})
"""Marks that every item carries already."""
PYTEST_MARKS: Final = frozenset(
    {"skip", "skipif", "xfail", "parametrize", "usefixtures", "filterwarnings", "tryfirst", "trylast"}
)
PLUGIN_MARKS: Final = frozenset({"xdist_group", "timeout"})
"""Marks that pytest-xdist and pytest-timeout act upon: without arguments they move items or end the run."""

_VALID: Final = re.compile(ID_PATTERN[:-1], re.ASCII)
_FOREIGN: Final = re.compile(r"[^A-Za-z0-9._+-]")
_CONTROL: Final = re.compile(r"control-[0-9]+")
_RULE: Final = (
    "an id is made of the letters A-Z and a-z, digits and . _ + -, and begins with a letter or a digit, "
    f"at most {ID_LIMIT} characters"
)


def id_problem(text: str) -> tuple[str, str] | None:
    """Why a text is no id, and what would be right; None when it is one."""
    if not text:
        return "an id is empty", _RULE
    if len(text) > ID_LIMIT:
        return f"an id of {len(text)} characters is too long: {text[:20]!r}...", f"at most {ID_LIMIT} are allowed"
    if not _VALID.fullmatch(text):
        return f"{text!r} is no id", f"{_RULE}, such as {_stem(text)!r}"
    if text in EXPRESSION_WORDS:
        return f"{text!r} is a word of pytest's -k expressions", "choose another id"
    return None


def variant_id_problem(text: str) -> tuple[str, str] | None:
    """Why a text is no id of a mutant, and what would be right; None when it is one."""
    if text in RESERVED_VARIANTS or _CONTROL.fullmatch(text):
        return f"{text!r} is reserved", "baseline, coverage and control-<n> are no ids of mutants; choose another"
    return id_problem(text)


def subset_id_problem(text: str) -> tuple[str, str] | None:
    """Why a text is no id of a subset, and what would be right; None when it is one."""
    if text in RESERVED_SUBSETS:
        return f"{text!r} is reserved for the subset of all tasks", "choose another id"
    return id_problem(text)


def tag_problem(text: str) -> tuple[str, str] | None:
    """Why a text is no tag, and what would be right; None when it is one."""
    if text in OWN_MARKS:
        return f"the tag {text!r} is a mark that items carry already", "choose another tag"
    if text in PYTEST_MARKS:
        return f"the tag {text!r} is a mark that pytest gives a meaning", "choose another tag"
    if text in PLUGIN_MARKS:
        return f"the tag {text!r} is a mark that a pytest plugin acts upon", "choose another tag"
    problem = id_problem(text)
    return None if problem is None else (problem[0], f"a tag follows the rule of ids: {problem[1]}")


def derive_id(name: str) -> tuple[str, str]:
    """An id for something that is named elsewhere (``tests/a.py::t[1]``, ``org/task``), and the name to keep.

    A name that is an id, free in every scope, stays as it is, and the name to keep is then empty. Otherwise every
    character outside the alphabet becomes ``-`` and six hex digits of the name's SHA-256 digest are added.
    """
    if _VALID.fullmatch(name) and len(name) <= ID_LIMIT and not _is_reserved(name):
        return name, ""
    digest = hashlib.sha256(name.encode("utf-8", "surrogatepass")).hexdigest()[:6]
    return f"{_stem(name)[: ID_LIMIT - len(digest) - 1]}-{digest}", name


def _stem(name: str) -> str:
    return _FOREIGN.sub("-", name).lstrip("._+-") or "id"


def _is_reserved(text: str) -> bool:
    return text in EXPRESSION_WORDS | RESERVED_VARIANTS | RESERVED_SUBSETS or bool(_CONTROL.fullmatch(text))
