"""A Python function called within a time limit, in this process.

In the main thread a watchdog sends a signal whose handler raises, which also interrupts system calls. ITIMER_REAL is
left alone (pytest-timeout owns it). In another thread Python offers no way to interrupt a call: it is made in a
thread of its own and, past the limit, left behind.
"""

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any, Final, TypeVar

T = TypeVar("T")

_SIGNAL: Final = signal.SIGVTALRM
_REPEAT: Final = 0.5
"""Seconds after which the signal is sent again, to code that caught the first one."""


class DeadlineExceededError(BaseException):
    """The call ran longer than its limit. A BaseException, so that ``except Exception`` does not swallow it."""


def call_within(seconds: float | None, function: Callable[..., T], *arguments: Any) -> T:
    """Call the function and give back what it returns; None for ``seconds`` means no limit.

    Raises:
        DeadlineExceededError: the call did not end in time.
    """
    if seconds is None:
        return function(*arguments)
    if threading.current_thread() is threading.main_thread():
        return _interruptible(seconds, function, arguments)
    return _abandonable(seconds, function, arguments)


def _interruptible(seconds: float, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    done = threading.Event()
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(number: int, frame: FrameType | None) -> None:
        if not done.is_set():
            raise DeadlineExceededError

    def watch() -> None:
        pause = seconds
        while not done.wait(pause):
            signal.pthread_kill(main, _SIGNAL)
            pause = _REPEAT

    previous = signal.signal(_SIGNAL, interrupt)
    watchdog = threading.Thread(target=watch, name="metricbench-deadline", daemon=True)
    watchdog.start()
    try:
        return function(*arguments)
    finally:
        done.set()
        watchdog.join()
        signal.signal(_SIGNAL, previous)


def _abandonable(seconds: float, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []

    def call() -> None:
        try:
            results.append(function(*arguments))
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=call, name="metricbench-call", daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        raise DeadlineExceededError
    if errors:
        raise errors[0]
    return results[0]
