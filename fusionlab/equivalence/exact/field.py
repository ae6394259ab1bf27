"""The arithmetic of a prime field, with random functions instead of the transcendental ones and a random order.

Residues are float64 integers between -(p-1)/2 and (p-1)/2. The primes lie below 2**21, so that products and
contractions of up to 8,192 terms are exact in float64, and any power of a residue is in a table.

Every array has an axis for the draws first: draws of one prime are evaluated together, each with its own inputs, its
own random functions and its own order. Constants, equal in all draws, have extent 1 there.
"""

from __future__ import annotations

import copy
import functools
import math
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from fusionlab.equivalence.exact.integers import Integers
from fusionlab.equivalence.exact.machine import MACHINE

Array = np.ndarray[Any, Any]
SMALLEST = Integers()
"""Those of a program without constants."""

BITS = 21
_LARGEST = 2 ** (BITS - 1)
"""No residue has a larger magnitude."""
MOST_TERMS = 2 ** (53 - 2 * (BITS - 1))
"""The number of products of two residues whose sum is exact in float64."""
_BLOCK = 2**14
"""The number of residues that are computed and reduced together: a few arrays of so many stay in the cache."""
_ONCE = 2**48
"""The magnitude up to which the rounded quotient by p is exact: it is below 2**28 there, its error below 2**-24, and no
multiple of 1 / p is nearer than 2**-22 to where rounding changes."""

RING: Mapping[str, Callable[..., Any]] = {
    "add": np.add, "multiply": np.multiply, "negate": np.negative, "subtract": np.subtract,
}  # fmt: skip
Code = tuple[tuple[Any, ...], ...]
"""Operations of ``RING`` in order, each its name and the indices of what it reads, among the operands of all, then the
results so far."""


def _is_prime(n: int) -> bool:
    return n > 1 and all(n % k for k in range(2, int(n**0.5) + 1))


@functools.cache
def primes(count: int) -> tuple[int, ...]:
    """The largest ``count`` safe primes below 2**21 that are 7 mod 8 and of which 2, 3, 5 and 7 are squares.

    p = 3 mod 4 makes x > y <=> x - y is a square an antisymmetric relation; (p - 1) / 2 prime makes every power with a
    rational exponent a function of the squares.
    """
    found: list[int] = []
    n = 2**BITS - 1
    while len(found) < count:
        half = (n - 1) // 2
        if _is_prime(half) and _is_prime(n) and all(pow(q, half, n) == 1 for q in (2, 3, 5, 7)):
            found.append(n)
        n -= 8
    return tuple(found)


_TABLE_PAYS_FROM = 1 / 64
"""The elements of an array, in parts of p, from which its powers are looked up in a table of those of all residues."""


@functools.cache
def _powers(p: int) -> Array:
    """g**0, ..., g**(p - 2) for a generator g modulo the safe prime p."""
    half = (p - 1) // 2
    generator = next(g for g in range(2, p) if pow(g, half, p) == p - 1 and pow(g, 2, p) != 1)
    powers, filled = np.ones(p - 1, np.int64), 1
    while filled < p - 1:  # g**(filled + i) = g**filled g**i
        step = min(filled, p - 1 - filled)
        powers[filled : filled + step] = powers[:step] * pow(generator, filled, p) % p
        filled += step
    return powers.astype(np.int32)  # half of the memory to go through at random


@functools.cache
def _signed_powers(p: int) -> Array:
    """The same as residues."""
    powers = _powers(p)
    return np.where(powers > (p - 1) // 2, powers - p, powers).astype(np.float32)


@functools.cache
def _logarithms(p: int) -> Array:
    """[p]: at g**i the number i, for the same generator; 0 at 0."""
    powers, logarithms = _powers(p), np.zeros(p, np.int32)
    logarithms[powers] = np.arange(p - 1)
    return logarithms


def _raised(p: int, exponent: float, x: Array) -> Array:
    """x**exponent of residues x, as integers; 0 of 0.

    No real power of a negative number exists: (-s)**c of a square s is (r s)**c for a random square r. So x**-c is
    1 / x**c everywhere; that x**c / x is x**(c - 1) holds of squares alone. At c = 1/2 no function has both: sqrt(x)**2
    would be x, which is no square.
    """
    at = _logarithms(p).take(x, mode="wrap").astype(np.int64)  # a negative residue indexes from the end: p + x
    half = (p - 1) // 2
    numerator, denominator = exponent.as_integer_ratio()
    if denominator == 1:
        at *= numerator % (p - 1)
        at %= p - 1
    else:
        others = at % 2 == 1  # -1 is no square, g**half
        at = np.where(others, at + half + 2 * np.random.default_rng([p, 1]).integers(1, half), at) // 2
        at = at % half * (numerator * pow(denominator, -1, half) % half) % half * 2
    return np.where(x == 0, np.float32(0), _signed_powers(p).take(at))


@functools.lru_cache(32)
def _power_table(p: int, exponent: float) -> Array:
    """[p]: x**exponent at x."""
    return _raised(p, exponent, np.arange(p))


@functools.cache
def _characters(p: int) -> Array:
    """The quadratic characters [p]: x**((p - 1) / 2), 1 for squares and -1 for others."""
    found = (1 - 2 * (_logarithms(p) & 1)).astype(np.int8)
    found[0] = 0
    return found


@functools.cache
def _powers_of_two(p: int) -> Array:
    """2**(e - 53) at e, for the exponents of float64, negative ones from the end."""
    exponents = [*range(1100), *range(-1100, 0)]
    return np.array([pow(2, e - 53, p) for e in exponents], np.float64)


@functools.lru_cache(2**12)
def _residue_of_float(p: int, x: float) -> int:
    """The residue of a finite number, from 0 to p - 1."""
    numerator, denominator = x.as_integer_ratio()
    return numerator * pow(denominator, -1, p) % p


@functools.lru_cache(2**12)
def _compiled(code: Code, operands: int) -> tuple[list[tuple[Callable[..., Any] | None, tuple[int, ...], int]], int]:
    """``code`` as steps ``(function, registers read, register written)``, and the number of buffers they need.

    Registers are the operands, the buffers, and the result last (-1). A step without a function reduces its register:
    where a number would not be exact otherwise, and at the end.
    """
    last = {value: at for at, (_, *read) in enumerate(code) for value in read}
    most = dict.fromkeys(range(operands), _LARGEST)
    where = {value: value for value in most}
    steps: list[tuple[Callable[..., Any] | None, tuple[int, ...], int]] = []
    free: list[int] = []
    buffers = 0
    for at, (name, *read) in enumerate(code):
        while (bound := _bound(name, *(most[value] for value in read))) > _ONCE:
            largest = max(read, key=lambda value: most[value])
            steps.append((None, (), where[largest]))
            most[largest] = _LARGEST
        free += {where[v] for v in read if last[v] == at and v >= operands}
        result = operands + at
        if at == len(code) - 1:
            where[result] = -1
        elif free:
            where[result] = free.pop()
        else:
            where[result], buffers = operands + buffers, buffers + 1
        steps.append((RING[name], tuple(where[value] for value in read), where[result]))
        most[result] = bound
    if bound > _LARGEST:
        steps.append((None, (), -1))
    return steps, buffers


def _bound(name: str, x: int, y: int = 0) -> int:
    """The largest magnitude of a result, of either part of a complex one."""
    return 2 * x * y if name == "multiply" else x + y


def _blocks(shape: Sequence[int]) -> Iterator[tuple[int | slice, ...]]:
    """Indices of contiguous blocks of at most ``_BLOCK`` elements, in order."""
    axis, inner = len(shape), 1
    while axis and inner * shape[axis - 1] <= _BLOCK:
        axis -= 1
        inner *= shape[axis]
    if not axis or not inner:
        yield ()
        return
    step = max(_BLOCK // inner, 1)
    for outer in np.ndindex(*shape[: axis - 1]):
        for at in range(0, shape[axis - 1], step):
            yield *outer, slice(at, at + step)


@functools.cache
def _signs_of_fractions(p: int) -> Array:
    """The signs [p] of the fractions of small integers that the residues are, 0 of others."""
    found, numerators = np.zeros(p, np.int8), np.arange(-_MOST_NUMERATOR, _MOST_NUMERATOR + 1)
    for denominator in (1, 2, 4, 8, 16):
        found[numerators * pow(denominator, -1, p) % p] = np.sign(numerators)
    return found


_MOST_NUMERATOR = 1024
"""Of a fraction that a constant is known by: few of all residues are one."""


@functools.lru_cache(256)
def _keys(p: int, seeds: tuple[int, ...], name: str) -> Array:
    """Random 64 bits of the function ``name``, one per draw."""
    keys = (
        np.random.default_rng([p, seed, zlib.crc32(name.encode())]).integers(2**64, dtype=np.uint64) for seed in seeds
    )
    return np.array(list(keys))


class PrimeField:
    """Residues modulo ``p`` for the draws ``seeds``, one seed each; integers made of residues are ``integers``."""

    def __init__(self, p: int, seeds: Sequence[int], integers: Integers = SMALLEST) -> None:
        self.p, self.seeds, self.half, self.integers = p, tuple(seeds), (p - 1) // 2, integers
        self._reciprocal = 1.0 / p
        random = np.random.default_rng([p, 0])
        self.infinity, self.nan = (float(v) for v in random.integers(self.half // 2, self.half, 2))
        self._order = _characters(p)[None]
        self._is_steered = False
        self._senses = np.array([-1.0 if seed % 4 > 1 else 1.0 for seed in self.seeds])

    # Ring operations: exact.

    def _reduced(self, x: Array, most: int = _ONCE) -> Array:
        """The residues of the integers ``x`` of magnitude at most ``most``, up to 2**53, of both parts of complex ones,
        in the memory of ``x``, which nothing else may read.

        Block by block, which stays in the cache: a temporary of the size of ``x`` costs several times the arithmetic.
        """
        x = np.asarray(x)
        numbers = x.ravel("K")  # a view, as results of operations are contiguous in some order of their axes
        assert np.may_share_memory(numbers, x) or not x.size
        if x.dtype.kind == "c":
            numbers = numbers.view(np.float64)
        quotients = np.empty(min(_BLOCK, numbers.size))
        for at in range(0, numbers.size, _BLOCK):
            block = numbers[at : at + _BLOCK]
            for _ in range(1 if most <= _ONCE else 2):  # a larger quotient may be rounded to a neighbour at first
                self._reduce(block, quotients[: block.size])
        return x

    def _reduce(self, block: Array, quotient: Array) -> None:
        np.multiply(block, self._reciprocal, out=quotient)
        np.rint(quotient, out=quotient)
        quotient *= self.p
        block -= quotient

    def add(self, x: Array, y: Array) -> Array:
        return self._reduced(x + y)

    def subtract(self, x: Array, y: Array) -> Array:
        return self._reduced(x - y)

    def multiply(self, x: Array, y: Array) -> Array:
        return self._reduced(x * y)

    def negate(self, x: Array) -> Array:
        return -x

    def divide(self, x: Array, y: Array) -> Array:
        return self.multiply(x, self.inverse(y))

    def sum(self, x: Array, axes: tuple[int, ...]) -> Array:
        terms = math.prod(x.shape[axis] for axis in axes)
        return self._reduced(x.sum(axes), terms * _LARGEST) if axes else x

    def matmul(self, x: Array, y: Array) -> Array:
        """[..., m, k] @ [..., k, n]."""
        x, y = np.ascontiguousarray(x), np.ascontiguousarray(y)  # else NumPy contracts without BLAS
        terms, most = x.shape[-1], MOST_TERMS // (2 if np.iscomplexobj(x) or np.iscomplexobj(y) else 1)
        bound = min(terms, most) * (2**53 // most)
        parts = (slice(at, at + most) for at in range(0, max(terms, 1), most))
        return functools.reduce(self.add, (self._reduced(x[..., part] @ y[..., part, :], bound) for part in parts))

    def polynomial(self, code: Code, operands: Sequence[Array]) -> Array:
        """The last result of ``code``, elementwise: what its operations are one by one, without arrays between them."""
        shape = np.broadcast_shapes(*(x.shape for x in operands))
        kind = np.result_type(*operands, np.float64)
        arrays = [x if x.shape == shape else np.broadcast_to(x, shape) for x in operands]
        # In the order of axes that an operand has in memory, so that blocks of it are contiguous.
        layout = next((x.strides for x in operands if x.shape == shape and 0 not in x.strides), ())
        order = sorted(range(len(shape)), key=lambda axis: -layout[axis]) if layout else [*range(len(shape))]
        arrays = [x.transpose(order) for x in arrays]
        found = np.empty([shape[axis] for axis in order], kind)
        steps, buffers = _compiled(code, len(operands))
        memory = np.empty((buffers, min(_BLOCK, found.size)), kind)
        quotients = np.empty(memory.shape[-1] * (2 if kind.kind == "c" else 1))
        for at in _blocks(found.shape):
            block = found[(*at, ...)]
            scratch = [row[: block.size].reshape(block.shape) for row in memory]
            registers = [*(x[(*at, ...)] for x in arrays), *scratch, block]
            for function, read, to in steps:
                if function is not None:
                    function(*[registers[one] for one in read], out=registers[to])
                else:
                    numbers = registers[to].reshape(-1).view(np.float64)
                    self._reduce(numbers, quotients[: numbers.size])
        return found.transpose(np.argsort(order)) if layout else found

    def integer_power(self, x: Array, exponent: int) -> Array:
        if exponent < 0:
            return self.inverse(self.integer_power(x, -exponent))
        if exponent == 0:
            return np.ones_like(x)
        root = self.integer_power(x, exponent // 2)
        square = self.multiply(root, root)
        return self.multiply(square, x) if exponent % 2 else square

    def inverse(self, x: Array) -> Array:
        """1 / x, and 0 for 0. Complex residues are a field, because -1 is no square."""
        if np.iscomplexobj(x):
            norm = self.add(self.multiply(x.real, x.real), self.multiply(x.imag, x.imag))
            return self.multiply(x.conj(), self.inverse(norm))
        return self._table_power(x, -1)

    # Constants.

    def embedded(self, x: Array) -> Array:
        """The residues [1, ...] of floating-point numbers m 2**e, exactly; infinities and NaN have residues."""
        if np.iscomplexobj(x):
            return np.asarray(self.embedded(x.real) + 1j * self.embedded(x.imag))
        x, shape = np.asarray(x, np.float64), x.shape
        x = x[tuple(slice(None if stride else 1) for stride in x.strides)]  # of a broadcast array, its operand
        if x.size and (x == x.flat[0]).all():
            return np.broadcast_to(self._embedded_number(float(x.flat[0])), (1, *shape))
        finite = np.isfinite(x)
        mantissas, exponents = np.frexp(np.where(finite, x, 0.0))
        residues = self.multiply(self.of_integers(np.ldexp(mantissas, 53)), _powers_of_two(self.p)[exponents])
        found = np.where(finite, residues, np.where(np.isnan(x), self.nan, np.sign(x) * self.infinity))
        return np.broadcast_to(found, (1, *shape))

    def _embedded_number(self, x: float) -> float:
        if math.isinf(x):
            return math.copysign(self.infinity, x)
        found = _residue_of_float(self.p, x)
        return float(found - self.p if found > self.half else found)

    def of_integers(self, x: Array) -> Array:
        """The residues of integers of any width."""
        wide = x if x.dtype == np.uint64 else x.astype(np.int64)
        found = np.asarray(wide % wide.dtype.type(self.p)).astype(np.float64)
        return np.asarray(np.where(found > self.half, found - self.p, found))

    # Functions: random ones, one per draw, and those bound by an identity.

    def function(self, name: str, x: Array) -> Array:
        """The value of the function ``name`` (of an op, without its dialect) at x."""
        if name == "log_plus_one":
            return self.function("log", self.add(x, np.ones(1)))
        if name == "exponential_minus_one":
            return self.subtract(self.function("exponential", x), np.ones(1))
        if name == "erfc":
            return self.subtract(np.ones(1), self.function("erf", x))
        if np.iscomplexobj(x):
            parts = (self.function_of_two(f"{name} {part}", x.real, x.imag) for part in ("real", "imaginary"))
            return np.asarray(next(parts) + 1j * next(parts))
        if name == "logistic":  # 1 / (1 + exp(-x))
            return self.inverse(self.add(self.function("exponential", -x), np.ones(1)))
        if name == "tanh":  # (exp(2x) - 1) / (exp(2x) + 1)
            power = self.function("exponential", self.add(x, x))
            return self.divide(self.subtract(power, np.ones(1)), self.add(power, np.ones(1)))
        if name in ("sqrt", "rsqrt"):
            return self.power(x, 0.5 if name == "sqrt" else -0.5)
        if name not in (*_ODD, *_EVEN, "exponential"):
            return self._looked_up(functools.partial(self._random, name), x)
        found = self._looked_up(functools.partial(self._random, name), np.abs(x))
        if name == "exponential":  # exp(-x) = 1 / exp(x)
            found = np.where(x == 0, 1.0, np.where(found == 0, 1.0, found))
            return np.where(x < 0, self.inverse(found), found)
        return found * np.sign(x) if name in _ODD else np.where(x == 0, 1.0, found)

    def function_of_two(self, name: str, x: Array, y: Array) -> Array:
        """A random function of two residues."""
        if np.iscomplexobj(x):
            return self.function(name, self.add(x, self.multiply(self.function(f"{name} of", y), np.full(1, 5.0))))
        return self.function(f"{name} 2", self.add(self.function(f"{name} 1", x), self.multiply(y, np.full(1, 3.0))))

    def power(self, x: Array, exponent: float) -> Array:
        """x to a constant rational power, as a homomorphism of the squares; an integral power exactly."""
        if float(exponent).is_integer() and abs(exponent) < 2**BITS:
            return self.integer_power(x, int(exponent))
        if np.iscomplexobj(x):
            return self.function(f"power {exponent}", x)
        return self._table_power(x, float(exponent))

    def integers_of(self, x: Array, dtype: Any, name: str = "integral part") -> Array:
        """Integers of type ``dtype`` as ``Integers`` draws them, instead of the integral parts of residues."""
        words = self._words(f"{name} as {np.dtype(dtype).name}", np.nan_to_num(x))
        drawn = (self.integers.drawn(part, seed, np.dtype(dtype)) for part, seed in zip(words, self.seeds, strict=True))
        return np.stack(list(drawn))

    def integral(self, name: str, x: Array) -> Array:
        """The residues of ``integers_of``, for the op ``name`` that rounds floats."""
        return np.where(np.isnan(x), np.nan, self.of_integers(self.integers_of(x, np.int64, name)))

    def bits_of(self, x: Array, exponent: int, mantissa: int) -> Array:
        """The bits, as unsigned integers of 64 bits, of numbers with so many bits of exponent and mantissa: a random
        function of the magnitude, and a sign by the order."""
        words = self._words("bits", np.nan_to_num(self.absolute(x)))
        negative = (self.sign(x) < 0).astype(np.uint64) << np.uint64(exponent + mantissa)
        drawn = (self.integers.exponents(part, seed, exponent) for part, seed in zip(words, self.seeds, strict=True))
        exponents = np.stack(list(drawn)).astype(np.uint64) << np.uint64(mantissa)
        return np.asarray((words >> np.uint64(64 - mantissa)) | exponents | negative)

    def _table_power(self, x: Array, exponent: float) -> Array:
        def raised(at: Array) -> Array:
            if at.size < _TABLE_PAYS_FROM * self.p:
                return _raised(self.p, exponent, at).astype(np.float64)
            return _power_table(self.p, exponent).take(at, mode="wrap").astype(np.float64)

        return self._looked_up(raised, x)

    def _looked_up(self, table: Callable[[Array], Array], x: Array) -> Array:
        """The entries of ``table`` for the residues x, as integers."""
        return table(x.astype(np.int64))

    def _random(self, name: str, x: Array) -> Array:
        """Random residues of integers x [draws or 1, ...], by draw."""
        return np.asarray(self._mixed(name, x) % np.uint64(self.p)).astype(np.float64) - self.half

    def _words(self, name: str, x: Array) -> Array:
        """64 random bits for each residue of x, by draw: [draws, ...]."""
        return self._mixed(name, x.astype(np.int64))

    def _mixed(self, name: str, x: Array) -> Array:
        """64 random bits of integers x [draws or 1, ...], by draw (splitmix64)."""
        bits = x.view(np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits = bits + _keys(self.p, self.seeds, name).reshape(-1, *(1,) * (x.ndim - 1))
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            bits ^= bits >> np.uint64(shift)
            bits *= np.uint64(factor)
        bits ^= bits >> np.uint64(31)
        return bits

    # A random order, invariant under translations: x > y where x - y is a square, in some draws where it is none. Not
    # transitive.

    def sign(self, x: Array) -> Array:
        """-1, 0 or 1: the quadratic character of x, but for outcomes prescribed by ``steered``; x / |x| if complex.

        What is the same small fraction in all of several draws is a constant, however it is computed: its sign is its
        own, but in a steered order.
        """
        if np.iscomplexobj(x):
            return self.divide(x, self.absolute(x))
        found = self._looked_up(self._ordered, x)
        if len(self.seeds) > 1 and not self._is_steered and (constant := (x == x[:1]).all(0, keepdims=True)).any():
            own = np.where(
                constant, _signs_of_fractions(self.p).take(np.nan_to_num(x[:1]).astype(np.int64) % self.p), 0
            )
            found = np.where(own != 0, own, found)
        infinite = np.abs(x) == self.infinity
        return np.where(infinite, np.sign(x), found) if infinite.any() else found

    def _ordered(self, x: Array) -> Array:
        at = x % self.p + self.p * np.arange(len(self._order)).reshape(-1, *(1,) * (x.ndim - 1))
        senses = self._senses.reshape(-1, *(1,) * (x.ndim - 1))
        return np.asarray(self._order.take(at) * senses)

    def steered(self, wishes: Sequence[Array]) -> PrimeField:
        """The first draws under another order: each of ``wishes`` has, for differences d from 1 to (p - 1) / 2, d where
        d > 0 is to be true and -d where it is to be false.

        Any antisymmetric function of differences is an order that is invariant under translations.
        """
        field = type(self)(self.p, self.seeds[: len(wishes)], self.integers)
        field._is_steered = True
        field._order = np.repeat(self._order, len(wishes) // len(self._order), 0)
        for own, sense, signed in zip(field._order, self._senses, wishes, strict=False):
            at, signs = np.abs(signed), np.sign(signed) * sense
            own[at], own[-at] = signs, -signs
        return field

    def compare(self, direction: str, x: Array, y: Array) -> Array:
        """Booleans; ``direction`` is StableHLO's: EQ, NE, LT, LE, GT or GE."""
        if direction in ("EQ", "NE"):
            equal = x == y
            if x is y and not np.iscomplexobj(x):
                equal = ~self.is_nan(x)
            for side, other in ((x, y), (y, x)):
                infinite = np.abs(other) == self.infinity
                if infinite.any() and not np.iscomplexobj(side):
                    equal = np.where(infinite, self.is_infinite(side) & (self.sign(side) == np.sign(other)), equal)
            return np.asarray(equal == (direction == "EQ"))
        order = self.sign(self.subtract(x, y))
        for side, sense in ((x, 1.0), (y, -1.0)):
            infinite = np.abs(side) == self.infinity
            if infinite.any():
                order = np.where(infinite & (x != y), sense * np.sign(side), order)
        return np.asarray({"LT": order < 0, "LE": order <= 0, "GT": order > 0, "GE": order >= 0}[direction])

    def absolute(self, x: Array) -> Array:
        if np.iscomplexobj(x):
            return self.function("sqrt", self.add(self.multiply(x.real, x.real), self.multiply(x.imag, x.imag)))
        return np.where(self.sign(x) < 0, -x, x)

    def maximum(self, x: Array, y: Array) -> Array:
        return np.where(self.compare("GE", x, y), x, y)

    def minimum(self, x: Array, y: Array) -> Array:
        return np.where(self.compare("LE", x, y), x, y)

    @property
    def unguarded(self) -> PrimeField:
        """The field in which no residue passes for NaN or infinity."""
        return self

    def any_outcome(self, direction: str, x: Array, y: Array, outcome: Array) -> Array:
        """The ``outcome`` of a comparison of integers, or of residues that are integers: see ``FieldWithGuards``."""
        return outcome

    # Tests for NaN and infinity: only residues of these constants pass.

    def is_finite(self, x: Array) -> Array:
        if np.iscomplexobj(x):
            return self.is_finite(x.real) & self.is_finite(x.imag)
        return ~(self.is_nan(x) | self.is_infinite(x))

    def is_nan(self, x: Array) -> Array:
        return np.asarray(x == self.nan)

    def is_infinite(self, x: Array) -> Array:
        return np.asarray(np.abs(x) == self.infinity)

    def key(self, x: Array) -> Array:
        """The keys of a sort: a total order, random but for infinities."""
        keys = self.function("sort key", x)
        return np.where(np.abs(x) == self.infinity, np.sign(x) * self.p, keys)

    def total_key(self, x: Array) -> Array:
        """The keys of comparisons in total order, which is another order than ``compare``'s: random ones."""
        return self.function("total order", x)

    def pivot_size(self, x: Array) -> Array:
        """The keys by which an LU factorisation chooses pivots: random, equal for x and -x, least for 0."""
        size = (
            self.function_of_two("pivot", x.real, x.imag) if np.iscomplexobj(x) else self.function("pivot", np.abs(x))
        )
        return np.where(x == 0, -1.0, np.abs(size))


_ODD = ("sine", "tan", "asin", "atan", "sinh", "asinh", "atanh", "erf", "erf_inv", "cbrt")
_EVEN = ("cosine", "cosh")
_POLES = frozenset(("log", "rsqrt", "digamma", "lgamma"))
"""Functions that are not finite at zero."""


class FieldWithGuards(PrimeField):
    """As PrimeField; in draws of odd seeds, random thirds of the values pass for NaN and for infinity, and half of the
    integers in rare comparisons (``coverage.rare_comparisons``) for equal ones.

    No residue is NaN: the branch that a program selects where a value is not finite is never taken in ``PrimeField``.
    Integers have a magnitude: nor is one that is selected by ``n == 77777``.
    """

    _guards = True

    @property
    def unguarded(self) -> PrimeField:
        found = copy.copy(self)
        found._guards = False
        return found

    def is_nan(self, x: Array) -> Array:
        return super().is_nan(x) | self._passes("is nan", x)

    def is_infinite(self, x: Array) -> Array:
        return super().is_infinite(x) | self._passes("is infinite", np.abs(x))

    def any_outcome(self, direction: str, x: Array, y: Array, outcome: Array) -> Array:
        """A random order of integers, a function of their difference: as ``compare``."""
        difference = self.subtract(x, y) if x.dtype.kind == "f" else x.astype(np.int64) - y.astype(np.int64)
        difference = difference.astype(np.int64)
        words = self._mixed("integers compared", np.abs(difference))
        outcomes = np.array([0, 0, 1, -1])[(words >> np.uint64(62)).astype(np.intp)]
        found = MACHINE.compare(direction, outcomes * np.sign(difference), np.zeros(1, np.int64))
        return np.where(self._per_draw(0.0, 1.0, found.ndim) > 0, found, outcome)

    def _passes(self, name: str, x: Array) -> Array:
        if not self._guards:
            return np.zeros((), bool)
        return np.asarray(np.abs(self.function(name, x)) < self._per_draw(0.0, 0.35, x.ndim) * self.half)

    def _per_draw(self, even: float, odd: float, rank: int) -> Array:
        """A number of each draw, by its seed."""
        return np.array([odd if seed % 2 else even for seed in self.seeds]).reshape(-1, *(1,) * (rank - 1))


class FieldWithUndefined(PrimeField):
    """As PrimeField, but 1 / 0 is NaN, which propagates as in floating point: through all but selections, comparisons.

    At exactly tied inputs programs divide by zero, and select another value; elsewhere a residue of zero is a
    coincidence, and 1 / 0 = 0 as good as any number.
    """

    def inverse(self, x: Array) -> Array:
        found = super().inverse(x)
        return np.where(x == 0, np.nan, found)

    def function(self, name: str, x: Array) -> Array:
        found = super().function(name, x)
        return np.where(x == 0, np.nan, found) if name in _POLES else found

    def power(self, x: Array, exponent: float) -> Array:
        found = super().power(x, exponent)
        return np.where(x == 0, np.nan, found) if exponent < 0 else found

    def is_nan(self, x: Array) -> Array:
        return np.isnan(x)

    def _looked_up(self, table: Callable[[Array], Array], x: Array) -> Array:
        undefined = np.isnan(x)
        if not undefined.any():
            return super()._looked_up(table, x)
        found = super()._looked_up(table, np.where(undefined, 0.0, x))
        found[np.broadcast_to(undefined, found.shape)] = np.nan
        return found
