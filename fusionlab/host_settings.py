"""Settings while a pass plans or a check evaluates: of JAX and NumPy, the garbage collector, the threads of BLAS."""

from __future__ import annotations

import contextlib
import gc
import threading
from collections.abc import Iterator, Mapping
from typing import Any

from threadpoolctl import ThreadpoolController

_YOUNG = (100_000, 20, 1_000_000)
"""Objects before the youngest generation is collected, and such collections before the older ones are: only new objects
are looked at."""
_changing = threading.Lock()

OWN_SETTINGS: Mapping[str, Any] = {
    "numpy_rank_promotion": "allow",
    "numpy_dtype_promotion": "standard",
    "default_matmul_precision": None,
    "legacy_prng_key": "allow",
    "debug_nans": False,
    "debug_infs": False,
    "debug_key_reuse": False,
    "enable_checks": False,
    "check_tracer_leaks": False,
    "disable_jit": False,
    "no_tracing": False,
    "transfer_guard": "allow",
}
"""The settings of JAX for what fusionlab traces and evaluates, by the name of their context in ``jax``."""


@contextlib.contextmanager
def own_settings() -> Iterator[None]:
    """A context in which JAX has ``OWN_SETTINGS``, and NumPy warns of floating-point errors as it does by default.

    A user's settings are for his own function: it is traced, lowered and run under them. Passes and checks trace other
    functions and run at inputs of their own, where strict promotion or a search for NaN would report fusionlab's work
    as an error of his. The settings change in this thread alone. Those with a meaning in the program
    (``jax_enable_x64``, random bits, devices) stay as they are.
    """
    import jax
    import numpy as np

    with contextlib.ExitStack() as stack:
        stack.enter_context(np.errstate(divide="warn", over="warn", under="ignore", invalid="warn"))
        for name, value in OWN_SETTINGS.items():
            stack.enter_context(getattr(jax, name)(value))
        yield


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
