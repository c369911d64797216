"""Which code runs in this process for a while: what never ran can still be exchanged, since nothing rests on it."""

import _thread
import sys
import threading
from types import CodeType, FrameType
from typing import Any, Final


class Calls:
    """Every code that is run from :meth:`start` to :meth:`stop`, in all threads; a profiler of Python's own kind.

    A coverage tool tells lines; a line with a whole function on it runs when the function is made. What starts threads
    is heeded from :meth:`heed_threads` on: one that is there before the start is not watched.
    """

    def __init__(self) -> None:
        """Nothing is watched yet."""
        self.seen: Final[dict[int, CodeType]] = {}
        """By identity: equal codes of two modules are not the same."""
        self._hook: Final = self._heed
        self._start_thread: Final = _thread.start_new_thread
        self._is_whole = True
        self._is_started = False

    def heed_threads(self) -> None:
        """Notice from now on threads that are started past ``threading``."""
        _thread.start_new_thread = self._start_unseen  # ``threading`` has its own name for it

    def start(self) -> None:
        """Begin; at the latest when the first code runs that matters."""
        self._is_whole = self._is_whole and threading.active_count() == 1
        self._is_started = True
        threading.setprofile(self._hook)
        sys.setprofile(self._hook)

    def stop(self) -> bool:
        """End; gives whether nothing can have run unseen: by a thread past ``threading``, or past another profiler."""
        _thread.start_new_thread = self._start_thread
        if not self._is_started:
            return True
        is_whole = self._is_whole and sys.getprofile() is self._hook and threading.getprofile() is self._hook
        sys.setprofile(None)
        threading.setprofile(None)
        # Greenlets keep what profiles them to themselves, and threads that are left go on.
        return is_whole and "greenlet" not in sys.modules and threading.active_count() == 1

    def _heed(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "call":
            code = frame.f_code
            self.seen[id(code)] = code

    def _start_unseen(self, *arguments: Any, **keywords: Any) -> int:
        self._is_whole = False
        return self._start_thread(*arguments, **keywords)
