"""The terminal: the destinations of results, progress and XLA's log.

XLA writes to file descriptor 2 directly: warnings about slow compiles or absent devices. After ``keep_native_log``
these lines go to a file; Python's stderr is unaffected.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import logging
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

import click

from fusionlab.errors import InputError
from fusionlab.store import cache_folder, expanded

if TYPE_CHECKING:
    from rich.console import Console

LOG_VARIABLE = "FUSIONLAB_LOG"
"""A file for the native libraries' log; ``-`` leaves it on stderr."""

_MOST_LOG_BYTES = 4 * 2**20
_SILENT_S = 2.0
_TICK_S = 1.0


def start() -> None:
    """Import JAX once, without the noise of its plugins; XLA's later output goes to its log."""
    from fusionlab import jax_setup

    _say_warnings()
    keep_native_log()
    jax_setup.load_jax()


class _Said(logging.Handler):
    """Prints a record as every other line for the user."""

    def emit(self, record: logging.LogRecord) -> None:
        say(self.format(record))


def _say_warnings() -> None:
    """Print our warnings on stderr, unless handlers of the process print them."""
    ours = logging.getLogger("fusionlab")
    if not ours.hasHandlers():
        ours.addHandler(_Said(logging.WARNING))


def log_path() -> Path | None:
    """The path of the native log; None: stderr.

    It is ``$FUSIONLAB_LOG``, else ``logs/xla.log`` beside the compile cache, else among temporary files.
    """
    given = os.environ.get(LOG_VARIABLE)
    if given == "-":
        return None
    if given and (path := expanded(given, LOG_VARIABLE)) is not None:
        return path
    folder = None if given else cache_folder()
    return (_temporary_folder() if folder is None else folder) / "logs" / "xla.log"


def _temporary_folder() -> Path:
    return Path(tempfile.gettempdir()) / f"fusionlab-{os.getuid()}"


def keep_native_log() -> Path | None:
    """Send what native code writes to file descriptor 2 to the log, once; return the file, or None for stderr.

    Where the log cannot be written, it lies among temporary files; where these cannot be written either, what native
    code writes is dropped. Does nothing if stderr is not descriptor 2 (under a test). A crash still prints Python's
    traceback on stderr.
    """
    path = log_path()
    if path is None or not _is_descriptor_2(sys.stderr):
        return None
    for place in (path, _temporary_folder() / "logs" / "xla.log", Path(os.devnull)):
        with contextlib.suppress(OSError):
            path, log = place, _opened_log(place)
            break
    own = os.dup(2)
    sys.stderr.flush()
    os.dup2(log, 2)
    os.close(log)
    _log_failing_passes_to_descriptor_2()
    sys.stderr = os.fdopen(own, "w", buffering=1, encoding=sys.stderr.encoding, errors=sys.stderr.errors)
    with contextlib.suppress(OSError, ValueError):
        faulthandler.enable(sys.stderr)
    return path


def _opened_log(path: Path) -> int:
    """The descriptor of the log, after a line for this command; OSError where it cannot be written."""
    path.parent.mkdir(parents=True, exist_ok=True)
    large = path.is_file() and path.stat().st_size > _MOST_LOG_BYTES
    log = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | (os.O_TRUNC if large else 0), 0o600)
    try:
        os.write(log, f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} {' '.join(sys.argv[1:])}\n".encode())
    except OSError:
        os.close(log)
        raise
    return log


def _log_failing_passes_to_descriptor_2() -> None:
    """Send tracebacks of failed passes, which are for their authors, to the log; commands print one line on stderr."""
    passes = logging.getLogger("fusionlab.passes")
    passes.addHandler(logging.StreamHandler(os.fdopen(2, "w", buffering=1, errors="replace", closefd=False)))
    passes.propagate = False


def _is_descriptor_2(stream: IO[str]) -> bool:
    try:
        return stream.fileno() == 2
    except (OSError, ValueError, AttributeError):
        return False


class Steps:
    """Lines of progress on stderr. On a terminal a step of more than two seconds shows its elapsed time.

    ``clear`` removes the seconds from the screen, before anything else is printed.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._started: float | None = None
        self._shown = False
        self._thread: threading.Thread | None = None

    def __call__(self, line: str) -> None:
        self.clear()
        click.echo(line, err=True)
        if _can_tick():
            self._started = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._tick, daemon=True)
                self._thread.start()

    def clear(self) -> None:
        """Remove the seconds from the screen until the next line of progress."""
        with self._lock:
            self._started = None
            if self._shown:
                sys.stderr.write("\r\x1b[K")
                sys.stderr.flush()
            self._shown = False

    def _tick(self) -> None:
        while True:
            time.sleep(_TICK_S)
            with self._lock:
                if self._started is None:
                    continue
                seconds = time.monotonic() - self._started
                if seconds >= _SILENT_S:
                    with contextlib.suppress(OSError, ValueError):
                        sys.stderr.write(f"\r  {seconds:,.0f} s\x1b[K")
                        sys.stderr.flush()
                    self._shown = True


steps = Steps()
"""The instance of the command line."""


def progress_for(quiet: bool) -> Callable[[str], None]:
    """Prints a line of progress on stderr (on a terminal with the seconds since), or nothing."""
    return (lambda line: None) if quiet else steps


def say(line: str) -> None:
    """Print a line for the user on stderr."""
    steps.clear()
    click.echo(f"fusionlab: {line}", err=True)


def console_for(as_json: bool) -> Console:
    """The console for tables: stdout, or none when stdout is for JSON. Wide enough when stdout is not a terminal.

    InputError when stdout is for JSON and closed.
    """
    from rich.console import Console

    class Results(Console):
        """Prints below the progress, not into it."""

        def print(self, *objects: Any, **how: Any) -> None:
            steps.clear()
            super().print(*objects, **how)

    if as_json:
        if sys.stdout is None:
            raise InputError("--json: standard output is closed; open it, or leave out --json")
        return Console(quiet=True)
    # Names and shapes in brackets are not markup: fusionlab[deepqmc].
    return Results(highlight=False, markup=False, emoji=False, width=None if is_terminal(sys.stdout) else 160)


def finish(document: Any, as_json: bool) -> None:
    """End a verb: print its document on stdout, if requested. OSError where stdout cannot be written to."""
    steps.clear()
    if as_json:
        click.echo(json.dumps(document, indent=2, allow_nan=False, default=str))
    if sys.stdout is not None:  # closed by the shell: >&-
        sys.stdout.flush()


def drop_stdout() -> None:
    """Drop what stdout still holds and cannot be written: Python would write it at its exit."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        if sys.stdout.fileno() == 1:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def is_terminal(stream: IO[str] | None) -> bool:
    """True for a terminal; False for a stream that the shell closed, which Python has as None."""
    return stream is not None and stream.isatty()


def _can_tick() -> bool:
    return is_terminal(sys.stderr) and os.environ.get("TERM", "") not in ("", "dumb")
