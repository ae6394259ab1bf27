"""Maxima that shift a sum of exponentials carry no derivatives in the rewritten program; others do."""

import itertools
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.passes.fuse_jvp_replay.sites import View

from ..laplacian_assertions import assert_rewritten, rewritten
from ..laplacian_functions import LOOPS, WEIGHTS, X, alone, exact, features, local_energy, psi

pytestmark = pytest.mark.slow

FAR = 400.0
"""A squared distance that no position of a trial has."""


def softmax(scores):
    """Shifted by the largest score, derivatives of which cancel; no ``stop_gradient``."""
    terms = jnp.exp(scores - scores.max(-1, keepdims=True))
    return terms / terms.sum(-1, keepdims=True)


def shifted(terms, top):
    """The logarithm of the sum of exponentials."""
    return jnp.log(jnp.exp(terms - top).sum()) + top


def decay(x):
    return jnp.sqrt((x**2).sum(-1) + 0.3).sum()


def by_hand(weights, x):
    """log|psi| with a softmax between electrons and a logarithm of a sum of exponentials at the end."""
    h = features(weights, x)
    terms = ((softmax(h @ h.T) @ h) @ weights["orbitals"]).sum(-1)
    return shifted(terms, terms.max()) - decay(x)


def guarded(weights, x):
    """The maximum is tested for being finite, as in ``jax.nn.logsumexp``."""
    terms = (features(weights, x) @ weights["orbitals"]).sum(-1)
    top = terms.max(initial=-jnp.inf)
    return shifted(terms, jnp.where(jnp.isfinite(top), top, 0.0)) - decay(x)


def by_library(weights, x):
    return jax.nn.logsumexp((features(weights, x) @ weights["orbitals"]).sum(-1))


UNSHIFTED = {
    # Another value where the maximum is infinite or not, but not that of a shift.
    "infinite": lambda top, weights: jnp.where(jnp.isfinite(top), top, 0.0),
    # The guard is taken for m, and is 0 wherever m is finite.
    "chosen_where_it_never_is": lambda top, weights: top - jnp.where(jnp.isfinite(top), 0.0, top),
    "chosen_by_something_else_too": lambda top, weights: (
        top - jnp.where(jnp.isfinite(top) & (weights["mixing"].sum() > 50), top, 0.0)
    ),
    # An integer is not the maximum.
    "rounded": lambda top, weights: top - top.astype(jnp.int32).astype(top.dtype),
}


def unshifted(name):
    def log_psi(weights, x):
        terms = features(weights, x).sum(-1)
        return jnp.log(jnp.exp(terms).sum()) + UNSHIFTED[name](terms.max(), weights)

    log_psi.__name__ = name
    return log_psi


def finite_difference(weights, x):
    """What is finite is the difference, not the maximum."""
    terms = jnp.log(jnp.maximum(features(weights, x).sum(-1), 0.0))
    top = terms.max()
    return jnp.where(jnp.isfinite(terms - top), terms - top, 0.0)[0] + top


def divided_late(weights, x):
    """The weights are contracted before they are divided by their sum, as flash attention does."""
    h = features(weights, x)
    scores = h @ h.T
    terms = jnp.exp(scores - scores.max(-1, keepdims=True))
    return jnp.tanh((terms @ h) / terms.sum(-1, keepdims=True)).sum() - decay(x)


def smallest(weights, x):
    """A minimum shifts, a maximum counts."""
    terms = features(weights, x).sum(-1)
    return shifted(terms, terms.min()) + jnp.tanh(terms.max())


def linear(weights, x):
    """The maximum of coordinates has no Laplacian, but a gradient."""
    return jnp.log(1 + (features(weights, x) ** 2).sum()) + x.max()


def level_at_first_order(weights, x):
    """Nothing depends on the maximum to first order where it is the largest term, but it has a second derivative."""
    terms = features(weights, x).sum(-1)
    return jnp.log(1 + (terms**2).sum()) + (terms.max() - terms).prod()


def other_rows(weights, x):
    """Each row is shifted by the maximum of the next one, which does not drop out of a sum over rows."""
    h = features(weights, x)
    top = jnp.roll(h.max(-1), 1)
    return jnp.log((jnp.exp(h - top[:, None]) * jnp.exp(h.max(-1))[:, None]).sum())


def by_place(weights, x):
    """Shifted by the element at the place of the largest, as DeepSolid's sum of determinants."""
    terms = (features(weights, x) @ weights["orbitals"]).sum(-1)
    return shifted(terms, terms[jnp.argmax(terms)]) - decay(x)


@pytest.mark.by_turns(4, "smallest-1", "other_rows-0")
@pytest.mark.parametrize(
    ("log_psi", "held"),
    [
        (by_hand, 2),
        pytest.param(divided_late, 1, marks=pytest.mark.slow),
        (smallest, 1),
        (linear, 0),
        pytest.param(level_at_first_order, 0, marks=pytest.mark.slow),
        (other_rows, 0),
        (guarded, 1),
        pytest.param(by_library, 1, marks=pytest.mark.slow),
        *(pytest.param(unshifted(name), 0, marks=pytest.mark.slow) for name in list(UNSHIFTED)[:3]),
        (unshifted("rounded"), 0),
        (finite_difference, 0),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_only_extremes_that_drop_out_are_held_constant(log_psi, held, lowered):
    with jax.enable_x64(True):
        program = lowered(alone(log_psi, LOOPS["fori"]), WEIGHTS, X)
    [site] = [site for site in View(program).sites if site.loops]
    assert len(site.decision(math.inf).stop_gradient) == held


@pytest.mark.by_turns(4, "by_hand")
@pytest.mark.parametrize("log_psi", [by_hand, smallest, other_rows, by_place], ids=lambda value: value.__name__)
@pytest.mark.parametrize("passes", ["sparsify-directions", pytest.param("collapse-replay", marks=pytest.mark.slow)])
def test_a_value_with_shifts_is_rewritten(passes, log_psi, run_raised):
    function = local_energy(log_psi, LOOPS["fori"])
    assert_rewritten(run_raised, function, WEIGHTS, X, expected=function, passes=passes)


SWITCHED_OFF = {
    "clip": lambda s, r2, n: jnp.clip(s, FAR, None) ** 2,
    "initial": lambda s, r2, n: (r2.max(initial=FAR) - FAR) ** 2,
    "maximum": lambda s, r2, n: jnp.maximum(s - FAR, 0.0) ** 2,
    "appended": lambda s, r2, n: (jnp.append(r2, FAR).max() - FAR) ** 2,
    "floor": lambda s, r2, n: jnp.floor(r2.sum() / FAR / 2) * s**2,
    "all": lambda s, r2, n: jnp.where((r2 > FAR).all(), s**2, 0.0),
    "compared": lambda s, r2, n: jnp.where(s > FAR, (s - FAR) ** 3, 0.0),
}
OF_AN_INTEGER = {
    "whole-number": lambda s, r2, n: jnp.where(n > 50, s**2, 0.0),
    "one-weight": lambda s, r2, n: jnp.where(n > 50, jnp.exp(r2 / FAR - s / FAR).sum(), 0.0),
}


@pytest.mark.by_turns(4, "clip")
@pytest.mark.parametrize(
    "name",
    [
        *("clip", "floor", "all", "one-weight"),
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("initial", "maximum", "appended", "compared")),
        pytest.param("whole-number", marks=pytest.mark.slow),
    ],
)
def test_what_is_switched_off_where_a_value_is_looked_for_keeps_its_derivatives(name, run_raised):
    """An extreme that changes nothing at the points tried, and does elsewhere."""
    term = {**SWITCHED_OFF, **OF_AN_INTEGER}[name]

    def log_psi(n, x):
        r2 = (x**2).sum(-1)
        return psi(None, x) + term(r2.max(), r2, n)

    function, given = alone(log_psi, LOOPS["fori"]), (np.array(60, np.int32), 30 * X)
    if name in ("whole-number", "one-weight"):  # draws are on both sides of 50
        program, result = rewritten(function, *given)
        assert result.applied, result.events
        tied = np.repeat(given[1][:, :1], given[1].shape[1], 1)
        for n, x in itertools.product((50, 51, 10**6), (given[1], tied)):
            arrays = [np.array(n, np.int32), x]
            for found, right in zip(run_raised(result.program, arrays), run_raised(program, arrays), strict=True):
                np.testing.assert_allclose(found, right, rtol=1e-8)
    else:
        assert_rewritten(run_raised, function, *given, expected=function, rtol=1e-8)


@pytest.mark.slow
def test_the_adjoint_passes_by_them_too(run_raised):
    function, expected = (alone(by_hand, method) for method in (LOOPS["fori"], exact))
    assert_rewritten(run_raised, function, WEIGHTS, X, expected=expected, passes="transpose-replay")


@pytest.mark.slow
def test_large_scores_do_not_overflow(run_raised):
    """What the shift is for: the value keeps it."""
    weights = {**WEIGHTS, "orbitals": 400 * WEIGHTS["orbitals"]}
    _, result = rewritten(alone(by_hand, LOOPS["fori"]), WEIGHTS, X)
    assert result.applied, result.events
    logs, laplacian = run_raised(result.program, jax.tree.leaves((weights, X)))
    assert np.isfinite([logs, laplacian]).all()
    assert np.abs(logs).max() > 800
