"""Psiformer and Orbformer against numbers computed once by oneQMC, given the same parameters and walkers.

The numbers come from oneQMC at the revision of 2025-07, in float64 with its embeddings converted to float64: log|psi|,
its sign, and the local energy by oneQMC's loop Laplacian. Ours agreed to 3e-13 (log) and 3e-11 hartree (energy).
"""

import jax
import numpy as np
import pytest

from tests.workloads.wavefunctions import OURS, abstract, in_tiers
from workloads.molecules import find_molecule
from workloads.programs import local_energy

pytestmark = pytest.mark.usefixtures("x64")

REFERENCE: dict[str, dict[str, list[float]]] = {
    "psiformer-LiH": {
        "sign": [1, 1, 1, 1],
        "log_psi": [0.8634540337904368, -1.919333160345686, -2.1485499670738992, -0.193520248860225],
        "local_energy": [-2.559419350873178, -0.5989729189892237, 13.800564027845413, -8.816520795310941],
    },
    "psiformer-CH4": {
        "sign": [1, 1, 1, -1],
        "log_psi": [-4.7311178981485975, -7.065254462766969, -3.8348464620033456, -4.744530776613077],
        "local_energy": [-18.11915520442564, -11.016900070600826, -12.107333689630433, -13.15205643860839],
    },
    "orbformer-LiH": {
        "sign": [-1, 1, -1, 1],
        "log_psi": [8.15828334584883, 6.413319365459587, 6.779383374306499, 6.072277533775646],
        "local_energy": [-3.452428169014661, -2.174620379018183, -9.377797497995003, -0.9293166081330944],
    },
    "orbformer-CH4": {
        "sign": [-1, 1, -1, 1],
        "log_psi": [10.65583070781472, 6.492589999303229, 10.003016172194592, 6.86616675608226],
        "local_energy": [-21.660250664007428, -19.50319978268419, -14.231455775313922, -11.031714647719717],
    },
    "orbformer_leaf-LiH": {
        "sign": [1, -1, 1, -1],
        "log_psi": [11.692495489673359, 7.892936813486797, 9.943382211179378, 8.875114757326083],
        "local_energy": [-2.5367545338405963, -0.0415169980757662, -10.991331628677893, -9.882563238504263],
    },
}


BUILDERS = {**OURS, "orbformer_leaf": lambda molecule: OURS["orbformer"](molecule, mode="leaf")}


def ansatz_of(case):
    name, molecule = case.split("-")
    return BUILDERS[name](find_molecule(molecule))


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
    ansatz, reference = ansatz_of(case), REFERENCE[case]
    arguments = reproducible_parameters(ansatz), reproducible_walkers(ansatz.molecule)
    sign, log_psi = quickly(jax.vmap(ansatz.log_psi, (None, 0)), *arguments)(*arguments)
    np.testing.assert_array_equal(sign, reference["sign"])
    np.testing.assert_allclose(log_psi, reference["log_psi"], atol=1e-11, rtol=0)


@pytest.mark.parametrize("case", in_tiers(REFERENCE, ("psiformer-LiH",)))
def test_local_energy_is_that_of_oneqmc(case, quickly):
    ansatz = ansatz_of(case)
    arguments = reproducible_parameters(ansatz), reproducible_walkers(ansatz.molecule)
    energies = quickly(local_energy.build(ansatz, "replay"), *arguments)(*arguments)["local_energy"]
    np.testing.assert_allclose(energies, REFERENCE[case]["local_energy"], atol=1e-9, rtol=0)
