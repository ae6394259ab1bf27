"""Figures with the error of their model, and statements about them that hold, do not, or are not decidable."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

Truth = bool | None
"""None: not decidable within the error."""
Factors = tuple[float, float]


@dataclass(frozen=True)
class ModelledFigure:
    """A modelled figure and what it may be: ``low`` to ``high``. Where the model is known to be biased, ``value`` lies
    outside."""

    value: float
    low: float
    high: float

    @staticmethod
    def exact(value: float) -> ModelledFigure:
        """A figure without error."""
        return ModelledFigure(value, value, value)

    def __truediv__(self, other: ModelledFigure) -> ModelledFigure:
        return ModelledFigure(self.value / other.value, self.low / other.high, self.high / other.low)

    def lies(self, low: float, high: float) -> Truth:
        """Whether it lies between ``low`` and ``high``."""
        if low <= self.low and self.high <= high:
            return True
        return False if self.high < low or high < self.low else None

    def exceeds(self, other: ModelledFigure) -> Truth:
        """Whether it is larger than ``other``."""
        if self.low > other.high:
            return True
        return False if self.high <= other.low else None

    def words(self, text: str, scale: float = 1.0, digits: int | None = None) -> str:
        """``text``, which is the value, with the ends behind it where there is an error; these have ``digits`` behind
        the point, else two that count."""
        if self.low == self.high:
            return text
        low, high = (
            _short(end) if digits is None else f"{end:,.{digits}f}" for end in (scale * self.low, scale * self.high)
        )
        return f"{text} ({low} to {high})"


def _short(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2g}"


def every(statements: Iterable[Truth]) -> Truth:
    """Whether all hold: one that does not decides."""
    found = list(statements)
    return False if False in found else None if None in found else True


def opposite(statement: Truth) -> Truth:
    """Whether it does not hold."""
    return None if statement is None else not statement


def corners(ranges: Sequence[Factors]) -> Iterator[tuple[float, ...]]:
    """Every choice of one end of each range: a ratio of sums is least and largest at one of them."""
    return itertools.product(*ranges)
