"""pytorch/xla 2997: profiles show fusion_13 and fusion_967. Which operators are in such a kernel?"""

import jax
import jax.numpy as jnp
from commands import array, document, run, saved


def block(x, w):
    """A matrix product, a softmax and a gate."""
    y = jax.nn.softmax(x @ w)
    return jnp.tanh(y) * jnp.mean(y, axis=-1, keepdims=True)


def answer():
    """The ops in the kernel that is no library call, with their lines."""
    program = saved(block, array(64, 128), array(128, 256))
    name = next(row["name"] for row in document("launches", program)["rows"] if row["family"] != "gemm")
    print(*run("explain", program, "--kernel", name)[1][:3], sep="; ")
    inside = document("explain", program, "--kernel", name)["members"]
    return {"ops": [one["opcode"] for one in inside], "files": {one["source"].partition(":")[0] for one in inside}}


if __name__ == "__main__":
    answer()
