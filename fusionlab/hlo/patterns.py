"""Patterns of operations, small enough to read in a minute.

op("divide", "x", number("c"))      x is any value, c a constant all of whose elements are one number
op("add", "x", op("negate", "x"))   one name is one value; add, multiply and their like match in both orders
op("multiply", 1.0, "x")            that number
"""

from __future__ import annotations

from dataclasses import dataclass

from fusionlab.hlo.constants import number_of
from fusionlab.hlo.ops import FLOATS
from fusionlab.hlo.view import Value


@dataclass(frozen=True)
class Number:
    """Any splat constant, to whose number ``name`` is bound."""

    name: str


@dataclass(frozen=True)
class Op:
    """The operation ``stablehlo.<name>`` whose operands match ``operands``."""

    name: str
    operands: tuple[Pattern, ...]


Pattern = Op | Number | str | float
Bound = dict[str, Value | float]


def op(name: str, *operands: Pattern) -> Op:
    """A pattern for ``stablehlo.<name>``; an operand that is a string matches any value and is bound to it."""
    return Op(name, operands)


def number(name: str) -> Number:
    """A pattern for a splat constant."""
    return Number(name)


def match(pattern: Pattern, value: Value, bound: Bound | None = None) -> Bound | None:
    """The bindings of the names of ``pattern`` if it matches ``value``, else None; ``bound`` are those already made."""
    bound = bound or {}
    if isinstance(pattern, str):
        return bound | {pattern: value} if _same(bound.get(pattern, value), value) else None
    if isinstance(pattern, Number):
        found = number_of(value, FLOATS)
        return None if found is None or bound.get(pattern.name, found) != found else bound | {pattern.name: found}
    if not isinstance(pattern, Op):
        return bound if number_of(value, FLOATS) == pattern else None
    node = value.producer
    if node is None or node.op.mnemonic != pattern.name or len(node.operands) != len(pattern.operands):
        return None
    orders = [node.operands, node.operands[::-1]] if node.op.commutative else [node.operands]
    return next(filter(lambda one: one is not None, (_all(pattern.operands, each, bound) for each in orders)), None)


def _all(patterns: tuple[Pattern, ...], values: tuple[Value, ...], bound: Bound) -> Bound | None:
    for pattern, value in zip(patterns, values, strict=True):
        found = match(pattern, value, bound)
        if found is None:
            return None
        bound = found
    return bound


def _same(known: Value | float, value: Value) -> bool:
    """True if both are one value, or constants of one number: JAX writes a constant at every use."""
    if known is value or not isinstance(known, Value):
        return known is value
    found = number_of(value, FLOATS)
    return found is not None and found == number_of(known, FLOATS) and known.type == value.type
