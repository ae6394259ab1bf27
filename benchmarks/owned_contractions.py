"""Attention over one-electron features: launches, memory and work of its Laplacian, rewritten and by folx.

    python benchmarks/owned_contractions.py [--electrons 16,32] [--walkers 256] [--width 32] [--target a100]

    s = tanh(tanh(r w0) w1);  q, k, v = s w2, s w3, s w4;  a = exp(q k^T / 60) / sum_j;  F = sum tanh((a v) w5)

Features of one electron have three directions, scores of a pair six. The loop over 3N directions is rewritten by
sparsify-directions (all walkers at once), and the same F is pushed forward by folx with and without its sparsity.
Absent target, float32.
"""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

from fusionlab import jax_setup

jax_setup.set_environment()
jax_setup.load_jax()

import folx  # noqa: E402  # after load_jax
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402

from fusionlab.codegen.cache import default_cache  # noqa: E402
from fusionlab.codegen.targets import load_target  # noqa: E402
from fusionlab.optimizing.rewriting import lower_jaxpr  # noqa: E402
from fusionlab.passes.pipeline import parse_pipeline  # noqa: E402
from fusionlab.study import Circumstances, measure, rewrite  # noqa: E402


def network(width: int) -> Any:
    """F of ``x`` [3N]."""
    random = np.random.default_rng(0)
    sizes = [(3, width)] + [(width, width)] * 5
    w = [(random.standard_normal(size) / np.sqrt(size[0])).astype(np.float32) for size in sizes]

    def f(x: Any) -> Any:
        s = jnp.tanh(jnp.tanh(x.reshape(-1, 3) @ w[0]) @ w[1])
        q, k, v = s @ w[2], s @ w[3], s @ w[4]
        a = jnp.exp(q @ k.T / 60)
        a = a / a.sum(-1, keepdims=True)
        return jnp.tanh((a @ v) @ w[5]).sum()

    return f


def replay(f: Any) -> Any:
    """x [3N] to (F, Laplacian), one direction after another."""

    def of_one(x: Any) -> Any:
        _, hessian_times = jax.linearize(jax.grad(f), x)
        e = jnp.eye(x.size, dtype=x.dtype)
        return f(x), jax.lax.fori_loop(0, x.size, lambda k, s: s + hessian_times(e[k])[k], jnp.zeros((), x.dtype))

    return of_one


def forward(f: Any, threshold: float) -> Any:
    """The same by folx."""

    def of_one(x: Any) -> Any:
        found = folx.forward_laplacian(f, sparsity_threshold=threshold)(x)
        return found.x, found.laplacian

    return of_one


def main() -> None:
    """Print a row per number of electrons and side."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--electrons", default="16,32")
    parser.add_argument("--walkers", type=int, default=256)
    parser.add_argument("--width", type=int, default=32)
    parser.add_argument("--target", default="a100")
    given = parser.parse_args()
    where = Circumstances(load_target(given.target), cache=default_cache())
    print(f"{'electrons':>9} {'side':<14} {'launches':>8} {'copies':>6} {'temp MiB':>8} {'GFLOP':>8}")
    for electrons in map(int, given.electrons.split(",")):
        f, x = network(given.width), np.zeros((given.walkers, 3 * electrons), np.float32)
        sides = {"rewritten": replay(f), "folx sparse": forward(f, 6), "folx dense": forward(f, 0)}
        for side, of_one in sides.items():
            program = lower_jaxpr(jax.make_jaxpr(jax.vmap(of_one))(x), where.target.kind, "attention")
            if side == "rewritten":
                result, _ = rewrite(program, parse_pipeline("sparsify-directions"), where)
                program = result.program
            cost = measure(program, program, where)
            print(
                f"{electrons:>9} {side:<14} {cost.dynamic_launches:>8,} {cost.dynamic_copies:>6,} "
                f"{cost.temp_bytes / 2**20:>8,.0f} {(cost.flops or 0) / 1e9:>8,.2f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
