"""The facts of counted loops: how often they run, and what each carried value is."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.hlo.loops import (
    Counter,
    Invariant,
    Recurrent,
    Stacked,
    Sum,
    find_loops,
    loop_number,
    with_numbered_loops,
    without_numbers,
)
from fusionlab.hlo.view import view_of

from .conftest import as_program

X = np.linspace(0.1, 1.2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def loop_of(lowered):
    def find(function, *arguments):
        (loop,) = find_loops(view_of(lowered(function, *arguments).parse()))
        return loop

    return find


@pytest.fixture
def loop_of_text(program_of_text):
    def find(condition, body, carried="%k = %zero, %s = %x", types="tensor<i32>, tensor<f32>"):
        names = [part.split(" = ")[0].strip() for part in carried.split(",")]
        text = f"""
func.func public @main(%x: tensor<f32>, %n: tensor<i32>) -> ({types}) {{
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %six = stablehlo.constant dense<6> : tensor<i32>
  %0:{len(names)} = stablehlo.while({carried}) : {types} cond {{
    {condition}
    stablehlo.return %go : tensor<i1>
  }} do {{
    {body}
    stablehlo.return {", ".join(f"{name}_next" for name in names)} : {types}
  }}
  return {", ".join(f"%0#{i}" for i in range(len(names)))} : {types}
}}"""
        (loop,) = find_loops(view_of(program_of_text(text).parse()))
        return loop

    return find


LESS_THAN_SIX = "%go = stablehlo.compare LT, %k, %six : (tensor<i32>, tensor<i32>) -> tensor<i1>"
BUMP = "%k_next = stablehlo.add %k, %one : tensor<i32>\n"
ADD = "%s_next = stablehlo.add %s, %x : tensor<f32>"


def test_a_sum_over_trips(loop_of):
    loop = loop_of(lambda x: lax.fori_loop(0, 7, lambda k, s: s + jnp.sin(x) * k, jnp.zeros_like(x)), X)
    assert loop.trips == 7
    # fori_loop carries two counters: one for the condition, one for the body.
    assert {loop.roles[i] for i in loop.indices(Counter)} == {Counter(0, 1)}
    assert len(loop.indices(Invariant)) == 1
    (sum_,) = (role for role in loop.roles if isinstance(role, Sum))
    assert [sign for sign, _ in sum_.terms] == [1]


def test_signs_of_several_terms(loop_of):
    loop = loop_of(lambda x: lax.fori_loop(0, 3, lambda k, s: (jnp.sin(x) + (s - jnp.cos(x) * k)) - x, x), X)
    (sum_,) = (role for role in loop.roles if isinstance(role, Sum))
    assert sorted(sign for sign, _ in sum_.terms) == [-1, -1, 1]


@pytest.mark.parametrize(
    ("start", "stop", "step", "trips"), [(0, 6, 1, 6), (3, 11, 2, 4), (10, 0, -3, 4), (5, 5, 1, 0), (-4, 3, 4, 2)]
)
def test_any_start_and_step(start, stop, step, trips, loop_of):
    def function(x):
        def going(carried):
            return carried[0] < stop if step > 0 else carried[0] > stop

        return lax.while_loop(going, lambda c: (c[0] + step, c[1] + x * c[0]), (jnp.int32(start), x))

    loop = loop_of(function, X)
    assert (loop.trips, loop.trips_reason) == (trips, "")
    counter = loop.roles[loop.indices(Counter)[0]]
    assert counter == Counter(start, step)
    assert counter.at(np.arange(2)).tolist() == [start, start + step]


def test_a_scan_stacks_its_outputs(loop_of):
    loop = loop_of(lambda x: lax.scan(lambda k, _: (k + 2, jnp.sin(x) * k), 1, length=4), X)
    (stacked,) = (role for role in loop.roles if isinstance(role, Stacked))
    assert (stacked.axis, stacked.slots) == (0, (0, 1, 2, 3))
    assert Counter(1, 2) in loop.roles


def test_slots_may_be_in_any_order(loop_of):
    def function(x):
        body = lambda k, rows: lax.dynamic_update_slice(rows, (x[:1] * k), (2 - k, 0))  # noqa: E731  # one line is clearer
        return lax.fori_loop(0, 3, body, jnp.zeros_like(x))

    (stacked,) = (role for role in loop_of(function, X).roles if isinstance(role, Stacked))
    assert stacked.slots == (2, 1, 0)


@pytest.mark.parametrize("start", [0, 5, "data"], ids=["same-slot", "clamped", "data-dependent"])
def test_slots_that_may_meet_are_no_stack(start, loop_of):
    def function(x, n):
        at = n if start == "data" else start

        def body(k, rows):
            return lax.dynamic_update_slice(rows, x[:1] * k, (at + (k if start else 0), 0))

        return lax.fori_loop(0, 3, body, jnp.zeros_like(x))

    assert not loop_of(function, X, np.int32(1)).indices(Stacked)


def test_the_trip_count_of_data_is_not_known(loop_of):
    loop = loop_of(lambda x, n: lax.while_loop(lambda c: c[0] < n, lambda c: (c[0] + 1, c[1] + x), (0, x)), X, 5)
    assert loop.trips is None
    assert loop.trips_reason == "the condition reads more than counters and constants"


def test_a_start_that_is_data_is_no_counter(loop_of):
    loop = loop_of(lambda x, n: lax.while_loop(lambda c: c[0] < 9, lambda c: (c[0] + 1, c[1] + x), (n, x)), X, 5)
    assert (loop.trips, loop.trips_reason) == (None, "no carried value is a counter with a constant start and step")


def test_a_loop_that_never_ends_is_given_up(loop_of):
    loop = loop_of(lambda x: lax.while_loop(lambda c: c[0] != 7, lambda c: (c[0] + 2, c[1] + x), (0, x)), X)
    assert loop.trips is None
    assert loop.trips_reason.startswith("more than")


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
def test_recurrent_values_say_how(update, reason, loop_of):
    loop = loop_of(lambda x: lax.fori_loop(0, 4, lambda k, s: update(s, x, k), x + 1), X)
    (role,) = (role for role in loop.roles if isinstance(role, Recurrent))
    assert reason in role.reason


def test_integer_sums_are_left_alone(loop_of):
    # Wrap-around keeps them exact, but nothing that is replayed is an integer.
    loop = loop_of(lambda n: lax.fori_loop(0, 4, lambda k, s: s + n * k, n), np.int32([1, 2]))
    assert not loop.indices(Sum)


def test_a_sum_that_another_value_reads_is_recurrent(loop_of):
    def body(k, carried):
        total, other = carried
        return total + jnp.sin(jnp.float32(k)), other + total

    loop = loop_of(lambda x: lax.fori_loop(0, 4, body, (x, x)), X)
    reasons = {role.reason for role in loop.roles if isinstance(role, Recurrent)}
    assert "the accumulator is also used elsewhere in the body" in reasons
    assert not loop.indices(Sum)


def test_a_condition_on_the_sum_is_no_count(loop_of_text):
    loop = loop_of_text("%go = stablehlo.compare LT, %s, %x : (tensor<f32>, tensor<f32>) -> tensor<i1>", BUMP + ADD)
    assert loop.trips is None


def test_the_counter_may_be_on_either_side_and_wrap_in_its_own_type(program_of_text):
    text = """
func.func public @main() -> tensor<i8> {
  %start = stablehlo.constant dense<120> : tensor<i8>
  %step = stablehlo.constant dense<10> : tensor<i8>
  %zero = stablehlo.constant dense<0> : tensor<i8>
  %0 = stablehlo.while(%k = %start) : tensor<i8> cond {
    %go = stablehlo.compare GT, %k, %zero : (tensor<i8>, tensor<i8>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %step, %k : tensor<i8>
    stablehlo.return %next : tensor<i8>
  }
  return %0 : tensor<i8>
}"""
    (loop,) = find_loops(view_of(program_of_text(text).parse()))
    assert loop.roles == (Counter(120, 10, "int8"),)
    assert loop.trips == 1  # 130 is -126 in eight bits


def test_unused_or_odd_additions(loop_of_text):
    loop = loop_of_text(LESS_THAN_SIX, BUMP + "%s_next = stablehlo.subtract %s, %x : tensor<f32>")
    assert loop.trips == 6
    (sum_,) = (role for role in loop.roles if isinstance(role, Sum))
    assert [sign for sign, _ in sum_.terms] == [-1]


def test_swapped_carried_values_are_recurrent(loop_of_text):
    swap = BUMP + "%a_next = stablehlo.add %b, %x : tensor<f32>\n%b_next = stablehlo.add %a, %x : tensor<f32>"
    loop = loop_of_text(LESS_THAN_SIX, swap, "%k = %zero, %a = %x, %b = %x", "tensor<i32>, tensor<f32>, tensor<f32>")
    assert loop.indices(Recurrent) == [1, 2]


def test_a_token_is_recurrent_not_a_crash(program_of_text):
    text = """
func.func public @main(%x: tensor<f32>) -> tensor<i32> {
  %zero = stablehlo.constant dense<0> : tensor<i32>
  %one = stablehlo.constant dense<1> : tensor<i32>
  %t = stablehlo.create_token : !stablehlo.token
  %0:2 = stablehlo.while(%k = %zero, %s = %t) : tensor<i32>, !stablehlo.token cond {
    %go = stablehlo.compare LT, %k, %one : (tensor<i32>, tensor<i32>) -> tensor<i1>
    stablehlo.return %go : tensor<i1>
  } do {
    %next = stablehlo.add %k, %one : tensor<i32>
    %after = stablehlo.after_all %s : !stablehlo.token
    stablehlo.return %next, %after : tensor<i32>, !stablehlo.token
  }
  return %0#0 : tensor<i32>
}"""
    (loop,) = find_loops(view_of(program_of_text(text).parse()))
    assert loop.roles == (Counter(0, 1), Recurrent("it is not a tensor"))


def test_outer_loops_come_first(lowered):
    def function(x):
        inner = lambda total: lax.fori_loop(0, 2, lambda _, s: s + jnp.sin(x), total)  # noqa: E731  # one line is clearer
        return lax.fori_loop(0, 5, lambda _, s: jnp.tanh(inner(s)), x)

    loops = find_loops(view_of(lowered(function, X).parse()))
    assert [loop.trips for loop in loops] == [5, 2]


def test_a_function_called_twice_gives_two_loops_of_one_operation(lowered):
    twice = jax.jit(lambda x: lax.fori_loop(0, 3, lambda k, s: s + x * k, x))
    loops = find_loops(view_of(lowered(lambda x: twice(twice(x)), X).parse()))
    assert len(loops) == 2
    assert loops[0].node.operation == loops[1].node.operation


def test_every_loop_has_its_own_name():
    def function(x):
        first = jax.lax.fori_loop(0, 3, lambda k, s: s + jnp.sin(x) * k, x)
        return jax.lax.fori_loop(0, 4, lambda k, y: jnp.tanh(y) * 2, first)

    program = as_program(function, jnp.ones(3))
    plain = [loop.node.scope for loop in find_loops(view_of(program.parse()))]
    numbered = with_numbered_loops(program)
    scopes = [loop.node.scope for loop in find_loops(view_of(numbered.parse()))]
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
