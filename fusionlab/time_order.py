"""Which of two modelled times is less, and whether the model can say: the one owner of that comparison.

Two programs whose times differ by less than the error of a pair, as a share of the smaller, have no order.
``ledger.time`` has the tested error, by the code of kernels.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Order = Literal["faster", "slower", "not decidable"]
ESTIMATED_PAIR_ERROR = 0.2
"""The error of a pair where the model was not tested: by XLA's estimates a pair in the wrong order differs by 18 %
(``benchmarks/time_model_fit.py``)."""


@dataclass(frozen=True)
class TimeOrder:
    """The modelled time ``us`` of a program beside ``other_us``, both in microseconds; ``needed`` is the least
    difference that tells the faster, as a share. Two lower bounds (``are_bounds``) tell nothing."""

    us: float
    other_us: float
    needed: float
    are_bounds: bool = False

    @staticmethod
    def of(
        us: float | None,
        other_us: float | None,
        pair_error: float | None,
        *more_errors: float | None,
        are_bounds: bool = False,
    ) -> TimeOrder | None:
        """The comparison of two times, the larger of whose errors counts (None: not tested, which is
        ``ESTIMATED_PAIR_ERROR``); None without one of the times."""
        if not us or not other_us:
            return None
        errors = (ESTIMATED_PAIR_ERROR if one is None else one for one in (pair_error, *more_errors))
        return TimeOrder(us, other_us, max(errors), are_bounds)

    @property
    def apart(self) -> float:
        """The difference as a share of the smaller."""
        return max(self.us, self.other_us) / min(self.us, self.other_us) - 1

    @property
    def order(self) -> Order:
        """Whether the program is faster than the other; equal times are not decidable."""
        if self.are_bounds or self.apart < self.needed or self.us == self.other_us:
            return "not decidable"
        return "faster" if self.us < self.other_us else "slower"

    @property
    def undecided(self) -> str:
        """How far apart they are and how much is needed, where that leaves it open; else ""."""
        if self.order != "not decidable":
            return ""
        if self.are_bounds:
            return "not decidable by the model: both are lower bounds"
        apart, needed = share_words(self.apart, self.needed)
        return f"not decidable by the model: {apart} apart, {needed} are needed"


def share_words(apart: float, needed: float) -> tuple[str, str]:
    """A difference and that which is needed: ``11.1%``, ``20%``; both with two digits where they would look alike."""
    if f"{apart:.1%}" == f"{needed:.1%}":
        return f"{apart:.2%}", f"{needed:.2%}"
    return f"{apart:.1%}", f"{needed:.0%}"
