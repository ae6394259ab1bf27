"""A few walkers that stand for all: how many, and along which axes of a program they are counted.

``trial`` evaluates a program at these; where they do not stand for all, ``trials`` goes back to every walker, of at
most ``FEW_ENOUGH``. The checks of the rewritten program (docs/exact.md) have ``equivalence.few_walkers``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from fusionlab.hlo.batch_axes import Marks, resized_shapes, walker_axes
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.view import FunctionView, Node, Region, Value, walk
from fusionlab.passes.fuse_jvp_replay.identify.guards import FEWEST_WALKERS, along_matrices, told_apart
from fusionlab.passes.refusals import Ground, Refusal

FEW_ENOUGH = 64
"""The largest number of walkers of which all are evaluated."""
_MOST_WALKERS = 16
_FLOPS = 1e8
"""The number of walkers that are evaluated: of about so many FLOPs together in the program, within these limits."""


def walkers_to_evaluate(flat: FunctionView, walkers: int) -> int:
    """The number of walkers of ``flat`` that are evaluated; Refusal where there are none."""
    if not walkers:
        raise Refusal(Ground.NO_WALKERS, "there are no walkers, and nothing to evaluate")
    per_walker = program_cost(flat).flops / walkers
    return int(np.clip(_FLOPS / max(per_walker, 1), FEWEST_WALKERS, _MOST_WALKERS))


def resized(marks: Mapping[int, Marks], walkers: Sequence[int], few: int) -> dict[Value, tuple[int, ...]]:
    """The shapes of values at ``few`` of the ``walkers`` along the longest axis that can be resized, and at two at most
    along others."""
    longest = max(marks, key=lambda axis: walkers[axis], default=None)
    shapes: dict[Value, tuple[int, ...]] = {}
    for axis, of_axis in marks.items():
        to = min(walkers[axis], few if axis == longest else min(few, FEWEST_WALKERS))
        shapes = resized_shapes(of_axis, walkers[axis], to, shapes)
    return shapes


def walker_marks(
    flat: FunctionView, x: Value, leading: int, computing: Sequence[Node], inside: Sequence[Region],
    known: Mapping[int, Marks],
) -> dict[int, Marks]:  # fmt: skip
    """The axes that count walkers along each of the ``leading`` axes of x that can be resized; Refusal where the others
    have too many.

    Along one that can, no op of ``computing`` depends on the batch position, and none of these or of the regions
    ``inside`` loops mixes them along matrices. ``known`` are those of a program that computes more.
    """
    nodes = list(walk(computing))
    whole = [*nodes, *(node for region in inside for node in walk(region.nodes))]
    marks: dict[int, Marks] = {}
    kept, because = 1, Refusal(Ground.WALKERS_UNKNOWN, "their shapes do not show which axes count them")
    for axis, extent in enumerate(x.type.shape[:leading]):
        if axis in known:
            marks[axis] = known[axis]
            continue
        if extent == 1 and leading > 1:
            continue
        found = walker_axes(flat, [(x, axis)])
        reason = told_apart(nodes, found) or along_matrices(whole, found)
        if reason is None and found.get(x) == {axis}:
            marks[axis] = found
        else:
            kept, because = kept * extent, reason or because
    if kept > FEW_ENOUGH:
        raise because.about(f"{kept} walkers are too many to evaluate, and ")
    return marks
