"""licm: compute loop-invariant values once, before the loop.

rewrite:
    while cond(k):                        t = f(w)
        t = f(w)  (w invariant)    -->    while cond(k):
        x = g(x, t, k)                        x = g(x, t, k)

XLA:GPU has no such pass; with ``jvp`` of ``grad`` inside the loop even the LU factorisation is replayed.

requires: a body that raises to JAX; hoisted ops have no effect (so running them when the loop would not is safe).
    Ops that only make or view data (constants, iota, broadcasts, reshapes, converts) stay in the loop: hoisting
    them would materialise what XLA fuses for free. So do scalar integers of scalars where nothing else is invariant,
    as the index of a branch. Constants that the loop carries or captures are sunk into it.
exact: bitwise per op (XLA may fuse the hoisted ops in another way).
hopes: the launches and FLOPs of the invariant ops, times trips - 1.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from jax import lax

from fusionlab.codegen.raising import Raising, raise_nodes, unsupported_nodes
from fusionlab.hlo import ops
from fusionlab.hlo.loops import Invariant, Loop, constants_of, invariant_nodes, only_makes_data
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import Node, Value, reads
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal, unsupported
from fusionlab.passes.rewriting import LoopSite, Rewrite, loop_marks, rewrite_loops


@dataclass(frozen=True)
class LoopInvariantCodeMotion(Pass):
    """No options."""

    name: ClassVar[str] = "licm"

    def run(self, program: Program, setting: Setting) -> Result:
        """Hoist out of every loop; see the module's docstring."""
        return rewrite_loops(program, self.name, _decide, setting)


def _decide(site: LoopSite) -> Rewrite:
    loop = site.loop
    hoisted = invariant_nodes(loop)
    if all(_is_of_index(node) for node in hoisted):
        but = " but scalar integers" if hoisted else ""
        raise Refusal(Ground.NO_GAIN, f"nothing that a trip computes is invariant{but}")
    opaque = [node for region in loop.node.regions for node in unsupported_nodes(region)]
    if opaque:
        raise unsupported(opaque[0], "loop")
    return Rewrite(
        _hoisted_loop(site, hoisted),
        what=f"{len(hoisted)} invariant ops hoisted out of the loop",
        resolved=LoopInvariantCodeMotion.name,
        marks=tuple(loop_marks(loop).items()),
        marked_loop=-1,  # hoisted ops may contain loops, and come first
    )


def _is_of_index(node: Node) -> bool:
    """True if ``node`` makes scalar integers or predicates of scalars: raising bounds the index of a ``case`` anew, so
    that a loop of which only these are hoisted would never come to rest."""
    values = (*node.operands, *node.results)
    return not node.regions and all(v.type.shape == () and v.dtype not in ops.INEXACT for v in values)


def _hoisted_loop(site: LoopSite, hoisted: list[Node]) -> Callable[..., tuple[Any, ...]]:
    """The loop with the hoisted values computed before it and captured by its body."""
    loop, raising, captured_values = site.loop, site.raising, site.captured
    body, condition = loop.body, loop.node.regions[0]
    in_loop = _stay(loop, hoisted)
    read = {value for node in in_loop for value in reads(node)} | set(body.returns)
    frontier = [v for node in hoisted for v in node.results if v in read and node not in set(in_loop)]
    fixed = loop.indices(Invariant)
    given = [*loop.node.operands, *captured_values]
    fixed_or_captured = [*fixed, *range(len(loop.roles), len(given))]
    constants = _constants({at: given[at] for at in fixed_or_captured})
    moving = [i for i in range(len(loop.roles)) if i not in set(fixed)]
    before = raise_nodes(hoisted, [*(body.arguments[i] for i in fixed), *captured_values], frontier, raising)
    returned = [body.returns[i] for i in moving]
    trip = raise_nodes(in_loop, [*body.arguments, *captured_values, *frontier], returned, raising)
    going = raise_nodes(condition.nodes, [*condition.arguments, *captured_values], condition.returns, raising)

    def run(*arrays: Any) -> tuple[Any, ...]:
        # As arguments of this function, constants would be arrays that the loop reads.
        arrays = tuple(constants.get(at, array) for at, array in enumerate(arrays))
        initial, captured = arrays[: len(loop.roles)], arrays[len(loop.roles) :]
        made = before(*(initial[i] for i in fixed), *captured)

        def all_carried(carried: tuple[Any, ...]) -> list[Any]:
            changed = dict(zip(moving, carried, strict=True))
            return [changed.get(i, array) for i, array in enumerate(initial)]

        with raising.scope(loop.node):
            final = lax.while_loop(
                lambda carried: going(*all_carried(carried), *captured)[0],
                lambda carried: trip(*all_carried(carried), *captured, *made),
                tuple(initial[i] for i in moving),
            )
        return tuple(all_carried(final))

    return run


def _constants(values: Mapping[int, Value]) -> dict[int, Any]:
    """The arrays of the constants among ``values``."""
    makers = {at: value.producer for at, value in values.items()}
    return {
        at: Raising().node(node, {})[0] for at, node in makers.items() if node is not None and node.op is ops.CONSTANT
    }


def _stay(loop: Loop, hoisted: list[Node]) -> list[Node]:
    """The nodes that each trip still runs: those that vary, and views of hoisted values (cheaper to repeat)."""
    front = set(hoisted)
    wanted = {v for node in loop.body.nodes if node not in front for v in reads(node)} | set(loop.body.returns)
    constants = constants_of(loop)
    for node in reversed(hoisted):
        if only_makes_data(node, constants) and not wanted.isdisjoint(node.results):
            front.discard(node)
            wanted.update(reads(node))
    return [node for node in loop.body.nodes if node not in front]
