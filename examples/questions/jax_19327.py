"""jax 19327: the order of dot_general's arguments matters on the CPU. Why?"""

import jax.numpy as jnp
from commands import array
from jax import lax

import fusionlab


def weights_first(w, x):
    """Weights on the left, and the result turned."""
    return jnp.moveaxis(lax.dot_general(w, x, (((1,), (2,)), ((), ()))), 0, -1)


def weights_last(w, x):
    """Weights on the right."""
    return lax.dot_general(x, w, (((2,), (1,)), ((), ())))


def answer():
    """Launches of the two orders on the CPU and on an A100, and what the first has more."""
    arguments = array(600, 821), array(32, 100, 821)
    on_cpu, on_gpu = (
        fusionlab.diff(weights_first, weights_last, *arguments, target=target).to_dict()["totals"]["launches"]
        for target in ("cpu", "a100")
    )
    print(fusionlab.diff(weights_first, weights_last, *arguments, target="cpu").verdict)
    rows = fusionlab.launches(weights_first, *arguments, target="cpu").rows
    return {
        "cpu": (on_cpu["before"], on_cpu["after"]),
        "a100": (on_gpu["before"], on_gpu["after"]),
        "layout": [row.name for row in rows if row.family == "layout"],
    }


if __name__ == "__main__":
    answer()
