"""One batch of random programs or replays, in a process of its own.

    python -m tests.fuzzing.batch PART SEED COUNT

runs COUNT examples that hypothesis draws from SEED and prints one JSON object: how often each pass applied, and the
smallest example that failed, if one did.
"""

from __future__ import annotations

import json
import sys
import traceback
from collections.abc import Callable
from typing import Any

from fusionlab import jax_setup

jax_setup.load_jax()

from hypothesis import HealthCheck, Verbosity, given, seed, settings  # noqa: E402  # after JAX's quiet start

from tests.fuzzing import programs, properties, replays  # noqa: E402

PARTS: dict[str, tuple[Any, Callable[[Any], None]]] = {
    "programs": (programs.programs(), properties.check_program),
    "replays": (replays.replays(), replays.check_replay),
}


def run(part: str, number: int, count: int) -> dict[str, Any]:
    """``count`` examples of ``part`` from the seed ``number``."""
    strategy, check = PARTS[part]
    last: list[Any] = []

    @seed(number)
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        report_multiple_bugs=False,
        verbosity=Verbosity.quiet,
        suppress_health_check=list(HealthCheck),
    )
    @given(strategy)
    def examples(example: Any) -> None:
        last[:] = [example]
        check(example)

    failure = None
    try:
        examples()
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        words = [line.strip() for line in str(error).splitlines() if line.strip()][:4]
        failure = {"example": repr(last[0]), "error": f"{type(error).__name__} at {where.name}: {' | '.join(words)}"}
    return {"seed": number, "tally": dict(properties.tally), "failure": failure}


if __name__ == "__main__":
    print(json.dumps(run(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))))
