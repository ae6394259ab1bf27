"""Edits of a program's text that no walker near the molecule shows: both checks must call each different.

Lengths that are floored or capped, reciprocals that are capped, and a log-sum-exp without its maximum.
"""

import re
from types import SimpleNamespace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.check import check_programs, compare
from fusionlab.equivalence.exact.identity import compare_exactly
from fusionlab.equivalence.oracle import program_runner, remembered, xla_runner
from fusionlab.equivalence.samples import signature_samples, workload_samples
from fusionlab.hlo import lowering
from fusionlab.workloads import catalogue
from fusionlab.workloads.molecules import MOLECULES
from fusionlab.workloads.programs.potential import coulomb_energy

LENGTH = re.compile(r"(%\w+) = (stablehlo\.sqrt %\w+) : (tensor<\S*>)")
RECIPROCAL = re.compile(r"(%\w+) = (stablehlo\.divide %\w+, %\w+) : (tensor<\S*>)")
MAXIMUM = re.compile(r"(%\w+) = stablehlo.reduce\((%\w+#\d) init: %\w+\) applies stablehlo.maximum")


def bounded(pattern, operation, bound):
    """The edit ``operation(value, bound)`` of the value that ``pattern`` finds, at one place."""

    def edit(found):
        result, computed, type_ = found.groups()
        return (
            f"%before = {computed} : {type_}\n%bound = stablehlo.constant dense<{bound}> : {type_}\n"
            f"{result} = stablehlo.{operation} %before, %bound : {type_}"
        )

    return lambda text, place: replaced(pattern, edit, text, place)


def maximum_from_zero(text, place):
    zero = "%zero = stablehlo.constant dense<0.0> : tensor<f32>\n"
    edit = r"\1 = stablehlo.reduce(\2 init: %zero) applies stablehlo.maximum"
    return replaced(MAXIMUM, lambda found: zero + found.expand(edit), text, place)


def replaced(pattern, edit, text, place):
    found = list(pattern.finditer(text))[place]
    return text[: found.start()] + edit(found) + text[found.end() :]


EDITS = {
    "log-sum-exp whose maximum starts at 0": (maximum_from_zero, [0]),
    "floor of 0.005 bohr": (bounded(LENGTH, "maximum", 0.005), [0, 3, 4]),
    "cap of 12 bohr": (bounded(LENGTH, "minimum", 12.0), [0]),
    "cap of 15 bohr": (bounded(LENGTH, "minimum", 15.0), [1]),
    "cap of 20 bohr": (bounded(LENGTH, "minimum", 20.0), [2, 3]),
}


@pytest.fixture(scope="module")
def ferminet():
    """A program, its samples as a file and as a model, and its runners, each of which runs once per sample."""
    workload = catalogue.build("ferminet", "LiH", program="log-psi", walkers=8, size="tiny")
    program = lowering.lower(workload, "cpu")
    samples = {"file": list(signature_samples(program)), "model": list(workload_samples(workload))}
    truth, original = map(remembered, (program_runner(program, widen=True), xla_runner(program)))
    return SimpleNamespace(program=program, samples=samples, runners={"truth": truth, "original": original})


@pytest.fixture(scope="module")
def of_one_walker():
    return lowering.lower(catalogue.build("ferminet", "LiH", program="log-psi", walkers=1, size="tiny"), "cpu")


@pytest.fixture
def assert_seen(program_of_text):
    """``assert_seen(program, edit)``: the exact check sees an edit of its text, whichever program is the edited one."""

    def check(program, edit):
        edited = program_of_text(edit(str(program.parse())))
        for pair in ((program, edited), (edited, program)):
            assert compare_exactly(*pair).result == "not-identical"

    return check


CASES = [(name, place) for name, (_, places) in EDITS.items() for place in places]


@pytest.mark.parametrize(("name", "place"), CASES, ids=[f"{name}, place {place}" for name, place in CASES])
def test_an_edit_that_only_edge_walkers_show_is_different(
    name, place, ferminet, of_one_walker, assert_seen, program_of_text
):
    edit, _ = EDITS[name]
    assert_seen(of_one_walker, lambda text: edit(text, place))
    edited = program_of_text(edit(str(ferminet.program.parse()), place))
    rewritten = {"rewritten": remembered(xla_runner(edited)), "rewritten_float64": program_runner(edited, widen=True)}
    for kind, samples in ferminet.samples.items():
        verdict = compare(samples, walkers=None, **ferminet.runners, **rewritten)
        assert verdict.verdict == "different", kind
        typical = compare([s for s in samples if s.typical], walkers=None, **ferminet.runners, **rewritten)
        assert typical.passed, kind


@pytest.mark.parametrize("place", [0, 1], ids=["to-nuclei", "between-electrons"])
@pytest.mark.parametrize("bound", [1000.0, 20.0])
def test_a_reciprocal_that_is_capped_is_different(bound, place, lowered, program_of_text, assert_seen):
    molecule, edit = MOLECULES["LiH"], bounded(RECIPROCAL, "minimum", bound)
    potential, of_two = (
        lowered(
            jax.vmap(lambda r: coulomb_energy(molecule, r)),
            jax.ShapeDtypeStruct((walkers, molecule.electrons, 3), np.float32),
        )
        for walkers in (8, 2)
    )
    assert_seen(of_two, lambda text: edit(text, place))
    verdict = check_programs(potential, program_of_text(edit(str(potential.parse()), place)))
    assert verdict.verdict == "different"
    assert "2e-04 bohr" in verdict.worst or "0.0002 bohr" in verdict.worst


def attention(least):
    """Softmax of unscaled scores; ``least`` is what the maximum starts at."""

    def outputs(x, w_query, w_key):
        scores = (x @ w_query) @ (x @ w_key).swapaxes(-1, -2)
        weights = jnp.exp(scores - jnp.max(scores, axis=-1, keepdims=True, initial=least))
        return (weights / weights.sum(-1, keepdims=True)) @ x

    return outputs


def test_scores_of_attention_need_weights_of_order_one(lowered):
    """At N(0, 1) the softmax is all or nothing, which shows a maximum that starts at 0; at 1/sqrt(fan-in) it is not."""

    def programs(walkers, features):
        matrix = jax.ShapeDtypeStruct((features, features), np.float32)
        given = jax.ShapeDtypeStruct((walkers, 3, features), np.float32), matrix, matrix
        return [lowered(attention(least), *given) for least in (-np.inf, 0.0)]

    original, edited = programs(16, 32)
    verdict = check_programs(original, edited)
    assert verdict.verdict == "different"
    assert verdict.worst.startswith(("seed 1", "seed 3"))
    over_fan_in = list(signature_samples(original))[1]
    assert check_programs(original, edited, [over_fan_in]).passed
    small = programs(3, 4)
    for pair in (small, small[::-1]):
        assert compare_exactly(*pair).result == "not-identical"


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


def mistaken(pattern, replacement, place):
    return lambda text: replaced(re.compile(pattern), lambda found: found.expand(replacement), text, place)


@pytest.mark.by_turns(4)
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_in_a_network_is_seen_exactly(name, of_one_walker, assert_seen):
    pattern, replacement, places = MISTAKES[name]
    for place in places:
        assert_seen(of_one_walker, mistaken(pattern, replacement, place))


def test_a_difference_that_is_squared_has_no_sign(of_one_walker, program_of_text):
    edit = mistaken(r"subtract (%124), (%125)", r"subtract \2, \1", 0)
    assert compare_exactly(of_one_walker, program_of_text(edit(str(of_one_walker.parse())))).result == "identical"
