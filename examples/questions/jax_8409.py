"""jax 8409: does vmap of lax.cond run both branches?"""

import jax
import jax.numpy as jnp
from commands import array, document, run, saved
from jax import lax


def chosen(which, x):
    """A costly branch and a cheap one."""
    return lax.cond(which, lambda x: jnp.linalg.norm(x @ x.T), lambda x: jnp.sum(x), x)


one_for_all = jax.vmap(chosen, (None, 0))
one_for_each = jax.vmap(chosen)


def answer():
    """Conditionals before and after, and the launches that both branches cost."""
    before = saved(one_for_all, array(dtype=jnp.bool_), array(16, 64, 64))
    after = saved(one_for_each, array(16, dtype=jnp.bool_), array(16, 64, 64))
    lines = run("diff", before, after)[1]
    print(*(line for line in lines if line.startswith("conditionals:")))
    totals = document("diff", before, after)["totals"]
    return {what: (totals[what]["before"], totals[what]["after"]) for what in ("conditionals", "launches")}


if __name__ == "__main__":
    answer()
