"""Weighted sums of second derivatives and squared first derivatives, solved for their weights in prime fields.

    y_c = sum_k a_ck d^2 F / d x_k^2 + b_ck (d F / d x_k)^2

At every sample (a walker of a draw) this is a linear equation for the weights, which are the same at all samples. More
equations than weights, in two prime fields, leave a chance of about 1/p for each one too many that a sum without such
weights has a solution.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from fusionlab.passes.fuse_jvp_replay.rationals import rational

Array = np.ndarray[Any, Any]
Weights = tuple[tuple[Fraction, ...], ...]

PRIMES, SURPLUS = 3, 8
"""The number of primes, and in each the number of equations beyond that of the weights."""


@dataclass(frozen=True)
class Combination:
    """The weights a (``second``) and b (``squares``) [C][K]; ``axis`` of the target counts C, or is None and C is 1."""

    second: Weights
    squares: Weights
    axis: int | None

    def residues(self, p: int) -> tuple[Array, Array]:
        """(a, b) as residues [C, K] between -(p - 1) / 2 and (p - 1) / 2."""
        found = (
            [[weight.numerator * pow(weight.denominator, -1, p) % p for weight in row] for row in rows]
            for rows in (self.second, self.squares)
        )
        second, squares = (np.array(rows, np.float64) for rows in found)
        return np.where(second > p // 2, second - p, second), np.where(squares > p // 2, squares - p, squares)

    def multiples_of(self, weights: Sequence[Fraction]) -> tuple[Fraction, Fraction] | None:
        """(s, t) with a = s ``weights`` and b = t ``weights``; None if there are none, or several channels."""
        if self.axis is not None:
            return None
        at = next(k for k, weight in enumerate(weights) if weight)
        factors = self.second[0][at] / weights[at], self.squares[0][at] / weights[at]
        rows = zip(factors, (self.second[0], self.squares[0]), strict=True)
        equal = (row == tuple(factor * weight for weight in weights) for factor, row in rows)
        return factors if all(equal) else None

    def parts(self) -> Iterator[tuple[int, Fraction, list[int]]]:
        """The coordinates of each channel that have the same weight in ``second``: (channel, weight, coordinates)."""
        for channel, weights in enumerate(self.second):
            for weight in dict.fromkeys(filter(None, weights)):
                yield channel, weight, [k for k, own in enumerate(weights) if own == weight]


def solved(samples: Mapping[int, tuple[Array, Array, Array]], axis: int | None) -> Combination | None:
    """The weights with which, modulo each prime p of ``samples``, targets [S, C] are sums of ``second`` derivatives
    [S, K] and of the squares of ``rows`` [S, K]: p -> (targets, second, rows). None if there are none."""
    found = {}
    for p, equations in samples.items():
        solution = _solution(*_system(p, *equations), p)
        if solution is None:
            return None
        found[p] = solution
    unknown, channels = next(iter(found.values())).shape
    weights = [[rational({p: int(each[i, c]) for p, each in found.items()}) for i in range(unknown)]
               for c in range(channels)]  # fmt: skip
    if any(weight is None for row in weights for weight in row):
        return None
    known = [tuple(weight for weight in row if weight is not None) for row in weights]
    count = unknown // 2
    return Combination(tuple(row[:count] for row in known), tuple(row[count:] for row in known), axis)


def solvable(p: int, targets: Array, second: Array, rows: Array) -> bool:
    """True if ``targets`` have such weights modulo p, as in ``solved``."""
    return _solution(*_system(p, targets, second, rows), p) is not None


def may_be_combinations(p: int, terms: Array, second: Array, rows: Array) -> bool:
    """False if for one of ``terms`` [S, N] there are no coordinate k and weights a and b with which it is, modulo p, a
    times ``second`` and b times the square of ``rows`` [S, K] at the first three samples, others at the next three."""
    (u, v), t = np.split(_system(p, terms, second, rows)[0], 2, 1), terms.astype(np.int64) % p
    fits = np.ones((t.shape[1], u.shape[1]), np.bool_)
    for i in range(0, len(t) - 2, 3):
        uk, vk, tn = u[i : i + 3, None], v[i : i + 3, None], t[i : i + 3, :, None]
        both = _cross(uk, vk, p)
        dependent = ~both.any(0)
        parallel = ~_cross(tn, uk, p).any(0) & ~_cross(tn, vk, p).any(0) & (uk.any(0) | vk.any(0) | ~tn.any(0))
        fits &= np.where(dependent, parallel, (tn * both % p).sum(0) % p == 0)
    return bool(fits.any(1).all())


def _cross(a: Array, b: Array, p: int) -> Array:
    """The vector product modulo p of arrays [3, ...]."""
    products = (a[[1, 2, 0]] * b[[2, 0, 1]] - a[[2, 0, 1]] * b[[1, 2, 0]]) % p
    return np.asarray(products)


def _system(p: int, targets: Array, second: Array, rows: Array) -> tuple[Array, Array]:
    """The coefficients [S, 2 K] and right-hand sides [S, C] of the equations modulo p."""
    first = rows.astype(np.int64) % p
    return np.concatenate([second.astype(np.int64) % p, first * first % p], 1), targets.astype(np.int64) % p


def _solution(left: Array, right: Array, p: int) -> Array | None:
    """X [U, C] with ``left`` [S, U] X = ``right`` [S, C] modulo p, 0 where it is free; None if there is none."""
    system, unknown = np.concatenate([left, right], 1), left.shape[1]
    pivots: list[int] = []
    for column in range(unknown):
        rows = np.flatnonzero(system[len(pivots) :, column])
        if not rows.size:
            continue
        at, row = len(pivots), len(pivots) + rows[0]
        system[[at, row]] = system[[row, at]]
        system[at] = system[at] * pow(int(system[at, column]), -1, p) % p
        factors = system[:, column].copy()
        factors[at] = 0
        system = (system - factors[:, None] * system[at]) % p
        pivots.append(column)
    if system[len(pivots) :, unknown:].any() or len(system) < len(pivots) + SURPLUS:
        return None
    found = np.zeros((unknown, right.shape[1]), np.int64)
    found[pivots] = system[: len(pivots), unknown:]
    return found
