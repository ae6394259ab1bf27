"""Whether two programs are identical as algebra: at every draw, under random and steered orders, element by element."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import PrimeField, primes
from fusionlab.equivalence.exact.programs import RULES, drawn_arguments
from fusionlab.equivalence.exact.steering import Tracker
from fusionlab.equivalence.exact.values import Uncovered
from fusionlab.hlo.flat import FlatFunction, flatten
from fusionlab.hlo.program import Program

PRIMES = 2
SHARES = ((1.0, 0.0), (0.75, 0.5))
"""For each prime its draws: with which probability a predicate is steered to the answer that makes a value non-zero."""


@dataclass(frozen=True)
class Identity:
    """``result``: ``identical``, ``not-identical`` (no proof of a difference: an identity of functions may be missing)
    or ``not-covered``, for ``reason``. ``draws`` are points, each of all arguments, over ``primes`` primes."""

    result: Literal["identical", "not-identical", "not-covered"]
    draws: int
    primes: int
    error_probability: float
    reason: str = ""
    first_difference: str = ""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @staticmethod
    def from_json(record: Mapping[str, Any]) -> Identity:
        return Identity(**record)


def compare_exactly(original: Program, rewritten: Program) -> Identity:
    """Evaluate both programs, of one signature, at their own shapes."""
    return compare_functions(flatten(original.parse()), flatten(rewritten.parse()))


def compare_functions(original: FlatFunction, rewritten: FlatFunction) -> Identity:
    """The same of two views."""
    draws = 0
    try:
        for p, shares in zip(primes(PRIMES), SHARES, strict=True):
            plain = PrimeField(p, range(len(shares)))
            field, tracked = plain, [dict[float, bool]() for _ in shares]
            while True:
                tracker = Tracker(field, RULES, shares)
                tracker.wishes = tracked
                expected = tracker.outputs(original, drawn_arguments(original, field, tracker))
                other = Evaluator(field, RULES)
                found = other.outputs(rewritten, drawn_arguments(rewritten, field, other))
                draws += len(shares)
                if (difference := _difference(expected, found)) is not None:
                    return Identity("not-identical", draws, PRIMES, 1.0, difference)
                if field is not plain or not any(tracked):
                    break
                field = plain.steered(tracked)
    except Uncovered as error:
        return Identity("not-covered", draws, PRIMES, 1.0, str(error))
    return Identity("identical", draws, PRIMES, math.nan)


def _difference(expected: list[np.ndarray[Any, Any]], found: list[np.ndarray[Any, Any]]) -> str | None:
    """The first output that differs, in words; None where all are equal."""
    for index, (x, y) in enumerate(zip(expected, found, strict=True)):
        differing = np.broadcast_to(x, np.broadcast_shapes(x.shape, y.shape)) != y
        if differing.any():
            return f"output {index} differs at {int(differing.sum())} of {differing.size} elements"
    return None
