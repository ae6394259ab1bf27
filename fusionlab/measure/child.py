"""Commands of fusionlab in processes of their own: a limit each, what they print kept, nothing of them left behind."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fusionlab.own_process import module_command, tied_to_its_maker

_GRACE_S = 10.0


@dataclass(frozen=True)
class Finished:
    """``document`` is the JSON that it printed (None: none); ``problem`` says why it is not to be counted on."""

    document: dict[str, Any] | None
    problem: str
    seconds: float
    timed_out: bool = False


class Child:
    """``python -m fusionlab ARGUMENTS`` from the sources that this module is of, running since it was made.

    What it says on stderr goes to ``log``. ``wait`` ends it after ``limit_s`` seconds, with all that it started. On
    Linux it also ends with the thread that made it, however that ends: left alone it would disturb what is timed next.
    """

    def __init__(
        self, arguments: Sequence[str], log: Path, limit_s: float, environment: Mapping[str, str] | None = None
    ) -> None:
        self._limit_s, self._log = limit_s, log
        self._started = time.monotonic()
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 - closed by wait
        command, own = module_command("fusionlab", arguments)
        with log.open("wb") as errors:
            self._process = subprocess.Popen(
                tied_to_its_maker(command),
                stdout=self._output,
                stderr=errors,
                stdin=subprocess.DEVNULL,
                start_new_session=True,
                env={**own, **(environment or {})},
            )

    def wait(self) -> Finished:
        """Its result, once it has ended or run out of time."""
        left = self._limit_s - (time.monotonic() - self._started)
        problem = ""
        try:
            code = self._process.wait(max(0.0, left))
        except subprocess.TimeoutExpired:
            code, problem = None, f"not finished within {self._limit_s:.0f} s"
        except BaseException:
            self._end()
            raise
        self._end()
        with self._output:
            self._output.seek(0)
            text = self._output.read().decode("utf-8", "replace")
        if code and not problem:
            problem = f"exit {code}: {_last_line(self._log)}"
        return Finished(_document(text), problem, time.monotonic() - self._started, code is None)

    def _end(self) -> None:
        """End it and what it started: politely, then not."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, number)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_GRACE_S)
                return


def _document(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text)
    except ValueError:
        return None
    return found if isinstance(found, dict) else None


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
    return lines[-1][:300] if lines else "no message"
