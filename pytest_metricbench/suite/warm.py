"""The warm process: it has imported pytest and the dependencies, nothing of the tested project, and forks servers.

Run as a script, with the number of its socket. It is a process of its own since forking pytest's, which has threads,
is a trap, and since a project must not see what pytest-metricbench imports.
"""

import importlib
import os
import socket
import sys
import traceback
from contextlib import suppress
from typing import Any, Final

_ROOT: Final = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def main(number: int) -> None:
    """Serve until the other side closes the socket."""
    # Where this package is not installed but on somebody's path, it is found beside this file; the project's tests are
    # not to find anything there.
    added = _ROOT not in sys.path
    if added:
        sys.path.append(_ROOT)
    from pytest_metricbench.suite import channel, inside, inside_pytest, overlay, waiting

    if added:
        sys.path.remove(_ROOT)
    inside_pytest.hide()
    control = socket.socket(fileno=number)
    start = channel.receive(control)
    if start is None:
        return
    inside_pytest.import_pytest()
    if start["plugins"] is not None:
        inside_pytest.import_plugins(start["plugins"])
    warm = Warm(control, channel, inside, overlay, waiting)
    channel.send(control, {"loaded": overlay.loaded_from(start["homes"])})
    warm.serve()


class Warm:
    """What the process does when it is asked. Its modules are handed to it: nothing can import them here any more."""

    def __init__(self, control: socket.socket, channel: Any, inside: Any, overlay: Any, waiting: Any) -> None:
        """Listen to ``control``."""
        self._control: Final = control
        self._channel: Final = channel
        self._inside: Final = inside
        self._overlay: Final = overlay
        self._waiting: Final = waiting
        self._servers: Final[dict[int, Any]] = {}

    def serve(self) -> None:
        """Answer until the other side closes the socket; then nothing that was forked is left."""
        try:
            while (command := self._channel.receive(self._control)) is not None:
                self._channel.send(self._control, self._answer(command))
        except (OSError, self._channel.ChannelError):  # the other side has gone
            pass
        finally:
            for server in self._servers.values():
                server.end()

    def _answer(self, command: dict[str, Any]) -> dict[str, Any]:
        if "serve" in command:
            _, passed, _, _ = socket.recv_fds(self._control, 1, 1)  # the server's own socket
            pid = self._fork_server(passed[0])
            self._servers[pid] = self._waiting.Child(pid)
            return {"pid": pid}
        if "end" in command:
            code, _ = self._servers.pop(command["end"]).end()
            return {"ended": command["end"], "code": code}
        return {"preloaded": self._preload(command["preload"], command["homes"])}

    def _fork_server(self, number: int) -> int:
        for stream in (sys.stdout, sys.stderr):
            stream.flush()
        pid = os.fork()
        if pid:
            os.close(number)
            return pid
        try:
            self._waiting.die_with_parent()
            os.setsid()
            self._control.close()
            self._inside.serve(socket.socket(fileno=number))
        except BaseException:
            with suppress(OSError):
                os.write(2, traceback.format_exc().encode("utf-8", "replace"))
        os._exit(1)

    def _preload(self, names: list[str], homes: list[str]) -> bool:
        """Import dependencies here, unless they import the project too (tried in a fork); gives whether it was done."""
        pid = os.fork()
        if not pid:
            code = 1
            try:
                self._waiting.die_with_parent()
                code = 0 if self._import_all(names, homes) else 1
            finally:
                os._exit(code)
        _, status = os.waitpid(pid, 0)
        return os.waitstatus_to_exitcode(status) == 0 and self._import_all(names, homes)

    def _import_all(self, names: list[str], homes: list[str]) -> bool:
        for name in names:
            if name not in sys.modules:
                try:
                    importlib.import_module(name)
                except Exception:
                    return False
        return not self._overlay.loaded_from(homes)


if __name__ == "__main__":
    main(int(sys.argv[1]))
