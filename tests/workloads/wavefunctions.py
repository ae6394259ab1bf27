"""The wavefunctions that the tests build: every ansatz by its name, and hydrogen-like ones known in closed form."""

import importlib

import jax
import jax.numpy as jnp
import pytest

from fusionlab.workloads.ansatz import Ansatz
from fusionlab.workloads.catalogue import ANSATZE
from fusionlab.workloads.molecule import Molecule
from fusionlab.workloads.molecules import find_molecule
from fusionlab.workloads.programs.laplacians import INCOMPLETE, LAPLACIANS, STOCHASTIC
from fusionlab.workloads.programs.walkers import initial_walkers
from fusionlab.workloads.upstream import UPSTREAM

LIH, CH4 = find_molecule("LiH"), find_molecule("CH4")
HYDROGEN = Molecule("H", (1,), ((0.0, 0.0, 0.0),), spin=1)
OURS = {name: importlib.import_module(path).build for name, path in ANSATZE.items() if not name.startswith("deepqmc:")}
EXACT = [name for name in LAPLACIANS if name not in STOCHASTIC | INCOMPLETE]
STAGES = ("stage_a", "stage_b", "stage_c", "stage_d", "stage_e", "potential")


def in_tiers(names, quick):
    """``names`` as parameters: in the fast tier those that are ``quick``, in the slow one the others."""
    return [name if name in quick else pytest.param(name, marks=pytest.mark.slow) for name in names]


def drawn(ansatz, walkers, dtype="float32"):
    """(parameters, walkers) from fixed seeds."""
    dtype = jnp.dtype(dtype)
    return (
        ansatz.init(jax.random.PRNGKey(0), dtype),
        initial_walkers(jax.random.PRNGKey(1), ansatz.molecule, walkers, dtype),
    )


def abstract(ansatz, walkers, dtype="float32"):
    """The types of ``drawn``."""
    return jax.eval_shape(lambda: drawn(ansatz, walkers, dtype))


def hydrogen(a=1.0, upstream="ferminet"):
    """psi = exp(-a |r|): E(a) = a^2/2 - a hartree, and |psi|^2 makes |r| gamma distributed; a = 1 the ground state."""

    def log_psi(a, r):
        return jnp.ones((), r.dtype), -a * jnp.sqrt(jnp.sum(r**2))

    return Ansatz("exponential", HYDROGEN, lambda key, dtype: jnp.full((), a, dtype), log_psi, UPSTREAM[upstream])
