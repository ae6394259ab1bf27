"""One batch of random programs or replays."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Sequence
from typing import Any

from fusionlab import jax_setup

jax_setup.load_jax()

from hypothesis import HealthCheck, Phase, Verbosity, given, seed, settings  # noqa: E402  # after JAX's quiet start

from tests.fuzzing import integers, programs, properties, replays  # noqa: E402

PARTS: dict[str, tuple[Any, Callable[[Any], None]]] = {
    "integers": (integers.rules(), integers.check_rule),
    "programs": (programs.programs(), properties.check_program),
    "replays": (replays.replays(), replays.check_replay),
}


def run(part: str, number: int, count: int, phases: Sequence[Phase] = tuple(Phase)) -> dict[str, Any]:
    """How often each pass applied to ``count`` examples of the seed ``number``, and the smallest one that failed."""
    strategy, check = PARTS[part]
    last: list[Any] = []

    @seed(number)
    @settings(
        max_examples=count,
        phases=phases,
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
    return {"tally": properties.tally, "failure": failure}
