"""Wall time of programs side by side: interleaved runs, so that whatever slows the machine down slows all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

WARM_UP = 2


def interleaved(runs: Mapping[str, Callable[[], None]], repeats: int, warm_up: int = WARM_UP) -> dict[str, list[float]]:
    """Microseconds of ``repeats`` runs of each, one run of each per round; ``warm_up`` rounds before are not kept.

    Every call waits for the device. The round starts with another one each time, so that none always follows the same.
    """
    names = list(runs)
    samples: dict[str, list[float]] = {name: [] for name in names}
    for turn in range(warm_up + repeats):
        first = turn % len(names)
        for name in (*names[first:], *names[:first]):
            started = time.perf_counter_ns()
            runs[name]()
            if turn >= warm_up:
                samples[name].append((time.perf_counter_ns() - started) / 1e3)
    return samples
