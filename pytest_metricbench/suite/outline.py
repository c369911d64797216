"""What of a test file decides which tests it has, so that a changed suite is noticed and a changed test body is not."""

import ast
from collections.abc import Mapping
from pathlib import Path

from pytest_metricbench.digests import digest_bytes, digest_value
from pytest_metricbench.messages import did_you_mean, joined
from pytest_metricbench.suite.mutations import read_source


def outline(source: bytes) -> str:
    """Digest of a test file without the bodies of its functions; those of pytest's hooks count.

    A file that is no Python source counts whole. The same under every version of Python, since locks are shared: it is
    made of the lines as they are written, not of a syntax tree.
    """
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return digest_bytes(source)
    inner: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not node.name.startswith("pytest_"):
            inner.update(range(node.body[0].lineno, (node.end_lineno or node.lineno) + 1))
            inner.discard(node.lineno)  # of a body on the line of its def
    lines = (line.strip() for number, line in enumerate(source.splitlines(), start=1) if number not in inner)
    return digest_bytes(b"\n".join(line for line in lines if line and not line.startswith(b"#")))


def outlines(files: Mapping[str, Path]) -> str:
    """One digest of the outlines of some files: name -> file.

    Raises:
        MutationError: one cannot be read.
    """
    return digest_value({name: outline(read_source(path)) for name, path in files.items()})


def defined_tests(source: bytes) -> frozenset[str] | None:
    """The names of functions and classes at the top of a test file; None where that cannot be told by reading."""
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
    names = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and any(alias.name == "*" for alias in node.names):
            return None
        if isinstance(node, ast.Name) and node.id in ("globals", "vars", "locals", "exec"):
            return None
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            names.update(alias.asname or alias.name for alias in node.names)
    return frozenset(names)


def missing_test(nodeid: str, known: frozenset[str] | None) -> str | None:
    """Why a node id names no test of its file, of which :func:`defined_tests` says what is known; None where it may."""
    file, *names = nodeid.split("::")
    first = names[0].partition("[")[0]
    if known is None or first in known:
        return None
    return joined(f"{file} has no test {first}", did_you_mean(first, known))
