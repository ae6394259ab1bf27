"""Why is the GPU idle in my loop until convergence?"""

import jax.numpy as jnp
from commands import array
from jax import lax

import fusionlab


def jacobi(matrix, right):
    """As many trips as it takes."""

    def not_done(state):
        return (jnp.linalg.norm(state[1]) > 1e-6) & (state[2] < 1000)

    def step(state):
        x = state[0] + state[1] / jnp.diag(matrix)
        return x, right - matrix @ x, state[2] + 1

    return lax.while_loop(not_done, step, (jnp.zeros_like(right), right, 0))[0]


def answer():
    """The host round trips: one loop's."""
    found = fusionlab.launches(jacobi, array(512, 512), array(512))
    print(*(line for line in found.qualifications if line.startswith("host round trip")))
    trips = [one for one in found.record.control_flow if one.kind == "host round trip"]
    return {"round trips": len(trips), "source": trips[0].source, "launches a trip": found.dynamic_launches - 1}


if __name__ == "__main__":
    answer()
