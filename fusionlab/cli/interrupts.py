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
import time
import types
from collections.abc import Iterator
from typing import NoReturn

from fusionlab.cli.exit_codes import EXIT_CODES
from fusionlab.cli.terminal import say

_GRACE_S = 2.0


class Interruption:
    """The interruption of a command: told once, with a line of the command's or that it was interrupted."""

    def __init__(self) -> None:
        self._told, self._seen = threading.Event(), False

    def tell(self, line: str = "") -> None:
        """Say so on stderr, unless that is said."""
        if not self._told.is_set():
            self._told.set()
            say(line or "interrupted")

    @contextlib.contextmanager
    def ending_promptly(self) -> Iterator[None]:
        """A context, of the main thread of a process of our own, in which SIGINT ends it after a grace period."""
        if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not ignored, as in the background
            woken, wakes = os.pipe()
            os.set_blocking(wakes, False)
            signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
            threading.Thread(target=self._end_late, args=(woken,), daemon=True).start()
            signal.signal(signal.SIGINT, self._see)
        try:
            yield
        except BaseException as error:  # an extension that is being imported makes an ImportError of KeyboardInterrupt
            if self._seen or isinstance(error, KeyboardInterrupt):
                self._end()
            raise

    def _see(self, number: int, frame: types.FrameType | None) -> None:
        self._seen = True
        sys.unraisablehook = lambda _: None  # callbacks of the garbage collector cannot raise, and print a traceback
        signal.default_int_handler(number, frame)

    def _end_late(self, woken: int) -> None:
        """Wait for SIGINT, and end the process a while after it."""
        while os.read(woken, 1) != bytes([signal.SIGINT]):
            pass
        time.sleep(_GRACE_S)
        for folder in [one for one in gc.get_objects() if isinstance(one, tempfile.TemporaryDirectory)]:
            folder.cleanup()  # the main thread is in native code, and does not leave their contexts
        self._end()

    def _end(self) -> NoReturn:
        """End the process at once: at a usual exit it would wait for its threads, whatever they wait for."""
        self.tell()
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(EXIT_CODES["interrupted"])
