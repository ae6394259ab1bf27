"""Every Laplacian variant against closed forms, and of every ansatz against the trace of the Hessian, in float64."""

from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from fusionlab.workloads.ansatz import Ansatz
from fusionlab.workloads.molecule import Molecule
from fusionlab.workloads.programs import local_energy
from fusionlab.workloads.programs.laplacians import LAPLACIANS, PROBES, SPARSITY_THRESHOLDS
from fusionlab.workloads.programs.staged_forward import _pieces, forward_laplacian
from fusionlab.workloads.upstream import UPSTREAM
from tests.workloads.wavefunctions import EXACT, LIH, OURS, drawn

pytestmark = pytest.mark.usefixtures("x64")

# Derivatives of the fused attention are those of the plain one, so its variants come out the same.
ANSATZ_TIERS = {
    **dict.fromkeys(("orbformer", "paulinet", "psiformer-deepqmc"), (pytest.mark.by_turns(4),)),
    "orbformer-flash": (pytest.mark.full,),
}
LAPLACIAN_TIERS = {
    **dict.fromkeys(("scan", "jvp-in-loop", "forward", "forward-sparse"), (pytest.mark.by_turns(4),)),
    "vmap": (pytest.mark.full,),
}
ESTIMATES = 2000


def laplacian_of(name):
    if name in SPARSITY_THRESHOLDS:
        pytest.importorskip("folx", reason="the forward Laplacians need the optional folx")
    return LAPLACIANS[name]


MIXING = np.random.default_rng(0).normal(size=(3, 3))
WEIGHTS = np.random.default_rng(2).normal(size=(9, 5))


def determinant(x):
    return jnp.linalg.slogdet(jnp.tanh(x.reshape(3, 3) @ MIXING) + jnp.eye(3))[1]


def network(x):
    return jnp.log((jnp.tanh(x @ WEIGHTS) ** 2).sum()) - 0.5 * (x * x).sum()


def two_stages(x):
    """A function with work before, within, between and after two scopes."""
    scale = jnp.sum(x) + 2.0
    with jax.named_scope("stage_a"):
        h = jnp.tanh(x * jnp.arange(1.0, 10.0))
        constant = jnp.cos(jnp.arange(9.0))
    h = h * scale
    with jax.named_scope("stage_b"), jax.named_scope("inner"):
        y = jnp.dot(h, constant) ** 2
    return y + scale


@pytest.mark.parametrize(
    ("name", "f", "rtol"),
    [
        *((name, determinant, 1e-10) for name in EXACT),
        ("jet", network, 1e-10),
        *((name, two_stages, 1e-12) for name in SPARSITY_THRESHOLDS),
    ],
)
def test_of_functions_by_brute_force(name, f, rtol, quickly):
    laplacian, x = laplacian_of(name), np.random.default_rng(1).normal(size=9)
    found = quickly(lambda x: (*laplacian(f)(x), jnp.trace(jax.hessian(f)(x)), jax.grad(f)(x)), x)(x)
    for one, expected in zip(found[:2], found[2:], strict=True):
        np.testing.assert_allclose(one, expected, rtol=rtol)


def test_taylor_mode_says_what_it_has_no_rule_for():
    with pytest.raises(InputError, match="has no rule for scatter"):
        LAPLACIANS["jet"](lambda x: x.at[0].set(2.0).sum())(jnp.ones(6))


def helium(laplacian):
    """Local energy of two independent hydrogen-like electrons, log|psi| = -2 (r_1 + r_2)."""

    def log_psi(parameters, r):
        return jnp.ones(()), -parameters * jnp.sqrt((r**2).sum(axis=-1)).sum()

    molecule = Molecule("He", (2,), ((0.0, 0.0, 0.0),))
    ansatz = Ansatz(
        "hydrogen-like", molecule, lambda key, dtype: jnp.asarray(2.0, dtype), log_psi, UPSTREAM["paulinet"]
    )
    return local_energy.build(ansatz, laplacian)


@pytest.mark.parametrize("name", EXACT)
def test_local_energy_of_hydrogen_like_electrons(name, quickly):
    """Each electron has energy -Z^2/2 wherever it is; what is left is the repulsion 1/r_12."""
    laplacian_of(name)
    arguments = (np.asarray(2.0), np.random.default_rng(2).normal(size=(5, 2, 3)))
    energies = quickly(helium(name), *arguments)(*arguments)["local_energy"]
    repulsion = 1 / np.linalg.norm(arguments[1][:, 0] - arguments[1][:, 1], axis=-1)
    np.testing.assert_allclose(energies, -4.0 + repulsion, rtol=1e-10)


def test_a_stochastic_local_energy_takes_one_key_and_uses_another_per_walker(quickly):
    arguments = (np.asarray(2.0), np.ones((3, 2, 3)) * [[1.0], [2.0]], np.array([0, 1], np.uint32))
    energies = quickly(helium("hutchinson"), *arguments)(*arguments)["local_energy"]
    assert local_energy.argument_names("hutchinson") == ("parameters", "walkers", "key")
    assert len(set(np.asarray(energies).tolist())) == 3


@dataclass(frozen=True)
class Sample:
    """A tiny log|psi| on LiH as a function of the flat positions ``[12]``, one such position, gradient and Hessian."""

    log_psi: Any
    x: Any
    gradient: Any
    hessian: Any


@pytest.fixture(scope="module", params=[pytest.param(name, marks=ANSATZ_TIERS.get(name, ())) for name in OURS])
def sample(request, quickly):
    with jax.enable_x64(True):
        ansatz = OURS[request.param](LIH, "tiny")
        parameters, walkers = drawn(ansatz, 1, "float64")

        def log_psi(x):
            return ansatz.log_psi(parameters, x.reshape(-1, 3))[1]

        x = walkers.reshape(-1)
        gradient, hessian = quickly(lambda x: (jax.grad(log_psi)(x), jax.hessian(log_psi)(x)), x)(x)
        yield Sample(log_psi, x, np.asarray(gradient), np.asarray(hessian))


@pytest.mark.parametrize("name", [pytest.param(name, marks=LAPLACIAN_TIERS.get(name, ())) for name in EXACT])
def test_exact_ones_are_the_trace_of_the_hessian(name, sample, quickly):
    laplacian, gradient = quickly(laplacian_of(name)(sample.log_psi), sample.x)(sample.x)
    np.testing.assert_allclose(laplacian, np.trace(sample.hessian), rtol=1e-9)
    np.testing.assert_allclose(gradient, sample.gradient, rtol=0, atol=1e-9 * np.abs(sample.gradient).max())


@pytest.mark.slow
def test_hutchinson_has_the_mean_and_the_variance_of_its_probes(sample, quickly):
    """v.Hv of random signs v has the mean tr H and the variance 2 (|H|_F^2 - sum_i H_ii^2); PROBES are averaged."""
    keys = jax.random.split(jax.random.PRNGKey(0), ESTIMATES)
    estimate = jax.vmap(LAPLACIANS["hutchinson"](sample.log_psi), (None, 0))
    estimates, gradients = (np.asarray(part) for part in quickly(estimate, sample.x, keys)(sample.x, keys))
    variance = 2 * ((sample.hessian**2).sum() - (np.diag(sample.hessian) ** 2).sum()) / PROBES
    error = estimates - np.trace(sample.hessian)
    assert abs(error.mean()) < 5 * (variance / ESTIMATES) ** 0.5
    assert abs((error**2).mean() - variance) < 5 * (error**2).std() / ESTIMATES**0.5
    assert variance > 0
    np.testing.assert_allclose(gradients[0], sample.gradient, rtol=1e-9, atol=1e-9)


def test_hessians_are_symmetric(sample):
    """So the brute force itself is right: its two derivatives are of different modes."""
    np.testing.assert_allclose(sample.hessian, sample.hessian.T, rtol=0, atol=1e-10 * np.abs(sample.hessian).max())
    assert np.all(np.isfinite(sample.hessian))


def test_pieces_follow_each_other_and_compose():
    closed = jax.make_jaxpr(two_stages)(jnp.ones(9))
    pieces = list(_pieces(closed.jaxpr))
    assert [stage for stage, _ in pieces] == ["", "stage_a", "", "stage_b", ""]
    assert [e for _, piece in pieces for e in piece.jaxpr.eqns] == closed.jaxpr.eqns


@pytest.mark.slow
@pytest.mark.parametrize(
    "ansatz",
    [
        pytest.param(OURS["psiformer"](LIH, "tiny"), id="psiformer"),
        pytest.param(OURS["orbformer-flash"](LIH, "tiny"), id="orbformer-flash", marks=pytest.mark.full),
    ],
)
def test_the_forward_laplacian_is_that_of_folx_with_scopes(ansatz, quickly):
    """folx's numbers and operations, with the scopes that folx drops."""
    folx = pytest.importorskip("folx", reason="the forward Laplacians need the optional folx")
    parameters, walkers = drawn(ansatz, 3, "float64")
    walkers = walkers.reshape(3, -1)

    def batched(laplacian_of):
        def of_one_walker(parameters, x):
            return laplacian_of(lambda x: ansatz.log_psi(parameters, x.reshape(-1, 3))[1])(x)

        return jax.vmap(of_one_walker, (None, 0))

    def plain(f):
        def laplacian(x):
            result = folx.forward_laplacian(f, 0, disable_jit=True)(x)
            return result.laplacian, result.jacobian.dense_array

        return laplacian

    ours, theirs, replay = map(batched, (lambda f: forward_laplacian(f, 0), plain, LAPLACIANS["replay"]))
    both = quickly(lambda p, r: (ours(p, r), replay(p, r)), parameters, walkers)(parameters, walkers)
    for result, reference in zip(*both, strict=True):
        np.testing.assert_allclose(result, reference, rtol=1e-8, atol=1e-9)
    text, reference_text = (jax.jit(f).lower(parameters, walkers).as_text(debug_info=True) for f in (ours, theirs))
    assert all(f"stage_{letter}" in text for letter in "abcd")
    assert not any(f"stage_{letter}" in reference_text for letter in "abcd")
    assert text.count(" = stablehlo.") == reference_text.count(" = stablehlo.")
