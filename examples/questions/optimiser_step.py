"""How many kernels is one step of Adam with clipping, and which line makes most?"""

import jax
import jax.numpy as jnp
from commands import array

import fusionlab

LAYERS = {f"layer_{i}": {"weights": array(256, 256), "bias": array(256)} for i in range(8)}


def adam(params, grads, m, v):
    """Clipped by the norm of all gradients."""
    norm = jnp.sqrt(sum(jnp.sum(g**2) for g in jax.tree.leaves(grads)))
    grads = jax.tree.map(lambda g: g * jnp.minimum(1.0, 1.0 / norm), grads)
    m = jax.tree.map(lambda m, g: 0.9 * m + 0.1 * g, m, grads)
    v = jax.tree.map(lambda v, g: 0.999 * v + 0.001 * g**2, v, grads)
    return jax.tree.map(lambda p, m, v: p - 1e-3 * m / (jnp.sqrt(v) + 1e-8), params, m, v), m, v


def answer():
    """Launches of all lines, and of the line with the norm."""
    found = fusionlab.launches(adam, LAYERS, LAYERS, LAYERS, LAYERS, by="source")
    print(found.verdict)
    return {"launches": found.dynamic_launches, **{key[0]: one.dynamic_launches for key, one in found.groups.items()}}


if __name__ == "__main__":
    answer()
