"""The replay inventory: every form of the loop is found, and what is none says why."""

import jax
import jax.numpy as jnp
import pytest

from fusionlab.hlo.replay import find_replays, inventory
from fusionlab.hlo.view import view_of

from .conftest import as_program, laplacian_program


def loops_of(program):
    return inventory(view_of(program.parse()))


@pytest.mark.parametrize("method", ["replay", "scan", "jvp-in-loop", "one-hot"])
def test_every_form_of_the_loop_is_a_replay(method):
    (replay,) = loops_of(laplacian_program(method))
    assert replay.blockers == ()
    assert replay.trips == 6
    assert replay.terms == 1
    assert replay.seed is not None
    assert (replay.seed.extent, replay.seed.rows) == (6, 1)
    assert replay.body_ops == sum(1 for _ in replay.loop.body.operations()) > 20


def test_the_seed_is_described():
    (row,) = loops_of(laplacian_program("replay"))
    (compared,) = loops_of(laplacian_program("one-hot"))
    assert row.seed.description == "row k of the 6 x 6 identity (dynamic_slice at the counter)"
    assert compared.seed.description == "comparison of the counter with an iota of 6"


def test_a_large_identity_is_recognised():
    (replay,) = loops_of(laplacian_program("replay", n=84))
    assert replay.seed.extent == replay.trips == 84


def test_residuals_differ_between_walkers_and_weights_do_not(replay_program):
    (replay,) = loops_of(replay_program)
    assert replay.residuals
    assert {value.type.shape[0] for value in replay.residuals} == {4}
    shared = {value.type.shape for value in replay.shared}
    assert (5, 12) in shared  # the weights
    assert (6, 6) in shared  # the identity
    assert replay.residual_bytes == sum(4 * _elements(value) for value in replay.residuals)
    assert not set(replay.residuals) & set(replay.shared)


def test_only_a_jvp_in_the_loop_recomputes():
    (linearised,) = loops_of(laplacian_program("replay"))
    (repeated,) = loops_of(laplacian_program("jvp-in-loop"))
    assert linearised.recomputed == ()
    assert {"stablehlo.tanh", "stablehlo.exponential"} <= {node.name for node in repeated.recomputed}
    assert repeated.residual_bytes < linearised.residual_bytes


def test_random_probes_are_no_directions_of_an_identity():
    (loop,) = loops_of(laplacian_program("random"))
    assert loop.blockers == ("each trip takes a slice of a 6x6xf32 value that is not known to be an identity",)
    assert find_replays(view_of(laplacian_program("random").parse())) == []


def test_one_replay_among_the_loops_of_an_lu_on_the_cpu(paulinet):
    loops = loops_of(paulinet)
    replays = [loop for loop in loops if not loop.blockers]
    assert len(loops) > len(replays) == 1
    assert replays[0].trips == 12
    assert all("links one trip to the next" in loop.blockers[0] for loop in loops if loop.blockers)


def test_a_recurrence_is_no_replay():
    program = as_program(lambda x: jax.lax.fori_loop(0, 5, lambda k, y: jnp.tanh(y) * k, x), jnp.ones(3))
    (loop,) = loops_of(program)
    assert loop.trips == 5
    assert "carried value" in loop.blockers[0]
    assert "(tensor<3xf32>)" in loop.blockers[0]


def test_an_unknown_trip_count_is_no_replay():
    program = as_program(lambda x: jax.lax.while_loop(lambda y: y.sum() > 1, lambda y: y / 2, x), jnp.ones(3))
    (loop,) = loops_of(program)
    assert loop.trips is None
    assert loop.blockers[0].startswith("the trip count is not known at compile time")


def test_a_sum_over_rows_of_data_is_no_replay():
    program = as_program(lambda x: jax.lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[k]).sum(), 0.0), jnp.ones((4, 3)))
    (loop,) = loops_of(program)
    assert loop.blockers == ("each trip takes a slice of a 4x3xf32 value that is not known to be an identity",)


def test_a_direction_that_is_not_used_is_no_replay():
    def function(x):
        eye = jnp.eye(3)

        def body(carry, _):
            k, total = carry
            return (k + 1, total + jnp.sin(x).sum()), eye[k].astype(int)

        return jax.lax.scan(body, (0, 0.0), length=3)

    (loop,) = loops_of(as_program(function, jnp.ones(3)))
    assert loop.blockers == ("a direction is made from the counter, but what is accumulated does not depend on it",)


def _elements(value):
    total = 1
    for extent in value.type.shape:
        total *= extent
    return total
