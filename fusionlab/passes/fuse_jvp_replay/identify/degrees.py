"""The degree of a program's values as polynomials of given ones, op by op: 1 is affine.

d . H d      2        H d      1        sin(d)      too high
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import reached
from fusionlab.hlo.view import Node, Value, free_values, reads

TOO_HIGH = 3
"""A degree that is too high: of a product d . H d it is 2, of rows H d it is 1."""


def degrees(nodes: Sequence[Node], given: Mapping[Value, int]) -> dict[Value, int]:
    """The degree of each value that depends on ``given`` ones, as a polynomial of what these are polynomials of, op by
    op; ``TOO_HIGH`` of others. Those given have the degrees that are given."""
    found = dict(given)
    for node in nodes:
        if given.keys().isdisjoint(node.results):
            found.update(degrees_of(node, found))
    return found


def degrees_of(node: Node, found: Mapping[Value, int]) -> dict[Value, int]:
    """The degrees of the results of ``node`` that depend on values of which ``found`` has the degrees."""
    read = [found[value] for value in reads(node) if value in found]
    if not read:
        return {}
    if node.op.control_flow:
        return _of_regions(node, found)
    if node.op is ops.OPTIMIZATION_BARRIER:
        return {r: found[o] for o, r in zip(node.operands, node.results, strict=True) if o in found}
    degree = sum(found.get(o, 0) for o in node.operands) if node.op.derivative == "product" else max(read)
    if not is_multilinear(node, found):
        degree = TOO_HIGH
    return dict.fromkeys(node.results, min(degree, TOO_HIGH))


def _of_regions(node: Node, found: Mapping[Value, int]) -> dict[Value, int]:
    """The degrees of the results of a loop or branch that depend on directions."""
    outside = {v: found[v] for region in node.regions for v in free_values(region) if v in found}
    if node.op is not ops.WHILE:
        if node.operands[0] in found:
            return dict.fromkeys(node.results, TOO_HIGH)
        inner = [(degrees(region.nodes, outside), region.returns) for region in node.regions]
        every = (max(of.get(returns[i], 0) for of, returns in inner) for i in range(len(node.results)))
        return {value: degree for value, degree in zip(node.results, every, strict=True) if degree}
    condition, body = node.regions
    carried = {i: found[value] for i, value in enumerate(node.operands) if value in found}
    while True:  # until no trip has higher degrees
        of = degrees(body.nodes, {**outside, **{body.arguments[i]: degree for i, degree in carried.items()}})
        returned = {i: of[value] for i, value in enumerate(body.returns) if value in of}
        more = {i: max(carried.get(i, 0), returned.get(i, 0)) for i in {**carried, **returned}}
        if more == carried:
            break
        carried = more
    tested = reached(condition, [*(condition.arguments[i] for i in carried), *outside])
    if condition.returns[0] in tested:
        carried = dict.fromkeys(carried, TOO_HIGH)
    return {node.results[i]: degree for i, degree in carried.items()}


def is_multilinear(node: Node, directed: Collection[Value]) -> bool:
    """True if the results of ``node`` are affine in each of its operands that are ``directed``."""
    if node.op is ops.SELECT or node.family == "triangular-solve":
        return node.operands[0] not in directed
    if node.op is ops.DIVIDE:
        return node.operands[1] not in directed
    if node.op in (ops.REDUCE, ops.REDUCE_WINDOW):
        return combiner(node.regions[0]) == "add"
    if node.op is ops.SCATTER:
        region = node.regions[0]
        return combiner(region) == "add" or region.returns == (region.arguments[-1],)
    if not all(value.dtype in ops.INEXACT for value in node.results):
        return False
    return node.op.derivative in ("linear", "product")
