"""Programs that treat all walkers alike, at another number of them: the same function of every walker.

    x [1024, 4, 3] --dot_general--> [1024, 4, 64] --reduce--> [1024]      at 2 walkers: [2, 4, 3] --> [2, 4, 64] --> [2]

Walkers are a leading axis of all results, or several (molecules, states, walkers). Every op on the way has to keep them
apart and in their places: no sum over walkers, no permutation, no walker index, no constant that differs between them.
Then each walker's results are the same function of that walker's part of the arguments, and a program at 2 walkers has
that function, as has one at more walkers than there were. An axis along which an op is not known to do so keeps its
extent.

``isolated`` asks for two programs, ``study`` for a model, ``optimizing`` for a function and its arguments. Where no
axis can be resized, programs are compared at their own shapes, and a model is lowered again (docs/exact.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxlib.mlir import ir

from fusionlab.hlo.batch_axes import Marks, Shapes, keeps_apart, resized_shapes, varies, walker_axes
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.program import Program, rewritten
from fusionlab.hlo.resize import resize, view_of_copies
from fusionlab.hlo.view import FunctionView, Node, walk

EXACT_WALKERS = 2
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


def resized(programs: Sequence[Program], walkers: int = EXACT_WALKERS, *, grow: bool = False) -> Resized | None:
    """``programs`` of one signature at ``walkers`` walkers (along each axis of more); None where none can be resized.

    An axis is resized if all of them treat what lies along it alike, and have it in the same places of the arguments.
    No axis is resized that is divided over several devices. With ``grow``, the first axis of all results is also
    resized where it is shorter.
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
        except ir.MLIRError:  # MLIR's verifier: an op whose axes are not those of ``batch_axes``
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
        return Marks({})
    return marks if all(_keeps_apart(node, marks) for node in walk(needed)) else Marks({})


def _keeps_apart(node: Node, marks: Marks) -> bool:
    """True if ``node`` computes each walker from the same walker alone, with no number and no constant of its own."""
    alike = not any(varies(node, axis) for value in node.results for axis in marks.get(value, ()))
    return alike and keeps_apart(node, marks, own_places=False)
