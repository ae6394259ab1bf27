"""Ctrl-C ends a command with one line and exit code 130, soon even while native code runs.

Python raises KeyboardInterrupt when native code returns: XLA compiles for seconds to minutes. So a thread that the
signal wakes ends the process if it still runs after ``_GRACE_S``. Files are written beside their places and renamed,
and the kernel ends the processes of a process that ends (``subprocesses``): nothing is left half-written or running.
"""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import tempfile
import threading
import types
from collections.abc import Iterator
from typing import NoReturn

from fusionlab.cli.exit_codes import EXIT_CODES
from fusionlab.cli.terminal import say

_GRACE_S = 2.0


class Interruption:
    """The interruption of a command: one line on stderr, printed once."""

    def __init__(self) -> None:
        self._printed, self._left, self._seen = threading.Event(), threading.Event(), False

    def tell(self, line: str = "") -> None:
        """Print ``line``, or "interrupted", on stderr, unless a line is printed already."""
        if not self._printed.is_set():
            self._printed.set()
            say(line or "interrupted")

    @contextlib.contextmanager
    def ending_promptly(self) -> Iterator[None]:
        """A context in which SIGINT ends the process after a grace period; the process is as before after it.

        It does nothing outside the main thread, and where SIGINT is ignored or has another handler.
        """
        with self._watched():
            try:
                yield
            except BaseException as error:  # an extension that is being imported makes an ImportError of it
                if self._seen or isinstance(error, KeyboardInterrupt):
                    self._end()
                raise

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        """A context in which SIGINT wakes a thread that ends the process a while after it."""
        own = threading.current_thread() is threading.main_thread()
        if not own or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
            yield
            return
        woken, wakes = os.pipe()
        os.set_blocking(wakes, False)
        hook, old = sys.unraisablehook, signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
        watcher = threading.Thread(target=self._end_late, args=(woken,), daemon=True)
        watcher.start()
        signal.signal(signal.SIGINT, self._see)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.set_wakeup_fd(old)
            sys.unraisablehook = hook
            self._left.set()
            with contextlib.suppress(BlockingIOError):  # full of signals, which the watcher has seen
                os.write(wakes, b"\0")
            watcher.join()
            os.close(woken)
            os.close(wakes)

    def _see(self, number: int, frame: types.FrameType | None) -> None:
        self._seen = True
        sys.unraisablehook = lambda _: None  # callbacks of the garbage collector cannot raise, and print a traceback
        signal.default_int_handler(number, frame)

    def _end_late(self, woken: int) -> None:
        """Wait for SIGINT, and end the process a while after it, unless the context is left before."""
        while os.read(woken, 1) != bytes([signal.SIGINT]):
            if self._left.is_set():
                return
        if self._left.wait(_GRACE_S):
            return
        try:
            for folder in [one for one in gc.get_objects() if isinstance(one, tempfile.TemporaryDirectory)]:
                with contextlib.suppress(OSError):  # native code may be writing into it
                    folder.cleanup()  # the main thread is in native code, and does not leave their contexts
        finally:
            self._end()

    def _end(self) -> NoReturn:
        """End the process at once: at a usual exit it would wait for its threads, whatever they wait for."""
        unwritable = (OSError, ValueError, AttributeError)  # nobody reads; closed; absent
        try:
            with contextlib.suppress(*unwritable):
                self.tell()
            with contextlib.suppress(*unwritable):
                sys.stdout.flush()
            with contextlib.suppress(*unwritable):
                sys.stderr.flush()
        finally:
            os._exit(EXIT_CODES["interrupted"])
