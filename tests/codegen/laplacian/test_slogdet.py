"""log|det| is recognised as a whole, and what only looks like it is not."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.laplacian.jet import Coordinates, Jet
from fusionlab.codegen.laplacian.rules import slogdet

from .jet_cases import MANY, F, N, X, h, matrices


@pytest.fixture
def recognised(monkeypatch):
    """How many log|det| have been made as a whole since the start of the test."""
    calls = []
    rule = slogdet.log_determinant_jet
    monkeypatch.setattr(
        slogdet, "log_determinant_jet", lambda *given, **named: calls.append(1) or rule(*given, **named)
    )
    return calls


def many(x):
    """[B, 6, N, N]."""
    return jnp.einsum("bnf,fdm->bdnm", h(x), MANY)


def diagonal(a):
    return jnp.diagonal(lax.linalg.lu(a)[0], axis1=-2, axis2=-1)


def log_determinants(a):
    return jnp.log(abs(diagonal(a))).sum(-1)


def sum_of_determinants(x):
    sign, logarithm = jnp.linalg.slogdet(many(x))
    largest = logarithm.max(-1, keepdims=True)
    total = (jnp.arange(1.0, 7.0) * sign * jnp.exp(logarithm - largest)).sum(-1)
    return jnp.log(abs(total)) + largest[:, 0], jnp.sign(total)


def log_of_taken(values, order):
    return jnp.log(abs(jnp.take_along_axis(values, order, 1))).sum(-1)


def constant_part(x):
    """A part of a matrix that does not depend on the coordinates."""
    constant = jnp.broadcast_to(2.0 * jnp.eye(N), (x.shape[0], N, N))
    joined = jnp.concatenate([matrices(x), constant], 1)
    return jnp.linalg.slogdet(joined[:, N:])[1] + h(x).sum((1, 2))


WHOLE = {
    "one": lambda x: jnp.linalg.slogdet(matrices(x))[1],
    "many": lambda x: jnp.linalg.slogdet(many(x))[1],
    "sum-of-many": sum_of_determinants,
    "vmapped": jax.vmap(lambda y: jnp.linalg.slogdet(y @ np.ones((3, N)) + jnp.eye(N) * 3 + jnp.sin(y) @ y.T)[1]),
    "by-hand": lambda x: log_determinants(matrices(x)),
    "of-the-transpose": lambda x: log_determinants(many(x).swapaxes(-1, -2)),
    "of-one-electron-more": lambda x: log_determinants(jnp.pad(matrices(x), ((0, 0), (0, 1), (0, 1))) + jnp.eye(N + 1)),
}
NOT_WHOLE = {
    "part-of-the-diagonal": lambda x: jnp.log(abs(diagonal(matrices(x))[:, 1:])).sum(-1),
    "reversed": lambda x: (jnp.log(abs(diagonal(matrices(x))[:, ::-1])) * jnp.arange(4)).sum(-1),
    "logarithm-of-the-factors": lambda x: jnp.log(abs(lax.linalg.lu(matrices(x))[0])).sum(-1),
    "a-row-twice": lambda x: jnp.log(abs(diagonal(matrices(x))[:, np.array([0, 0, 1, 2])])).sum(-1),
    "masked": lambda x: jnp.log(abs(jnp.where(np.arange(N) > 1, diagonal(matrices(x)), 1.0))).sum(-1),
    "masked-by-data": lambda x: jnp.log(abs(jnp.where(h(x)[:, :, 0] > 0, diagonal(matrices(x)), 1.0))).sum(-1),
    "over-determinants": lambda x: jnp.log(abs(diagonal(many(x)))).sum(1),
    "determinants-transposed": lambda x: jnp.log(abs(diagonal(many(x)).transpose(1, 0, 2))).sum(-1).T,
    "of-some": lambda x: log_determinants(many(x))[:, 2:4] + jnp.log(abs(diagonal(many(x))[:, 1:3])).sum(-1),
    "product": lambda x: jnp.linalg.det(matrices(x)),
    "in-an-order-of-data": lambda x: log_of_taken(diagonal(matrices(x)), jnp.argsort(x[:, :, 0], 1)),
    "at-an-index-of-data": lambda x: log_of_taken(diagonal(matrices(x)), jnp.argmax(x[:, :, 0], 1)[:, None]),
    "constant-part": constant_part,
    # As of molecules with one electron of a spin.
    "one-by-one": lambda x: jnp.linalg.slogdet(h(x)[:, :1, :1])[1] + jnp.linalg.slogdet(h(x)[:, 1:, : F - 2])[1],
    "from-one": lambda x: lax.reduce(jnp.log(abs(diagonal(matrices(x)))), np.float64(1), lax.add, (1,)),
}


@pytest.mark.by_turns(4, "one-cpu", "many-cuda", "vmapped-cpu", "by-hand-cuda")
@pytest.mark.parametrize("platform", ["cpu", "cuda"])
@pytest.mark.parametrize("name", WHOLE)
def test_whole_determinants(name, platform, check_jets, recognised):
    check_jets(WHOLE[name], X, platform=platform)
    assert recognised == [1]


@pytest.mark.slow
@pytest.mark.by_turns(4, "reversed", "masked", "of-some", "one-by-one", "constant-part")
@pytest.mark.parametrize("name", NOT_WHOLE)
def test_what_looks_like_a_determinant(name, check_jets):
    check_jets(NOT_WHOLE[name], X)


@pytest.mark.slow
def test_pivots_of_all_kinds(jets_of, brute_force):
    """The largest element of the first columns is in another row for each walker; determinants of both signs occur."""
    rows = np.array([np.roll(np.arange(N), shift) for shift in range(N)] + [[1, 0, 2, 3]])
    shifted = np.eye(N)[rows] * 3

    def function(x):
        return jnp.linalg.slogdet(jnp.sin(h(x) @ MANY[:, 0]) + shifted[: x.shape[0]])

    x = np.random.default_rng(5).standard_normal((len(rows), N, 3))
    found = jets_of(function, x)
    assert {-1, 1} == set(found.values[0])
    walkers = [
        brute_force(lambda y, i=i: jnp.linalg.slogdet(jnp.sin(h(y) @ MANY[:, 0]) + shifted[i]), x[i : i + 1])
        for i in (0, 1, 4)
    ]
    np.testing.assert_allclose(found.laplacians[1][[0, 1, 4]], [w.laplacians[1][0] for w in walkers], rtol=1e-10)


def test_the_quadratic_form_keeps_its_digits_where_terms_are_added_in_turn():
    """K n^2 = 3,000 terms of mostly one sign, as in CH4: in one sum they lost more than all of PauliNet."""
    random = np.random.default_rng(0)
    matrix = 4 * np.eye(10) + 0.1 * random.normal(size=(256, 10, 10))
    rows = random.normal(size=(30, 256, 10, 10))
    rows += rows.swapaxes(-1, -2)

    def laplacian(dtype, in_turn):
        def of(matrix, rows):
            jet, (factors, pivots, _) = Jet(matrix, None, rows, None), lax.linalg.lu(matrix)
            value, coordinates = jnp.zeros(256, dtype), Coordinates(10, 3)
            return slogdet.log_determinant_jet(value, jet, factors, pivots + 1, coordinates, in_turn=in_turn).laplacian

        with jax.enable_x64(True):
            compiled = jax.jit(of, compiler_options=CPU_OPTIONS)
            return np.asarray(compiled(matrix.astype(dtype), rows.astype(dtype)), np.float64)

    exact = laplacian(np.float64, True)
    lost, lost_in_one = (abs(laplacian(np.float32, in_turn) - exact).mean() for in_turn in (True, False))
    assert lost < 0.5 * lost_in_one


_SLOW = [pytest.param(n, marks=pytest.mark.slow) for n in (2, 7, slogdet._FOLLOWED)]


@pytest.mark.slow
@pytest.mark.parametrize("n", [1, *_SLOW, slogdet._FOLLOWED + 1])
def test_the_inverse_of_matrices_with_many_exchanges_of_rows(n):
    matrix = np.random.default_rng(n).normal(size=(5, 2, n, n))
    with jax.enable_x64(True):
        factors, pivots, _ = lax.linalg.lu(matrix)
        inverse = np.asarray(slogdet._inverse(factors, pivots + 1))
    np.testing.assert_allclose(inverse @ matrix, np.broadcast_to(np.eye(n), matrix.shape), atol=1e-9)
