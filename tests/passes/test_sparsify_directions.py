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


def energy(log_psi):
    def local(w, x):
        _, hessian_times = jax.linearize(jax.grad(lambda x: log_psi(w, x)), x)
        add = lambda k, total: total + hessian_times(jnp.eye(18, dtype=x.dtype)[k])[k]  # noqa: E731
        return log_psi(w, x), jax.lax.fori_loop(0, 18, add, jnp.zeros((), x.dtype))

    return jax.vmap(local, (None, 0))


def energy_of_all(log_psi):
    """Of a function of all walkers at once."""

    def local(w, x):
        _, hessian_times = jax.linearize(jax.grad(lambda x: log_psi(w, x).sum()), x)
        direction = lambda k: jnp.broadcast_to(jnp.eye(18, dtype=x.dtype)[k], x.shape)  # noqa: E731
        add = lambda k, total: total + hessian_times(direction(k))[:, k]  # noqa: E731
        return log_psi(w, x), jax.lax.fori_loop(0, 18, add, jnp.zeros(3, x.dtype))

    return local


def merged_with_walkers(w, x):
    """Walkers and electrons are one axis, electrons first: a slice of a part is one electron of every walker."""
    h = jnp.tanh(x.reshape(3, 6, 3) @ w[:3]).transpose(1, 0, 2)
    c = jnp.concatenate([h[:2].reshape(6, 16), jnp.sin(h[2:]).reshape(12, 16)], 0)
    a, z = c[:3], c[6:9]
    return jnp.tanh((a * z) @ w).sum(1) + jnp.sin(a @ w).sum(1) + jnp.tanh(c).reshape(6, 3, 16).sum((0, 2))


def pairs_of_one_electron(w, x):
    """Slices of flattened pair features: all of one electron."""
    own = jnp.broadcast_to((x.reshape(-1, 3) @ w[:3])[:, None, :], (6, 6, 16)).reshape(36, 16)
    c = jnp.concatenate([jnp.sin(own), own * 2], 0)
    s, t = c[6:12], c[48:54]
    m = jnp.tanh(s * t).sum(0)
    return jnp.tanh(m @ w).sum() + jnp.cos(jnp.tanh(jnp.sin(s).sum(0)[None] @ w) * jnp.exp(m @ w)).sum()


@pytest.fixture
def arrays():
    numbers = np.random.default_rng(0)
    return numbers.standard_normal((16, 16)) / 4, numbers.standard_normal((3, 18))


@pytest.mark.slow
@pytest.mark.parametrize("joined", [side_by_side, one_column_less])
def test_parts_of_a_concatenation_keep_their_directions(arrays, run_raised, joined):
    """Split again, they cost what they cost apart, not 18 directions each."""
    flops = {way: program_cost(rewritten(energy(streams(way)), *arrays)[1].program).flops for way in (apart, joined)}
    assert flops[joined] < 1.05 * flops[apart]
    assert_rewritten(run_raised, energy(streams(joined)), *arrays)


def test_slices_of_an_axis_that_walkers_are_merged_into(arrays, run_raised):
    assert_rewritten(run_raised, energy_of_all(merged_with_walkers), *arrays)


def test_owners_of_a_slice_are_of_one_electron(arrays, run_raised):
    """Summed over, they stay sparse: 89 thousand FLOPs, and 171 thousand if they do not."""
    _, result = rewritten(energy(pairs_of_one_electron), *arrays)
    assert program_cost(result.program).flops < 110_000
    assert_rewritten(run_raised, energy(pairs_of_one_electron), *arrays)
