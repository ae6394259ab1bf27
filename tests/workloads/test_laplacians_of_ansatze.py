"""Every Laplacian of every ansatz against the trace of the Hessian by brute force, in float64."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from workloads.catalogue import ANSATZE
from workloads.molecules import find_molecule
from workloads.programs.laplacians import INCOMPLETE, LAPLACIANS, PROBES, SPARSITY_THRESHOLDS, STOCHASTIC
from workloads.programs.walkers import initial_walkers

pytestmark = pytest.mark.usefixtures("x64")

SAMPLES = {
    "orbformer": (pytest.mark.slow,),
    "paulinet": (pytest.mark.slow,),
    "psiformer-deepqmc": (pytest.mark.slow,),
    "orbformer-flash": (pytest.mark.full,),
}
# Derivatives of the fused attention are those of the plain one, so its variants come out the same.
OURS = [pytest.param(name, marks=SAMPLES.get(name, ())) for name in ANSATZE if not name.startswith("deepqmc:")]
EXACT = [name for name in LAPLACIANS if name not in STOCHASTIC | INCOMPLETE]
TIERS = {
    **dict.fromkeys(("scan", "jvp-in-loop", "forward", "forward-sparse"), (pytest.mark.slow,)),
    "vmap": (pytest.mark.full,),
}
ESTIMATES = 2000


@dataclass(frozen=True)
class Sample:
    """A tiny log|psi| on LiH as a function of the flat positions ``[12]``, one such position, gradient and Hessian."""

    log_psi: Callable[[Any], Any]
    x: Any
    gradient: np.ndarray
    hessian: np.ndarray


@pytest.fixture(scope="module", params=OURS)
def sample(request: pytest.FixtureRequest, quickly: Callable[..., Any]) -> Iterator[Sample]:
    with jax.enable_x64(True):
        ansatz = importlib.import_module(ANSATZE[request.param]).build(find_molecule("LiH"), "tiny")
        parameters = ansatz.init(jax.random.PRNGKey(0), jnp.dtype("float64"))

        def log_psi(x: Any) -> Any:
            return ansatz.log_psi(parameters, x.reshape(-1, 3))[1]

        x = initial_walkers(jax.random.PRNGKey(1), ansatz.molecule, 1, "float64").reshape(-1)
        gradient, hessian = quickly(lambda x: (jax.grad(log_psi)(x), jax.hessian(log_psi)(x)), x)(x)
        yield Sample(log_psi, x, np.asarray(gradient), np.asarray(hessian))


@pytest.mark.parametrize("name", [pytest.param(n, marks=TIERS.get(n, ())) for n in EXACT])
def test_exact_ones_are_the_trace_of_the_hessian(name: str, sample: Sample, quickly: Callable[..., Any]) -> None:
    if name in SPARSITY_THRESHOLDS:
        pytest.importorskip("folx", reason="the forward Laplacians need the optional folx")
    laplacian, gradient = quickly(LAPLACIANS[name](sample.log_psi), sample.x)(sample.x)
    np.testing.assert_allclose(laplacian, np.trace(sample.hessian), rtol=1e-9)
    np.testing.assert_allclose(gradient, sample.gradient, rtol=0, atol=1e-9 * np.abs(sample.gradient).max())


@pytest.mark.slow
def test_hutchinson_has_the_mean_and_the_variance_of_its_probes(sample: Sample, quickly: Callable[..., Any]) -> None:
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


def test_hessians_are_symmetric(sample: Sample) -> None:
    """So the brute force itself is right: its two derivatives are of different modes."""
    np.testing.assert_allclose(sample.hessian, sample.hessian.T, rtol=0, atol=1e-10 * np.abs(sample.hessian).max())
    assert jnp.all(jnp.isfinite(sample.hessian))
