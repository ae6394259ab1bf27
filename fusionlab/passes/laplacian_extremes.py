"""Maxima and minima that only shift a value, and drop out of it.

    m = max_j x_j                                        F, with m taken for a constant:
    F = log sum_j exp(x_j - m) + m             -->           no comparison with m, no share of each x_j in m,
                                                             no sum of the rows of x by these shares

A logarithm of a sum of exponentials, and a softmax, are shifted by their maximum against overflow; the shift drops out
of the result, whatever m is, and so out of all derivatives. Codes say so (``stop_gradient``), compiled programs do not.

Here it is proved from the program's text, for any m: a value that is computed from m is followed as v = v_0 + d m (a
*logarithm*) or v = v_0 exp(d m) (a *weight*), with v_0 free of m and one number d for all elements. exp makes weights
of logarithms and log logarithms of weights; sums add the d of logarithms, products and quotients those of weights; sums
of weights, and contractions with what is free of m, keep them. Where d becomes 0, m has dropped out. Anything else that
reads such a value (a comparison, a clamp, another function) may depend on m, and then m keeps its derivatives. Nothing
is evaluated: where a few points are all on one branch, they say nothing of m on the other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.forward_laplacian.families import REPEATS, reduced_axes
from fusionlab.codegen.forward_laplacian.movement import Mover
from fusionlab.codegen.raising import live_nodes
from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.hlo.constants import FLOATS, filling, least_of
from fusionlab.hlo.enumerations import direction_of
from fusionlab.hlo.flat import FlatFunction, Node, Value, reads
from fusionlab.passes.laplacian_finding import Laplacian


@dataclass(frozen=True, eq=False)
class _Shifted:
    """How a value depends on m: a ``logarithm`` v_0 + degree m, a ``weight`` v_0 exp(degree m), the ``size`` |m|, or
    the answer whether m is ``finite`` or ``infinite``. ``places`` says which element of m an element has to do with:
    one walker wide, extent 1 on axes along which it does not vary. ``itself``: it is m, at most moved."""

    kind: Literal["logarithm", "weight", "size", "finite", "infinite"]
    degree: int
    places: np.ndarray
    itself: bool = False


def shifts(flat: FlatFunction, found: Laplacian) -> tuple[Value, ...]:
    """The reductions by maximum or minimum between x and the value F that drop out of F."""
    cone = live_nodes(flat.nodes, [*flat.arguments, found.x], [found.output])
    extremes = [node.results[0] for node in cone if is_extreme(node)]
    return tuple(extreme for extreme in extremes if _drops_out(extreme, cone, found))


def is_extreme(node: Node) -> bool:
    """Whether ``node`` is the largest or the smallest element of one array along some axes."""
    if node.name != "stablehlo.reduce" or len(node.operands) != 2:
        return False
    return least_of(combiner(node.regions[0]), node.operands[1])


def _drops_out(extreme: Value, cone: Iterable[Node], found: Laplacian) -> bool:
    """Whether ``found.output`` depends on ``extreme`` by nothing but shifts that cancel."""
    mover = Mover(found.one)
    shape = found.one.shape(extreme)
    places = np.arange(int(np.prod(shape)), dtype=np.int32).reshape(shape)
    shifted = {extreme: _Shifted("logarithm", 1, places, itself=True)}
    for node in cone:
        if not any(value in shifted for value in reads(node)):
            continue
        if (node.regions and node.name != "stablehlo.reduce") or _joins_walkers(node, shifted, found):
            return False
        after = _after(node, shifted, mover)
        if after is None:
            return False
        if after.degree:
            shifted[node.results[0]] = after
    return found.output not in shifted


def _joins_walkers(node: Node, shifted: Mapping[Value, _Shifted], found: Laplacian) -> bool:
    """Whether a shifted value of several walkers is in one element of the result: each walker has an m of its own."""
    if len(found.axes.get(node.results[0], ())) > found.walker_axes:
        return True
    if node.name not in ("stablehlo.reduce", "stablehlo.dot_general"):
        return False
    operands = [value for value in node.operands if value in shifted]
    return any(len(found.axes.get(v, ())) > len(found.axes.get(node.results[0], ())) for v in operands)


def _after(node: Node, shifted: Mapping[Value, _Shifted], mover: Mover) -> _Shifted | None:
    """What ``node`` makes of shifted operands, of degree 0 where m has dropped out; None if that is not known."""
    name = node.name.removeprefix("stablehlo.")
    of = [shifted.get(value) for value in node.operands]
    known = [one for one in of if one is not None]
    first = known[0]
    if node.name in REPEATS:
        moved = mover.move(node, {node.operands[0]: first.places}, {})
        return None if moved is None else replace(first, places=moved)
    if name == "select":
        return _selected(of)
    if first.kind in _NEGATED:
        return _answered(name, of)
    if name == "compare":
        return _compared(node, first, of)
    if name == "is_finite":
        return replace(first, kind="finite", itself=False) if first.itself else None
    if name == "abs" and first.itself:
        return replace(first, kind="size", itself=False)
    if first.kind == "size" or not all(_same_places(first, one, node, mover) for one in known):
        return None
    if name in ("maximum", "minimum"):
        return first if any(least_of(name, value) for value in node.operands) else None
    if name == "convert":
        return first if node.results[0].type.dtype in FLOATS else None
    if name in _UNARY:
        kind, made = _UNARY[name]
        return replace(first, kind=made, itself=False) if first.kind == kind else None
    if name == "reduce":
        return _summed(node, first) if of[1] is None else None
    if name == "dot_general":
        return _contracted(node, of, mover)
    return _combined(name, of)


_UNARY: dict[str, tuple[str, Literal["logarithm", "weight"]]] = {
    "exponential": ("logarithm", "weight"),
    "log": ("weight", "logarithm"),
    "abs": ("weight", "weight"),
}
"""Functions of one operand: the kind that they take, and the kind that they make of it."""
_NEGATED: dict[str, Literal["finite", "infinite"]] = {"finite": "infinite", "infinite": "finite"}


def _combined(name: str, of: Sequence[_Shifted | None]) -> _Shifted | None:
    """Elementwise sums of logarithms, and products and quotients of weights."""
    if name == "negate":
        one = of[0]
        assert one is not None
        return replace(one, degree=-one.degree, itself=False) if one.kind == "logarithm" else one
    kinds = {one.kind for one in of if one is not None}
    degrees = [0 if one is None else one.degree for one in of]
    first = next(one for one in of if one is not None)
    if len(kinds) > 1 or len(degrees) != 2:
        return None
    if first.kind == "logarithm" and name in ("add", "subtract"):
        degree = degrees[0] + (degrees[1] if name == "add" else -degrees[1])
        return replace(first, degree=degree, itself=False)
    if first.kind == "weight" and name in ("multiply", "divide"):
        return replace(first, degree=degrees[0] + (degrees[1] if name == "multiply" else -degrees[1]))
    if first.kind == "weight" and name in ("add", "subtract") and degrees[0] == degrees[1]:
        return first
    return None


def _selected(of: Sequence[_Shifted | None]) -> _Shifted | None:
    """A choice between weights, or by whether m is finite: it is, wherever F has a derivative."""
    answer, first, second = of
    if answer is not None:
        if answer.kind not in _NEGATED:
            return None
        chosen = first if answer.kind == "finite" else second
        return replace(answer, kind="logarithm", degree=0) if chosen is None else chosen
    if first is None or second is None or (first.kind, first.degree) != (second.kind, second.degree):
        return None
    return replace(first, itself=False) if np.array_equal(first.places, second.places) else None


def _answered(name: str, of: Sequence[_Shifted | None]) -> _Shifted | None:
    """What answers of one kind, and nothing else, say together."""
    first = of[0]
    if first is None or any(one is None or one.kind != first.kind for one in of):
        return None
    if name == "not":
        return replace(first, kind=_NEGATED[first.kind])
    return first if name in ("and", "or") else None


def _summed(node: Node, one: _Shifted) -> _Shifted | None:
    """A sum of weights over axes along which m does not vary."""
    axes = reduced_axes(node)
    start = filling(node.operands[1])
    if one.kind != "weight" or combiner(node.regions[0]) != "add" or start is None or start.any():
        return None
    if any(one.places.shape[axis] > 1 for axis in axes):
        return None
    return replace(one, places=np.squeeze(one.places, axes))


def _contracted(node: Node, of: Sequence[_Shifted | None], mover: Mover) -> _Shifted | None:
    """A contraction of weights with what is free of m, over axes along which m does not vary."""
    side = 0 if of[0] is not None else 1
    one, other = of[side], of[1 - side]
    if one is None or other is not None or one.kind != "weight":
        return None
    numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
    batch = (list(numbers.lhs_batching_dimensions), list(numbers.rhs_batching_dimensions))[side]
    summed = (list(numbers.lhs_contracting_dimensions), list(numbers.rhs_contracting_dimensions))[side]
    if any(one.places.shape[axis] > 1 for axis in summed):
        return None
    free = [axis for axis in range(one.places.ndim) if axis not in {*batch, *summed}]
    places = one.places.transpose([*batch, *free, *summed])
    head, tail = places.shape[: len(batch)], places.shape[len(batch) : len(batch) + len(free)]
    others = (1,) * (len(node.results[0].type.shape) - len(head) - len(tail))
    return replace(one, places=places.reshape((*head, *tail, *others) if side == 0 else (*head, *others, *tail)))


def _same_places(first: _Shifted, other: _Shifted, node: Node, mover: Mover) -> bool:
    """Whether two operands of an elementwise ``node`` have to do with the same element of m, element by element."""
    if first is other:
        return True
    shape = mover.one.shape(node.results[0])
    try:
        return bool((np.broadcast_to(first.places, shape) == np.broadcast_to(other.places, shape)).all())
    except ValueError:  # operands of other shapes than the result: not an elementwise op
        return False


def _compared(node: Node, first: _Shifted, of: Sequence[_Shifted | None]) -> _Shifted | None:
    """Whether |m| equals infinity, or does not."""
    direction = direction_of(node)
    other = next((value for value, one in zip(node.operands, of, strict=True) if one is None), None)
    array = None if other is None else filling(other)
    if first.kind != "size" or array is None or not np.isinf(array).all():
        return None
    if direction == "EQ":
        return replace(first, kind="infinite")
    return replace(first, kind="finite") if direction == "NE" else None
