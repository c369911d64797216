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
        DeadlineExceededError: the call did not end in time, whatever it made of being interrupted.
    """
    if seconds is None:
        return function(*arguments)
    seconds = min(seconds, threading.TIMEOUT_MAX)
    if threading.current_thread() is threading.main_thread():
        return _interruptible(seconds, function, arguments)
    return _abandonable(seconds, function, arguments)


def call_and_await(function: Callable[..., Any], *arguments: Any) -> Any:
    """Call the function; what it returns is awaited when it can be."""
    result = function(*arguments)
    if not hasattr(result, "__await__"):
        return result
    import asyncio  # here: it takes longer to import than many an agent to answer, and few are asynchronous

    return asyncio.run(_awaited(result))


async def _awaited(result: Any) -> Any:
    return await result


def _interruptible(seconds: float, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    ended = threading.Event()
    running, late = True, False
    main = threading.main_thread().ident
    assert main is not None

    def interrupt(number: int, frame: FrameType | None) -> None:
        nonlocal late
        if running:
            late = True
            raise DeadlineExceededError

    def watch() -> None:
        pause = seconds
        while not ended.wait(pause):
            signal.pthread_kill(main, _SIGNAL)
            pause = _REPEAT

    watchdog = threading.Thread(target=watch, name="metricbench-deadline", daemon=True)
    previous = signal.signal(_SIGNAL, interrupt)
    try:
        try:
            watchdog.start()
            result = function(*arguments)
        finally:
            # A plain store, before which no handler can come in: from here on nothing is raised any more, and what
            # follows is done whole.
            running = False
            ended.set()
            if watchdog.ident is not None:
                watchdog.join()
            signal.signal(_SIGNAL, signal.SIG_DFL if previous is None else previous)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        if late and not isinstance(error, DeadlineExceededError):
            raise DeadlineExceededError from error
        raise
    if late:
        raise DeadlineExceededError
    return result


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
