"""dot-epilogue-kernels: layers of few features and the elementwise ops around them become one kernel per block of rows.

rewrite:
    %y = dot_general %x, %w             %z, %u = call @fused_layers(%x, %w, %d, %v)
    %z = multiply %y, %d         -->    (one Pallas kernel for Triton: each program instance takes a block of rows
    %u = dot_general %z, %v              through all of it; the ops it replaces stay beside it as its plain twin)

XLA lowers every layer to cuBLAS, which reads and writes everything; the activation or its derivative is a separate
kernel that reads and writes it again. A layer of up to 128 features does few FLOPs per byte, and its matrix is small
enough to be loaded for every block of rows. Slices, broadcasts and transposes of inputs become strided reads, and
concatenated features of a layer are contracted part by part: none of them is materialised.

requires: a program for CUDA, on one device; float32 (in float64 the ops are outlined in the same way, and stay
    plain: Triton has no such product); a matrix of two axes contracted with the last axis of the layer's input. Must be
    the last pass: passes that raise the program again read the twins, and lose the kernels.
exact: reassociates the sums over features; the higher precision of both operands is kept (HIGHEST is float32, HIGH and
    DEFAULT are TF32, as in the library).
hopes: the launches of the elementwise kernels, concatenations and slices around layers, and the bytes that they read
    and write again.

Options: ``widest``, the most features of a value; ``layers``, the most in one kernel; ``everywhere``, outside loops too
(by default only where a kernel runs many times: each takes a tenth of a second or more to compile).
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any, ClassVar

from fusionlab.codegen.kernels.row_kernels import row_kernel
from fusionlab.codegen.kernels.row_programs import layer_of
from fusionlab.codegen.raising.outline import outline
from fusionlab.hlo.blocks import blocks_of, blocks_to_change, run_in_loops
from fusionlab.hlo.program import Program
from fusionlab.passes.interface import Declined, Pass, Result, Setting
from fusionlab.passes.rewriting import changed, functions_of_others, no_kernels
from fusionlab.passes.row_clusters import Limits, find_cluster


@dataclass(frozen=True)
class DotEpilogueKernels(Pass):
    """Options: ``widest``, ``layers`` and ``everywhere``; see the module's docstring."""

    widest: int = 128
    layers: int = 3
    everywhere: bool = False

    name: ClassVar[str] = "dot-epilogue-kernels"

    def run(self, program: Program, setting: Setting) -> Result:
        """Fuse in every function and loop."""
        module = program.parse()
        functions = [op for op in module.body.operations if op.operation.name == "func.func"]
        kept = functions_of_others(module)
        functions = [function for function in functions if function.name.value not in kept]
        looped = run_in_loops(functions)
        places = [(function, 0 if self.everywhere or function.name.value in looped else 1) for function in functions]
        blocks = [block for function, first in places for block in list(blocks_of(function, module))[first:]]
        if not any(layer_of(node, self.widest) for block in blocks for node in block.nodes):
            where = "the program" if self.everywhere else "a loop of the program"
            reason = f"there is no layer of at most {self.widest} features in {where}"
            return Result(program, (Declined(self.name, "unprofitable", reason, ""),))
        if (barrier := no_kernels(self.name, program, module, setting)) is not None:
            return Result(program, (barrier,))
        limits = Limits(widest=self.widest, layers=self.layers)
        fused: Counter[str] = Counter()
        for function, first in places:
            self._fuse(function, module, first, limits, fused)
        what = "layers went into kernels with what is around them"
        otherwise = "no layer has elementwise work beside it in arrays of 1 to 2^31 - 1 elements"
        return changed(program, module, self, fused, what, otherwise=otherwise)

    def _fuse(self, function: Any, module: Any, first: int, limits: Limits, fused: Counter[str]) -> None:
        """Fuse in the blocks of ``function`` from number ``first`` on, one kernel at a time: each moves others."""
        for look in blocks_to_change(function, module, first):
            start = 0
            while (found := find_cluster(block := look(), start, limits)) is not None:
                start, members, program = found
                fused[members[0].scope.rpartition("/")[0]] += len(program.layers)
                outline(
                    block,
                    members,
                    program.arrays,
                    program.outputs,
                    row_kernel(program) if program.fits_triton else None,
                    name="fused_layers",
                    platform="cuda",
                    flops=program.flops,
                )
