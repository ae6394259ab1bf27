"""Settings of the process while a pass plans or a check evaluates: the garbage collector and the threads of BLAS."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator

from threadpoolctl import ThreadpoolController

_YOUNG = (100_000, 20, 1_000_000)
"""Objects before the youngest generation is collected, and such collections before the older ones are: only new objects
are looked at."""
_changing = threading.Lock()


@contextlib.contextmanager
def young_only() -> Iterator[None]:
    """A context in which only the young generation is collected; a disabled collector stays disabled.

    Planning and checks make objects by the million, which starts one collection of *all* objects of the process after
    another, JAX's and the user's too: a quarter of planning (PauliNet on CH4, 14.8 and 11.2 s).
    """
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


@contextlib.contextmanager
def one_blas_thread() -> Iterator[None]:
    """A context in which every BLAS of the process has one thread.

    Residues are contracted in thousands of small products, in which threads gain nothing and wait for each other: where
    another process has one of two cores, an evaluation of Orbformer's replay on C4H4 takes 20 s instead of 5.8.
    """
    with _changing:
        blas = ThreadpoolController().select(user_api="blas")
        limited = blas.limit(limits=1) if any((library["num_threads"] or 1) > 1 for library in blas.info()) else None
    try:
        yield
    finally:
        if limited is not None:
            with _changing:
                limited.restore_original_limits()
