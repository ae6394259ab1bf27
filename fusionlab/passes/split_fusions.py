"""split-fusions: what a fusion computes again for each output that takes it is computed once, in a kernel of its own.

rewrite:
    %s = reduce add %x over j                      %s = reduce add %x over j
    %c = concatenate (f %s), (g %s)      -->       %t = optimization_barrier %s
                                                   %c = concatenate (f %t), (g %t)

XLA fuses a sum into the concatenation behind it, and each element of the result computes the sum again. The barrier
keeps them apart: the sum is written once and read back.

requires: a target with kernel code (a GPU, which may be absent), by which the model of time says where it pays; or
    ``at``, the numbers of the ops in the order of the module, as this pass itself resolves them.
exact: bitwise per op (XLA may sum in another order where it fuses in another way).
hopes: the reads and the arithmetic of what is computed again, for the bytes of one more result and a launch.

Kernels are taken by what the model says that they lose, those from one source line together. A split is kept if the
program's modelled time falls by ``gain``, it holds at most ``memory`` more at once (both are shares), and there are at
most ``launches`` more.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from fusionlab.errors import InputError
from fusionlab.hlo.program import Program, rewritten
from fusionlab.hlo.view import child_location, location_name
from fusionlab.passes.interface import Applied, KernelFigures, Overfused, Pass, Result, Setting, verify
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import functions_of_others, place_of
from fusionlab.units import counted

MARK = "fusionlab-op-"
"""The name of an op in a module that is compiled to see which ops a kernel computes again: this and its number."""
_BETWEEN = "+"


@dataclass(frozen=True)
class SplitFusions(Pass):
    """Options: ``gain``, ``memory``, ``launches``, ``most`` (groups of kernels that are tried) and ``at``; see the
    module's docstring."""

    gain: float = 0.005
    memory: float = 0.05
    launches: int = 6
    most: int = 8
    at: str = ""

    name: ClassVar[str] = "split-fusions"

    def run(self, program: Program, setting: Setting) -> Result:
        """Put barriers behind the ops ``at``, or behind those that the model of time names."""
        if self.at:
            return self._result(program, _numbers(self.at), "split as asked for")
        if setting.kernels is None:
            reason = "where a fusion computes again is read from the code of kernels, and this target has none"
            return Result(program, (Refusal(Ground.NOT_COMPILED, reason).of(self.name, ""),))
        try:
            chosen, before, after = self._chosen(program, setting)
        except Refusal as refusal:
            return Result(program, (refusal.of(self.name, ""),))
        said = f"{before.model_us / 1e3:.2f} ms become {after.model_us / 1e3:.2f} by model"
        return self._result(program, chosen, said)

    def _chosen(self, program: Program, setting: Setting) -> tuple[tuple[int, ...], KernelFigures, KernelFigures]:
        """The ops to put barriers behind, and the figures before and after; Refusal where it does not pay."""
        assert setting.kernels is not None
        before = now = setting.kernels(marked(program))
        if not before.overfused:
            raise Refusal(Ground.NO_GAIN, "by the model no kernel would gain by computing a part of it apart")
        chosen: tuple[int, ...] = ()
        for group in _groups(before.overfused)[: self.most]:
            tried = tuple(sorted({*chosen, *group}))
            found = setting.kernels(split(marked(program), tried))
            if self._pays(before, now, found):
                chosen, now = tried, found
        if not chosen:
            number = len(_groups(before.overfused)[: self.most])
            tried_words = f"{counted(number, 'group', 'groups')} of kernels tried"
            raise Refusal(Ground.NO_GAIN, f"{tried_words}: by the model none gains, or memory grows")
        return chosen, before, now

    def _pays(self, before: KernelFigures, now: KernelFigures, found: KernelFigures) -> bool:
        return (
            found.model_us < now.model_us * (1 - self.gain)
            and found.peak_bytes <= before.peak_bytes * (1 + self.memory)
            and found.dynamic_launches <= before.dynamic_launches + self.launches
        )

    def _result(self, program: Program, numbers: Sequence[int], said: str) -> Result:
        module = program.parse()
        places = _split(module, numbers)
        verify(module, self.name)
        made = replace(self, at=_BETWEEN.join(map(str, numbers)))
        place, count = place_of(places[0]), len(places)
        what = f"{count} {'value is' if count == 1 else 'values are'} computed once, in kernels of their own: {said}"
        return Result(rewritten(program, module), (Applied(self.name, what, place, str(made)),))


def marked(program: Program) -> Program:
    """``program`` with a name of its own for every operation, which XLA keeps: ``MARK`` and its number."""
    module = program.parse()
    with module.context:
        for number, operation in enumerate(_operations(module)):
            child = child_location(operation) or operation.location
            operation.location = ir.Location.name(f"{location_name(operation)}/{MARK}{number}", childLoc=child)
    return rewritten(program, module)


def numbers_in(op_names: Iterable[str]) -> Iterator[int]:
    """The numbers of the marked operations that HLO's names of ops tell, each once."""
    seen: set[int] = set()
    for name in op_names:
        for found in re.findall(rf"{MARK}(\d+)", name):
            if (number := int(found)) not in seen:
                seen.add(number)
                yield number


def split(program: Program, numbers: Sequence[int]) -> Program:
    """``program`` with a barrier behind each of the operations of these numbers."""
    module = program.parse()
    _split(module, numbers)
    return rewritten(program, module)


def _split(module: ir.Module, numbers: Sequence[int]) -> list[str]:
    """Put the barriers into ``module``; the name stacks of the ops. InputError for a number without a value."""
    operations = list(_operations(module))
    shared = functions_of_others(module)
    places = []
    for number in numbers:
        if number >= len(operations) or not operations[number].results:
            raise InputError(f"split-fusions: there is no value with number {number} in the program")
        operation = operations[number]
        if _function(operation) in shared:
            continue
        places.append(location_name(operation))
        _bar(operation)
    return places or [""]


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


def _operations(module: ir.Module) -> Iterator[Any]:
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


def _groups(found: Iterable[Overfused]) -> list[tuple[int, ...]]:
    """The numbers of the ops of kernels from one place, those that lose most first."""
    lost: dict[str, float] = defaultdict(float)
    numbers: dict[str, set[int]] = defaultdict(set)
    for one in found:
        lost[one.place] += one.lost_us
        numbers[one.place].update(one.numbers)
    order = sorted(lost, key=lambda place: -lost[place])
    return [tuple(sorted(numbers[place])) for place in order if numbers[place]]


def _numbers(text: str) -> tuple[int, ...]:
    try:
        return tuple(int(part) for part in text.split(_BETWEEN))
    except ValueError:
        raise InputError(f"split-fusions: at={text}: expected numbers of ops as in 12+40") from None
