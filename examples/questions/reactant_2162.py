"""Reactant.jl 2162: a loop over elements stays a loop. How many launches is that, and what would it be as one op?"""

import jax.numpy as jnp
from commands import array, run, saved
from jax import lax

import fusionlab


def by_elements(total, amplitude, phase, places):
    """Add a value to an entry chosen by an index, 274 times."""

    def add(i, total):
        return total.at[places[i]].add(amplitude[i] * jnp.cos(phase[i]))

    return lax.fori_loop(0, 274, add, total)


def at_once(total, amplitude, phase, places):
    """The same as one scatter."""
    return total.at[places].add(amplitude * jnp.cos(phase))


def answer():
    """Launches of both, and what the inventory of loops says."""
    arguments = array(274), array(274), array(274), array(274, dtype=jnp.int32)
    found = fusionlab.diff(by_elements, at_once, *arguments)
    print(found.verdict)
    totals = found.to_dict()["totals"]["launches"]
    lines = run("replays", saved(by_elements, *arguments))[1]
    return {"launches": (totals["before"], totals["after"]), "loop": next(x for x in lines if "274" in x)}


if __name__ == "__main__":
    answer()
