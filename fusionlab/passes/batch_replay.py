"""batch-replay: run the trips of a counted reduction loop at once.

rewrite:
    acc = init                               k = iota(trips)
    for k in range(trips):            -->    terms = vmap(g)(k, invariants)
        acc = acc + g(k, invariants)         acc = init + sum(terms, axis=0)

and the same for values that each trip writes into its own slot (``scan``'s outputs). With ``chunk=c`` the loop stays
but runs c trips at a time; ``memory_budget`` chooses the largest c whose temp bytes, as XLA reports them for the
study's target, stay within it.

requires: a trip count known at compile time; every carried value an invariant, a counter, a sum or stacked (so that
    no trip reads what another wrote); a body that raises to JAX, without effects. Linearity is not needed.
exact: reassociates (the sum over trips, and contractions whose tiling changes with the batch).
hopes: one launch per op of the body instead of one per op and trip.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

from fusionlab.bytesize import UNBOUNDED, ByteSize, size_words
from fusionlab.codegen.raising.trips import batched_loop, raise_trips
from fusionlab.errors import InputError
from fusionlab.hlo.loops import Recurrent, Stacked, Sum, find_loops
from fusionlab.hlo.program import Program, program_view
from fusionlab.passes.interface import Declined, Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import LoopSite, Rewrite, loop_marks, require_reduction, rewrite_loops

CHUNK_MARK = "fusionlab_chunk"
"""Frontend attribute of a loop created by this pass, with its chunk: such a loop is not batched again."""


@dataclass(frozen=True)
class BatchReplay(Pass):
    """``chunk`` trips at a time (0: all of them); ``memory_budget`` bounds XLA's temp bytes by choosing the chunk."""

    chunk: int = 0
    memory_budget: ByteSize = UNBOUNDED

    name: ClassVar[str] = "batch-replay"

    def __post_init__(self) -> None:
        if self.chunk < 0:
            raise InputError(f"{self.name}: chunk must be at least 1 (or 0 for all trips), not {self.chunk}")
        if self.chunk and self.memory_budget:
            raise InputError(f"{self.name}: give a chunk or a memory_budget, not both")

    def run(self, program: Program, setting: Setting) -> Result:
        """Batch every loop that qualifies; see the module's docstring."""
        if self.memory_budget:
            return _within_budget(program, setting, self.memory_budget)
        return rewrite_loops(program, self.name, self._decide, setting)

    def _decide(self, site: LoopSite) -> Rewrite:
        loop = site.loop
        if mark := loop_marks(loop).get(CHUNK_MARK):
            raise Refusal(Ground.NO_GAIN, f"already batched, {mark} trips at a time")
        require_reduction(loop)
        assert loop.trips is not None
        if loop.trips < 2:
            raise Refusal(Ground.NO_GAIN, f"the loop runs {loop.trips} trips")
        chunk = min(self.chunk or loop.trips, loop.trips)
        return Rewrite(
            batched_loop(raise_trips(loop, site.captured, site.raising), chunk),
            what=_describe(site, chunk),
            resolved=str(BatchReplay(chunk=self.chunk)),
            marks=((CHUNK_MARK, str(chunk)),) if loop.trips // chunk > 1 else (),
        )


def _describe(site: LoopSite, chunk: int) -> str:
    loop = site.loop
    counts = {
        "sums": len(loop.indices(Sum)),
        "stacked values": len(loop.indices(Stacked)),
        "captured values": len(site.captured),
    }
    kinds = ", ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    size = "at once" if chunk == loop.trips else f"in chunks of {chunk}"
    return f"{loop.trips} trips batched {size}" + (f" ({kinds})" if kinds else "")


def _within_budget(program: Program, setting: Setting, budget: ByteSize) -> Result:
    """Try chunks downwards from the largest that linear interpolation between replay and all trips predicts to fit.

    The chunk is chosen by XLA's own buffer assignment, so a candidate is compiled before it is accepted.
    """
    if setting.temp_bytes is None:
        raise InputError("memory_budget needs a target to compile for; give a target or an explicit chunk")
    whole = rewrite_loops(program, BatchReplay.name, BatchReplay()._decide, setting)
    if not whole.applied:
        return whole
    tried = {}
    most = setting.temp_bytes(whole.program)
    if most <= budget:
        return _with_reason(whole, f"{size_words(most)} temp fit the budget of {budget}")
    trips = _most_trips(program)
    least = setting.temp_bytes(program)
    slope = max(most - least, 1) / max(trips - 1, 1)
    divisors = [chunk for chunk in range(trips - 1, 0, -1) if trips % chunk == 0]
    if divisors == [1]:  # a prime number of trips: equal chunks with a smaller one at the end
        divisors = sorted({-(-trips // chunks) for chunks in range(2, trips + 1)}, reverse=True)
    hopeful = [chunk for chunk in divisors if least + slope * (chunk - 1) <= 1.15 * budget] or divisors[-1:]
    for chunk in hopeful:
        result = rewrite_loops(program, BatchReplay.name, BatchReplay(chunk=chunk)._decide, setting)
        tried[chunk] = setting.temp_bytes(result.program)
        if tried[chunk] <= budget:
            figures = ", ".join(f"chunk {c}: {size_words(size)}" for c, size in {trips: most, **tried}.items())
            return _with_reason(result, f"chosen for the budget of {budget} from XLA's temp bytes ({figures})")
    smallest = f"{size_words(tried[hopeful[-1]])} temp with chunk {hopeful[-1]}"
    declined = [
        Refusal(Ground.MEMORY, f"the budget of {budget} is too small: {smallest}").of(BatchReplay.name, event.location)
        for event in whole.applied
    ]
    return Result(program, (*declined, *(event for event in whole.events if isinstance(event, Declined))))


def _most_trips(program: Program) -> int:
    """The trip count of the longest loop that can be batched."""
    loops = find_loops(program_view(program))
    return max(loop.trips for loop in loops if loop.trips is not None and not loop.indices(Recurrent))


def _with_reason(result: Result, reason: str) -> Result:
    applied = set(result.applied)
    events = [replace(event, what=f"{event.what}; {reason}") if event in applied else event for event in result.events]
    return Result(result.program, tuple(events))
