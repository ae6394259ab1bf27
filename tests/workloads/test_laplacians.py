"""Every Laplacian variant against closed forms and against the trace of the Hessian."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from workloads.ansatz import Ansatz
from workloads.catalogue import build
from workloads.molecule import Molecule
from workloads.programs import local_energy
from workloads.programs.laplacians import LAPLACIANS, STOCHASTIC

pytestmark = pytest.mark.usefixtures("x64")

EXACT = [name for name in LAPLACIANS if name not in STOCHASTIC]
WITH_FOLX = ("forward", "forward-sparse")


def skip_without_folx(name: str) -> None:
    if name in WITH_FOLX:
        pytest.importorskip("folx", reason="the forward Laplacians need the optional folx")


@pytest.fixture(params=EXACT)
def exact(request: pytest.FixtureRequest) -> Callable[..., Any]:
    skip_without_folx(request.param)
    return LAPLACIANS[request.param]


@pytest.fixture(scope="module")
def tiny(quickly: Callable[..., Any]) -> tuple[Any, Any, Any]:
    """A tiny PauliNet's log|psi| as a function of the flat positions, one such position, and its Hessian's trace."""
    with jax.enable_x64(True):
        workload = build("paulinet", "LiH", "log-psi", walkers=1, dtype="float64", size="tiny")
        parameters, walkers = workload.inputs(0)

        def log_psi(x: Any) -> Any:
            return workload.function(parameters, x.reshape(walkers.shape))["log_psi"][0]

        x = walkers.reshape(-1)
        brute_force = quickly(lambda x: (jnp.trace(jax.hessian(log_psi)(x)), jax.grad(log_psi)(x)), x)
        return log_psi, x, brute_force(x)


def test_gaussian(exact: Callable[..., Any], quickly: Callable[..., Any]) -> None:
    x = jnp.asarray(np.linspace(-1.0, 2.0, 6))
    laplacian, gradient = quickly(exact(lambda x: -0.7 * (x * x).sum()), x)(x)
    np.testing.assert_allclose(laplacian, -1.4 * 6, rtol=1e-12)
    np.testing.assert_allclose(gradient, -1.4 * x, rtol=1e-12)


def test_log_of_a_determinant_of_nonlinear_orbitals(exact: Callable[..., Any], quickly: Callable[..., Any]) -> None:
    mixing = np.random.default_rng(0).normal(size=(3, 3))

    def f(x: Any) -> Any:
        return jnp.linalg.slogdet(jnp.tanh(x.reshape(3, 3) @ mixing) + jnp.eye(3))[1]

    x = np.random.default_rng(1).normal(size=9)
    result = quickly(lambda x: (*exact(f)(x), jnp.trace(jax.hessian(f)(x)), jax.grad(f)(x)), x)(x)
    np.testing.assert_allclose(result[0], result[2], rtol=1e-10)
    np.testing.assert_allclose(result[1], result[3], rtol=1e-10)


@pytest.mark.parametrize(
    "name", [pytest.param(n, marks=pytest.mark.slow) if n == "forward-sparse" else n for n in EXACT]
)
def test_paulinet_against_the_hessian(name: str, tiny: tuple[Any, Any, Any], quickly: Callable[..., Any]) -> None:
    skip_without_folx(name)
    f, x, (laplacian, gradient) = tiny
    result = quickly(LAPLACIANS[name](f), x)(x)
    np.testing.assert_allclose(result[0], laplacian, rtol=1e-9)
    np.testing.assert_allclose(result[1], gradient, rtol=0, atol=1e-9 * float(jnp.abs(gradient).max()))


def test_hutchinson_is_unbiased(tiny: tuple[Any, Any, Any], quickly: Callable[..., Any]) -> None:
    f, x, (laplacian, gradient) = tiny
    keys = jax.random.split(jax.random.PRNGKey(0), 400)
    estimate = jax.vmap(LAPLACIANS["hutchinson"](f), (None, 0))
    estimates, gradients = quickly(estimate, x, keys)(x, keys)
    standard_error = float(estimates.std()) / np.sqrt(len(keys))
    assert standard_error > 0
    assert abs(float(estimates.mean() - laplacian)) < 5 * standard_error
    np.testing.assert_allclose(gradients[0], gradient, rtol=1e-9, atol=1e-9)


def helium(laplacian: str) -> Callable[..., Any]:
    """Local energy of two independent hydrogen-like electrons, log|psi| = -2 (r_1 + r_2)."""
    molecule = Molecule("He", (2,), ((0.0, 0.0, 0.0),))

    def log_psi(parameters: Any, r: Any) -> tuple[Any, Any]:
        return jnp.ones(()), -parameters * jnp.sqrt((r**2).sum(axis=-1)).sum()

    ansatz = Ansatz("hydrogen-like", molecule, lambda key, dtype: jnp.asarray(2.0, dtype), log_psi, laplacian, "")
    return local_energy.build(ansatz, laplacian)


@pytest.mark.parametrize("name", EXACT)
def test_local_energy_of_hydrogen_like_electrons(name: str, quickly: Callable[..., Any]) -> None:
    """Each electron has energy -Z^2/2 wherever it is; what is left is the repulsion 1/r_12."""
    skip_without_folx(name)
    arguments = (np.asarray(2.0), np.random.default_rng(2).normal(size=(5, 2, 3)))
    energies = quickly(helium(name), *arguments)(*arguments)["local_energy"]
    repulsion = 1 / np.linalg.norm(arguments[1][:, 0] - arguments[1][:, 1], axis=-1)
    np.testing.assert_allclose(energies, -4.0 + repulsion, rtol=1e-10)


def test_a_stochastic_local_energy_takes_one_key_and_uses_another_per_walker(quickly: Callable[..., Any]) -> None:
    arguments = (np.asarray(2.0), np.ones((3, 2, 3)) * [[1.0], [2.0]], np.array([0, 1], np.uint32))
    energies = quickly(helium("hutchinson"), *arguments)(*arguments)["local_energy"]
    assert local_energy.argument_names("hutchinson") == ("parameters", "walkers", "key")
    assert len(set(np.asarray(energies).tolist())) == 3
