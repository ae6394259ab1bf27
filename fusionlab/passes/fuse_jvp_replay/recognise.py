"""Values of a program that may be the trace of a Hessian: sums over the unit directions of the coordinates.

a loop:     for k in range(K): sum += hessian(eye[k])[k]           (a replay of the inventory)
no loop:    trace(vmap(hessian)(eye))                              (an identity of K rows goes into it)
            hessian(e0)[0] + hessian(e1)[1] + ...                  (each of the K unit vectors does)
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.trips import per_trip, read_by_trips
from fusionlab.hlo import ops
from fusionlab.hlo.constants import fold
from fusionlab.hlo.dependence import on_every_way, reached, sources_of
from fusionlab.hlo.loops import Counter, Invariant, Loop, Stacked, Sum
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.replay import Replay, identity_extent
from fusionlab.hlo.view import FunctionView, Node, Region, TensorType, Value, reads
from fusionlab.passes.fuse_jvp_replay.no_laplacian import NoMatch
from fusionlab.passes.fuse_jvp_replay.unit_vectors import unit_vectors
from fusionlab.passes.refusals import Ground

_SOLVES = (ops.TRIANGULAR_SOLVE, ops.CUSTOM_CALL)
"""Ops that solve a system of equations whose right-hand side is the second operand."""
_MOST_TARGETS = 6
_MOST_SIZES = 3


@dataclass(frozen=True)
class TripWeights:
    """The scalar ``value`` of each trip (or its inverse) by which the term of a sum is multiplied, as 1 / mass."""

    loop: Loop
    value: Value
    inverse: bool

    def array(self, raising: Raising, environment: Mapping[Value, Any]) -> Any:
        """The weights [trips]."""
        array = per_trip(self.loop, self.value, raising, environment)
        return 1 / array if self.inverse else array

    @property
    def reads(self) -> list[Value]:
        """The values before the loop that they are computed from."""
        return list(dict.fromkeys(read_by_trips(self.loop, self.value).values()))


@dataclass(frozen=True)
class CoordinateWeights:
    """The ``value`` (or its inverse) by which second derivatives are multiplied before they are added, as 1 / mass.

    The axes of ``value`` that are longer than 1 are ``axes`` of an array ``shape``, whose elements, in order, are the
    weights of equal numbers of ``coordinates``.
    """

    value: Value
    axes: tuple[int, ...]
    shape: tuple[int, ...]
    coordinates: int
    inverse: bool

    def array(self, raising: Raising, environment: Mapping[Value, Any]) -> Any:
        """The weights [coordinates]."""
        found = environment[self.value]
        long = found.reshape([extent for extent in found.shape if extent > 1])
        weights = lax.broadcast_in_dim(long, self.shape, self.axes).reshape(-1)
        weights = jnp.repeat(weights, self.coordinates // weights.size)
        return 1 / weights if self.inverse else weights

    @property
    def reads(self) -> list[Value]:
        """The values that they are computed from."""
        return [self.value]


@dataclass(frozen=True, eq=False)
class TraceCandidate:
    """One of ``targets``, the likeliest first, may be a sum over ``directions`` unit vectors.

    ``before`` are the nodes of ``flat`` that do not need the directions, ``read`` the values that are read beside
    them, ``initial`` has the initial values of targets that are sums of a loop, ``factors`` a value by which all terms
    of such a sum are multiplied. ``replay`` is None where there is no loop. ``walkers`` are the extents of a target's
    axes that count walkers. ``weighted``: a direction may have a weight of its own, and a target one axis more, along
    which the weights differ. ``weights`` are those of the directions by a value. ``later`` are values that may be
    targets where ``targets`` are not. ``of_replays``: only replays read the unit vectors.
    """

    flat: FunctionView
    targets: tuple[Value, ...]
    directions: int
    before: tuple[Node, ...]
    read: tuple[Value, ...]
    initial: Mapping[Value, Value]
    factors: Mapping[Value, Value]
    replay: Replay | None
    producer: Node
    walkers: tuple[int, ...]
    weighted: bool = False
    weights: TripWeights | CoordinateWeights | None = None
    later: tuple[Value, ...] = ()
    of_replays: bool = False

    def besides(self, target: Value) -> TraceCandidate | None:
        """The same for values that neither are ``target`` nor depend on it; None if there are none."""
        after = reached(self.flat, [target])
        left = [value for value in (*self.targets, *self.later) if value not in after]
        if not left:
            return None
        return replace(self, targets=tuple(left[:_MOST_TARGETS]), later=tuple(left[_MOST_TARGETS:]))

    @property
    def weighs(self) -> bool:
        """True if directions have weights, or may have."""
        return self.weighted or (self.weights is not None and self.replay is None)

    @property
    def subject(self) -> str:
        """Its name in messages."""
        return "the loop" if self.replay else "the sum over directions"

    def with_what_follows(self) -> TraceCandidate | None:
        """The same with the nodes after its loop that do not need it in ``before``, too; None if there are none."""
        if self.replay is None:
            return None
        needing = reached(self.flat, self.producer.results)
        every = tuple(n for n in self.flat.nodes if n is not self.producer and needing.isdisjoint(n.results))
        return replace(self, before=every) if len(every) > len(self.before) else None


def candidate_of_loop(flat: FunctionView, replay: Replay) -> TraceCandidate:
    """The sum of ``replay``, a loop of ``flat`` itself and not of a region in it; NotALaplacian if there is not one."""
    loop, node = replay.loop, replay.loop.node
    sums, stacks = loop.indices(Sum), [node.results[i] for i in loop.indices(Stacked)]
    if sums and not stacks:
        targets = tuple(node.results[i] for i in sums if is_float(node.results[i])) or (node.results[sums[0]],)
    elif len(stacks) == 1 and not sums and (found := _first_reduction(flat, stacks[0])) is not None:
        targets = (found,)
    else:
        raise NoMatch(Ground.NOT_ONE_SUM, "the loop does not give one sum over directions", node)
    return _of_loop(flat, replay, targets, targets[0].type.shape)


def weighted_candidates(flat: FunctionView, replay: Replay) -> Iterator[TraceCandidate]:
    """The sums of ``replay`` in which directions may have weights, those of the fewest elements first.

    A loop that leaves out some of the coordinates gives a sum of the others; what is added to it later may be the rest.
    """
    loop, node = replay.loop, replay.loop.node
    sums = [node.results[i] for i in loop.indices(Sum) if is_float(node.results[i])]
    stacks = [node.results[i] for i in loop.indices(Stacked) if is_float(node.results[i])]
    if sums and not stacks:
        after = reached(flat, sums)
        later = (n.results[0] for n in flat.nodes if n.op is ops.ADD and n.results[0] in after)
        for total in [total for total in later if total.type == sums[0].type][:_MOST_TARGETS]:
            yield _of_loop(flat, replay, (total,), total.type.shape, True)
        yield _of_loop(flat, replay, tuple(sums), sums[0].type.shape, True)
    if len(stacks) != 1 or sums:
        return
    [stack] = stacks
    if (found := _first_reduction(flat, stack)) is not None:
        plain = _of_loop(flat, replay, (found,), found.type.shape)
        for weights in _coordinate_weights(flat, reached(flat, [stack]), plain.walkers, plain.directions):
            yield replace(plain, weights=weights)
        yield replace(plain, weighted=True)
    for target in filter(None, (found, stack)):
        shape = target.type.shape
        for walkers in dict.fromkeys((*shape[:i], *shape[i + 1 :]) for i in range(len(shape))):
            yield _of_loop(flat, replay, (target,), walkers, True)


def _first_reduction(flat: FunctionView, stack: Value) -> Value | None:
    after = reached(flat, [stack])
    return next((n.results[0] for n in flat.nodes if n.op is ops.REDUCE and n.results[0] in after), None)


def _of_loop(
    flat: FunctionView, replay: Replay, targets: tuple[Value, ...], walkers: tuple[int, ...], weighted: bool = False
) -> TraceCandidate:
    loop, node = replay.loop, replay.loop.node
    assert replay.trips is not None
    directions = replay.seed.extent if replay.seed is not None else replay.trips
    before = tuple(flat.nodes[: flat.nodes.index(node)])
    read = (*node.operands, *replay.residuals)
    sums = loop.indices(Sum)
    initial = {node.results[i]: node.operands[i] for i in sums}
    common = {node.results[i]: _common_factor(loop, i) for i in sums}
    factors = {target: factor for target, factor in common.items() if factor is not None and factor.type == target.type}
    weights = {_trip_weights(replay, i) for i in sums} if not weighted and replay.trips == directions else set()
    return TraceCandidate(
        flat, targets, directions, before, read, initial, factors, replay, node, walkers, weighted,
        weights.pop() if len(weights) == 1 else None,
    )  # fmt: skip


def _trip_weights(replay: Replay, at: int) -> TripWeights | None:
    """The weights of a sum: a scalar factor or divisor of its term that depends on the counter, not on a direction."""
    loop, role = replay.loop, replay.loop.roles[at]
    term = role.terms[0][1].producer if isinstance(role, Sum) and len(role.terms) == 1 else None
    directed = reached(loop.body, replay.seed.node.results) if replay.seed is not None else set()
    others = {
        loop.body.arguments[i] for i in range(len(loop.roles)) if not isinstance(loop.roles[i], Invariant | Counter)
    }
    excluded = directed | reached(loop.body, others)
    while term is not None:
        if term.op not in (ops.MULTIPLY, ops.DIVIDE, ops.NEGATE):
            return None
        for position, operand in enumerate(term.operands):
            scalar = operand
            while scalar.producer is not None and scalar.producer.op in (ops.BROADCAST_IN_DIM, ops.RESHAPE):
                scalar = scalar.producer.operands[0]
                if not scalar.type.shape:
                    break
            divides = term.op is ops.DIVIDE and position == 1
            is_factor = term.op is ops.MULTIPLY or divides
            if is_factor and not scalar.type.shape and scalar in replay.varying and scalar not in excluded:
                return TripWeights(loop, scalar, divides)
        rest = [operand for operand in term.operands if operand in directed]
        term = rest[0].producer if len(rest) == 1 else None
    return None


def _common_factor(loop: Loop, at: int) -> Value | None:
    """The value from before the loop by which the term of a sum is multiplied in every trip, if it is not constant."""
    role = loop.roles[at]
    assert isinstance(role, Sum)
    term = role.terms[0][1].producer if len(role.terms) == 1 else None
    if term is None or term.op is not ops.MULTIPLY:
        return None
    body, fixed = loop.body, loop.indices(Invariant)
    carried = {body.arguments[i]: loop.node.operands[i] for i in fixed}
    inside = {*body.arguments, *(value for node in body.nodes for value in node.results)}
    outside = [carried.get(value, value) for value in term.operands if value in carried or value not in inside]
    return outside[0] if len(outside) == 1 and fold(outside[0]) is None else None


def candidates_without_loop(flat: FunctionView, replays: Collection[Node] = ()) -> Iterator[TraceCandidate]:
    """Sums over the rows of an identity of as many rows as some value has coordinates per walker, or over so many unit
    vectors, the most first: electrons and orbitals, whose identities mask pairs and shift matrices, are fewer.

    Without walkers that value has to depend on an argument: a mask of pairs is as large an identity as the constants of
    all electrons, as of their spins, are long.
    Where no value with directions is of the type of one that may be differentiated, the sums have an axis more.
    """
    of_replays = _read_by(flat, replays)
    by_extent: dict[int, list[Value]] = {}
    for value in identities(flat):
        by_extent.setdefault(identity_extent(value, {}), []).append(value)
    given, varying = (reached(flat, of) for of in (flat.arguments, filter(is_float, flat.arguments)))
    every = [(extent, [values]) for extent, values in by_extent.items()]
    every += unit_vectors(flat).items()
    sizes = set[int]()
    for extent, parts in sorted(every, key=lambda each: -each[0]):
        if len(sizes - {extent}) == _MOST_SIZES:
            break
        directed = reached(flat, itertools.chain.from_iterable(parts))
        before = tuple(node for node in flat.nodes if directed.isdisjoint(node.results))
        plain = [v for v in (*flat.arguments, *(v for node in before for v in node.results)) if is_float(v)]
        shapes = {
            value.type.shape[:axes]
            for value in plain
            for axes in range(0 if value in given else 1, len(value.type.shape))
            if math.prod(value.type.shape[axes:]) == extent
        }
        types = dict.fromkeys(value.type for value in plain if value in varying and value.type.shape in shapes)
        nodes = [node for node in flat.nodes if not directed.isdisjoint(node.results)]
        read = tuple(dict.fromkeys(v for node in nodes for v in reads(node) if v not in directed))
        sums: dict[TensorType, list[Value]] = {each: [] for each in types}
        whole = directed if len(parts) == 1 else _of_each(flat, parts)
        for value in (value for node in nodes for value in node.results):
            if value.type in types and value in varying and value in whole:
                sums[value.type].append(value)
        if types:
            sizes.add(extent)
        found = 0
        for output in sorted(types, key=lambda each: math.prod(each.shape)):
            if found == _MOST_SIZES:
                break
            channels = not sums[output]
            if not (
                targets := _totals_first(sums[output], nodes, directed) or _with_channels(flat, extent, output)[:1]
            ):
                continue
            found += 1
            producer = targets[0].producer
            assert producer is not None
            some, later = tuple(targets[:_MOST_TARGETS]), tuple(targets[_MOST_TARGETS:])
            yield TraceCandidate(
                flat, some, extent, before, read, {}, {}, None, producer, output.shape, weighted=channels, later=later,
                of_replays=of_replays.issuperset(itertools.chain.from_iterable(parts)),
            )  # fmt: skip


def _read_by(flat: FunctionView, nodes: Collection[Node]) -> set[Value]:
    """The identities that only ``nodes`` read, or that are read to make such identities."""
    found = set[Value]()
    for value in reversed(identities(flat)):
        readers = [node for node in flat.nodes if value in reads(node) and node not in nodes]
        if all(found.issuperset(node.results) for node in readers):
            found.add(value)
    return found


def _totals_first(sums: Sequence[Value], nodes: Sequence[Node], directed: Collection[Value]) -> list[Value]:
    """``sums``, those last that are read by nothing but an addition of another term with directions."""
    added = {node for node in nodes if node.op is ops.ADD and all(value in directed for value in node.operands)}
    read_elsewhere = {value for node in nodes if node not in added for value in reads(node)}
    partial = {value for node in added for value in node.operands} - read_elsewhere
    return sorted(sums, key=partial.__contains__)


def _of_each(flat: FunctionView, parts: Sequence[Sequence[Value]]) -> set[Value]:
    """Values that depend on a value of each of ``parts``."""
    single = list(dict.fromkeys(itertools.chain.from_iterable(parts)))
    bit = {value: 1 << i for i, value in enumerate(single)}
    masks = [sum(bit[value] for value in values) for values in parts]
    return {value for value, bits in sources_of(flat, single).items() if all(bits & mask for mask in masks)}


def weighted_without_loop(candidate: TraceCandidate) -> Iterator[TraceCandidate]:
    """The sums of ``candidate``, which has no loop, in which directions may have weights.

    First those whose weights a value of the program has, then those whose weights are constants, then one value for
    several sums.
    """
    if candidate.weighted:
        return
    flat, extent, output = candidate.flat, candidate.directions, candidate.targets[0].type
    if not (values := _likely_directions(flat, extent)):
        return
    for weights in _coordinate_weights(flat, reached(flat, values), candidate.walkers, extent):
        yield replace(candidate, weights=weights)
    yield replace(candidate, weighted=True)
    for target in _with_channels(flat, extent, output):
        assert target.producer is not None
        yield replace(candidate, targets=(target,), producer=target.producer, weighted=True, later=())


def _with_channels(flat: FunctionView, extent: int, output: TensorType) -> list[Value]:
    """The values of one axis more than ``output``, of ``extent`` elements at most, through which alone the results
    depend on directions, those of the fewest elements first: the diagonal of a Hessian, or its sum by particle."""
    ways, walkers = on_every_way(flat, _likely_directions(flat, extent)), output.shape

    def fits(value: Value) -> bool:
        shape, axes = value.type.shape, range(len(value.type.shape))
        others = [(*shape[:axis], *shape[axis + 1 :]) for axis in axes if shape[axis] <= extent]
        return value.dtype == output.dtype and walkers in others

    return sorted(filter(fits, ways), key=lambda value: math.prod(value.type.shape))[:_MOST_TARGETS]


def _coordinate_weights(
    flat: FunctionView, directed: set[Value], walkers: tuple[int, ...], coordinates: int
) -> list[CoordinateWeights]:
    """The values by which those with directions are multiplied or divided, coordinate by coordinate, the last first."""
    found: dict[CoordinateWeights, None] = {}
    for node in reversed(flat.nodes):
        if node.op not in (ops.MULTIPLY, ops.DIVIDE, ops.DOT_GENERAL) or directed.isdisjoint(node.results):
            continue
        for position, operand in enumerate(node.operands):
            source, mapped = _broadcast_source(operand)
            within = operand.type.shape[: len(walkers)] == walkers and node.op is not ops.DOT_GENERAL
            first = len(walkers) if within else 0
            shape, axes = operand.type.shape[first:], tuple(axis - first for axis in mapped)
            fits = coordinates % max(math.prod(shape), 1) == 0 and axes and min(axes) >= 0
            divides = node.op is ops.DIVIDE
            if operand not in directed and fits and is_float(source) and divides <= position:
                found[CoordinateWeights(source, axes, shape, coordinates, divides)] = None
    return list(found)[:_MOST_TARGETS]


def _broadcast_source(value: Value) -> tuple[Value, list[int]]:
    """The value that is broadcast to ``value``, and for each of its axes longer than 1 the axis there."""
    axes = list(range(len(value.type.shape)))
    while value.producer is not None and value.producer.op in (ops.BROADCAST_IN_DIM, ops.RESHAPE):
        [operand] = value.producer.operands
        before, after = operand.type.shape, value.type.shape
        if value.producer.op is ops.BROADCAST_IN_DIM:
            to = [int(axis) for axis in value.producer.attributes["broadcast_dimensions"]]
        elif [extent for extent in before if extent > 1] == [extent for extent in after if extent > 1]:
            long = iter([axis for axis, extent in enumerate(after) if extent > 1])
            to = [next(long) if extent > 1 else -1 for extent in before]
        else:
            break
        axes = [axes[axis] if axis >= 0 else -1 for axis in to]
        value = operand
    return value, [axis for axis, extent in zip(axes, value.type.shape, strict=True) if extent > 1]


def _likely_directions(flat: FunctionView, extent: int) -> list[Value]:
    """The identity matrices of ``extent`` rows that are likely to be directions: neither added to values without
    directions alone, nor right-hand sides of systems of equations, whose solutions are inverses."""
    found = [value for value in identities(flat) if identity_extent(value, {}) == extent]
    directed = reached(flat, found)
    known, used = {value: value for value in found}, set[Value]()
    for node in flat.nodes:
        for read in (value for value in reads(node) if value in known):
            source, at = known[read], node.operands.index(read) if read in node.operands else None
            if node.op in (ops.BROADCAST_IN_DIM, ops.RESHAPE, ops.TRANSPOSE, ops.CONVERT):
                known[node.results[0]] = source
            elif node.op in (ops.ADD, ops.SUBTRACT):
                used.update([source] if directed.issuperset(node.operands) else [])
            elif node.op not in _SOLVES or at != 1 or read.type.shape[-2:] != source.type.shape:
                used.add(source)
    return [value for value in found if value in used]


def identities(region: Region) -> list[Value]:
    """The identity matrices that nodes of ``region`` itself make, of two rows or more."""
    made = (value for node in region.nodes for value in node.results)
    return [value for value in made if is_float(value) and identity_extent(value, {}) > 1]


def is_float(value: Value) -> bool:
    """True for arrays of f32 or f64."""
    return value.dtype in WIDE_FLOATS
