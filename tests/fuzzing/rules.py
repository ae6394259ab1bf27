"""Rewrite rules as text: ``"x - y -> either(x + -y, -(y - x))"``, tried on an ``Expression``.

Both sides are Python's expressions: ``+ - * / & | ~ < > <= >=``, and otherwise as an expression prints, ``op[detail]
(operands)``. A name is any expression, the same one wherever it stands again; ``(p := tanh(x))`` names a part, on the
right one that is shared. The names of ``CLASSES`` stand for any op of theirs, a number for a constant of the shape of
the whole; a detail is a name or, on the right, computed from one. ``either`` is one of its operands at random.
"""

from __future__ import annotations

import ast
import random
from collections.abc import Callable
from typing import Any

from tests.fuzzing.expressions import UNARY, Expression, constant, dot, reduction, transpose

Rewrite = Callable[[Expression, random.Random], Expression | None]

CLASSES: dict[str, tuple[str, ...]] = {
    "commutative": ("add", "mul", "max", "min", "and", "or"), "associative": ("add", "mul", "and", "or"),
    "linear": ("add", "sub"), "scaled": ("mul", "div"), "two": ("add", "sub", "mul", "div", "atan2"),
    "one": (*UNARY, "ipow", "power"), "odd": ("sin", "tan", "erf", "cbrt", "sign", "tanh"), "even": ("cos", "abs"),
    "positive": ("exp", "logistic"), "extreme": ("max", "min"),
}  # fmt: skip
_SIGNS: dict[type[ast.AST], str] = {
    ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.BitAnd: "and", ast.BitOr: "or",
    ast.USub: "neg", ast.Invert: "not", ast.Gt: "GT", ast.Lt: "LT", ast.GtE: "GE", ast.LtE: "LE",
}  # fmt: skip


def parsed(tree: ast.AST) -> Expression:
    """A side of a rule, of no shape; its details are code, and its names are of the op ``name``."""

    def made(op: str, *operands: ast.AST, detail: ast.AST | None = None) -> Expression:
        return Expression(op, tuple(map(parsed, operands)), (), ast.unparse(detail) if detail else None)

    match tree:
        case ast.Expression(inner):
            return parsed(inner)
        case ast.Name(name):
            return Expression("name", (), (), name)
        case ast.NamedExpr(name, inner):
            return made("named", inner, detail=name)
        case ast.Constant() | ast.UnaryOp(ast.USub(), ast.Constant()):
            return made("constant", detail=tree)
        case ast.BinOp(x, sign, y) | ast.Compare(x, [sign], [y]):
            return made(_SIGNS[type(sign)], x, y)
        case ast.UnaryOp(sign, x):
            return made(_SIGNS[type(sign)], x)
        case ast.Call(ast.Subscript(ast.Name(op), detail), operands):
            return made(op, *operands, detail=detail)
        case ast.Call(ast.Name(op), operands):
            return made(op, *operands)
    raise ValueError(ast.unparse(tree))


def matches(side: Expression, e: Expression, found: dict[str, Any]) -> bool:
    """Whether ``e`` is of the form ``side``; ``found`` is what its names, classes and details are."""
    if side.op == "name":
        return found.setdefault(side.detail, e) is e
    if side.op == "named":
        return found.setdefault(side.detail, e) is e and matches(side.operands[0], e, found)
    if e.op not in CLASSES.get(side.op, (side.op,)) or found.setdefault(side.op, e.op) != e.op:
        return False
    if side.detail is not None:
        known = found.setdefault(side.detail, e.detail) if side.detail.isidentifier() else eval(side.detail)
        if known != e.detail:
            return False
    return all(matches(part, operand, found) for part, operand in zip(side.operands, e.operands, strict=True))


def filled(side: Expression, found: dict[str, Any], shape: tuple[int, ...], choices: random.Random) -> Expression:
    """The expression of the form ``side`` with what was ``found``; its constants are of ``shape``."""
    if side.op == "name":
        return found[side.detail]
    if side.op == "either":
        return filled(choices.choice(side.operands), found, shape, choices)
    operands = tuple(filled(part, found, shape, choices) for part in side.operands)
    if side.op == "named":
        found[side.detail] = operands[0]
        return operands[0]
    op, detail = found.get(side.op, side.op), eval(side.detail, {}, found) if side.detail else None
    if op == "constant":
        return constant(float(detail), shape)
    if op == "dot":
        return dot(*operands, *(axis for (axis,) in detail))
    if op == "sum":
        return reduction(op, *operands, detail)
    if op == "transpose":
        return transpose(*operands)
    return Expression(op, operands, () if op in ("all", "any", "logdet") else operands[-1].shape, detail)


def side(text: str) -> Expression:
    return parsed(ast.parse(text.strip(), mode="eval"))


def rule(*texts: str, **functions: Callable[..., Expression | None]) -> Rewrite:
    """The first of the rules ``texts`` that fits, or else the function of (expression, choices, its operands) by op."""
    sides = [(side(left), side(right)) for left, right in (text.split(" -> ") for text in texts)]

    def rewrite(e: Expression, choices: random.Random) -> Expression | None:
        for left, right in sides:
            found: dict[str, Any] = {}
            if matches(left, e, found):
                return filled(right, found, e.shape, choices)
        return functions[e.op](e, choices, *e.operands) if e.op in functions else None

    return rewrite
