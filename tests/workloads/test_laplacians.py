"""Every Laplacian variant against closed forms; those of the ansätze are in test_laplacians_of_ansatze."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.errors import InputError
from workloads.ansatz import Ansatz
from workloads.molecule import Molecule
from workloads.programs import local_energy
from workloads.programs.laplacians import INCOMPLETE, LAPLACIANS, STOCHASTIC
from workloads.upstream import UPSTREAM

pytestmark = pytest.mark.usefixtures("x64")

EXACT = [name for name in LAPLACIANS if name not in STOCHASTIC | INCOMPLETE]
WITH_FOLX = ("forward", "forward-sparse")


def skip_without_folx(name: str) -> None:
    if name in WITH_FOLX:
        pytest.importorskip("folx", reason="the forward Laplacians need the optional folx")


@pytest.fixture(params=EXACT)
def exact(request: pytest.FixtureRequest) -> Callable[..., Any]:
    skip_without_folx(request.param)
    return LAPLACIANS[request.param]


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


def test_taylor_mode_where_it_works_and_where_it_does_not(quickly: Callable[..., Any]) -> None:
    weights = np.random.default_rng(2).normal(size=(6, 5))
    x = jnp.asarray(np.random.default_rng(3).normal(size=6))

    def f(x: Any) -> Any:
        return jnp.log((jnp.tanh(x @ weights) ** 2).sum()) - 0.5 * (x * x).sum()

    result = quickly(lambda x: (*LAPLACIANS["jet"](f)(x), jnp.trace(jax.hessian(f)(x)), jax.grad(f)(x)), x)(x)
    np.testing.assert_allclose(result[0], result[2], rtol=1e-10)
    np.testing.assert_allclose(result[1], result[3], rtol=1e-10)
    with pytest.raises(InputError, match="has no rule for scatter"):
        LAPLACIANS["jet"](lambda x: x.at[0].set(2.0).sum())(x)


def helium(laplacian: str) -> Callable[..., Any]:
    """Local energy of two independent hydrogen-like electrons, log|psi| = -2 (r_1 + r_2)."""
    molecule = Molecule("He", (2,), ((0.0, 0.0, 0.0),))

    def log_psi(parameters: Any, r: Any) -> tuple[Any, Any]:
        return jnp.ones(()), -parameters * jnp.sqrt((r**2).sum(axis=-1)).sum()

    init = lambda key, dtype: jnp.asarray(2.0, dtype)  # noqa: E731 (the record wants a callable)
    ansatz = Ansatz("hydrogen-like", molecule, init, log_psi, UPSTREAM["paulinet"])
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
