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

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from fusionlab.codegen.kernels.row_kernels import row_kernel
from fusionlab.codegen.kernels.row_programs import RowProgram, features, is_elementwise, layer_of, plan, rows
from fusionlab.codegen.raising.outline import outline
from fusionlab.hlo import ops
from fusionlab.hlo.blocks import Block
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.rewriting import Tally, blocks_to_rewrite, no_kernels

_FUSED_BY_XLA = {op for op in ops.OPS.values() if op.triton or op.strided} | {
    ops.CONCATENATE, ops.CONVERT, ops.GATHER, ops.PAD, ops.POWER, ops.REDUCE, ops.REVERSE
}  # fmt: skip
"""Ops whose XLA kernel absorbs elementwise producers: their operands need no kernel."""
_CHAINED = 64
"""The most features of a layer's input in registers."""


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
        looks = blocks_to_rewrite(module, in_loops=not self.everywhere)
        tally = Tally()
        if any(layer_of(node, self.widest) for look in looks for node in look().nodes):
            if (barrier := no_kernels(self.name, program, module, setting)) is not None:
                return Result(program, (barrier,))
            for look in blocks_to_rewrite(module, in_loops=not self.everywhere):
                self._fuse(look, tally)
            otherwise = "no layer has elementwise work beside it in arrays of 1 to 2^31 - 1 elements"
        else:
            where = "the program" if self.everywhere else "a loop of the program"
            otherwise = f"there is no layer of at most {self.widest} features in {where}"
        return tally.result(program, module, self, "layers went into kernels with what is around them", otherwise)

    def _fuse(self, look: Callable[[], Block], tally: Tally) -> None:
        """Fuse in the block that ``look`` returns, one kernel at a time: each moves others."""
        start = 0
        while (found := find_cluster(block := look(), start, self)) is not None:
            start, members, program = found
            tally.rewrite(members[0], len(program.layers))
            kernel = row_kernel(program) if program.fits_triton else None
            outline(
                block,
                members,
                program.arrays,
                program.outputs,
                kernel,
                name="fused_layers",
                platform="cuda",
                flops=program.flops,
            )


def find_cluster(block: Block, start: int, limits: DotEpilogueKernels) -> tuple[int, list[Node], RowProgram] | None:
    """The first profitable row program whose first layer is node number ``start`` or a later one.

    With the number of that layer and the nodes that the kernel replaces, in program order. It pays if a kernel does
    more than one library call: more layers, or elementwise work.
    """
    for at in range(start, len(block.nodes)):
        if layer_of(block.nodes[at], limits.widest) is None:
            continue
        members = _Growth(block, block.nodes[at], limits).members()
        program = plan(members, _outputs(block, members), rows(block.nodes[at].results[0]), block.users, limits.widest)
        if len(program.steps) + len(program.absorbed) > 1 and program.is_addressable:
            return at, members, program
    return None


def _outputs(block: Block, members: list[Node]) -> tuple[Value, ...]:
    """The results that are read outside of ``members``."""
    values = [node.results[0] for node in members]
    return tuple(v for v in values if v in block.returns or not set(members).issuperset(block.users.get(v, ())))


class _Growth:
    """A cluster that grows from one layer."""

    def __init__(self, block: Block, seed: Node, limits: DotEpilogueKernels) -> None:
        self.block, self.limits = block, limits
        self.count = rows(seed.results[0])
        self.cluster = {seed}
        self.n_layers = 1

    def members(self) -> list[Node]:
        """The cluster when nothing can be added, without nodes that XLA fuses equally well with their readers."""
        grown = True
        while grown:
            grown = sum(self._try(node) for node in list(self._candidates())) > 0
        self._trim()
        return sorted(self.cluster, key=self.block.place.__getitem__)

    def _candidates(self) -> Iterator[Node]:
        inside = sorted(self.cluster, key=self.block.place.__getitem__)
        for node in inside:
            yield from self.block.users.get(node.results[0], ())
        for node in inside:
            if layer_of(node, self.limits.widest) is not None:
                yield from self.block.users.get(node.operands[0], ())

    def _try(self, node: Node) -> bool:
        """Add ``node`` if the cluster can hold it."""
        if node in self.cluster:
            return False
        layer = layer_of(node, self.limits.widest)
        if layer is not None:
            if rows(node.results[0]) != self.count or self.n_layers >= self.limits.layers:
                return False
            if layer.weights.base.producer in self.cluster or any(
                part.producer in self.cluster and features(part) > _CHAINED for part, _ in layer.parts
            ):
                return False
        elif not is_elementwise(node, self.count):
            return False
        if not self.block.is_convex(self.cluster | {node}):
            return False
        self.cluster.add(node)
        self.n_layers += layer is not None
        return True

    def _trim(self) -> None:
        """Remove, last ones first, nodes that are read by one op that XLA fuses them with."""
        for node in sorted(self.cluster, key=self.block.place.__getitem__, reverse=True):
            if layer_of(node, self.limits.widest) is not None:
                continue
            readers = self.block.users.get(node.results[0], [])
            if node.results[0] in self.block.returns or any(reader in self.cluster for reader in readers):
                continue
            made_inside = [v for v in node.operands if v.producer in self.cluster]
            others = {
                v: [u for u in self.block.users[v] if u is not node] or v in self.block.returns for v in made_inside
            }
            alone = len(readers) <= 1 and all(reader.op in _FUSED_BY_XLA for reader in readers)
            free = all(others.values()) and all(reader.op in _FUSED_BY_XLA for reader in readers)
            if (alone and len(made_inside) == 1) or free:
                self.cluster.discard(node)
