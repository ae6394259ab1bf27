"""A program's entry as a JAX callable in which a sum over directions, and the gradient, come from jets."""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.chains import differentiable
from fusionlab.codegen.laplacian.interpreter import forward_laplacian
from fusionlab.codegen.laplacian.jet import densify
from fusionlab.codegen.laplacian.state import Options, State
from fusionlab.codegen.raising import Raising, live_nodes
from fusionlab.hlo.constants import fold
from fusionlab.hlo.view import Node, Value, reads
from fusionlab.hlo.walker_axes import resized_shapes
from fusionlab.passes.laplacian_finding import Laplacian
from fusionlab.passes.laplacian_guards import mixed
from fusionlab.passes.sums_over_directions import DirectionSum, NoLaplacian


class NotInParts(Exception):
    """The walkers cannot be taken one part after another; the message says what keeps them together."""


class RewrittenEntry:
    """The whole entry as a JAX callable with the replay replaced; NoLaplacian if something else needs the loop."""

    def __init__(self, question: DirectionSum, found: Laplacian, raising: Raising, how: Options, chunks: int) -> None:
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
        if chunks > 1 and (reason := mixed(flat, self.cone, found.x, found.axes)) is not None:
            raise NoLaplacian(f"the walkers cannot be taken in parts: {reason}")
        given = [*flat.arguments, found.x, found.output, *found.gradients]
        self.of_offset = [] if self.offset is None else live_nodes(flat.nodes, given, [self.offset])
        if question.replay is not None and question.replay.loop.node in self.of_offset:
            raise NoLaplacian("what it starts from depends on it")
        self.first = live_nodes(flat.nodes, flat.arguments, [found.x])  # what the cone reads of it is known then
        done = set(self.first) | (set(self.cone) if chunks == 1 else set())
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
            if found.squares:
                squares = jnp.sum(rows * rows, 0)
                scaled = scaled + (squares * np.asarray(found.squares, lap.dtype) if found.squares != 1 else squares)
            for value in found.gradients:
                asking[value] = jnp.moveaxis(rows, 0, -1).reshape(value.type.shape)
            if self.offset is not None:  # it may be made of the gradient
                raising.run([node for node in self.of_offset if not all(v in asking for v in node.results)], asking)
                scaled = asking[self.offset] + scaled
            asking[found.target] = scaled
        raising.run([node for node in self.rest if not all(v in asking for v in node.results)], asking)
        return tuple(asking[value] for value in self.flat.returns)

    def _jets(self, raising: Raising, one: Raising, x: Any, environment: Mapping[Value, Any]) -> tuple[State, Any, Any]:
        """The state after the run, the Laplacian of the output [*walkers] and its derivatives [K, *walkers]."""
        found = self.found
        engine = State(found.x, found.coordinates, found.walker_axes, raising, one, self.how, found.still, found.ties)
        cone = [node for node in self.cone if not all(value in environment for value in node.results)]
        [jet] = forward_laplacian(engine, cone, {**environment, found.x: x}, [found.output])
        jet = densify(jet, found.coordinates)
        if not self.how.adjoint:
            return engine, jet.laplacian, jet.jacobian
        return engine, self._weighted(engine), jet.jacobian

    def _weighted(self, engine: State) -> Any:
        """sum over values v of <dF/dv, source of v>, by one reverse pass of F through all of them."""
        found = self.found
        sources = engine.sources
        known = {v: a for v, a in engine.environment.items() if found.x is v or v.producer not in set(self.cone)}

        def output(injections: Sequence[Any]) -> Any:
            inner, injected = dict(known), dict(zip(sources, injections, strict=True))
            for node in self.cone:
                inner.update(zip(node.results, differentiable(engine, node, inner), strict=True))
                for value in node.results:
                    if value in engine.chains:
                        # As its source was made: of the root alone, whatever is injected on the way from there.
                        root, chain = engine.chains[value]
                        way = ChainMap({root: inner[root]}, inner)
                        for step in chain:
                            [way[step.results[0]]] = differentiable(engine, step, way)
                        inner[value] = way[value]
                    if value in found.still:
                        inner[value] = lax.stop_gradient(inner[value])
                    if value in injected:
                        inner[value] = inner[value] + injected[value]
            return inner[found.output]

        zeros = [jnp.zeros_like(array) for array in sources.values()]
        try:
            value, pull = jax.vjp(output, zeros)
            [adjoint] = pull(jnp.ones_like(value))
        except ValueError as error:
            said = str(error).partition("\n")[0]
            if "Reverse-mode" not in said:
                raise
            raise NotImplementedError(f"there is no adjoint: {said}") from error  # of a loop that JAX cannot transpose
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

        left = [node for node in self.cone if not all(value in shared for value in node.results)]
        known = {found.x, *shared, *(value for node in left for value in node.results)}
        # What was taken to differ between walkers is read by what does not, or is an argument beside the positions.
        if whole := [value for node in left for value in reads(node) if value not in known]:
            raise NotInParts(
                f"the walkers cannot be taken in parts: {whole[0]} ({whole[0].type}) is shared by all of them"
            )

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
    return {value for node in nodes for value in reads(node)}


class _Environment(dict[Value, Any]):
    """The environment of the rest of the program; values that the engine deferred are asked of it."""

    def __init__(self, known: Mapping[Value, Any], engine: State | None) -> None:
        super().__init__(known)
        self._engine = engine

    def __missing__(self, value: Value) -> Any:
        if self._engine is None:
            raise KeyError(value)
        return self._engine.environment[value]
