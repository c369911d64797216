"""Docstrings and signatures of the code as Markdown, taken from its source."""

import ast
import inspect
import re
import textwrap
from collections.abc import Callable, Iterator
from typing import Any

_SECTION = re.compile(r"^(Args|Returns|Raises|Yields|Attributes):$")
_NAMED_ENTRY = re.compile(r"([\w.*]+): (.+)", re.S)


def as_markdown(docstring: str) -> str:
    """A Google-style docstring: its sections become lists, its literal blocks code."""
    parts: list[str] = []
    for block in _blocks(inspect.cleandoc(docstring)):
        first, _, rest = block.partition("\n")
        if section := _SECTION.match(first):
            parts.append(f"*{section[1]}*\n\n" + "\n".join(_entries(textwrap.dedent(rest))))
        elif block.startswith(" ") and parts:
            parts[-1] = re.sub(r"::$", ":", parts[-1])
            code = re.sub(r"\n\n(?=(?:async )?(?:def|class)\b)", "\n\n\n", textwrap.dedent(block))
            parts.append(f"```python\n{code}\n```")
        else:
            parts.append(plain(block))
    return "\n\n".join(parts) + "\n"


def plain(text: str) -> str:
    """A paragraph of reStructuredText, as far as docstrings here have any of it, as Markdown in one line."""
    text = re.sub(r":\w+:`~?(?:[\w.]*\.)?(\w+)`", r"`\1`", text)
    return re.sub(r"\s+", " ", text.replace("``", "`")).strip()


def signature(function: Callable[..., Any]) -> str:
    """``(arguments) -> result`` as it stands in the source, without ``self``."""
    node = _definition(function)
    arguments = re.sub(r"^(self|cls)(, |$)", "", ast.unparse(node.args))
    result = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    return re.sub(r"""["']((?:[A-Z]|Iterable)[\w.\[\], |]*)["']""", r"\1", f"({arguments}){result}")


def attributes(cls: type) -> Iterator[tuple[str, str, str]]:
    """The attributes that a class declares: name, type (of a plain one its value), and the text below it, if any."""
    body = _definition(cls).body
    for statement, after in zip(body, [*body[1:], None], strict=True):
        if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
            yield statement.target.id, _type_text(statement.annotation), _text(after)
        elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield statement.targets[0].id, ast.unparse(statement.value), _text(after)


def _definition(found: Any) -> Any:
    return ast.parse(textwrap.dedent(inspect.getsource(found))).body[0]


def _type_text(annotation: ast.expr) -> str:
    """A type as written, without what is attached to it."""
    if isinstance(annotation, ast.Subscript) and ast.unparse(annotation.value) == "Annotated":
        annotation = annotation.slice.elts[0]  # type: ignore[attr-defined]
    return ast.unparse(annotation).strip("'\"")


def _text(after: ast.stmt | None) -> str:
    if isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant) and isinstance(after.value.value, str):
        return plain(inspect.cleandoc(after.value.value))
    return ""


def _blocks(text: str) -> Iterator[str]:
    """Paragraphs; indented blocks and sections with the empty lines in them."""
    block: list[str] = []
    for line in [*text.split("\n"), None]:
        opened = bool(block) and (block[0].startswith(" ") or bool(_SECTION.match(block[0])))
        if line is not None and block and ((opened and (line.startswith(" ") or not line)) or (not opened and line)):
            block.append(line)
            continue
        if found := "\n".join(block).rstrip():
            yield found
        block = [line] if line else []


def _entries(text: str) -> Iterator[str]:
    """The entries of a section, ``name: what it is``, as items of a list."""
    for entry in re.split(r"\n(?! )", text.strip()):
        named = _NAMED_ENTRY.fullmatch(entry)
        yield f"- `{named[1]}`: {plain(named[2])}" if named else f"- {plain(entry)}"
