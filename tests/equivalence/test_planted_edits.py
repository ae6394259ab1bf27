"""Edits of a program's text that no walker near the molecule shows: a check must call each different.

Lengths that are floored or capped, reciprocals that are capped, and a log-sum-exp without its maximum.
"""

import dataclasses
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.equivalence.check import check_programs, compare
from fusionlab.equivalence.oracle import program_runner, remembered, xla_runner
from fusionlab.equivalence.samples import signature_samples, workload_samples
from fusionlab.hlo import lowering
from workloads import catalogue
from workloads.molecules import MOLECULES
from workloads.programs.potential import coulomb_energy

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


@dataclasses.dataclass(frozen=True)
class Original:
    """A program, its samples as a file and as a model, and its runners, each of which runs once per sample."""

    program: object
    samples: dict
    runners: dict


@pytest.fixture(scope="module")
def ferminet():
    workload = catalogue.build("ferminet", "LiH", program="log-psi", walkers=8, size="tiny")
    program = lowering.lower(workload, "cpu")
    runners = {"truth": program_runner(program, widen=True), "original": xla_runner(program)}
    samples = {"file": list(signature_samples(program)), "model": list(workload_samples(workload))}
    return Original(program, samples, {name: remembered(run) for name, run in runners.items()})


CASES = [(name, place) for name, (_, places) in EDITS.items() for place in places]


@pytest.mark.parametrize(("name", "place"), CASES, ids=[f"{name}, place {place}" for name, place in CASES])
def test_an_edit_that_only_edge_walkers_show_is_different(name, place, ferminet, program_of_text):
    edit, _ = EDITS[name]
    edited = program_of_text(edit(str(ferminet.program.parse()), place))
    rewritten = {"rewritten": remembered(xla_runner(edited)), "rewritten_float64": program_runner(edited, widen=True)}
    for kind, samples in ferminet.samples.items():
        verdict = compare(samples, walkers=None, **ferminet.runners, **rewritten)
        assert verdict.verdict == "different", kind
        typical = compare([s for s in samples if s.typical], walkers=None, **ferminet.runners, **rewritten)
        assert typical.passed, kind


@pytest.fixture(scope="module")
def potential(lowered):
    molecule = MOLECULES["LiH"]
    return lowered(
        jax.vmap(lambda r: coulomb_energy(molecule, r)), jax.ShapeDtypeStruct((8, molecule.electrons, 3), np.float32)
    )


@pytest.mark.parametrize("place", [0, 1], ids=["to-nuclei", "between-electrons"])
@pytest.mark.parametrize("bound", [1000.0, 20.0])
def test_a_reciprocal_that_is_capped_is_different(bound, place, potential, program_of_text):
    text = str(potential.parse())
    edited = program_of_text(bounded(RECIPROCAL, "minimum", bound)(text, place))
    verdict = check_programs(potential, edited)
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
    matrix = jax.ShapeDtypeStruct((32, 32), np.float32)
    given = jax.ShapeDtypeStruct((16, 3, 32), np.float32), matrix, matrix
    original, edited = (lowered(attention(least), *given) for least in (-np.inf, 0.0))
    verdict = check_programs(original, edited)
    assert verdict.verdict == "different"
    assert verdict.worst.startswith(("seed 1", "seed 3"))
    over_fan_in = list(signature_samples(original))[1]
    assert check_programs(original, edited, [over_fan_in]).passed
