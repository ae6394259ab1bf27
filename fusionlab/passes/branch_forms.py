"""What the text of one op says of its branches: reductions to the largest of several, equality with it, signs."""

from __future__ import annotations

from fusionlab.codegen.forward_laplacian.families import REPEATS, reduced_axes
from fusionlab.codegen.raising_rules.calls import call_target
from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.hlo.enumerations import direction_of
from fusionlab.hlo.flat import Node, Value
from fusionlab.passes.sums_over_directions import is_float

_EXTREMES = ("maximum", "minimum")


def is_extreme(node: Node) -> bool:
    """Whether it is the largest or smallest of several floats."""
    if node.name != "stablehlo.reduce" or len(node.operands) != 2 or not is_float(node.results[0]):
        return False
    return combiner(node.regions[0]) in _EXTREMES and not of_one(node)


def is_equality(node: Node) -> bool:
    """Whether a ``compare`` asks if its operands are equal, or if they are not."""
    return direction_of(node) in ("EQ", "NE")


def extreme_asked_for(node: Node) -> Value | None:
    """The reduction to the largest or smallest of the floats that ``node`` compares it with for equality."""
    if not is_float(node.operands[0]) or direction_of(node) != "EQ":
        return None
    first, second = node.operands
    for one, other in ((first, second), (second, first)):
        found = moved_from(other)
        made = found.producer
        if made is None or made.name != "stablehlo.reduce" or len(made.operands) != 2:
            continue
        if moved_from(made.operands[0]) is moved_from(one) and combiner(made.regions[0]) in _EXTREMES:
            return found
    return None


def moved_from(value: Value) -> Value:
    """What ``value`` was made of by moving and repeating elements alone; itself where it was not."""
    while (node := value.producer) is not None and node.name in REPEATS:
        value = node.operands[0]
    return value


def is_sign(node: Node) -> bool:
    """Whether it is the sign of floats."""
    return node.name == "stablehlo.sign" and is_float(node.operands[0])


def numbers_of(node: Node) -> tuple[Value, ...]:
    """The results of ``node`` but for what a factorisation says of its arguments, which is nothing."""
    factorises = node.name == "stablehlo.custom_call" and "getrf" in call_target(node)
    return node.results[:2] if factorises else node.results


def of_one(node: Node) -> bool:
    """Whether a reduction has one element to reduce."""
    shape = node.operands[0].type.shape
    return node.name == "stablehlo.reduce" and all(shape[axis] == 1 for axis in reduced_axes(node))


def adds_or_multiplies(node: Node) -> bool:
    """Whether a reduction is analytic."""
    return combines(node) and combiner(node.regions[0]) in ("add", "multiply", "second")


def combines(node: Node) -> bool:
    """Whether one op combines the elements of one array."""
    return bool(node.regions) and combiner(node.regions[0]) != "custom"
