"""The samplers on densities known in closed form, and the inference step, whose energies belong to its walkers."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.workloads.ansatz import Ansatz
from fusionlab.workloads.ansatze import psiformer
from fusionlab.workloads.molecule import Molecule
from fusionlab.workloads.programs import inference_step, local_energy, mcmc
from fusionlab.workloads.programs.drift import limited_drift
from fusionlab.workloads.programs.pruning import prune
from fusionlab.workloads.programs.samplers import SAMPLERS, Sampler
from fusionlab.workloads.programs.walker_state import State
from fusionlab.workloads.upstream import UPSTREAM
from tests.workloads.wavefunctions import HYDROGEN, LIH, drawn, hydrogen, in_tiers


def test_hydrogen_atom():
    """Every local energy is -1/2 hartree and the mean radius 3/2 bohr."""
    ansatz = hydrogen(upstream="paulinet")
    step = jax.jit(inference_step.build(ansatz, "replay"))
    parameters, walkers = drawn(ansatz, 5000)
    tau = np.float32(1)
    for seed in range(5):
        result = step(parameters, walkers, jax.random.PRNGKey(seed), tau)
        walkers, tau = result["walkers"], result["step"]
    np.testing.assert_allclose(result["local_energy"], -0.5, atol=1e-3)
    radii = np.linalg.norm(np.asarray(result["walkers"])[:, 0], axis=1)
    assert abs(radii.mean() - 1.5) < 5 * (0.75 / 5000) ** 0.5


@pytest.fixture(scope="module")
def outcome(quickly):
    """Psiformer on LiH, its parameters, and one inference step of eight walkers in float32."""
    ansatz = psiformer.build(LIH, "tiny")
    arguments = (*drawn(ansatz, 8), np.array([3, 4], np.uint32), mcmc.initial_step(ansatz, jnp.float32))
    return ansatz, arguments[0], quickly(inference_step.build(ansatz, "replay"), *arguments)(*arguments)


@pytest.mark.slow
def test_energies_are_those_of_the_returned_walkers(outcome, quickly):
    ansatz, parameters, result = outcome
    arguments = parameters, result["walkers"]
    expected = quickly(local_energy.build(ansatz, "replay"), *arguments)(*arguments)["local_energy"]
    np.testing.assert_allclose(result["local_energy"], expected, rtol=2e-3, atol=2e-3)
    assert float(result["energy"]) == pytest.approx(float(np.mean(result["local_energy"])), rel=1e-5)


def test_result_names_shapes_and_dtypes(outcome):
    shapes = {name: value.shape for name, value in outcome[2].items()}
    vectors = dict.fromkeys(("log_psi", "sign", "local_energy"), (8,))
    assert shapes == {"walkers": (8, 4, 3), "acceptance": (), "step": (), "energy": (), **vectors}
    assert {value.dtype for value in outcome[2].values()} == {np.dtype("float32")}


WALKERS, WIDTH = 20_000, 1.3
KEY = np.array([1, 2], np.uint32)
PROPOSALS = {
    "metropolis": Sampler(step=1.5, target_acceptance=None),
    "langevin": Sampler(step=1.0, target_acceptance=None, drift=True),
}


def gaussian(sampler="metropolis-deepqmc"):
    """|psi|^2 is normal with standard deviation ``WIDTH`` in each direction; the parameter is ``WIDTH``."""

    def log_psi(width, r):
        return jnp.ones((), r.dtype), -jnp.sum(r**2) / (4 * width**2)

    upstream = replace(UPSTREAM["ferminet"], sampler=sampler)
    return Ansatz("gaussian", HYDROGEN, lambda key, dtype: jnp.asarray(WIDTH, dtype), log_psi, upstream)


@pytest.fixture(scope="module", params=list(PROPOSALS))
def transitions(request):
    """``(walkers, seed) -> result`` of the program with a fixed step."""
    sampler = PROPOSALS[request.param]
    program = jax.jit(mcmc.build(gaussian(), sampler=sampler))
    width, step = np.float32(WIDTH), np.float32(sampler.step)
    return lambda walkers, seed: program(width, walkers, jax.random.PRNGKey(seed), step)


def exact_walkers(seed):
    return WIDTH * jax.random.normal(jax.random.PRNGKey(seed), (WALKERS, 1, 3))


def assert_normal(walkers):
    """Mean and variance of every coordinate within five standard errors of those of the density."""
    walkers = np.asarray(walkers, np.float64).reshape(WALKERS, 3)
    assert np.all(np.abs(walkers.mean(axis=0)) < 5 * WIDTH / WALKERS**0.5)
    assert np.all(np.abs(walkers.var(axis=0) - WIDTH**2) < 5 * WIDTH**2 * (2 / WALKERS) ** 0.5)


def test_the_density_is_stationary_and_the_result_belongs_to_the_walkers(transitions):
    result, again, other = (transitions(exact_walkers(0), seed) for seed in (1, 1, 2))
    walkers = np.asarray(result["walkers"])
    assert 0.2 < float(result["acceptance"]) < 0.95
    assert_normal(walkers)
    np.testing.assert_allclose(
        result["log_psi"], -np.sum(walkers**2, axis=(1, 2)) / (4 * WIDTH**2), rtol=1e-5, atol=1e-6
    )
    assert np.all(np.asarray(result["sign"]) == 1)
    np.testing.assert_array_equal(walkers, again["walkers"])
    assert np.mean(walkers == np.asarray(other["walkers"])) < 0.2  # another key


def test_walkers_converge_to_the_density(transitions):
    walkers = 0.3 * exact_walkers(2) + 0.5
    for seed in range(5):
        walkers = transitions(walkers, seed)["walkers"]
    assert_normal(walkers)


def test_transitions_are_reversible(transitions):
    """In equilibrium E[f(before) g(after)] = E[g(before) f(after)] for any f and g."""
    before = exact_walkers(3)
    x, y = (np.asarray(r, np.float64)[:, 0] for r in (before, transitions(before, 4)["walkers"]))
    pairs = [(np.abs, np.square), (np.tanh, lambda r: r**3), (lambda r: r < 0.5, lambda r: np.exp(-r * r))]
    for f, g in pairs:
        flow = (f(x) * g(y) - g(x) * f(y)).ravel()
        assert abs(flow.mean()) < 5 * flow.std() / flow.size**0.5
        assert flow.std() > 0


@pytest.mark.parametrize("name", in_tiers(SAMPLERS, ("langevin", "metropolis-oneqmc")))
def test_step_settles_where_the_target_share_is_accepted(name):
    ansatz = gaussian(name)
    program, step = jax.jit(mcmc.build(ansatz)), mcmc.initial_step(ansatz, jnp.float32)
    assert float(step) == pytest.approx(SAMPLERS[name].step)
    walkers = exact_walkers(10)[:2000]
    for seed in range(12):
        result = program(np.float32(WIDTH), walkers, jax.random.PRNGKey(seed), step)
        walkers, step = result["walkers"], result["step"]
    assert float(result["acceptance"]) == pytest.approx(SAMPLERS[name].target_acceptance, abs=0.06)
    assert {leaf.dtype for leaf in jax.tree.leaves(result)} == {np.dtype("float32")}


def test_unknown_sampler_names_the_known_ones():
    with pytest.raises(InputError, match="unknown sampler 'metropolis-oneqcm'; did you mean: metropolis-oneqmc"):
        mcmc.build(gaussian("metropolis-oneqcm"))


def drift_of_one_electron(v, r, molecule, step):
    """``limited_drift`` written out for one electron."""
    offsets = r - molecule.nuclei
    nearest = int(np.argmin(np.linalg.norm(offsets, axis=1)))
    z, charge = offsets[nearest], molecule.charges[nearest]
    distance, speed = np.linalg.norm(z), np.linalg.norm(v)
    a = (1 + v @ z / (speed * distance)) / 2 + (charge * distance) ** 2 / (10 * (4 + (charge * distance) ** 2))
    v = v * 2 / (1 + np.sqrt(1 + 2 * a * speed**2 * step))
    return np.asarray(v * min(1.0, distance / (step * np.linalg.norm(v))))


@pytest.mark.usefixtures("x64")
def test_drift_is_its_formula_and_finite_at_a_nucleus_and_without_gradient():
    molecule = Molecule("LiH", (3, 1), ((0.0, 0.0, 0.0), (0.0, 0.0, 3.0)))
    random = np.random.default_rng(0)
    r, v = random.normal(size=(6, 3)), random.normal(size=(6, 3)) * np.array([[0.1], [1], [3], [10], [30], [100]])
    r[5] = [0.0, 0.01, 3.0]
    expected = [drift_of_one_electron(vi, ri, molecule, 0.4) for vi, ri in zip(v, r, strict=True)]
    np.testing.assert_allclose(limited_drift(jnp.asarray(v), jnp.asarray(r), molecule, 0.4), expected, rtol=1e-10)
    one = jnp.ones((1, 3), "float32")
    assert np.all(np.isfinite(limited_drift(one, jnp.zeros_like(one), HYDROGEN, 0.5)))
    assert not np.any(limited_drift(jnp.zeros_like(one), one, HYDROGEN, 0.5))


def test_pruning_replaces_lost_walkers_by_others():
    log_psi = np.array([0.0, 0.1, -0.1, np.nan, 0.2, -np.inf, -50.0, 0.05], np.float32)
    r = np.arange(8, dtype=np.float32)[:, None, None] * np.ones((8, 1, 3), np.float32)
    state = jax.jit(lambda s, k: prune(s, k, 4.0))(State(r, log_psi, np.ones(8, np.float32), ()), KEY)
    good = [0, 1, 2, 4, 7]
    np.testing.assert_array_equal(np.asarray(state.r)[good], r[good])
    source = np.asarray(state.r)[:, 0, 0].astype(int)
    assert set(source) <= {*good, 6}
    np.testing.assert_array_equal(state.log_psi, log_psi[source])


def test_pruning_draws_every_good_walker_equally_often():
    log_psi = np.where(np.arange(4000) < 3000, -np.inf, 0.0).astype(np.float32)
    r = np.arange(4000, dtype=np.float32)[:, None, None]
    state = prune(State(r, log_psi, np.ones(4000, np.float32), ()), KEY, 4.0)
    donors = np.asarray(state.r)[:3000, 0, 0]
    assert donors.min() >= 3000
    assert abs(donors.mean() - 3499.5) < 5 * 1000 / (12 * 3000) ** 0.5


def test_pruning_happens_only_before_the_first_transition():
    """One wavefunction evaluation before the loop and one inside it."""
    program = mcmc.build(gaussian(), sampler=SAMPLERS["metropolis-oneqmc"])
    jaxpr = jax.make_jaxpr(program)(np.float32(WIDTH), np.zeros((4, 1, 3), np.float32), KEY, np.float32(1))
    loops = [e for e in jaxpr.jaxpr.eqns if e.primitive.name == "scan"]
    assert [loop.params["length"] for loop in loops] == [mcmc.TRANSITIONS]
    assert "sort" not in str(loops[0].params["jaxpr"])
    assert "sort" in str(jaxpr)
