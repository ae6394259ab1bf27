"""Step 2, products: the values T = H d of a program, and the F of which H is the Hessian.

    T(d) = H_F(x) d          reached from a seed d by ops that are polynomials of it
    d . T(d) = d . H_F d     for random d, the right side by the forward Laplacian of F along d; of several rows at once
    e . T(D) = e . H_F D     for D = u d + v e (Freivalds), the right side from the forms along d, e and d + e

One trip, and one or three directions, whatever the number of coordinates. What holds for all d holds for the unit
vectors of the program. Of a single row the symmetric part of T is compared: only diagonal elements of T are summed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from fusionlab.codegen.laplacian.state import Options
from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import FieldWithGuards, primes
from fusionlab.equivalence.exact.identity import evaluators
from fusionlab.equivalence.exact.values import Array, Drawn
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes, reached
from fusionlab.hlo.view import FunctionView, Node, Value, reads, walk
from fusionlab.passes.fuse_jvp_replay.identify.cuts import Cut
from fusionlab.passes.fuse_jvp_replay.identify.evaluating import DRAWS, DRAWS_OF_INTEGERS, DRAWS_OF_RARE
from fusionlab.passes.fuse_jvp_replay.identify.guards import by_integers
from fusionlab.passes.fuse_jvp_replay.identify.shift_invariance import extremes, invariant_shifts, may_shift
from fusionlab.passes.fuse_jvp_replay.identify.trial import ProductTrial
from fusionlab.passes.fuse_jvp_replay.rationals import small_fraction

_FIRST = 3
"""The draw that is evaluated first, without steering."""


@dataclass(frozen=True)
class Products:
    """The ``cuts`` of ``trial`` that are derivatives of its outputs, and pairs of a gradient and its output.

    ``shifts`` are maxima and minima with the outputs that do not depend on them; ``options`` are those of the draws.
    """

    trial: ProductTrial
    cuts: Sequence[Cut]
    gradients: Collection[tuple[Value, Value]]
    shifts: Mapping[Value, Collection[Value]]
    options: Options

    def stopped_in(self, cone: Collection[Node], outputs: Collection[Value]) -> tuple[Value, ...]:
        """The shifts in ``cone`` on which none of ``outputs`` depends."""
        of = self.shifts.items()
        return tuple(shift for shift, own in of if shift.producer in cone and set(outputs) <= set(own))

    @cached_property
    def leave_directions(self) -> bool:
        """True if results depend on directions, and on x, otherwise than by the ``cuts``."""
        dependent = reached(self.trial.flat, [self.trial.x])
        for place in self.trial.places:
            own = {cut.value for cut in self.cuts if cut.place is place}
            seconds = {cut.value for cut in self.cuts if cut.place is place and cut.order == 2}
            after = reached(place.region, seconds) - seconds
            left = reached(place.region, [seed.value for seed in place.seeds]) & dependent
            left -= reached(place.region, own)
            readers = (node for node in place.region.nodes if not left.isdisjoint(reads(node)))
            if not left.isdisjoint(place.region.returns) or any(not after.isdisjoint(node.results) for node in readers):
                return True
        return False


def products_of(trial: ProductTrial) -> Iterator[Products]:
    """The products of second order among the candidates of ``trial``; two sets, if extremes are held constant in one.

    With the extremes constant is tried first. Where that leaves outputs with extremes, those of all of them together
    come before it if directions reach something beside it, which may be another Laplacian, and after it otherwise.
    """
    if not trial.has_products:
        return
    roots = any(node.op in (ops.SQRT, ops.POWER) for node in walk(trial.cone))
    powers = roots and any(node.op is ops.POWER for node in trial.flat.walk())
    constant = tuple(extremes(trial)) if trial.is_likely else ()
    for options in (Options(), Options(powers_by_base=True))[: 2 if powers else 1]:
        first = _with_constant(trial, constant, options, ()) if constant else None
        if first is None:
            if (found := _with_constant(trial, (), options, ())) is not None:
                yield found
                return
            continue
        left = [output for output in trial.outputs if output not in first.trial.outputs]
        is_first_last = first.leave_directions
        if not is_first_last:
            yield first
        has_extremes = any(map(may_shift, live_nodes(trial.flat.nodes, trial.inputs, left)))
        if has_extremes and (found := _with_constant(trial, (), options, first.trial.outputs)) is not None:
            yield found
        if is_first_last:
            yield first
        return


def _with_constant(
    trial: ProductTrial, constant: tuple[Value, ...], options: Options, known: Collection[Value]
) -> Products | None:
    """The products of ``trial`` among what one draw leaves where the extremes ``constant`` have no derivatives.

    None if there are none, none of other outputs than ``known`` ones, or an output depends on one of the extremes.
    """
    narrow = _narrowed(trial, constant, options)
    if narrow is None or set(narrow.outputs).issubset(known):
        return None
    given = [value for value in trial.inputs if value.dtype in ops.INTEGERS]
    shifts = invariant_shifts(narrow) if by_integers(narrow.cone, given) is None else {}
    stopped = tuple(shift for shift, outputs in shifts.items() if outputs.issuperset(narrow.outputs))
    own = {value for value in constant if value.producer in narrow.cone}
    if not own.issubset(stopped):
        return None
    if own.issuperset(stopped):  # the program of all candidates has it
        narrow.take_part_of(trial, stopped, constant)
    found, gradients = _matches(narrow, stopped, options)
    cuts = _first(found, narrow)
    return Products(narrow, cuts, gradients, shifts, options) if any(cut.order == 2 for cut in cuts) else None


def _first(cuts: Sequence[Cut], trial: ProductTrial) -> list[Cut]:
    """One cut of each value: of second derivatives before first ones, of the first of the outputs.

    What is computed from second derivatives is not the first derivative of another value, as of an entry of a gradient.
    """
    order = {output: at for at, output in enumerate(trial.outputs)}
    found: dict[Value, Cut] = {}
    for cut in cuts:
        held = found.get(cut.value)
        if held is None or (held.order, -order[held.of]) < (cut.order, -order[cut.of]):
            found[cut.value] = cut
    after = set[Value]()
    for place in dict.fromkeys(cut.place for cut in cuts):
        after |= reached(place.region, [cut.value for cut in cuts if cut.order == 2 and cut.place is place])
    return [cut for cut in found.values() if cut.order == 2 or cut.value not in after]


def _narrowed(trial: ProductTrial, constant: tuple[Value, ...], options: Options) -> ProductTrial | None:
    """The same for the candidates and outputs that one draw leaves; None if it leaves no second derivative.

    Most are none, and what is asked of the others depends on which they are.
    """
    alive, gradients = _alive(trial)
    lowered = trial.lowered(constant, options)
    for part, arguments in trial.batches(lowered, FieldWithGuards(primes(1)[0], [_FIRST])):
        _compare(trial, lowered, Evaluator(part, trial.prepared), arguments, alive, gradients)
    seconds = {f for _, f, order in alive if order == 2}
    if not seconds:
        return None
    left = {i for i, f in gradients if f in seconds}
    return trial.narrowed(
        [output for f, output in enumerate(trial.outputs) if f in seconds],
        list(dict.fromkeys(cut for cut, f, _ in alive if f in seconds)),
        [value for i, value in enumerate(trial.gradients) if i in left],
    )


_Alive = dict[tuple[Cut, int, int], dict[int, int]]
"""By candidate, output and order the ratios by prime."""


def _alive(trial: ProductTrial) -> tuple[_Alive, set[tuple[int, int]]]:
    """All pairs, without ratios yet; possible gradients with outputs."""
    count = len(trial.outputs)
    pairs = [(cut, f, order) for cut in trial.candidates for f in range(count) for order in cut.orders]
    return {pair: {} for pair in pairs}, {(i, f) for i in range(len(trial.gradients)) for f in range(count)}


def _compare(
    trial: ProductTrial, lowered: FunctionView, evaluator: Evaluator, arguments: list[Drawn], alive: _Alive,
    gradients: set[tuple[int, int]],
) -> None:  # fmt: skip
    """Leave in ``alive`` and ``gradients`` what agrees in the draws of ``evaluator``."""
    field = evaluator.arithmetic
    found = trial.results(trial.evaluated(lowered, evaluator, arguments), arguments)
    for pair in list(alive):
        ours, expected = found.both(field, *pair)
        if ours is None or expected is None:
            del alive[pair]
        elif ours.any() or expected.any():  # else integers at which the value is constant
            scale = _ratio(ours, expected, field.p)
            if scale is None or alive[pair].setdefault(field.p, scale) != scale:
                del alive[pair]
    gradients -= {(i, f) for i, f in gradients if not found.is_gradient(field, i, f)}


def _matches(
    trial: ProductTrial, stopped: tuple[Value, ...], options: Options
) -> tuple[list[Cut], set[tuple[Value, Value]]]:
    """The cuts that are derivatives of an output in all draws, and pairs of a gradient and its output."""
    lowered = trial.lowered(stopped, options)
    alive, gradients = _alive(trial)
    rounds = [*zip(primes(len(DRAWS)), DRAWS, strict=True)]
    if trial.prepared.rare:
        rounds += [(p, DRAWS_OF_RARE) for p in primes(len(DRAWS))]
    if any(value.dtype in ops.INTEGERS for value in trial.inputs):
        rounds += [(p, DRAWS_OF_INTEGERS) for p in primes(len(DRAWS))]
    for p, draws in rounds:
        if draws is DRAWS_OF_INTEGERS and all(p in residues for residues in alive.values()):
            continue
        share = dict(draws)
        for part, arguments in trial.batches(lowered, FieldWithGuards(p, list(share))):
            shares = [share[seed] for seed in part.seeds]
            for [evaluator] in evaluators(part, shares, trial.prepared, 1, trial.rounds):
                _compare(trial, lowered, evaluator, arguments, alive, gradients)
                if not any(order == 2 for *_, order in alive):
                    return [], set()
    cuts = []
    for (cut, f, order), residues in alive.items():
        if len(residues) == len(DRAWS) and (factor := small_fraction(residues)) is not None:
            cuts.append(replace(cut, order=order, output=trial.outputs[f], scale=factor))
    return cuts, {(trial.gradients[i], trial.outputs[f]) for i, f in gradients}


def _ratio(ours: Array, expected: Array, p: int) -> int | None:
    """The number with ``ours`` = number times ``expected`` modulo p everywhere, not 0; None without it."""
    if ours.shape != expected.shape:
        return None
    a, b = ours.astype(np.int64).ravel() % p, expected.astype(np.int64).ravel() % p
    at = np.flatnonzero(b)
    if not at.size:
        return None
    number = int(a[at[0]]) * pow(int(b[at[0]]), -1, p) % p
    return number if number and not ((a - number * b) % p).any() else None
