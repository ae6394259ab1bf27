"""collapse-replay: replace a replay by the forward Laplacian of the value that it differentiates.

rewrite:
    F = f(x);  g, jvp_g = linearize(grad(f), x)          (F, lap F, dF) = f pushed forward from (x, 0, eye),
    for k in range(3 N):                          -->        layer by layer: lap' = J lap + sum_k H[a_k, a_k]
        lap += jvp_g(eye[k])[k]                          lap = lap F;  g = dF

The value F, and the positions x, are found by evaluating the replay beside the forward Laplacians of the program's own
values (``laplacian_search``). Where the gradient is used elsewhere it comes from the derivatives that are there anyway,
so that the reverse pass is dead, and so is every residual of the replay.

requires: a replay of 3N trips whose sum over directions is, at every point tried, a constant times the Laplacian of one
    value that the program computes before the loop; ops that raise to JAX.
exact: reassociates (another algorithm for the same derivatives).
hopes: one widened forward pass in place of 3N forward and reverse passes; memory of a few layers of directions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.forward_laplacian.interpret import ForwardLaplacian
from fusionlab.codegen.forward_laplacian.jet import densify
from fusionlab.codegen.raising import RaiseError, Raising, live_nodes
from fusionlab.codegen.rebuild import rebuild
from fusionlab.hlo.constants import fold
from fusionlab.hlo.flat import FlatFunction, Value, flatten
from fusionlab.hlo.invariants import has_effect
from fusionlab.hlo.loops import Sum
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.passes.contract import Applied, Declined, Event, Pass, Result, Setting, verify
from fusionlab.passes.laplacian_search import Laplacian, NoLaplacian, find_laplacian
from fusionlab.passes.loop_rewrite import describe


@dataclass(frozen=True)
class CollapseReplay(Pass):
    """``split`` contracts the parts of a concatenation one by one, each with the directions it depends on."""

    split: bool = False

    name: ClassVar[str] = "collapse-replay"

    def run(self, program: Program, setting: Setting) -> Result:
        """Collapse every replay of the program's entry; see the module's docstring."""
        platform = setting.platform if program.platform == "any" else program.platform
        events: list[Event] = []
        refused: set[str] = set()
        while True:
            module = program.parse()
            flat = flatten(module)
            replay = next((r for r in inventory(flat) if r.loop.node.scope not in refused), None)
            if replay is None:
                return Result(program, tuple(events))
            scope = replay.loop.node.scope
            refused.add(scope)
            if replay.blockers:
                events.append(Declined(self.name, "unsafe", replay.blockers[0], scope))
                continue
            effect = next((node for node in flat.walk() if not node.regions and has_effect(node)), None)
            if effect is not None:
                reason = f"{describe(effect)} has an effect, which a rebuilt entry would not have"
                events.append(Declined(self.name, "unsafe", reason, scope))
                continue
            if replay.loop.node not in flat.nodes:
                events.append(Declined(self.name, "unsupported", "the replay is inside another loop", scope))
                continue
            try:
                found = find_laplacian(flat, replay)
                raising = Raising(marks={}, fold=True)
                function = collapsed(flat, replay, found, raising, self.split)
                rebuild(module, function, name="collapse_replay", platform=platform, origins=raising.marks or {})
            except NoLaplacian as reason:
                events.append(Declined(self.name, "unsafe", str(reason), scope))
                continue
            except (RaiseError, NotImplementedError) as error:
                events.append(Declined(self.name, "unsupported", str(error), scope))
                continue
            verify(module, self.name)
            known = None if program.platform == "any" else program.platform
            program = Program.from_module(module, name=program.name, provenance=program.provenance, platform=known)
            events.append(Applied(self.name, _describe(replay, found), scope, str(self)))


def _describe(replay: Replay, found: Laplacian) -> str:
    factor = "" if found.scale == 1 else f"{found.scale:g} times "
    gradient = f", whose gradient ({len(found.gradients)} values) comes with it" if found.gradients else ""
    return (
        f"{replay.trips} trips are {factor}the Laplacian of %{found.output.id} ({found.output.type}) with respect to "
        f"%{found.x.id} ({found.x.type}){gradient}"
    )


def collapsed(
    flat: FlatFunction, replay: Replay, found: Laplacian, raising: Raising, split: bool
) -> Callable[..., tuple[Any, ...]]:
    """The whole entry as a JAX callable with the replay collapsed; NoLaplacian if something else needs the loop."""
    loop = replay.loop
    initial = next((loop.node.operands[i] for i in loop.indices(Sum)), None)
    start = fold(initial) if initial is not None else None
    offset = initial if initial is not None and not (start is not None and not np.any(start)) else None
    given = [*flat.arguments, found.target, *found.gradients]
    rest = live_nodes(flat.nodes, given, flat.returns)
    if loop.node in rest:
        raise NoLaplacian("its terms are also used one by one")
    cone = live_nodes(flat.nodes, [*flat.arguments, found.x], [found.output])
    first = live_nodes(flat.nodes, flat.arguments, [found.x, *([offset] if offset is not None else [])])
    in_cone = set(cone)
    first = [node for node in first if node not in in_cone]
    done = in_cone | set(first)

    def run(*arrays: Any) -> tuple[Any, ...]:
        environment: dict[Value, Any] = dict(zip(flat.arguments, arrays, strict=True))
        raising.run(first, environment)
        engine = ForwardLaplacian(found.x, found.coordinates, found.walker_axes, raising, found.one, split)
        [jet] = engine.run(cone, environment, [found.output])
        jet = densify(jet, found.coordinates)
        environment.update(engine.environment)
        with raising.scope(loop.node):
            lap = jet.lap * np.asarray(found.scale, jet.lap.dtype) if found.scale != 1 else jet.lap
            environment[found.target] = lap if offset is None else environment[offset] + lap
            for value in found.gradients:
                environment[value] = jnp.moveaxis(jet.rows, 0, -1).reshape(value.type.shape)
        asking = _Asking(environment, engine)
        raising.run([node for node in rest if node not in done], asking)
        return tuple(asking[value] for value in flat.returns)

    return run


class _Asking(dict[Value, Any]):
    """The environment of the rest of the program; plain values that the engine put off are asked of it."""

    def __init__(self, known: dict[Value, Any], engine: ForwardLaplacian) -> None:
        super().__init__(known)
        self._engine = engine

    def __missing__(self, value: Value) -> Any:
        return self._engine.environment[value]
