"""Which values are tried as F, in which order, and what one trial finds of several values."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from fusionlab.hlo.program import program_view
from fusionlab.passes.fuse_jvp_replay.identify.positions import groups
from fusionlab.passes.fuse_jvp_replay.identify.trial import ProductTrial

from ..laplacian_assertions import assert_rewritten

WALKERS, COORDINATES = 4, 6
X = np.random.default_rng(0).standard_normal((WALKERS, COORDINATES))


def layer(x):
    return jnp.tanh(jnp.sin(x * jnp.arange(1.0, 1 + COORDINATES)) + x**3)


def log_psi(x):
    """Shifted by the largest term, which drops out."""
    terms = layer(x).cumsum()
    return jnp.log(jnp.exp(terms - terms.max()).sum()) + terms.max()


def of_the_largest(x):
    """The largest term counts."""
    return layer(x).max() ** 3 + layer(x[::-1]).sum()


def test_a_value_built_on_another_one_is_tried_after_it(lowered):
    def both(x):
        value, gradient = jax.value_and_grad(log_psi)(x)
        return (gradient**2).sum(), value

    flat = program_view(lowered(jax.vmap(both), X))
    squares, value = flat.returns
    assert groups(flat, [squares, value], (WALKERS,)) == [[value], [squares]]


def test_values_of_equal_cost_are_tried_together(lowered):
    flat = program_view(lowered(jax.vmap(lambda x: (log_psi(x), log_psi(2 * x))), X))
    assert groups(flat, flat.returns, (WALKERS,)) == [list(flat.returns)]


def test_laplacians_of_two_loops_share_one_forward_pass_where_an_extreme_counts_in_one(lowered, rewritten):
    """Each alone needs the layer's jet again."""
    weights = np.linspace(-1, 1, 2 * 16).reshape(2, 16)

    def summed(x):
        return jnp.tanh(x.reshape(-1, 2) @ weights).sum(0)

    def with_laplacian(f, x):
        times = jax.linearize(jax.grad(f), x)[1]
        total = jax.lax.fori_loop(0, COORDINATES, lambda k, sum_: sum_ + times(jnp.eye(COORDINATES)[k])[k], 0.0)
        return total, f(x)

    values = (lambda x: jax.nn.logsumexp(summed(x)), lambda x: jnp.max(jnp.sin(summed(x))) ** 3)
    both = lowered(jax.vmap(lambda x: tuple(with_laplacian(f, x) for f in values)), X)
    one, other = rewritten(both, "sparsify-directions").applied
    assert one.what == other.what
    assert (one.sparsity is not None, other.sparsity) == (True, None)  # told once


@pytest.mark.slow
def test_an_extreme_is_constant_in_one_value_and_counts_in_another_of_one_loop(run_raised):
    def laplacians(x):
        hessians = [jax.linearize(jax.grad(f), x)[1] for f in (log_psi, of_the_largest)]

        def add(k, totals):
            return tuple(
                total + times(jnp.eye(COORDINATES)[k])[k] for total, times in zip(totals, hessians, strict=True)
            )

        return log_psi(x), of_the_largest(x), jax.lax.fori_loop(0, COORDINATES, add, (0.0, 0.0))

    def expected(x):
        values = (log_psi, of_the_largest)
        each = [jax.vmap(lambda y, f=f: jnp.trace(jax.hessian(f)(y)))(x) for f in values]
        return *(jax.vmap(f)(x) for f in values), *each

    result = assert_rewritten(run_raised, jax.vmap(laplacians), X, expected=expected)
    assert not [node for node in program_view(result.program).walk() if node.name == "stablehlo.while"]


def network(x):
    return jnp.tanh(x.reshape(-1, 2) @ np.linspace(-1, 1, 2 * 8).reshape(2, 8)).sum(0)


def value(x):
    return jnp.log(jnp.cosh(network(x))).sum()


def of_rows(combined):
    """The sum over directions of what ``combined`` makes of a row of the Hessian, and the value."""

    def one(x):
        push = jax.linearize(jax.grad(value), x)[1]
        rows = jnp.eye(COORDINATES)
        return value(x), jax.lax.fori_loop(0, COORDINATES, lambda k, sum_: sum_ + combined(push(rows[k])), 0.0)

    return jax.vmap(one)


@pytest.fixture
def evaluated(monkeypatch):
    """The trials of which anything is evaluated, one for each program that is made of them."""
    made, view_of = [], ProductTrial.view_of

    def counted(self, *given, **named):
        made.append(self)
        return view_of(self, *given, **named)

    monkeypatch.setattr(ProductTrial, "view_of", counted)
    return made


def test_squares_of_slopes_are_refused_before_anything_is_evaluated(lowered, rewritten, evaluated):
    """A forward Laplacian has no loop: it squares the slope of each value."""

    def energy(x):
        slopes = jnp.eye(COORDINATES) @ jax.grad(value)(x)
        return value(x), slopes**2

    result = rewritten(lowered(jax.vmap(energy), X), "sparsify-directions")
    assert (result.applied, evaluated) == ((), [])


def test_a_second_derivative_that_is_no_square_is_found_beside_squares(run_raised, evaluated):
    def energy(x):
        push = jax.linearize(jax.grad(value), x)[1]
        slopes = jnp.eye(COORDINATES) @ jax.grad(value)(x)
        return value(x), (slopes**2).sum() + jnp.trace(jax.vmap(push)(jnp.eye(COORDINATES)))

    assert_rewritten(run_raised, jax.vmap(energy), X)
    assert evaluated


@pytest.mark.parametrize("combined", [lambda row: row[0], lambda row: (row**2).sum()], ids=["column", "norm"])
def test_other_sums_of_products_are_refused_with_the_first_function_that_has_them(
    lowered, rewritten, evaluated, combined
):
    """No other positions, and no other function, can make a diagonal of the same products."""
    result = rewritten(lowered(of_rows(combined), X), "sparsify-directions")
    [refusal] = result.events
    assert "something else than a function of the diagonal" in refusal.reason
    assert len({trial.x for trial in evaluated}) == 1
    assert all(trial.is_likely for trial in evaluated)


def test_a_copy_of_the_positions_is_not_tried_after_them(lowered, rewritten, evaluated):
    """The divergence of a field that is no gradient, of the positions reshaped twice and shifted."""

    def field(y):
        return jnp.tanh(jnp.linspace(-1, 1, COORDINATES**2).reshape(COORDINATES, -1) @ jnp.sin(y - 1.0))

    def divergence(x):
        y = x.reshape(-1).reshape(COORDINATES, 1).reshape(-1)
        made, push = jax.linearize(field, y)
        total = jax.lax.fori_loop(0, COORDINATES, lambda k, sum_: sum_ + push(jnp.eye(COORDINATES)[k])[k], 0.0)
        return jnp.cos(made).sum(), total

    program = lowered(jax.vmap(divergence), X.reshape(WALKERS, -1, 2))
    [refusal] = rewritten(program, "sparsify-directions").events
    assert "none has the Laplacian" in refusal.reason
    tried = {trial.x for trial in evaluated}
    of_sines = {x for x in tried if x.producer is not None and x.producer.name == "stablehlo.sine"}
    assert len(tried - of_sines) == 1


def test_positions_that_are_differentiated_apart_from_a_copy_are_tried(run_raised):
    """The value depends on x, and on x shifted; the second derivatives are those by the shifted one alone."""

    def energy(x):
        def of(y):
            return value(y) * jnp.cos(x).sum() + jnp.sin(y) @ x

        y, rows = x - 0.5, jnp.eye(COORDINATES)
        push = jax.linearize(jax.grad(of), y)[1]
        return of(y), jax.lax.fori_loop(0, COORDINATES, lambda k, sum_: sum_ + push(rows[k])[k], 0.0)

    assert_rewritten(run_raised, jax.vmap(energy), X)


def test_outputs_of_another_shape_are_tried_with_a_copy_of_the_positions(run_raised):
    """Chains of walkers, merged for the network; an envelope of the positions as they came is tried first."""

    def laplacian(z, scale):
        push, rows = jax.linearize(jax.grad(value), z)[1], jnp.eye(COORDINATES)
        return jax.lax.fori_loop(0, COORDINATES, lambda k, sum_: sum_ + push(rows[k])[k] * scale, 0.0)

    def energies(x):
        envelope, z = jnp.exp(-(x**2).sum(-1)), x.reshape(WALKERS, COORDINATES)
        return envelope, jax.vmap(value)(z), jax.vmap(laplacian)(z, envelope.reshape(-1))

    assert_rewritten(run_raised, energies, X.reshape(2, 2, COORDINATES))


def test_a_sum_that_is_written_as_squares_in_a_loop_is_found(run_raised):
    """The Hessian of -log(u), u linear, is the square of the slope of log(u)."""
    weights = jnp.linspace(0.5, 1.0, COORDINATES)

    def energy(x):
        def add(k, total):
            slope = jax.jvp(lambda y: jnp.log(weights @ y + 9.0), (x,), (jnp.eye(COORDINATES)[k],))[1]
            return total + slope * slope

        return -jnp.log(weights @ x + 9.0), jax.lax.fori_loop(0, COORDINATES, add, 0.0)

    assert_rewritten(run_raised, jax.vmap(energy), X)


def test_an_extreme_of_weights_alone_is_no_reason_for_another_trial(lowered, rewritten, evaluated):
    """It has no derivatives by x, whether F depends on it or not."""

    def times(of_weights):
        def energy(weights, x):
            def f(x):
                return log_psi(x) * of_weights(weights)

            push = jax.linearize(jax.grad(f), x)[1]
            total = jax.lax.fori_loop(0, COORDINATES, lambda k, sum_: sum_ + push(jnp.eye(COORDINATES)[k])[k], 0.0)
            return f(x), total

        return jax.vmap(energy, (None, 0))

    made = []
    for of_weights in (jnp.sum, jnp.max):
        evaluated.clear()
        result = rewritten(lowered(times(of_weights), np.arange(3.0), X), "sparsify-directions")
        assert result.applied
        made.append(len(evaluated))
    assert made[0] == made[1]


QUADRATICS = {
    "product": lambda x: (x * x).sum(),
    "square": lambda x: (jnp.square(x) * jnp.arange(1.0, 1 + COORDINATES)).sum(),
    "minimum image": lambda x: ((x - jnp.round(x)) ** 2).sum(),
    "pieces": lambda x: (x * x).sum() + jnp.maximum(x, 0.5).sum(),
    "root": lambda x: jnp.sqrt((x * x).sum()) ** 2,
}


@pytest.mark.parametrize(
    ("made_of", "tried"),
    [*((made_of, True) for made_of in QUADRATICS.values()), (lambda x: jnp.tanh(x).sum(), False)],
    ids=[*QUADRATICS, "tanh"],
)
def test_a_table_is_tried_as_the_hessian_of_quadratic_values_alone(made_of, tried, lowered, rewritten, evaluated):
    """Beside the last values, which are tried whatever they are."""

    def beside(x):
        return jnp.sin(made_of(x)), jnp.eye(COORDINATES) @ x

    assert not rewritten(lowered(beside, X[0]), "sparsify-directions").applied
    assert (len(set(map(id, evaluated))) > 1) == tried


def test_a_value_whose_trips_depend_on_x_is_beside_a_quadratic_one(lowered, rewritten):
    def energy(x):
        def value(y):
            return (y * y * jnp.arange(1.0, 1 + COORDINATES)).sum()

        push = jax.linearize(jax.grad(value), x)[1]
        total = jax.lax.fori_loop(0, COORDINATES, lambda k, sum_: sum_ + push(jnp.eye(COORDINATES)[k])[k], 0.0)
        many = jax.lax.while_loop(lambda c: c[0] < jnp.abs(x[0]) * 10, lambda c: (c[0] + 1, c[1] * 1.5), (0.0, 1.0))[1]
        return jnp.sin(value(x)), total + many

    assert rewritten(lowered(energy, X[0]), "sparsify-directions").applied


def test_a_loop_behind_an_extreme(run_raised):
    """It has no transpose."""

    def value(x):
        return jax.lax.fori_loop(0, 2, lambda k, y: 1.1 * jnp.sin(y), jax.nn.softmax(layer(x))).sum()

    def energy(x):
        push = jax.linearize(jax.grad(value), x)[1]
        add = lambda k, total: total + push(jnp.eye(COORDINATES)[k])[k]  # noqa: E731
        return value(x), jax.lax.fori_loop(0, COORDINATES, add, 0.0)

    assert_rewritten(run_raised, jax.vmap(energy), X)
