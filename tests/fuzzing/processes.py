"""Requests to readers that may die or hang: each in a process that is replaced when it does."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[2]
_START_LIMIT_S = 120.0


@dataclass(frozen=True)
class Answer:
    """What became of one request: ``read``, ``refused``, ``finding``, ``died`` or ``hung``, and words about it."""

    kind: str
    seed: int
    outcome: str
    words: str

    @property
    def is_finding(self) -> bool:
        """Whether somebody has to look."""
        return self.outcome not in ("read", "refused")


class Reader:
    """A process of ``tests.fuzzing.reading``, started when it is asked and again after it died."""

    def __init__(self, corpus: Path, limit_s: float) -> None:
        self._corpus, self._limit_s = corpus, limit_s
        self._process: subprocess.Popen[str] | None = None

    def ask(self, kind: str, seed: int) -> Answer:
        """The answer to one request, within the time limit."""
        process = self._process or self._start()
        assert process.stdin is not None
        process.stdin.write(f"{kind} {seed}\n")
        process.stdin.flush()
        line = _line(process, self._limit_s)
        if line is None:
            self.close()
            return Answer(kind, seed, "hung", f"no answer within {self._limit_s:g} s")
        if not line:
            code = process.wait()
            self._process = None
            return Answer(kind, seed, "died", signal.Signals(-code).name if code < 0 else f"exit {code}")
        outcome, _, words = line.strip().partition(" ")
        return Answer(kind, seed, outcome, words.strip("'\""))

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def _start(self) -> subprocess.Popen[str]:
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.fuzzing.reading", str(self._corpus)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
        )
        if _line(process, _START_LIMIT_S) != "ready\n":
            process.kill()
            raise RuntimeError("the reader does not start")
        self._process = process
        return process


def _line(process: subprocess.Popen[str], limit_s: float) -> str | None:
    """The next line of its stdout; "" when it ended, None when there is none in time."""
    assert process.stdout is not None
    ready, _, _ = select.select([process.stdout], [], [], limit_s)
    return process.stdout.readline() if ready else None
