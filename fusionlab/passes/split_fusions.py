"""split-fusions: what a fusion computes again for each output that takes it is computed once, in a kernel of its own.

rewrite:
    %s = reduce add %x over j                      %s = reduce add %x over j
    %c = concatenate (f %s), (g %s)      -->       %t = optimization_barrier %s
                                                   %c = concatenate (f %t), (g %t)

XLA fuses a sum into the concatenation behind it, and each element of the result computes the sum again. The barrier
keeps them apart: the sum is written once and read back.

requires: an absent GPU of a known compute capability as target, where the model of time says where it pays; or ``at``,
    the numbers of the ops in the order of the module, as this pass itself resolves them.
exact: bitwise per op (XLA may sum in another order where it fuses in another way).
hopes: the reads and the arithmetic of what is computed again, for the bytes of one more result and a launch.

Kernels are tried in the order of their modelled loss, those of one source line together. A split is kept if the
program's modelled time falls by ``gain`` (by default 3 %) and by more than the error of a pair of such times, it holds
at most ``memory`` more at once (both are shares), and there are at most ``launches`` more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from fusionlab.errors import InputError
from fusionlab.hlo.ops import op_of
from fusionlab.hlo.program import Program, rewritten
from fusionlab.hlo.view import child_location, location_name
from fusionlab.passes.interface import Applied, KernelFigures, Overfused, Pass, Result, Setting, verify
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import functions_of_others, place_of
from fusionlab.time_order import TimeOrder
from fusionlab.units import counted, time_words

MARK = "fusionlab-op-"
"""The name of an op in a module that is compiled to see which ops a kernel computes again: this and its number."""
_BETWEEN = "+"


@dataclass(frozen=True)
class SplitFusions(Pass):
    """Options: ``gain``, ``memory``, ``launches``, ``most`` (groups of kernels that are tried) and ``at``; see the
    module's docstring."""

    gain: float = 0.03
    memory: float = 0.05
    launches: int = 6
    most: int = 8
    at: str = ""

    name: ClassVar[str] = "split-fusions"

    def run(self, program: Program, setting: Setting) -> Result:
        """Put barriers behind the ops ``at``, or behind those that the model of time names."""
        try:
            if self.at:
                return self._result(program, _numbers(self.at), "split as asked for")
            chosen, before, after = self._chosen(program, setting)
            said = f"{time_words(before.model_us)} become {time_words(after.model_us)} by model"
            return self._result(program, chosen, said)
        except Refusal as refusal:
            return Result(program, (refusal.of(self.name, ""),))

    def _chosen(self, program: Program, setting: Setting) -> tuple[tuple[int, ...], KernelFigures, KernelFigures]:
        """The ops to put barriers behind, and the figures before and after; Refusal where it does not pay."""
        if setting.kernels is None:
            reason = "no model of time for this target; name a GPU that is absent, of a known compute capability"
            raise Refusal(Ground.NOT_COMPILED, reason)
        before = now = setting.kernels(marked(program))
        if not before.overfused:
            raise Refusal(Ground.NO_GAIN, "there is no kernel that would gain in two parts, by the model")
        chosen: tuple[int, ...] = ()
        made: list[KernelFigures] = []
        groups = _groups(before.overfused, _held_ones(program))[: self.most]
        if not groups:
            raise Refusal(Ground.NO_GAIN, "no value that a kernel computes again is one that a barrier can hold")
        for group in groups:
            tried = tuple(sorted({*chosen, *group}))
            made.append(found := setting.kernels(split(marked(program), tried)))
            if self._pays(before, now, found):
                chosen, now = tried, found
        if not chosen:
            tried_words = f"{counted(len(groups), 'group', 'groups')} of kernels tried"
            raise Refusal(Ground.NO_GAIN, f"{tried_words}, {self._too_little(before, made)}")
        return chosen, before, now

    def _too_little(self, before: KernelFigures, made: Sequence[KernelFigures]) -> str:
        """The fastest of the splits ``made`` beside what a split must gain, and may cost."""
        best = min(made, key=lambda one: one.model_us)
        times = TimeOrder.of(best.model_us, before.model_us, best.pair_error, before.pair_error)
        most = min(1 - self.gain, 1 / (1 + (times.needed if times else 0.0)))
        return (
            f"by model the best takes {best.model_us / before.model_us:.3f} of the time (allowed: {most:.3g}), "
            f"{best.peak_bytes / max(before.peak_bytes, 1):.3f} of the memory (allowed: {1 + self.memory:g}) and "
            f"{best.dynamic_launches - before.dynamic_launches:+,} launches (allowed: +{self.launches})"
        )

    def _pays(self, before: KernelFigures, now: KernelFigures, found: KernelFigures) -> bool:
        times = TimeOrder.of(found.model_us, now.model_us, found.pair_error, now.pair_error)
        return (
            times is not None
            and times.order == "faster"
            and found.model_us < now.model_us * (1 - self.gain)
            and found.peak_bytes <= before.peak_bytes * (1 + self.memory)
            and found.dynamic_launches <= before.dynamic_launches + self.launches
        )

    def _result(self, program: Program, numbers: Sequence[int], said: str) -> Result:
        module = program.parse()
        places = _split(module, numbers)
        if not places:
            raise Refusal(Ground.SHARED_FUNCTION, "the values are computed in functions that several places call")
        verify(module, self.name)
        made = replace(self, at=_BETWEEN.join(map(str, numbers)))
        place, count = place_of(places[0]), len(places)
        what = f"{count} {'value is' if count == 1 else 'values are'} computed once, in kernels of their own: {said}"
        return Result(rewritten(program, module), (Applied(self.name, what, place, str(made)),))


def marked(program: Program) -> Program:
    """``program`` with a name of its own for every operation, which XLA keeps: ``MARK`` and its number."""
    module = program.parse()
    with module.context:
        for number, operation in enumerate(operations_of(module)):
            child = child_location(operation) or operation.location
            operation.location = ir.Location.name(f"{location_name(operation)}/{MARK}{number}", childLoc=child)
    return rewritten(program, module)


def numbers_in(op_names: Iterable[str]) -> Iterator[int]:
    """The number of the innermost marked operation of each of HLO's names of ops, each once: calls, loops and branches
    around it come before it."""
    seen: set[int] = set()
    for name in op_names:
        if (found := re.findall(rf"{MARK}(\d+)", name)) and (number := int(found[-1])) not in seen:
            seen.add(number)
            yield number


def split(program: Program, numbers: Sequence[int]) -> Program:
    """``program`` with a barrier behind each of the operations of these numbers."""
    module = program.parse()
    _split(module, numbers)
    return rewritten(program, module)


def _split(module: ir.Module, numbers: Sequence[int]) -> list[str]:
    """Put the barriers into ``module``; the name stacks of the ops. InputError for a number without a value."""
    operations = list(operations_of(module))
    shared = functions_of_others(module)
    places = []
    for number in dict.fromkeys(numbers):
        if not 0 <= number < len(operations) or not _may_be_held(operations[number]):
            raise InputError(f"split-fusions: there is no value with number {number} in the program")
        operation = operations[number]
        if _function(operation) in shared:
            continue
        places.append(location_name(operation))
        _bar(operation)
    return places


def _may_be_held(operation: Any) -> bool:
    """True for an op with results, in a function, a loop or a branch: other regions say how elements are combined."""
    around = operation.parent
    held = around is not None and (around.name == "func.func" or op_of(around.name).control_flow)
    return held and bool(operation.results)


def _bar(operation: Any) -> None:
    """Let everything that reads ``operation`` read it through a barrier."""
    results = list(operation.results)
    behind = list(operation.block.operations)
    after = next(at for at, each in enumerate(behind) if each.operation == operation) + 1
    with operation.context, operation.location, ir.InsertionPoint(behind[after]):
        barrier = stablehlo.OptimizationBarrierOp(results)
    for result, held in zip(results, barrier.results, strict=True):
        for use in list(result.uses):
            if use.owner.operation != barrier.operation:
                use.owner.operation.operands[use.operand_number] = held


def operations_of(module: ir.Module) -> Iterator[Any]:
    """Every operation of the module in order, the outer before the inner ones."""

    def within(operation: Any) -> Iterator[Any]:
        for region in operation.regions:
            for block in region.blocks:
                for inner in block.operations:
                    yield inner.operation
                    yield from within(inner.operation)

    yield from within(module.operation)


def _function(operation: Any) -> str:
    while operation.name != "func.func":
        operation = operation.parent.operation
    return str(ir.StringAttr(operation.attributes["sym_name"]).value)


def _held_ones(program: Program) -> set[int]:
    """The numbers of the ops that a barrier can be put behind."""
    module = program.parse()
    return {number for number, operation in enumerate(operations_of(module)) if _may_be_held(operation)}


def _groups(found: Iterable[Overfused], held: Collection[int]) -> list[tuple[int, ...]]:
    """The numbers of the ops of kernels from one place that are ``held``, those that lose most first."""
    lost: dict[str, float] = defaultdict(float)
    numbers: dict[str, set[int]] = defaultdict(set)
    for one in found:
        lost[one.place] += one.lost_us
        numbers[one.place].update(number for number in numbers_in(one.op_names) if number in held)
    order = sorted(lost, key=lambda place: -lost[place])
    return [tuple(sorted(numbers[place])) for place in order if numbers[place]]


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(_BETWEEN))
    except ValueError:
        raise InputError(f"split-fusions: at={text}: expected numbers of ops as in 12+40") from None
