"""Python's cyclic garbage collector while a pass plans or a check evaluates.

Both make objects by the million, which starts one collection of *all* objects of the process after another, JAX's and
the user's too: a quarter of planning (PauliNet on CH4, 14.8 and 11.2 s; peak memory 848 and 884 MiB).
"""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

_YOUNG = (100_000, 20, 1_000_000)
"""Objects before the youngest generation is collected, and such collections before the older ones are: only new objects
are looked at."""
_changing = threading.Lock()


@contextlib.contextmanager
def young_only() -> Iterator[None]:
    """A context in which only young objects are collected; a collector that is turned off stays so."""
    with _changing:
        before = gc.get_threshold()
        changes = before != _YOUNG and before[0] > 0
        if changes:
            gc.set_threshold(*_YOUNG)
    try:
        yield
    finally:
        if changes:
            gc.set_threshold(*before)
