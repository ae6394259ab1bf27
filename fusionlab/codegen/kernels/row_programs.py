"""A row program: layers and elementwise ops that treat every row alike, so that one kernel can do a block of rows.

A value ``[..., features]`` has as many rows as its leading axes have elements. A layer contracts the features with a
matrix; elementwise ops keep rows and features; nothing mixes rows. Inputs of a row program are views of arrays
(``fusionlab.hlo.strided``), matrices, and scalars.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fusionlab.codegen.kernels.triton_tiles import fits_triton, is_addressable
from fusionlab.hlo import ops
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.strided import StridedView
from fusionlab.hlo.view import Node, Value


@dataclass(frozen=True)
class Layer:
    """One contraction: ``parts`` of its input, side by side, each with its first column; ``weights`` ``[K, N]``."""

    parts: tuple[tuple[Value, int], ...]
    weights: StridedView
    inputs: int
    outputs: int


@dataclass(eq=False)
class RowProgram:
    """The work of a kernel on a block of ``rows``.

    ``steps`` are in program order and computed once, for all features; ``outputs`` are among their results.
    ``absorbed`` ops do not depend on the steps: they are computed from loads, at each use, for the columns it reads.
    """

    rows: int
    outputs: tuple[Value, ...] = ()
    steps: list[Node] = field(default_factory=list)
    absorbed: list[Node] = field(default_factory=list)
    layers: dict[Node, Layer] = field(default_factory=dict)
    loads: dict[Value, StridedView] = field(default_factory=dict)
    numbers: dict[Value, float] = field(default_factory=dict)

    @property
    def arrays(self) -> list[Value]:
        """The arrays that the program reads, each once, in order of first use."""
        views = [*self.loads.values(), *(layer.weights for layer in self.layers.values())]
        return list(dict.fromkeys(view.base for view in views))

    @property
    def widest(self) -> int:
        """The largest number of features of a value that is held whole."""
        return max(features(step.results[0]) for step in self.steps)

    @property
    def fits_triton(self) -> bool:
        """True if Triton has products for all arrays."""
        return fits_triton((*self.arrays, *self.outputs))

    @property
    def is_addressable(self) -> bool:
        """True if kernels reach every element of the arrays."""
        return is_addressable((*self.arrays, *self.outputs))

    @property
    def flops(self) -> int:
        """Floating-point operations: two per term of a layer, one per element of everything else."""
        total = 0
        for step in (*self.steps, *self.absorbed):
            terms = 2 * self.layers[step].inputs if step in self.layers else step.op.triton
            total += self.rows * features(step.results[0]) * int(terms)
        return total


def features(value: Value) -> int:
    """The extent of the last axis."""
    shape = value.type.shape
    return shape[-1] if shape else 1


def rows(value: Value) -> int:
    """The number of rows of a value."""
    return math.prod(value.type.shape[:-1])


def layer_of(node: Node, widest: int) -> Layer | None:
    """``node`` as a layer of at most ``widest`` features on either side; None for any other op."""
    if node.op is not ops.DOT_GENERAL or "algorithm" in node.attributes:
        return None
    axes = DotAxes.of(node)
    value, matrix = node.operands
    shape = value.type.shape
    if axes.batch_pairs or axes.contracted[0] != (len(shape) - 1,):
        return None
    if (
        len(matrix.type.shape) != 2
        or len(shape) < 2
        or not all(v.dtype in WIDE_FLOATS for v in (*node.operands, *node.results))
    ):
        return None
    (contracted,) = axes.contracted[1]
    view = StridedView.of(matrix)
    if contracted == 1:
        view = StridedView(view.base, view.shape[::-1], view.strides[::-1], view.offset)
    inputs, outputs = view.shape
    if outputs > widest or min(inputs, outputs) == 1:  # XLA makes a product and a sum of a matrix times a vector
        return None
    parts = tuple(side_by_side(value))
    return Layer(parts, view, inputs, outputs) if all(features(part) <= widest for part, _ in parts) else None


def side_by_side(value: Value, first: int = 0) -> Iterator[tuple[Value, int]]:
    """The parts concatenated to ``value`` along its last axis, each with its first column; of others, it alone."""
    node = value.producer
    last = len(value.type.shape) - 1
    if node is None or node.op is not ops.CONCATENATE or int(node.attributes["dimension"]) != last:
        yield value, first
        return
    for part in node.operands:
        yield from side_by_side(part, first)
        first += features(part)


def is_elementwise(node: Node, count: int) -> bool:
    """True if ``node`` keeps the ``count`` rows: elementwise, or a reshape of rows alone."""
    (*_, result) = node.results or (None,)
    if result is None or not (node.op.triton or node.op is ops.RESHAPE):
        return False
    values = (*node.operands, result)
    if any(value.type.dtype not in (*WIDE_FLOATS, "i1") or len(value.type.shape) < 2 for value in values):
        return False
    return all(rows(value) == count and features(value) == features(result) for value in values)


def plan(
    members: Collection[Node],
    outputs: tuple[Value, ...],
    count: int,
    users: Mapping[Value, Sequence[Node]],
    widest: int,
) -> RowProgram:
    """The program that runs ``members``, in program order, for ``outputs``; their inputs are loaded or absorbed.

    Absorbed are elementwise ops that only the program reads, or that cost next to nothing. ``count`` is the number of
    rows.
    """
    program = RowProgram(count, outputs)
    absorbed = _absorbed(members, users, count)
    known: set[Value] = {member.results[0] for member in members}

    def need(value: Value) -> None:
        if value in known:
            return
        known.add(value)
        node = value.producer
        if (number := number_of(value)) is not None:
            program.numbers[value] = number
        elif node is not None and node in absorbed:
            for operand in node.operands:
                need(operand)
            program.absorbed.append(node)
        else:
            program.loads[value] = StridedView.of(value)

    for member in members:
        layer = layer_of(member, widest)
        if layer is not None:
            program.layers[member] = layer
        program.steps.append(member)
        for value in member.operands if layer is None else [part for part, _ in layer.parts]:
            need(value)
    return program


def _absorbed(members: Collection[Node], users: Mapping[Value, Sequence[Node]], count: int) -> set[Node]:
    """Elementwise producers of ``members`` that the kernel computes itself."""
    inside = set(members)
    absorbed: set[Node] = set()
    waiting = [value for member in members for value in _inputs(member)]
    while waiting:
        value = waiting.pop()
        node = value.producer
        if node is None or node in inside or node in absorbed or not is_elementwise(node, count):
            continue
        if number_of(value) is not None:
            continue
        own = all(user in inside or user in absorbed for user in users.get(value, ()))
        if own or (not node.op.costly and _is_cheap(node)):
            absorbed.add(node)
            waiting += node.operands
    return absorbed


def _inputs(node: Node) -> list[Value]:
    if node.op is not ops.DOT_GENERAL:
        return list(node.operands)
    return [part for part, _ in side_by_side(node.operands[0])]


def _is_cheap(node: Node) -> bool:
    """True if recomputing ``node`` reads no more than loading its result."""
    read = {StridedView.of(value).base for value in node.operands if number_of(value) is None}
    return len(read) <= 1
