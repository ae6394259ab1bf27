"""Integers that are drawn: what differs at some is not identical, and a verdict says where it rests on them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

from fusionlab.equivalence.exact.coverage import DataIntegers, Kind
from fusionlab.equivalence.exact.identity import compare_exactly
from fusionlab.equivalence.exact.integers import EITHER_SIGN, LANDMARKS, LARGE, MIXED, NEGATIVE, SMALL, Integers
from fusionlab.hlo import ops
from fusionlab.hlo.view import view_of

F = jax.ShapeDtypeStruct((8,), jnp.float32)
I32, I8, U32 = (jax.ShapeDtypeStruct((8,), dtype) for dtype in (jnp.int32, jnp.int8, jnp.uint32))
TABLE, KEY, N = (
    jax.ShapeDtypeStruct((2048,), jnp.float32),
    jax.ShapeDtypeStruct((2,), jnp.uint32),
    jax.ShapeDtypeStruct((), jnp.int32),
)


def cell(x):
    return x.astype(jnp.int32)


def exponent(x):
    return (lax.bitcast_convert_type(x, jnp.int32) >> 23) & 255


def uniform(key):
    return jax.random.uniform(jax.random.wrap_key_data(key), (3,))


def trips(x):
    """Of a loop that multiplies until it reaches another number."""
    return lax.while_loop(lambda s: s[1] < s[2], lambda s: (s[0] + 1, s[1] * 1.1 + 0.1, s[2]), (0, x[0], x[1]))[0]


def trips_of_all(x):
    """Of a loop that goes on while any element is small."""
    return lax.while_loop(lambda s: jnp.any(s[1] < 2.0), lambda s: (s[0] + 1, s[1] * 1.1), (0, x))[0]


UNEQUAL = {
    "clip": (lambda x: x * jnp.clip(cell(x) - 1600, 0, 1), lambda x: x * 0, F),
    "remainder": (lambda x: lax.rem(cell(x), jnp.int32(1000)), cell, F),
    "unsigned shift": (lambda x: x * (x.astype(jnp.uint32) >> 10), lambda x: x * 0, F),
    "shift of an argument": (lambda n: n >> 16, lambda n: n * 0, U32),
    "high bits": (lambda n: n & 0x7FFFFFFF, lambda n: n, U32),
    "quotient": (lambda n: n // 100_000, lambda n: n * 0, I32),
    "smallest of two": (lambda n: jnp.minimum(n, 1_000_000), lambda n: n, I32),
    "one integer": (lambda x: jnp.where(cell(x) == 12_345, 1.0, x), lambda x: x, F),
    "one integral float": (lambda x: jnp.where(cell(x).astype(x.dtype) == 777.0, 1.0, x), lambda x: x, F),
    "all of eight": (lambda n: jnp.all(n > 100).astype(n.dtype), lambda n: n[0] * 0, I32),
    "all of eight, negative": (lambda n: jnp.all(n < -100).astype(n.dtype), lambda n: n[0] * 0, I32),
    "index modulo": (
        lambda x, t: t[cell(x) & 2047], lambda x, t: t[jnp.where(cell(x) < 0, cell(x) + 2048, cell(x))], F, TABLE
    ),
    "a shorter table": (
        lambda x, t: jnp.take(t, cell(x), mode="clip"), lambda x, t: jnp.take(t[:1024], cell(x), mode="clip"), F, TABLE
    ),
    "overflow": (lambda n: (n * n).astype(jnp.int64), lambda n: n.astype(jnp.int64) ** 2, I32),
    "overflow of eight bits": (lambda n: (n + n).astype(jnp.int32), lambda n: 2 * n.astype(jnp.int32), I8),
    "a constant in sixteen bits": (lambda n: n.astype(jnp.int16) == 300, lambda n: n == 300, I32),
    "a constant modulo another": (lambda n: lax.rem(n, jnp.int32(1000)) == 77, lambda n: n == 77, I32),
    "a masked constant": (lambda n: n & 4095 == 1234, lambda n: n == 1234, U32),
    "narrowed": (lambda n: n.astype(jnp.int16).astype(jnp.int32), lambda n: n, I32),
    "masked key": (uniform, lambda k: uniform(k & 1023), KEY),
    "exponent": (lambda x: x + exponent(x).astype(x.dtype), lambda x: x, F),
    "exponent from five on": (lambda x: x * (1 - jnp.clip(jnp.frexp(x)[1] - 4, 0, 1)), lambda x: x, F),
    "large exponents": (lambda x: x * jnp.minimum(exponent(x) // 200, 1).astype(x.dtype), lambda x: x * 0, F),
    "trips": (lambda x: x * jnp.maximum(trips(x) - 30, 0), lambda x: x * 0.0, F),
    "trips of all": (lambda x: x * jnp.maximum(trips_of_all(x) - 20, 0), lambda x: x * 0.0, F),
    "integral part": (lambda x: jnp.where(jnp.floor(x) == 7.0, 7.0, x), lambda x: x, F),
    "integral part by a remainder": (lambda x: jnp.where(x - jnp.mod(x, 1.0) == 7.0, 0.0, x), lambda x: x, F),
    "leading zeros": (lambda n: lax.clz(n), lambda n: jnp.maximum(lax.clz(n), 20), U32),
    "count of bits": (lambda n: lax.population_count(n), lambda n: jnp.minimum(lax.population_count(n), 9), U32),
}  # fmt: skip


@pytest.mark.parametrize("name", UNEQUAL)
def test_a_difference_at_some_integers_is_seen(name, lowered):
    first, second, *arguments = UNEQUAL[name]
    with jax.enable_x64(True):
        programs = [lowered(function, *arguments) for function in (first, second)]
    for pair in (programs, programs[::-1]):
        assert compare_exactly(*pair).result == "not-identical"


def masked(x):
    """The mask of all predicates as one integer."""
    return lax.reduce((x > 0).astype(jnp.int32) << jnp.arange(8), np.int32(0), lax.bitwise_or, (0,))


def counted(x):
    """How many are positive, by a reduction of two arrays."""
    pair = (x, (x > 0).astype(jnp.int32))
    return lax.reduce(pair, (np.float32(0), np.int32(0)), lambda a, b: (a[0] + b[0], a[1] + b[1]), (0,))[1]


LIMITED = {
    "a mask": lambda x: jnp.where(masked(x) == 170, 0.0, x),
    "a count beside a sum": lambda x: jnp.where(counted(x) == 5, 0.0, x),
    "a code of predicates": lambda x: jnp.where(jnp.where(x > 0.5, 2.0 ** jnp.arange(8), 0.0).sum() == 170, 0.0, x),
    "rows of an elimination": lambda x: jnp.where(lax.linalg.lu(jnp.outer(x, x) + jnp.diag(x))[1][0] == 5, 0.0, x),
    "branches of an integral part": lambda x: lax.switch(cell(x[0]), [lambda y, k=k: y + k for k in range(20)], x),
    "an integral part of a float": lambda x: jnp.where(jnp.floor(x) * 3.0 == 21.0, 0.0, x),
    "a returned clamp": lambda x: lax.clamp(-5, cell(x), 2_000_000_000),
    "cells": lambda x: x * jnp.clip(cell(x) - 1600, 0, 1),
    "bits": lambda x: x + exponent(x).astype(x.dtype),
    "a table": lambda x: jnp.arange(4096.0)[cell(x)],
    "a count": lambda x: x * ((x > 0.5).sum() // 3),
    "an order": lambda x: x * jnp.prod(jnp.maximum(1 - jnp.abs(jnp.argsort(x) - jnp.arange(8)), 0)),
    "trips": lambda x: x * trips(x),
    "narrower": lambda x: cell(x).astype(jnp.int8),
}
WHOLE = {
    "a mask as floats": lambda x: jnp.where((x > 0).astype(x.dtype) != 0, jnp.sin(x), x),
    "one of two floats": lambda x: jnp.where(jnp.where(x > 0, 0.5, 1.5) == 0.5, jnp.sin(x), x),
    "no integers": jnp.tanh,
    "sorted": lambda x: x[jnp.argsort(x)],
    "largest": lambda x: x[jnp.argmax(x)],
    "the largest three": lambda x: lax.top_k(x, 3)[0],
    "exchanged rows": lambda x: jnp.linalg.slogdet(jnp.outer(x, x) + jnp.diag(x)),
    "branches": lambda x: lax.switch((x[0] > 0).astype(jnp.int32) + 2, [jnp.sin, jnp.cos, jnp.tan, jnp.exp], x),
    "a count of terms": lambda x: x / (x > 0.5).sum(),
    "counters": lambda x: lax.fori_loop(0, 5, lambda k, s: s + x[k] * k, 0.0),
    "an integral part": lambda x: x.astype(jnp.int32).astype(x.dtype),
}


@pytest.mark.parametrize("name", LIMITED)
def test_a_verdict_that_rests_on_drawn_integers_says_so(name, lowered):
    program = lowered(LIMITED[name], F)
    found = compare_exactly(program, program)
    assert (found.result, found.error_probability) == ("identical", 1.0)
    assert found.line.startswith("identical, except for integers beyond those drawn (")
    assert "test_integers.py:" in found.except_for
    assert "chance of error" not in found.line


@pytest.mark.parametrize("name", WHOLE)
def test_a_verdict_on_what_is_on_the_white_list_has_its_chance_of_error(name, lowered):
    program = lowered(WHOLE[name], F)
    found = compare_exactly(program, program)
    assert (found.result, found.except_for) == ("identical", "")
    assert found.error_probability < 1e-30


def test_a_loop_of_too_many_trips_is_left_out_of_some_draws(lowered):
    program = lowered(lambda x, n: lax.fori_loop(0, n, lambda k, s: jnp.sin(s), x), F, N)
    found = compare_exactly(program, program)
    assert "loops of more than 1024 trips" in found.except_for


MAPPED = """func.func public @main(%x: tensor<8xf32>) -> tensor<8xf32> {
  %0 = "stablehlo.map"(%x) ({
  ^bb0(%y: tensor<f32>):
    %n = stablehlo.convert %y : (tensor<f32>) -> tensor<i32>
    %m = stablehlo.multiply %n, %n : tensor<i32>
    %c = stablehlo.constant dense<1522756> : tensor<i32>
    %p = stablehlo.compare EQ, %m, %c : (tensor<i32>, tensor<i32>) -> tensor<i1>
    %z = stablehlo.constant dense<0.0> : tensor<f32>
    %r = stablehlo.select %p, %z, %y : tensor<i1>, tensor<f32>
    stablehlo.return %r : tensor<f32>
  }) {dimensions = array<i64: 0>} : (tensor<8xf32>) -> tensor<8xf32>
  return %0 : tensor<8xf32>
}"""


def test_integers_inside_a_region_are_seen(program_of_text):
    program = program_of_text(MAPPED)
    assert "(map" in compare_exactly(program, program).except_for


def test_long_chains_of_moves_are_followed(program_of_text):
    moves = "".join(f"%{k + 1} = stablehlo.reverse %{k}, dims = [0] : tensor<8xi32>\n" for k in range(1, 1500))
    program = program_of_text(f"""func.func public @main(%n: tensor<8xi32>) -> tensor<8xi32> {{
      %low = stablehlo.constant dense<0> : tensor<i32>
      %high = stablehlo.constant dense<7> : tensor<i32>
      %1 = stablehlo.clamp %low, %n, %high : (tensor<i32>, tensor<8xi32>, tensor<i32>) -> tensor<8xi32>
      {moves} return %1500 : tensor<8xi32>
    }}""")
    assert "(clamp" in compare_exactly(program, program).except_for


DRAWN = Integers.of([])
WORDS = np.random.default_rng(0).integers(2**64, size=4000, dtype=np.uint64)


@pytest.mark.parametrize("name", ["bool", "int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_are_of_their_type_and_of_all_sizes(name):
    dtype = np.dtype(name)
    for seed in range(12):
        found = Integers((1600, -7, 2**40), (3, 4096)).drawn(WORDS, seed, dtype)
        assert (found.dtype, found.shape) == (dtype, WORDS.shape)
    if dtype == np.bool_:
        return
    limits, large = np.iinfo(dtype), DRAWN.drawn(WORDS, LARGE, dtype)
    assert large.min() >= 8
    bits = np.bitwise_count(np.bitwise_or.reduce(large))
    assert bits == np.bitwise_count(limits.max)
    assert {int(n).bit_length() for n in large} == set(range(4, int(limits.max).bit_length() + 1))
    assert DRAWN.drawn(WORDS, SMALL, dtype).max() == 7
    if limits.min < 0:
        assert set(DRAWN.drawn(WORDS, EITHER_SIGN, dtype)) == set(range(-4, 4))
        assert DRAWN.drawn(WORDS, NEGATIVE, dtype).max() == -1
        assert DRAWN.drawn(WORDS, NEGATIVE + 6, dtype).min() < limits.min // 2
        assert DRAWN.drawn(WORDS, MIXED, dtype).min() < 0


def test_integers_next_to_constants_and_extents_are_drawn(lowered):
    program = lowered(lambda x, t: t[jnp.clip(cell(x) - 1600, 0, 9)] * (cell(x) >> 5), F, TABLE)
    integers = Integers.of([view_of(program.parse())])
    assert {1600, 9, 2**5, 2048, 8} <= set(integers.landmarks)
    assert set(integers.extents) >= {8, 2048}
    found = set(integers.drawn(WORDS, LANDMARKS, np.dtype(np.int32)).tolist())
    assert {1599, 1600, 1601, 2047, 2048, 2049, 31, 32, 33} <= found


def test_integers_that_a_remainder_takes_for_a_constant_are_drawn(lowered):
    program = lowered(lambda n: (n % 5000 == 77, n & 4095, n.astype(jnp.int16)), I32)
    integers = Integers.of([view_of(program.parse())])
    assert integers.moduli == (4096, 5000, 2**16)
    found = [n for n in integers.drawn(WORDS, LANDMARKS, np.dtype(np.int32)).tolist() if n > 2**20]
    for modulus in integers.moduli:
        assert {76, 77, 78} <= {n % modulus for n in found}


def test_kinds_of_integers_in_a_loop(lowered):
    """A counter is none of data; what a trip makes of data is, and the number of trips of a loop that data ends."""
    program = lowered(lambda x: (lax.fori_loop(0, 3, lambda k, s: s + cell(x)[k], 0), trips(x)), F)
    view = view_of(program.parse())
    integers = DataIntegers.of(view)
    first, second = (node for node in view.nodes if node.op is ops.WHILE)
    kinds = [[integers.kinds.get(value) for value in loop.regions[1].arguments] for loop in (first, second)]
    assert None in kinds[0]
    assert Kind.NUMBER in kinds[0]
    assert None in kinds[1]
    assert all(integers.kind(value) is Kind.NUMBER for value in view.returns)
