"""Loops that carry equal values in the same way, and those that differ after many trips."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.hlo import ops
from fusionlab.hlo.program import program_view
from fusionlab.hlo.value_numbers import ValueNumbers

X, TRIPS = np.ones(4, np.float32), np.int32(40)


def delayed(x, trips, last, states, beside=False):
    """The first of a line of ``states`` values, each of which takes the value of the next one in a trip."""

    def trip(carried):
        k, tangent, *values = carried
        return k + 1, tangent * jnp.cos(values[0]) if beside else tangent, *values[1:], last(values[-1])

    return lax.while_loop(lambda carried: carried[0] < trips, trip, (0, x, *[x] * states))[2]


def numbers_of(lowered, one, other):
    view = program_view(lowered(lambda x, trips: (one(x, trips), other(x, trips)), X, TRIPS))
    numbers = ValueNumbers(view, equal_loops=True)
    first, second = view.returns
    return numbers[first], numbers[second]


@pytest.mark.parametrize("states", [1, 2, 3, 6, 12])
def test_a_delay_line_is_followed_to_its_end(lowered, states):
    first, second = numbers_of(
        lowered,
        lambda x, trips: delayed(x, trips, jnp.sin, states),
        lambda x, trips: delayed(x, trips, jnp.tan, states),
    )
    assert first != second


@pytest.mark.parametrize("states", [1, 3, 12])
def test_what_is_carried_beside_makes_no_difference(lowered, states):
    first, second = numbers_of(
        lowered,
        lambda x, trips: delayed(x, trips, jnp.sin, states),
        lambda x, trips: delayed(x, trips, jnp.sin, states, beside=True),
    )
    assert first == second


@pytest.mark.parametrize(("states", "equal"), [(14, True), (16, False)])
def test_a_value_that_is_made_of_many_has_numbers_of_its_own(lowered, states, equal):
    """The counter ends the loop, and the states depend on one another: they are one more than 14."""
    first, second = numbers_of(lowered, *[lambda x, trips: delayed(x, trips, jnp.sin, states)] * 2)
    assert (first == second) == equal


def test_loops_inside_of_loops_are_told_from_those_around_them(lowered):
    """Both count from the same start by the same step to the same end: i < j is not i < i."""

    def counted(x, trips, compare):
        def around(i, total):
            return lax.fori_loop(0, trips, lambda j, inner: inner + jnp.where(compare(i, j), x, 0), total)

        return lax.fori_loop(0, trips, around, x)

    def predicates(*compares):
        view = program_view(lowered(lambda x, trips: [counted(x, trips, each) for each in compares], X, TRIPS))
        numbers = ValueNumbers(view, equal_loops=True)
        return [numbers[node.operands[0]] for node in view.walk() if node.op is ops.SELECT]

    first, second = predicates(lambda i, j: i < j, lambda i, j: i < i)
    assert first != second
    first, second = predicates(*[lambda i, j: i < j] * 2)
    assert first == second


def test_a_loop_is_itself_in_another_loop(lowered):
    """As the value of a function is computed again in each trip that adds up its derivatives."""

    def inner(x):
        return lax.fori_loop(0, 5, lambda k, y: jnp.sin(y) + k, x)

    def function(x, trips):
        return inner(x), lax.fori_loop(0, trips, lambda k, total: total + inner(x), x)

    view = program_view(lowered(function, X, TRIPS))
    numbers = ValueNumbers(view, equal_loops=True)
    of_both = [numbers[node.results[0]] for node in view.walk() if node.op is ops.SINE]
    assert len(of_both) == 2
    assert len(set(of_both)) == 1


def test_loops_that_end_otherwise_are_told_apart(lowered):
    def ending(last):
        return lambda x, trips: lax.fori_loop(0, trips - last, lambda k, y: jnp.sin(y), x)

    first, second = numbers_of(lowered, ending(0), ending(1))
    assert first != second
