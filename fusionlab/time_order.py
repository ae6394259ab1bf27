"""Which of two modelled times is less, and whether the model can say: the one owner of that comparison.

Two programs whose times differ by less than the error of a pair, as a share of the smaller, have no order.
``ledger.time`` has the errors: by the code of kernels, by XLA's estimates.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Order = Literal["faster", "slower", "not decidable"]


@dataclass(frozen=True)
class TimeOrder:
    """The modelled time ``us`` of a program beside ``other_us``; ``needed`` is the least difference that tells the
    faster, as a share."""

    us: float
    other_us: float
    needed: float

    @staticmethod
    def of(us: float | None, other_us: float | None, *pair_errors: float | None) -> TimeOrder | None:
        """The comparison of two times, the larger of whose errors counts (None: not tested, which adds none); None
        without one of the times."""
        if not us or not other_us:
            return None
        return TimeOrder(us, other_us, max((one for one in pair_errors if one is not None), default=0.0))

    @property
    def apart(self) -> float:
        """The difference as a share of the smaller."""
        return max(self.us, self.other_us) / min(self.us, self.other_us) - 1

    @property
    def order(self) -> Order:
        """Whether the program is faster than the other; equal times are not decidable."""
        if self.apart < self.needed or self.us == self.other_us:
            return "not decidable"
        return "faster" if self.us < self.other_us else "slower"

    @property
    def undecided(self) -> str:
        """How far apart they are and how much is needed, where that leaves it open; else ""."""
        if self.order != "not decidable":
            return ""
        return f"not decidable by the model: {self.apart:.1%} apart, {self.needed:.0%} are needed"
