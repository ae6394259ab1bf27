"""fold-constant-loops: evaluate a loop that reads only constants at compile time.

rewrite:
    %c = constant
    %r = while(%x = %c, %k = 0) { ... }        -->        %r = constant

XLA runs such a loop itself when it is short; longer ones stay, with a kernel or a copy for every op of every trip (the
nuclei of Orbformer, to which electrons are assigned by their charges: on C4H4 some 60 launches that read no electron).

requires: no operand or captured value of the loop depends on an argument; no effects, no custom calls, no shardings;
    every intermediate value of at most ``most_bytes``; at most ``most_ops`` operations in all, counting every trip of
    inner loops too, whether or not their trip counts are known.
exact: bitwise for integers; floats are computed op by op on the host, with its functions.
hopes: the launches and copies of the loop.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import numpy as np

from fusionlab.codegen.raising import Raising
from fusionlab.hlo import ops
from fusionlab.hlo.cost import size_bytes
from fusionlab.hlo.loops import has_effect
from fusionlab.hlo.meshes import SHARDINGS
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value, reads
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import LoopSite, Rewrite, rewrite_loops

_MOST_NODES = 10_000


@dataclass(frozen=True)
class FoldConstantLoops(Pass):
    """Options: ``most_bytes`` and ``most_ops``; see the module's docstring."""

    most_bytes: int = 1 << 20
    most_ops: int = 10_000

    name: ClassVar[str] = "fold-constant-loops"

    def run(self, program: Program, setting: Setting) -> Result:
        """Fold every loop that qualifies, outer ones first."""
        return rewrite_loops(program, self.name, self._decide, setting)

    def _decide(self, site: LoopSite) -> Rewrite:
        loop = site.loop.node
        before = _makers([*loop.operands, *site.captured])
        if loop.callers and any(node.function != loop.function for node in before):
            raise Refusal(
                Ground.CALLED_DIFFERENTLY,
                "it reads what its function is given, which may be called with other constants",
            )
        nodes = [
            one for node in (*before, loop) for one in (node, *(i for region in node.regions for i in region.walk()))
        ]
        for node in nodes:
            if has_effect(node):
                raise Refusal(Ground.EFFECT, f"{node.label} has an effect", node)
            if node.op is ops.CUSTOM_CALL:
                raise Refusal(Ground.OPAQUE_CALL, f"{node.label} is opaque", node)
            if any(name in node.attributes for name in SHARDINGS):
                raise Refusal(Ground.SHARDED, "it is sharded", node)
            if not all(result.is_array for result in node.results):
                raise Refusal(Ground.NOT_AN_ARRAY, f"{node.op.mnemonic} returns what is no array of known size", node)
            if (size := max((size_bytes(result.type) for result in node.results), default=0)) > self.most_bytes:
                raise Refusal(Ground.FOLDING, f"a value on the way has {size:,} bytes", node)
        many = (site.loop.trips or 1) * len(loop.regions[1].nodes)
        counted = _Counted(left=[self.most_ops, 0])
        if many > self.most_ops:
            raise Refusal(Ground.FOLDING, f"it runs {many:,} operations")
        known: dict[Value, Any] = {}
        try:
            with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
                counted.run([*before, loop], known)
                arrays = [np.asarray(known[result]) for result in loop.results]
        except RuntimeError as error:  # no CPU client, or not enough memory
            raise Refusal(Ground.CANNOT_RUN, f"it cannot be run here: {str(error).splitlines()[0]}") from error
        return Rewrite(
            lambda *_: tuple(map(jax.numpy.asarray, arrays)),
            what=f"a loop of constants was run once and for all ({counted.left[1]} trips)",
            resolved=str(self),
        )


def _makers(values: Sequence[Value]) -> list[Node]:
    """The nodes that ``values`` depend on, in order; Refusal if they depend on an argument."""
    found: dict[Node, None] = {}
    waiting = list(values)
    while waiting:
        node = waiting.pop().producer
        if node is None:
            raise Refusal(Ground.NOT_CONSTANT, "it reads what is not constant")
        if node in found:
            continue
        found[node] = None
        if len(found) > _MOST_NODES:
            raise Refusal(Ground.FOLDING, f"it is made of more than {_MOST_NODES:,} ops")
        waiting += reads(node)
    return sorted(found, key=lambda node: node.id)


@dataclass(frozen=True)
class _Counted(Raising):
    """Runs loops trip by trip, while operations are ``left``; its second element counts the trips."""

    left: list[int] = field(default_factory=list)

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        self.left[0] -= 1
        if self.left[0] < 0:
            raise Refusal(Ground.FOLDING, "it runs more operations than are tried")
        if node.op is not ops.WHILE:
            return super().node(node, environment)
        condition, body = (self.region(region, environment) for region in node.regions)
        carried: Sequence[Any] = [environment[value] for value in node.operands]
        while bool(condition(*carried)[0]):
            self.left[1] += 1
            carried = body(*carried)
        return carried
