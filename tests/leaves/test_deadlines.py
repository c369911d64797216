"""Calls within a time limit: what is interrupted, and what is as before afterwards."""

import asyncio
import contextlib
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from pytest_metricbench import deadlines
from pytest_metricbench.deadlines import DeadlineExceededError, call_and_await, call_within, interrupted_after


@pytest.fixture(autouse=True)
def _everything_is_as_before() -> Iterator[None]:
    """No handler, timer or thread of ours outlives a call."""
    handlers = {number: signal.getsignal(number) for number in signal.valid_signals()}
    timers = [signal.getitimer(timer) for timer in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)]
    yield
    assert {number: signal.getsignal(number) for number in signal.valid_signals()} == handlers
    assert [signal.getitimer(t) for t in (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)] == timers
    assert not [thread for thread in threading.enumerate() if thread.name == "metricbench-deadline"]


def in_thread(function: Callable[[], Any]) -> Any:
    """What a function returns or raises in a thread that is not the main one."""
    answer: list[Any] = []
    thread = threading.Thread(target=lambda: answer.append(outcome(function)))
    thread.start()
    thread.join(20)
    return answer[0]


def outcome(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except BaseException as error:
        return error


@pytest.fixture(params=["main thread", "other thread"])
def call(request: pytest.FixtureRequest) -> Callable[..., Any]:
    """``call_within`` in the main thread and in another one; it returns what was raised."""
    if request.param == "main thread":
        return lambda *arguments: outcome(lambda: call_within(*arguments))
    return lambda *arguments: in_thread(lambda: call_within(*arguments))


def busy(seconds: float) -> str:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        math.sqrt(2)
    return "done"


# ---------------------------------------------------------------- in time


@pytest.mark.parametrize("seconds", [None, 5, 1e15])
def test_what_the_function_returns_comes_back(call: Callable[..., Any], seconds: float | None) -> None:
    assert call(seconds, lambda a, b: (a, b), 1, 2) == (1, 2)


@pytest.mark.parametrize("seconds", [None, 5])
@pytest.mark.parametrize("kind", [ValueError, SystemExit, KeyboardInterrupt, GeneratorExit])
def test_what_the_function_raises_comes_back(
    call: Callable[..., Any], seconds: float | None, kind: type[BaseException]
) -> None:
    def fail() -> None:
        raise kind("why")

    error = call(seconds, fail)
    assert type(error) is kind
    assert error.args == ("why",)


def test_a_call_that_ends_just_in_time_is_never_hit_later() -> None:
    """Many calls whose end falls together with their deadline: each returns or raises, and nothing comes after."""
    lengths = [0.0019 + 0.00001 * (number % 20) for number in range(100)]
    outcomes = [outcome(partial(call_within, 0.002, late, length)) for length in lengths for late in (busy, time.sleep)]
    assert {type(answer) for answer in outcomes} <= {str, type(None), DeadlineExceededError}
    busy(0.05)


# ---------------------------------------------------------------- too late


@pytest.mark.parametrize("late", [lambda: time.sleep(20), lambda: threading.Event().wait(20)], ids=["sleep", "wait"])
def test_a_call_that_waits_is_ended(call: Callable[..., Any], late: Callable[[], None]) -> None:
    began = time.monotonic()
    assert isinstance(call(0.1, late), DeadlineExceededError)
    assert 0.1 <= time.monotonic() - began < 15


def test_a_call_that_computes_is_ended(call: Callable[..., Any]) -> None:
    began = time.monotonic()
    assert isinstance(call(0.1, busy, 20), DeadlineExceededError)
    assert time.monotonic() - began < 15


def test_except_exception_does_not_swallow_it() -> None:
    def stubborn() -> None:
        while True:
            with contextlib.suppress(Exception):
                time.sleep(20)

    assert isinstance(outcome(lambda: call_within(0.1, stubborn)), DeadlineExceededError)


def test_a_call_that_swallows_everything_once_is_interrupted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "_REPEAT", 0.05)
    caught: list[BaseException] = []

    def stubborn() -> None:
        while len(caught) < 3:
            try:
                time.sleep(20)
            except BaseException as error:
                caught.append(error)

        time.sleep(20)

    assert isinstance(outcome(lambda: call_within(0.1, stubborn)), DeadlineExceededError)
    assert len(caught) == 3


@pytest.mark.parametrize("answer", ["return", "raise"])
def test_what_comes_of_a_call_that_swallowed_it_comes_too_late(answer: str) -> None:
    def clever() -> str:
        try:
            time.sleep(20)
        except BaseException:
            if answer == "raise":
                raise ValueError("converted") from None
        return "fallback"

    assert isinstance(outcome(lambda: call_within(0.1, clever)), DeadlineExceededError)


def test_an_interrupt_by_the_user_stays_one() -> None:
    def interrupted() -> None:
        try:
            time.sleep(20)
        except BaseException:
            raise KeyboardInterrupt from None

    assert isinstance(outcome(lambda: call_within(0.1, interrupted)), KeyboardInterrupt)


def test_the_function_cleans_up() -> None:
    steps = []

    def tidy() -> None:
        try:
            time.sleep(20)
        finally:
            steps.append("cleaned")

    assert isinstance(outcome(lambda: call_within(0.1, tidy)), DeadlineExceededError)
    assert steps == ["cleaned"]


# ---------------------------------------------------------------- beside others


def test_an_alarm_of_somebody_else_is_left_alone() -> None:
    """pytest-timeout owns SIGALRM and ITIMER_REAL."""
    rung = []
    previous = signal.signal(signal.SIGALRM, lambda number, frame: rung.append(number))
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        assert call_within(5, busy, 0.2) == "done"
        assert rung == [signal.SIGALRM]
        signal.setitimer(signal.ITIMER_REAL, 60)
        assert isinstance(outcome(lambda: call_within(0.05, time.sleep, 20)), DeadlineExceededError)
        assert 50 < signal.getitimer(signal.ITIMER_REAL)[0] <= 60
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, previous)


def test_a_handler_of_somebody_else_is_put_back() -> None:
    previous = signal.signal(signal.SIGVTALRM, signal.SIG_IGN)
    try:
        assert call_within(5, busy, 0) == "done"
        assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_IGN
        assert isinstance(outcome(lambda: call_within(0.05, time.sleep, 20)), DeadlineExceededError)
        assert signal.getsignal(signal.SIGVTALRM) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGVTALRM, previous)


@pytest.mark.parametrize(("outer", "inner"), [(0.1, 10), (10, 0.1), (0.1, 0.1)])
def test_nested_calls(outer: float, inner: float) -> None:
    began = time.monotonic()
    assert isinstance(outcome(lambda: call_within(outer, call_within, inner, time.sleep, 20)), DeadlineExceededError)
    assert time.monotonic() - began < 8


def test_a_nested_call_that_is_late_leaves_the_outer_one_its_time() -> None:
    def patient() -> str:
        first = outcome(lambda: call_within(0.05, time.sleep, 20))
        assert isinstance(first, DeadlineExceededError)
        time.sleep(0.2)
        return "done"

    assert call_within(10, patient) == "done"


# ---------------------------------------------------------------- async


async def nap(seconds: float) -> str:
    await asyncio.sleep(seconds)
    return "done"


def test_an_async_function_is_awaited(call: Callable[..., Any]) -> None:
    assert call(5, call_and_await, nap, 0.01) == "done"
    assert call(None, call_and_await, nap, 0) == "done"
    assert call_and_await(len, "four") == 4


def test_an_async_function_is_ended() -> None:
    began = time.monotonic()
    assert isinstance(outcome(lambda: call_within(0.1, call_and_await, nap, 20)), DeadlineExceededError)
    assert time.monotonic() - began < 15


def test_an_async_function_that_computes_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deadlines, "_REPEAT", 0.05)

    async def parent() -> None:
        async def child() -> None:
            busy(20)

        await asyncio.gather(child(), nap(20))

    began = time.monotonic()
    assert isinstance(outcome(lambda: call_within(0.1, call_and_await, parent)), DeadlineExceededError)
    assert time.monotonic() - began < 15


def test_anything_that_can_be_awaited_is(call: Callable[..., Any]) -> None:
    class Later:
        def __await__(self) -> Any:
            return nap(0).__await__()

    assert call(5, call_and_await, Later) == "done"


# ---------------------------------------------------------------- a limit of CPU time


def compute(cpu: float) -> str:
    """Use up so many seconds of CPU time."""
    until = time.process_time() + cpu
    while time.process_time() < until:
        pass
    return "done"


def test_what_computes_for_too_long_is_interrupted() -> None:
    with pytest.raises(KeyboardInterrupt, match=r"longer than 0\.05 s of CPU time"), interrupted_after(0.05):
        compute(30)


def test_what_swallows_the_interruption_is_interrupted_again() -> None:
    swallowed = []

    def swallow() -> None:
        try:
            compute(30)
        except KeyboardInterrupt as error:
            swallowed.append(error)
        compute(30)

    with pytest.raises(KeyboardInterrupt), interrupted_after(0.02):
        swallow()
    assert len(swallowed) == 1


def test_what_waits_is_not_interrupted_and_what_follows_neither() -> None:
    """The limit is of CPU time: a busy machine makes nothing long."""
    with interrupted_after(0.05):
        time.sleep(0.2)
    assert compute(0.1) == "done"


def test_an_error_inside_is_raised_as_it_is() -> None:
    with pytest.raises(ValueError, match="as it is"), interrupted_after(5):
        raise ValueError("as it is")


def test_beside_the_main_thread_there_is_no_limit() -> None:
    results = []

    def run() -> None:
        with interrupted_after(0.01):
            results.append(compute(0.05))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert results == ["done"]
