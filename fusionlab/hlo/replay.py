"""The replay inventory: the loops that push one direction after another through a program and sum the results.

A replay is a ``stablehlo.while`` with a known trip count in which nothing depends on the previous trip except sums and
slots of floats, and whose body makes a direction from the counter: a row of an identity, or a comparison of the
counter with an iota. Names are never consulted.

Linearity of the body in the direction is not decided here. A pass that needs it has to establish it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from fusionlab.hlo import ops
from fusionlab.hlo.cost import size_bytes
from fusionlab.hlo.directions import Seed, find_seeds, origins_of
from fusionlab.hlo.element_types import FLOATS
from fusionlab.hlo.families import family
from fusionlab.hlo.invariants import invariant_nodes
from fusionlab.hlo.loops import Counter, Invariant, Loop, Recurrent, Stacked, Sum, find_loops
from fusionlab.hlo.view import Node, Region, Value, free_values

_ARITHMETIC = ("elementwise", "gemm", "reduction", "triangular-solve", "factorisation")
_NO_ARITHMETIC = (ops.CONVERT, ops.SELECT, ops.COMPARE)


@dataclass(frozen=True)
class Replay:
    """One loop of the inventory; it is a replay when ``blockers`` is empty.

    ``residuals`` are the values that every trip reads unchanged and that differ between walkers (carried or captured);
    ``shared`` the others: weights, constants, index tables. Without a walker axis (accumulators are scalars) every
    computed value counts as a residual. ``varying`` are the body's values that depend on the counter; ``recomputed``
    the loop-invariant nodes (``hlo.invariants``).
    """

    loop: Loop
    seed: Seed | None
    residuals: tuple[Value, ...]
    shared: tuple[Value, ...]
    varying: frozenset[Value]
    recomputed: tuple[Node, ...]
    terms: int
    body_ops: int
    blockers: tuple[str, ...]

    @property
    def trips(self) -> int | None:
        """Trips of the loop, None when not known."""
        return self.loop.trips

    @property
    def repeats_arithmetic(self) -> bool:
        """True if floating-point arithmetic, not only that of indices, is recomputed."""
        return any(_computes(node) for node in self.recomputed)

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


def operations(region: Region) -> Iterator[Node]:
    """Every op of ``region`` and of loops and branches in it; a combiner is part of its reduce, sort or scatter."""
    for node in region.nodes:
        yield node
        if node.op.control_flow:
            for inner in node.regions:
                yield from operations(inner)


def reached(region: Region, sources: Iterable[Value]) -> set[Value]:
    """Values of ``region`` and the regions in it that depend on ``sources``."""
    found = set(sources)
    for node in region.walk():
        for inner in node.regions:
            found.update(a for a, given in zip(inner.arguments, node.operands, strict=False) if given in found)
        if not found.isdisjoint(node.operands) or any(not found.isdisjoint(free_values(r)) for r in node.regions):
            found.update(node.results)
    return found


def _replay(loop: Loop, function: Region, origins: Mapping[Value, Value]) -> Replay:
    body = loop.body
    counters = {body.arguments[i] for i in loop.indices(Counter)}
    varying = reached(body, counters)
    accumulated = [value for role in loop.roles for value in _accumulated(role)]
    seeds, other_slices = find_seeds(body, varying, origins)
    floats = [value for value in accumulated if value.dtype in FLOATS]
    seed = next((s for s in seeds if not reached(body, s.node.results).isdisjoint(floats)), None)
    residuals, shared = _read_unchanged(loop, function)
    return Replay(
        loop=loop,
        seed=seed,
        residuals=residuals,
        shared=shared,
        varying=frozenset(varying),
        recomputed=tuple(invariant_nodes(loop)),
        terms=len(accumulated),
        body_ops=sum(1 for _ in operations(body)),
        blockers=tuple(_blockers(loop, floats, seeds, seed, other_slices)),
    )


def _blockers(
    loop: Loop, floats: list[Value], seeds: list[Seed], seed: Seed | None, other_slices: list[Node]
) -> Iterator[str]:
    if loop.trips is None:
        yield f"the trip count is not known at compile time: {loop.trips_reason}"
    recurrent = loop.indices(Recurrent)
    if recurrent:
        role = loop.roles[recurrent[0]]
        assert isinstance(role, Recurrent)
        type_ = loop.body.arguments[recurrent[0]].handle.type
        others = f" (and {len(recurrent) - 1} more)" if len(recurrent) > 1 else ""
        yield f"carried value {recurrent[0]} ({type_}){others} links one trip to the next: {role.reason}"
    if not floats:
        yield "no trip adds a floating-point term to a sum or writes one into a slot of its own"
    elif seed is None and seeds:
        yield "a direction is made from the counter, but what is accumulated does not depend on it"
    elif seed is None and other_slices:
        source = other_slices[0].operands[0].type
        yield f"each trip takes a slice of a {source} value that is not known to be an identity"
    elif seed is None:
        yield "no direction is made from the counter (no row of an identity, no comparison of it with an iota)"


def _accumulated(role: object) -> Iterator[Value]:
    if isinstance(role, Sum):
        yield from (value for _, value in role.terms)
    elif isinstance(role, Stacked):
        yield role.update


def _read_unchanged(loop: Loop, function: Region) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """(residuals, shared): the values that the body reads unchanged; residuals differ between walkers.

    The walker axis is the leading one of the accumulators; a value differs between walkers if it is computed from an
    argument of ``function`` with that leading extent and at least two axes.
    """
    shapes = [loop.body.arguments[i].type.shape for i in loop.indices(Sum)]
    shapes += [_without(role.update.type.shape, role.axis) for role in loop.roles if isinstance(role, Stacked)]
    walkers = next((shape[0] for shape in shapes if shape), None)
    given = [loop.node.operands[i] for i in loop.indices(Invariant)] + free_values(loop.body)
    if walkers is None:
        differs = {value for value in given if value.producer and value.producer.operands}
    else:
        inputs = [a for a in function.arguments if len(a.type.shape) > 1 and a.type.shape[0] == walkers]
        differs = reached(function, inputs)
    given = list(dict.fromkeys(given))
    return tuple(v for v in given if v in differs), tuple(v for v in given if v not in differs)


def _computes(node: Node) -> bool:
    if family(node) not in _ARITHMETIC or node.op in _NO_ARITHMETIC:
        return False
    return any(value.dtype in FLOATS for value in node.results)


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...]:
    return shape[:axis] + shape[axis + 1 :]


def _sizes(values: Iterable[Value]) -> int:
    return sum(size_bytes(value.type) for value in values)
