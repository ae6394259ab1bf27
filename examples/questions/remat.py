"""What does jax.checkpoint compute again?"""

import jax
import jax.numpy as jnp
from commands import array

import fusionlab


def layer(weights, x):
    """A dense layer."""
    return jnp.tanh(x @ weights)


def loss(every, x):
    """Four layers, each recomputed in the backward pass."""
    for weights in every:
        x = jax.checkpoint(layer)(weights, x)
    return (x**2).mean()


def answer():
    """Kernels that compute again, by op, and whether the activation is computed again inside of others."""
    found = fusionlab.launches(jax.grad(loss), [array(256, 256)] * 4, array(1024, 256), by="transform,op")
    again = {op: one.dynamic_launches for (how, op), one in found.groups.items() if "rematted" in how}
    print(*(f"transpose(jvp), rematted {op}: {count} launches" for op, count in again.items()))
    inside = [part for row in found.rows if row.transform == "transpose(jvp)" for part in row.parts]
    return {**again, "tanh inside": any("tanh" in part for part in inside)}


if __name__ == "__main__":
    answer()
