"""xla 27475: long arithmetic was fused into a slow transposition. Is it here, and what is its time over its bytes?"""

import jax.numpy as jnp
from commands import array, document, run, saved


def normalised(x):
    """Exponentials over their sum, in bfloat16, with the last two axes turned."""
    whole = jnp.exp(x) / jnp.sum(x, axis=2, keepdims=True)
    return jnp.transpose(whole.astype(jnp.bfloat16), (0, 1, 3, 2))


def answer():
    """The slowest kernel, the ops in it, and its modelled time over that of its bytes at the target's bandwidth."""
    program = saved(normalised, array(4, 1024, 1024, 4))
    sites = document("launches", program)["rows"]
    slowest = max(sites, key=lambda row: row["model_us"])
    print(run("explain", program, "--kernel", slowest["name"])[1][0])
    ops = {part.split()[0].rpartition("/")[2] for part in slowest["parts"]}
    return {"ops": ops, "over the roof": slowest["model_us"] / (slowest["bytes"] / 1555e3)}


if __name__ == "__main__":
    answer()
