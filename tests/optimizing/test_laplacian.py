"""``fusionlab.laplacian``: the numbers of a Hessian's trace, one forward pass under vmap, and what is refused."""

import importlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import fusionlab
from fusionlab.errors import FallbackWarning
from tests.optimizing.functions import arguments, decision_of, log_psi

WEIGHTS = np.linspace(0.5, 2.0, 6).reshape(2, 3)
PARAMETERS, X = arguments(5)
QUICK = {"cache": False, "check": "never", "exact_s": 0}
R = jnp.asarray([0.1, 0.2, 0.3])


def sines(x):
    return jnp.sum(jnp.sin(x))


def cubes(x):
    return jnp.sum(x**3)


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


@pytest.mark.slow
@pytest.mark.parametrize(
    "weights", [(), (WEIGHTS,), (2.0,), (np.array([[1.0], [3.0]]),)], ids=["none", "each", "one", "mass"]
)
def test_the_numbers_and_a_forward_pass_under_vmap(weights):
    laplacian = alone(of(PARAMETERS), *weights)
    same(jax.vmap(laplacian)(X), jax.vmap(lambda x: expected(of(PARAMETERS), x, *weights))(X))
    assert any("are the Laplacian of" in str(event) for event in decision_of(laplacian).events)


@pytest.mark.filterwarnings("ignore::fusionlab.errors.FallbackWarning")
@pytest.mark.by_turns(1, "list-argnums1")
@pytest.mark.parametrize("argnums", [0, (0,), [-1]])
@pytest.mark.parametrize(
    "weights",
    [np.array([1.0, 2.0, 3.0]), [1.0, 2, 3.0], (1.0, 2.0, 3.0), 2.0, np.float32(2), jnp.ones(1, jnp.bfloat16)],
    ids=["array", "list", "tuple", "scalar", "number", "device"],
)
def test_weights_of_one_argument(argnums, weights):
    total, gradient = fusionlab.laplacian(sines, weights, argnums=argnums, **QUICK)(R)
    each = np.broadcast_to(np.asarray(weights, np.float32), (3,))
    same(total, -(each * jnp.sin(R)).sum())
    same(gradient, jnp.cos(R) if argnums == 0 else (jnp.cos(R),))


@pytest.mark.filterwarnings("ignore::fusionlab.errors.FallbackWarning")
def test_lists_are_weights_of_trees():
    """And numbers, where the arguments have as many; an array is that of each argument."""
    x = (R, R)
    for weights, wanted in (
        ([1.0, 2.0], (1, 2)),
        ([[1.0, 2.0, 3.0], 2.0], ([1, 2, 3], 2)),
        (np.array([1.0, 2.0, 3.0]), ([1, 2, 3],) * 2),
        ((2.0, {}), None),
    ):
        laplacian = fusionlab.laplacian(lambda a, b: sines(a) + cubes(b), weights, argnums=(0, 1), **QUICK)
        if wanted is None:
            with pytest.raises(fusionlab.InputError, match=r"weights of x\[1\] are a dict of nothing and no array"):
                laplacian(*x)
        else:
            of_a, of_b = (jnp.asarray(one, jnp.float32) for one in wanted)
            same(laplacian(*x)[0], -(of_a * jnp.sin(R)).sum() + (of_b * 6 * R).sum())


@pytest.mark.slow
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
        (lambda: alone(lambda x: {"n": 1})(X[0]), "no derivatives"),
        (lambda: alone(jnp.sum)({"r": X[0], "z": 1j}), r"x\['z'\] is real .* real and imaginary part"),
        (lambda: alone(jnp.sum)({"r": object()}), r"x\['r'\] is an array"),
        (lambda: alone(jnp.sum)({}), "no arrays"),
        (lambda: fusionlab.laplacian(jnp.sum, argnums=1)(X[0]), "no argument 1"),
        (lambda: fusionlab.laplacian(jnp.sum, argnums=(0, 0)), r"\(0, 0\) names one argument twice"),
        (lambda: fusionlab.laplacian(jnp.sum, argnums=(0, -2))(X[0], 1.0), r"\(0, -2\) names one argument twice"),
        (lambda: fusionlab.laplacian(jnp.sum, argnums="x"), "number of an argument, or a tuple of numbers, not 'x'"),
        (lambda: fusionlab.laplacian(jnp.sum, argnums=1.5), "number of an argument, or a tuple of numbers, not 1.5"),
        (lambda: fusionlab.laplacian(jnp.sum, argnums=()), "names no argument"),
        (lambda: fusionlab.laplacian(jnp.sum, "a"), "positive numbers, one per coordinate, not 'a'"),
        (lambda: fusionlab.laplacian(jnp.sum, 1j), "positive numbers, one per coordinate, not 1j"),
        (lambda: fusionlab.laplacian(jnp.sum, [True]), "positive numbers, one per coordinate, not True"),
        (lambda: fusionlab.laplacian(jnp.sum, np.ones(3, complex)), "one per coordinate, not complex128"),
        (lambda: fusionlab.laplacian(jnp.sum, object()), "positive numbers, one per coordinate, not <object"),
        (lambda: fusionlab.laplacian(jnp.sum, {"a": 1.0})(X[0]), "weights of x are a dict of 'a' and no array"),
        (lambda: fusionlab.laplacian(jnp.sum, [[1.0, 2.0], [1.0]])(X[0]), "weights of x are a list of 2 and no array"),
        (lambda: fusionlab.laplacian(jnp.sum, [1.0] * 3, argnums=(0, 1))(X[0], X[0]), "a tuple of 2.* list of 3"),
        (lambda: fusionlab.laplacian(cubes, static_argnums=0), "argument 0 is x, and an option makes it static"),
        (lambda: fusionlab.laplacian(cubes, static_argnames="x"), "argument 0 is x, and an option makes it static"),
        (lambda: fusionlab.laplacian(jnp.sum, {"q": 1.0})({"r": X[0]}), "not a tree like x"),
        (lambda: alone(jnp.sum)(jnp.arange(3)), "floating point"),
        (lambda: fusionlab.laplacian(jnp.sum, walkers=3), "option of optimize"),
    ],
)
def test_what_is_no_laplacian(call, why):
    with pytest.raises(fusionlab.InputError, match=why):
        call()


def quietly(function, *arrays):
    with warnings.catch_warnings():
        warnings.simplefilter("error", FallbackWarning)
        return jax.vmap(function)(*arrays)


CONSTANT = {
    "product": lambda x: jnp.dot(x[0], x[1]), "square": lambda x: jnp.sum(x**2), "linear": jnp.sum,
    "matrix": lambda x: jnp.einsum("i,ij,j", x[0], WEIGHTS.T @ WEIGHTS, x[1]), "absolute": lambda x: jnp.abs(x).sum(),
    "largest": jnp.max, "relu": lambda x: jax.nn.relu(x).sum(), "number": lambda x: 3.0,
}  # fmt: skip


@pytest.mark.by_turns(1, "product")
@pytest.mark.parametrize("function", [pytest.param(function, id=name) for name, function in CONSTANT.items()])
def test_second_derivatives_that_do_not_depend_on_the_positions_have_no_loop(function):
    laplacian = fusionlab.laplacian(function, cache=False, check="never", exact_s=0)
    same(quietly(laplacian, X), jax.vmap(lambda x: expected(function, x))(X))
    assert "while" not in jax.jit(jax.vmap(laplacian)).lower(X).as_text()


@pytest.mark.parametrize(("function", "second"), [(lambda x: jnp.sum(x**2), 2), (cubes, 6)], ids=["squares", "cubes"])
def test_many_coordinates_have_no_matrix_of_their_pairs(function, second, monkeypatch):
    """Where second derivatives do not depend on the positions, too."""
    module = importlib.import_module("fusionlab.optimizing.laplacian")
    monkeypatch.setattr(module, "_AT_ONCE", 50)
    few, many = (jax.make_jaxpr(lambda x: module._of_real(function, x))(jnp.ones(count)) for count in (50, 51))
    assert "[50,50]" in str(few)
    assert "[51,51]" not in str(many)
    same(jax.jit(lambda x: module._of_real(function, x)[0])(jnp.ones(51)), jnp.float32(51 * second))


@pytest.mark.slow
def test_the_loop_of_many_coordinates_is_a_forward_pass(monkeypatch):
    monkeypatch.setattr(importlib.import_module("fusionlab.optimizing.laplacian"), "_AT_ONCE", 5)
    laplacian = alone(of(PARAMETERS))
    same(jax.vmap(laplacian)(X), jax.vmap(lambda x: expected(of(PARAMETERS), x))(X))
    assert any("are the Laplacian of" in str(event) for event in decision_of(laplacian).events)


@pytest.mark.filterwarnings("ignore::fusionlab.errors.FallbackWarning")
@pytest.mark.by_turns(1, "number")
@pytest.mark.parametrize(
    ("static", "weights"),
    [({"static_argnums": 2}, None), ({"static_argnums": (-1,)}, 2.0), ({"static_argnames": "mode"}, 2.0)],
    ids=["number", "from-the-end", "name"],
)
def test_options_number_the_arguments_of_the_function(static, weights):
    def function(x, factor, mode):
        return factor * {"cubes": cubes, "sines": sines}[mode](x)

    laplacian = fusionlab.laplacian(function, weights, **static, **QUICK)
    wanted = 2.0 * (6 * R).sum() * (weights or 1.0), 2.0 * 3 * R**2
    same(laplacian(R, 2.0, "cubes"), wanted)
    if "static_argnames" in static:
        same(laplacian(R, 2.0, mode="cubes"), wanted)


@pytest.mark.slow
def test_no_advice_to_use_what_is_used():
    """The slope at 0 is the author's, of which the value says nothing."""
    rectified = jax.custom_jvp(lambda x: jnp.maximum(x, 0))
    rectified.defjvp(lambda p, t: (rectified(*p), jnp.where(p[0] >= 0, *t, 0)))
    laplacian = fusionlab.laplacian(lambda x: rectified(x).sum() ** 3, cache=False, check="never", exact_s=0)
    with pytest.warns(FallbackWarning) as warned:
        jax.vmap(laplacian)(X)
    assert not any("fusionlab.laplacian(f)" in str(one.message) for one in warned)
    assert all("fusionlab.laplacian(f)" not in str(event) for event in decision_of(laplacian).events)


@pytest.mark.slow
def test_each_element_of_a_tree_of_values_has_a_laplacian():
    """And so has each of its gradients; real and complex, with the value."""

    def function(x):
        return {"rows": jnp.tanh(x) @ WEIGHTS[0], "phase": (jnp.exp(1j * x.sum()),)}

    laplacian = fusionlab.laplacian(function, 2.0, has_value=True, cache=False, check="never", exact_s=0)
    total, gradient, value = jax.vmap(laplacian)(X)
    hessian = jax.vmap(
        lambda x: 2.0 * jnp.trace(jax.hessian(lambda y: function(y.reshape(2, 3))["rows"])(x.ravel()), axis1=1, axis2=2)
    )(X)
    same(total, {"rows": hessian, "phase": (-12.0 * value["phase"][0],)})
    same(value, jax.vmap(function)(X))
    of_phase = 1j * value["phase"][0][:, None, None] * jnp.ones((2, 3))
    same(gradient, {"rows": jax.vmap(jax.jacrev(lambda x: function(x)["rows"]))(X), "phase": (of_phase,)})


@pytest.mark.slow
def test_arguments_by_number_and_trees_of_them():
    def function(scale, x, *, factor):
        return scale * factor * jnp.sin(x["r"]).sum() * x["s"] ** 3

    x = {"r": X[:, 0], "s": X[:, 1, 0]}
    laplacian = fusionlab.laplacian(function, {"r": np.array([1.0, 2.0, 3.0]), "s": 0.5}, argnums=1, **QUICK)
    total, gradient = jax.vmap(lambda x: laplacian(1.5, x, factor=2.0))(x)
    sines, s = jnp.sin(x["r"]), x["s"]
    same(total, 3 * (-(sines * np.array([1.0, 2.0, 3.0])).sum(-1) * s**3 + 0.5 * sines.sum(-1) * 6 * s))
    same(gradient, jax.vmap(lambda x: jax.grad(function, 1)(1.5, x, factor=2.0))(x))
    several = fusionlab.laplacian(lambda a, b, c: jnp.sin(a).sum() * b * c**2, argnums=(0, -1), **QUICK)
    total, gradient = several(X[0, 0], 2.0, 3.0)
    same(total, -jnp.sin(X[0, 0]).sum() * 18 + jnp.sin(X[0, 0]).sum() * 4)
    assert jax.tree.map(jnp.shape, gradient) == ((3,), ())


@pytest.mark.by_turns(1, "bfloat16")
@pytest.mark.parametrize("dtype", [jnp.bfloat16, jnp.float16, jnp.complex64], ids=lambda dtype: jnp.dtype(dtype).name)
def test_results_have_the_dtype_of_the_value(dtype):
    for weights in (None, 2.0):
        laplacian = fusionlab.laplacian(lambda x: (x * x).sum().astype(dtype), weights, has_value=True, **QUICK)
        total, gradient, value = laplacian(R)
        assert {leaf.dtype for leaf in (total, gradient, value)} == {jnp.dtype(dtype)}
        np.testing.assert_allclose(np.asarray(total, complex), 6 * (weights or 1.0), 1e-2)
        np.testing.assert_allclose(np.asarray(gradient, complex), 2 * R, 1e-2)


def test_x_of_size_0():
    none = fusionlab.laplacian(jnp.sum, **QUICK)(jnp.zeros((0, 3), jnp.float32))
    assert jax.tree.map(jnp.shape, none) == ((), (0, 3))
    same(none[0], jnp.zeros((), jnp.float32))


@pytest.mark.slow
def test_a_product_of_complex_numbers():
    """The derivatives of a complex power series are concatenated with zeros, which depend on no electron."""
    laplacian = fusionlab.laplacian(
        lambda x: jnp.log((x[0] + 1j * x[1]) * jnp.exp(-(x**2).sum())), cache=False, exact_s=0
    )
    total, _ = jax.vmap(laplacian)(X.reshape(5, 6)[:, :4])
    assert laplacian.fusionlab.reason == ""
    same(total, jnp.full(5, -8, jnp.complex64))


@pytest.mark.slow
def test_a_complex_determinant():
    """JAX's test for singular matrices is of both parts of a complex number.

    At far walkers every tanh is at its end, and its slope is a multiple of a rounding.
    """
    with jax.enable_x64(True):
        random = np.random.RandomState(3)
        walker = random.randn(5, 3)
        x, weights = np.stack([walker, 0.9 * walker]), random.randn(5, 3, 5) + 1j * random.randn(5, 3, 5)

        def determinant(x):
            return jnp.linalg.det(5 * jnp.eye(5) + jnp.tanh(jnp.einsum("id,idj->ij", x, weights)))

        laplacian = fusionlab.laplacian(determinant, **QUICK)
        total, _ = jax.vmap(laplacian)(x)
        for part, found in ((jnp.real, total.real), (jnp.imag, total.imag)):
            exact = [expected(lambda y, part=part: part(determinant(y)), walker)[0] for walker in x]
            np.testing.assert_allclose(found, exact, rtol=1e-9)
    [decision] = laplacian.fusionlab.decisions
    assert decision.rewritten is not None
    assert not any(getattr(event, "fallback", "") for event in decision.events), decision.events
