"""The forward Laplacian by stages: folx's numbers and operations, with the scopes that folx drops."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

pytest.importorskip("folx", reason="the forward Laplacians need the optional folx")

import folx

from tests.workloads.wavefunctions import LIH, drawn
from workloads.ansatze import orbformer, psiformer
from workloads.programs.laplacians import LAPLACIANS
from workloads.programs.staged_forward import _pieces, forward_laplacian


def two_stages(x):
    """A function with work before, within, between and after two scopes."""
    scale = jnp.sum(x) + 2.0
    with jax.named_scope("stage_a"):
        h = jnp.tanh(x * jnp.arange(1.0, 4.0))
        constant = jnp.cos(jnp.arange(3.0))
    h = h * scale
    with jax.named_scope("stage_b"), jax.named_scope("inner"):
        y = jnp.dot(h, constant) ** 2
    return y + scale


@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize("threshold", [0, 0.6])
def test_laplacian_and_gradient(threshold, quickly):
    def by_both(x):
        expected = jnp.trace(jax.hessian(two_stages)(x)), jax.grad(two_stages)(x)
        return forward_laplacian(two_stages, threshold)(x), expected

    x = jnp.array([0.3, -0.2, 0.9])
    for ours, reference in zip(*quickly(by_both, x)(x), strict=True):
        np.testing.assert_allclose(ours, reference, rtol=1e-12)


def test_pieces_follow_each_other_and_compose():
    x = jnp.array([0.3, -0.2, 0.9])
    closed = jax.make_jaxpr(two_stages)(x)
    pieces = list(_pieces(closed.jaxpr))
    assert [stage for stage, _ in pieces] == ["", "stage_a", "", "stage_b", ""]
    assert [e for _, piece in pieces for e in piece.jaxpr.eqns] == closed.jaxpr.eqns


@pytest.mark.slow
@pytest.mark.usefixtures("x64")
@pytest.mark.parametrize(
    "ansatz",
    [
        pytest.param(psiformer.build(LIH, "tiny"), id="psiformer"),
        pytest.param(orbformer.build(LIH, "tiny", attention="flash"), id="orbformer-flash", marks=pytest.mark.full),
    ],
)
def test_folx_with_scopes(ansatz, quickly):
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
