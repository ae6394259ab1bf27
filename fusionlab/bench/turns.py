"""Processes that share one device: they lower, rewrite and check side by side, and have the device one at a time.

    prepare | prepare | prepare        a shared lock
    compile, run, time                 an exclusive lock: nobody compiles, runs or lowers beside it
                compile, run, time

XLA tunes its kernels by their clock while it compiles for an attached GPU, so compiling counts as use of the device.
"""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from fusionlab.errors import InputError


@dataclass(frozen=True)
class Turns:
    """The lock of all processes that name ``path`` (flock(2), which ends with its process); None: there are none."""

    path: Path | None = None

    def preparing(self) -> contextlib.AbstractContextManager[None]:
        """Beside others that prepare; waits while one has the device. InputError: the file cannot be locked."""
        return self._locked(fcntl.LOCK_SH)

    def alone(self) -> contextlib.AbstractContextManager[None]:
        """With the device for oneself; waits until nobody prepares or has it. InputError: it cannot be locked."""
        return self._locked(fcntl.LOCK_EX)

    @contextlib.contextmanager
    def _locked(self, how: int) -> Iterator[None]:
        if self.path is None:
            yield
            return
        try:
            file = self.path.open("a")
        except OSError as error:
            raise InputError(f"--turns {self.path}: cannot be opened: {error.strerror}") from None
        with file:
            try:
                fcntl.flock(file, how)
            except OSError as error:
                raise InputError(f"--turns {self.path}: cannot be locked: {error.strerror}") from None
            yield


NO_TURNS = Turns()
"""Those of a process that has the device for itself."""
