"""Mistakes planted in passes, by hand: a literal table of functions and wrong versions, ``wrong(right, *arguments)``.

What forward Laplacians are made of is also used to *find* the differentiated value, and a pass whose rule is wrong then
declines: it compares the Laplacian with the replay. So that the check is tested and not that comparison, such a mistake
is switched off while the value is looked for.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction

import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.laplacian import chains, interpreter, jet, owners
from fusionlab.codegen.laplacian.jet import Jet, row_products
from fusionlab.codegen.laplacian.rules import dot_general, elementwise, owned_dot, reductions, slogdet
from fusionlab.codegen.raising import trips
from fusionlab.hlo.loops import Sum
from fusionlab.passes import batch_replay, licm, rewriting
from fusionlab.passes.fuse_jvp_replay import decide, emit, products, sites
from fusionlab.passes.fuse_jvp_replay.identify.shift_invariance import may_shift


def instead(owner, name, wrong):
    """``wrong(right, *arguments)`` in place of ``owner.name``."""

    def plant(patch):
        right = getattr(owner, name)
        patch.setattr(owner, name, lambda *given, **named: wrong(right, *given, **named))

    return plant


def in_the_rewrite(owner, name, wrong, *owners):
    """The same, but not while the differentiated value is looked for; ``owners`` imported the same function."""

    def plant(patch):
        right, search, searching = getattr(owner, name), sites.derivation, [False]

        def switched(*given, **named):
            return right(*given, **named) if searching[0] else wrong(right, *given, **named)

        def find(*given, **named):
            searching[0] = True
            try:
                return search(*given, **named)
            finally:
                searching[0] = False

        patch.setattr(sites, "derivation", find)
        for one in (owner, *owners):
            patch.setattr(one, name, switched)

    return plant


def lost_trip(right, found, chunk):
    return right(replace(found, loop=replace(found.loop, trips=found.loop.trips - 1)), chunk - 1)


def transposed_terms(right, loop, numbers, outputs, carried):
    return right(loop, numbers, [jnp.swapaxes(output, 0, 1) for output in outputs], carried)


def signs_dropped(right, loop, *given):
    roles = [Sum(tuple((1, v) for _, v in r.terms)) if isinstance(r, Sum) else r for r in loop.roles]
    return right(replace(loop, roles=tuple(roles)), *given)


def stale_trip(right, *given):
    found = right(*given)
    return replace(found, outputs=lambda trip, *arrays: found.outputs(trip % 2, *arrays))


def swapped_frontier(right, nodes, inputs, outputs, raising):
    """The values computed before the loop arrive in the wrong order."""
    made = right(nodes, inputs, outputs, raising)
    before_loop = len(outputs) > 1 and all(value.producer in set(nodes) for value in outputs)
    same = len({value.type for value in outputs}) == 1
    return (lambda *arrays: made(*arrays)[::-1]) if before_loop and same else made


def swapped_operands(right, operation, function, *, operands, **named):
    """The last two operands of one type, invariants, are exchanged."""
    at = [i for i, value in enumerate(operands) if str(value.type) == "tensor<4x4xf32>"]
    operands = list(operands)
    operands[at[0]], operands[at[1]] = operands[at[1]], operands[at[0]]
    return right(operation, function, operands=operands, **named)


def of_jacobian_alone(right, value, matrix, *given, **named):
    return right(value, Jet(matrix.value, None, matrix.jacobian, matrix.owners), *given, **named)


def quadratic_added(right, value, matrix, *given, **named):
    found = right(value, matrix, *given, **named)
    quadratic = of_jacobian_alone(right, value, matrix, *given, **named).laplacian
    return Jet(found.value, found.laplacian - 2 * quadratic, found.jacobian, found.owners)


def cross_of_quotient_added(right, state, value, top, bottom):
    found = right(state, value, top, bottom)
    cross = row_products(found, bottom, state.coordinates)
    return Jet(found.value, found.laplacian + 4 * cross / bottom.value, found.jacobian, found.owners)


def rows_reversed(right, *given):
    found = right(*given)
    return Jet(found.value, found.laplacian, found.jacobian[::-1], found.owners)


def first_source_lost(right, engine, *given):
    engine.sources.pop(next(iter(engine.sources)))
    return right(engine, *given)


def parts_reversed(right, *given):
    return {output: (value, lap[::-1], rows) for output, (value, lap, rows) in right(*given).items()}


def offsets_lost(right, *given):
    found = right(*given)
    return replace(found, targets=tuple(replace(target, offset="") for target in found.targets))


def factors_lost(right, *given):
    """Weights of 1 for all coordinates."""
    found = right(*given)
    ones = ((Fraction(1),) * found.coordinates.count,)
    targets = [replace(t, terms=tuple(replace(term, real=ones) for term in t.terms)) for t in found.targets]
    return replace(found, targets=tuple(targets))


def extremes_held_constant(right, *given):
    """Maxima and minima that do not drop out, too."""
    found = right(*given)
    return replace(found, stop_gradient=tuple(node.results[0] for node in found.flat.nodes if may_shift(node)))


def agrees_with_any(patch):
    """What is no product is taken for one, in all draws and where values are exactly equal."""
    instead(products, "_ratio", lambda right, *given: right(*given) or 1)(patch)
    instead(decide, "gradients_at_ties", lambda right, *given: dict(given[-2]))(patch)


def divisor_held_constant(right, *given):
    found = right(*given)
    return replace(found, common=jnp.zeros_like(found.common))


def times(factor):
    return lambda right, *given: factor * right(*given)


@dataclass(frozen=True)
class Mutation:
    """``plant`` makes the last pass of ``pipeline`` wrong on ``program`` (of ``small_programs``)."""

    name: str
    program: str
    pipeline: str
    plant: Callable
    fast: bool = False

    @property
    def guilty(self):
        return self.pipeline.rpartition(",")[2]


BATCH, HOIST = "licm,batch-replay", "licm"
SPARSE, DENSE, ADJOINT = "sparsify-directions", "collapse-replay", "transpose-replay"
FAST = True
MUTATIONS = tuple(Mutation(*row) for row in (
    ("last trip lost", "directions", BATCH, instead(batch_replay, "batched_loop", lost_trip), FAST),
    ("sum over the wrong axis", "directions", BATCH, instead(trips, "_accumulate", transposed_terms), FAST),
    ("sign of a term dropped", "subtracting", BATCH, instead(trips, "_accumulate", signs_dropped), FAST),
    ("start and step of the counter ignored", "by-twos", BATCH,
     instead(trips, "_count", lambda right, counter, trip: lax.convert_element_type(trip, counter.dtype))),
    ("every chunk takes the first trips", "directions", "batch-replay{chunk=2}",
     instead(batch_replay, "raise_trips", stale_trip), FAST),
    ("what the sum starts from dropped", "directions", BATCH, instead(
        trips, "_accumulate", lambda right, *given: right(*given[:-1], tuple(map(jnp.zeros_like, given[-1]))))),
    ("stacked rows in reverse", "stacked", BATCH,
     instead(trips, "_place", lambda right, role, numbers, updates, array: right(role, numbers, updates[::-1], array)),
     FAST),
    ("counter one trip short after the loop", "by-twos", BATCH,
     instead(trips, "_results", lambda right, loop, count, *given: right(loop, count - 1, *given))),
    ("hoisted values in the wrong order", "with-weights", HOIST,
     instead(licm, "raise_nodes", swapped_frontier), FAST),
    ("operands of the spliced loop swapped", "with-weights", HOIST, instead(rewriting, "splice", swapped_operands)),
    ("half of the cross term of a product", "products", SPARSE,
     in_the_rewrite(elementwise, "row_products", times(0.5)), FAST),
    ("cross term of a product missing", "products", DENSE, in_the_rewrite(elementwise, "row_products", times(0.0))),
    ("cross term of a contraction missing", "overlaps", SPARSE,
     in_the_rewrite(dot_general, "products_of_blocks", lambda right, *given: None)),
    ("cross terms over electrons missing", "attention", SPARSE,
     in_the_rewrite(owned_dot, "_cross_terms", lambda right, *given: iter(()))),
    ("the sum of attention's weights taken for a constant", "attention", SPARSE,
     in_the_rewrite(owned_dot, "_quotient", divisor_held_constant)),
    ("cross term of a contraction once", "overlaps", DENSE, in_the_rewrite(dot_general, "_cross", times(0.5))),
    ("second derivative of a function dropped", "products", SPARSE,
     in_the_rewrite(chains, "_affine", lambda right, *given: True), FAST),
    ("wrong sign in a quotient", "quotient", SPARSE,
     in_the_rewrite(elementwise, "quotient", cross_of_quotient_added)),
    ("quadratic term of a determinant added", "determinant", SPARSE,
     in_the_rewrite(slogdet, "log_determinant_jet", quadratic_added)),
    ("a determinant without the matrix's Laplacian", "determinant", DENSE,
     in_the_rewrite(slogdet, "log_determinant_jet", of_jacobian_alone)),
    ("a maximum shared by all", "largest", SPARSE,
     in_the_rewrite(reductions, "shares", lambda right, array, *given: jnp.full_like(array, 1 / 3))),
    ("a maximum taken for a constant", "largest", SPARSE,
     instead(sites, "derivation", extremes_held_constant)),
    ("slots of different electrons taken for one", "pairs", SPARSE,
     in_the_rewrite(owners, "same_owner", lambda right, first, second: True, jet)),
    ("gradient in reverse order", "gradient", SPARSE, in_the_rewrite(emit, "densify", rows_reversed)),
    ("coordinates of an electron swapped", "gradient", DENSE,
     in_the_rewrite(interpreter, "identity_jet", rows_reversed)),
    ("constant factor dropped", "scaled", SPARSE,
     instead(sites, "derivation", factors_lost)),
    ("initial sum dropped", "scaled", SPARSE, instead(sites, "derivation", offsets_lost)),
    ("a source of the adjoint lost", "products", ADJOINT, instead(emit, "weighted_sources", first_source_lost)),
    ("parts of the walkers in reverse", "products", f"{SPARSE}{{chunks=5}}",
     instead(emit.Emission, "_in_parts", parts_reversed)),
    ("equality that does not hold", "of-another", SPARSE, agrees_with_any),
))  # fmt: skip
