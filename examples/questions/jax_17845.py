"""jax 17845: a scan that shifts a slice of its state is slow. Is the whole state copied at every step?"""

from functools import partial

import jax
import jax.numpy as jnp
from commands import array, document, run, saved
from jax import lax


@partial(jax.jit, donate_argnums=0)
def pops(state, places):
    """Take an entry out and close the gap, once per place."""

    def pop(state, at):
        rest = lax.dynamic_slice(state, (at + 1,), (64,))
        return lax.dynamic_update_slice(state, rest, (at,)), state[at]

    return lax.scan(pop, state, places)


def answer():
    """Bytes that copies of the state move, on a CPU and on an A100."""
    moved = {}
    for target, platform in (("cpu", "cpu"), ("a100", "cuda")):
        program = saved(pops, array(10_000), array(1000, dtype=jnp.int32), platform=platform)
        copies = document("memory", program, "--target", target)["copies"]
        moved[target] = sum(one["bytes"] * one["runs"] for one in copies if one["bytes"] >= 40_000)
        if target == "cpu":
            print(next(line for line in run("memory", program, "--target", target)[1] if "updates it in place" in line))
    return moved


if __name__ == "__main__":
    answer()
