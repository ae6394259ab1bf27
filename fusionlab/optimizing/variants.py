"""Variants of the arguments of a call: other values, at which differences show that the given ones hide.

    lam = 0, w = 0.5, mask = [1, 0]    -->    lam = 0.3, w = -0.7, mask = [0, 1]

Kept as given are arguments whose other values could make a loop endless or read elsewhere: arguments that decide how
long a loop runs, integers and booleans among indices, and the bits of pseudo-random keys.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import jax.numpy as jnp
import numpy as np

from fusionlab.hlo import ops
from fusionlab.hlo.dependence import sources_of
from fusionlab.hlo.view import FunctionView, Node, Value

VARIANTS = 2
_SPREADS = (0.5, 0.1, 0.02)
"""Standard deviations of the logarithm of a float's factor; the next is taken if the original is not finite at the
previous one."""
_FIRST_INDEX = {
    ops.GATHER: 1,
    ops.DYNAMIC_GATHER: 1,
    ops.DYNAMIC_SLICE: 1,
    ops.DYNAMIC_UPDATE_SLICE: 2,
    ops.CUSTOM_CALL: 0,
    ops.RNG_BIT_GENERATOR: 0,
}
"""The first operand that may be an index or a generator's state, as may those after it."""
_OF_BITS = (
    ops.AND, ops.NOT, ops.OR, ops.SHIFT_LEFT, ops.SHIFT_RIGHT_ARITHMETIC, ops.SHIFT_RIGHT_LOGICAL, ops.XOR,
)  # fmt: skip


@dataclass(frozen=True)
class Held:
    """Positions of arguments that keep their values: of any type (``loops``), and of integers and booleans."""

    loops: frozenset[int]
    integers: frozenset[int]


def held_arguments(flat: FunctionView) -> Held:
    """The arguments of ``flat`` that decide how long loops run, and those that reach indices or bits."""
    sources = sources_of(flat, flat.arguments)
    conditions = (value for node in flat.walk() if node.op is ops.WHILE for value in node.regions[0].returns)
    loops = _positions(sources, conditions)
    integers = loops | _positions(sources, (value for node in flat.walk() for value in _indices(node)))
    return Held(loops, integers)


def _indices(node: Node) -> tuple[Value, ...]:
    """The operands of ``node`` that are indices, or integers whose bits count."""
    if node.op is ops.SCATTER:
        return (node.operands[len(node.operands) // 2],)
    if node.op in _OF_BITS:
        return tuple(value for value in node.operands if not value.type_text.endswith("i1"))
    return node.operands[_FIRST_INDEX.get(node.op, len(node.operands)) :]


def _positions(sources: Mapping[Value, int], values: Iterable[Value]) -> frozenset[int]:
    """The positions of the arguments that ``values`` are computed from; ``sources`` has a bit for each."""
    united = functools.reduce(operator.or_, (sources.get(value, 0) for value in values), 0)
    return frozenset(position for position in range(united.bit_length()) if united >> position & 1)


def can_vary(arrays: Sequence[np.ndarray], held: Held) -> tuple[list[bool], bool]:
    """A flag per array, True if it has variants, and True if all floats have."""
    floats = [jnp.issubdtype(array.dtype, np.inexact) for array in arrays]
    signed = [array.dtype == np.bool_ or jnp.issubdtype(array.dtype, np.signedinteger) for array in arrays]
    vary = [
        position not in held.loops if floats[position] else signed[position] and position not in held.integers
        for position in range(len(arrays))
    ]
    return vary, all(may for may, is_float in zip(vary, floats, strict=True) if is_float)


def attempts(arrays: Sequence[np.ndarray], vary: Sequence[bool], number: int) -> Iterator[tuple[np.ndarray, ...]]:
    """Variant ``number`` of ``arrays``, from the farthest to the nearest.

    Floats are multiplied by random numbers, positive in variant 0 and of either sign in variant 1; a zero becomes one
    of their usual size. Integers move by 1 to 3, upwards in variant 0 and downwards in variant 1; booleans are all
    negated in variant 0, and half of them in variant 1. Where that is impossible, signs and integers stay.
    """
    discrete = any(may and not jnp.issubdtype(array.dtype, np.inexact) for may, array in zip(vary, arrays, strict=True))
    for spread in _SPREADS:
        farthest = spread == _SPREADS[0]
        for flipped in (True, False) if farthest and number else (False,):
            for integers in (True, False) if farthest and discrete else (False,):
                random = np.random.default_rng(number)
                yield tuple(
                    _varied(array, random, spread, flipped, integers, number) if may else array
                    for may, array in zip(vary, arrays, strict=True)
                )


def _varied(
    array: np.ndarray, random: np.random.Generator, spread: float, flipped: bool, integers: bool, number: int
) -> np.ndarray:
    if not jnp.issubdtype(array.dtype, np.inexact):
        return _other_integers(array, random, number) if integers else array
    wide = array.astype(np.complex128 if np.iscomplexobj(array) else np.float64)
    sizes = np.abs(wide[np.isfinite(wide) & (wide != 0)])
    usual = float(np.median(sizes)) if sizes.size else 1.0
    drawn = np.where(wide == 0, spread * usual * random.standard_normal(wide.shape), wide)
    signs = random.choice([-1.0, 1.0], wide.shape) if flipped else 1.0
    if flipped and wide.ndim == 0:
        signs = -1.0
    return np.asarray(signs * drawn * np.exp(spread * random.standard_normal(wide.shape))).astype(array.dtype)


def _other_integers(array: np.ndarray, random: np.random.Generator, number: int) -> np.ndarray:
    if array.dtype == np.bool_:
        return np.asarray(array ^ (random.integers(0, 2, array.shape) == 1 if number else True))
    steps = random.integers(1, 4, array.shape)
    return np.asarray(array + (-steps if number else steps)).astype(array.dtype)
