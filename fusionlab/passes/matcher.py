"""A matcher small enough to read in a minute: patterns of operations, and the walk that rewrites what they match.

op("divide", "x", number("c"))      x is any value, c a constant all of whose elements are one number
op("add", "x", op("negate", "x"))   one name is one value; add, multiply and their like match in both orders
op("multiply", 1.0, "x")            that number
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fusionlab.errors import InputError
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.flat import Node, Value
from fusionlab.hlo.program import Program
from fusionlab.passes.block_rewrite import Change, inline_in_blocks
from fusionlab.passes.contract import Pass, Result, Setting

__all__ = ["Number", "Op", "match", "number", "op", "rewrite_matches"]

COMMUTATIVE = frozenset({"add", "multiply", "maximum", "minimum", "and", "or", "xor"})


@dataclass(frozen=True)
class Number:
    """Any constant whose elements are all the same number, which ``name`` is bound to."""

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
    """A pattern for a constant whose elements are all the same number."""
    return Number(name)


def match(pattern: Pattern, value: Value, bound: Bound | None = None) -> Bound | None:
    """What the names of ``pattern`` are where it matches ``value``, else None. ``bound`` is what they are already."""
    bound = bound or {}
    if isinstance(pattern, str):
        return bound | {pattern: value} if bound.get(pattern, value) is value else None
    if isinstance(pattern, Number):
        found = number_of(value)
        return None if found is None or bound.get(pattern.name, found) != found else bound | {pattern.name: found}
    if not isinstance(pattern, Op):
        return bound if number_of(value) == pattern else None
    node = value.producer
    if node is None or node.name != f"stablehlo.{pattern.name}" or len(node.operands) != len(pattern.operands):
        return None
    orders = [node.operands, node.operands[::-1]] if pattern.name in COMMUTATIVE else [node.operands]
    return next(filter(lambda one: one is not None, (_all(pattern.operands, each, bound) for each in orders)), None)


def _all(patterns: tuple[Pattern, ...], values: tuple[Value, ...], bound: Bound) -> Bound | None:
    for pattern, value in zip(patterns, values, strict=True):
        found = match(pattern, value, bound)
        if found is None:
            return None
        bound = found
    return bound


def rewrite_matches(
    program: Program, pass_: Pass, setting: Setting, pattern: Op, replacement: Callable[..., Any], *, what: str
) -> Result:
    """Put ``replacement(**names)`` in the place of every operation that ``pattern`` matches, wherever it stands.

    The replacement is a JAX function of what the pattern's names are bound to, arrays and Python numbers, and gives an
    array of the type that the operation has. The event is "3 ``what``". Operations inside the match stay where others
    read them. InputError where what is put in matches again, for ever; ValueError where it has another type.
    """
    left = program.ops

    def change(block: Block, node: Node) -> Change | None:
        nonlocal left
        found = match(pattern, node.results[0]) if len(node.results) == 1 else None
        if found is None:
            return None
        if not left:
            raise InputError(f"what {pass_.name} puts in is matched again, for ever")
        left -= 1
        arrays = {name: one for name, one in found.items() if isinstance(one, Value)}
        numbers = {name: one for name, one in found.items() if name not in arrays}

        def replaced(*given: Any) -> tuple[Any]:
            return (replacement(**dict(zip(arrays, given, strict=True)), **numbers),)

        return [node], replaced, list(arrays.values())

    return inline_in_blocks(program, pass_, setting, change, there_is=f"{pattern.name} that matches", what=what)
