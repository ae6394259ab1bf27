"""Which sums of a function are Laplacians, of which values, with which weights: the first four of the five steps."""

from __future__ import annotations

import functools
import math
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.laplacian.jet import Coordinates
from fusionlab.codegen.laplacian.state import Options, State
from fusionlab.codegen.raising import RaiseError, Raising, unsupported_nodes
from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import FieldWithGuards, primes
from fusionlab.equivalence.exact.values import Array
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Marks
from fusionlab.hlo.constants import fold
from fusionlab.hlo.dependence import live_nodes, on_every_way, reached, sources_of
from fusionlab.hlo.loops import Loop, Recurrent, Stacked, Sum, accumulated_by, analyse
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Node, Value, reads, walk
from fusionlab.passes.fuse_jvp_replay import equal_inputs
from fusionlab.passes.fuse_jvp_replay.directions import UnitRows, seeds_of_constants, seeds_of_loop
from fusionlab.passes.fuse_jvp_replay.evaluating import DRAWS, MOST_SECONDS
from fusionlab.passes.fuse_jvp_replay.guards import DiscreteValues, TextGuards, by_integers, told_apart
from fusionlab.passes.fuse_jvp_replay.no_laplacian import LimitReached, NoMatch, NotALaplacian, UncoveredMatch
from fusionlab.passes.fuse_jvp_replay.one_by_one import adjoint_is_defined, second_derivatives
from fusionlab.passes.fuse_jvp_replay.products import Cut, Place, ProductTrial, subject_of
from fusionlab.passes.fuse_jvp_replay.shift_invariance import invariant_shifts
from fusionlab.passes.fuse_jvp_replay.tail import Tail, WeightedTarget, common_weights, rows_of, weighed
from fusionlab.passes.refusals import Ground, Refusal

_MOST_TARGETS, _MOST_SEEDS = 8, 4


@dataclass(frozen=True, eq=False)
class Derivation:
    """``targets`` are sums of second derivatives of values of the function with respect to ``x`` [*walkers, ...].

    ``gradients`` are values that hold the gradient of an output. ``tail`` computes the targets from ``tail.cuts``.
    ``marks`` are the axes of values that count walkers along each leading axis of x that can be resized; ``one`` raises
    the program with one walker. Derivatives through ``stop_gradient`` cancel; ``subgradients`` are those of maxima and
    minima where operands are equal. ``by_adjoint``: the adjoint has all second derivatives, for sums with weights of
    their own.
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

    @property
    def outputs(self) -> list[Value]:
        """The values that are differentiated."""
        terms = [each.output for target in self.targets for each in target.terms]
        return list(dict.fromkeys([*terms, *(cut.of for cut in self.tail.cuts)]))

    @property
    def loops(self) -> list[Loop]:
        """The loops over directions that are gone."""
        return list(dict.fromkeys(cut.place.loop for cut in self.tail.cuts if cut.place.loop is not None))


def places_of(flat: FunctionView) -> dict[int, list[Place]]:
    """By number of coordinates, the most first, the places where so many directions are pushed."""
    found: dict[int, list[Place]] = {}
    by: dict[int, list[UnitRows]] = {}
    for seed in seeds_of_constants(flat):
        by.setdefault(seed.extent, []).append(seed)
    for extent, seeds in by.items():
        whole = tuple(seed for seed in seeds if seed.rows == extent)
        rows = tuple(seed for seed in seeds if seed.rows != extent)
        found.setdefault(extent, []).extend(Place(None, some, flat) for some in (whole, rows) if some)
    for node in flat.nodes:
        if node.op is not ops.WHILE:
            continue
        loop = analyse(node)
        if not loop.trips or loop.indices(Recurrent) or not loop.indices(Sum, Stacked):
            continue
        of: dict[int, list[UnitRows]] = {}
        for seed in seeds_of_loop(flat, loop):
            of.setdefault(seed.extent, []).append(seed)
        for extent, seeds in of.items():
            found.setdefault(extent, []).append(Place(loop, tuple(seeds), loop.body))
    return {extent: found[extent] for extent in sorted(found, reverse=True)}


def decided(flat: FunctionView, places: Sequence[Place], extent: int, deadline: float = math.inf) -> Derivation:
    """The decision for the directions of ``places``, of ``extent`` coordinates; NotALaplacian if there is none."""
    deadline = min(deadline, time.monotonic() + MOST_SECONDS)
    numbers = ValueNumbers(flat, through_reshapes=True)
    refused: list[Refusal | RaiseError] = []
    for some in _subsets(places):
        try:
            if (found := _decided(flat, some, extent, numbers, deadline)) is not None:
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
    none = f"of the values without directions, none has the Laplacian that {subject_of(places)} computes"
    raise NoMatch(Ground.FUNCTION_NOT_FOUND, none)


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
    flat: FunctionView, places: Sequence[Place], extent: int, numbers: ValueNumbers, deadline: float
) -> Derivation | None:
    refused: list[Refusal | RaiseError] = []
    for x, leading, outputs in _positions(flat, places, extent):
        plain = [value for value in outputs if value.type.shape == x.type.shape[:leading]]
        others = [value for value in outputs if value not in plain]
        for group in (*groups(flat.nodes, plain), *groups(flat.nodes, others)):
            limits = deadline, MOST_SECONDS
            try:
                trial = ProductTrial(flat, places, x, leading, group, numbers, *limits)
                found = _of_trial(trial, numbers)
                for some in _alone(places, trial.together) if found is None else ():
                    found = found or _of_trial(ProductTrial(flat, some, x, leading, group, numbers, *limits), numbers)
                if found is not None:
                    return found
            except (UncoveredMatch, LimitReached):
                raise
            except (Refusal, RaiseError) as reason:
                refused.append(reason)
    if refused:
        raise refused[0]
    return None


def groups(before: Sequence[Node], outputs: Sequence[Value]) -> Iterator[list[Value]]:
    """Candidates that no other candidate is computed from, then the others."""
    used: set[Value] = set()
    for node in reversed(before):
        if any(value in used or value in outputs for value in node.results):
            used.update(node.operands)
    both = [value for value in outputs if value not in used], [value for value in outputs if value in used]
    yield from filter(None, both)


def _alone(places: Sequence[Place], together: Collection[UnitRows]) -> Iterator[Sequence[Place]]:
    """Each of the seeds alone: what is the derivative along one may have another direction beside it, as of a gradient
    that is made of its entries."""
    for place in places:
        for seed in [each for each in place.seeds if each in together][:_MOST_SEEDS]:
            yield [Place(place.loop, (seed,), place.region)]


def _of_trial(trial: ProductTrial, numbers: ValueNumbers) -> Derivation | None:
    roots = any(node.op in (ops.SQRT, ops.POWER) for node in walk(trial.cone))
    powers = roots and any(node.op is ops.POWER for node in trial.flat.walk())
    if not trial.candidates:
        return None
    given = [value for value in trial.inputs if value.dtype in ops.INTEGERS]
    shifts = invariant_shifts(trial) if by_integers(trial.cone, given) is None else {}
    stopped = tuple(shift for shift, outputs in shifts.items() if outputs.issuperset(trial.outputs))
    for options in (Options(), Options(powers_by_base=True))[: 2 if powers else 1]:
        cuts, gradients = trial.matches(stopped, options)
        cuts = _first(cuts, trial)
        if any(cut.order == 2 for cut in cuts):
            return _with_targets(trial, cuts, gradients, shifts, options, numbers)
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


def _with_targets(
    trial: ProductTrial,
    cuts: Sequence[Cut],
    gradients: Collection[tuple[Value, Value]],
    shifts: Mapping[Value, Collection[Value]],
    options: Options,
    numbers: ValueNumbers,
) -> Derivation | None:
    flat = trial.flat
    for targets in _ways_out(flat, cuts):
        tail = Tail(flat, cuts, targets)
        if not any(cut.order == 2 for cut in tail.cuts) or not tail.is_affine:
            continue
        starts: dict[Value, Value] = {}
        for cut in tail.cuts:
            if (loop := cut.place.loop) is not None:
                begun = {loop.node.results[i]: loop.node.operands[i] for i in loop.indices(Sum)}
                starts |= {v: at for v, at in begun.items() if (array := fold(at)) is None or np.any(array)}
        if beside := _results_beside(flat, tail, {value for value, _ in gradients}):
            tail = Tail(flat, cuts, [*targets, *beside])
            if not tail.is_affine:
                continue
        _require_tail(trial, tail)
        found = weighed(trial, tail, starts)
        if found is None or not all(target.terms for target in found[: len(targets)]):
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
        kept = _at_equal_inputs(trial, stopped, options, tail, found, own)
        rows = [row for target in found for term in target.terms for row in rows_of(term)]
        own_weights = common_weights(rows) is None
        by_adjoint = own_weights and _adjoint_holds(trial, list(outputs), stopped, options, numbers)
        return Derivation(
            flat, trial.x, trial.walkers, trial.coordinates, tuple(found), tail, kept, trial.marks, trial.one, stopped,
            trial.subgradients, starts, options.powers_by_base, by_adjoint,
        )  # fmt: skip
    return None


def _require_tail(trial: ProductTrial, tail: Tail) -> None:
    """NotALaplacian if the weights may be others for other walkers, or for integers that no draw has."""
    nodes = tail.every_node([trial.x])
    if trial.marks and (why := told_apart(nodes, trial.axes)) is not None:
        raise NotALaplacian(why.ground, f"{trial.subject} is weighed by walkers: {why.reason}", why.node)
    given = [value for value in trial.flat.arguments if value.dtype in ops.INTEGERS]
    if (node := by_integers(nodes, given)) is not None:
        reason = f"{trial.subject} weighs second derivatives by an integer argument"
        raise NotALaplacian(Ground.INTEGER_ARGUMENT, reason, node)


def _results_beside(flat: FunctionView, tail: Tail, gradients: Collection[Value]) -> list[Value]:
    """The other results of the loops of ``tail`` that the function needs, as a squared gradient."""
    rest = live_nodes(flat.nodes, [*flat.arguments, *tail.targets, *gradients], flat.returns)
    read = {value for node in rest for value in reads(node)} | set(flat.returns)
    return [value for node in tail.loops for value in node.results if value in read and value not in tail.targets]


def _ways_out(flat: FunctionView, cuts: Sequence[Cut]) -> Iterator[list[Value]]:
    """Sets of values through which the results depend on cuts: one for all of them, then one for those of each place
    and output, together and alone. Of values through which all ways go, the smallest first, the earliest of equal ones.
    """
    seconds = [cut for cut in cuts if cut.order == 2]
    apart: dict[tuple[Place, Value], list[Cut]] = {}
    for cut in seconds:
        apart.setdefault((cut.place, cut.of), []).append(cut)
    yield from _ways_of(flat, seconds)
    if len(apart) > 1:
        ways = [list(_ways_of(flat, some)) for some in apart.values()]
        if all(ways):
            yield list(dict.fromkeys(value for each in ways for value in each[0]))
        for each in ways:
            yield from each


def _ways_of(flat: FunctionView, cuts: Sequence[Cut]) -> Iterator[list[Value]]:
    sources = _sources(cuts)
    inexact = [value for value in on_every_way(flat, sources) if value.dtype in ops.INEXACT]
    for value in sorted(inexact, key=lambda value: math.prod(value.type.shape))[:_MOST_TARGETS]:
        yield [value]
    if sums := [v for v in sources if v.producer is not None and v.producer.op is ops.WHILE and _is_sum(v)]:
        yield sums


def _is_sum(value: Value) -> bool:
    assert value.producer is not None
    return isinstance(analyse(value.producer).roles[value.index], Sum)


def _sources(cuts: Sequence[Cut]) -> list[Value]:
    """The values of the function that have the cuts: themselves, or results of their loops."""
    found: dict[Value, None] = {}
    for cut in cuts:
        if (loop := cut.place.loop) is None:
            found[cut.value] = None
            continue
        after = reached(loop.body, [cut.value])
        for result, role in zip(loop.node.results, loop.roles, strict=True):
            if not after.isdisjoint(accumulated_by(role)):
                found[result] = None
    return list(found)


def _positions(flat: FunctionView, places: Sequence[Place], extent: int) -> list[tuple[Value, int, list[Value]]]:
    """Values of ``extent`` coordinates behind some leading axes, the number of these, and the candidates for F.

    They are those on which most of the values read beside the directions depend: the last two of them, and the first;
    then the same of values that all walkers share, as nuclei.
    """
    directed = reached(flat, [s.value for p in places if p.loop is None for s in p.seeds])
    ends = [value.type.shape for value in flat.returns if value.is_array]
    for place in places:
        if (loop := place.loop) is not None:
            directed |= reached(flat, loop.node.results)
            ends += [loop.node.results[i].type.shape for i in loop.indices(Sum)]
            ends += [role.term_shape for role in loop.roles if isinstance(role, Stacked)]
    before = [node for node in flat.nodes if directed.isdisjoint(node.results)]
    every = [value for node in flat.nodes if not directed.isdisjoint(node.results) for value in reads(node)]
    read = [value for value in dict.fromkeys(every) if value not in directed]
    values = [*flat.arguments, *(v for node in before for v in node.results)]
    found = _of_extent(values, extent)
    dependent = sources_of(flat, [value for value, _ in found])
    counts = [sum(dependent.get(v, 0) >> i & 1 for v in read) for i in range(len(found))]
    if not found or not max(counts):
        raise NoMatch(Ground.POSITIONS_NOT_FOUND, f"no value of the program has {extent} coordinates per walker")
    chosen: list[tuple[Value, int, list[Value]]] = []
    given = reached(flat, flat.arguments)
    for shared in (False, True):
        best: dict[int, list[tuple[Value, int, list[Value]]]] = {}
        for i, (value, leading) in enumerate(found):
            axes = value.type.shape[:leading]
            shapes = {_longer(shape) for shape in (axes, *ends) if shape[:leading] == axes and shared <= bool(shape)}
            fitting = (v for n in before for v in n.results if v.dtype == value.dtype and v is not value)
            outputs = [v for v in fitting if _longer(v.type.shape) in shapes and dependent.get(v, 0) >> i & 1]
            fits = (leading == 0 and bool(ends)) if shared else (leading > 0 or value in given)
            if outputs and fits and counts[i]:
                best.setdefault(counts[i], []).append((value, leading, outputs))
        most = best[max(best)] if best else []
        chosen += [each for each in [*most[:-3:-1], *most[:-2][:1]] if each[0] not in [value for value, *_ in chosen]]
    if not chosen:
        reason = "no value of one number per walker is computed from the positions before the loop"
        raise NoMatch(Ground.FUNCTION_NOT_FOUND, reason)
    return chosen


def _of_extent(values: Sequence[Value], extent: int) -> list[tuple[Value, int]]:
    """Those of ``values`` with ``extent`` elements behind some leading axes, and the number of these; a reshape of one
    of them is the same.

    Where axes of one element may belong to either, the leading ones are those of another value, if there is one.
    """
    found: dict[Value, int] = {}
    shapes = {value.type.shape for value in values if value.is_array}
    for value in values:
        if value.dtype not in ops.WIDE_FLOATS:
            continue
        shape, node = value.type.shape, value.producer
        fitting = [a for a in range(len(shape)) if math.prod(shape[a:]) == extent]
        reshaped = node is not None and node.op is ops.RESHAPE and node.operands[0] in found
        if fitting and not reshaped:
            found[value] = next((a for a in fitting if shape[:a] in shapes), fitting[-1])
    return list(found.items())


def _longer(shape: Sequence[int]) -> tuple[int, ...]:
    return tuple(extent for extent in shape if extent > 1)


def _at_equal_inputs(
    trial: ProductTrial,
    stopped: tuple[Value, ...],
    options: Options,
    tail: Tail,
    targets: Sequence[WeightedTarget],
    gradients: Mapping[Value, Value],
) -> dict[Value, Value]:
    """The ``gradients`` that are derivatives at equal inputs; UncoveredMatch if a cut is no derivative there."""
    lowered, of = trial.lowered(stopped, options), trial.coordinates
    walkers = math.prod(trial.raising.shape(trial.x)[: trial.walkers])
    partial = any(not all(map(all, each.real)) or each.axis is not None for t in targets for each in t.terms)
    directed = len(trial.inputs)
    kept = dict(gradients)

    def change(along: Array | None, number: int, array: Array) -> Array:
        return array * along if number in (directed, directed + 1) and along is not None else array

    for along in _tied_directions(of, every=partial):
        by = functools.partial(change, along)
        for part, arguments in trial.batches_at_equal_inputs(lowered, trial.inputs, walkers, by):
            evaluator = Evaluator(part, trial.prepared)
            found = trial.results(trial.evaluated(lowered, evaluator, arguments), arguments)
            for cut in tail.cuts:
                f = trial.outputs.index(cut.of)
                ours, expected = found.both(part, cut, f, cut.order)
                assert ours is not None
                assert expected is not None
                scaled = part.multiply(part.embedded(np.asarray(cut.scale)), expected)
                known = ~(np.isnan(ours) | np.isnan(found.values[f])[:, None])
                if (ours[known] != scaled[known]).any():
                    raise UncoveredMatch(Ground.TIES, f"{trial.subject} {equal_inputs.DIFFERS}")
            for gradient, output in list(kept.items()):
                i, f = trial.gradients.index(gradient), trial.outputs.index(output)
                if not found.is_gradient(part, i, f, where_known=True):
                    del kept[gradient]
    return kept


def _adjoint_holds(
    trial: ProductTrial, outputs: Sequence[Value], stopped: tuple[Value, ...], options: Options, numbers: ValueNumbers
) -> bool:
    """True if second derivatives by the adjoint are those along each direction, also at equal inputs."""
    cone = live_nodes(trial.flat.nodes, trial.inputs, outputs)
    if not adjoint_is_defined(trial.flat, trial.x, trial.nodes, cone, numbers):
        return False

    def results(*arrays: Any) -> list[Any]:
        given = dict(zip(trial.inputs, arrays, strict=True))
        state = State(
            trial.x, trial.coordinates, trial.walkers, trial.raising, trial.one, options, stopped, trial.subgradients
        )
        ours = [second_derivatives(state, trial.flat, cone, output, given, trial.marks)[0] for output in outputs]
        along = jax.vmap(lambda direction: trial.along(given, outputs, cone, stopped, options, direction)[1])
        every = along(np.eye(trial.coordinates.count))
        return [*ours, *(jnp.moveaxis(each, 0, -1) for each in every)]

    def agree(found: Sequence[Array]) -> bool:
        pairs = zip(found[: len(outputs)], found[len(outputs) :], strict=True)
        return all(not (~np.isnan(right) & (left != right)).any() for left, right in pairs)

    walkers = math.prod(trial.raising.shape(trial.x)[: trial.walkers])
    try:
        lowered = trial.view_of(results)
        for p, draws in zip(primes(len(DRAWS)), DRAWS, strict=True):
            for part, arguments in trial.batches(lowered, FieldWithGuards(p, [seed for seed, _ in draws])):
                if not agree(trial.evaluated(lowered, Evaluator(part, trial.prepared), arguments)):
                    return False
        for part, arguments in trial.batches_at_equal_inputs(lowered, trial.inputs, walkers):
            if not agree(trial.evaluated(lowered, Evaluator(part, trial.prepared), arguments)):
                return False
    except (Refusal, RaiseError, NotImplementedError):
        return False
    return True


def _tied_directions(of: Coordinates, every: bool) -> list[Array | None]:
    """Masks [K] of directions at equal inputs: all coordinates, and those of the first electron; ``every``: each
    coordinate alone, where one may have a derivative and another none."""
    if every:
        return [*np.eye(of.count)]
    first = np.zeros(of.count)
    first[: of.each] = 1
    return [None, first] if of.electrons > 1 else [None]
