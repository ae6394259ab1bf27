"""Damaged files in bulk: seeds handed to readers, and a record of what became of each kind."""

from __future__ import annotations

import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.fuzzing import corpus
from tests.fuzzing.processes import Answer, Reader

SHARES = {
    "stablehlo-text": 8,
    "optimized-hlo-text": 6,
    "bytecode": 4,
    "portable-artifact": 4,
    "jax-export": 2,
    "rewritten-text": 1,
}
"""Of every 25 files, how many are of each kind."""

_LIMIT_S = 60.0
"""For one file. The reader of MLIR is stopped after a sixth of it, so that what exceeds it is fusionlab's own."""


def fuzz_parsers(seed: int, count: int, deadline: float, processes: int = 1) -> dict[str, Any]:
    """Read ``count`` damaged files, of the seeds from ``seed`` on, until ``time.monotonic()`` is ``deadline``."""
    started = time.monotonic()
    answers: list[Answer] = []
    requests = _requests(seed, count)
    lock = threading.Lock()

    def work(reader: Reader) -> None:
        while time.monotonic() < deadline:
            with lock:
                request = next(requests, None)
            if request is None:
                break
            answers.append(reader.ask(*request))
        reader.close()

    with tempfile.TemporaryDirectory(prefix="fusionlab-corpus-") as folder:
        corpus.write(Path(folder))
        sizes = {form: len(files) for form, files in corpus.load(Path(folder)).items()}
        threads = [threading.Thread(target=work, args=(Reader(Path(folder), _LIMIT_S),)) for _ in range(processes)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
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
            if one.is_finding
        ],
    }


def _requests(seed: int, count: int) -> Iterator[tuple[str, int]]:
    kinds = [kind for kind, share in SHARES.items() for _ in range(share)]
    return ((kinds[number % len(kinds)], number) for number in range(seed, seed + count))
