"""The replay inventory: every form of the loop is found, and what is none says why."""

import math

import jax
import jax.numpy as jnp
import pytest

from fusionlab.hlo.program import program_view
from fusionlab.hlo.replay import find_replays, inventory

from .conftest import as_program, laplacian_by, laplacian_program

ROW = "row k of the 6 x 6 identity (dynamic_slice at the counter)"


def loops_of(program):
    return inventory(program_view(program))


@pytest.mark.parametrize(
    ("method", "description"),
    [("replay", ROW), ("scan", ROW), ("jvp-in-loop", ROW), ("one-hot", "comparison of the counter with an iota of 6")],
)
def test_every_form_of_the_loop_is_a_replay(method, description):
    (replay,) = loops_of(laplacian_program(method))
    assert (replay.blockers, replay.trips, replay.terms) == ((), 6, 1)
    assert (replay.seed.extent, replay.seed.rows, replay.seed.description) == (6, 1, description)
    assert replay.body_ops == sum(1 for _ in replay.loop.body.operations()) > 20


def test_a_large_identity_is_recognised():
    (replay,) = loops_of(laplacian_program("replay", n=84))
    assert replay.seed.extent == replay.trips == 84


def test_residuals_differ_between_walkers_and_weights_do_not(replay_program):
    (replay,) = loops_of(replay_program)
    assert {value.type.shape[0] for value in replay.residuals} == {4}
    assert {(5, 12), (6, 6)} <= {value.type.shape for value in replay.shared}  # the weights, and the identity
    assert replay.residual_bytes == sum(4 * math.prod(value.type.shape) for value in replay.residuals)
    assert not set(replay.residuals) & set(replay.shared)


def test_only_a_jvp_in_the_loop_recomputes():
    (linearised,), (repeated,) = (loops_of(laplacian_program(method)) for method in ("replay", "jvp-in-loop"))
    assert linearised.recomputed == ()
    assert {"tanh", "exponential"} <= {node.op.mnemonic for node in repeated.recomputed}
    assert repeated.residual_bytes < linearised.residual_bytes


def test_one_replay_among_the_loops_of_an_lu_on_the_cpu(paulinet):
    loops = loops_of(paulinet)
    (replay,) = [loop for loop in loops if not loop.blockers]
    assert len(loops) > 1
    assert replay.trips == 12
    assert all("links one trip to the next" in loop.blockers[0].reason for loop in loops if loop.blockers)


def test_a_replay_resembles_one_most_then_what_makes_directions_then_what_computes_most():
    def several(x):
        hessian, eye = jax.linearize(jax.grad(lambda y: jnp.sin(y).prod()), x)[1], jnp.eye(6)
        few, many = (jax.lax.fori_loop(0, 9, lambda k, y: jnp.tanh(y @ y), jnp.eye(n) + x[0]) for n in (2, 8))
        decayed = jax.lax.fori_loop(0, 6, lambda k, s: s / 2 + hessian(eye[k])[k], 0.0)
        return few, many, decayed, jax.lax.fori_loop(0, 6, lambda k, s: s + hessian(eye[k])[k], 0.0)

    few, many, decayed, total = loops_of(as_program(several, jnp.ones(6)))
    assert [bool(loop.blockers) for loop in (few, many, decayed, total)] == [True, True, True, False]
    assert total.likeness > decayed.likeness > many.likeness > few.likeness


SLICE = "each trip takes a slice of a {}xf32 value that is not known to be an identity"


def rows_of_data(x):
    return jax.lax.fori_loop(0, 4, lambda k, s: s + jnp.sin(x[k]).sum(), 0.0)


def unused_direction(x):
    def body(carry, _):
        k, total = carry
        return (k + 1, total + jnp.sin(x).sum()), jnp.eye(3)[k].astype(int)

    return jax.lax.scan(body, (0, 0.0), length=3)


NO_REPLAYS = {
    "random-probes": (laplacian_by("random"), (jnp.ones((5, 12)), jnp.ones((4, 6))), SLICE.format("6x6")),
    "rows-of-data": (rows_of_data, (jnp.ones((4, 3)),), SLICE.format("4x3")),
    "unused-direction": (
        unused_direction,
        (jnp.ones(3),),
        "a direction is made from the counter, but what is accumulated does not depend on it",
    ),
    "recurrence": (
        lambda x: jax.lax.fori_loop(0, 5, lambda k, y: jnp.tanh(y) * k, x),
        (jnp.ones(3),),
        "carried value 2 (tensor<3xf32>) links one trip to the next: "
        "its next value depends on carried values in another way than adding to it",
    ),
    "unknown-trips": (
        lambda x: jax.lax.while_loop(lambda y: y.sum() > 1, lambda y: y / 2, x),
        (jnp.ones(3),),
        "the trip count is not known at compile time: no carried value is a counter with a constant start and step",
    ),
}


@pytest.mark.parametrize("case", NO_REPLAYS)
def test_what_is_no_replay_says_why(case):
    function, arguments, blocker = NO_REPLAYS[case]
    program = as_program(function, *arguments)
    (loop,) = loops_of(program)
    assert loop.blockers[0].reason == blocker
    assert find_replays(program_view(program)) == []


def test_a_complex_constant_is_no_real_number():
    """A one written among imaginary units is no seed; among complex zeros it is."""

    def of(start):
        def written(x):
            return jax.lax.fori_loop(0, 6, lambda k, s: s + jnp.abs(jnp.full(6, start).at[k].set(1.0) @ x), 0.0)

        return as_program(written, jnp.ones(6, jnp.complex64))

    assert [replay.seed is not None for start in (1j, 0j) for replay in loops_of(of(start))] == [False, True]
