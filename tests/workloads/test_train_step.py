"""The training step: clipping, the gradient estimator, AdamW, and an energy that goes down."""

from dataclasses import replace

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.workloads.ansatze import psiformer
from fusionlab.workloads.programs import mcmc, train_step
from fusionlab.workloads.programs.adamw import adamw, init_adamw
from fusionlab.workloads.programs.clipping import CLIPPINGS, log_squeeze, mean_clip, median_clip
from fusionlab.workloads.programs.robust_statistics import median, quantile
from fusionlab.workloads.programs.samplers import Sampler
from fusionlab.workloads.upstream import UPSTREAM
from tests.workloads.wavefunctions import LIH, drawn, hydrogen, in_tiers

pytestmark = pytest.mark.slow


def test_gradient_estimator_is_the_derivative_of_the_energy():
    """dE/da = a - 1, from exact samples of |psi|^2 and exact local energies -a^2/2 + (a - 1)/r."""
    a, walkers = 0.6, 200_000
    random = np.random.default_rng(0)
    radii = random.gamma(3.0, 1 / (2 * a), walkers)
    directions = random.normal(size=(walkers, 3))
    r = (radii[:, None] * directions / np.linalg.norm(directions, axis=1, keepdims=True))[:, None, :]
    energies = -(a**2) / 2 + (a - 1) / radii
    gradient = train_step.energy_gradient(hydrogen(0.6), np.float32(a), r.astype("float32"), energies.astype("float32"))
    terms = 2 * (energies - energies.mean()) * (-radii)
    assert abs(float(gradient) - (a - 1)) < 5 * terms.std() / walkers**0.5
    assert float(gradient) == pytest.approx(terms.mean(), rel=1e-3)


def trained(step, parameters, walkers, tau, seeds):
    """The result of every step, each begun where the last one ended."""
    optimiser = train_step.initial_optimiser(parameters)
    for seed in seeds:
        result = step(parameters, walkers, jax.random.PRNGKey(seed), tau, optimiser)
        parameters, optimiser, walkers, tau = (result[name] for name in ("parameters", "optimiser", "walkers", "step"))
        yield result


@pytest.mark.slow
def test_training_finds_the_ground_state_of_hydrogen():
    ansatz = hydrogen(0.6)
    step = jax.jit(train_step.build(ansatz, "replay", learning_rate=0.02))
    *_, state = trained(step, *drawn(ansatz, 500), np.float32(1), range(60))
    assert float(state["parameters"]) == pytest.approx(1.0, abs=0.03)
    assert float(state["energy"]) == pytest.approx(-0.5, abs=2e-3)
    assert int(state["optimiser"][0].count) == 60


@pytest.mark.full
def test_training_lowers_the_energy_of_lih():
    ansatz = psiformer.build(LIH, "tiny")
    step = jax.jit(train_step.build(ansatz, "replay", learning_rate=3e-3))
    sample = jax.jit(mcmc.build(ansatz))
    (parameters, walkers), tau = drawn(ansatz, 128), mcmc.initial_step(ansatz, jnp.float32)
    for seed in range(10):
        equilibrated = sample(parameters, walkers, jax.random.PRNGKey(seed), tau)
        walkers, tau = equilibrated["walkers"], equilibrated["step"]
    energies = [float(one["energy"]) for one in trained(step, parameters, walkers, tau, range(1000, 1200))]
    assert np.mean(energies[:5]) > -4.5
    assert -8.2 < np.mean(energies[-20:]) < -7.0  # the exact energy is -8.07 hartree


def test_one_adamw_step_by_hand():
    parameters = {"w": jnp.asarray([1.0, -2.0], "float32")}
    gradient = {"w": jnp.asarray([0.5, 0.0], "float32")}
    updated, _ = adamw(gradient, init_adamw(parameters), parameters, 1e-2)
    # The first update is the gradient's sign (its means are unbiased), plus the decay of the weights.
    np.testing.assert_allclose(updated["w"], [1 - 1e-2 * (1 + 1e-4), -2 + 1e-2 * 1e-4 * 2], rtol=1e-6)


ENERGIES = np.array([-8.0, -7.9, -8.1, -8.05, -7.95, -8.02, 300.0, -500.0], np.float32)


@pytest.mark.parametrize(("clip", "centre"), [(median_clip, np.median(ENERGIES)), (mean_clip, np.mean(ENERGIES))])
def test_clips_move_only_the_outliers(clip, centre):
    allowed = 2 * np.mean(np.abs(ENERGIES - centre))
    clipped = np.asarray(clip(jnp.asarray(ENERGIES), 2.0))
    np.testing.assert_allclose(clipped[:6], ENERGIES[:6])
    np.testing.assert_allclose(clipped[6:], [centre + allowed, centre - allowed], rtol=1e-5)


def test_log_squeeze_is_the_identity_near_the_median_and_logarithmic_far_away():
    energies = np.concatenate([np.linspace(-1, 1, 99), [1e4, -1e4]]).astype("float32")
    squeezed = np.asarray(log_squeeze(jnp.asarray(energies)))
    small = np.abs(energies) < 0.1
    np.testing.assert_allclose(squeezed[small], energies[small], rtol=0.02, atol=1e-6)
    assert np.all(np.diff(squeezed[:99]) > 0)
    width = 2 * np.quantile(np.abs(energies), 0.95)
    np.testing.assert_allclose(squeezed[-2:], [width * np.log(1e4 / width), -width * np.log(1e4 / width)], rtol=0.05)


@pytest.mark.parametrize("count", [1, 4, 7])
def test_median_and_quantile_leave_out_what_is_not_a_number(count):
    values = np.random.default_rng(count).normal(size=count).astype("float32")
    nans = np.full(3, np.nan, np.float32)
    for given in (values, jnp.concatenate([values, nans]), jnp.concatenate([nans, values])):
        assert float(median(given)) == pytest.approx(np.median(values))
        assert float(quantile(given, 0.95)) == pytest.approx(np.quantile(values, 0.95))


BROKEN = np.concatenate([ENERGIES, [np.nan, np.inf, -np.inf]]).astype("float32")


@pytest.mark.parametrize("clip", CLIPPINGS.values(), ids=list(CLIPPINGS))
def test_clips_keep_equal_energies_and_those_that_are_not_finite_do_not_touch_the_others(clip):
    np.testing.assert_allclose(clip(jnp.full(7, -8.0)), -8.0)
    clipped = np.asarray(clip(jnp.asarray(BROKEN)))
    np.testing.assert_allclose(clipped[:8], clip(jnp.asarray(ENERGIES)), rtol=1e-6)
    assert np.all(np.isnan(clipped[8:]))


def test_walkers_without_an_energy_leave_the_gradient_as_if_they_were_not_there():
    r = np.random.default_rng(1).normal(size=(11, 1, 3)).astype("float32")
    r[8:] = np.nan
    clipped = median_clip(jnp.asarray(BROKEN))
    gradient = train_step.energy_gradient(hydrogen(0.6), np.float32(1), r, clipped)
    expected = train_step.energy_gradient(hydrogen(0.6), np.float32(1), r[:8], clipped[:8])
    assert float(gradient) == pytest.approx(float(expected), rel=1e-5)
    assert float(gradient) != 0


@pytest.mark.parametrize(
    "name", in_tiers(("paulinet", "psiformer", "ferminet", "psiformer-deepqmc"), ("paulinet", "psiformer"))
)
def test_a_broken_walker_does_not_poison_a_training_step(name):
    """Its electron stands where there is no wavefunction, and proposals are nowhere better, so it stays broken."""
    ansatz = replace(hydrogen(0.6), upstream=UPSTREAM[name])

    def log_psi(a, r):
        sign, log = hydrogen(0.6).log_psi(a, r)
        return sign, log + 1e-20 * a * jnp.sqrt(1e6 - jnp.sum(r**2))

    ansatz = replace(ansatz, log_psi=log_psi)
    step = jax.jit(train_step.build(ansatz, "replay", sampler=Sampler(step=0.5, target_acceptance=None)))
    a, walkers = jax.tree.map(np.array, drawn(ansatz, 50))
    walkers[7] = 1e4
    result = step(a, walkers, jax.random.PRNGKey(1), np.float32(0.5), train_step.initial_optimiser(a))
    assert list(np.flatnonzero(~np.isfinite(result["local_energy"]))) == [7]
    assert np.isfinite(result["parameters"])
    assert result["parameters"] != a
    assert all(np.all(np.isfinite(leaf)) for leaf in jax.tree.leaves(result["optimiser"]))
