"""Psiformer and Orbformer against numbers computed once by oneQMC, given the same parameters and walkers.

The numbers come from oneQMC at the revision of 2025-07, in float64 with its embeddings converted to float64: log|psi|,
its sign, and the local energy by oneQMC's loop Laplacian. Ours agreed to 3e-13 (log) and 3e-11 hartree (energy).
"""

import json
from pathlib import Path

import jax
import numpy as np
import pytest

from fusionlab.workloads.molecules import find_molecule
from fusionlab.workloads.programs import local_energy
from tests.workloads.wavefunctions import OURS, abstract, in_tiers

pytestmark = pytest.mark.usefixtures("x64")

REFERENCE = json.loads((Path(__file__).parent / "oneqmc.json").read_text())
BUILDERS = {**OURS, "orbformer_leaf": lambda molecule: OURS["orbformer"](molecule, mode="leaf")}


def of_case(case):
    """The ansatz, and its parameters and walkers."""
    name, molecule = case.split("-")
    ansatz = BUILDERS[name](find_molecule(molecule))
    return ansatz, (reproducible_parameters(ansatz), reproducible_walkers(ansatz.molecule))


def reproducible_parameters(ansatz):
    """Matrices of variance 1/inputs, everything else near one, drawn by NumPy leaf by leaf."""
    random = np.random.default_rng(2024)

    def draw(shape):
        unit = random.normal(size=shape)
        return np.asarray(unit * shape[0] ** -0.5 if len(shape) == 2 else 1 + 0.1 * unit)

    return jax.tree.map(lambda leaf: draw(leaf.shape), abstract(ansatz, 1, "float64")[0])


def reproducible_walkers(molecule):
    random = np.random.default_rng(7)
    homes = np.repeat(np.arange(len(molecule.charges)), molecule.charges)
    shape = (molecule.electrons, 3)
    return np.stack([molecule.nuclei[random.permutation(homes)] + random.normal(size=shape) for _ in range(4)])


@pytest.mark.parametrize("case", in_tiers(REFERENCE, [name for name in REFERENCE if name.endswith("LiH")]))
def test_wavefunction_is_that_of_oneqmc(case, quickly):
    (ansatz, arguments), reference = of_case(case), REFERENCE[case]
    sign, log_psi = quickly(jax.vmap(ansatz.log_psi, (None, 0)), *arguments)(*arguments)
    np.testing.assert_array_equal(sign, reference["sign"])
    np.testing.assert_allclose(log_psi, reference["log_psi"], atol=1e-11, rtol=0)


@pytest.mark.parametrize("case", in_tiers(REFERENCE, ("psiformer-LiH",)))
def test_local_energy_is_that_of_oneqmc(case, quickly):
    ansatz, arguments = of_case(case)
    energies = quickly(local_energy.build(ansatz, "replay"), *arguments)(*arguments)["local_energy"]
    np.testing.assert_allclose(energies, REFERENCE[case]["local_energy"], atol=1e-9, rtol=0)
