"""Subprocesses of fusionlab, under limits: whatever happens there, this process goes on.

``call(function, ...)`` runs a function of a module in ``python -m fusionlab.subprocesses MODULE FUNCTION``. Arguments
and result are JSON, with bytes and NumPy arrays anywhere in it; they go through stdin and stdout, and nothing is ever
unpickled. The reader of foreign modules (``hlo.sandbox``) stays apart: it is kept between requests, starts without JAX
and trusts neither side.
"""

from __future__ import annotations

import contextlib
import importlib
import io
import json
import os
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from fusionlab.jax_setup import VARIABLES

_END_WITH_MAKER = """
import ctypes, os, signal, sys
parent, *command = sys.argv[1:]
if prctl := getattr(ctypes.CDLL(None), "prctl", None):
    prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG
    if os.getppid() != int(parent):
        sys.exit(1)
os.execv(command[0], command)
"""
_STOP_POLL_S = 0.1


class ProcessFailed(Exception):
    """The process returned nothing; the message says why. ``exit_code`` is None when it timed out."""

    def __init__(self, reason: str, exit_code: int | None) -> None:
        super().__init__(reason)
        self.exit_code = exit_code


@dataclass(frozen=True)
class Ended:
    """The end of a command: ``exit_code`` (None: timed out; negative: the signal's number), and its output."""

    exit_code: int | None
    output: bytes
    errors: str
    seconds: float

    @property
    def last_line(self) -> str:
        """The last line on stderr; "" when there was none."""
        return ([""] + [line.strip() for line in self.errors.splitlines() if line.strip()])[-1]


class Running:
    """A command, started on construction. It ends after ``limit_s`` seconds, with all its descendants.

    stderr goes to ``log`` where there is one. ``grace_s`` is between SIGTERM and SIGKILL. On Linux it also ends with
    the thread that started it, however that ends: an orphan would disturb later timings. The command sets its death
    signal (prctl(2)) itself before exec, not between fork and exec in a copy of the parent, which may have threads.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        limit_s: float,
        *,
        request: bytes = b"",
        log: Path | None = None,
        grace_s: float = 0.0,
    ) -> None:
        self._limit_s, self._grace_s, self._started = limit_s, grace_s, time.monotonic()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by wait
        self._errors: IO[bytes] = log.open("w+b") if log else tempfile.TemporaryFile()  # noqa: SIM115
        with tempfile.TemporaryFile() as given:
            given.write(request)
            given.seek(0)
            self._process = subprocess.Popen(
                [sys.executable, "-I", "-S", "-c", _END_WITH_MAKER, str(os.getpid()), *command],
                stdin=given,
                stdout=self._output,
                stderr=self._errors,
                start_new_session=True,
                env=environment,
            )

    def wait(self, stop: threading.Event | None = None) -> Ended:
        """The outcome, once it has ended or timed out, or ``stop`` was set."""
        code: int | None = None
        try:
            code = self._process.wait(max(0.0, self._left_s())) if stop is None else self._wait_or_stop(stop)
        except subprocess.TimeoutExpired:
            pass
        finally:
            self._end()
        with self._output, self._errors:
            self._output.seek(0)
            self._errors.seek(0)
            errors = self._errors.read().decode("utf-8", "replace")
            return Ended(code, self._output.read(), errors, time.monotonic() - self._started)

    def _left_s(self) -> float:
        return self._limit_s - (time.monotonic() - self._started)

    def _wait_or_stop(self, stop: threading.Event) -> int | None:
        while self._process.poll() is None and self._left_s() > 0:
            if stop.wait(_STOP_POLL_S):
                return -signal.SIGTERM
        return self._process.poll()

    def _end(self) -> None:
        """Terminate it and its descendants: by SIGTERM if there is a grace period, then by SIGKILL."""
        numbers = [signal.SIGTERM, signal.SIGKILL] if self._grace_s else [signal.SIGKILL]
        for number in numbers:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(self._grace_s or None)
                return


def call(
    function: Callable[..., Any],
    *arguments: Any,
    limit_s: float,
    memory_limited: bool = False,
    stop: threading.Event | None = None,
) -> Any:
    """The result of ``function``, a top-level function of its module, from a process of its own.

    ProcessFailed with the last line of its stderr when it fails, is killed, or takes longer than the limit, and where
    it cannot be started. Its memory can be limited to three quarters of the machine's.
    """
    words = [function.__module__, function.__name__, *(["limited"] if memory_limited else [])]
    try:
        ended = Running(*module_command(__name__, words), limit_s, request=encode(arguments)).wait(stop)
    except OSError as error:  # no space for its files, or no memory for a process
        raise ProcessFailed(f"it cannot be started: {error.strerror or error}", 1) from None
    if ended.exit_code is None:
        raise ProcessFailed(f"it did not finish within {limit_s:g} s", None)
    if ended.exit_code:
        raise ProcessFailed(ended.last_line or "no message", ended.exit_code)
    try:
        return decode(ended.output)
    except (ValueError, LookupError):
        raise ProcessFailed("no result, exit code 0", 0) from None


def module_command(module: str, arguments: Sequence[str] = ()) -> tuple[list[str], dict[str, str]]:
    """The command line of ``python -m module arguments`` and its environment.

    The process finds fusionlab where this one does, installed or not, and imports nothing from its working folder,
    where an untrusted ``json.py`` may lie beside an untrusted file. Its BLAS has one thread: several wait for one
    another on a busy machine, which took five times as long for small matrices. JAX's variables are ``jax_setup``'s.
    """
    source = str(Path(__file__).resolve().parents[1])
    paths = [source, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]  # an empty one is that folder
    environment = {"OPENBLAS_NUM_THREADS": "1", **VARIABLES, **os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    return [sys.executable, "-P", "-m", module, *arguments], environment


def limit_memory() -> None:
    """Three quarters of the machine's memory for this process's data, so that it cannot take the machine down."""
    limit_bytes = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") * 3 // 4
    resource.setrlimit(resource.RLIMIT_DATA, (limit_bytes, limit_bytes))


def encode(value: Any) -> bytes:
    """A line of JSON, in which the bytes and arrays of ``value`` have placeholders, followed by these."""
    parts = io.BytesIO()

    def place(found: Any) -> dict[str, Any]:
        content = found if isinstance(found, bytes) else found.tobytes()
        where: dict[str, Any] = {"bytes at": parts.tell(), "size": len(content)}
        parts.write(content)
        return where if isinstance(found, bytes) else {**where, "dtype": found.dtype.name, "shape": found.shape}

    return json.dumps(value, default=place).encode() + b"\n" + parts.getvalue()


def decode(content: bytes) -> Any:
    """The inverse of ``encode``; tuples are lists."""
    line, _, parts = content.partition(b"\n")

    def taken(found: dict[str, Any]) -> Any:
        if "bytes at" not in found:
            return found
        part = parts[found["bytes at"] : found["bytes at"] + found["size"]]
        if "dtype" not in found:
            return part
        import ml_dtypes  # noqa: F401  # names bfloat16
        import numpy as np

        return np.frombuffer(part, np.dtype(found["dtype"])).reshape(found["shape"]).copy()

    return json.loads(line, object_hook=taken)


def main(module: str, function: str, *limited: str) -> None:
    """Call the function with the arguments on stdin; what libraries print to stdout is dropped."""
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    if limited:
        limit_memory()
    try:
        result = getattr(importlib.import_module(module), function)(*decode(sys.stdin.buffer.read()))
    except Exception as error:  # the caller shows one line, whatever went wrong
        sys.exit(f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}")
    with answer:
        answer.write(encode(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
