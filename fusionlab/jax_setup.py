"""The start of JAX: the environment of our own processes, and a start without native log noise.

Importing this module sets nothing and imports no JAX. The command line and its worker processes set ``VARIABLES``,
unless the user has set them; in a user's own process ``load_jax`` sets the first two while plugins are loaded.

- ``JAX_SKIP_CUDA_CONSTRAINTS_CHECK=1``: without it the CUDA plugin raises where there is no GPU, and JAX prints the
  traceback. It only skips version checks; JAX still falls back to the CPU.
- ``TF_CPP_MIN_LOG_LEVEL=2``: XLA's informative lines and warnings; its errors are still printed.
- ``NPROC=1``: one thread in the pool of XLA's CPU client. jaxlib 0.10.2's batched LAPACK calls wait inside a pool
  thread for tasks that they put into the same pool; two such calls at once (the triangular solves of a determinant's
  derivatives) can wait for each other for ever. With one thread they run inline. Set NPROC yourself to override.

The plugin's libraries also write a few lines straight to file descriptor 2 while they are loaded; ``load_jax`` sends
these to the log instead.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import pkgutil
import signal
import sys
import threading
import types
from collections.abc import Iterator
from dataclasses import dataclass

VARIABLES = {"JAX_SKIP_CUDA_CONSTRAINTS_CHECK": "1", "TF_CPP_MIN_LOG_LEVEL": "2", "NPROC": "1"}
_OF_LOADING = ("JAX_SKIP_CUDA_CONSTRAINTS_CHECK", "TF_CPP_MIN_LOG_LEVEL")

_log = logging.getLogger(__name__)


def set_environment() -> None:
    """Set ``VARIABLES`` that are not set, for a process of our own; before JAX starts."""
    for name, value in VARIABLES.items():
        os.environ.setdefault(name, value)


def load_jax() -> None:
    """Import JAX and load its plugins, unless that is done, with their output going to the log, at level DEBUG."""
    if getattr(sys.modules.get("jax._src.xla_bridge"), "_plugins_registered", False):
        return
    with _interrupts_held(), _environment_of_loading(), captured_stderr() as captured:
        import jax  # noqa: F401  # the import itself is what is wanted
        from jax._src import xla_bridge

        with contextlib.suppress(AttributeError):  # private: without it JAX does the same a little later, and noisily
            xla_bridge._discover_and_register_pjrt_plugins()
    if captured.text:  # a plugin that fails to load is JAX's to report, by a traceback, and worth seeing
        _log.log(logging.WARNING if "Traceback" in captured.text else logging.DEBUG, "starting JAX: %s", captured.text)


def load_cuda_plugin() -> None:
    """Load JAX's CUDA plugin, if it is installed, into a JAX that started without it: it raises where there is no GPU
    and the check of its versions is not skipped."""
    try:
        import jax_plugins
        from jax._src import xla_bridge
    except ImportError:
        return
    if "cuda" in getattr(xla_bridge, "_backend_factories", {}):
        return
    for _, name, _ in pkgutil.iter_modules(jax_plugins.__path__):
        if name.startswith("xla_cuda"):
            with _environment_of_loading(), captured_stderr():
                importlib.import_module(f"jax_plugins.{name}").initialize()


def provide_cpu_devices(count: int, *, to_run: bool = False) -> None:
    """Let this machine's CPU be ``count`` devices, if JAX has not started yet. ``to_run``: with a thread for each of
    them, in which its collectives wait for the others."""
    import jax

    if to_run:
        os.environ["NPROC"] = str(2 * count)
    with contextlib.suppress(RuntimeError):  # JAX has started, with the devices that it has
        jax.config.update("jax_num_cpu_devices", count)


@contextlib.contextmanager
def _environment_of_loading() -> Iterator[None]:
    """A context in which what quietens the plugins is set; the environment is afterwards as it was."""
    added = [name for name in _OF_LOADING if name not in os.environ]
    os.environ.update((name, VARIABLES[name]) for name in added)
    try:
        yield
    finally:
        for name in added:
            os.environ.pop(name, None)


@contextlib.contextmanager
def _interrupts_held() -> Iterator[None]:
    """A context in which Ctrl-C waits: native modules that are being imported make other errors of it."""
    handle = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(handle):
        yield
        return
    held: list[tuple[int, types.FrameType | None]] = []
    signal.signal(signal.SIGINT, lambda number, frame: held.append((number, frame)))
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, handle)
        if held:
            handle(*held[0])


@dataclass
class Captured:
    """The captured output; ``text`` is set after the ``with`` block."""

    text: str = ""


@contextlib.contextmanager
def captured_stderr() -> Iterator[Captured]:
    """Collect everything that this process writes to file descriptor 2, native code included, while inside.

    Keep it short: other threads' messages are collected too, and those of a native abort are lost.
    """
    captured = Captured()
    try:
        saved = os.dup(2)
    except OSError:  # the process was started without a stderr
        yield captured
        return
    with os.fdopen(os.memfd_create("stderr"), "w+b") as sink:  # of no disk, which may be full
        _flush()
        os.dup2(sink.fileno(), 2)
        try:
            yield captured
        finally:
            _flush()
            os.dup2(saved, 2)
            os.close(saved)
            sink.seek(0)
            captured.text = sink.read().decode("utf-8", "replace").strip()


def _flush() -> None:
    with contextlib.suppress(AttributeError, ValueError, OSError):  # stderr may be absent, closed or replaced
        sys.stderr.flush()
