"""The integer and predicate instructions of PTX on many threads at once.

A value is an array of bit patterns, one per thread, and an array that says where it is known. Floating point and loaded
data are unknown: addresses and branches of XLA's kernels depend on thread and block indices, and where they do depend
on data, this is a fact too. The meaning of the instructions is that of the PTX ISA reference ("Integer Arithmetic
Instructions", "Logic and Shift Instructions").
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Bits = NDArray[np.int64]
Known = NDArray[np.bool_]

_TYPE = re.compile(r"(pred|[bsuf])(\d*)")
_HALF = (1 << 32) - 1


@dataclass(frozen=True)
class Lanes:
    """A value of every thread: ``bits``, zero-extended to 64, valid where ``known``."""

    bits: Bits
    known: Known

    @staticmethod
    def of(bits: Any, lanes: int) -> Lanes:
        """A known value; one number is that of all threads."""
        return Lanes(np.broadcast_to(np.asarray(bits, np.int64), (lanes,)), np.ones(lanes, np.bool_))

    @staticmethod
    def unknown(lanes: int) -> Lanes:
        """A value that is not known in any thread."""
        return Lanes(np.zeros(lanes, np.int64), np.zeros(lanes, np.bool_))

    def merged(self, other: Lanes, where: Known) -> Lanes:
        """``other`` in the threads ``where``, this value in the rest."""
        return Lanes(np.where(where, other.bits, self.bits), np.where(where, other.known, self.known))


def literal(text: str) -> int | None:
    """The bit pattern of an integer or floating constant as PTX writes it; None for anything else."""
    if re.fullmatch(r"0[fF][0-9a-fA-F]{8}|0[dD][0-9a-fA-F]{16}", text):
        return _signed(int(text[2:], 16), 64)
    try:
        return _signed(int(text.rstrip("U"), 0), 64)
    except ValueError:
        return None


def evaluate(parts: Sequence[str], sources: Sequence[Lanes]) -> Lanes:
    """The result of the instruction whose opcode has the words ``parts``; unknown for one without a rule here."""
    lanes = len(sources[0].bits) if sources else 1
    if parts[-1] == "pred":
        return _of_predicates(parts[0], sources)
    rule = _RULES.get(parts[0])
    if rule is None or not sources or _is_float(parts):
        return Lanes.unknown(lanes)
    known = np.logical_and.reduce([one.known for one in sources])
    if not known.any():
        return Lanes.unknown(lanes)
    if parts[0] == "selp":
        chosen = np.where(sources[2].bits != 0, sources[0].known, sources[1].known)
        known = sources[2].known & chosen
    with np.errstate(all="ignore"):
        bits = rule(parts, [one.bits for one in sources])
    return Lanes.unknown(lanes) if bits is None else Lanes(bits, known)


def _is_float(parts: Sequence[str]) -> bool:
    """True if a type of the instruction is floating point; moves and selections are of bits."""
    return parts[0] not in ("mov", "selp") and any(re.fullmatch(r"t?b?f\d+(x2)?", part) for part in parts[1:])


def _of_predicates(base: str, sources: Sequence[Lanes]) -> Lanes:
    """Three-valued logic: ``and`` with false is false, ``or`` with true is true, whatever the other one is."""
    first = sources[0]
    if base in ("mov", "not"):
        return Lanes(first.bits ^ 1, first.known) if base == "not" else first
    if base not in ("and", "or", "xor") or len(sources) < 2:
        return Lanes.unknown(len(first.bits))
    second, decides = sources[1], {"and": 0, "or": 1, "xor": -1}[base]
    decided = (first.known & (first.bits == decides)) | (second.known & (second.bits == decides))
    bits = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}[base](first.bits, second.bits)
    return Lanes(np.where(decided, decides, bits), decided | (first.known & second.known))


def _type(parts: Sequence[str], at: int = -1) -> tuple[str, int]:
    """The kind and width of the type at that word of the opcode."""
    found = _TYPE.fullmatch(parts[at])
    return (found[1], int(found[2] or 1)) if found else ("b", 32)


def _masked(bits: Any, width: int) -> Bits:
    found: Bits = np.asarray(bits, np.int64)
    return found if width >= 64 else found & np.int64((1 << width) - 1)


def _as(kind: str, width: int, bits: Bits) -> Bits:
    """``bits`` as numbers: sign-extended where ``kind`` is signed."""
    if kind != "s" or width >= 64:
        return bits
    shift = np.int64(64 - width)
    return (bits << shift) >> shift


def _signed(value: int, width: int) -> int:
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _plain(function: Callable[[Bits, Bits], Any]) -> Callable[[Sequence[str], list[Bits]], Bits]:
    def rule(parts: Sequence[str], values: list[Bits]) -> Bits:
        kind, width = _type(parts)
        first, second = (_as(kind, width, _masked(one, width)) for one in values[:2])
        return _masked(function(first, second), width)

    return rule


def _unary(function: Callable[[Bits], Any]) -> Callable[[Sequence[str], list[Bits]], Bits]:
    def rule(parts: Sequence[str], values: list[Bits]) -> Bits:
        kind, width = _type(parts)
        return _masked(function(_as(kind, width, _masked(values[0], width))), width)

    return rule


def _quotient(first: Bits, second: Bits) -> Bits:
    divisor = np.where(second == 0, 1, second)
    found: Bits = np.sign(first) * np.sign(divisor) * (np.abs(first) // np.abs(divisor))
    return found


def _remainder(first: Bits, second: Bits) -> Bits:
    return first - _quotient(first, second) * second


def _product(parts: Sequence[str], values: list[Bits]) -> Bits:
    kind, width = _type(parts)
    first, second = (_as(kind, width, _masked(one, width)) for one in values[:2])
    if "wide" in parts:
        return first * second
    if "hi" not in parts:
        return _masked(first * second, width)
    if width <= 32:
        product = (first.view(np.uint64) * second.view(np.uint64)).view(np.int64) if kind == "u" else first * second
        shifted = product.view(np.uint64) >> np.uint64(width)
        return _masked(shifted.view(np.int64), width)
    return _high(kind, first, second)


def _high(kind: str, first: Bits, second: Bits) -> Bits:
    """The upper 64 bits of the product of two 64-bit numbers."""
    a, b = (one.copy().view(np.uint64) for one in (first, second))
    half, low = np.uint64(32), np.uint64(_HALF)
    a0, a1, b0, b1 = a & low, a >> half, b & low, b >> half
    middle = a1 * b0 + ((a0 * b0) >> half)
    upper = a1 * b1 + (middle >> half) + ((a0 * b1 + (middle & low)) >> half)
    found: Bits = upper.view(np.int64)
    return found - np.where(first < 0, second, 0) - np.where(second < 0, first, 0) if kind == "s" else found


def _multiply_add(parts: Sequence[str], values: list[Bits]) -> Bits:
    _, width = _type(parts)
    return _masked(_product(parts, values) + values[2], 64 if "wide" in parts else width)


def _shift_left(parts: Sequence[str], values: list[Bits]) -> Bits:
    _, width = _type(parts)
    by = np.clip(values[1], 0, 63)
    return np.where(values[1] >= width, 0, _masked(values[0] << by, width))


def _shift_right(parts: Sequence[str], values: list[Bits]) -> Bits:
    kind, width = _type(parts)
    by = np.clip(values[1], 0, min(width, 64) - 1)
    if kind == "s":
        return _masked(_as(kind, width, values[0]) >> by, width)
    shifted = (values[0].astype(np.uint64) >> by.astype(np.uint64)).view(np.int64)
    return np.where(values[1] >= width, 0, shifted)


def _select(_: Sequence[str], values: list[Bits]) -> Bits:
    return np.where(values[2] != 0, values[0], values[1])


def _convert(parts: Sequence[str], values: list[Bits]) -> Bits:
    (_, to), (kind, width) = _type(parts, -2), _type(parts)
    return _masked(_as(kind, width, _masked(values[0], width)), to)


_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "eq": operator.eq, "ne": operator.ne, "lt": operator.lt, "le": operator.le, "gt": operator.gt, "ge": operator.ge,
    "lo": operator.lt, "ls": operator.le, "hi": operator.gt, "hs": operator.ge,
}  # fmt: skip


def _compare(parts: Sequence[str], values: list[Bits]) -> Bits | None:
    kind, width = _type(parts)
    compare = _COMPARISONS.get(parts[1])
    if compare is None:
        return None
    first, second = (_as(kind, width, _masked(one, width)) for one in values[:2])
    found = compare(first, second).astype(np.int64)
    joined = {"and": operator.and_, "or": operator.or_, "xor": operator.xor}.get(parts[2])
    result: Bits = joined(found, values[2]) if joined and len(values) > 2 else found
    return result


def _field(parts: Sequence[str], values: list[Bits]) -> Bits:
    """``bfe``: a bit field, sign-extended for signed types."""
    kind, width = _type(parts)
    start, length = values[1] & 255, np.clip(values[2] & 255, 0, 63)
    raw = (_masked(values[0], width) >> np.clip(start, 0, 63)) & ((np.int64(1) << length) - 1)
    sign = np.where((kind == "s") & (length > 0), (raw >> np.clip(length - 1, 0, 63)) & 1, 0)
    return _masked(raw - sign * (np.int64(1) << length), width)


def _funnel(parts: Sequence[str], values: list[Bits]) -> Bits:
    """``shf``: 32 bits of the 64 of two registers, shifted."""
    low, high = (_masked(one, 32) for one in values[:2])
    by = np.where("wrap" in parts, values[2] & 31, np.clip(values[2], 0, 32))
    if "l" in parts:
        return _masked((high << by) | (low >> np.clip(32 - by, 0, 63)), 32)
    return _masked((low >> by) | (high << np.clip(32 - by, 0, 63)), 32)


def _any_logic(parts: Sequence[str], values: list[Bits]) -> Bits:
    """``lop3``: a function of three bits by its table of eight."""
    _, width = _type(parts)
    table, found = int(values[3][0]), np.zeros_like(values[0])
    for row in range(8):
        if table >> row & 1:
            terms = [value if row >> (2 - at) & 1 else ~value for at, value in enumerate(values[:3])]
            found = found | (terms[0] & terms[1] & terms[2])
    return _masked(found, width)


_RULES: dict[str, Callable[[Sequence[str], list[Bits]], Bits | None]] = {
    "add": _plain(operator.add), "sub": _plain(operator.sub), "min": _plain(np.minimum), "max": _plain(np.maximum),
    "and": _plain(operator.and_), "or": _plain(operator.or_), "xor": _plain(operator.xor),
    "div": _plain(_quotient), "rem": _plain(_remainder), "not": _unary(operator.invert),
    "neg": _unary(operator.neg), "abs": _unary(np.abs), "mov": _unary(lambda one: one), "mul": _product,
    "mad": _multiply_add, "shl": _shift_left, "shr": _shift_right, "selp": _select, "cvt": _convert,
    "cvta": lambda _, values: values[0], "setp": _compare, "bfe": _field, "shf": _funnel, "lop3": _any_logic,
}  # fmt: skip
"""The instructions with a rule, by the first word of their opcode."""
