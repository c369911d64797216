"""Whether pytest-xdist sends the items of a session to workers, and whether this process is one.

Loaded in every pytest run of an environment that has the package, so it imports nothing.
"""

from typing import Any


def is_worker(config: Any) -> bool:
    """Whether this process is a worker, as pytest-xdist's documentation tells it."""
    return hasattr(config, "workerinput")


def worker_count(config: Any) -> int:
    """How many workers the items of this session go to; 0 where this process runs them, or is a worker itself."""
    if config.getoption("dist", "no") == "no":
        return 0
    return sum(_processes(specification) for specification in getattr(config.option, "tx", None) or ())


def _processes(specification: str) -> int:
    """How many workers a value of ``--tx`` asks for: one, or five with ``5*popen``."""
    number, times, _ = specification.partition("*")
    return int(number) if times and number.isdecimal() else 1
