"""What a damaged file does to fusionlab: it is read, or refused in one line; anything else is a finding.

Files are read in bulk by processes that may die or hang and are then replaced, with a record of what became of each.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import tempfile
import time
import traceback
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from click.testing import CliRunner

from fusionlab import jax_setup
from fusionlab.cli import main as fusionlab
from tests.fuzzing import corpus

READ, REFUSED, FINDING = "read", "refused", "finding"
SHARES = {
    "stablehlo-text": 8,
    "optimized-hlo-text": 6,
    "bytecode": 4,
    "portable-artifact": 4,
    "jax-export": 2,
    "rewritten-text": 1,
}
"""Of every 25 files, how many are of each kind."""

_LIMIT_S, _START_LIMIT_S = 60.0, 120.0
"""For one file. The reader of MLIR is stopped after a sixth of it, so that what exceeds it is fusionlab's own."""


def outcome(kind: str, content: bytes, path: Path) -> tuple[str, str]:
    """READ, REFUSED or FINDING, and its words, of the command of ``kind`` with ``content`` as the file ``path``."""
    path.write_bytes(content)
    command, options = corpus.KINDS[kind].command, corpus.KINDS[kind].options
    result = CliRunner().invoke(fusionlab, [*command, str(path), *options])
    error = result.exception
    if error is not None and not isinstance(error, SystemExit):
        where = traceback.extract_tb(error.__traceback__)[-1]
        lines = str(error).splitlines() or [""]
        return FINDING, f"{type(error).__name__} in {Path(where.filename).name}:{where.lineno}: {lines[0][:160]}"
    if result.exit_code == 0:
        return READ, ""
    message = result.stderr
    if result.exit_code != 2 or not message.startswith("fusionlab: ") or message.count("\n") != 1:
        return FINDING, f"exit {result.exit_code}, not one line: {message[:200]!r}"
    return REFUSED, message.strip().partition(f"{path}: ")[2][:100]


def _serve(folder: Path, pipe: Connection) -> None:
    """Answer requests until the process is ended."""
    silence = os.open(os.devnull, os.O_WRONLY)
    for output in (1, 2):
        os.dup2(silence, output)
    jax_setup.load_jax()
    corpora = corpus.load(folder)
    with tempfile.TemporaryDirectory(prefix="fusionlab-fuzz-") as directory:
        pipe.send("ready")
        while True:
            kind, seed = pipe.recv()
            pipe.send(outcome(kind, corpus.mutated(kind, seed, corpora), Path(directory) / "damaged"))


@dataclass(frozen=True)
class Answer:
    """What became of one file: READ, REFUSED, FINDING, "died" or "hung", and words about it."""

    kind: str
    seed: int
    outcome: str
    words: str


class Reader:
    """A process that reads damaged files, started when it is asked and again after it died."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._process: multiprocessing.process.BaseProcess | None = None

    def ask(self, kind: str, seed: int) -> Answer:
        """The answer to one request, within the time limit."""
        if self._process is None:
            self._start()
        assert self._process is not None
        try:
            self._pipe.send((kind, seed))
            if self._pipe.poll(_LIMIT_S):
                return Answer(kind, seed, *self._pipe.recv())
            found = "hung", f"no answer within {_LIMIT_S:g} s"
        except (EOFError, ConnectionError):
            self._process.join()
            code = self._process.exitcode or 0
            found = "died", signal.Signals(-code).name if code < 0 else f"exit {code}"
        self.close()
        return Answer(kind, seed, *found)

    def close(self) -> None:
        """End the process, if there is one."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process = None

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=_serve, args=(self._folder, theirs), daemon=True)
        self._process.start()
        theirs.close()  # so that its end is seen
        if not self._pipe.poll(_START_LIMIT_S) or self._pipe.recv() != "ready":
            raise RuntimeError("the reader does not start")


def fuzz_parsers(seed: int, count: int, deadline: float, processes: int = 1) -> dict[str, Any]:
    """Read ``count`` damaged files, of the seeds from ``seed`` on, until ``time.monotonic()`` is ``deadline``."""
    started = time.monotonic()
    kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
    answers: list[Answer] = []

    def work(first: int) -> None:
        reader = Reader(Path(folder))
        for number in range(first, seed + count, processes):
            if time.monotonic() > deadline:
                break
            answers.append(reader.ask(kinds[number % len(kinds)], number))
        reader.close()

    with tempfile.TemporaryDirectory(prefix="fusionlab-corpus-") as folder:
        corpus.write(Path(folder))
        sizes = {form: len(files) for form, files in corpus.load(Path(folder)).items()}
        with ThreadPoolExecutor(processes) as pool:
            list(pool.map(work, range(seed, seed + processes)))
    return {
        "files": len(answers),
        "corpus": sizes,
        "seconds": round(time.monotonic() - started),
        "outcomes": {
            kind: dict(sorted(Counter(one.outcome for one in answers if one.kind == kind).items())) for kind in SHARES
        },
        "refused_because_the_reader": {
            words: sum(words in one.words for one in answers)
            for words in ("reader ends with SIGABRT", "reader ends with SIGSEGV", "MLIR did not read it within")
        },
        "findings": [
            {"kind": one.kind, "seed": one.seed, "outcome": one.outcome, "words": one.words}
            for one in sorted(answers, key=lambda one: one.seed)
            if one.outcome not in (READ, REFUSED)
        ],
    }
