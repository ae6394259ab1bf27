"""The logistic function, which JAX may lower as 1 / (1 + exp(-x)), and a derivative of it that does not overflow.

Where exp(-x) is infinite the quotient is 0, but its derivative by its parts is infinity over infinity. The derivative
of the logistic function is y (1 - y).
"""

from __future__ import annotations

from fusionlab.hlo.constants import filling
from fusionlab.hlo.flat import Node, Value


def logistic_argument(node: Node) -> Value | None:
    """x, if ``node`` is the division of 1 / (1 + exp(-x))."""
    if node.name != "stablehlo.divide" or not _is_one(node.operands[0]):
        return None
    total = node.operands[1].producer
    if total is None or total.name != "stablehlo.add":
        return None
    terms = [value for value in total.operands if not _is_one(value)]
    power = terms[0].producer if len(terms) == 1 else None
    if power is None or power.name != "stablehlo.exponential":
        return None
    negated = power.operands[0].producer
    return negated.operands[0] if negated is not None and negated.name == "stablehlo.negate" else None


def _is_one(value: Value) -> bool:
    array = filling(value)
    return array is not None and bool((array == 1).all())
