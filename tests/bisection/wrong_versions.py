"""Wrong versions of functions of passes, ``wrong(right, *arguments)``, and how they are planted."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import jax.numpy as jnp
import pytest

from fusionlab.codegen.laplacian.jet import Jet, row_products
from fusionlab.hlo.loops import Sum
from fusionlab.passes.fuse_jvp_replay import candidates
from fusionlab.passes.fuse_jvp_replay.guards import may_shift

Patch = pytest.MonkeyPatch


def instead(owner: Any, name: str, wrong: Callable[..., Any]) -> Callable[[Patch], None]:
    """``wrong(right, *arguments)`` in place of ``owner.name``."""

    def plant(patch: Patch) -> None:
        right = getattr(owner, name)
        patch.setattr(owner, name, lambda *given, **named: wrong(right, *given, **named))

    return plant


def in_the_rewrite(owner: Any, name: str, wrong: Callable[..., Any], *owners: Any) -> Callable[[Patch], None]:
    """The same, but not while the differentiated value is looked for; ``owners`` imported the same function."""

    def plant(patch: Patch) -> None:
        right, searching = getattr(owner, name), [False]

        def switched(*given: Any, **named: Any) -> Any:
            return right(*given, **named) if searching[0] else wrong(right, *given, **named)

        search = candidates.find_laplacian

        def find(*given: Any) -> Any:
            searching[0] = True
            try:
                return search(*given)
            finally:
                searching[0] = False

        patch.setattr(candidates, "find_laplacian", find)
        for one in (owner, *owners):
            patch.setattr(one, name, switched)

    return plant


def lost_trip(right: Any, found: Any, chunk: int) -> Any:
    return right(replace(found, loop=replace(found.loop, trips=found.loop.trips - 1)), chunk - 1)


def transposed_terms(right: Any, loop: Any, numbers: Any, outputs: Any, carried: Any) -> Any:
    return right(loop, numbers, [jnp.swapaxes(output, 0, 1) for output in outputs], carried)


def signs_dropped(right: Any, loop: Any, *given: Any) -> Any:
    roles = [Sum(tuple((1, v) for _, v in r.terms)) if isinstance(r, Sum) else r for r in loop.roles]
    return right(replace(loop, roles=tuple(roles)), *given)


def stale_trip(right: Any, *given: Any) -> Any:
    found = right(*given)
    return replace(found, outputs=lambda trip, *arrays: found.outputs(trip % 2, *arrays))


def initial_dropped(right: Any, loop: Any, numbers: Any, outputs: Any, carried: Any) -> Any:
    return right(loop, numbers, outputs, tuple(jnp.zeros_like(array) for array in carried))


def swapped_frontier(right: Any, nodes: Any, inputs: Any, outputs: Any, raising: Any) -> Any:
    """The values computed before the loop arrive in the wrong order."""
    made = right(nodes, inputs, outputs, raising)
    before_loop = len(outputs) > 1 and all(value.producer in set(nodes) for value in outputs)
    same = len({value.type for value in outputs}) == 1
    return (lambda *arrays: made(*arrays)[::-1]) if before_loop and same else made


def swapped_operands(right: Any, operation: Any, function: Any, *, operands: Any, **named: Any) -> Any:
    """The last two operands of one type, invariants, are exchanged."""
    at = [i for i, value in enumerate(operands) if str(value.type) == "tensor<4x4xf32>"]
    operands = list(operands)
    operands[at[0]], operands[at[1]] = operands[at[1]], operands[at[0]]
    return right(operation, function, operands=operands, **named)


def without_matrix_laplacian(right: Any, value: Any, matrix: Jet, *given: Any) -> Jet:
    return right(value, Jet(matrix.value, None, matrix.jacobian, matrix.owners), *given)


def quadratic_added(right: Any, value: Any, matrix: Jet, *given: Any) -> Jet:
    found = right(value, matrix, *given)
    quadratic = right(value, Jet(matrix.value, None, matrix.jacobian, matrix.owners), *given).laplacian
    return Jet(found.value, found.laplacian - 2 * quadratic, found.jacobian, found.owners)


def cross_of_quotient_added(right: Any, state: Any, value: Any, top: Jet, bottom: Jet) -> Jet:
    found = right(state, value, top, bottom)
    cross = row_products(found, bottom, state.coordinates)
    return Jet(found.value, found.laplacian + 4 * cross / bottom.value, found.jacobian, found.owners)


def first_source_lost(right: Any, engine: Any, *given: Any) -> Any:
    engine.sources.pop(next(iter(engine.sources)))
    return right(engine, *given)


def parts_reversed(right: Any, entry: Any, environment: Any) -> Any:
    value, lap, rows = right(entry, environment)
    return value, lap[::-1], rows


def offset_lost(right: Any, entry: Any, *given: Any) -> None:
    right(entry, *given)
    entry.offset = None


def rows_reversed(right: Any, one: Jet, *given: Any) -> Jet:
    found = right(one, *given)
    return Jet(found.value, found.laplacian, found.jacobian[::-1], found.owners)


def coordinates_swapped(right: Any, *given: Any) -> Jet:
    found = right(*given)
    return Jet(found.value, found.laplacian, found.jacobian[::-1], found.owners)


def extremes_held_constant(right: Callable[..., Any], candidate: Any) -> Any:
    """Maxima and minima that do not drop out, too."""
    shifts = (node.results[0] for node in candidate.flat.nodes if may_shift(node))
    return replace(right(candidate), stop_gradient=tuple(shifts))
