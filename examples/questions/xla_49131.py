"""xla 49131: a sum over pairs writes all pairs to memory on the CPU. How much, which line, and on a GPU?"""

import jax.numpy as jnp
from commands import array, document, run, saved


def attraction(x, y, masses):
    """The forces of N points on M points."""
    apart = x[:, None] - y[None]
    squared = jnp.sum(apart * apart, axis=-1) + 1e-3
    return jnp.sum(masses[None, :, None] * apart * (squared**-1.5)[..., None], axis=1)


def answer():
    """Temp memory on the CPU and on an A100 (an array of all pairs has 16 MiB), and the exit code under a limit."""
    points = array(2048, 3), array(2048, 3), array(2048)
    on_cpu, on_gpu = saved(attraction, *points, platform="cpu"), saved(attraction, *points)
    code, lines = run("memory", on_cpu, "--target", "cpu", "--max-temp", "1MiB")
    print(lines[0])
    temp = {"cpu": document("memory", on_cpu, "--target", "cpu")["temp_bytes"]}
    return {**temp, "a100": document("memory", on_gpu)["temp_bytes"], "exit code": code}


if __name__ == "__main__":
    answer()
