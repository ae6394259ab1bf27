"""Which arguments keep their values in variants, and what the others become."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.view import view_of
from fusionlab.optimizing.variants import VARIANTS, attempts, can_vary, held_arguments

X = np.linspace(1.0, 2.0, 3, dtype=np.float32)


def converged(x, tol):
    """Newton's square root, until the step is below ``tol``."""
    return jax.lax.while_loop(lambda y: abs(y * y - x) > tol, lambda y: (y + x / y) / 2, x)


def swapped(k, x):
    """An index that a loop carries, made of the elements at it."""
    return jax.lax.fori_loop(0, 2, lambda i, c: (c[1], c[0] + x[c[0]].astype(int)), (k, 1))


@pytest.mark.parametrize(
    ("function", "given", "loops", "integers"),
    [
        (lambda n, x: jax.lax.fori_loop(0, n, lambda k, s: s + x, x), (3, X), {0}, {0}),
        (lambda n, x: jax.lax.fori_loop(n, n + 2, lambda k, s: s + x, x), (3, X), {0}, {0}),
        (lambda start, x: jax.lax.fori_loop(0, 3, lambda k, s: s + x, start * x), (0, X), set(), set()),
        (lambda k, x: x[k + 1], (0, X), set(), {0}),
        (lambda k, x: x.at[k].set(2.0), (0, X), set(), {0}),
        (lambda k, x: jnp.take(x, jnp.where(k, 1, 2)), (True, X), set(), {0}),
        (lambda k, x: jax.lax.dynamic_update_slice(x, x[:1], (k,)), (0, X), set(), {0}),
        (swapped, (0, X), set(), {0, 1}),
        (lambda seed, x: x + jax.random.normal(jax.random.key(seed), (3,)), (0, X), set(), {0}),
        (lambda k, x: jax.lax.switch(k, [jnp.sin, jnp.cos], x), (0, X), set(), set()),
        (lambda n, flag, x: n * jnp.where(flag, x, 0.0), (0, False, X), set(), set()),
        (converged, (np.float32(2.0), np.float32(0.1)), {0, 1}, {0, 1}),
    ],
    ids=["trips", "first trip", "start", "index", "updated index", "taken", "slice", "carried index", "key", "branch",
         "factor and flag", "convergence"],
)  # fmt: skip
def test_held_arguments(function, given, loops, integers, lowered):
    held = held_arguments(view_of(lowered(function, *given).parse()))
    assert (held.loops, held.integers) == (loops, integers)


def test_variants_have_other_signs_integers_and_booleans(lowered):
    given = (np.zeros(2, np.float32), np.float32(0.5), np.int32(0), np.array(True), np.uint32(3))
    given = tuple(map(np.asarray, given))
    held = held_arguments(view_of(lowered(lambda *arrays: [1 * array for array in arrays], *given).parse()))
    vary, all_floats = can_vary(given, held)
    assert (vary, all_floats) == ([True, True, True, True, False], True)
    first, second = (next(attempts(given, vary, number)) for number in range(VARIANTS))
    assert (first[0] != 0).all()
    assert first[1] > 0 > second[1]
    assert first[2] > 0 > second[2]
    assert not first[3]
    assert first[4] == second[4] == 3
    for variant in (first, second):
        assert [array.dtype for array in variant] == [array.dtype for array in given]
