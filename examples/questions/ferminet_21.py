"""ferminet 21: why is the local energy not jitted, and why a loop over directions and not the Hessian?"""

import jax
import jax.numpy as jnp
from commands import array
from jax import lax

import fusionlab


def log_psi(weights, x):
    """A small network of the positions."""
    return jnp.sum(jnp.tanh(jnp.tanh(x @ weights[0]) @ weights[1]))


def by_loop(weights, x):
    """The kinetic energy, a direction at a time."""
    gradient = jax.grad(log_psi, argnums=1)
    pushed = jax.linearize(lambda y: gradient(weights, y), x)[1]
    eye = jnp.eye(x.size)
    return lax.fori_loop(0, x.size, lambda i, total: total - 0.5 * pushed(eye[i])[i], 0.0)


def by_hessian(weights, x):
    """The kinetic energy from the whole Hessian."""
    return -0.5 * jnp.trace(jax.hessian(log_psi, argnums=1)(weights, x))


def batched(energy):
    """The energy of many walkers."""
    return jax.vmap(energy, (None, 0))


def answer():
    """Ops that are dispatched one by one without jit, and launches of the jitted loop and Hessian."""
    arguments = [array(30, 64), array(64, 64)], array(256, 30)
    loop, hessian = (fusionlab.launches(batched(one), *arguments) for one in (by_loop, by_hessian))
    ops = fusionlab.Program.from_function(batched(by_loop), *arguments).ops
    print(fusionlab.diff(loop, hessian).verdict)
    return {"ops": ops, "loop": loop.dynamic_launches, "hessian": hessian.dynamic_launches}


if __name__ == "__main__":
    answer()
