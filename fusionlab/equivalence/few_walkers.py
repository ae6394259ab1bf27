"""Programs that treat all walkers alike, at another number of them: the same function of every walker.

    x [1024, 4, 3] --dot_general--> [1024, 4, 64] --reduce--> [1024]      at 2 walkers: [2, 4, 3] --> [2, 4, 64] --> [2]

Walkers are a leading axis of all results, or several (molecules, states, walkers). Every op on the way has to keep them
apart and in their places: no sum over walkers, no permutation, no walker index, no constant that differs between them.
Then each walker's results are the same function of that walker's part of the arguments, and a program at 2 walkers has
that function, as has one at more walkers than there were. An axis along which an op is not known to do so keeps its
extent.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import networkx as nx
import numpy as np
from jaxlib.mlir import ir

from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.ops import NUMPY
from fusionlab.hlo.program import Program, rewritten
from fusionlab.hlo.resize import resize, view_of_copies
from fusionlab.hlo.view import FunctionView, Node, Value, constant_array, walk
from fusionlab.hlo.walker_axes import Marks, Shapes, linked_axes, resized_shapes, walker_axes

WALKERS = 2
"""The walkers of an exact comparison."""
CHECKED_WALKERS = 16
"""The walkers of a comparison in floating point, unless others are asked for."""


@dataclass(frozen=True)
class Resized:
    """``programs`` at ``walkers`` walkers; ``axes`` are the axes of each argument that count them."""

    programs: tuple[Program, ...]
    walkers: int
    axes: tuple[frozenset[int], ...]

    def part(self, arrays: Sequence[np.ndarray]) -> tuple[np.ndarray, ...]:
        """The arguments of the first walkers among ``arrays``, those of all walkers."""
        return tuple(
            array[tuple(slice(self.walkers if axis in axes else None) for axis in range(array.ndim))]
            for array, axes in zip(arrays, self.axes, strict=True)
        )


def resized(programs: Sequence[Program], walkers: int = WALKERS, *, grow: bool = False) -> Resized | None:
    """``programs`` of one signature at ``walkers`` walkers (along each axis of more); None where none can be resized.

    An axis is resized if all of them treat what lies along it alike, and have it in the same places of the arguments.
    None is that is divided over several devices. With ``grow``, the first axis of all results is also resized where it
    is shorter.
    """
    if any(program.has_collectives for program in programs):
        return None
    views = [view_of_copies(program.parse()) for program in programs]
    found = [_axes_of_walkers(view, walkers, grow) for view in views]
    common = list(itertools.takewhile(lambda axis: _agree(views, found, axis), sorted(found[0])))
    if not common:
        return None
    made = []
    for program, view, axes in zip(programs, views, found, strict=True):
        shapes: Shapes = {}
        for axis in common:
            shapes = resized_shapes(axes[axis], view.returns[0].type.shape[axis], walkers, shapes)
        try:
            resize(view, shapes)
        except ir.MLIRError:  # MLIR's verifier: an op whose axes are not those of ``walker_axes``
            return None
        made.append(rewritten(program, view.module))
    places = [_places(views[0], found[0][axis]) for axis in common]
    return Resized(tuple(made), walkers, tuple(map(frozenset().union, *places)))


def _agree(views: Sequence[FunctionView], found: Sequence[Mapping[int, Marks]], axis: int) -> bool:
    """True if ``axis`` of the results is found in all ``views``, and in the same places of their arguments."""
    if not all(axis in each for each in found):
        return False
    places = [_places(view, each[axis]) for view, each in zip(views, found, strict=True)]
    return all(other == places[0] for other in places)


def _places(function: FunctionView, marks: Marks) -> list[set[int]]:
    """The marked axes of each argument."""
    return [marks.get(value, set()) for value in function.arguments]


def _axes_of_walkers(function: FunctionView, walkers: int, grow: bool) -> dict[int, Marks]:
    """Of each axis longer than ``walkers`` the axis of every value that has it: of the leading axes of all results, up
    to the first along which not everything is treated alike. With ``grow``, also of the first axis if it is shorter."""
    shapes = [value.type.shape if value.is_array else () for value in function.returns]
    found: dict[int, Marks] = {}
    for axis, extents in enumerate(zip(*shapes, strict=False)):
        if len(set(extents)) > 1:
            break
        other = extents[0] > walkers or (grow and axis == 0 and 0 < extents[0] < walkers)
        if other and not found.setdefault(axis, _marks(function, axis)):
            break
    return {axis: marks for axis, marks in found.items() if marks}


def _marks(function: FunctionView, axis: int) -> Marks:
    """The axis of every value that is ``axis`` of the results; empty if what lies along it may be told apart.

    What no result needs, as a mean over walkers beside energies that are returned, may mix them.
    """
    marks = walker_axes(function, [(value, axis) for value in function.returns])
    many = function.returns[0].type.shape[axis]
    needed = live_nodes(function.nodes, function.arguments, function.returns)
    if any(len(axes) != 1 or value.type.shape[min(axes)] != many for value, axes in marks.items()):
        return {}
    axes = {value: min(of) for value, of in marks.items()}
    return marks if all(_keeps_apart(axes, node) for node in walk(needed)) else {}


Axes = Mapping[Value, int]
"""The axis of walkers of each value that has one."""


def _keeps_apart(axes: Axes, node: Node) -> bool:
    """True if ``node`` computes each walker from the same walker alone, or if nothing in it counts walkers."""
    if not any(value in axes for value in (*node.operands, *node.results)):
        return True
    if node.op.control_flow:  # carried and selected values have the axes of the results
        return all(axes.get(one) == axes.get(other) for (one, _), (other, _) in linked_axes(node))
    if node.op is ops.OPTIMIZATION_BARRIER:
        return all(
            axes.get(value) == axes.get(result) for value, result in zip(node.operands, node.results, strict=True)
        )
    if any(value in axes for value in node.operands) and not all(value in axes for value in node.results):
        return False
    if node.op in _RULES:
        return _RULES[node.op](axes, node)
    ranks = {len(value.type.shape) for value in (*node.operands, *node.results)} - {0}
    return node.family == "elementwise" and len(ranks) == 1 and _in_one_place(axes, node.operands, node)


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
    """True if it is the same for all walkers."""
    if node.results[0].dtype not in NUMPY:  # the bindings cannot read it
        return False
    if _is_splat(node):
        return True
    array = constant_array(node)
    return bool((array == array.take([0], axes[node.results[0]])).all())


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
    of = {axes.get(value) for value in (*node.operands, *node.results) if value.type.shape}
    return len(of) == 1 and (axis := of.pop()) is not None and axis < len(node.operands[0].type.shape) - inner


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
