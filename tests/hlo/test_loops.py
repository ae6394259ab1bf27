"""The facts of counted loops: how often they run, what each carried value is, and what they compute again."""

from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.codegen.raising import raise_program
from fusionlab.hlo.dependence import live_nodes, reached
from fusionlab.hlo.loops import (
    Counter,
    Invariant,
    Recurrent,
    Stacked,
    Sum,
    find_loops,
    invariant_nodes,
    loop_number,
    separate_in_view,
    with_numbered_loops,
    without_numbers,
)
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.replay import inventory
from fusionlab.passes.interface import Setting
from fusionlab.passes.licm import LoopInvariantCodeMotion

from .conftest import as_program, laplacian_program

X = np.linspace(0.1, 1.2, 12, dtype=np.float32).reshape(3, 4)


def loops_of(function, *arguments):
    return find_loops(program_view(as_program(function, *arguments)))


def loop_of(function, *arguments):
    (loop,) = loops_of(function, *arguments)
    return loop


def roles(loop, kind):
    return [role for role in loop.roles if isinstance(role, kind)]


def loop_of_file(name):
    (loop,) = find_loops(program_view(Program.from_file(Path(__file__).parent / "loops" / f"{name}.mlir")))
    return loop


def test_a_sum_over_trips():
    loop = loop_of(lambda x: lax.fori_loop(0, 7, lambda k, s: s + jnp.sin(x) * k, jnp.zeros_like(x)), X)
    assert loop.trips == 7
    # fori_loop carries two counters: one for the condition, one for the body.
    assert {loop.roles[i] for i in loop.indices(Counter)} == {Counter(0, 1)}
    assert len(loop.indices(Invariant)) == 1
    (sum_,) = roles(loop, Sum)
    assert [sign for sign, _ in sum_.terms] == [1]


@pytest.mark.parametrize(
    ("body", "signs"),
    [(lambda x, k, s: (jnp.sin(x) + (s - jnp.cos(x) * k)) - x, [-1, -1, 1]), (lambda x, k, s: s - x, [-1])],
)
def test_signs_of_terms(body, signs):
    (sum_,) = roles(loop_of(lambda x: lax.fori_loop(0, 3, lambda k, s: body(x, k, s), x), X), Sum)
    assert sorted(sign for sign, _ in sum_.terms) == signs


@pytest.mark.parametrize(
    ("start", "stop", "step", "trips"), [(0, 6, 1, 6), (3, 11, 2, 4), (10, 0, -3, 4), (5, 5, 1, 0), (-4, 3, 4, 2)]
)
def test_any_start_and_step(start, stop, step, trips):
    def going(carried):
        return carried[0] < stop if step > 0 else carried[0] > stop

    loop = loop_of(lambda x: lax.while_loop(going, lambda c: (c[0] + step, c[1] + x * c[0]), (jnp.int32(start), x)), X)
    assert (loop.trips, loop.trips_reason) == (trips, "")
    (counter,) = roles(loop, Counter)
    assert counter == Counter(start, step)
    assert counter.at(np.arange(2)).tolist() == [start, start + step]


def in_slots(at):
    """Three rows, each trip writing the one at ``at(k, n)``."""

    def function(x, n):
        body = lambda k, rows: lax.dynamic_update_slice(rows, x[:1] * k, (at(k, n), 0))  # noqa: E731  # one line is clearer
        return lax.fori_loop(0, 3, body, jnp.zeros_like(x))

    return function


def scattered(at, how="set"):
    """Three rows, each trip writing (or adding to) the one at ``at(k)``."""

    def function(x, n):
        return lax.fori_loop(0, 3, lambda k, rows: getattr(rows.at[at(k)], how)(x[0] * k), jnp.zeros_like(x))

    return function


@pytest.mark.parametrize(
    ("function", "slots"),
    [
        (scattered(lambda k: 2 - k), [(2, 1, 0)]),
        (scattered(lambda k: k, "add"), []),
        (scattered(lambda k: k // 2), []),
        (scattered(lambda k: 1 + k), []),
        (lambda x, n: lax.scan(lambda k, _: (k + 2, jnp.sin(x) * k), 1, length=4), [(0, 1, 2, 3)]),
        (in_slots(lambda k, n: 2 - k), [(2, 1, 0)]),
        (in_slots(lambda k, n: 0), []),
        (in_slots(lambda k, n: 5 + k), []),
        (in_slots(lambda k, n: n + k), []),
    ],
    ids=[
        "scattered",
        "scattered-add",
        "scattered-twice",
        "scattered-outside",
        "scan",
        "backwards",
        "same-slot",
        "clamped",
        "data-dependent",
    ],
)
def test_slots_that_never_meet_are_a_stack(function, slots):
    stacks = roles(loop_of(function, X, np.int32(1)), Stacked)
    assert [(one.axis, one.slots) for one in stacks] == [(0, each) for each in slots]


@pytest.mark.parametrize(
    ("condition", "step", "start", "reason"),
    [
        (lambda k, n: k < n, 1, lambda n: 0, "the condition reads more than counters and constants"),
        (lambda k, n: k < 9, 1, lambda n: n, "no carried value is a counter with a constant start and step"),
        (lambda k, n: k != 7, 2, lambda n: 0, "more than 10000 trips"),
    ],
    ids=["data", "start-of-data", "endless"],
)
def test_an_unknown_trip_count_has_a_reason(condition, step, start, reason):
    def function(x, n):
        return lax.while_loop(lambda c: condition(c[0], n), lambda c: (c[0] + step, c[1] + x), (start(n), x))

    loop = loop_of(function, X, 5)
    assert (loop.trips, loop.trips_reason) == (None, reason)


@pytest.mark.parametrize(
    ("update", "reason"),
    [
        (lambda s, x, k: s * x, "in another way than adding"),
        (lambda s, x, k: s + jnp.sin(s), "in another way than adding"),
        (lambda s, x, k: x - s, "in another way than adding"),
        (lambda s, x, k: s + s, "in another way than adding"),
        (lambda s, x, k: jnp.where(k > 1, s + x, s), "in another way than adding"),
        (lambda s, x, k: x * k, "replaced in every trip"),
    ],
    ids=["product", "recurrence", "alternates", "doubles", "guarded", "replaced"],
)
def test_recurrent_values_have_a_reason(update, reason):
    (role,) = roles(loop_of(lambda x: lax.fori_loop(0, 4, lambda k, s: update(s, x, k), x + 1), X), Recurrent)
    assert reason in role.reason


def test_sums_of_integers_and_sums_that_others_read_are_none():
    # Wrap-around keeps integers exact, but nothing that is replayed is an integer.
    assert not roles(loop_of(lambda n: lax.fori_loop(0, 4, lambda k, s: s + n * k, n), np.int32([1, 2])), Sum)

    def body(k, carried):
        total, other = carried
        return total + jnp.sin(jnp.float32(k)), other + total

    loop = loop_of(lambda x: lax.fori_loop(0, 4, body, (x, x)), X)
    assert "the accumulator is also used elsewhere in the body" in {role.reason for role in roles(loop, Recurrent)}
    assert not roles(loop, Sum)


def test_loops_that_jax_did_not_write():
    assert loop_of_file("condition_on_the_sum").trips is None
    wrapping = loop_of_file("wrapping_counter")
    assert (wrapping.roles, wrapping.trips) == ((Counter(120, 10, "int8"),), 1)
    assert loop_of_file("swapped_values").indices(Recurrent) == [1, 2]
    assert loop_of_file("token").roles == (Counter(0, 1), Recurrent("it is not a tensor"))


def test_outer_loops_come_first_and_a_function_called_twice_has_two_loops():
    def nested(x):
        inner = lambda total: lax.fori_loop(0, 2, lambda _, s: s + jnp.sin(x), total)  # noqa: E731  # one line is clearer
        return lax.fori_loop(0, 5, lambda _, s: jnp.tanh(inner(s)), x)

    assert [loop.trips for loop in loops_of(nested, X)] == [5, 2]
    twice = jax.jit(lambda x: lax.fori_loop(0, 3, lambda k, s: s + x * k, x))
    first, second = loops_of(lambda x: twice(twice(x)), X)
    assert first.node.operation == second.node.operation


def test_every_loop_has_its_own_name():
    def function(x):
        first = lax.fori_loop(0, 3, lambda k, s: s + jnp.sin(x) * k, x)
        return lax.fori_loop(0, 4, lambda k, y: jnp.tanh(y) * 2, first)

    program = as_program(function, jnp.ones(3))
    plain = [loop.node.scope for loop in find_loops(program_view(program))]
    numbered = with_numbered_loops(program)
    scopes = [loop.node.scope for loop in find_loops(program_view(numbered))]
    assert plain[0] == plain[1]
    assert [loop_number(scope) for scope in scopes] == [0, 1]
    assert [without_numbers(scope) for scope in scopes] == plain
    assert (numbered.name, numbered.platform, numbered.ops) == (program.name, program.platform, program.ops)
    assert str(numbered.parse()) == str(program.parse())  # but for locations, which this does not print


def test_the_innermost_number_counts():
    assert loop_number("jit(f)/while#loop2/body/while#loop13") == 13
    assert loop_number("jit(f)/while#loop2/body/tanh") == 2
    assert loop_number("jit(f)/tanh") is None
    assert without_numbers("jit(f)/while#loop2/body/while#loop13") == "jit(f)/while/body/while"


def test_work_on_invariants_and_the_views_it_needs_are_computed_again():
    def function(w, x):
        def body(k, total):
            repeated = jnp.tanh(w.reshape(4, 2)).sum(axis=1)  # reshape, tanh, sum: computed again in every trip
            return total + repeated[:, None] * x + k

        return lax.fori_loop(0, 3, body, jnp.zeros((4, 5)))

    found = [node.op.mnemonic for node in invariant_nodes(loop_of(function, jnp.ones(8), jnp.ones((4, 5))))]
    assert {"reshape", "tanh", "reduce", "multiply"} <= set(found)
    assert "add" not in found


def test_values_carried_beside_tangents_are_separated_from_them():
    """A scan of layers under ``jvp``: a loop of the layers' values alone, which reads no direction, comes before."""

    def layers(x, directions):
        f = lambda y: lax.scan(lambda h, w: (jnp.tanh(h * w), h.sum()), y, jnp.arange(1.0, 4.0))  # noqa: E731  # short
        return jax.jvp(f, (x,), (directions,))

    flat = program_view(as_program(layers, X, X))
    expected = raise_program(flat)(X, X + 1)
    assert separate_in_view(flat, flat.arguments[1:])
    values, both = (loop.node for loop in find_loops(flat))
    assert reached(flat, flat.arguments[1:]).isdisjoint(values.results)
    assert all(value.producer is values for value in flat.returns[:2])
    assert all(value.producer is both for value in flat.returns[2:])
    for ours, theirs in zip(raise_program(flat)(X, X + 1), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert not separate_in_view(flat, flat.arguments[1:], {both})


def test_values_returned_by_a_branch_beside_tangents_are_separated_from_them():
    def both(x, directions):
        return lax.cond(x[0, 0] > 0, lambda: (jnp.sin(x), jnp.cos(x) * directions), lambda: (x, directions))

    directions = np.ones((5, *X.shape), np.float32)
    flat = program_view(as_program(both, X, directions))
    expected = raise_program(flat)(X, directions)
    assert separate_in_view(flat, flat.arguments[1:], (), {5})
    assert not reached(flat, flat.arguments[1:]) & {flat.returns[0]}
    for ours, theirs in zip(raise_program(flat)(X, directions), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    flat = program_view(as_program(both, X, directions))
    assert not separate_in_view(flat, flat.arguments[1:], (), {7}), "no axis of directions is returned"


def test_values_behind_a_barrier_beside_tangents_are_separated_from_them():
    """As of ``jax.checkpoint`` under ``jvp``: live values would keep the tangents otherwise."""

    def both(x, directions):
        return lax.optimization_barrier((jnp.sin(x), jnp.cos(x) * directions, directions))

    flat = program_view(as_program(both, X, X))
    expected = raise_program(flat)(X, X + 1)
    assert separate_in_view(flat, flat.arguments[1:])
    value, *_ = flat.returns
    assert not reached(flat, flat.arguments[1:]) & {value}
    assert len(value.producer.operands) == 1
    assert len(live_nodes(flat.nodes, flat.arguments[:1], [value])) == 2, "sine and its barrier, without directions"
    for ours, theirs in zip(raise_program(flat)(X, X + 1), expected, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    assert not separate_in_view(program_view(as_program(both, X, X)), [value])


def test_views_and_constants_alone_are_no_work():
    def function(x):
        return lax.fori_loop(0, 3, lambda k, s: s + x.T * k * jnp.sin(jnp.arange(4.0)), jnp.zeros((5, 4)))

    assert invariant_nodes(loop_of(function, jnp.ones((4, 5)))) == []


@pytest.mark.parametrize("method", ["replay", "scan", "jvp-in-loop", "one-hot", "paulinet"])
def test_the_inventory_and_the_pass_agree(method, paulinet):
    program = paulinet if method == "paulinet" else laplacian_program(method)
    (replay,) = [loop for loop in inventory(program_view(program)) if not loop.blockers]
    result = LoopInvariantCodeMotion().run(program, Setting())
    told = f"{len(replay.recomputed)} invariant ops hoisted out of the loop"
    assert (told in {event.what for event in result.applied}) == bool(replay.recomputed)
    assert bool(replay.recomputed) == (method in ("jvp-in-loop", "paulinet"))
    if not replay.recomputed:
        assert [event.kind for event in result.events] == ["unprofitable"]
