"""What a call of an optimised function costs over one of ``jax.jit``, in one process and interleaved.

    python benchmarks/optimize_calls.py

Wall time of a call on the CPU, microseconds, for a function of few and of many arrays that computes almost nothing; the
lowest of rounds that alternate. The function has nothing to rewrite, so that both sides run the same program and the
difference is the call.
"""

from __future__ import annotations

import time
import warnings

import fusionlab
from fusionlab.errors import NotOptimizedWarning

ROUNDS, CALLS = 1000, 20


def main() -> None:
    """Print one row per number of arrays."""
    import jax
    import jax.numpy as jnp

    warnings.simplefilter("ignore", NotOptimizedWarning)  # there is nothing to rewrite, on purpose

    def function(tree: list[jax.Array], x: jax.Array) -> jax.Array:
        return sum(tree, jnp.sin(x))

    print(f"{'arrays':>8}{'jax.jit us':>14}{'optimize us':>14}{'over us':>10}")
    for arrays in (1, 50, 500):
        given = [jnp.float32(i) for i in range(arrays)], jnp.float32(1)
        sides = jax.jit(function), fusionlab.optimize(function, "licm", cache=False)
        for side in sides:
            jax.block_until_ready(side(*given))
        times: tuple[list[float], list[float]] = ([], [])
        for _ in range(ROUNDS):
            for side, kept in zip(sides, times, strict=True):
                started = time.perf_counter()
                for _ in range(CALLS):
                    result = side(*given)
                jax.block_until_ready(result)
                kept.append((time.perf_counter() - started) / CALLS * 1e6)
        plain, optimized = map(min, times)
        print(f"{arrays:>8}{plain:>14.2f}{optimized:>14.2f}{optimized - plain:>10.2f}")


if __name__ == "__main__":
    main()
