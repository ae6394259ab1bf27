"""Parse foreign modules in a separate process (``worker``), which may crash or hang."""

from __future__ import annotations

import atexit
import contextlib
import os
import select
import signal
import subprocess
import time

from fusionlab.hlo.sandbox.worker import FOREIGN, HEADER, MODULE, Foreign, Unreadable
from fusionlab.subprocesses import module_command

__all__ = ["Foreign", "Unreadable", "read_apart"]

TIME_LIMIT_S = 10.0
TIME_LIMIT_S_PER_MB = 2.0
"""A valid file takes a twentieth of it or less."""
_START_LIMIT_S = 60.0
_KEPT_BYTES = 1_000_000
"""The process is reused unless it has read a larger file, whose memory it would keep."""

_kept: list[subprocess.Popen[bytes]] = []


def read_apart(content: bytes) -> bytes:
    """The bytecode that MLIR writes after reading ``content`` (StableHLO text, bytecode, a portable artifact).

    Unreadable has the cause, also when the process that read it crashed or timed out; Foreign names the part of a
    valid module that is not studied.
    """
    process, start_s = (_kept.pop(), 0.0) if _kept else (_start(), _START_LIMIT_S)
    limit_s = TIME_LIMIT_S + TIME_LIMIT_S_PER_MB * len(content) / 1e6
    what, answer = MODULE, b""
    try:
        what, answer = _ask(process, content, time.monotonic() + start_s + limit_s)
    except TimeoutError:
        raise Unreadable(f"not a valid StableHLO module: MLIR did not read it within {limit_s:.0f} s") from None
    except (EOFError, BrokenPipeError):
        raise Unreadable(f"not a valid StableHLO module: MLIR's reader ends with {_exit_of(process)}") from None
    finally:
        if answer and len(content) <= _KEPT_BYTES:
            _kept.append(process)
        else:
            _end(process)
    if what == FOREIGN:
        raise Foreign(*answer.decode("utf-8", "replace").split("\n", 1))
    if what != MODULE:
        raise Unreadable(answer.decode("utf-8", "replace"))
    return answer


def _start() -> subprocess.Popen[bytes]:
    command, environment = module_command("fusionlab.hlo.sandbox.worker")
    return subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environment
    )


def _ask(process: subprocess.Popen[bytes], content: bytes, deadline: float) -> tuple[int, bytes]:
    """The kind of the answer, and the answer; TimeoutError, or EOFError or BrokenPipeError when the process died."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(HEADER.pack(MODULE, len(content)) + content)  # the worker reads all of it before it answers
    process.stdin.flush()
    what, size = HEADER.unpack(_received(process.stdout.fileno(), HEADER.size, deadline))
    return what, _received(process.stdout.fileno(), size, deadline)


def _received(descriptor: int, size: int, deadline: float) -> bytes:
    parts = bytearray()
    while len(parts) < size:
        ready, _, _ = select.select([descriptor], [], [], max(0.0, deadline - time.monotonic()))
        if not ready:
            raise TimeoutError
        part = os.read(descriptor, min(size - len(parts), 1 << 20))
        if not part:
            raise EOFError
        parts += part
    return bytes(parts)


def _exit_of(process: subprocess.Popen[bytes]) -> str:
    code = process.wait(_START_LIMIT_S)
    return signal.Signals(-code).name if code < 0 else f"exit code {code}"


def _end(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        assert pipe is not None
        with contextlib.suppress(BrokenPipeError):
            pipe.close()


@atexit.register
def _end_all() -> None:
    while _kept:
        _end(_kept.pop())
