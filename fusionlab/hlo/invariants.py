"""Loop-invariant computations: those of a loop's body that do not depend on any value that changes between trips.

The one definition: the inventory of replays reports these nodes, and ``licm`` moves them.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from jaxlib.mlir import ir

from fusionlab.hlo import ops
from fusionlab.hlo.contents import inner_operations
from fusionlab.hlo.loops import Invariant, Loop
from fusionlab.hlo.view import Node, Value, free_values, reads


def invariant_nodes(loop: Loop) -> list[Node]:
    """Nodes of the body that compute something from invariant values only, and the views that these need.

    A loop or branch in the body is one node. Ops that only create or view data, or follow from constants alone, do
    not count: XLA folds them, or makes them inside a fusion. Nodes with an effect stay where they are.
    """
    body = loop.body
    varying = {a for i, a in enumerate(body.arguments) if not isinstance(loop.roles[i], Invariant)}
    invariant = []
    for node in body.nodes:
        if varying.isdisjoint(reads(node)) and not has_effect(node):
            invariant.append(node)
        else:
            varying.update(node.results)
    constants = constants_of(loop)
    wanted: set[Value] = set()
    found = []
    for node in reversed(invariant):
        if not only_makes_data(node, constants) or not wanted.isdisjoint(node.results):
            found.append(node)
            wanted.update(reads(node))
    return found[::-1]


def only_makes_data(node: Node, constants: set[Value]) -> bool:
    """True for views, and anything computed from ``constants`` alone (XLA folds it, or makes it inside a fusion)."""
    return _makes_data(node) or constants.issuperset(node.results)


def constants_of(loop: Loop) -> set[Value]:
    """Values of a trip that are computed from constants alone, carried or captured ones too."""
    body = loop.body
    carried = [(a, loop.node.operands[i]) for i, a in enumerate(body.arguments) if isinstance(loop.roles[i], Invariant)]
    given = {argument for argument, operand in carried if _views_constants(operand)}
    return constant_values(body.nodes, given | set(filter(_views_constants, free_values(body))))


def _views_constants(value: Value) -> bool:
    node = value.producer
    return node is not None and _makes_data(node) and all(map(_views_constants, node.operands))


def _makes_data(node: Node) -> bool:
    return node.op.source or node.op.strided or node.op is ops.CONVERT


def constant_values(nodes: list[Node], given: Collection[Value] = ()) -> set[Value]:
    """Values that are computed from constants and ``given`` ones alone, which are among them."""
    found = set(given)
    for node in nodes:
        read = reads(node)
        if node.op.source or (read and found.issuperset(read)):
            found.update(node.results)
    return found


def has_effect(node: Node) -> bool:
    """True if ``node`` does more than return its results."""
    if node.op.control_flow:
        return any(has_effect(inner) for region in node.regions for inner in region.walk())
    if node.op is ops.CUSTOM_CALL and "has_side_effect" in node.attributes:
        return bool(node.attributes["has_side_effect"].value)
    return node.op.effect


def has_effect_inside(operation: ir.Operation, functions: Mapping[str, ir.Operation]) -> bool:
    """``has_effect`` of an operation with all that it runs; ``functions`` are those that it may call, by name."""
    for one in (operation, *inner_operations(operation)):
        attributes = one.attributes
        if one.name == ops.CUSTOM_CALL.name and "has_side_effect" in attributes:
            if attributes["has_side_effect"].value:
                return True
        elif one.name == "func.call":
            if has_effect_inside(functions[attributes["callee"].value], functions):
                return True
        elif ops.op_of(one.name).effect:
            return True
    return False
