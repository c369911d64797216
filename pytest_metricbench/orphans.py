"""What this process started does not outlive it, even when it is killed and cannot clean up itself.

A small shell process is told through a pipe which process groups run. The pipe ends when this process does, however
it ends, and what is left of the groups is killed then: an agent that nobody waits for would go on and cost.
"""

import atexit
import os
import subprocess
import threading
from contextlib import suppress
from typing import Final

_WATCH: Final = """
live=
while read -r word group; do
  case $word in
    started) live="$live $group" ;;
    ended)
      kept=
      for other in $live; do [ "$other" = "$group" ] || kept="$kept $other"; done
      live=$kept ;;
  esac
done
for group in $live; do kill -s KILL -- "-$group" 2>/dev/null; done
"""


class OrphanWatch:
    """Tells a shell process which groups run; the shell starts with the first of them."""

    def __init__(self) -> None:
        """Nothing is started yet."""
        self._lock: Final = threading.RLock()
        self._shell: subprocess.Popen[bytes] | None = None
        self._owner = 0

    def prepare(self) -> None:
        """Have the shell running, so that a group can be told of at once."""
        with self._lock, suppress(OSError):
            self._running()

    def started(self, group: int) -> None:
        """A group runs."""
        self._tell(f"started {group}\n")

    def ended(self, group: int) -> None:
        """A group is gone, or about to be killed; its number may be given to another soon."""
        self._tell(f"ended {group}\n")

    def close(self) -> None:
        """Let the shell end."""
        with self._lock:
            shell, self._shell = self._shell, None
            if shell is not None and self._owner == os.getpid():
                with suppress(OSError, ValueError, subprocess.TimeoutExpired):
                    shell.communicate(timeout=2)

    def _tell(self, line: str) -> None:
        with self._lock, suppress(OSError):  # without a shell there is no watch, and all else works
            pipe = self._running().stdin
            if pipe is not None:
                os.write(pipe.fileno(), line.encode("ascii"))

    def _running(self) -> subprocess.Popen[bytes]:
        if self._shell is None or self._owner != os.getpid():  # a fork is another process, with groups of its own
            self._owner = os.getpid()
            self._shell = subprocess.Popen(
                ["/bin/sh", "-c", _WATCH],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env={},
                start_new_session=True,  # what kills this process's group must not kill the watch
            )
        return self._shell


WATCH: Final = OrphanWatch()
"""The watch of this process."""
atexit.register(WATCH.close)
