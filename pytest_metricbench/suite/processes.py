"""The runner's side: the warm process, its servers, and one attempt asked of a server."""

import atexit
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from pytest_metricbench.orphans import WATCH
from pytest_metricbench.process_groups import running_group, signal_group
from pytest_metricbench.processes import log_tail
from pytest_metricbench.suite.channel import ChannelError, receive, send
from pytest_metricbench.suite.child import TEMPORARY

_START_SECONDS: Final = 120.0
"""What starting pytest, or importing dependencies, may take on a busy machine."""
_ANSWER_SECONDS: Final = 10.0
"""What a server may take beyond the limit of its attempt."""
_SERVERS_LIMIT: Final = 48
"""Servers that wait for attempts at a time; each is a process of some ten megabytes."""


class SuiteError(Exception):
    """The tests cannot be run at all: pytest does not start, or a process of ours is gone. Says nothing of a mutant."""


@dataclass(slots=True)
class Server:
    """A process in which the tests of a file are collected for one variant, or what became of it instead."""

    pid: int
    channel: socket.socket
    scratch: Path
    ready: Mapping[str, Any] = field(default_factory=dict)
    """What it said of the collection."""
    problem: tuple[Literal["collection", "timeout", "elsewhere"], str] | None = None
    """Why no attempt can be made with it."""
    mutant: str | None = None
    """The mutant that its forks were told last to become, where it can be several."""


class Processes:
    """The warm process of this process, and the servers forked from it; all of them end with :meth:`close`."""

    def __init__(self, environment: Mapping[str, str], homes: Sequence[str]) -> None:
        """Start the warm process.

        Args:
            environment: of all processes of the tested project.
            homes: real paths of the source under test, none of which may be imported there.

        Raises:
            SuiteError: it cannot be started.
        """
        self.owner: Final = os.getpid()
        self._stack: Final = ExitStack()
        self._servers: Final[OrderedDict[tuple[str, str], Server]] = OrderedDict()
        self._open: Final[dict[int, Server]] = {}
        """All servers that were not ended yet, by process."""
        self._count = 0
        self.scratch: Final = Path(tempfile.mkdtemp(prefix="metricbench-suite-"))
        self._attempts = self.scratch / "a"
        self._stack.callback(shutil.rmtree, self.scratch, ignore_errors=True)
        atexit.register(self.close)
        self._stack.callback(atexit.unregister, self.close)
        try:
            self._warm = self._start(environment, homes)
        except BaseException:
            self.close()
            raise

    def _start(self, environment: Mapping[str, str], homes: Sequence[str]) -> socket.socket:
        """The socket of a warm process; one without plugins, where a plugin imports the source."""
        nothing = self.scratch / "nothing"
        nothing.mkdir()
        for plugins in (str(nothing), None):
            stack = ExitStack()
            self._stack.push(stack)
            warm = self._start_process(stack, environment)
            answer = self._answer(warm, {"homes": list(homes), "plugins": plugins})
            if not answer["loaded"]:
                return warm
            stack.close()
        raise SuiteError(f"{answer['loaded'][0]} cannot be tested with mutants: pytest itself imports it")

    def _start_process(self, stack: ExitStack, environment: Mapping[str, str]) -> socket.socket:
        ours, theirs = socket.socketpair()
        stack.callback(ours.close)
        log = self.scratch / "warm.log"
        with theirs, log.open("wb") as output:
            argv = [sys.executable, "-P", str(Path(__file__).with_name("warm.py")), str(theirs.fileno())]

            def start() -> subprocess.Popen[bytes]:
                return subprocess.Popen(
                    argv,
                    cwd="/",
                    env={"PYTHONHASHSEED": "0", **environment},
                    stdin=subprocess.DEVNULL,
                    stdout=output,
                    stderr=output,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )

            stack.enter_context(running_group(start))
        return ours

    def close(self) -> None:
        """End everything. In a fork of the process that started it: nothing is ours to end."""
        if self.owner != os.getpid():
            return
        for server in list(self._open.values()):
            self.end(server)
        self._servers.clear()
        self._stack.close()

    # ------------------------------------------------ servers

    def server(self, variant: str, file: str, job: Callable[[], dict[str, Any]], seconds: float) -> Server:
        """The server of a variant and a test file; started when there is none.

        Args:
            variant: names the mutated sources.
            file: the test file.
            job: makes what the server is asked to be, see :class:`.inside.Server`; ``scratch`` is added.
            seconds: that it may take to be ready.

        Raises:
            SuiteError: the warm process is gone.
        """
        key = (variant, file)
        if key in self._servers:
            self._servers.move_to_end(key)
            return self._servers[key]
        while len(self._servers) >= _SERVERS_LIMIT:
            self._discard(next(iter(self._servers)))
        server = self._servers[key] = self.new_server(job(), seconds)
        return server

    def new_server(self, job: dict[str, Any], seconds: float) -> Server:
        """A server that nobody else is given; it is the caller's to :meth:`end`.

        Raises:
            SuiteError: the warm process is gone.
        """
        self._count += 1
        scratch = self.scratch / f"s{self._count}"
        scratch.mkdir()
        ours, theirs = socket.socketpair()
        with theirs:
            pid = self._ask({"serve": True}, theirs.fileno())["pid"]
        WATCH.started(pid)
        server = self._open[pid] = Server(pid, ours, scratch)
        try:
            send(ours, job | {"scratch": str(scratch)})
            answer = receive(ours, seconds)
        except TimeoutError:
            self.end(server)
            server.problem = ("timeout", f"collecting took longer than {seconds:g} s and was stopped")
            return server
        except (OSError, ChannelError):
            answer = None
        if answer is None:
            code = self.end(server)
            kind: Literal["timeout", "collection"] = "timeout" if code == -signal.SIGXCPU else "collection"
            server.problem = (kind, f"collecting {ending(code)}{_with_tail(scratch / 'server.log')}")
        elif "failed" in answer or answer["errors"]:
            self.end(server)
            server.problem = ("collection", (answer["errors"] or [answer.get("failed")])[0])
        else:
            server.ready = answer
            if answer["elsewhere"] is not None:
                self.end(server)
                server.problem = ("elsewhere", answer["elsewhere"])
        return server

    def end(self, server: Server) -> int:
        """End a server with all that it started, and give its exit code. Ended twice: 0."""
        if self._open.pop(server.pid, None) is None:
            return 0
        server.channel.close()
        code = 0
        with suppress(SuiteError):
            code = int(self._ask({"end": server.pid})["code"])
        WATCH.ended(server.pid)
        return code

    def _discard(self, key: tuple[str, str]) -> None:
        server = self._servers.pop(key)
        self.end(server)
        shutil.rmtree(server.scratch, ignore_errors=True)

    def preload(self, modules: list[str], homes: list[str]) -> bool:
        """Import dependencies in the warm process, unless they import the source under test.

        Raises:
            SuiteError: the warm process is gone.
        """
        return bool(self._ask({"preload": modules, "homes": homes})["preloaded"])

    def _ask(self, command: dict[str, Any], passed: int | None = None) -> dict[str, Any]:
        return self._answer(self._warm, command, passed)

    def _answer(self, warm: socket.socket, command: dict[str, Any], passed: int | None = None) -> dict[str, Any]:
        try:
            send(warm, command)
            if passed is not None:
                socket.send_fds(warm, [b"\0"], [passed])
            answer = receive(warm, _START_SECONDS)
        except (OSError, ChannelError) as error:
            raise SuiteError(f"the process that runs the tests does not answer: {error}") from None
        if answer is None:
            raise SuiteError(f"the process that runs the tests is gone:\n{log_tail(self.scratch / 'warm.log')}")
        return answer

    # ------------------------------------------------ attempts

    def attempt(self, server: Server, request: dict[str, Any]) -> tuple[dict[str, Any], Path]:
        """Make attempts in one fork; gives what the server says, and the scratch folder with what they left.

        The folder is emptied when the next attempt is made: to make and remove one costs more than many a test.

        Raises:
            SuiteError: the server is gone, or does not answer.
        """
        scratch = self._emptied()
        started = None
        answered = False
        try:
            send(server.channel, request | {"scratch": str(scratch)})
            seconds = sum(test["seconds"] for test in request["tests"]) + _ANSWER_SECONDS
            while (answer := receive(server.channel, seconds)) is not None:
                if "started" not in answer:
                    answered = True
                    return answer, scratch
                started = answer["started"]
                WATCH.started(started)
        except (OSError, ChannelError) as error:  # a time-out is an OSError
            raise SuiteError(f"the server of the tests does not answer: {error}") from None
        finally:
            if started is not None:
                if not answered:
                    signal_group(started, signal.SIGKILL)
                WATCH.ended(started)
        raise SuiteError(f"the server of the tests is gone{_with_tail(server.scratch / 'server.log')}")

    def _emptied(self) -> Path:
        """The scratch folder of attempts, without what the last one left."""
        try:
            for entry in os.scandir(self._attempts):
                if entry.name != TEMPORARY:
                    os.unlink(entry)
                elif os.listdir(entry):
                    shutil.rmtree(entry)
        except OSError:  # a test took rights away, or is at it still: what is left goes with the whole
            self._count += 1
            self._attempts = self.scratch / f"a{self._count}"
        self._attempts.mkdir(exist_ok=True)
        return self._attempts


def ending(code: int) -> str:
    """In words how a process ended; a negative code is the signal that killed it."""
    if code < 0:
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:  # a real-time signal
            return f"was killed by signal {-code}"
    return f"ended the process with exit status {code}"


def _with_tail(log: Path) -> str:
    tail = log_tail(log)
    return f"; the end of its output:\n{tail}" if tail else ""
