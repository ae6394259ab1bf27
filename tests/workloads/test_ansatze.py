"""What every ansatz must do; one that is added to the catalogue adds no test code here but its parameter count."""

import functools
import re
from dataclasses import dataclass, replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.workloads.ansatze import orbformer
from fusionlab.workloads.catalogue import build
from fusionlab.workloads.layers.padded_molecule import Dimensions
from fusionlab.workloads.molecule import Molecule
from tests.workloads.wavefunctions import CH4, LIH, OURS, STAGES, abstract, drawn, in_tiers

WALKERS = 16
SAMPLES = {
    **{name: lambda build=build: build(CH4, "tiny") for name, build in OURS.items()},
    "orbformer-leaf": lambda: orbformer.build(LIH, "tiny", mode="leaf"),
    "orbformer-padded": lambda: orbformer.build(LIH, "tiny", dimensions=Dimensions(3, 3, 4, 3, 3)),
}


@pytest.mark.parametrize(
    ("name", "molecule", "options", "arrays", "parameters"),
    [
        ("paulinet", LIH, {}, 67, 197_589),
        ("paulinet", CH4, {}, 67, 230_799),
        ("ferminet", LIH, {}, 20, 683_744),
        ("ferminet", CH4, {}, 20, 744_800),
        ("psiformer-deepqmc", LIH, {}, 41, 1_610_498),
        ("psiformer-deepqmc", CH4, {}, 41, 1_665_410),
        ("psiformer", LIH, {}, 46, 1_334_786),
        ("psiformer", CH4, {}, 46, 1_363_778),
        ("orbformer", LIH, {}, 88, 3_027_514),
        ("orbformer", CH4, {}, 88, 3_029_650),
        ("orbformer-flash", CH4, {}, 88, 3_029_650),
        ("orbformer", CH4, {"dimensions": Dimensions(8, 12, 12, 9, 9)}, 88, 3_032_938),
        ("orbformer", CH4, {"mode": "leaf"}, 50, 1_764_370),
    ],
)
def test_parameter_count(name, molecule, options, arrays, parameters):
    leaves = jax.tree.leaves(abstract(OURS[name](molecule, **options), 1)[0])
    assert (len(leaves), sum(leaf.size for leaf in leaves)) == (arrays, parameters)
    assert {str(leaf.dtype) for leaf in leaves} == {"float32"}


def test_an_unknown_size_names_the_known_ones():
    for build_ in OURS.values():
        with pytest.raises(InputError, match="unknown size 'tinny'; did you mean: tiny"):
            build_(LIH, "tinny")


@dataclass(frozen=True)
class Sample:
    """A tiny float64 wavefunction; ``run(walkers)`` is its compiled sign, log|psi|, and the gradients of both."""

    ansatz: Any
    walkers: Any
    run: Any


@pytest.fixture(scope="module", params=in_tiers(SAMPLES, ("ferminet", "psiformer")))
def sample(request, quickly):
    with jax.enable_x64(True):
        ansatz = SAMPLES[request.param]()
        parameters, walkers = drawn(ansatz, WALKERS, "float64")
        wavefunction = jax.vmap(ansatz.log_psi, (None, 0))

        def outputs_and_gradients(parameters, walkers):
            (sign, log), pullback = jax.vjp(lambda r: wavefunction(parameters, r), walkers)
            one, zero = jnp.ones(WALKERS), jnp.zeros(WALKERS)
            return sign, log, *pullback((zero, one)), *pullback((one, zero))

        run = quickly(outputs_and_gradients, parameters, walkers)
        yield Sample(ansatz, walkers, lambda r: run(parameters, r))


def test_exchange_of_same_spin_electrons_flips_only_the_sign(sample):
    sign, log, gradient, _ = sample.run(sample.walkers)
    electrons = sample.ansatz.molecule.electrons
    assert {float(one) for one in sign} == {-1.0, 1.0}
    for first, second in ((0, electrons // 2 - 1), (electrons // 2, electrons - 1)):
        order = np.arange(electrons)
        order[[first, second]] = second, first
        other_sign, other_log, other_gradient, _ = sample.run(sample.walkers[:, order])
        np.testing.assert_array_equal(other_sign, -sign)
        np.testing.assert_allclose(other_log, log, rtol=1e-10, atol=1e-10)
        np.testing.assert_allclose(other_gradient, gradient[:, order], rtol=1e-7, atol=1e-9)


def test_exchange_of_opposite_spins_is_no_symmetry_and_only_the_logarithm_carries_a_gradient(sample):
    _, before, gradient, sign_gradient = sample.run(sample.walkers)
    _, after, _, _ = sample.run(jnp.roll(sample.walkers, -1, axis=1))
    assert not np.any(np.isclose(after, before, rtol=1e-6))
    assert not np.any(sign_gradient)
    assert np.all(gradient)


def near_coalescence(molecule, walkers, nudge, far):
    """The first walkers moved: to both nuclei, electrons of the same spin and of opposite ones together, far away."""
    walkers, last = np.array(walkers), molecule.electrons - 1
    nudge = np.array([0.0, 0.0, nudge], walkers.dtype)
    walkers[0, 0], walkers[1, last] = molecule.nuclei[0] + nudge, molecule.nuclei[1] + nudge
    walkers[2, 0], walkers[3, 0] = walkers[2, 1] + nudge, walkers[3, molecule.n_up] + nudge
    walkers[4] *= far
    return walkers


def test_finite_near_coalescence(sample):
    far = 30.0 if "former" in sample.ansatz.name else 3.0
    for part in sample.run(jnp.asarray(near_coalescence(sample.ansatz.molecule, sample.walkers, 1e-6, far))):
        assert np.all(np.isfinite(part))


@pytest.mark.parametrize("name", in_tiers(("ferminet", "paulinet", "psiformer-deepqmc"), ("ferminet",)))
def test_finite_near_coalescence_in_float32(name):
    """Much further out, exp(-r) underflows and log|psi| is -inf, as in DeepQMC."""
    ansatz = OURS[name](LIH, "tiny")
    parameters, walkers = drawn(ansatz, 5)
    log_psi = jax.jit(jax.vmap(jax.value_and_grad(lambda r: ansatz.log_psi(parameters, r)[1])))
    for part in log_psi(near_coalescence(LIH, walkers, 1e-5, 3.0)):
        assert np.all(np.isfinite(part))


ALL_UP = Molecule("H2", (1, 1), ((0.0, 0.0, 0.0), (1.4, 0.0, 0.0)), spin=2)
ONE_DOWN = Molecule("Li", (3,), ((0.0, 0.0, 0.0),), spin=1)


@pytest.mark.parametrize(
    ("name", "molecule"),
    [
        pytest.param("paulinet", ALL_UP, marks=pytest.mark.slow),
        ("ferminet", ALL_UP),
        pytest.param("psiformer-deepqmc", ALL_UP, marks=pytest.mark.slow),
        pytest.param("paulinet", ONE_DOWN, marks=pytest.mark.slow),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_spins_without_pairs_give_finite_values_and_gradients(name, molecule, quickly):
    ansatz = OURS[name](molecule, "tiny")
    parameters, (r,) = drawn(ansatz, 1)
    function = jax.value_and_grad(lambda p, r: ansatz.log_psi(p, r)[1], (0, 1))
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(quickly(function, parameters, r)(parameters, r)))


WATER = Molecule("H2O", (8, 1, 1), ((0.0, 0.0, 0.2), (0.0, 1.4, -0.9), (0.0, -1.5, -0.8)))
SHIFT = np.array([0.3, -1.1, 2.0])
ROTATION = np.linalg.qr(np.random.default_rng(3).normal(size=(3, 3)))[0]


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("name", in_tiers(OURS, ("ferminet",)))
def test_invariances(name, quickly):
    """log|psi| where the nuclei are moved together with the electrons, or renamed.

    All ansätze see differences of positions only, so a shift of everything changes nothing. None is invariant under
    rotations: differences enter by components. Orbformer names no nucleus, it sees species; the others have weights of
    each nucleus.
    """
    parameters, walkers = drawn(OURS[name](WATER, "tiny"), 3, "float64")

    def log_psi(nuclei, walkers):
        molecule = replace(WATER, positions=tuple(tuple(map(float, row)) for row in nuclei))
        function = jax.vmap(OURS[name](molecule, "tiny").log_psi, (None, 0))
        return np.asarray(quickly(function, parameters, walkers)(parameters, walkers)[1])

    before = log_psi(WATER.nuclei, walkers)
    np.testing.assert_allclose(log_psi(WATER.nuclei + SHIFT, walkers + SHIFT), before, rtol=1e-10, atol=1e-11)
    np.testing.assert_allclose(ROTATION @ ROTATION.T, np.eye(3), atol=1e-12)
    assert not np.any(np.isclose(log_psi(WATER.nuclei @ ROTATION, walkers @ ROTATION), before, rtol=1e-6))
    renamed = log_psi(WATER.nuclei[[0, 2, 1]], walkers)  # the two hydrogens: the same physical system
    if name.startswith("orbformer"):
        np.testing.assert_allclose(renamed, before, rtol=1e-10, atol=1e-11)
    else:
        assert not np.any(np.isclose(renamed, before, rtol=1e-6))


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("name", "program", "laplacian"),
    [
        *((name, "local-energy", "replay") for name in OURS),
        *(("ferminet", "local-energy", other) for other in ("scan", "jvp-in-loop", "hutchinson")),
        *(
            pytest.param(name, "train-step", "replay", marks=pytest.mark.slow)
            for name in ("paulinet", "psiformer", "orbformer")
        ),
    ],
)
def test_one_floating_point_dtype_and_all_stages(name, program, laplacian, dtype):
    workload = build(name, "LiH", program, walkers=2, dtype=dtype, laplacian=laplacian, size="tiny")
    arguments = jax.eval_shape(workload.inputs, 0)
    traced = jax.jit(workload.function).trace(*arguments)
    assert set(re.findall(r":(b?f\d+)\[", str(traced.jaxpr))) == {f"f{dtype[5:]}"}
    assert {str(leaf.dtype) for leaf in traced.jaxpr.out_avals} <= {dtype, "int32"}
    assert {str(a.dtype) for a in jax.tree.leaves(arguments[:2])} == {dtype}
    if (laplacian, dtype) == ("replay", "float32"):
        text = traced.lower().as_text(debug_info=True)
        assert all(scope in text for scope in STAGES)


@pytest.mark.parametrize(
    ("name", "path", "mean", "deviation", "largest"),
    [
        ("paulinet", ("interactions", 1, "node", 0, "weight"), 0.0, 448**-0.5, np.inf),
        ("paulinet", ("interactions", 0, "pair", 1, "bias"), 0.0, 0.0, 0.0),
        ("paulinet", ("determinants",), 1.0, 0.0, 1.0),
        ("ferminet", ("interactions", 1, "node", 0, "weight"), 0.0, 832**-0.5, np.inf),
        ("ferminet", ("interactions", 1, "node", 0, "bias"), 0.0, 256**-0.5, np.inf),
        ("psiformer-deepqmc", ("embedding", "weight"), 0.0, 0.8796 * 21**-0.5, np.inf),
        ("psiformer-deepqmc", ("envelopes", "up", "exponent"), 1.0, 0.0, 1.0),
        ("psiformer", ("envelope_weight",), 1.0, 0.0, 1.0),
        ("psiformer", ("envelope_decay",), 1.0, 0.0, 1.0),
        ("psiformer", ("jastrow",), 1.0, 0.0, 1.0),
        *(
            ("psiformer", ("layers", layer, "attention", part, array), 0.0, deviation, largest)
            for layer in (0, 3)
            for part in ("query", "value")
            for array, deviation, largest in (("weight", 1 / 16, np.inf), ("bias", 0.0, 0.0))
        ),
        ("psiformer", ("layers", 1, "dense", "weight"), 0.0, 0.8796 / 16, 2 / 16),
    ],
)
def test_initial_distributions(name, path, mean, deviation, largest):
    """At full size; only the array that is looked at is compiled and drawn."""
    draw = build(name, "CH4", "log-psi", walkers=1).inputs
    leaves = jax.jit(lambda: jax.tree.leaves(functools.reduce(lambda tree, step: tree[step], path, draw(0)[0])))()
    for array in map(np.asarray, leaves):
        assert float(array.mean()) == pytest.approx(mean, abs=5 * deviation / np.sqrt(array.size))
        assert float(array.std()) == pytest.approx(deviation, rel=5 / np.sqrt(2 * array.size))
        assert np.max(np.abs(array)) <= largest


def test_no_two_arrays_of_an_ansatz_start_alike():
    layers = OURS["psiformer"](LIH).init(jax.random.PRNGKey(0), np.dtype("float32"))["layers"]
    first, second, key = (np.asarray(layers[layer]["attention"][part]["weight"])
                          for layer, part in ((0, "query"), (1, "query"), (0, "key")))  # fmt: skip
    assert not np.array_equal(first, second)
    assert not np.array_equal(first, key)
