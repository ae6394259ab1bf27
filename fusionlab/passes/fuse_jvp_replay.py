"""fuse-jvp-replay: replace the replayed Jacobian-vector products of a Laplacian by one widened program.

rewrite:
    g, jvp_g = linearize(grad(f), x)
    for k in range(3 N):                     -->    hoist-loop-invariants, then batch-replay:
        lap += jvp_g(eye[k])[k]                     lap = sum_k vmap(jvp_g)(eye)[k, k]

The pipeline of the replay rewrites, each of which is a pass of its own. ``memory_budget`` bounds XLA's temp bytes on
the study's target by taking the directions in chunks; ``chunk`` fixes the chunk.

requires: what its passes require; a loop that is not a replay of that form is left alone with the reason.
exact: reassociates.
hopes: 3 N_e times fewer launches around the Laplacian.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fusionlab.bytesize import UNBOUNDED, ByteSize
from fusionlab.hlo.program import Program
from fusionlab.passes.batch_replay import BatchReplay
from fusionlab.passes.contract import Pass, Result, Setting
from fusionlab.passes.hoist_loop_invariants import HoistLoopInvariants


@dataclass(frozen=True)
class FuseJvpReplay(Pass):
    """``chunk`` and ``memory_budget`` as in batch-replay."""

    chunk: int = 0
    memory_budget: ByteSize = UNBOUNDED

    name: ClassVar[str] = "fuse-jvp-replay"

    def __post_init__(self) -> None:
        BatchReplay(chunk=self.chunk, memory_budget=self.memory_budget)

    def run(self, program: Program, setting: Setting) -> Result:
        """Hoist, then batch. Nothing is hoisted out of a loop unless a loop is then batched."""
        hoisted = HoistLoopInvariants().run(program, setting)
        batched = BatchReplay(self.chunk, self.memory_budget).run(hoisted.program, setting)
        if not batched.applied:
            # What hoisting makes may hide what batching needs; the reasons given are those of the program as it is.
            return BatchReplay(self.chunk, self.memory_budget).run(program, setting)
        return Result(batched.program, (*hoisted.applied, *batched.events))
