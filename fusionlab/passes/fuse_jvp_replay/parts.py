"""Walkers in parts, or each with an adjoint of its own: what all of them share, and where that is not possible."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from fusionlab.codegen.raising import Raising
from fusionlab.hlo.batch_axes import Marks
from fusionlab.hlo.view import FunctionView, Node, Value, reads
from fusionlab.passes.fuse_jvp_replay.identify.guards import mixed
from fusionlab.passes.refusals import Ground, Refusal


def shared_values(
    flat: FunctionView,
    cone: Sequence[Node],
    x: Value,
    environment: Mapping[Value, Any],
    raising: Raising,
    part: Raising,
) -> dict[Value, Any]:
    """The values that do not count walkers, as those with another shape in ``part`` do, from ``environment``.

    Refusal if the rest of ``cone`` needs a value of all walkers beside ``x``.
    """
    shapes, shared = part.shapes, dict(environment)
    varying = {x, *(value for value in flat.arguments if value in shapes)}
    for node in cone:
        if not varying.isdisjoint(reads(node)) or not shapes.keys().isdisjoint(node.results):
            varying.update(node.results)
        elif not all(value in shared for value in node.results):
            raising.run([node], shared)
    shared = {value: array for value, array in shared.items() if value not in shapes}
    left = [node for node in cone if not all(value in shared for value in node.results)]
    known = {x, *shared, *(value for node in left for value in node.results)}
    # A value taken to differ between walkers has a reader that does not, or is an argument beside the positions.
    if whole := [value for node in left for value in reads(node) if value not in known]:
        reason = f"the walkers cannot be taken in parts: {whole[0]} ({whole[0].type}) is shared by all of them"
        raise Refusal(Ground.NOT_IN_PARTS, reason, whole[0].producer)
    return shared


def axis_of_parts(
    flat: FunctionView, cone: Sequence[Node], x: Value, marks: Mapping[int, Marks], walkers: int,
    outputs: Sequence[Value], chunks: int,
) -> int:  # fmt: skip
    """The leading axis of x along which the walkers can be taken in ``chunks`` parts; Refusal if there is none."""
    shape = x.type.shape[:walkers]
    if any(output.type.shape != shape for output in outputs):
        raise Refusal(Ground.NOT_IN_PARTS, "walkers that share the coordinates cannot be taken in parts")
    longer = [axis for axis, extent in enumerate(shape) if extent > 1]
    if len(longer) != 1 or longer[0] not in marks:
        raise Refusal(Ground.NOT_IN_PARTS, f"{list(shape)} walkers cannot be taken in parts")
    if shape[longer[0]] % chunks:
        raise Refusal(Ground.NOT_IN_PARTS, f"{shape[longer[0]]} walkers cannot be taken in {chunks} parts")
    if (why := mixed(flat, cone, x, [marks[longer[0]]])) is not None:
        raise why.about("the walkers cannot be taken in parts: ")
    return longer[0]


def no_adjoint_of_each(
    flat: FunctionView, cone: Sequence[Node], x: Value, marks: Mapping[int, Marks], walkers: int, output: Value
) -> Refusal | None:
    """The reason why one reverse pass of all walkers is not that of each: it adds up what one value is to several.

    ``walkers`` is the number of leading axes of x that count them.
    """
    shape = output.type.shape
    if math.prod(shape) == 1:
        return None
    if walkers < len(shape):
        return Refusal(Ground.NOT_IN_PARTS, "walkers that share the coordinates have no adjoint of each")
    if any(extent > 1 and axis not in marks for axis, extent in enumerate(shape)):
        return Refusal(Ground.NOT_IN_PARTS, "walkers have no adjoint of each: their axes are not known")
    if (why := mixed(flat, cone, x, marks.values())) is not None:
        return why.about("walkers have no adjoint of each: ")
    return None
