"""Parse foreign modules and HLO in a separate process (``worker``), which may crash or hang."""

from __future__ import annotations

import atexit
import signal
import subprocess
import threading
from multiprocessing.connection import Pipe

from fusionlab.hlo.sandbox.worker import FOREIGN, HLO, MODULE, STABLEHLO, UNOPTIMISED, Foreign, Unreadable
from fusionlab.subprocesses import module_command

__all__ = ["Foreign", "Unreadable", "hlo_text_apart", "read_apart", "stablehlo_of_hlo_apart"]

TIME_LIMIT_S = 10.0
TIME_LIMIT_S_PER_MB = 2.0
"""A valid file takes a twentieth of it or less."""
_START_LIMIT_S = 60.0
_READERS = {STABLEHLO: ("StableHLO", "MLIR"), HLO: ("HLO", "XLA"), UNOPTIMISED: ("HLO", "XLA")}
_KEPT_BYTES = 1_000_000
"""The process is reused unless it has read a larger file, whose memory it would keep."""


class _Reader:
    """The worker, started when it is first asked and again after it ended; it reads one module at a time."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, content: bytes, kind: int = STABLEHLO) -> tuple[int, bytes]:
        """The kind of the answer, and the answer; Unreadable when the process crashed or timed out."""
        language, library = _READERS[kind]
        limit_s = TIME_LIMIT_S + TIME_LIMIT_S_PER_MB * len(content) / 1e6
        with self._lock:
            process, start_s = self._start()
            overdue = threading.Event()
            # A connection has no deadline once a message has begun: the process ends, and with it the message.
            deadline = threading.Timer(start_s + limit_s, _end_overdue, (process, overdue))
            deadline.start()
            answered = False
            try:
                self._connection.send_bytes(bytes([kind]) + content)
                answer = self._connection.recv_bytes()
                answered = True
            except (EOFError, OSError):
                ending = f"{library}'s reader ends with {self._exit()}"
                cause = f"{library} did not read it within {limit_s:.0f} s" if overdue.is_set() else ending
                raise Unreadable(f"not a valid {language} module: {cause}") from None
            finally:
                deadline.cancel()
                deadline.join()
                if not answered or overdue.is_set() or len(content) > _KEPT_BYTES:
                    self.end()
        return answer[0], answer[1:]

    def _start(self) -> tuple[subprocess.Popen[bytes], float]:
        """The process, started unless it runs, and the seconds that starting may take."""
        if self._process is not None:
            return self._process, 0.0
        self._connection, theirs = Pipe()
        with theirs:
            command, environment = module_command("fusionlab.hlo.sandbox.worker", [str(theirs.fileno())])
            self._process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                env=environment, pass_fds=[theirs.fileno()], start_new_session=True,  # Ctrl-C is for this process
            )  # fmt: skip
        return self._process, _START_LIMIT_S

    def _exit(self) -> str:
        assert self._process is not None
        code = self._process.wait(_START_LIMIT_S)
        return signal.Signals(-code).name if code < 0 else f"exit code {code}"

    def end(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._connection.close()
            self._process.kill()
            self._process.wait()
            self._process = None


def _end_overdue(process: subprocess.Popen[bytes], overdue: threading.Event) -> None:
    overdue.set()
    process.kill()


_reader = _Reader()
atexit.register(_reader.end)


def read_apart(content: bytes) -> bytes:
    """The bytecode that MLIR writes after reading ``content`` (StableHLO text, bytecode, a portable artifact).

    Unreadable has the cause, also when the process that read it crashed or timed out; Foreign names the part of a
    valid module that is not studied, and has the module without it where it is attributes alone.
    """
    return _answer(content, STABLEHLO)


def stablehlo_of_hlo_apart(content: bytes) -> bytes:
    """The bytecode of the HLO ``content`` (text or protobuf) as StableHLO, with errors as of ``read_apart``."""
    return _answer(content, UNOPTIMISED)


def hlo_text_apart(content: bytes) -> str:
    """The HLO ``content``, in any form that XLA reads, as XLA prints it in full: with sigils and signatures.

    Unreadable has XLA's reason, of a text with line and column; also when the process crashed or timed out.
    """
    return _answer(content, HLO).decode("utf-8", "replace")


def _answer(content: bytes, kind: int) -> bytes:
    is_what, answer = _reader.ask(content, kind)
    if is_what == FOREIGN:
        *words, without = answer.split(b"\n", 3)
        what, where, dropped = (one.decode("utf-8", "replace") for one in words)
        raise Foreign(what, where, dropped, without)
    if is_what != MODULE:
        raise Unreadable(answer.decode("utf-8", "replace"))
    return answer
