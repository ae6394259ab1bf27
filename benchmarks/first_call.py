"""Seconds of the first call of an optimised local energy, beside those of ``jax.jit``, each in a process of its own.

    python benchmarks/first_call.py [--models paulinet,ferminet] [--walkers 16,1024] [--molecule CH4]

One row per model and number of walkers: the first call of ``jax.jit`` (trace, lower, compile, run), that of
``fusionlab.optimize`` without a cache, and of that the rewriting, the check (exact and in floating point, side by side)
and the verdict. Processes run one after another: a quiet machine of two cores is assumed. ``--alone`` prints one row as
JSON.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

MODELS = ("paulinet", "ferminet", "psiformer", "orbformer")


def first_call(model: str, molecule: str, walkers: int, *, optimized: bool) -> dict[str, Any]:
    """The seconds of the first call, and what ``optimize`` reports of it."""
    from fusionlab import jax_setup

    jax_setup.load_jax()
    import jax

    import fusionlab
    from workloads.catalogue import build

    workload = build(model, molecule=molecule, walkers=walkers)
    arguments = workload.inputs(1)
    jax.block_until_ready(arguments)
    called = fusionlab.optimize(workload.function, cache=False) if optimized else jax.jit(workload.function)
    started = time.perf_counter()
    jax.block_until_ready(called(*arguments))
    row: dict[str, Any] = {"first_call_s": time.perf_counter() - started}
    if isinstance(called, fusionlab.Optimized):
        [decision] = called.fusionlab.decisions
        exact = decision.verdict.exact if decision.verdict is not None else None
        row |= {
            "rewrite_s": decision.rewrite_s,
            "check_s": decision.check_s,
            "verdict": decision.verdict.verdict if decision.verdict else decision.reason,
            "exact": exact.result if exact else None,
        }
    return row


def main() -> None:
    """Print the table, or with ``--alone`` one row of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--walkers", default="16,256,1024")
    parser.add_argument("--molecule", default="CH4")
    parser.add_argument("--alone", choices=("jit", "optimize"))
    given = parser.parse_args()
    models, walkers = given.models.split(","), list(map(int, given.walkers.split(",")))
    if given.alone:
        print(json.dumps(first_call(models[0], given.molecule, walkers[0], optimized=given.alone == "optimize")))
        return
    print(f"{'model':<12}{'walkers':>8}{'jit s':>8}{'optimize s':>12}{'rewrite s':>11}{'check s':>9}  verdict")
    for model in models:
        for count in walkers:
            rows = [_in_a_process(model, given.molecule, count, how) for how in ("jit", "optimize")]
            jit, ours = (row["first_call_s"] for row in rows)
            told = f"{rows[1]['exact']}, {rows[1]['verdict']}"
            print(
                f"{model:<12}{count:>8}{jit:>8.1f}{ours:>12.1f}{rows[1]['rewrite_s']:>11.1f}"
                f"{rows[1]['check_s']:>9.1f}  {told}",
                flush=True,
            )


def _in_a_process(model: str, molecule: str, walkers: int, how: str) -> dict[str, Any]:
    command = [sys.executable, str(Path(__file__)), "--models", model, "--walkers", str(walkers)]
    run = subprocess.run([*command, "--molecule", molecule, "--alone", how], capture_output=True, text=True, check=True)
    found: dict[str, Any] = json.loads(run.stdout.splitlines()[-1])
    return found


if __name__ == "__main__":
    main()
