"""The integers that are drawn, where a program has them as arguments or makes them of data.

A float has no magnitude in a field, so that no branch on it is rare; an integer keeps its own. What depends on one is
seen at drawn integers alone: small ones, those next to a constant or an extent of the programs, and all magnitudes of
the type. ``coverage`` says where a program depends on others.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.hlo import ops
from fusionlab.hlo.constants import folded_number
from fusionlab.hlo.view import FunctionView, Node, constant_array

Array = np.ndarray[Any, Any]

_MOST_PER_CONSTANT, _MOST_LANDMARKS = 64, 512
"""The most numbers of one constant array and in all, of which each landmark has a chance in some draw."""
_MOST_TRIPS, _MOST_MODULI = 128, 16
_BOOLEANS = ((0, 2), (0, 2), (1, 2), (0, 1), (0, 2), (0, 2))
KINDS = 6
SMALL, MIXED, LANDMARKS, LARGE, EITHER_SIGN, NEGATIVE = range(KINDS)
"""The kinds of draws, by the seed modulo 6: 0 to 7; any of the others, element by element; next to a landmark,
congruent to one, or an index; any magnitude from 8 on; -4 to 3; below zero, by turns small and of any magnitude."""


@dataclass(frozen=True)
class Integers:
    """``landmarks`` are the integral constants of the programs, and powers of two by which they may shift; ``extents``
    those of their arrays, in which an index lies; ``moduli`` those of remainders, of masks and of narrower types."""

    landmarks: tuple[int, ...] = ()
    extents: tuple[int, ...] = ()
    moduli: tuple[int, ...] = ()

    @staticmethod
    def of(functions: Iterable[FunctionView]) -> Integers:
        """Those of all constants and arrays of ``functions``."""
        functions = list(functions)
        nodes = [node for function in functions for node in function.walk()]
        values = [value for function in functions for value in function.arguments]
        values += [value for node in nodes for value in node.results]
        extents = {n for value in values if value.is_array for n in value.type.shape if n > 1}
        constants = {number for node in nodes if node.op is ops.CONSTANT for number in _integral(node)}
        landmarks = constants | extents | {2**c for c in constants if 2 < c < 64}
        first = sorted(landmarks, key=lambda c: (abs(c), c))[:_MOST_LANDMARKS]
        moduli = {modulus for node in nodes if (modulus := _modulus(node)) > 1}
        return Integers(tuple(first), tuple(sorted(extents)), tuple(sorted(moduli)[:_MOST_MODULI]))

    def drawn(self, words: Array, seed: int, dtype: np.dtype[Any]) -> Array:
        """An integer or boolean of type ``dtype`` for each of the uniformly random 64 bits ``words``, of the kind that
        the draw ``seed`` has."""
        return self._drawn(words.reshape(-1), seed, dtype).reshape(words.shape)  # products of scalars warn of a wrap

    def _drawn(self, words: Array, seed: int, dtype: np.dtype[Any]) -> Array:
        if dtype == np.bool_:
            low, high = _BOOLEANS[seed % len(_BOOLEANS)]
            return np.asarray(low + words % np.uint64(high - low)).astype(dtype)
        kind, again = seed % KINDS, seed // KINDS
        choice, words = words % np.uint64(4), words // np.uint64(4)
        if kind == SMALL:
            return _between(0, 8, words, dtype)
        if kind == EITHER_SIGN:
            return _between(-4, 4, words, dtype)
        if kind == LARGE:
            return _large(words, dtype)
        if kind == NEGATIVE:
            return _negative(_large(words, dtype)) if again % 2 else _between(-4, 0, words, dtype)
        near, index = self._near(words, dtype), self._index(words, dtype)
        if kind == LANDMARKS:
            return np.select([choice < 2, choice == 2], [near, self._congruent(words, dtype)], index)
        large, sign = _large(words, dtype), (words >> np.uint64(40)) % np.uint64(4) == 0
        large = np.where(sign, _negative(large), large)
        kinds = [_between(-4, 8, words, dtype), near, index, large]
        return np.select([choice == i for i in range(len(kinds))], kinds)

    def exponents(self, words: Array, seed: int, bits: int) -> Array:
        """Biased exponents of ``bits`` bits: of numbers about 1, of any, and next to a landmark, biased or not."""
        bias, top = 2 ** (bits - 1) - 1, 2**bits - 1
        choice, words = words % np.uint64(4), words // np.uint64(4)
        wide = np.dtype(np.int64)
        about_one = np.asarray(bias + _between(-8, 9, words, wide))
        landmark = self._near(words, wide) + np.where((words >> np.uint64(50)) % np.uint64(2) == 0, bias, 0)
        any_ = _between(1, top, words, wide)
        if seed % KINDS == SMALL:
            return about_one
        found = np.where(choice == 0, about_one, np.where(choice == 1, landmark, any_))
        return np.where((found < 0) | (found > top), any_, found)

    def trips(self, random: np.random.Generator) -> int:
        """A number of trips of a loop: next to a landmark, or of any magnitude up to ``_MOST_TRIPS``."""
        near = [c + d for c in self.landmarks for d in (-1, 0, 1) if 1 < c < _MOST_TRIPS]
        if near and random.integers(2):
            return int(random.choice(near))
        return int(2 ** random.uniform(0, math.log2(_MOST_TRIPS)))

    def _near(self, words: Array, dtype: np.dtype[Any]) -> Array:
        """c - 1, c or c + 1 for a landmark c."""
        every = _fitting(self.landmarks, dtype)
        return np.asarray(every[(words % np.uint64(len(every))).astype(np.intp)])

    def _congruent(self, words: Array, dtype: np.dtype[Any]) -> Array:
        """A number of any magnitude that is c - 1, c or c + 1 by one of the moduli, if there is any; else these."""
        near, most = self._near(words, dtype), _limits(dtype)[1]
        moduli = np.array([modulus for modulus in self.moduli if modulus <= most] or [1], np.uint64)
        if len(moduli) == 1 and moduli[0] == 1:
            return near
        modulus = moduli[((words >> np.uint64(32)) % np.uint64(len(moduli))).astype(np.intp)].astype(dtype)
        large = _large(words >> np.uint64(3), dtype)
        return np.asarray(large - large % modulus + near)

    def _index(self, words: Array, dtype: np.dtype[Any]) -> Array:
        """A number from 0 to below one of the extents."""
        extents = np.array([n for n in self.extents if n - 1 <= _limits(dtype)[1]] or [8], np.uint64)
        extent = extents[(words % np.uint64(len(extents))).astype(np.intp)]
        return np.asarray((words >> np.uint64(16)) % extent).astype(dtype)


@functools.lru_cache(64)
def _fitting(landmarks: Sequence[int], dtype: np.dtype[Any]) -> Array:
    """c - 1, c and c + 1 for all landmarks and for the type's least and largest number, as far as the type has them."""
    low, high = _limits(dtype)
    near = {c + d for c in (*landmarks, low, high) for d in (-1, 0, 1)}
    return np.array(sorted(c for c in near if low <= c <= high) or [0, 1], dtype)


def _limits(dtype: np.dtype[Any]) -> tuple[int, int]:
    limits = jnp.iinfo(dtype)
    return int(limits.min), int(limits.max)


def _between(low: int, high: int, words: Array, dtype: np.dtype[Any]) -> Array:
    """From ``low`` to below ``high``, as far as the type has these."""
    least, most = _limits(dtype)
    low, high = max(low, least), min(high, most + 1)
    low, high = (low, high) if low < high else (0, min(8, most + 1))
    return np.asarray((words % np.uint64(high - low)).astype(np.int64) + low).astype(dtype)


def _large(words: Array, dtype: np.dtype[Any]) -> Array:
    """Of any number of bits, from 8 on where the type has such; half of them of all bits."""
    _, most = _limits(dtype)
    width, any_width, words = most.bit_length(), words % np.uint64(2) == 0, words // np.uint64(2)
    fewer = np.where(any_width, words % np.uint64(max(width - 3, 1)), np.uint64(0))
    kept = np.uint64(width) - fewer  # the highest bit that is set
    found = (words >> np.uint64(64 - 53)) * np.uint64(0x9E3779B97F4A7C15)  # the low bits have chosen the width
    found = (found >> (np.uint64(64) - kept)) | (np.uint64(1) << (kept - np.uint64(1)))
    return np.asarray(found).astype(dtype)


def _negative(x: Array) -> Array:
    """-x, where the type has a sign."""
    return x if _limits(x.dtype)[0] == 0 else -x


def _modulus(node: Node) -> int:
    """That by which ``node`` reduces integers: a divisor, a mask of low bits and one, a narrower type's; else 0."""
    if node.op is ops.CONVERT:
        source, target = (value.type.dtype for value in (*node.operands, *node.results))
        return 2 ** _bits(target) if {source, target} <= {*ops.INTEGERS} and _bits(target) < _bits(source) else 0
    if node.op not in (ops.REMAINDER, ops.AND) or node.results[0].type.dtype not in ops.INTEGERS:
        return 0
    numbers = [int(abs(number)) for number in map(folded_number, node.operands) if number is not None]
    return numbers[-1] + (node.op is ops.AND) if numbers else 0


def _bits(dtype: str) -> int:
    return 8 * ops.NUMPY[dtype].itemsize


def _integral(node: Node) -> Iterator[int]:
    """The integral numbers of a constant: distinct ones of a small array, of a larger one its extremes."""
    type_ = node.results[0].type
    if type_.dtype not in (*ops.INTEGERS, *ops.FLOATS) or 0 in type_.shape:
        return
    array = np.asarray(constant_array(node))
    small = math.prod(type_.shape) <= _MOST_PER_CONSTANT
    distinct = np.unique(array) if small else np.array([array.min(), array.max()])
    for number in distinct.tolist():
        if isinstance(number, int) or (math.isfinite(number) and float(number).is_integer() and abs(number) < 2**63):
            yield int(number)
