"""Maxima that shift a sum of exponentials carry no derivatives in the rewritten program; others do."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.flat import flatten, walk
from fusionlab.passes.contract import Setting
from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

from .laplacian_functions import LOOPS, WEIGHTS, X, alone, features, local_energy
from .test_forms_of_laplacians import of_hessian


def softmax(scores):
    """Shifted by the largest score, derivatives of which cancel; no ``stop_gradient``."""
    terms = jnp.exp(scores - scores.max(-1, keepdims=True))
    return terms / terms.sum(-1, keepdims=True)


def attention(weights, x):
    """log|psi| with a softmax between electrons and a logarithm of a sum of exponentials at the end."""
    h = features(weights, x)
    terms = ((softmax(h @ h.T) @ h) @ weights["orbitals"]).sum(-1)
    top = terms.max()
    return jnp.log(jnp.exp(terms - top).sum()) + top - jnp.sqrt((x**2).sum(-1) + 0.3).sum()


def smallest(weights, x):
    """A minimum shifts, a maximum counts."""
    terms = features(weights, x).sum(-1)
    low = terms.min()
    return jnp.log(jnp.exp(terms - low).sum()) + low + jnp.tanh(terms.max())


def linear(weights, x):
    """The maximum of coordinates has no Laplacian, but a gradient."""
    return jnp.log(1 + (features(weights, x) ** 2).sum()) + x.max()


def level_at_first_order(weights, x):
    """Nothing depends on the maximum to first order where it is the largest term, but it has a second derivative."""
    terms = features(weights, x).sum(-1)
    return jnp.log(1 + (terms**2).sum()) + (terms.max() - terms).prod()


def rows_of_extremes(program):
    """Reductions by maximum or minimum, and comparisons of at least one row per coordinate."""
    nodes = list(walk(flatten(program.parse()).nodes))
    return sum(
        node.name == "stablehlo.compare" and "GE" in str(node.attributes["comparison_direction"]) for node in nodes
    )


def rewritten(log_psi, lowered, passes, method=local_energy):
    with jax.enable_x64(True):
        program = lowered(method(log_psi, LOOPS["fori"]), WEIGHTS, X, platform="cuda")
    result = run_pipeline(program, parse_pipeline(passes), Setting())
    assert result.applied, result.events
    return result.program


@pytest.mark.parametrize(
    ("log_psi", "shares"),
    [(attention, 0), (smallest, 1), (linear, 1), (level_at_first_order, 1)],
    ids=lambda value: getattr(value, "__name__", None),
)
@pytest.mark.parametrize("passes", ["sparsify-directions", "collapse-replay"])
def test_only_extremes_that_drop_out_are_taken_for_constants(passes, log_psi, shares, lowered, run_raised):
    program = rewritten(log_psi, lowered, passes)
    assert rows_of_extremes(program) == shares
    with jax.enable_x64(True):
        expected = jax.tree.leaves(local_energy(log_psi, LOOPS["fori"])(WEIGHTS, X))
    found = run_raised(program, jax.tree.leaves((WEIGHTS, X)))
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9)


def test_the_adjoint_passes_by_them_too(lowered, run_raised):
    program = rewritten(attention, lowered, "transpose-replay", alone)
    _, laplacian = run_raised(program, jax.tree.leaves((WEIGHTS, X)))
    np.testing.assert_allclose(laplacian, of_hessian(attention, X), rtol=1e-9)


def test_large_scores_do_not_overflow(lowered, run_raised):
    """What the shift is for: the value still has it."""
    weights = {**WEIGHTS, "orbitals": 400 * WEIGHTS["orbitals"]}
    program = rewritten(attention, lowered, "sparsify-directions", alone)
    logs, laplacian = run_raised(program, jax.tree.leaves((weights, X)))
    assert np.isfinite([logs, laplacian]).all()
    assert np.abs(logs).max() > 800
