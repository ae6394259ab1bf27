"""jax 37919: jit(sqrt(abs(x * x))) is finite where the square overflows. What is left of the three ops?"""

import jax.numpy as jnp
from commands import array, document, run, saved

import fusionlab


def three_ops(x):
    """The root of a square: infinite in float32 from about 1.8e19 on."""
    return jnp.sqrt(jnp.abs(jnp.square(x)))


def answer():
    """The ops in the only kernel."""
    kernel = fusionlab.launches(three_ops, array(1024)).rows[0].name
    program = saved(three_ops, array(1024))
    print(next(line for line in run("explain", program, "--kernel", kernel)[1] if line.startswith(" abs")))
    return {"inside": [one["opcode"] for one in document("explain", program, "--kernel", kernel)["members"]]}


if __name__ == "__main__":
    answer()
