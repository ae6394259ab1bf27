"""unroll-loops: a loop of few trips becomes its trips, one after another.

rewrite:
    %r = while(%x, %k = 0; %k < 3) { f(%x, %k) }        -->        %r = f(f(f(%x, 0), 1), 2)

XLA:GPU runs a loop from the host, trip by trip. Each trip has kernels of its own for the counter, for scalars that
the loop carries and for random keys, which fuse with nothing. Side by side, the counter is a constant, what depends on
it alone is independent of the other trips (XLA merges it into one kernel), and scalars are fused into the next trip.

requires: a trip count known at compile time, the same at every call, of at most ``most_trips``; at most ``most_ops``
    ops in all trips, those of inner loops that were unrolled included; ops with raising rules alone, as others may have
    effects. They are copied as they are, kernels of passes before included.
exact: changes rounding: functions of the counter are folded by XLA, whose constants are not those of its kernels.
hopes: the launches that each trip has for its counter, scalars and keys; costs compile time, in proportion to trips.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from jaxlib.mlir import ir

from fusionlab.codegen.raising import unsupported_nodes
from fusionlab.codegen.raising.splice import copy_here, drop_dead_functions
from fusionlab.errors import InputError
from fusionlab.hlo.loops import Loop, find_loops
from fusionlab.hlo.program import Program, rewritten
from fusionlab.hlo.view import Node, Region, view_of
from fusionlab.passes.interface import Applied, Event, Pass, Result, Setting, verify
from fusionlab.passes.refusals import Ground, Refusal, unsupported
from fusionlab.passes.rewriting import functions_of_others


@dataclass(frozen=True)
class UnrollLoops(Pass):
    """Options: ``most_trips`` and ``most_ops``; see the module's docstring."""

    most_trips: int = 10
    most_ops: int = 100_000

    name: ClassVar[str] = "unroll-loops"

    def __post_init__(self) -> None:
        for option in ("most_trips", "most_ops"):
            if getattr(self, option) < 1:
                raise InputError(f"{self.name}: {option} must be at least 1, not {getattr(self, option)}")

    def run(self, program: Program, setting: Setting) -> Result:
        """Unroll every loop that qualifies, inner ones first; see the module's docstring."""
        module = program.parse()
        shared = functions_of_others(module)
        occurrences: dict[Any, list[Loop]] = {}
        for loop in find_loops(view_of(module)):
            occurrences.setdefault(loop.node.operation, []).append(loop)
        applied: list[Event] = []
        declined: list[Event] = []
        unrolled: dict[Node, int] = {}
        for operation, loops in reversed(occurrences.items()):
            place = loops[0].node.scope
            try:
                trips = self._trips(loops, shared, unrolled)
            except Refusal as reason:
                declined.append(reason.of(self.name, place))
            else:
                _unroll(operation, trips)
                unrolled.update((loop.node, trips) for loop in loops)
                applied.append(Applied(self.name, f"a loop became its {trips} trips", place, str(self)))
        if not applied:
            nothing = Refusal(Ground.NOTHING_THERE, "there is no loop in the program").of(self.name, "")
            return Result(program, tuple(declined) or (nothing,))
        verify(module, self.name)
        drop_dead_functions(module)
        return Result(rewritten(program, module), (*applied, *declined))

    def _trips(self, loops: Sequence[Loop], shared: set[str], unrolled: Mapping[Node, int]) -> int:
        """The trips of a loop, which has an entry for each call of its function; Refusal if it is to stay. Inner loops
        that were ``unrolled`` are as many ops as all of their trips."""
        first = loops[0]
        if first.node.function in shared:
            reason = f"@{first.node.function} also belongs to another public function of the module"
            raise Refusal(Ground.SHARED_FUNCTION, reason)
        if first.trips is None:
            reason = f"the trip count is not known at compile time: {first.trips_reason}"
            raise Refusal(Ground.TRIP_COUNT, reason, first.node)
        if any(loop.trips != first.trips for loop in loops):
            reason = f"@{first.node.function} is called with different trip counts"
            raise Refusal(Ground.CALLED_DIFFERENTLY, reason)
        if unknown := [node for region in first.node.regions for node in unsupported_nodes(region)]:
            raise unsupported(unknown[0], "loop")  # its effects are in order trip by trip, and not side by side
        if first.trips > self.most_trips:
            reason = f"it has {first.trips:,} trips, more than most_trips={self.most_trips}"
            raise Refusal(Ground.NO_GAIN, reason, first.node)
        if (count := first.trips * _ops_of(first.body, unrolled)) > self.most_ops:
            reason = f"all trips together have {count:,} ops, more than most_ops={self.most_ops:,}"
            raise Refusal(Ground.NO_GAIN, reason, first.node)
        return first.trips


def _ops_of(region: Region, unrolled: Mapping[Node, int]) -> int:
    """The ops of ``region`` and the regions in it once the loops in ``unrolled`` are their trips."""
    count = 0
    for node in region.nodes:
        trips = unrolled.get(node)
        if trips is not None:
            count += trips * _ops_of(node.regions[1], unrolled)
        else:
            count += 1 + sum(_ops_of(inner, unrolled) for inner in node.regions)
    return count


def _unroll(operation: Any, trips: int) -> None:
    """Put ``trips`` copies of the body of a ``stablehlo.while`` in its place."""
    block = operation.regions[1].blocks[0]
    *body, last = [one.operation for one in block.operations]
    carried = list(operation.operands)
    with operation.context, ir.InsertionPoint(operation):
        for _ in range(trips):
            known = dict(zip(block.arguments, carried, strict=True))
            for one in body:
                copy_here(one, known)
            carried = [known.get(value, value) for value in last.operands]
    for result, value in zip(operation.results, carried, strict=True):
        result.replace_all_uses_with(value)
    operation.erase()
