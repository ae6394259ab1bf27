"""Which sums of a function are Laplacians, of which values, with which weights: the first four of the five steps."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from fusionlab.codegen.laplacian.jet import Coordinates
from fusionlab.codegen.laplacian.state import Options
from fusionlab.codegen.raising import RaiseError, Raising, unsupported_nodes
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Marks
from fusionlab.hlo.constants import fold
from fusionlab.hlo.dependence import live_nodes, reached
from fusionlab.hlo.loops import Loop, Sum
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Value, walk
from fusionlab.passes.fuse_jvp_replay.directions import Place, UnitRows, subject_of
from fusionlab.passes.fuse_jvp_replay.evaluating import FEW_ENOUGH
from fusionlab.passes.fuse_jvp_replay.guards import DiscreteValues, TextGuards, by_integers
from fusionlab.passes.fuse_jvp_replay.no_laplacian import (
    LimitReached,
    NoMatch,
    NotALaplacian,
    UncoveredMatch,
    Unevaluated,
)
from fusionlab.passes.fuse_jvp_replay.positions import groups, positions_of
from fusionlab.passes.fuse_jvp_replay.products import Cut, ProductTrial
from fusionlab.passes.fuse_jvp_replay.shift_invariance import invariant_shifts
from fusionlab.passes.fuse_jvp_replay.tail import Tail, WeightedTarget, common_weights, rows_of, weighed
from fusionlab.passes.fuse_jvp_replay.targets import require_equal_weights, require_no_product, tails
from fusionlab.passes.fuse_jvp_replay.ties import adjoint_holds, gradients_at_ties, weights_hold
from fusionlab.passes.refusals import Ground, Refusal

_MOST_SEEDS = 4


@dataclass(frozen=True, eq=False)
class Derivation:
    """``targets`` are sums of second derivatives of values of the function with respect to ``x`` [*walkers, ...].

    ``gradients`` are values that hold the gradient of an output. ``tail`` computes the targets from ``tail.cuts``.
    ``marks`` are the axes of values that count walkers along each leading axis of x that can be resized; ``one`` raises
    the program with one walker. Derivatives through ``stop_gradient`` cancel; ``subgradients`` are those of maxima and
    minima where operands are equal. ``by_adjoint``: the adjoint has all second derivatives, for sums with weights of
    their own. ``every_direction``: coordinates of weight 0 may be directions, too; else 0 times what is undefined is.
    """

    flat: FunctionView
    x: Value
    walkers: int
    coordinates: Coordinates
    targets: tuple[WeightedTarget, ...]
    tail: Tail
    gradients: Mapping[Value, Value]
    marks: Mapping[int, Marks]
    one: Raising
    stop_gradient: tuple[Value, ...]
    subgradients: Mapping[Value, int] = field(default_factory=dict)
    starts: Mapping[Value, Value] = field(default_factory=dict)
    powers_by_base: bool = False
    by_adjoint: bool = False
    every_direction: bool = True

    @property
    def outputs(self) -> list[Value]:
        """The values that are differentiated."""
        terms = [each.output for target in self.targets for each in target.terms]
        return list(dict.fromkeys([*terms, *(cut.of for cut in self.tail.cuts)]))

    @property
    def loops(self) -> list[Loop]:
        """The loops over directions that are gone."""
        return list(dict.fromkeys(cut.place.loop for cut in self.tail.cuts if cut.place.loop is not None))


def decided(flat: FunctionView, places: Sequence[Place], extent: int, deadline: float) -> Derivation:
    """The decision for the directions of ``places``, of ``extent`` coordinates; NotALaplacian if there is none."""
    numbers = ValueNumbers(flat, through_reshapes=True)
    refused: list[Refusal | RaiseError] = []
    none = set[tuple[Place, Value]]()
    for some in _subsets(places):
        try:
            if (found := _decided(flat, some, extent, numbers, deadline, none)) is not None:
                return found
        except (UncoveredMatch, LimitReached):
            raise
        except MemoryError as error:
            too_large = f"{subject_of(places)} needs more memory than there is to be identified"
            raise LimitReached(Ground.HOST_MEMORY, too_large) from error
        except (Refusal, RaiseError) as reason:
            refused.append(reason)
    if (opaque := _opaque(places)) is not None:
        raise opaque
    if refused:
        raise next((reason for reason in refused if not isinstance(reason, NoMatch)), refused[0])
    found_none = f"of the values without directions, none has the Laplacian that {subject_of(places)} computes"
    raise NoMatch(Ground.FUNCTION_NOT_FOUND, found_none)


def _opaque(places: Sequence[Place]) -> Refusal | None:
    """The refusal of a call that directions are given to, of which nothing is known."""
    for place in places:
        directed = reached(place.region, [seed.value for seed in place.seeds])
        for node in unsupported_nodes(place.region):
            if node.call_target and not directed.isdisjoint(node.results):
                reason = f"{subject_of(places)} cannot be evaluated: custom call @{node.call_target} is opaque"
                return Refusal(Ground.OPAQUE_CALL, reason, node)
    return None


def _subsets(places: Sequence[Place]) -> Iterator[Sequence[Place]]:
    """All loops, which may share what they differentiate; identities; rows of them; then each loop alone.

    An identity beside a loop, and rows beside an identity, may have nothing to do with directions.
    """
    loops = [place for place in places if place.loop is not None]
    if loops:
        yield loops
    for place in places:
        if place.loop is None:
            yield [place]
    if len(loops) > 1:
        yield from ([place] for place in loops)


def _decided(
    flat: FunctionView, places: Sequence[Place], extent: int, numbers: ValueNumbers, deadline: float,
    none: set[tuple[Place, Value]],
) -> Derivation | None:  # fmt: skip
    """The decision for ``places``, together or one of them. ``none``, to which others are added, are places without one
    for these positions."""
    refused: list[Refusal | RaiseError] = []
    for x, leading, outputs in positions_of(flat, places, extent):
        if none.issuperset((place, x) for place in places):
            continue
        is_none = True
        plain = [value for value in outputs if value.type.shape == x.type.shape[:leading]]
        others = [value for value in outputs if value not in plain]
        for group in (*groups(flat.nodes, plain), *groups(flat.nodes, others)):
            try:
                if (found := _of_group(flat, places, x, leading, group, numbers, deadline)) is not None:
                    return found
            except (UncoveredMatch, LimitReached):
                raise
            except (Refusal, RaiseError) as reason:
                refused.append(reason)
                is_none = False
        if is_none:
            none.update((place, x) for place in places)
    if refused:
        raise refused[0]
    return None


def _of_group(
    flat: FunctionView, places: Sequence[Place], x: Value, leading: int, group: Sequence[Value], numbers: ValueNumbers,
    deadline: float, resize: bool = True,
) -> Derivation | None:  # fmt: skip
    """The decision for the outputs ``group``.

    Where a few walkers do not stand for all, or their axes are mistaken for others, all are evaluated, if they are few.
    """
    trial = ProductTrial(flat, places, x, leading, group, numbers, deadline, resize)
    try:
        found = _of_trial(trial, numbers)
        for some in _alone(places, trial.together) if found is None else ():
            alone = ProductTrial(flat, some, x, leading, group, numbers, deadline, resize)
            found = found or _of_trial(alone, numbers)
    except (RaiseError, Unevaluated, NotALaplacian) as reason:
        of_walkers = not isinstance(reason, NotALaplacian) or reason.ground is Ground.WALKERS_TOLD_APART
        if not trial.marks or not of_walkers or math.prod(x.type.shape[:leading]) > FEW_ENOUGH:
            raise
        return _of_group(flat, places, x, leading, group, numbers, deadline, resize=False)
    return found


def _alone(places: Sequence[Place], together: Collection[UnitRows]) -> Iterator[Sequence[Place]]:
    """Each of the seeds alone: what is the derivative along one may have another direction beside it, as of a gradient
    that is made of its entries."""
    for place in places:
        for seed in [each for each in place.seeds if each in together][:_MOST_SEEDS]:
            yield [Place(place.loop, (seed,), place.region, tuple(each for each in place.seeds if each is not seed))]


def _of_trial(trial: ProductTrial, numbers: ValueNumbers) -> Derivation | None:
    roots = any(node.op in (ops.SQRT, ops.POWER) for node in walk(trial.cone))
    powers = roots and any(node.op is ops.POWER for node in trial.flat.walk())
    if not trial.candidates:
        return None
    given = [value for value in trial.inputs if value.dtype in ops.INTEGERS]
    for options in (Options(), Options(powers_by_base=True))[: 2 if powers else 1]:
        if (narrow := trial.narrowed(options)) is None:
            continue
        shifts = invariant_shifts(narrow) if by_integers(narrow.cone, given) is None else {}
        stopped = tuple(shift for shift, outputs in shifts.items() if outputs.issuperset(narrow.outputs))
        cuts, gradients = narrow.matches(stopped, options)
        cuts = _first(cuts, narrow)
        if any(cut.order == 2 for cut in cuts):
            return _with_targets(narrow, cuts, gradients, shifts, options, numbers)
    return None


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


def _some_coordinates(targets: Sequence[WeightedTarget]) -> list[int]:
    """The coordinates that have a weight, where some weights are 0 or targets have channels; else none."""
    terms = [term for target in targets for term in target.terms]
    if all(all(map(all, term.real)) and term.axis is None for term in terms):
        return []
    rows = np.array([[bool(weight) for weight in row] for term in terms for row in (*term.real, *term.imaginary)])
    return [int(k) for k in np.flatnonzero(rows.any(0))]


def _starts(flat: FunctionView, tail: Tail) -> dict[Value, Value]:
    """The initial values, other than 0, of the sums of loops with cuts; without those that such a loop computes."""
    found: dict[Value, Value] = {}
    after = reached(flat, [result for node in tail.loops for result in node.results])
    for loop in {cut.place.loop: None for cut in tail.cuts if cut.place.loop is not None}:
        for i in loop.indices(Sum):
            at = loop.node.operands[i]
            if at not in after and ((array := fold(at)) is None or np.any(array)):
                found[loop.node.results[i]] = at
    return found


def _with_targets(
    trial: ProductTrial,
    cuts: Sequence[Cut],
    gradients: Collection[tuple[Value, Value]],
    shifts: Mapping[Value, Collection[Value]],
    options: Options,
    numbers: ValueNumbers,
) -> Derivation | None:
    flat = trial.flat
    refused: list[NotALaplacian] = []
    for tail in tails(flat, cuts, {value for value, _ in gradients}):
        try:
            require_equal_weights(trial, tail)
            require_no_product(trial, tail)
        except NotALaplacian as reason:
            refused.append(reason)
            continue
        starts = _starts(flat, tail)
        found = weighed(trial, tail, starts)
        if found is None or not any(target.terms for target in found):
            continue
        outputs = dict.fromkeys(each.output for target in found for each in target.terms)
        outputs |= dict.fromkeys(cut.of for cut in tail.cuts)
        cone = live_nodes(flat.nodes, trial.inputs, list(outputs))
        stopped = tuple(shift for shift, of in shifts.items() if shift.producer in cone and outputs.keys() <= set(of))
        own = {g: output for output in outputs for g in trial.gradients if (g, output) in gradients}
        inputs = [trial.x, *(a for a in flat.arguments if a is not trial.x)]
        discrete = DiscreteValues(flat, cone, trial.x, inputs)
        guards = TextGuards(flat, trial.x, inputs, list(walk(cone)), numbers, trial.axes, discrete)
        guards.require([target.value for target in found], trial.subject)
        own = {gradient: of for gradient, of in own.items() if guards.passes(gradient)}
        rows = [row for target in found for term in target.terms for row in rows_of(term)]
        weights = common_weights(rows)
        by_adjoint = weights is None and adjoint_holds(trial, list(outputs), stopped, options, numbers)
        some = [] if by_adjoint else _some_coordinates(found)
        try:
            kept = gradients_at_ties(trial, stopped, options, tail, own, some)
        except UncoveredMatch:  # derivatives by some coordinates are defined where those along a direction are not
            by_adjoint = bool(some) and adjoint_holds(trial, list(outputs), stopped, options, numbers)
            if not by_adjoint:
                raise
            kept = gradients_at_ties(trial, stopped, options, tail, own, [])
        every = by_adjoint or weights is None or all(weights)
        if not every and weights is not None:
            every = weights_hold(trial, list(outputs), weights, stopped, options)
        return Derivation(
            flat, trial.x, trial.walkers, trial.coordinates, tuple(found), tail, kept, trial.marks, trial.one, stopped,
            trial.subgradients, starts, options.powers_by_base, by_adjoint, every,
        )  # fmt: skip
    if refused:
        raise refused[0]
    return None
