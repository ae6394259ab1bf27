"""Numbers for a reader, in units that fit: ``12.0 us``, ``3.4 KiB``, ``8.2 MFLOP``. Only 0 is printed as 0.

Sizes in bytes alone, and their parsing, are in ``bytesize``.
"""

from __future__ import annotations

from collections.abc import Sequence

Unit = tuple[str, float]
"""The name of a unit and its size in the smallest one (bytes, FLOPs, microseconds)."""
BYTES: tuple[Unit, ...] = (("TiB", 2.0**40), ("GiB", 2.0**30), ("MiB", 2.0**20), ("KiB", 2.0**10))
FLOPS: tuple[Unit, ...] = (("PFLOP", 1e15), ("TFLOP", 1e12), ("GFLOP", 1e9), ("MFLOP", 1e6), ("kFLOP", 1e3))
FLOP_RATES: tuple[Unit, ...] = (("GFLOP/s", 1e9), ("MFLOP/s", 1e6))
TIMES: tuple[Unit, ...] = (("ms", 1e3), ("us", 1.0))
_LEAST_US = 0.1
"""A time below this is printed in nanoseconds."""
_MOST_OF_THREE = 999.5
"""What rounds to four digits."""


def unit_for(most: float | None, units: Sequence[Unit]) -> Unit:
    """The unit of a column whose largest value is ``most``: the largest that it reaches, the smallest for 0.

    The first for None, of a column without values.
    """
    if most is None:
        return units[0]
    return next((unit for unit in units if most >= unit[1]), units[-1])


def fixed(value: float, digits: int) -> str:
    """``value`` with ``digits`` after the point: ``0`` only for 0, and ``<0.01`` for what would round to it."""
    if value == 0:
        return "0"
    least = 10.0**-digits
    if abs(value) < least / 2:
        return f"{'<' if value > 0 else '>-'}{least:.{digits}f}"
    return f"{value:,.{digits}f}"


def three_digits(value: float, units: Sequence[Unit], smallest: str) -> str:
    """``value`` in three digits, for a picture: ``0``, ``12.5 KiB``, ``880 MiB``; whole in the ``smallest`` unit."""
    if not value:
        return "0"
    name, per = smallest, 1.0
    for unit, size in reversed(units):
        if value / per < _MOST_OF_THREE:
            break
        name, per = unit, size
    scaled = value / per
    digits = 0 if per == 1 or scaled >= 99.5 else 1 if scaled >= 9.95 else 2
    return f"{scaled:,.{digits}f} {name}"


def counted(count: int, one: str, many: str) -> str:
    """``1 launch``, ``2 launches``."""
    return f"{count:,} {one if count == 1 else many}"


def time_words(us: float, *, at_least: bool = False) -> str:
    """Microseconds in the unit that fits: ``12.0 us``, ``1.25 ms``, ``80.0 ns``; ``>=`` before a lower bound."""
    bound = ">=" if at_least else ""
    if 0 < abs(us) < _LEAST_US:
        return f"{bound}{us * 1e3:,.1f} ns"
    return f"{bound}{us / 1e3:,.2f} ms" if abs(us) >= 1e3 else f"{bound}{us:,.1f} us"


def in_unit(value: float, units: Sequence[Unit], smallest: str) -> str:
    """``value`` in the unit that fits, as ``176.0 MiB``; whole in the ``smallest`` one, as ``24 B``."""
    for unit, per in units:
        if abs(value) >= per:
            return f"{value / per:,.1f} {unit}"
    return f"{value:,.0f} {smallest}"


def flop_words(flops: float) -> str:
    """FLOPs in the unit that fits: ``8.2 MFLOP``, ``352.0 GFLOP``, ``96 FLOP``."""
    return in_unit(flops, FLOPS, "FLOP")
