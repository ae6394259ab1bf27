"""jax 40101: writing one element of a large array in a loop costs the whole array. Is the array copied at each step?"""

import jax.numpy as jnp
from commands import array, document, run, saved
from jax import lax


def recorded(start, steps):
    """A recursion whose every state is written into an array."""

    def step(i, states):
        return states.at[i + 1].set(0.5 * states[i] + steps[i])

    return lax.fori_loop(0, steps.shape[0], step, jnp.zeros(steps.shape[0] + 1).at[0].set(start))


def answer():
    """Copies of the array in the loop, and bytes that a step's launches move, by the compiled program for the CPU."""
    program = saved(recorded, array(), array(200_000), platform="cpu")
    print(run("memory", program, "--target", "cpu")[1][0])
    copies = document("memory", program, "--target", "cpu")["copies"]
    rows = [row for row in document("launches", program, "--target", "cpu")["rows"] if row["trip_count"] > 1]
    moved = sum(row["bytes"] for row in rows) / 200_000
    return {"copied": sum(one["runs"] for one in copies if one["bytes"] > 2**16 and one["runs"] > 1), "bytes": moved}


if __name__ == "__main__":
    answer()
