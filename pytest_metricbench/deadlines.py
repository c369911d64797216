"""A Python function called within a time limit, in this process.

In the main thread a watchdog sends a signal whose handler raises, which also interrupts system calls. ITIMER_REAL is
left alone (pytest-timeout owns it). Another thread cannot be interrupted while it is in a system call: there the call
is made in a thread of its own, in which the exception is raised as soon as it comes back to Python; past the limit it
is left behind.
"""

import ctypes
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final, TypeVar

from pytest_metricbench.process_groups import STOPPING, StoppedError, heed_stop

T = TypeVar("T")

_SIGNAL: Final = signal.SIGVTALRM
_REPEAT: Final = 0.5
"""Seconds after which the signal is sent again, to code that caught the first one."""
_LOOK_EVERY: Final = 0.1
"""Seconds between two looks at whether the run was interrupted."""
_TO_END: Final = 0.5
"""Seconds that a late call in a thread of its own is given to end."""


class DeadlineExceededError(BaseException):
    """The call ran longer than its limit. A BaseException, so that ``except Exception`` does not swallow it."""


def call_within(seconds: float | None, function: Callable[..., T], *arguments: Any) -> T:
    """Call the function and give back what it returns; None for ``seconds`` means no limit.

    Raises:
        DeadlineExceededError: the call did not end in time, whatever it made of being interrupted.
        StoppedError: the run was interrupted, and this is a thread beside the main one.
    """
    in_main = threading.current_thread() is threading.main_thread()
    if seconds is None and (in_main or STOPPING.get() is None):
        return function(*arguments)
    seconds = threading.TIMEOUT_MAX if seconds is None else min(seconds, threading.TIMEOUT_MAX)
    return (_interruptible if in_main else _abandonable)(seconds, function, arguments)


@contextmanager
def interrupted_after(cpu: float) -> Iterator[None]:
    """Interrupt what is done inside once this process has used so many seconds of CPU time, as Ctrl-C would.

    CPU time, since a busy machine makes nothing long. Only in the main thread; in another one there is no limit.

    Raises:
        KeyboardInterrupt: it took longer.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    running = True

    def interrupt(number: int, frame: FrameType | None) -> None:
        if running:
            raise KeyboardInterrupt(f"it took longer than {cpu:g} s of CPU time")

    previous = signal.signal(signal.SIGPROF, interrupt)
    signal.setitimer(signal.ITIMER_PROF, cpu, _REPEAT)
    try:
        yield
    finally:
        running = False  # a plain store, as below: what follows is done whole
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, signal.SIG_DFL if previous is None else previous)


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

    watchdog = _watchdog(seconds, main, ended)
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


def _watchdog(seconds: float, main: int, ended: threading.Event) -> threading.Thread:
    """A thread that sends the signal to the main one at the limit, and again and again until the call has ended."""

    def watch() -> None:
        pause = seconds
        while not ended.wait(pause):
            signal.pthread_kill(main, _SIGNAL)
            pause = _REPEAT

    return threading.Thread(target=watch, name="metricbench-deadline", daemon=True)


def _abandonable(seconds: float, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
    results: list[T] = []
    errors: list[BaseException] = []
    ended = threading.Event()

    def call() -> None:
        try:
            try:
                results.append(function(*arguments))
            except BaseException as error:
                errors.append(error)
            ended.set()
        except (DeadlineExceededError, StoppedError):  # raised in here when the function had just ended
            return

    thread = threading.Thread(target=call, name="metricbench-call", daemon=True)
    until = time.monotonic() + seconds
    thread.start()
    try:
        while not ended.wait(max(0.0, min(_LOOK_EVERY, until - time.monotonic()))):
            heed_stop()
            if time.monotonic() >= until:
                raise DeadlineExceededError
    except StoppedError:
        _raise_in(thread, StoppedError)
        raise
    except DeadlineExceededError:
        _raise_in(thread, DeadlineExceededError)
        ended.wait(_TO_END)
        raise
    if errors:
        raise errors[0]
    return results[0]


def _raise_in(thread: threading.Thread, kind: type[BaseException]) -> None:
    """Have an exception raised in a thread as soon as it runs Python code."""
    if thread.ident is not None and thread.is_alive():
        ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(kind))
