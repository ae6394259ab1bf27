"""fuse-jvp-replay: derive the forward Laplacian from a replay, in the form that costs least.

rewrite:
    g, jvp_g = linearize(grad(f), x)                 one of
    for k in range(3 N):                      -->        sparsify-directions   (forward Laplacian, known zeros left out)
        lap += jvp_g(eye[k])[k]                          collapse-replay       (forward Laplacian, all directions)
                                                         batch-replay          (all directions of the replay at once)

The candidates are rewritten and, where the study has a target, compiled for it; the one with the least time is taken,
and all are printed with their figures. Time is that of the code of their kernels where XLA writes it and more than
launches counts, else the target's roofline. Candidates beyond a limit of memory (temp bytes by XLA's buffer assignment)
are out. The limit is ``memory_budget``. Without one, a forward Laplacian may have 4 times the program's temp bytes and
half of the device's memory, and batch-replay, with fewer directions at a time, 1.5 times; 16 MiB are always admitted.
Where no whole forward Laplacian fits, the sparse one is tried with the walkers in 2, 4, 8, ... parts. ``chunk`` means
batch-replay with that many directions at a time. Before a forward Laplacian, loops of constants alone are evaluated at
compile time (fold-constant-loops).

requires: what its passes require; a loop that is not a replay of that form is left alone with the reason.
exact: reassociates.
hopes: 3 N_e times fewer launches around the Laplacian.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

from fusionlab.bytesize import MIB, UNBOUNDED, ByteSize, size_words
from fusionlab.errors import InputError
from fusionlab.hlo.cost import live_bytes
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.replay import inventory
from fusionlab.passes.batch_replay import BatchReplay
from fusionlab.passes.collapse_replay import CollapseReplay
from fusionlab.passes.fold_constant_loops import FoldConstantLoops
from fusionlab.passes.interface import Applied, Declined, Figures, Pass, Result, Setting
from fusionlab.passes.licm import LoopInvariantCodeMotion
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.sparsify_directions import SparsifyDirections
from fusionlab.time_order import TimeOrder
from fusionlab.units import flop_words, time_words

_MOST_PARTS = 64
_FAR = 2
"""A candidate of so many times the least roofline is not compiled for the code of its kernels, which takes long."""
_FORWARD_RATIO, _FALLBACK_RATIO = 4, 1.5
_ALWAYS_ADMITTED = ByteSize(16 * MIB)
_NO_REPLAY = "there is no replay in it: its program has no loop, and no sum over an identity's rows or unit vectors"


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
        limit = _MemoryLimit(program, setting, self.memory_budget)
        folded = FoldConstantLoops().run(program, setting)
        collapsed = _forward(folded.program, setting, limit)
        if collapsed.applied:
            return Result(collapsed.program, (*folded.applied, *collapsed.events))
        batched = _fallback(program, setting, limit)
        refusals = {event.location: event.told for event in reversed(collapsed.events) if isinstance(event, Declined)}
        first = next(iter(reversed(refusals.values())), "nothing has its form")
        instead = batched.applied[-1].pass_name if batched.applied else ""  # batch-replay, or licm alone
        events = [
            replace(event, fallback=f"forward Laplacian ({refusals.get(event.location, first)})")
            if isinstance(event, Applied) and event.pass_name == instead
            else event
            for event in batched.events
        ]
        none = Refusal(Ground.NO_LAPLACIAN, _NO_REPLAY).of(self.name, "")
        return Result(batched.program, (*collapsed.events, *events) or (none,))


@dataclass(frozen=True)
class _MemoryLimit:
    """The temp bytes that a rewriting of ``program`` may have: ``budget``, or without one a multiple of its own."""

    program: Program
    setting: Setting
    budget: ByteSize

    def __str__(self) -> str:
        return str(self.budget) if self.budget else f"{size_words(self.forward)} temp without --memory-budget"

    @property
    def unknown(self) -> bool:
        """True if there is neither a budget nor a target to compile for."""
        return not self.budget and self.setting.temp_bytes is None

    @cached_property
    def forward(self) -> int:
        """The most temp bytes of a forward Laplacian."""
        return self.budget or min(self._multiple(_FORWARD_RATIO), (self.setting.memory_bytes or 2**63) // 2)

    @cached_property
    def fallback(self) -> ByteSize:
        """The most temp bytes of batch-replay instead of a forward Laplacian."""
        return self.budget or self._multiple(_FALLBACK_RATIO)

    def _multiple(self, ratio: float) -> ByteSize:
        assert self.setting.temp_bytes is not None
        return max(_ALWAYS_ADMITTED, ByteSize(ratio * self.setting.temp_bytes(self.program) // MIB * MIB))

    def is_little(self, program: Program) -> bool:
        """True if what ``program`` holds is always admitted, or there is nothing to compare it with."""
        return self.unknown or (not self.budget and live_bytes(program_view(program)) <= _ALWAYS_ADMITTED)

    def admits_fallback(self, program: Program) -> bool:
        """True if ``program`` may run instead of a forward Laplacian."""
        known = self.setting.temp_bytes
        return self.is_little(program) or known is None or known(program) <= self.fallback

    def admits(self, temp_bytes: int) -> bool:
        """True if a forward Laplacian may have that many."""
        if not self.budget and (self.unknown or temp_bytes <= _ALWAYS_ADMITTED):
            return True
        return temp_bytes <= self.forward

    def admits_uncompiled(self, forward: Program) -> bool:
        """True if XLA's temp bytes of ``forward`` are admitted; not asked for where an estimate is far below."""
        if self.unknown or self.setting.temp_bytes is None:
            return True
        estimate, own = live_bytes(program_view(forward)), live_bytes(program_view(self.program))
        far = not self.budget and estimate <= max(_ALWAYS_ADMITTED, _FORWARD_RATIO * own)
        within_device = estimate <= (self.setting.memory_bytes or 2**63) // 2
        return (far and within_device) or self.admits(self.setting.temp_bytes(forward))


_Costed = tuple[Result, Figures]


def _forward(program: Program, setting: Setting, limit: _MemoryLimit) -> Result:
    """The best forward Laplacian within ``limit``; without figures the sparse one, in as few parts as it takes."""
    first = SparsifyDirections().run(program, setting)
    if not first.applied:
        return first
    if setting.figures is None:
        return _first_that_fits(program, setting, limit, first)
    tried: list[tuple[Result, Figures | None]] = []
    for result in _results(program, setting, first):
        if not result.applied:
            break
        tried.append((result, setting.figures(result.program)))
        known = [(one, figures) for one, figures in tried if figures is not None]
        fits = [(one, figures) for one, figures in known if limit.admits(figures.temp_bytes)]
        if len(tried) < 2:
            continue
        if fits:
            timed = _timed(fits, setting)
            best, _ = min(timed, key=lambda each: _cost(each[1]))
            within = f" within {limit}" if limit.budget or len(fits) < len(known) else ""
            return _with_reason(best, f"chosen{within} from {_listed(tried)}{_decision(timed)}")
        if not known and not limit.budget:
            break
    if not limit.budget and all(figures is None for _, figures in tried):
        return _declined(
            program, first, Ground.NOT_COMPILED, f"could be compiled for its figures ({_listed(tried)})", result
        )
    why = f"fits the budget of {limit}" if limit.budget else f"fits {limit}"
    return _declined(program, first, Ground.MEMORY, f"{why} ({_listed(tried)})", result)


def _first_that_fits(program: Program, setting: Setting, limit: _MemoryLimit, first: Result) -> Result:
    """``first``, or else with the walkers in as few parts as fit ``limit``."""
    if limit.admits_uncompiled(first.program):
        return first
    for divided in _in_parts(program, setting):
        if divided.applied and limit.admits_uncompiled(divided.program):
            return _with_reason(divided, f"in parts to stay within {limit}")
    return _declined(program, first, Ground.MEMORY, f"fits {limit}", divided)


def _timed(fits: Sequence[_Costed], setting: Setting) -> Sequence[_Costed]:
    """Candidates with the time of their kernels' code where that is at hand, and more than launches decide; those that
    the roofline puts far behind are out."""
    least = min(_cost(figures) for _, figures in fits)
    near = [(result, figures) for result, figures in fits if _cost(figures) <= _FAR * least]
    small = all(figures.launch_us > (figures.model_us or 0.0) / 2 for _, figures in near)
    if setting.kernels is None or len(near) < 2 or small:
        return fits
    return [(result, figures.by_code(setting.kernels(result.program))) for result, figures in near]


def _cost(figures: Figures) -> float:
    """Microseconds by the model where the target has one, else FLOPs."""
    return figures.flops if figures.model_us is None else figures.model_us


def _decision(timed: Sequence[_Costed]) -> str:
    """The times that decided, where they are those of kernels' code, and whether they do decide."""
    errors = [figures.pair_error for _, figures in timed if figures.pair_error is not None]
    if not errors or len(timed) < 2:
        return ""
    first, second, *_ = sorted(_cost(figures) for _, figures in timed)
    said = ", ".join(f"{result.applied[0].resolved} {time_words(_cost(figures))}" for result, figures in timed)
    undecided = TimeOrder(first, second, max(errors)).undecided
    return f"; by the code of kernels {said}" + (f"; {undecided}" if undecided else "")


def _listed(tried: Sequence[tuple[Result, Figures | None]]) -> str:
    """The candidates that were tried, with their figures."""
    words = []
    for result, figures in tried:
        name = result.applied[0].resolved
        if figures is not None:
            time = "" if figures.model_us is None else f", {time_words(figures.model_us)} (model)"
            name += f": {figures.dynamic_launches:,} launches, {size_words(figures.temp_bytes)} temp, "
            name += f"{flop_words(figures.flops)} (model){time}"
        words.append(name)
    return "; ".join(words)


def _declined(program: Program, first: Result, ground: Ground, why: str, last: Result) -> Result:
    """No forward Laplacian; where ``last``, in parts, was refused, that reason too."""
    in_parts = next((event for event in last.events if isinstance(event, Declined) and not last.applied), None)
    op = in_parts.op if in_parts else ""
    why += f"; {in_parts.reason}" if in_parts else ""
    declined = [
        Refusal(ground, f"no forward Laplacian {why}", op).of(FuseJvpReplay.name, event.location)
        for event in first.applied
    ]
    return Result(program, (*declined, *(event for event in first.events if isinstance(event, Declined))))


def _results(program: Program, setting: Setting, first: Result) -> Iterator[Result]:
    """Forward Laplacians from the one with the fewest launches to those with the smallest parts, as ``_in_parts``."""
    yield first
    dense = CollapseReplay().run(program, setting)
    if dense.applied:
        yield dense
    yield from _in_parts(program, setting)


def _in_parts(program: Program, setting: Setting) -> Iterator[Result]:
    """The sparse forward Laplacian with the walkers in 2, 4, 8, ... parts, up to a refusal, which is the last."""
    parts = 2
    while parts <= _MOST_PARTS:
        divided = SparsifyDirections(chunks=parts).run(program, setting)
        yield divided
        if not divided.applied:
            return
        parts *= 2


def _with_reason(result: Result, reason: str, *, event: int = 0) -> Result:
    """``result`` with the reason of the choice in this event of those that were applied."""
    chosen = result.applied[event]
    events = [replace(e, what=f"{e.what}; {reason}") if e is chosen else e for e in result.events]
    return Result(result.program, tuple(events))


def _fallback(program: Program, setting: Setting, limit: _MemoryLimit) -> Result:
    """batch-replay, all directions at once where ``limit`` allows it, else what is invariant hoisted."""
    batched = _batched_within(program, setting, limit)
    if not batched.applied and (hoisted := _hoisted(program, setting, limit)) is not None:
        return Result(hoisted.program, (*hoisted.applied, *batched.events))
    return batched


def _hoisted(program: Program, setting: Setting, limit: _MemoryLimit) -> Result | None:
    """licm, if it applies to a loop that makes directions, and ``limit`` allows it."""
    hoisted = LoopInvariantCodeMotion().run(program, setting)
    directed = {replay.loop.node.scope for replay in inventory(program_view(program)) if replay.directed}
    if directed.isdisjoint(event.location for event in hoisted.applied):
        return None
    return hoisted if limit.admits_fallback(hoisted.program) else None


def _batched_within(program: Program, setting: Setting, limit: _MemoryLimit) -> Result:
    if not limit.budget:
        whole = _batched(program, setting, BatchReplay())
        if not whole.applied or limit.is_little(whole.program):
            return whole
    batched = _batched(program, setting, BatchReplay(memory_budget=limit.fallback))
    if limit.budget:
        return batched
    why = f"{_FALLBACK_RATIO} times the temp memory of the original, or {_ALWAYS_ADMITTED}; --memory-budget allows more"
    if batched.applied:
        return _with_reason(batched, f"the budget is {why}", event=-1)  # the first may be licm's
    declined = (event for event in batched.events if isinstance(event, Declined))
    events = [replace(event, reason=f"{event.reason}; the budget is {why}") for event in declined]
    return Result(batched.program, tuple(events))


def _batched(program: Program, setting: Setting, batch: BatchReplay) -> Result:
    """Hoist, then batch. Nothing is hoisted unless a loop is then batched."""
    hoisted = LoopInvariantCodeMotion().run(program, setting)
    batched = batch.run(hoisted.program, setting)
    if not batched.applied:
        # Hoisting may hide what batching needs; the reasons reported are those of the original program.
        return batch.run(program, setting)
    return Result(batched.program, (*hoisted.applied, *batched.events))
