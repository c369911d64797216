"""Whose code something is, in words: so that an error of a plugin or a conftest.py names it."""

import os
import sys
from functools import cache
from importlib.metadata import entry_points
from pathlib import Path
from types import CodeType, ModuleType
from typing import Final

_OURS: Final = "pytest_metricbench"
_GROUP: Final = "pytest11"
"""The group of entry points under which pytest finds plugins."""


def whose(thing: object) -> str:
    """`` of acme-bench 1.2`` or `` of shop/conftest.py``, to follow a name; empty for what is built in.

    Args:
        thing: a class, or a plugin as pytest has it (mostly a module).
    """
    found = origin_of(thing)
    return f" of {found}" if found else ""


def origin_of(thing: object) -> str:
    """The installed distribution with its version, else the file; empty for what is built in.

    Args:
        thing: a class, or a plugin as pytest has it (mostly a module).
    """
    cls = thing if isinstance(thing, type | ModuleType) else type(thing)
    module = cls.__name__ if isinstance(cls, ModuleType) else cls.__module__
    top = module.partition(".")[0]
    if top == _OURS:
        return ""
    return _distribution(top) or _file(cls) or module


@cache
def _distribution(top: str) -> str:
    """The distribution that gives pytest plugins from a package, as ``name version``; empty where there is none."""
    for entry in entry_points(group=_GROUP):
        if entry.module.partition(".")[0] == top and entry.dist is not None:
            return f"{entry.dist.name} {entry.dist.version}"
    return ""


def _file(cls: type | ModuleType) -> str:
    """Where a class or a module is written, from the working directory where it is below."""
    # A class is asked for its functions first: every conftest.py of a run may be the module "conftest".
    codes = (getattr(getattr(value, "__func__", value), "__code__", None) for value in vars(cls).values())
    files = [code.co_filename for code in codes if isinstance(code, CodeType)] if isinstance(cls, type) else []
    file = files[0] if files else getattr(sys.modules.get(getattr(cls, "__module__", "")), "__file__", None)
    file = getattr(cls, "__file__", file)
    if not isinstance(file, str):
        return ""
    path, here = Path(os.path.abspath(file)), Path.cwd()
    return str(path.relative_to(here)) if here in path.parents else str(path)
