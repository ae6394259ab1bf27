"""``fusionlab.laplacian``: the numbers of a Hessian's trace, one forward pass under vmap, and what is refused."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from tests.optimizing.functions import arguments, decision_of, log_psi

pytestmark = pytest.mark.slow

WEIGHTS = np.linspace(0.5, 2.0, 6).reshape(2, 3)
PARAMETERS, X = arguments(5)


def of(parameters):
    return lambda x: log_psi(parameters, x)


def expected(function, x, weights=1.0):
    """(weighted trace of the Hessian, gradient) at one walker."""
    hessian = jax.hessian(lambda flat: function(flat.reshape(x.shape)))(x.reshape(-1))
    return (jnp.diag(hessian) * jnp.ravel(jnp.broadcast_to(weights, x.shape))).sum(), jax.grad(function)(x)


def alone(function, *weights):
    return fusionlab.laplacian(function, *weights, cache=False, exact_s=0)


def same(found, wanted):
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        assert (one.shape, one.dtype) == (other.shape, other.dtype)
        np.testing.assert_allclose(one, other, 2e-4, 2e-4)


@pytest.mark.by_turns(4, "mass")
@pytest.mark.parametrize(
    "weights", [(), (WEIGHTS,), (2.0,), (np.array([[1.0], [3.0]]),)], ids=["none", "each", "one", "mass"]
)
def test_the_numbers_and_a_forward_pass_under_vmap(weights):
    laplacian = alone(of(PARAMETERS), *weights)
    same(jax.vmap(laplacian)(X), jax.vmap(lambda x: expected(of(PARAMETERS), x, *weights))(X))
    assert any("are the Laplacian of" in str(event) for event in decision_of(laplacian).events)


def test_weights_that_are_traced():
    found = jax.jit(lambda weights, x: jax.vmap(alone(of(PARAMETERS), weights))(x))(WEIGHTS, X)
    same(found, jax.vmap(lambda x: expected(of(PARAMETERS), x, WEIGHTS))(X))


@pytest.mark.slow
def test_parameters_of_a_surrounding_function_and_further_arguments():
    """As codes write it: made within the traced function, of a closure; or of all arguments."""
    made = []

    def closed(parameters, x):
        made.append(alone(of(parameters)))
        return made[-1](x)

    wanted = jax.vmap(lambda x: expected(of(PARAMETERS), x))(X)
    same(jax.jit(jax.vmap(closed, (None, 0)))(PARAMETERS, X), wanted)
    assert decision_of(made[-1]).rewritten is not None
    same(jax.vmap(alone(lambda x, parameters: log_psi(parameters, x)), (0, None))(X, PARAMETERS), wanted)


@pytest.mark.slow
def test_it_is_differentiated():
    found = jax.grad(lambda x: alone(of(PARAMETERS))(x)[0])(X[0])
    same(found, jax.grad(lambda x: expected(of(PARAMETERS), x)[0])(X[0]))


@pytest.mark.slow
def test_complex_values_part_by_part():
    laplacian = alone(lambda x: log_psi(PARAMETERS, x) + 1j * jnp.sin(x).sum())
    total, gradient = jax.vmap(laplacian)(X)
    parts = [jax.vmap(lambda x, f=f: expected(f, x))(X) for f in (of(PARAMETERS), lambda x: jnp.sin(x).sum())]
    same((total, gradient), jax.tree.map(lambda real, imaginary: real + 1j * imaginary, *parts))
    assert sum("are the Laplacian of" in str(event) for event in decision_of(laplacian).events) == 2


@pytest.mark.parametrize(
    ("call", "why"),
    [
        (lambda: fusionlab.laplacian(1.0), "takes a function"),
        (lambda: fusionlab.laplacian(jnp.sum, [1.0, -1.0]), "positive"),
        (lambda: fusionlab.laplacian(jnp.sum, [np.nan]), "positive"),
        (lambda: alone(jnp.sum, np.ones(5))(X[0]), "not those of x"),
        (lambda: alone(jnp.sin)(X[0]), "not a scalar"),
        (lambda: alone(jnp.sum)(jnp.arange(3)), "floating point"),
        (lambda: fusionlab.laplacian(jnp.sum, walkers=3), "option of optimize"),
    ],
)
def test_what_is_no_laplacian(call, why):
    with pytest.raises(fusionlab.InputError, match=why):
        call()
