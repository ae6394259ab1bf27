"""Edits that no walker near the molecule shows are not identical, whichever program is the edited one."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.exact.identity import compare_functions
from fusionlab.hlo import lowering
from fusionlab.hlo.flat import flatten
from tests.equivalence.test_planted_edits import CASES, EDITS, RECIPROCAL, attention, bounded
from workloads import catalogue
from workloads.molecules import MOLECULES
from workloads.programs.potential import coulomb_energy


def differ(original, edited):
    modules = original.parse(), edited.parse()
    views = [flatten(module) for module in modules]
    return all(compare_functions(*pair).result == "not-identical" for pair in (views, views[::-1]))


@pytest.fixture(scope="module")
def ferminet():
    return lowering.lower(catalogue.build("ferminet", "LiH", program="log-psi", walkers=1, size="tiny"), "cpu")


@pytest.mark.parametrize(("name", "place"), CASES, ids=[f"{name}, place {place}" for name, place in CASES])
def test_an_edit_of_a_network_is_seen(name, place, ferminet, program_of_text):
    assert differ(ferminet, program_of_text(EDITS[name][0](str(ferminet.parse()), place)))


@pytest.mark.parametrize("place", [0, 1], ids=["to-nuclei", "between-electrons"])
@pytest.mark.parametrize("bound", [1000.0, 20.0])
def test_a_reciprocal_that_is_capped_is_seen(bound, place, lowered, program_of_text):
    molecule = MOLECULES["LiH"]
    positions = jax.ShapeDtypeStruct((2, molecule.electrons, 3), np.float32)
    potential = lowered(jax.vmap(lambda r: coulomb_energy(molecule, r)), positions)
    assert differ(potential, program_of_text(bounded(RECIPROCAL, "minimum", bound)(str(potential.parse()), place)))


def test_a_maximum_of_scores_that_starts_at_zero_is_seen(lowered):
    matrix = jax.ShapeDtypeStruct((4, 4), np.float32)
    given = jax.ShapeDtypeStruct((3, 3, 4), jnp.float32), matrix, matrix
    assert differ(*(lowered(attention(least), *given) for least in (-np.inf, 0.0)))
