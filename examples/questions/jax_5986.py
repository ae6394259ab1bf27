"""jax 5986: lax.cond in a scan is slower on a GPU than arithmetic. What does the branch become?"""

import jax.numpy as jnp
from commands import array
from jax import lax

import fusionlab


def cheap(x, u, w):
    """Two elementwise branches."""
    return lax.cond(u > 0, lambda: x + u, lambda: jnp.sin(x) * u)


def costly(x, u, w):
    """A branch with a matrix product."""
    return lax.cond(u > 0, lambda: x + u, lambda: jnp.tanh(x @ w))


def select(x, u, w):
    """The two elementwise branches, both computed."""
    return jnp.where(u > 0, x + u, jnp.sin(x) * u)


def scanned(branch):
    """A scan over 1,000 of these steps."""

    def loop(x, us, w):
        return lax.scan(lambda x, u: (branch(x, u, w), None), x, us)[0]

    return loop


def answer():
    """Conditionals that are left, and launches: a cheap branch, its arithmetic form, a costly branch."""
    arguments = array(8, 128), array(1000), array(128, 128)
    print(fusionlab.diff(scanned(cheap), scanned(select), *arguments).verdict)
    found = [fusionlab.launches(scanned(one), *arguments) for one in (cheap, select, costly)]
    return {
        "conditionals": [one.counts.conditionals for one in found],
        "launches": [one.dynamic_launches for one in found],
    }


if __name__ == "__main__":
    answer()
