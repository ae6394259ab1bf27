"""Is my float32 product computed in TF32?"""

import jax.numpy as jnp
from commands import array

import fusionlab

SQUARE = array(2048, 2048)


def product(a, b):
    """At JAX's default precision."""
    return a @ b


def precise(a, b):
    """In float32."""
    return jnp.dot(a, b, precision="highest")


def answer():
    """The share of FLOPs in TF32, by default and at the highest precision."""
    found = [fusionlab.launches(one, SQUARE, SQUARE) for one in (product, precise)]
    print(*(line for line in found[0].qualifications if "TF32" in line))
    return {"TF32": [one.totals.tf32_flops / one.totals.flops for one in found]}


if __name__ == "__main__":
    answer()
