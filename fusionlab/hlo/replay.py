"""The replay inventory: the loops that push one direction after another through a program and sum the results.

A replay is a ``stablehlo.while`` with a known trip count in which nothing depends on the previous trip except sums and
slots of floats, and whose body makes a direction from the counter: a row of an identity, a comparison of the counter
with an iota, or a one written among zeros. Names are never consulted.

Linearity of the body in the direction is not decided here. A pass that needs it has to establish it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

import numpy as np

from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Axis, walker_axes
from fusionlab.hlo.constants import splat_number
from fusionlab.hlo.cost import node_cost, size_bytes
from fusionlab.hlo.dependence import reached
from fusionlab.hlo.loops import (
    Counter,
    Invariant,
    Loop,
    Recurrent,
    Role,
    Stacked,
    Sum,
    accumulated_by,
    find_loops,
    invariant_nodes,
)
from fusionlab.hlo.ops import FLOATS
from fusionlab.hlo.view import Node, Region, Value, constant_array, direction_of, free_values

_ARITHMETIC = ("elementwise", "gemm", "reduction", "triangular-solve", "factorisation")
_NO_ARITHMETIC = (ops.CONVERT, ops.SELECT, ops.COMPARE)


@dataclass(frozen=True)
class Seed:
    """The op that makes the direction of a body: ``node`` yields ``rows`` unit vectors of ``extent`` per trip."""

    node: Node
    extent: int
    rows: int
    description: str


@dataclass(frozen=True)
class Blocker:
    """A reason why a loop is no replay, of one of a few kinds, and the op that is responsible."""

    what: Literal["trips", "recurrent", "no term", "unused direction", "another table", "no direction"]
    reason: str
    node: Node

    def __str__(self) -> str:
        return self.reason


@dataclass(frozen=True)
class Replay:
    """One loop of the inventory; it is a replay when ``blockers`` is empty.

    ``seeds`` is the number of directions that what it accumulates depends on, ``seed`` the first of them.
    ``directed``: the body makes a direction from the counter, whether or not what it accumulates depends on it.
    ``varying`` are the body's values that depend on the counter; ``recomputed`` the loop-invariant nodes
    (``loops.invariant_nodes``).
    """

    function: Region = field(repr=False)
    loop: Loop
    seed: Seed | None
    seeds: int
    directed: bool
    varying: frozenset[Value]
    recomputed: tuple[Node, ...]
    terms: int
    body_ops: int
    blockers: tuple[Blocker, ...]

    @property
    def trips(self) -> int | None:
        """Trips of the loop, None when not known."""
        return self.loop.trips

    @property
    def adds_in_one_direction(self) -> bool:
        """True if every trip adds to sums one term that one unit vector makes, and the loop returns nothing else."""
        if self.seed is None or self.seed.rows != 1 or self.seeds != 1:
            return False
        return all(
            isinstance(r, Counter | Invariant) or (isinstance(r, Sum) and len(r.terms) == 1) for r in self.loop.roles
        )

    @property
    def likeness(self) -> tuple[bool, bool, float]:
        """A key for sorting: the more a loop resembles a replay, the greater.

        A replay is greater than a loop that makes directions and so may push them through a Jacobian-vector product,
        and that than any other; of two of a kind the one with more FLOPs (model) in all trips is greater. An unknown
        number of trips counts as one.
        """
        return not self.blockers, self.directed, node_cost(self.loop.node, self.loop).flops

    @property
    def repeats_arithmetic(self) -> bool:
        """True if floating-point arithmetic, not only that of indices, is recomputed."""
        return any(_computes(node) for node in self.recomputed)

    @property
    def residuals(self) -> tuple[Value, ...]:
        """The values that every trip reads unchanged and that differ between walkers, carried or captured.

        Without a walker axis (accumulators are scalars) every computed value counts as one.
        """
        return self._read_unchanged[0]

    @property
    def shared(self) -> tuple[Value, ...]:
        """The others that every trip reads unchanged: weights, constants, index tables."""
        return self._read_unchanged[1]

    @cached_property
    def _read_unchanged(self) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
        return _read_unchanged(self.loop, self.function)

    @property
    def residual_bytes(self) -> int:
        """Bytes of the residuals, each counted once."""
        return _sizes(self.residuals)

    @property
    def shared_bytes(self) -> int:
        """Bytes of the values that every trip reads and that are the same for all walkers."""
        return _sizes(self.shared)


def find_replays(function: Region) -> list[Replay]:
    """The replays of ``function``, in program order."""
    return [replay for replay in inventory(function) if not replay.blockers]


def inventory(function: Region) -> list[Replay]:
    """Every loop of ``function`` with the reasons why it is no replay; outer loops first."""
    loops = find_loops(function)
    origins = dict(origins_of(loops))
    return [_replay(loop, function, origins) for loop in loops]


def _replay(loop: Loop, function: Region, origins: Mapping[Value, Value]) -> Replay:
    body = loop.body
    counters = {body.arguments[i] for i in loop.indices(Counter)}
    varying = reached(body, counters)
    accumulated = [value for role in loop.roles for value in accumulated_by(role)]
    seeds, other_slices = find_seeds(body, varying, origins)
    floats = [value for value in accumulated if value.dtype in FLOATS]
    reaching = [s for s in seeds if not reached(body, s.node.results).isdisjoint(floats)]
    seed = reaching[0] if reaching else None
    return Replay(
        function=function,
        loop=loop,
        seed=seed,
        seeds=len({(s.node.op, s.node.operands) for s in reaching}),
        directed=bool(seeds),
        varying=frozenset(varying),
        recomputed=tuple(invariant_nodes(loop)),
        terms=len(accumulated),
        body_ops=sum(1 for _ in body.operations()),
        blockers=tuple(_blockers(loop, floats, seeds, seed, other_slices)),
    )


def _blockers(
    loop: Loop, floats: list[Value], seeds: list[Seed], seed: Seed | None, other_slices: list[Node]
) -> Iterator[Blocker]:
    if loop.trips is None:
        yield Blocker("trips", f"the trip count is not known at compile time: {loop.trips_reason}", loop.node)
    elif not loop.trips:
        yield Blocker("no term", "the loop has no trips, and adds nothing", loop.node)
    recurrent = loop.indices(Recurrent)
    if recurrent:
        why, node = loop.recurrence(recurrent[0])
        type_ = loop.body.arguments[recurrent[0]].handle.type
        others = f" (and {len(recurrent) - 1} more)" if len(recurrent) > 1 else ""
        reason = f"carried value {recurrent[0]} ({type_}){others} links one trip to the next: {why}"
        yield Blocker("recurrent", reason, node)
    if not floats:
        reason = "no trip adds a floating-point term to a sum or writes one into a slot of its own"
        yield Blocker("no term", reason, loop.node)
    elif seed is None and seeds:
        reason = "a direction is made from the counter, but what is accumulated does not depend on it"
        yield Blocker("unused direction", reason, seeds[0].node)
    elif seed is None and other_slices:
        source = other_slices[0].operands[0].type
        reason = f"each trip takes a slice of a {source} value that is not known to be an identity"
        yield Blocker("another table", reason, other_slices[0])
    elif seed is None:
        forms = "no row of an identity, no comparison with an iota, no one written among zeros"
        reason = f"no direction is made from the counter ({forms})"
        yield Blocker("no direction", reason, loop.node)


def _read_unchanged(loop: Loop, function: Region) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """(residuals, shared): the values that the body reads unchanged; residuals differ between walkers.

    The walker axis is the leading one of the terms; a value differs between walkers if it is computed from an argument
    of ``function`` that has this axis.
    """
    given = list(dict.fromkeys([*(loop.node.operands[i] for i in loop.indices(Invariant)), *free_values(loop.body)]))
    sums_first = sorted(loop.roles, key=lambda role: isinstance(role, Stacked))
    terms = [axis for role in sums_first for axis in _axis_of_terms(role)]
    if terms:
        marks = walker_axes(function, terms[:1])
        differs = reached(function, [argument for argument in function.arguments if argument in marks])
    else:
        differs = {value for value in given if value.producer and value.producer.operands}
    return tuple(v for v in given if v in differs), tuple(v for v in given if v not in differs)


def _axis_of_terms(role: Role) -> Iterator[Axis]:
    """The leading axis of what every trip adds to a sum or writes into a stack, if it has any."""
    slot = role.axis if isinstance(role, Stacked) and not role.without else None
    for value in accumulated_by(role):
        yield from ((value, axis) for axis in [a for a in range(len(value.type.shape)) if a != slot][:1])


def _computes(node: Node) -> bool:
    if node.family not in _ARITHMETIC or node.op in _NO_ARITHMETIC:
        return False
    return any(value.dtype in FLOATS for value in node.results)


def _sizes(values: Iterable[Value]) -> int:
    return sum(size_bytes(value.type) for value in values)


def find_seeds(body: Region, varying: Set[Value], origins: Mapping[Value, Value]) -> tuple[list[Seed], list[Node]]:
    """Directions that ``body`` makes from its counters, and the slices at a counter of other arrays.

    ``varying`` are the values that depend on a counter; ``origins`` are those of ``origins_of``.
    """
    seeds, others = [], []
    for node in body.nodes:
        if node.op in (ops.DYNAMIC_SLICE, ops.GATHER):
            table, *at = node.operands
            if table in varying or varying.isdisjoint(at) or table.type.dtype not in FLOATS:
                continue
            seed = _row_of_identity(node, origins)
            if seed is None:
                others.append(node)
            else:
                seeds.append(seed)
        elif node.op is ops.COMPARE and direction_of(node) == "EQ":
            seeds += _comparisons_with_iota(node, varying, origins)
        elif node.op in (ops.SCATTER, ops.DYNAMIC_UPDATE_SLICE) and varying.isdisjoint(node.operands[:1]):
            seeds += _one_among_zeros(node, varying, origins)
    return seeds, others


def _one_among_zeros(node: Node, varying: Set[Value], origins: Mapping[Value, Value]) -> Iterator[Seed]:
    """Zeros in which a one is written at the counter."""
    operands = list(node.operands)
    zeros = operands.pop(0)
    one = operands.pop(-1 if node.op is ops.SCATTER else 0)
    if (_splat(zeros, origins), _splat(one, origins)) == (0, 1) and not varying.isdisjoint(operands):
        extent = math.prod(zeros.type.shape) // max(math.prod(one.type.shape), 1)
        rows = math.prod(one.type.shape)
        yield Seed(node, extent, rows, f"a one written at the counter among {extent} zeros ({node.op.mnemonic})")


def _row_of_identity(node: Node, origins: Mapping[Value, Value]) -> Seed | None:
    extent = identity_extent(node.operands[0], origins)
    if not extent:
        return None
    rows = math.prod(node.results[0].type.shape) // extent
    which = "row k" if rows == 1 else f"{rows} rows"
    return Seed(node, extent, rows, f"{which} of the {extent} x {extent} identity ({node.op.mnemonic} at the counter)")


def _comparisons_with_iota(node: Node, varying: Set[Value], origins: Mapping[Value, Value]) -> Iterator[Seed]:
    for counted, index in (node.operands, node.operands[::-1]):
        axis = _iota_axis(counted, origins)
        if axis is not None and counted not in varying and index in varying:
            shape = node.results[0].type.shape
            rows = math.prod(shape) // shape[axis]
            yield Seed(node, shape[axis], rows, f"comparison of the counter with an iota of {shape[axis]}")


def identity_extent(value: Value, origins: Mapping[Value, Value]) -> int:
    """n if ``value`` is the n x n identity, else 0."""
    value = _peeled(value, origins, (ops.CONVERT, ops.RESHAPE))
    node, shape = value.producer, value.type.shape
    if node is None or len(shape) != 2 or shape[0] != shape[1]:
        return 0
    if node.op is ops.CONSTANT:
        return shape[0] if np.array_equal(constant_array(node), np.eye(shape[0])) else 0
    if node.op is ops.SELECT:
        one, zero = (_splat(operand, origins) for operand in node.operands[1:])
        return identity_extent(node.operands[0], origins) if (one, zero) == (1.0, 0.0) else 0
    if node.op is not ops.COMPARE or direction_of(node) != "EQ":
        return 0
    axes = {_iota_axis(operand, origins) for operand in node.operands}
    return shape[0] if axes == {0, 1} else 0


def _iota_axis(value: Value, origins: Mapping[Value, Value]) -> int | None:
    """The axis along which ``value`` counts 0, 1, 2, ..., or None."""
    value = _peeled(value, origins, (ops.CONVERT,))
    node = value.producer
    if node is None:
        return None
    if node.op is ops.IOTA:
        return int(node.attributes["iota_dimension"].value)
    if node.op is ops.ADD:
        for this, other in (node.operands, node.operands[::-1]):
            if _splat(other, origins) == 0:
                return _iota_axis(this, origins)
    if node.op is ops.BROADCAST_IN_DIM:
        axis = _iota_axis(node.operands[0], origins)
        return None if axis is None else int(node.attributes["broadcast_dimensions"][axis])
    return None


def _splat(value: Value, origins: Mapping[Value, Value]) -> complex | None:
    """The number that all elements of ``value`` equal, if it is known; else None."""
    value = _peeled(value, origins, (ops.CONVERT, ops.RESHAPE, ops.BROADCAST_IN_DIM))
    if value.producer is None or value.producer.op is not ops.CONSTANT:
        return None
    return splat_number(constant_array(value.producer))


def _peeled(value: Value, origins: Mapping[Value, Value], through: tuple[ops.OpDef, ...]) -> Value:
    """``value`` before ops of ``through`` and before the loops that carry it unchanged."""
    while True:
        if value in origins:
            value = origins[value]
        elif value.producer is not None and value.producer.op in through:
            value = value.producer.operands[0]
        else:
            return value


def origins_of(loops: Iterable[Loop]) -> Iterator[tuple[Value, Value]]:
    """Pairs of a value that a loop carries unchanged (in its regions and results) and its initial value."""
    for loop in loops:
        for i in loop.indices(Invariant):
            carried = [*(region.arguments[i] for region in loop.node.regions), loop.node.results[i]]
            yield from ((value, loop.node.operands[i]) for value in carried)
