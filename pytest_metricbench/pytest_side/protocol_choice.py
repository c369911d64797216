"""Which protocol the items of an experiment go through: pytest's standard one, or the short one of ours.

The short one (:mod:`pytest_metricbench.pytest_side.protocol`) calls no ``pytest_runtest_setup``,
``pytest_runtest_call`` and ``pytest_runtest_teardown`` and makes one report an item in place of three. Nobody may
notice, so it is taken only where everybody who listens is known: every implementation of these hooks is one of
pytest's own that the short protocol answers for, of pytest-xdist, or ours. Whatever else is installed, in a plugin or a
``conftest.py``, gets the standard protocol, and so do the options whose meaning lies in its three phases.

This module is imported in every session, so it imports nothing heavy.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from pytest_metricbench.private_names import pytest_module

AUTO: Final = "auto"
STANDARD: Final = "standard"
CHOICES: Final = (AUTO, STANDARD)
"""What ``--metricbench-protocol`` takes."""
_TOLD: Final = "metricbench_protocol"
"""The key under which a worker of pytest-xdist is told what its controller knows."""

_RUNTEST: Final = frozenset({"capture", "logging", "runner", "skipping", "threadexception", "unraisableexception"})
_KNOWN: Final[Mapping[str, frozenset[str]]] = {
    "pytest_runtest_protocol": frozenset({"assertion", "faulthandler", "runner", "unittest", "warnings"}),
    "pytest_runtest_setup": _RUNTEST,
    "pytest_runtest_call": _RUNTEST,
    "pytest_runtest_teardown": _RUNTEST,
    "pytest_runtest_makereport": frozenset({"runner", "skipping", "tmpdir", "unittest"}),
    "pytest_runtest_logstart": frozenset({"logging", "terminal"}),
    "pytest_runtest_logreport": frozenset({"cacheprovider", "logging", "main", "stepwise", "terminal"}),
    "pytest_runtest_logfinish": frozenset({"logging", "terminal"}),
    "pytest_report_teststatus": frozenset({"runner", "skipping", "subtests", "terminal"}),
    "pytest_report_to_serializable": frozenset({"reports", "subtests"}),
}
"""Hook -> the modules of pytest whose implementation the short protocol answers for, named as its plugins are."""
_OURS: Final = "pytest_metricbench"
_XDIST: Final = frozenset({"xdist.dsession", "__channelexec__"})
"""Modules of pytest-xdist; the code of a worker is sent to it, and its module is called the second there."""

_PHASES: Final = (
    ("usepdb", "--pdb stops inside a phase"),
    ("trace", "--trace stops at the start of a phase"),
    ("setuponly", "--setup-only runs one phase"),
    ("setupplan", "--setup-plan shows the phases"),
    ("setupshow", "--setup-show shows the phases"),
    ("xmlpath", "--junit-xml is written from the report of the teardown"),
)
"""Option -> why it needs the three phases."""


def why_standard(config: pytest.Config) -> str | None:
    """Why the items of this session go through the standard protocol, in words; None where the short one may do.

    Asked when all plugins are there: at the first item, or by the controller before it starts its workers.
    """
    if config.getoption("metricbench_protocol") == STANDARD:
        return "it was asked for"
    told: str | None = _told(config).get("why_standard")
    return told or next(_reasons(config), None)


def is_end_heard(config: pytest.Config) -> bool:
    """Whether anybody does something at ``pytest_runtest_logfinish``; where not, a worker need not tell its controller.

    pytest's logging is one who does not, except in live logging, which has the standard protocol.
    """
    told: bool | None = _told(config).get("is_end_heard")
    if told is not None:
        return told
    hearers = config.hook.pytest_runtest_logfinish.get_hookimpls()
    return not {pytest_module(implementation.function) for implementation in hearers} <= {"logging"}


def is_start_heard(config: pytest.Config) -> bool:
    """Whether anybody does something at ``pytest_runtest_logstart``; where not, a worker need not tell its controller.

    pytest's terminal shows nothing then beside workers, unless it has a line a test; on a terminal our progress does.
    """
    told: bool | None = _told(config).get("is_start_heard")
    if told is not None:
        return told
    reporter: Any = config.pluginmanager.get_plugin("terminalreporter")
    if reporter is None:
        return False
    return any(getattr(reporter, name, True) for name in ("showlongtestinfo", "showfspath", "isatty"))


def tell(node: Any) -> None:
    """Tell a worker what only the controller knows: who listens here to what its reports say."""
    config = node.config
    node.workerinput[_TOLD] = {
        "why_standard": why_standard(config),
        "is_start_heard": is_start_heard(config),
        "is_end_heard": is_end_heard(config),
    }


def _told(config: pytest.Config) -> Mapping[str, Any]:
    told: Mapping[str, Any] = getattr(config, "workerinput", {}).get(_TOLD, {})
    return told


def _reasons(config: pytest.Config) -> Iterator[str]:
    for option, reason in _PHASES:
        if config.getoption(option, None):
            yield reason
    has_logging = config.pluginmanager.has_plugin("logging-plugin")  # without it, nobody has declared the ini value
    if has_logging and (config.getoption("log_cli_level", None) is not None or config.getini("log_cli")):
        yield "live logging tells the phases apart"
    for hook, modules in _KNOWN.items():
        for implementation in getattr(config.hook, hook).get_hookimpls():
            if not _is_known(implementation.function, modules):
                yield f"{_name(implementation)} implements {hook}"


def _is_known(function: Any, modules: frozenset[str]) -> bool:
    module = getattr(function, "__module__", None) or ""
    return pytest_module(function) in modules or module.partition(".")[0] == _OURS or module in _XDIST


def _name(implementation: Any) -> str:
    """What a user knows a plugin by: a ``conftest.py`` by its path, another by its name or else its module."""
    name: str = implementation.plugin_name
    return name if not name.isdecimal() else str(getattr(implementation.function, "__module__", name))
