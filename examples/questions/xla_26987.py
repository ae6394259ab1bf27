"""xla 26987: temp memory is as large as the weights, by kernels called wrapped_transpose. Who wants them turned?"""

import jax.numpy as jnp
from commands import array, document, run, saved
from jax import lax


def layer(x, w):
    """A layer of bfloat16."""
    return jnp.tanh(x @ w), None


def stacked_inside(weights, x):
    """Layers stacked along axis 1 of the weights."""
    return lax.scan(layer, x, jnp.moveaxis(weights, 1, 0))[0]


def stacked_outside(weights, x):
    """Layers stacked along axis 0."""
    return lax.scan(layer, x, weights)[0]


def answer():
    """The turned copy of the weights and its cause, and temp memory with either order of axes."""
    x, half = array(64, 512, dtype=jnp.bfloat16), jnp.bfloat16
    inside = saved(stacked_inside, array(512, 8, 512, dtype=half), x)
    outside = saved(stacked_outside, array(8, 512, 512, dtype=half), x)
    print(next(line for line in run("memory", inside)[1] if "transposed" in line))
    before, after = (document("memory", one) for one in (inside, outside))
    turned = [one for one in before["copies"] if one["cause"].startswith("transposed")]
    return {"turned": [one["bytes"] for one in turned], "saved": before["temp_bytes"] - after["temp_bytes"]}


if __name__ == "__main__":
    answer()
