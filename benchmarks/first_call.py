"""Seconds of the first call of an optimised local energy, beside those of ``jax.jit``, each in a process of its own.

    python benchmarks/first_call.py [--models paulinet,ferminet] [--walkers 16,1024] [--molecule CH4] [--size full]

One row per model and number of walkers: the first call of ``jax.jit`` (trace, lower, compile, run), that of
``fusionlab.optimize`` without a cache, and of that the rewriting and the check (exact and in floating point, side by
side), with the verdicts. Processes run one after another: a quiet machine of two cores is assumed.
"""

from __future__ import annotations

import argparse
import json
import time

from rows import Row, measure_apart

from fusionlab import jax_setup

jax_setup.set_environment()

MODELS = ("paulinet", "ferminet", "psiformer", "orbformer")
_LIMIT_S = 1800.0


def first_call(model: str, molecule: str, size: str, walkers: int, *, optimized: bool) -> Row:
    """The seconds of the first call, and what ``optimize`` decided on it."""
    jax_setup.load_jax()
    import jax

    import fusionlab
    from fusionlab.workloads.catalogue import build

    workload = build(model, molecule=molecule, walkers=walkers, laplacian="replay", size=size)
    arguments = jax.block_until_ready(workload.inputs(1))
    called = fusionlab.optimize(workload.function, cache=False) if optimized else jax.jit(workload.function)
    started = time.perf_counter()
    jax.block_until_ready(called(*arguments))
    row: Row = {"first_call_s": time.perf_counter() - started}
    if optimized:
        [decision] = called.fusionlab.decisions
        verdict = decision.verdict
        row |= {"rewrite_s": decision.rewrite_s, "check_s": decision.check_s, "why_not": decision.why_not}
        if verdict is not None:
            row |= {"verdict": verdict.verdict, "exact": verdict.exact.result if verdict.exact else "none"}
    return row


def main() -> None:
    """Print the table, or with ``--one jit`` or ``--one optimize`` one measurement of it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--walkers", default="16,256,1024")
    parser.add_argument("--molecule", default="CH4")
    parser.add_argument("--size", default="full")
    parser.add_argument("--one", choices=("jit", "optimize"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    models, walkers = given.models.split(","), list(map(int, given.walkers.split(",")))
    if given.one:
        row = first_call(models[0], given.molecule, given.size, walkers[0], optimized=given.one == "optimize")
        print(json.dumps(row))
        return
    print(f"{'model':<12}{'walkers':>8}{'jit s':>8}{'optimize s':>12}{'rewrite s':>11}{'check s':>9}  verdicts")
    for model in models:
        for count in walkers:
            options = ["--models", model, "--walkers", str(count), "--molecule", given.molecule, "--size", given.size]
            jit, ours = (measure_apart(__file__, how, options, _LIMIT_S) for how in ("jit", "optimize"))
            told = ours.get("failed") or ours["why_not"] or f"{ours['exact']}, {ours['verdict']}"
            seconds = [jit.get("first_call_s"), *(ours.get(name) for name in ("first_call_s", "rewrite_s", "check_s"))]
            cells = ("-" if one is None else f"{one:.1f}" for one in seconds)
            print(
                f"{model:<12}{count:>8}" + "".join(f"{c:>{w}}" for c, w in zip(cells, (8, 12, 11, 9), strict=True)),
                end="",
            )
            print(f"  {told}", flush=True)


if __name__ == "__main__":
    main()
