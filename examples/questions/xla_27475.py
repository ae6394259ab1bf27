"""xla 27475: long arithmetic was fused into a slow transposition. Is it here, and why is it slow?"""

import jax.numpy as jnp
from commands import array, document, run, saved


def normalised(x):
    """Exponentials over their sum, in bfloat16, with the last two axes turned."""
    whole = jnp.exp(x) / jnp.sum(x, axis=2, keepdims=True)
    return jnp.transpose(whole.astype(jnp.bfloat16), (0, 1, 3, 2))


def answer():
    """The ops in the slowest kernel, its time by the model of its code over its floor, and what it has in excess."""
    program = saved(normalised, array(4, 1024, 1024, 4))
    found = document("kernels", program)
    slowest = max(found["kernels"], key=lambda row: row["model_us"])
    sites = document("launches", program)["rows"]
    parts = next(row["parts"] for row in sites if row["name"] == slowest["name"])
    print(run("kernels", program)[1][0])
    return {
        "ops": {part.split()[0].rpartition("/")[2] for part in parts},
        "over the floor": slowest["model_us"] / slowest["floor_us"],
        "in excess": slowest["findings"][0]["kind"],
        "moved over needed": slowest["findings"][0]["factor"],
    }


if __name__ == "__main__":
    answer()
