"""fold-constant-loops: a loop that reads nothing but constants is run once and for all.

rewrite:
    %c = constant
    %r = while(%x = %c, %k = 0) { ... }        -->        %r = constant

XLA runs such a loop itself when it is short; longer ones stay, with a kernel or a copy for every op of every trip (the
nuclei of Orbformer, to which electrons are assigned by their charges: on C4H4 65 launches that read no electron).

requires: nothing that the loop reads, before it or from outside of it, follows from an argument; no effects and no
    custom calls; results of at most ``most_bytes``; at most ``most_trips`` trips in all, inner loops' included, whether
    or not the program says how many there are.
exact: bitwise for whole numbers; floats are computed op by op on the host, with its functions.
hopes: the launches and copies of the loop.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import jax
import numpy as np

from fusionlab.codegen.raising import Raising
from fusionlab.hlo.flat import Node, Value, reads
from fusionlab.hlo.invariants import has_effect
from fusionlab.hlo.program import Program
from fusionlab.passes.contract import Pass, Result, Setting
from fusionlab.passes.loop_rewrite import Refusal, Rewrite, Site, rewrite_loops

_MOST_NODES = 10_000


@dataclass(frozen=True)
class FoldConstantLoops(Pass):
    """Options: ``most_bytes`` and ``most_trips``; see the module's docstring."""

    most_bytes: int = 1 << 20
    most_trips: int = 4096

    name: ClassVar[str] = "fold-constant-loops"

    def run(self, program: Program, setting: Setting) -> Result:
        """Fold every loop that qualifies, outer ones first."""
        return rewrite_loops(program, self.name, self._decide, setting)

    def _decide(self, site: Site) -> Rewrite:
        loop = site.loop.node
        before = _makers([*loop.operands, *site.captured])
        if loop.callers and any(node.function != loop.function for node in before):
            raise Refusal(
                "unsupported", "it reads what its function is given, which may be called with other constants"
            )
        for node in (*before, loop):
            inner = [node, *(one for region in node.regions for one in region.walk())]
            if any(one.name == "stablehlo.custom_call" for one in inner) or has_effect(node):
                raise Refusal("unsafe", f"{node.name.removeprefix('stablehlo.')} has an effect, or is opaque")
        counted = _Counted(left=[self.most_trips])
        size = sum(math.prod(r.type.shape) * counted.dtype(r.type).itemsize for r in loop.results)
        if size > self.most_bytes:
            raise Refusal("unprofitable", f"its results have {size:,} bytes")
        known: dict[Value, Any] = {}
        with jax.enable_x64(True), jax.default_device(jax.devices("cpu")[0]):
            counted.run([*before, loop], known)
            arrays = [np.asarray(known[result]) for result in loop.results]
        trips = self.most_trips - counted.left[0]
        return Rewrite(
            lambda *_: tuple(map(jax.numpy.asarray, arrays)),
            what=f"a loop of constants was run once and for all ({trips} trips)",
            resolved=str(self),
        )


def _makers(values: Sequence[Value]) -> list[Node]:
    """The nodes that make ``values``, in order; Refusal where an argument does."""
    found: dict[Node, None] = {}
    waiting = list(values)
    while waiting:
        node = waiting.pop().producer
        if node is None:
            raise Refusal("unsafe", "it reads what is not constant")
        if node in found:
            continue
        found[node] = None
        if len(found) > _MOST_NODES:
            raise Refusal("unprofitable", f"it is made of more than {_MOST_NODES:,} ops")
        waiting += reads(node)
    return sorted(found, key=lambda node: node.id)


@dataclass(frozen=True)
class _Counted(Raising):
    """Runs loops trip by trip, as long as trips are ``left``."""

    left: list[int] = field(default_factory=list)

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        if node.name != "stablehlo.while":
            return super().node(node, environment)
        condition, body = node.regions
        carried: Sequence[Any] = [environment[value] for value in node.operands]
        while bool(self._region(condition, carried, environment)[0]):
            self.left[0] -= 1
            if self.left[0] < 0:
                raise Refusal("unprofitable", "it runs for more trips than are tried")
            carried = self._region(body, carried, environment)
        return carried

    def _region(self, region: Any, arrays: Collection[Any], environment: Mapping[Value, Any]) -> list[Any]:
        inner = {**environment, **dict(zip(region.arguments, arrays, strict=True))}
        self.run(region.nodes, inner)
        return [inner[value] for value in region.returns]
