"""jax 13356: layers in a scan are slower than the same layers written out. What does the scan add?"""

import jax
import jax.numpy as jnp
from commands import array, document, run, saved
from jax import lax


def layer(x, w):
    """One residual layer."""
    return x + jnp.tanh(x @ w), None


@jax.grad
def scanned(ws, x):
    """The gradient through a scan over stacked weights."""
    return jnp.sum(lax.scan(layer, x, ws)[0])


@jax.grad
def written_out(ws, x):
    """The gradient through the same layers, one by one."""
    for w in ws:
        x, _ = layer(x, w)
    return jnp.sum(x)


def answer():
    """Launches and copies of both, and how often the scan copies a slice of its stacked arrays."""
    before, after = (saved(f, array(12, 256, 256), array(64, 256)) for f in (scanned, written_out))
    print(run("diff", before, after)[1][0])
    changed = document("diff", before, after)["totals"]["launches"]
    copies = document("memory", before)["copies"]
    slices = sum(one["runs"] for one in copies if one["cause"] == "a slice of the loop's state")
    return {"launches": (changed["before"], changed["after"]), "slices copied": slices}


if __name__ == "__main__":
    answer()
