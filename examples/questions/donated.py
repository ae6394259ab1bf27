"""Why is a donated buffer copied?"""

import jax
import jax.numpy as jnp
from commands import array

import fusionlab


def flipped(state, batch):
    """Reads the state backwards, so that it cannot be written over while it is read."""
    return state[::-1] * (state + batch.sum(0))


def added(state, batch):
    """Reads each number of the state where it writes it."""
    return state * 2 + batch.sum(0)


def answer():
    """The copies of both, and their cause."""
    causes = {}
    for update in (flipped, added):

        def step(state, batch, update=update):
            new = update(state, batch)
            return new, (batch @ new).astype(jnp.bfloat16)

        found = fusionlab.memory(jax.jit(step, donate_argnums=0), array(4096), array(512, 4096))
        causes[update.__name__] = [one.cause for one in found.record.copies]
    print(*causes["flipped"])
    return causes


if __name__ == "__main__":
    answer()
