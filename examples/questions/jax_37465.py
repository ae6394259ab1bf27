"""jax 37465: sums of squared differences became slower on the CPU. Is the square fused into the sum?"""

import jax.numpy as jnp
from commands import array, document, run, saved


def roughness(x):
    """Squared differences of neighbours along each axis."""
    return sum(jnp.sum(jnp.diff(x, axis=axis) ** 2) for axis in range(x.ndim))


def answer():
    """Temp memory, and the kernels that write arrays of the volume's size."""
    program = saved(roughness, array(64, 64, 64), platform="cpu")
    print(run("memory", program, "--target", "cpu")[1][0])
    found = document("memory", program, "--target", "cpu")
    large = [one["producer"] for one in found["peak"]["buffers"] if one["bytes"] > 2**19]
    return {"written out": large, "temp": found["temp_bytes"]}


if __name__ == "__main__":
    answer()
