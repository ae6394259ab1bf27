"""sparsify-directions: its cases (``cases/sparsify_directions/``), and concatenations that are split again."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.cost import program_cost

from .case_files import test_case  # noqa: F401
from .laplacian_assertions import assert_rewritten, rewritten


def streams(joined):
    """Features of single electrons and of all of them, ``joined`` between layers and split again, as LapNet's."""

    def log_psi(w, x):
        g, h = jnp.tanh(x.reshape(-1, 3) @ w[:3]), x.reshape(-1, 3) @ w[:3]
        for _ in range(3):
            s = jnp.tanh(g @ w @ (g @ w).T / 9)
            h = jnp.tanh(h @ w + s @ h)
            g = g + jnp.tanh(g @ w)
            g, h = joined(g, h)
        return h.sum()

    return log_psi


def apart(g, h):
    return g, h


def side_by_side(g, h):
    both = jnp.concatenate([h, g], axis=1)
    return both[:, both.shape[1] // 2 :], both[:, : both.shape[1] // 2]


def one_column_less(g, h):
    """Slices within a part; a column of ones instead of what is cut off."""
    both = jnp.concatenate([h, g], axis=1)
    half = both.shape[1] // 2
    return jnp.concatenate([both[:, half:-1], jnp.ones_like(g[:, :1])], axis=1), both[:, :half]


def energy(joined):
    def local(w, x):
        _, hessian_times = jax.linearize(jax.grad(lambda x: streams(joined)(w, x)), x)
        add = lambda k, total: total + hessian_times(jnp.eye(18, dtype=x.dtype)[k])[k]  # noqa: E731
        return streams(joined)(w, x), jax.lax.fori_loop(0, 18, add, jnp.zeros((), x.dtype))

    return jax.vmap(local, (None, 0))


@pytest.fixture
def arrays():
    numbers = np.random.default_rng(0)
    return numbers.standard_normal((16, 16)) / 4, numbers.standard_normal((3, 18))


@pytest.mark.parametrize("joined", [side_by_side, one_column_less])
def test_parts_of_a_concatenation_keep_their_directions(arrays, run_raised, joined):
    """Split again, they cost what they cost apart, not 18 directions each."""
    flops = {way: program_cost(rewritten(energy(way), *arrays)[1].program).flops for way in (apart, joined)}
    assert flops[joined] < 1.05 * flops[apart]
    assert_rewritten(run_raised, energy(joined), *arrays)
