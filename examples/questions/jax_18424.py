"""jax 18424: a reduction became slower because XLA emitted it as an elementwise loop. Which form has it here?"""

import jax.numpy as jnp
from commands import array

import fusionlab


def epilogue(x):
    """A reduction over rows, with ops on its result."""
    total = jnp.sum(x, axis=0)
    return jnp.tanh(total) * 2, total


def answer():
    """The kernel that reads the matrix, and its time over that of its bytes at the target's bandwidth."""
    found = fusionlab.launches(epilogue, array(4096, 4096))
    slowest = max(found.rows, key=lambda row: row.bytes)
    print(f"{slowest.name} ({slowest.family}, {', '.join(slowest.parts)}): {slowest.model_us:.1f} us (model)")
    return {"name": slowest.name, "family": slowest.family, "launches": found.dynamic_launches}


if __name__ == "__main__":
    answer()
