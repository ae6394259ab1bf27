"""Mistakes planted in passes, by hand: a literal table.

``plant(patch)`` replaces one function by a wrong version. What forward Laplacians are made of is also used to *find*
the differentiated value, and a pass whose rule is wrong then declines: it compares the Laplacian with the replay. So
that the check is tested and not that comparison, such a mistake is switched off while the value is looked for.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.laplacian import chains, interpreter, jet, owners
from fusionlab.codegen.laplacian.rules import dot_general, elementwise, reductions, slogdet
from fusionlab.codegen.raising import trips
from fusionlab.passes import (
    batch_replay,
    licm,
    rewriting,
)
from fusionlab.passes.fuse_jvp_replay import candidates, entry, identify
from fusionlab.passes.fuse_jvp_replay.entry import RewrittenEntry

from .wrong_versions import (
    Patch,
    coordinates_swapped,
    cross_of_quotient_added,
    extremes_held_constant,
    first_source_lost,
    in_the_rewrite,
    initial_dropped,
    instead,
    lost_trip,
    offset_lost,
    parts_reversed,
    quadratic_added,
    rows_reversed,
    signs_dropped,
    stale_trip,
    swapped_frontier,
    swapped_operands,
    transposed_terms,
    without_matrix_laplacian,
)


def agrees_with_any(patch: Patch) -> None:
    """What is no Laplacian is taken to be identical to the sum, and equal to it where values are exactly equal."""
    instead(identify, "_factors", lambda right, *given: (1, 0) if right(*given) is None else None)(patch)
    instead(identify.Identification, "_at_equal_inputs", lambda right, *given: tuple(given[-1]))(patch)


@dataclass(frozen=True)
class Mutation:
    """``plant`` makes pass ``guilty`` of ``pipeline`` wrong on ``program`` (of ``small_programs``)."""

    name: str
    program: str
    pipeline: str
    guilty: str
    plant: Callable[[Patch], None]
    fast: bool = False


_BATCH, _HOIST = "licm,batch-replay", "licm"
_SPARSE, _DENSE, _ADJOINT = "sparsify-directions", "collapse-replay", "transpose-replay"

MUTATIONS = (
    Mutation(
        "last trip lost", "directions", _BATCH, "batch-replay", instead(batch_replay, "batched_loop", lost_trip), True
    ),
    Mutation(
        "sum over the wrong axis",
        "directions",
        _BATCH,
        "batch-replay",
        instead(trips, "_accumulate", transposed_terms),
        True,
    ),
    Mutation(
        "sign of a term dropped",
        "subtracting",
        _BATCH,
        "batch-replay",
        instead(trips, "_accumulate", signs_dropped),
        True,
    ),
    Mutation(
        "start and step of the counter ignored",
        "by-twos",
        _BATCH,
        "batch-replay",
        instead(trips, "_count", lambda right, counter, trip: lax.convert_element_type(trip, counter.dtype)),
    ),
    Mutation(
        "every chunk takes the first trips",
        "directions",
        "batch-replay{chunk=2}",
        "batch-replay{chunk=2}",
        instead(batch_replay, "raise_trips", stale_trip),
        True,
    ),
    Mutation(
        "what the sum starts from dropped",
        "directions",
        _BATCH,
        "batch-replay",
        instead(trips, "_accumulate", initial_dropped),
    ),
    Mutation(
        "stacked rows in reverse",
        "stacked",
        _BATCH,
        "batch-replay",
        instead(
            trips, "_place", lambda right, role, numbers, updates, array: right(role, numbers, updates[::-1], array)
        ),
        True,
    ),
    Mutation(
        "counter one trip short after the loop",
        "by-twos",
        _BATCH,
        "batch-replay",
        instead(trips, "_results", lambda right, loop, count, *given: right(loop, count - 1, *given)),
    ),
    Mutation(
        "hoisted values in the wrong order",
        "with-weights",
        _HOIST,
        _HOIST,
        instead(licm, "raise_nodes", swapped_frontier),
        True,
    ),
    Mutation(
        "operands of the spliced loop swapped",
        "with-weights",
        _HOIST,
        _HOIST,
        instead(rewriting, "splice", swapped_operands),
    ),
    Mutation(
        "half of the cross term of a product",
        "products",
        _SPARSE,
        _SPARSE,
        in_the_rewrite(elementwise, "row_products", lambda right, *given: 0.5 * right(*given)),
        True,
    ),
    Mutation(
        "cross term of a product missing",
        "products",
        _DENSE,
        _DENSE,
        in_the_rewrite(elementwise, "row_products", lambda right, *given: 0.0 * right(*given)),
    ),
    Mutation(
        "cross term of a contraction missing",
        "overlaps",
        _SPARSE,
        _SPARSE,
        in_the_rewrite(dot_general, "_cross", lambda right, *given: 0.0 * right(*given)),
    ),
    Mutation(
        "cross term of a contraction once",
        "overlaps",
        _DENSE,
        _DENSE,
        in_the_rewrite(dot_general, "_cross", lambda right, *given: 0.5 * right(*given)),
    ),
    Mutation(
        "second derivative of a function dropped",
        "products",
        _SPARSE,
        _SPARSE,
        in_the_rewrite(chains, "_affine", lambda right, *given: True),
        True,
    ),
    Mutation(
        "wrong sign in a quotient",
        "quotient",
        _SPARSE,
        _SPARSE,
        in_the_rewrite(elementwise, "quotient", cross_of_quotient_added),
    ),
    Mutation(
        "quadratic term of a determinant added",
        "determinant",
        _SPARSE,
        _SPARSE,
        in_the_rewrite(slogdet, "log_determinant_jet", quadratic_added),
    ),
    Mutation(
        "a determinant without the matrix's Laplacian",
        "determinant",
        _DENSE,
        _DENSE,
        in_the_rewrite(slogdet, "log_determinant_jet", without_matrix_laplacian),
    ),
    Mutation(
        "a maximum shared by all",
        "largest",
        _SPARSE,
        _SPARSE,
        in_the_rewrite(reductions, "shares", lambda right, array, *given: jnp.full_like(array, 1 / 3)),
    ),
    Mutation(
        "a maximum taken for a constant",
        "largest",
        _SPARSE,
        _SPARSE,
        instead(candidates, "find_laplacian", extremes_held_constant),
    ),
    Mutation(
        "slots of different electrons taken for one",
        "pairs",
        _SPARSE,
        _SPARSE,
        in_the_rewrite(owners, "same_owner", lambda right, first, second: True, jet),
    ),
    Mutation("gradient in reverse order", "gradient", _SPARSE, _SPARSE, instead(entry, "densify", rows_reversed)),
    Mutation(
        "coordinates of an electron swapped",
        "gradient",
        _DENSE,
        _DENSE,
        in_the_rewrite(interpreter, "identity_jet", coordinates_swapped),
    ),
    Mutation(
        "constant factor dropped",
        "scaled",
        _SPARSE,
        _SPARSE,
        instead(candidates, "find_laplacian", lambda right, *given: replace(right(*given), scale=1.0)),
    ),
    Mutation("initial sum dropped", "scaled", _SPARSE, _SPARSE, instead(RewrittenEntry, "__init__", offset_lost)),
    Mutation(
        "a source of the adjoint lost",
        "products",
        _ADJOINT,
        _ADJOINT,
        instead(entry, "weighted_sources", first_source_lost),
    ),
    Mutation(
        "parts of the walkers in reverse",
        "products",
        f"{_SPARSE}{{chunks=5}}",
        f"{_SPARSE}{{chunks=5}}",
        instead(RewrittenEntry, "_in_parts", parts_reversed),
    ),
    Mutation(
        "equality that does not hold",
        "of-another",
        _SPARSE,
        _SPARSE,
        agrees_with_any,
    ),
)
