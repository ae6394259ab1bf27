"""jax 7024: a small filter is far slower on a GPU than on a CPU. How many kernels does a step launch?"""

import jax.numpy as jnp
from commands import array
from jax import lax

import fusionlab


def filtered(state, covariance, measured):
    """A Kalman filter: matrices of 4 x 4, one step after the other."""

    def step(carry, y):
        x, p = carry
        move = jnp.eye(4) + 0.1 * jnp.eye(4, k=1)
        x, p = move @ x, move @ p @ move.T + 0.1 * jnp.eye(4)
        gain = jnp.linalg.solve(p[:2, :2] + jnp.eye(2), p[:2]).T
        return (x + gain @ (y - x[:2]), p - gain @ p[:2]), x

    return lax.scan(step, (state, covariance), measured)


def answer():
    """Launches in a step, and the share of the modelled time that is the cost of launching alone (1 us each)."""
    found = fusionlab.launches(filtered, array(4), array(4, 4), array(1000, 2), by="source")
    print(found.verdict)
    share = found.dynamic_launches / found.totals.model_us
    return {"a step": found.dynamic_launches // 1000, "launching": share}


if __name__ == "__main__":
    answer()
