"""What pytest and pytest-xdist have and do not promise: every private name of theirs that a session relies on.

Each stands in a function of its own, which says what is done where a version lacks the name, and has a test in
``tests/test_private_names.py`` that fails by that name. The processes of a tested project have others, all of them in
:mod:`pytest_metricbench.suite.inside_pytest`; no third module uses any.

Loaded in every pytest run of an environment that has the package, so it imports nothing.
"""

from collections.abc import Iterable
from typing import Any, Final

_PYTEST: Final = "_pytest"
"""The package that pytest's own plugins are in."""


def ini_file_names(config: Any) -> Iterable[str]:
    """The names that the ini file sets, whoever declared them: ``Config._inicfg``, before pytest 9 ``Config.inicfg``.

    Where both are gone there are none, and a misspelt ini value is left to pytest's warning.
    """
    names: Iterable[str] = config._inicfg if hasattr(config, "_inicfg") else getattr(config, "inicfg", ())
    return names


def setup_state(session: Any) -> Any:
    """What sets up and tears down the collectors above an item: ``Session._setupstate``; None where it is gone."""
    return getattr(session, "_setupstate", None)


def write_uncounted(writer: Any, text: str) -> None:
    """Write to the terminal without pytest's count of what stands on the line.

    pytest 9 has ``TerminalWriter.write_raw`` for it; before, it takes the file: ``TerminalWriter._file``.
    """
    raw = getattr(writer, "write_raw", None)
    if raw is None:
        writer._file.write(text)
    else:
        raw(text)
    writer.flush()


def was_told_to_end(node: Any) -> bool:
    """Whether a worker of pytest-xdist was told that nothing follows: ``WorkerController._shutdown_sent``.

    ``shutting_down`` does not tell, since it is true of every worker that is gone. Where the name is gone the answer
    is yes, so that the last item of a lost worker counts as one that may have run.
    """
    return bool(getattr(node, "_shutdown_sent", True))


def pytest_module(function: Any) -> str | None:
    """The module of pytest's own that a function is from, below ``_pytest``: ``runner``; None where it is another's.

    They are the names of pytest's plugins too, as ``-p no:NAME`` takes them.
    """
    package, _, name = (getattr(function, "__module__", None) or "").partition(".")
    return name if package == _PYTEST else None
