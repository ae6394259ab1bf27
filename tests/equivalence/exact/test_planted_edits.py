"""Edits that no walker near the molecule shows are not identical, whichever program is the edited one."""

import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.exact.identity import compare_exactly, compare_functions
from fusionlab.hlo import lowering
from fusionlab.hlo.view import view_of
from tests.equivalence.test_planted_edits import CASES, EDITS, RECIPROCAL, attention, bounded, replaced
from workloads import catalogue
from workloads.molecules import MOLECULES
from workloads.programs.potential import coulomb_energy


def differ(original, edited):
    modules = original.parse(), edited.parse()
    views = [view_of(module) for module in modules]
    return all(compare_functions(*pair).result == "not-identical" for pair in (views, views[::-1]))


@pytest.fixture(scope="module")
def ferminet():
    return lowering.lower(catalogue.build("ferminet", "LiH", program="log-psi", walkers=1, size="tiny"), "cpu")


@pytest.mark.parametrize(("name", "place"), CASES, ids=[f"{name}, place {place}" for name, place in CASES])
def test_an_edit_of_a_network_is_seen(name, place, ferminet, program_of_text):
    assert differ(ferminet, program_of_text(EDITS[name][0](str(ferminet.parse()), place)))


MISTAKES = {
    "the difference of positions negated": (r"subtract (%\d+), (%\d+) : tensor<1x2x4x3xf32>", r"subtract \2, \1 : tensor<1x2x4x3xf32>", [0, 1, 2]),  # noqa: E501
    "a mean of three": (r"dense<2.000000e\+00>", "dense<3.0>", [0, 1, 5]),
    "the last bit of a root of two": (r"dense<1.41421354>", "dense<1.41421366>", [0, 2, 3]),
    "the last bit of a floor": (r"dense<1.1920929E-7>", "dense<1.19209304E-7>", [0, 3]),
    "another activation": (r"stablehlo.tanh", "stablehlo.logistic", [0, 1, 2]),
    "another decay": (r"stablehlo.exponential %", "stablehlo.exponential_minus_one %", [0, 1, 2]),
    "a skip that is subtracted": (r"add (%28|%40|%14|%87),", r"subtract \1,", [0, 1, 2, 3]),
    "a bias that is left out": (r"add (%\d+), (%67|%74|%114)", r"add \1, \1", [0, 1, 2]),
    "the spins exchanged": (r"concatenate (%28), (%40), dim = 1", r"concatenate \2, \1, dim = 1", [0]),
    "other weights": (r"%arg1, contracting", "%arg0, contracting", [0]),
    "an electron of the other spin": (r"slice (%\w+) \[0:1, 0:2,", r"slice \1 [0:1, 1:3,", [0, 1, 2]),
    "a sum that is a maximum": (r"applies stablehlo.add across dimensions = \[1\]", "applies stablehlo.maximum across dimensions = [1]", [0, 2, 4]),  # noqa: E501
    "an orbital of another determinant": (r"transpose (%\d+), dims = \[0, 2, 1, 3\] : \(tensor<1x2x2x4", r"transpose \1, dims = [0, 1, 2, 3] : (tensor<1x2x2x4", [0, 3]),  # noqa: E501
    "a decay without its modulus": (r"stablehlo.abs (%137|%171)", r"stablehlo.negate \1", [0]),
    "the sign of exchanges of rows": (r"dense<-2>", "dense<2>", [0]),
    "a logarithm of one more": (r"stablehlo.log %", "stablehlo.log_plus_one %", [0, 1]),
}  # fmt: skip


def mistaken(pattern, replacement, text, place):
    return replaced(re.compile(pattern), lambda found: found.expand(replacement), text, place)


@pytest.mark.slow
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_network_is_seen(name, ferminet, program_of_text):
    pattern, replacement, places = MISTAKES[name]
    for place in places:
        assert differ(ferminet, program_of_text(mistaken(pattern, replacement, str(ferminet.parse()), place))), place


def test_a_difference_that_is_squared_has_no_sign(ferminet, program_of_text):
    edited = program_of_text(mistaken(r"subtract (%124), (%125)", r"subtract \2, \1", str(ferminet.parse()), 0))
    assert compare_exactly(ferminet, edited).result == "identical"


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
