"""Rebuild a program with its replays replaced by a Laplacian that is computed in another way.

What the passes collapse-replay, sparsify-directions and transpose-replay share: the walk over replays, and the entry
as a JAX callable in which the replay's sum and the gradient come from jets.
"""

from __future__ import annotations

import math
from collections import ChainMap, Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.forward_laplacian.how import How
from fusionlab.codegen.forward_laplacian.interpret import ForwardLaplacian
from fusionlab.codegen.forward_laplacian.jet import densify
from fusionlab.codegen.raising import RaiseError, Raising, live_nodes, raise_nodes
from fusionlab.codegen.rebuild import rebuild
from fusionlab.hlo.constants import fold
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.flat import Node, Value, flatten
from fusionlab.hlo.invariants import has_effect
from fusionlab.hlo.program import Program
from fusionlab.hlo.replay import Replay, inventory
from fusionlab.hlo.value_numbers import merge_equal
from fusionlab.hlo.walker_axes import resized_shapes
from fusionlab.passes.contract import Applied, Declined, Event, Kind, Pass, Result, Setting, verify
from fusionlab.passes.laplacian_search import Laplacian, find_laplacian
from fusionlab.passes.loop_rewrite import describe
from fusionlab.passes.region_views import RaisingWithRegion, enclosing_regions, view_of_region
from fusionlab.passes.sums_over_directions import DirectionSum, NoLaplacian, NotSeen, sum_of_loop, sums_without_loop

Function = Callable[..., tuple[Any, ...]]

_MOST_FLOPS = 0.8
"""Where there is no loop to be rid of, the rewritten program needs at most this part of the FLOPs."""


def rewrite_replays(program: Program, by: Pass, how: How, chunks: int, setting: Setting) -> Result:
    """Replace every replay of the program's entry; ``chunks`` parts of the walkers one after another."""
    platform = setting.platform if program.platform == "any" else program.platform
    how = replace(how, join_rows=platform == "cpu")
    events: dict[Event, None] = {}
    left_alone: Counter[Hashable] = Counter()
    while True:
        attempt = _Attempt(program, by, how, chunks, platform)
        applied = attempt.first(left_alone, events)
        if applied is None:
            return Result(program, tuple(events))
        program = applied[0]
        events[applied[1]] = None


class _Attempt:
    """One look at a program, for the first sum over directions in it that can be replaced."""

    def __init__(self, program: Program, by: Pass, how: How, chunks: int, platform: str) -> None:
        self.program, self.by, self.how, self.chunks, self.platform = program, by, how, chunks, platform
        self.module = program.parse()
        self.flat = flatten(self.module)
        merge_equal(self.flat)

    def first(self, left_alone: Counter[Hashable], events: dict[Event, None]) -> tuple[Program, Applied] | None:
        """The program with one sum replaced; ``left_alone`` counts, by what they look like, those that cannot be."""
        places = {event.location for event in events if isinstance(event, Applied)}
        passed: Counter[Hashable] = Counter()
        for looks, replay, question in self._sums():
            passed[looks] += 1
            if passed[looks] <= left_alone[looks]:
                continue
            found = self._replaced(replay, question)
            if isinstance(found, tuple):
                return found
            left_alone[looks] += 1
            # The loop over parts of the walkers was reported when it was made.
            if found is not None and not (found.location in places and replay is not None and replay.blockers):
                events[found] = None
        return None

    def _sums(self) -> Iterator[tuple[Hashable, Replay | None, DirectionSum | None]]:
        for replay in inventory(self.flat):
            node = replay.loop.node
            yield (node.scope, replay.trips), replay, None
        for question in sums_without_loop(self.flat):
            yield (question.scope, question.directions), None, question

    def _replaced(
        self, replay: Replay | None, question: DirectionSum | None
    ) -> tuple[Program, Applied] | Declined | None:
        """The rewritten program, or why not; None for an identity without a Laplacian."""
        scope = replay.loop.node.scope if replay else question.scope if question else ""
        try:
            if replay is not None:
                question = self._question(replay)
            assert question is not None
            return self._rewritten(question)
        except _Refused as refused:
            return Declined(self.by.name, refused.kind, str(refused), scope)
        except NoLaplacian as reason:
            known = replay is not None or isinstance(reason, NotSeen)
            return Declined(self.by.name, "unsafe", str(reason), scope) if known else None
        except (RaiseError, NotImplementedError) as error:
            return Declined(self.by.name, "unsupported", str(error), scope) if replay is not None else None

    def _question(self, replay: Replay) -> DirectionSum:
        if replay.blockers:
            raise NoLaplacian(replay.blockers[0])
        regions = enclosing_regions(self.flat, replay.loop.node)
        return sum_of_loop(view_of_region(self.flat, regions) if regions else self.flat, replay)

    def _rewritten(self, question: DirectionSum) -> tuple[Program, Applied]:
        effect = next((node for node in self.flat.walk() if not node.regions and has_effect(node)), None)
        if effect is not None:
            raise NoLaplacian(f"{describe(effect)} has an effect, which a rebuilt entry would not have")
        program, by = self.program, self.by
        found = find_laplacian(question, program.digest)
        raising = Raising(marks={}, fold=True)
        function = self._entry(question, _Rewritten(question, found, raising, self.how, self.chunks), raising)
        module = program.parse()
        rebuild(module, function, name=by.name.replace("-", "_"), platform=self.platform, origins=raising.marks or {})
        verify(module, by.name)
        if question.replay is None:
            part = program_cost(flatten(module)).flops / max(program_cost(self.flat).flops, 1)
            if part > _MOST_FLOPS:
                raise _Refused("unprofitable", f"without a loop to be rid of, {part:.2f} times the FLOPs do not pay")
        known = None if program.platform == "any" else program.platform
        rebuilt = Program.from_module(module, name=program.name, provenance=program.provenance, platform=known)
        return rebuilt, Applied(by.name, _describe(question, found, self.chunks), question.scope, str(by))


    def _entry(self, question: DirectionSum, rewritten: Function, raising: Raising) -> Function:
        """The whole entry; where ``rewritten`` is a region of it, as it stands but for that region."""
        if question.flat is self.flat:
            return rewritten
        region = enclosing_regions(self.flat, question.producer)[-1]
        around = RaisingWithRegion(
            marks=raising.marks,
            fold=True,
            replaced=region,
            arguments=question.flat.arguments,
            function=rewritten,
        )
        return raise_nodes(self.flat.nodes, self.flat.arguments, self.flat.returns, around)


class _Refused(Exception):
    def __init__(self, kind: Kind, reason: str) -> None:
        super().__init__(reason)
        self.kind = kind


def _describe(question: DirectionSum, found: Laplacian, chunks: int) -> str:
    factor = "" if found.scale == 1 else f"{found.scale:g} times "
    gradient = f", whose gradient ({len(found.gradients)} values) comes with it" if found.gradients else ""
    parts = f"; the walkers in {chunks} parts" if chunks > 1 else ""
    what = f"{question.directions} {'trips' if question.replay else 'directions at once'}"
    return (
        f"{what} are {factor}the Laplacian of %{found.output.id} ({found.output.type}) with respect to "
        f"%{found.x.id} ({found.x.type}){gradient}{parts}"
    )


class _Rewritten:
    """The whole entry as a JAX callable with the replay replaced; NoLaplacian if something else needs the loop."""

    def __init__(self, question: DirectionSum, found: Laplacian, raising: Raising, how: How, chunks: int) -> None:
        self.flat, self.found, self.raising, self.how, self.chunks = question.flat, found, raising, how, chunks
        self.producer, flat, initial = question.producer, question.flat, question.initial
        start = fold(initial) if initial is not None else None
        self.offset = initial if initial is not None and (start is None or np.any(start)) else None
        given = [*flat.arguments, found.target, *found.gradients]
        rest = live_nodes(flat.nodes, given, flat.returns)
        if question.replay is not None and question.replay.loop.node in rest:
            raise NoLaplacian("its terms are also used one by one")
        if chunks > 1 and (found.walker_axes != 1 or found.x.type.shape[0] % chunks):
            raise NoLaplacian(f"{found.x.type.shape[: found.walker_axes]} walkers cannot be taken in {chunks} parts")
        self.cone = live_nodes(flat.nodes, [*flat.arguments, found.x], [found.output])
        given = [*flat.arguments, found.x, found.output, *found.gradients]
        self.of_offset = [] if self.offset is None else live_nodes(flat.nodes, given, [self.offset])
        if question.replay is not None and question.replay.loop.node in self.of_offset:
            raise NoLaplacian("what it starts from depends on it")
        first = live_nodes(flat.nodes, flat.arguments, [found.x])
        in_cone = set(self.cone)
        self.first = [node for node in first if node not in in_cone]
        done = set(self.first) | (in_cone if chunks == 1 else set())
        self.rest = [node for node in rest if node not in done]

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        found, raising = self.found, self.raising
        environment: dict[Value, Any] = dict(zip(self.flat.arguments, arrays, strict=True))
        raising.run(self.first, environment)
        if self.chunks > 1:
            value, lap, rows = self._in_parts(environment)
            asking = _Environment(environment, None)
            asking[found.output] = value
        else:
            engine, lap, rows = self._jets(raising, found.one, environment[found.x], environment)
            asking = _Environment({**environment, **engine.environment}, engine)
        with raising.scope(self.producer):
            scaled = lap * np.asarray(found.scale, lap.dtype) if found.scale != 1 else lap
            if self.offset is not None:
                raising.run([node for node in self.of_offset if not all(v in asking for v in node.results)], asking)
                scaled = asking[self.offset] + scaled
            asking[found.target] = scaled
            for value in found.gradients:
                asking[value] = jnp.moveaxis(rows, 0, -1).reshape(value.type.shape)
        raising.run([node for node in self.rest if not all(v in asking for v in node.results)], asking)
        return tuple(asking[value] for value in self.flat.returns)

    def _jets(
        self, raising: Raising, one: Raising, x: Any, environment: Mapping[Value, Any]
    ) -> tuple[ForwardLaplacian, Any, Any]:
        """The engine after its run, the Laplacian of the output [*walkers] and its derivatives [K, *walkers]."""
        found = self.found
        engine = ForwardLaplacian(found.x, found.coordinates, found.walker_axes, raising, one, self.how)
        cone = [node for node in self.cone if not all(value in environment for value in node.results)]
        [jet] = engine.run(cone, {**environment, found.x: x}, [found.output])
        jet = densify(jet, found.coordinates)
        if not self.how.adjoint:
            return engine, jet.lap, jet.rows
        return engine, self._weighted(engine, raising), jet.rows

    def _weighted(self, engine: ForwardLaplacian, raising: Raising) -> Any:
        """sum over values v of <dF/dv, source of v>, by one reverse pass of F through all of them."""
        found = self.found
        sources = engine.sources
        known = {v: a for v, a in engine.environment.items() if found.x is v or v.producer not in set(self.cone)}

        def output(injections: Sequence[Any]) -> Any:
            inner, injected = dict(known), dict(zip(sources, injections, strict=True))
            for node in self.cone:
                inner.update(zip(node.results, raising.node(node, inner), strict=True))
                for value in node.results:
                    if value in engine.functions:
                        # As its source was made: of the root alone, whatever is injected on the way from there.
                        root, chain = engine.functions[value]
                        way = ChainMap({root: inner[root]}, inner)
                        for step in chain:
                            way[step.results[0]] = raising.node(step, way)[0]
                        inner[value] = way[value]
                    if value in injected:
                        inner[value] = inner[value] + injected[value]
            return inner[found.output]

        zeros = [jnp.zeros_like(array) for array in sources.values()]
        try:
            value, pull = jax.vjp(output, zeros)
            [adjoint] = pull(jnp.ones_like(value))
        except ValueError as error:  # a loop in the function that is differentiated
            raise NotImplementedError(f"there is no adjoint: {str(error).splitlines()[0]}") from error
        total = None
        for (source, array), weight in zip(sources.items(), adjoint, strict=True):
            axes = found.axes.get(source, set())
            if len(axes) != found.walker_axes or math.prod(source.type.shape[a] for a in axes) != value.size:
                raise NotImplementedError(f"{source.type} has its walkers merged with another axis")
            inner = tuple(a for a in range(array.ndim) if a not in axes)
            term = jnp.sum(array * weight, inner)
            total = term if total is None else total + term
        return total

    def _in_parts(self, environment: Mapping[Value, Any]) -> tuple[Any, Any, Any]:
        """(value, Laplacian, derivatives) of the output, computed for one part of the walkers after another."""
        found = self.found
        walkers = found.x.type.shape[0]
        shapes = resized_shapes(found.axes, walkers, walkers // self.chunks)
        part = replace(self.raising, shapes=shapes)
        fixed = self._fixed()
        shared: dict[Value, Any] = dict(environment)
        self.raising.run(fixed, shared)
        if any(value in shapes for value in shared if value is not found.x and value in _reads(self.cone)):
            shared = {value: array for value, array in shared.items() if value not in shapes}

        def one(x: Any) -> tuple[Any, Any, Any]:
            engine, lap, rows = self._jets(part, found.one, x, shared)
            return engine.environment[found.output], lap, rows

        x = environment[found.x]
        with self.raising.scope(self.producer):
            value, lap, rows = lax.map(one, x.reshape(self.chunks, -1, *x.shape[1:]))
            return (
                value.reshape(walkers),
                lap.reshape(walkers),
                jnp.moveaxis(rows, 1, 0).reshape(rows.shape[1], walkers),
            )

    def _fixed(self) -> list[Node]:
        """Nodes of the cone that neither depend on the positions nor count walkers: they run once."""
        varying = {self.found.x} | {value for value in self.flat.arguments if value in self.found.axes}
        fixed = []
        for node in self.cone:
            marked = any(value in self.found.axes for value in node.results)
            if varying.isdisjoint(_reads([node])) and not marked:
                fixed.append(node)
            else:
                varying.update(node.results)
        return fixed


def _reads(nodes: Sequence[Node]) -> set[Value]:
    from fusionlab.hlo.flat import reads

    return {value for node in nodes for value in reads(node)}


class _Environment(dict[Value, Any]):
    """The environment of the rest of the program; plain values that the engine put off are asked of it."""

    def __init__(self, known: Mapping[Value, Any], engine: ForwardLaplacian | None) -> None:
        super().__init__(known)
        self._engine = engine

    def __missing__(self, value: Value) -> Any:
        if self._engine is None:
            raise KeyError(value)
        return self._engine.environment[value]

