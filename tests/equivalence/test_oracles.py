"""Oracles beside the original: brute force for models, StableHLO's reference interpreter for small programs."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising import RULES
from fusionlab.equivalence.brute_force import ask_brute_force, coulomb
from fusionlab.equivalence.check import check_programs, check_workload
from fusionlab.equivalence.interpreter import ask_interpreter, evaluate
from fusionlab.equivalence.oracle import program_runner, workload_runner
from fusionlab.equivalence.samples import Sample, signature_samples, workload_samples
from fusionlab.hlo import lowering
from fusionlab.workloads import catalogue

X = np.linspace(-1.0, 1.0, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module")
def workload():
    return catalogue.build("ferminet", "LiH", walkers=7, size="tiny")


@pytest.fixture(scope="module")
def truth(workload):
    run = workload_runner(workload, "float64")
    samples = list(workload_samples(workload))
    return [(sample, run(sample.arrays)) for sample in (samples[1], samples[-1])]


@pytest.mark.slow
def test_brute_force_agrees_with_the_models_energy(workload, truth):
    for sample, energies in truth:
        found = ask_brute_force(workload, sample, energies)
        assert found.agrees, (sample.label, found)
        assert found.max_abs_error < 1e-8


@pytest.mark.slow
def test_brute_force_sees_a_wrong_energy(workload, truth):
    sample, energies = truth[0]
    for wrong in (energies[0] * 1.0001, -energies[0], np.full_like(energies[0], np.nan)):
        assert ask_brute_force(workload, sample, [wrong]).agrees is False


def test_brute_force_says_what_it_does_not_know(workload, truth):
    found = ask_brute_force(workload.rebuild(program="log-psi"), truth[0][0], truth[0][1])
    assert found.agrees is None
    assert "local energies" in found.reason


def test_coulombs_law_of_two_charges():
    walkers = np.array([[[0.0, 0.0, 2.0], [0.0, 0.0, -2.0]]])
    energy, scale = coulomb(walkers, np.array([[0.0, 0.0, 0.0], [0.0, 3.0, 0.0]]), np.array([2.0, 1.0]))
    assert energy[0] == pytest.approx(1 / 4 + 2 / 3 - 2 * (2 / 2 + 1 / 13**0.5))
    assert scale[0] == pytest.approx(1 / 4 + 2 / 3 + 2 * (2 / 2 + 1 / 13**0.5))


@pytest.mark.slow
def test_a_verdict_says_what_brute_force_says(workload):
    lowered = [lowering.lower(workload.rebuild(dtype=dtype), "cpu") for dtype in ("float32", "float64")]
    verdict = check_workload(workload, *lowered, oracles=True)
    (said,) = verdict.oracles
    assert verdict.passed
    assert (said.name, said.agrees) == ("brute force", True)


INTERPRETED = {
    "loop": lambda x: lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[:, k, None] * x), x),
    "booleans": lambda x: (x > 0, (x * 3).astype(jnp.int32)),
    "chlo": lambda x: lax.erf(x) + lax.asinh(x),
    "contraction": lambda x: (x @ x.T, jnp.cumsum(x, 1), x.max(0)),
    "branch": lambda x: lax.cond(x[0, 0] > 0, jnp.sin, jnp.cos, x),
}


@pytest.mark.parametrize("name", INTERPRETED)
def test_the_interpreter_gives_the_functions_numbers(name, lowered):
    found = evaluate(lowered(INTERPRETED[name], X), (X,))
    for ours, theirs in zip(found, jax.tree.leaves(INTERPRETED[name](jnp.asarray(X))), strict=True):
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
        np.testing.assert_allclose(ours, theirs, rtol=1e-5, atol=1e-6)


def test_the_interpreter_takes_every_element_type(lowered):
    arrays = (np.array([True, False, True]), np.arange(3, dtype=np.uint8), np.ones((), np.float16))
    found = evaluate(lowered(lambda b, n, h: (~b, n + 1, h * 2), *arrays), arrays)
    for ours, theirs in zip(found, (~arrays[0], arrays[1] + np.uint8(1), np.float16(2)), strict=True):
        np.testing.assert_array_equal(ours, theirs)


def test_a_file_is_also_judged_by_the_interpreter(lowered, monkeypatch):
    program = lowered(INTERPRETED["loop"], X)
    verdict = check_programs(program, program, oracles=True)
    assert [(said.name, said.agrees) for said in verdict.oracles] == [("StableHLO reference interpreter", True)]
    # Where raising and XLA were wrong in the same way, nothing else would see it.
    monkeypatch.setitem(RULES, "stablehlo.sine", RULES["stablehlo.cosine"])
    sample = next(iter(signature_samples(program)))
    wrong = [program_runner(program, widen=widen)(sample.arrays) for widen in (True, False)]
    assert ask_interpreter(program, sample, *wrong).agrees is False


def test_what_the_interpreter_cannot_do_is_a_reason(lowered, program_of_text):
    with_lapack = lowered(jnp.linalg.slogdet, np.eye(3, dtype=np.float32))
    large = lowered(lambda x: x @ x, jax.ShapeDtypeStruct((300, 300), "float32"))
    unknown = program_of_text(
        "func.func public @main(%x: tensor<3xf32>) -> tensor<3xf32> {\n"
        '%0 = "stablehlo.cross-replica-sum"(%x) {replica_groups = dense<0> : tensor<1x1xi64>} '
        ": (tensor<3xf32>) -> tensor<3xf32>\nreturn %0 : tensor<3xf32>\n}\n"
    )
    for program, part in ((with_lapack, "custom call @lapack"), (large, "too large"), (unknown, "cannot evaluate")):
        arrays = tuple(np.zeros(type_.shape, np.float32) for type_ in program.inputs)
        found = ask_interpreter(program, Sample("zeros", arrays), [np.zeros(3)], [np.zeros(3)])
        assert found.agrees is None
        assert part in found.reason
