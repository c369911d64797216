"""Which Harbor runs the trials: the one that is installed here, or the executable of another environment."""

import os
import sys
from typing import Final

from pydantic_core import PydanticCustomError

from pytest_metricbench.runners.harbor.in_process import installed_version

EXECUTABLE_VARIABLE: Final = "METRICBENCH_HARBOR"
"""Names the executable where the experiment does not and Harbor is not installed."""
LEAST_PYTHON: Final = (3, 12)
"""What Harbor needs."""


def problem(message: str, remedy: str) -> PydanticCustomError:
    """What is wrong with a key, and what to do."""
    return PydanticCustomError("harbor", "{message}; {remedy}", {"message": message, "remedy": remedy})


def absolute(written: str) -> str:
    """An executable as the experiment names it.

    Raises:
        PydanticCustomError: it is not an absolute path.
    """
    if not os.path.isabs(written):
        raise problem(f"{written!r} is not an absolute path", "write the whole path, as in /opt/harbor/bin/harbor")
    return written


def chosen_executable(written: str | None) -> str | None:
    """The executable that runs the trials, given the key ``harbor``; None where they run in this process.

    Without the key that is the case where Harbor is installed; elsewhere the environment variable
    ``METRICBENCH_HARBOR`` names it, since where it is differs between the machines that share an experiment.
    """
    if written is not None or installed_version() is not None:
        return written
    return os.environ.get(EXECUTABLE_VARIABLE) or None


def require_harbor(executable: str | None) -> None:
    """Refuse to go on without a Harbor.

    Raises:
        PydanticCustomError: there is none; says what to do.
    """
    if executable is not None:
        _check_executable(executable)
        return
    if installed_version() is not None:
        return
    version = ".".join(map(str, sys.version_info[:3]))
    elsewhere = (
        "install it in an environment of its own and name its executable, harbor: /path/to/bin/harbor, or in the "
        f"environment variable {EXECUTABLE_VARIABLE}"
    )
    if sys.version_info < LEAST_PYTHON:
        raise problem(f"Harbor needs Python 3.12 or newer, and this is {version}", elsewhere)
    remedy = f"pip install 'pytest-metricbench[harbor]', or {elsewhere}"
    raise problem("Harbor is not installed in this environment", remedy)


def _check_executable(path: str) -> None:
    remedy = "name bin/harbor of the environment that Harbor is installed in"
    if not os.path.isabs(path):
        raise problem(f"{EXECUTABLE_VARIABLE} is {path!r}, which is not an absolute path", remedy)
    if not os.path.isfile(path):
        raise problem(f"the executable {path} does not exist", remedy)
    if not os.access(path, os.X_OK):
        raise problem(f"the executable {path} is not executable", remedy)


def command_of(executable: str) -> list[str]:
    """The command line of Harbor, given its executable or the interpreter that has it."""
    is_interpreter = os.path.basename(executable).startswith("python")
    return [executable, "-m", "harbor.cli.main"] if is_interpreter else [executable]
