"""Mistakes planted in passes, by hand: a literal table.

``plant(patch)`` replaces one function by a wrong version. What forward Laplacians are made of is also used to *find*
the differentiated value, and a pass whose rule is wrong then declines: it compares the Laplacian with the replay. So
that the check is tested and not that comparison, such a mistake is switched off while the value is looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import pytest
from jax import lax

from fusionlab.codegen import trips
from fusionlab.codegen.forward_laplacian import determinants, extremes, interpret, jet, products
from fusionlab.codegen.forward_laplacian.elementwise import Elementwise
from fusionlab.codegen.forward_laplacian.jet import Jet
from fusionlab.hlo.loops import Sum
from fusionlab.passes import (
    batch_replay,
    hoist_loop_invariants,
    laplacian_entry,
    laplacian_rewrite,
    laplacian_trial,
    loop_rewrite,
)
from fusionlab.passes.laplacian_entry import RewrittenEntry

Patch = pytest.MonkeyPatch


@dataclass(frozen=True)
class Mutation:
    """``plant`` makes pass ``guilty`` of ``pipeline`` wrong on ``program`` (of ``small_programs``)."""

    name: str
    program: str
    pipeline: str
    guilty: str
    plant: Callable[[Patch], None]
    fast: bool = False


def _instead(owner: Any, name: str, wrong: Callable[..., Any]) -> Callable[[Patch], None]:
    """``wrong(right, *arguments)`` in place of ``owner.name``."""

    def plant(patch: Patch) -> None:
        right = getattr(owner, name)
        patch.setattr(owner, name, lambda *given, **named: wrong(right, *given, **named))

    return plant


def _in_the_rewrite(owner: Any, name: str, wrong: Callable[..., Any], *owners: Any) -> Callable[[Patch], None]:
    """The same, but not while the differentiated value is looked for; ``owners`` imported the same function."""

    def plant(patch: Patch) -> None:
        right, searching = getattr(owner, name), [False]

        def switched(*given: Any, **named: Any) -> Any:
            return right(*given, **named) if searching[0] else wrong(right, *given, **named)

        search = laplacian_rewrite.find_laplacian

        def find(*given: Any) -> Any:
            searching[0] = True
            try:
                return search(*given)
            finally:
                searching[0] = False

        patch.setattr(laplacian_rewrite, "find_laplacian", find)
        for one in (owner, *owners):
            patch.setattr(one, name, switched)

    return plant


def _lost_trip(right: Any, found: Any, chunk: int) -> Any:
    return right(replace(found, loop=replace(found.loop, trips=found.loop.trips - 1)), chunk - 1)


def _transposed_terms(right: Any, loop: Any, numbers: Any, outputs: Any, carried: Any) -> Any:
    return right(loop, numbers, [jnp.swapaxes(output, 0, 1) for output in outputs], carried)


def _signs_dropped(right: Any, loop: Any, *given: Any) -> Any:
    roles = [Sum(tuple((1, v) for _, v in r.terms)) if isinstance(r, Sum) else r for r in loop.roles]
    return right(replace(loop, roles=tuple(roles)), *given)


def _stale_trip(right: Any, *given: Any) -> Any:
    found = right(*given)
    return replace(found, outputs=lambda trip, *arrays: found.outputs(trip % 2, *arrays))


def _initial_dropped(right: Any, loop: Any, numbers: Any, outputs: Any, carried: Any) -> Any:
    return right(loop, numbers, outputs, tuple(jnp.zeros_like(array) for array in carried))


def _swapped_frontier(right: Any, nodes: Any, inputs: Any, outputs: Any, raising: Any) -> Any:
    """The values computed before the loop arrive in the wrong order."""
    made = right(nodes, inputs, outputs, raising)
    before_loop = len(outputs) > 1 and all(value.producer in set(nodes) for value in outputs)
    same = len({value.type for value in outputs}) == 1
    return (lambda *arrays: made(*arrays)[::-1]) if before_loop and same else made


def _swapped_operands(right: Any, operation: Any, function: Any, *, operands: Any, **named: Any) -> Any:
    """The last two operands of one type, invariants, are exchanged."""
    at = [i for i, value in enumerate(operands) if str(value.type) == "tensor<4x4xf32>"]
    operands = list(operands)
    operands[at[0]], operands[at[1]] = operands[at[1]], operands[at[0]]
    return right(operation, function, operands=operands, **named)


def _without_matrix_laplacian(right: Any, value: Any, matrix: Jet, *given: Any) -> Jet:
    found = right(value, matrix, *given)
    return (
        right(value, Jet(matrix.value, None, matrix.rows, matrix.owners), *given) if matrix.lap is not None else found
    )


def _quadratic_added(right: Any, value: Any, matrix: Jet, *given: Any) -> Jet:
    found = right(value, matrix, *given)
    quadratic = right(value, Jet(matrix.value, None, matrix.rows, matrix.owners), *given).lap
    return Jet(found.value, found.lap - 2 * quadratic, found.rows, found.owners)


def _cross_of_quotient_added(right: Any, value: Any, top: Jet, bottom: Jet, coordinates: Any) -> Jet:
    found = right(value, top, bottom, coordinates)
    cross = products.row_products(found, bottom, coordinates)
    return Jet(found.value, found.lap + 4 * cross / bottom.value, found.rows, found.owners)


def _first_source_lost(right: Any, entry: Any, engine: Any, raising: Any) -> Any:
    engine.sources.pop(next(iter(engine.sources)))
    return right(entry, engine, raising)


def _parts_reversed(right: Any, entry: Any, environment: Any) -> Any:
    value, lap, rows = right(entry, environment)
    return value, lap[::-1], rows


def _offset_lost(right: Any, entry: Any, *given: Any) -> None:
    right(entry, *given)
    entry.offset = None


def _rows_reversed(right: Any, one: Jet, *given: Any) -> Jet:
    found = right(one, *given)
    return Jet(found.value, found.lap, found.rows[::-1], found.owners)


def _coordinates_swapped(right: Any, *given: Any) -> Jet:
    found = right(*given)
    return Jet(found.value, found.lap, found.rows[::-1], found.owners)


_BATCH, _HOIST = "hoist-loop-invariants,batch-replay", "hoist-loop-invariants"
_SPARSE, _DENSE, _ADJOINT = "sparsify-directions", "collapse-replay", "transpose-replay"

MUTATIONS = (
    Mutation(
        "last trip lost", "directions", _BATCH, "batch-replay", _instead(batch_replay, "batched_loop", _lost_trip), True
    ),
    Mutation(
        "sum over the wrong axis",
        "directions",
        _BATCH,
        "batch-replay",
        _instead(trips, "_accumulate", _transposed_terms),
        True,
    ),
    Mutation(
        "sign of a term dropped",
        "subtracting",
        _BATCH,
        "batch-replay",
        _instead(trips, "_accumulate", _signs_dropped),
        True,
    ),
    Mutation(
        "start and step of the counter ignored",
        "by-twos",
        _BATCH,
        "batch-replay",
        _instead(trips, "_count", lambda right, counter, trip: lax.convert_element_type(trip, counter.dtype)),
    ),
    Mutation(
        "every chunk takes the first trips",
        "directions",
        "batch-replay{chunk=2}",
        "batch-replay{chunk=2}",
        _instead(batch_replay, "raise_trips", _stale_trip),
        True,
    ),
    Mutation(
        "what the sum starts from dropped",
        "directions",
        _BATCH,
        "batch-replay",
        _instead(trips, "_accumulate", _initial_dropped),
    ),
    Mutation(
        "stacked rows in reverse",
        "stacked",
        _BATCH,
        "batch-replay",
        _instead(
            trips, "_place", lambda right, role, numbers, updates, array: right(role, numbers, updates[::-1], array)
        ),
        True,
    ),
    Mutation(
        "counter one trip short after the loop",
        "by-twos",
        _BATCH,
        "batch-replay",
        _instead(trips, "_results", lambda right, loop, count, *given: right(loop, count - 1, *given)),
    ),
    Mutation(
        "hoisted values in the wrong order",
        "with-weights",
        _HOIST,
        _HOIST,
        _instead(hoist_loop_invariants, "raise_nodes", _swapped_frontier),
        True,
    ),
    Mutation(
        "operands of the spliced loop swapped",
        "with-weights",
        _HOIST,
        _HOIST,
        _instead(loop_rewrite, "splice", _swapped_operands),
    ),
    Mutation(
        "half of the cross term of a product",
        "products",
        _SPARSE,
        _SPARSE,
        _in_the_rewrite(products, "row_products", lambda right, *given: 0.5 * right(*given)),
        True,
    ),
    Mutation(
        "cross term of a product missing",
        "products",
        _DENSE,
        _DENSE,
        _in_the_rewrite(products, "row_products", lambda right, *given: 0.0 * right(*given)),
    ),
    Mutation(
        "cross term of a contraction missing",
        "overlaps",
        _SPARSE,
        _SPARSE,
        _in_the_rewrite(products, "_cross", lambda right, *given: 0.0 * right(*given)),
    ),
    Mutation(
        "cross term of a contraction once",
        "overlaps",
        _DENSE,
        _DENSE,
        _in_the_rewrite(products, "_cross", lambda right, *given: 0.5 * right(*given)),
    ),
    Mutation(
        "second derivative of a function dropped",
        "products",
        _SPARSE,
        _SPARSE,
        _in_the_rewrite(Elementwise, "_affine", lambda right, *given: True),
        True,
    ),
    Mutation(
        "wrong sign in a quotient",
        "quotient",
        _SPARSE,
        _SPARSE,
        _in_the_rewrite(products, "divide", _cross_of_quotient_added),
    ),
    Mutation(
        "quadratic term of a determinant added",
        "determinant",
        _SPARSE,
        _SPARSE,
        _in_the_rewrite(determinants, "log_determinant_jet", _quadratic_added),
    ),
    Mutation(
        "a determinant without the matrix's Laplacian",
        "determinant",
        _DENSE,
        _DENSE,
        _in_the_rewrite(determinants, "log_determinant_jet", _without_matrix_laplacian),
    ),
    Mutation(
        "a maximum shared by all",
        "largest",
        _SPARSE,
        _SPARSE,
        _in_the_rewrite(extremes, "shares", lambda right, array, *given: jnp.full_like(array, 1 / 3)),
    ),
    Mutation(
        "slots of different electrons taken for one",
        "pairs",
        _SPARSE,
        _SPARSE,
        _in_the_rewrite(jet, "same_owner", lambda right, first, second: True, products),
    ),
    Mutation(
        "gradient in reverse order", "gradient", _SPARSE, _SPARSE, _instead(laplacian_entry, "densify", _rows_reversed)
    ),
    Mutation(
        "coordinates of an electron swapped",
        "gradient",
        _DENSE,
        _DENSE,
        _in_the_rewrite(interpret, "identity_jet", _coordinates_swapped),
    ),
    Mutation(
        "constant factor dropped",
        "scaled",
        _SPARSE,
        _SPARSE,
        _instead(laplacian_rewrite, "find_laplacian", lambda right, *given: replace(right(*given), scale=1.0)),
    ),
    Mutation("initial sum dropped", "scaled", _SPARSE, _SPARSE, _instead(RewrittenEntry, "__init__", _offset_lost)),
    Mutation(
        "a source of the adjoint lost",
        "products",
        _ADJOINT,
        _ADJOINT,
        _instead(RewrittenEntry, "_weighted", _first_source_lost),
    ),
    Mutation(
        "parts of the walkers in reverse",
        "products",
        f"{_SPARSE}{{chunks=5}}",
        f"{_SPARSE}{{chunks=5}}",
        _instead(RewrittenEntry, "_in_parts", _parts_reversed),
    ),
    Mutation(
        "equality that does not hold",
        "of-another",
        _SPARSE,
        _SPARSE,
        _instead(laplacian_trial, "_common_factor", lambda right, *given: 1.0 if right(*given) is None else None),
    ),
)
