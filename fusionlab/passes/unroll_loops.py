"""unroll-loops: a loop of few trips becomes its trips, one after another.

rewrite:
    %r = while(%x, %k = 0; %k < 3) { f(%x, %k) }        -->        %r = f(f(f(%x, 0), 1), 2)

XLA:GPU runs a loop from the host, trip by trip. Each trip has kernels of its own for the counter, for scalars that
the loop carries and for random keys, which fuse with nothing. Side by side, the counter is a constant, what depends on
it alone is independent of the other trips (XLA merges it into one kernel), and scalars are fused into the next trip.

requires: a trip count known at compile time, of at most ``most_trips``; at most ``most_ops`` ops in all trips; a body
    that raises to JAX. Loops within it that qualify are unrolled with it; others stay loops.
exact: bitwise per op (XLA may fuse ops of neighbouring trips).
hopes: the launches that each trip has for its counter, scalars and keys; costs compile time, in proportion to trips.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from fusionlab.codegen.raising import Raising, unsupported_nodes
from fusionlab.errors import InputError
from fusionlab.hlo import ops
from fusionlab.hlo.loops import Counter, Loop, analyse
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal, unsupported
from fusionlab.passes.rewriting import LoopSite, Rewrite, rewrite_loops


@dataclass(frozen=True)
class UnrollLoops(Pass):
    """Options: ``most_trips`` and ``most_ops``; see the module's docstring."""

    most_trips: int = 10
    most_ops: int = 100_000

    name: ClassVar[str] = "unroll-loops"

    def __post_init__(self) -> None:
        for option in ("most_trips", "most_ops"):
            if getattr(self, option) < 1:
                raise InputError(f"unroll-loops: {option} must be at least 1, not {getattr(self, option)}")

    def run(self, program: Program, setting: Setting) -> Result:
        """Unroll every loop that qualifies, outer ones first."""
        return rewrite_loops(program, self.name, self._decide, setting)

    def _decide(self, site: LoopSite) -> Rewrite:
        loop = site.loop
        self.require(loop)
        if opaque := unsupported_nodes(loop.body):
            raise unsupported(opaque[0], "body")
        raising = _Unrolling(marks=site.raising.marks, by=self)

        def run(*arrays: Any) -> Sequence[Any]:
            captured = dict(zip(site.captured, arrays[len(loop.roles) :], strict=True))
            with raising.scope(loop.node):
                return raising.trips(loop, arrays[: len(loop.roles)], captured)

        return Rewrite(run, what=f"a loop became its {loop.trips} trips", resolved=str(self))

    def require(self, loop: Loop) -> int:
        """The trips of ``loop``; Refusal unless it is to be unrolled."""
        if loop.trips is None:
            reason = f"the trip count is not known at compile time: {loop.trips_reason}"
            raise Refusal(Ground.TRIP_COUNT, reason, loop.node)
        if loop.trips > self.most_trips:
            raise Refusal(Ground.NO_GAIN, f"it has {loop.trips:,} trips, more than most_trips={self.most_trips}")
        if (count := loop.trips * sum(1 for _ in loop.body.walk())) > self.most_ops:
            reason = f"all trips together have {count:,} ops, more than most_ops={self.most_ops:,}"
            raise Refusal(Ground.NO_GAIN, reason)
        return loop.trips


@dataclass(frozen=True)
class _Unrolling(Raising):
    """Raises loops that ``by`` admits as their trips."""

    by: UnrollLoops = field(default_factory=UnrollLoops)

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        if node.op is ops.WHILE:
            loop = analyse(node)
            with contextlib.suppress(Refusal):
                self.by.require(loop)
                with self.scope(node):
                    return self.trips(loop, [environment[value] for value in node.operands], environment)
        return super().node(node, environment)

    def trips(self, loop: Loop, carried: Sequence[Any], environment: Mapping[Value, Any]) -> Sequence[Any]:
        """The values that ``loop`` carries in the end, with its counters as constants in every trip."""
        trip = self.region(loop.body, environment)
        counters = {i: role for i, role in enumerate(loop.roles) if isinstance(role, Counter)}

        def counted(carried: Sequence[Any], number: int) -> list[Any]:
            return [counters[i].at(number) if i in counters else array for i, array in enumerate(carried)]

        trips = self.by.require(loop)
        for number in range(trips):
            carried = trip(*counted(carried, number))
        return counted(carried, trips)
