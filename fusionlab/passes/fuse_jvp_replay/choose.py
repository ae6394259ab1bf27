"""fuse-jvp-replay: derive the forward Laplacian from a replay, in the form that costs least.

rewrite:
    g, jvp_g = linearize(grad(f), x)                 one of
    for k in range(3 N):                      -->        sparsify-directions   (forward Laplacian, known zeros left out)
        lap += jvp_g(eye[k])[k]                          collapse-replay       (forward Laplacian, all directions)
                                                         batch-replay          (all directions of the replay at once)

The candidates are rewritten and, where the study has a target, compiled for it; the one with the least time on the
target's roofline is taken, and all are printed with their figures. With ``memory_budget``, candidates beyond it
(temp bytes by XLA's buffer assignment) are out, and the forward Laplacian is also tried with the walkers in 2, 4,
8, ... parts.
``chunk`` means batch-replay with that many directions at a time. Before a forward Laplacian, loops of constants
alone are evaluated at compile time (fold-constant-loops).

requires: what its passes require; a loop that is not a replay of that form is left alone with the reason.
exact: reassociates.
hopes: 3 N_e times fewer launches around the Laplacian.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import ClassVar

from fusionlab.bytesize import UNBOUNDED, ByteSize
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.passes.batch_replay import BatchReplay
from fusionlab.passes.collapse_replay import CollapseReplay
from fusionlab.passes.fold_constant_loops import FoldConstantLoops
from fusionlab.passes.fuse_jvp_replay.rewrite import Findings
from fusionlab.passes.interface import Applied, Declined, Figures, Pass, Result, Setting
from fusionlab.passes.licm import LoopInvariantCodeMotion
from fusionlab.passes.sparsify_directions import SparsifyDirections

_MOST_PARTS = 64


@dataclass(frozen=True)
class FuseJvpReplay(Pass):
    """``chunk`` and ``memory_budget`` as in batch-replay."""

    chunk: int = 0
    memory_budget: ByteSize = UNBOUNDED

    name: ClassVar[str] = "fuse-jvp-replay"

    def __post_init__(self) -> None:
        BatchReplay(chunk=self.chunk, memory_budget=self.memory_budget)

    def run(self, program: Program, setting: Setting) -> Result:
        """Choose among the candidates; see the module's docstring."""
        if self.memory_budget and setting.figures is None and setting.temp_bytes is None:
            raise InputError("memory_budget needs a target to compile for; give a target or an explicit chunk")
        if self.chunk:
            return _batched(program, setting, BatchReplay(chunk=self.chunk))
        folded = FoldConstantLoops().run(program, setting)
        collapsed = _forward(folded.program, setting, self.memory_budget)
        if collapsed.applied:
            return Result(collapsed.program, (*folded.applied, *collapsed.events))
        batched = _batched(program, setting, BatchReplay(memory_budget=self.memory_budget))
        return Result(batched.program, (*collapsed.events, *batched.events))


@dataclass(frozen=True)
class _Candidate:
    result: Result
    figures: Figures | None

    @property
    def name(self) -> str:
        return self.result.applied[0].resolved

    def cost(self) -> float:
        """Microseconds on the roofline where the target has one, else FLOPs."""
        assert self.figures is not None
        return self.figures.flops if self.figures.model_us is None else self.figures.model_us

    def __str__(self) -> str:
        figures = self.figures
        if figures is None:
            return self.name
        time = "" if figures.model_us is None else f", {figures.model_us / 1e3:,.2f} ms (model)"
        return (
            f"{self.name}: {figures.dynamic_launches:,} launches, {figures.temp_bytes / 2**20:,.0f} MiB temp, "
            f"{figures.flops / 1e9:,.1f} GFLOP (model){time}"
        )


def _forward(program: Program, setting: Setting, budget: ByteSize) -> Result:
    """The best forward Laplacian within ``budget``; without a target the sparse one."""
    findings = Findings()
    first = SparsifyDirections().rewrite(program, setting, findings)
    if not first.applied or setting.figures is None:
        return first
    tried: list[_Candidate] = []
    for result in _results(program, setting, findings, first):
        candidate = _Candidate(result, setting.figures(result.program))
        tried.append(candidate)
        fits = [one for one in tried if one.figures is not None and (not budget or one.figures.temp_bytes <= budget)]
        if fits and len(tried) >= 2:
            best = min(fits, key=_Candidate.cost)
            return _told(best, tried, budget)
        if not budget and len(tried) >= 2:
            break
    words = "; ".join(map(str, tried))
    why = f"fits the budget of {budget}" if budget else "could be compiled for its figures"
    declined = [
        Declined(
            FuseJvpReplay.name,
            "unprofitable",
            f"no forward Laplacian {why} ({words})",
            e.location,
        )
        for e in first.applied
    ]
    left = [event for event in first.events if isinstance(event, Declined)]
    return Result(program, (*declined, *left))


def _results(program: Program, setting: Setting, findings: Findings, first: Result) -> Iterator[Result]:
    """Forward Laplacians from the one with the fewest launches to those with the smallest parts."""
    yield first
    dense = CollapseReplay().rewrite(program, setting, findings)
    if dense.applied:
        yield dense
    parts = 2
    while parts <= _MOST_PARTS:
        divided = SparsifyDirections(chunks=parts).rewrite(program, setting, findings)
        if not divided.applied:
            return
        yield divided
        parts *= 2


def _told(best: _Candidate, tried: list[_Candidate], budget: ByteSize) -> Result:
    """The best candidate's result, with the candidates in its first event."""
    within = f" within {budget}" if budget else ""
    reason = f"chosen{within} from " + "; ".join(map(str, tried))
    first = next(event for event in best.result.events if isinstance(event, Applied))
    events = [replace(e, what=f"{e.what}; {reason}") if e is first else e for e in best.result.events]
    return Result(best.result.program, tuple(events))


def _batched(program: Program, setting: Setting, batch: BatchReplay) -> Result:
    """Hoist, then batch. Nothing is hoisted unless a loop is then batched."""
    hoisted = LoopInvariantCodeMotion().run(program, setting)
    batched = batch.run(hoisted.program, setting)
    if not batched.applied:
        # Hoisting may hide what batching needs; the reasons reported are those of the original program.
        return batch.run(program, setting)
    return Result(batched.program, (*hoisted.applied, *batched.events))
