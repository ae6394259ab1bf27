"""Programs that treat all walkers alike, viewed at fewer of them: the same function of every walker, less often.

    x [1024, 4, 3] --dot_general--> [1024, 4, 64] --reduce--> [1024]      at 2 walkers: [2, 4, 3] --> [2, 4, 64] --> [2]

Walkers are the leading axis of all results. Every op on the way has to keep them apart and in their places: no sum over
walkers, no permutation, no walker index, no constant that differs between them. Then each walker's results are the same
function of that walker's part of the arguments, and a program at 2 walkers has that function. Where an op is not known
to do so, the view is left as it is.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import networkx as nx

from fusionlab.hlo import ops
from fusionlab.hlo.view import FunctionView, Node, Value, constant_array
from fusionlab.hlo.walker_axes import Marks, linked_axes, resized_shapes, walker_axes

WALKERS = 2


def narrow(functions: Sequence[FunctionView], walkers: int = WALKERS) -> bool:
    """Resize the views, in place, to ``walkers`` walkers; False, with nothing changed, if one of them cannot be.

    All of them must have their walkers in the same axes of the same arguments. The module of a view is unchanged.
    """
    marks = [_marks(function) for function in functions]
    places = [
        [
            (position, value.type.shape if value.is_array else None, found.get(value))
            for position, value in enumerate(function.arguments)
        ]
        for function, found in zip(functions, marks, strict=True)
    ]
    if not all(marks) or any(other != places[0] for other in places):
        return False
    many = functions[0].returns[0].type.shape[0]
    if many <= walkers:
        return False
    for function, found in zip(functions, marks, strict=True):
        shapes = resized_shapes(found, many, walkers)
        for node in function.walk():
            if node.op in _SIZES and node.operands[0] in found:
                whole, few = node.operands[0].type.shape, shapes[node.operands[0]]
                sizes = _integers(node, "slice_sizes")
                resized = [now if size == all_ else size for size, all_, now in zip(sizes, whole, few, strict=True)]
                node.attributes = {**node.attributes, "slice_sizes": resized}
            if node.op is ops.CONSTANT and node.results[0] in found and not _is_splat(node):
                shape = shapes[node.results[0]]
                node.attributes = {**node.attributes, "value": constant_array(node)[tuple(map(slice, shape))]}
        for value, shape in shapes.items():
            value.type = replace(value.type, shape=shape)
    return True


def _marks(function: FunctionView) -> Marks:
    """The axis of walkers of every value that has one; empty if walkers are not known to be treated alike."""
    shapes = [value.type.shape if value.is_array else None for value in function.returns]
    if not shapes or not all(shapes) or len({shape[0] for shape in shapes if shape}) != 1:
        return {}
    marks = walker_axes(function, [(value, 0) for value in function.returns])
    many = function.returns[0].type.shape[0]
    if any(len(axes) != 1 or value.type.shape[min(axes)] != many for value, axes in marks.items()):
        return {}
    axes = {value: min(of) for value, of in marks.items()}
    return marks if all(_keeps_apart(axes, node) for node in function.walk()) else {}


Axes = Mapping[Value, int]
"""The axis of walkers of each value that has one."""


def _keeps_apart(axes: Axes, node: Node) -> bool:
    """True if ``node`` computes each walker from the same walker alone, or if nothing in it counts walkers."""
    if not any(value in axes for value in (*node.operands, *node.results)):
        return True
    if node.op.control_flow:  # carried and selected values have the axes of the results
        return True
    if node.op is ops.OPTIMIZATION_BARRIER:
        return all(
            axes.get(value) == axes.get(result) for value, result in zip(node.operands, node.results, strict=True)
        )
    if any(value in axes for value in node.operands) and not all(value in axes for value in node.results):
        return False
    if node.op in _RULES:
        return _RULES[node.op](axes, node)
    return node.family == "elementwise" and _in_one_place(axes, node.operands, node)


def _in_one_place(axes: Axes, values: Sequence[Value], node: Node) -> bool:
    """True if ``values``, except scalars, have their walkers in the axis of the first result."""
    return all(axes.get(value) == axes[node.results[0]] for value in values if value.type.shape)


def _not_along(attribute: str) -> Callable[[Axes, Node], bool]:
    """The rule that walkers are not along the axes of an attribute, and all operands have them in one place."""

    def rule(axes: Axes, node: Node) -> bool:
        given = node.attributes[attribute]
        along = [given.value] if hasattr(given, "value") else _integers(node, attribute)
        at = {axes[value] for value in node.operands if value in axes}
        return len(at) == 1 and at.isdisjoint(along)

    return rule


def _integers(node: Node, name: str) -> list[int]:
    return [int(element) for element in node.attributes[name]]


def _constant(axes: Axes, node: Node) -> bool:
    """True if it is the same for all walkers. A splat has no elements to cut; some types can only be read whole."""
    if node.results[0].type.dtype.startswith(("bf16", "complex")):
        return False
    array = constant_array(node)
    return _is_splat(node) or bool((array == array.take([0], axes[node.results[0]])).all())


def _is_splat(node: Node) -> bool:
    return bool(getattr(node.attributes["value"], "is_splat", False))


def _iota(axes: Axes, node: Node) -> bool:
    return axes[node.results[0]] != int(node.attributes["iota_dimension"].value)


def _linked(axes: Axes, node: Node) -> bool:
    """True if the walkers of operands and results are one axis, which ``walker_axes`` follows through the op."""
    marked = {(value, axes[value]) for value in (*node.operands, *node.results) if value in axes}
    graph = nx.Graph()
    graph.add_nodes_from(marked)
    graph.add_edges_from(pair for pair in linked_axes(node) if marked.issuperset(pair))
    return bool(nx.is_connected(graph))


def _moved(axes: Axes, node: Node) -> bool:
    """True if an axis of one element per walker has them in the same order on both sides."""
    return node.operands[0] in axes


def _pad(axes: Axes, node: Node) -> bool:
    operand = node.operands[0]
    at = axes.get(operand)
    names = ("edge_padding_low", "edge_padding_high", "interior_padding")
    return at is not None and all(_integers(node, name)[at] == 0 for name in names)


def _sliced(axes: Axes, node: Node) -> bool:
    """True if the axis of walkers is sliced whole, whatever the index is."""
    return node.operands[0] in axes and _in_one_place(axes, node.operands[:1], node)


def _updated(axes: Axes, node: Node) -> bool:
    return _in_one_place(axes, node.operands[:2], node)


def _gather(axes: Axes, node: Node) -> bool:
    """True also for a table that all walkers read, each at its own indices."""
    return _distinct(node) and any(value in axes for value in node.operands) and _linked(axes, node)


def _scatter(axes: Axes, node: Node) -> bool:
    given = (node.operands[0], node.operands[-1])
    return _distinct(node) and len(node.operands) == 3 and all(value in axes for value in given) and _linked(axes, node)


def _distinct(node: Node) -> bool:
    """True if no value is an operand twice: it would link axes that the op does not."""
    return len(set(node.operands)) == len(node.operands)


def _call(axes: Axes, node: Node) -> bool:
    """True for linear algebra whose matrix or vector axes do not count walkers."""
    if node.family not in ("factorisation", "triangular-solve"):
        return False
    inner = 1 if "permutation" in node.call_target else 2
    batched = all(axes.get(value) == 0 for value in (*node.operands, *node.results) if value.type.shape)
    return batched and len(node.operands[0].type.shape) > inner


_SIZES = (ops.DYNAMIC_SLICE, ops.GATHER)
_RULES: dict[ops.OpDef, Callable[[Axes, Node], bool]] = {
    ops.BROADCAST_IN_DIM: _linked,
    ops.CONCATENATE: _not_along("dimension"),
    ops.CONSTANT: _constant,
    ops.CUSTOM_CALL: _call,
    ops.DOT_GENERAL: _linked,
    ops.DYNAMIC_SLICE: _sliced,
    ops.DYNAMIC_UPDATE_SLICE: _updated,
    ops.GATHER: _gather,
    ops.IOTA: _iota,
    ops.PAD: _pad,
    ops.REDUCE: _linked,
    ops.RESHAPE: _moved,
    ops.REVERSE: _not_along("dimensions"),
    ops.SCATTER: _scatter,
    ops.SLICE: _sliced,
    ops.SORT: _not_along("dimension"),
    ops.TRANSPOSE: _moved,
    ops.TRIANGULAR_SOLVE: _call,
}
