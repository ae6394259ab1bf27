"""A program's entry as a JAX callable in which a sum over directions, and the gradient, come from jets."""

from __future__ import annotations

import functools
import operator
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.laplacian.adjoint import weighted_sources
from fusionlab.codegen.laplacian.interpreter import forward_laplacian
from fusionlab.codegen.laplacian.jet import Coordinates, Jet, densify
from fusionlab.codegen.laplacian.state import Options, State
from fusionlab.codegen.raising import Raising
from fusionlab.hlo.batch_axes import resized_shapes
from fusionlab.hlo.constants import fold
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.view import Value
from fusionlab.passes.fuse_jvp_replay.evaluating import not_computed
from fusionlab.passes.fuse_jvp_replay.guards import mixed
from fusionlab.passes.fuse_jvp_replay.identify import Laplacian
from fusionlab.passes.fuse_jvp_replay.no_laplacian import NotALaplacian
from fusionlab.passes.fuse_jvp_replay.one_by_one import second_derivatives
from fusionlab.passes.fuse_jvp_replay.parts import no_adjoint_of_each, shared_values
from fusionlab.passes.fuse_jvp_replay.rationals import array_of_weights
from fusionlab.passes.fuse_jvp_replay.recognise import TraceCandidate
from fusionlab.passes.refusals import Ground, Refusal


class RewrittenEntry:
    """The whole entry as a JAX callable without the replay; NotALaplacian if something else needs the loop."""

    def __init__(
        self, candidate: TraceCandidate, found: Laplacian, raising: Raising, options: Options, chunks: int
    ) -> None:
        self.flat, self.found, self.raising, self.chunks = candidate.flat, found, raising, chunks
        self.options = replace(options, powers_by_base=found.powers_by_base)
        self.producer, flat, self.has_loop = candidate.producer, candidate.flat, candidate.replay is not None
        starts = {t: candidate.initial[t] for t in found.every_sum if t in candidate.initial}
        self.offsets = {t: value for t, value in starts.items() if (start := fold(value)) is None or np.any(start)}
        self.factors = {t: candidate.factors[t] for t in found.every_sum if t in candidate.factors}
        rest = live_nodes(flat.nodes, [*flat.arguments, *found.every_sum, *found.gradients], flat.returns)
        if self.has_loop and self.producer in rest:
            raise NotALaplacian(Ground.TERMS_USED, "its terms are also used one by one", self.producer)
        if chunks > 1 and found.x.type.shape[found.longest] % chunks:
            reason = f"{found.x.type.shape[found.longest]} walkers cannot be taken in {chunks} parts"
            raise NotALaplacian(Ground.NOT_IN_PARTS, reason)
        self.cone = live_nodes(flat.nodes, [*flat.arguments, found.x], [found.output])
        if chunks > 1 and (why := mixed(flat, self.cone, found.x, [found.marks[found.longest]])) is not None:
            raise NotALaplacian(why.ground, f"the walkers cannot be taken in parts: {why.reason}", why.node)
        if options.adjoint:
            refused = no_adjoint_of_each(flat, self.cone, found.x, found.marks, found.walker_axes, found.output)
            if refused is not None:
                raise refused
        known = [*flat.arguments, found.x, found.output, *found.gradients]
        self.beside = live_nodes(flat.nodes, known, [*self.offsets.values(), *self.factors.values()])
        weights = found.trip_weights.reads if found.trip_weights is not None else []
        self.first = live_nodes(flat.nodes, flat.arguments, [found.x, *weights])  # the cone's inputs are known then
        self.parts = [
            (target, *part) for target, each in found.combinations.items() for part in each.parts() if found.channels
        ]
        done = {*self.first, *(self.cone if chunks == 1 else ())}
        self.rest = [node for node in rest if node not in done]

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        found, raising = self.found, self.raising
        environment: dict[Value, Any] = dict(zip(self.flat.arguments, arrays, strict=True))
        raising.run(self.first, environment)
        if self.chunks > 1:
            environment[found.output], laplacian, jacobian = self._in_parts(environment)
        else:
            # Of this environment, values that are not needed yet are computed when they are read.
            environment, laplacian, jacobian = self._jets(raising, environment)
        self.add_sums(environment, laplacian, jacobian)
        raising.run(not_computed(self.rest, environment), environment)
        return tuple(environment[value] for value in self.flat.returns)

    def add_sums(self, environment: dict[Value, Any], laplacian: Any, jacobian: Any) -> None:
        """Add the sums of the loop, and the gradients, to ``environment``."""
        found, raising = self.found, self.raising
        with raising.scope(self.producer):
            for value in found.gradients:
                environment[value] = jnp.moveaxis(jacobian, 0, -1).reshape(value.type.shape)
            raising.run(not_computed(self.beside, environment), environment)  # it may depend on the gradient
            squares = None
            if any(d for _, d in found.every_sum.values()):
                squares = jnp.sum(self.coordinates(environment).weigh(jacobian) * jacobian, 0)
            for target, factors in found.every_sum.items():
                if found.channels:
                    total = self._by_channel(target, laplacian, jacobian)
                else:
                    terms = [_times(array, by) for array, by in zip((laplacian, squares), factors, strict=True) if by]
                    total = functools.reduce(operator.add, terms)
                if target in self.factors:
                    total = environment[self.factors[target]] * total
                environment[target] = environment[self.offsets[target]] + total if target in self.offsets else total

    def coordinates(self, environment: Mapping[Value, Any]) -> Coordinates:
        """The coordinates, with their weights."""
        found, weights = self.found, None
        if found.trip_weights is not None:
            weights = found.trip_weights.array(self.raising, environment)
        elif found.weights:
            weights = array_of_weights(found.weights, np.result_type(environment[found.x]))
        return replace(found.coordinates, weights=weights)

    def _by_channel(self, target: Value, laplacians: Any, jacobian: Any) -> Any:
        """``target`` from the Laplacians [parts, *walkers] with respect to ``self.parts`` and from squares."""
        combination, dtype = self.found.combinations[target], laplacians.dtype
        terms: list[list[Any]] = [[] for _ in combination.second]
        for laplacian, (place, channel, weight, _) in zip(laplacians, self.parts, strict=True):
            if place is target:
                terms[channel].append(laplacian * array_of_weights([weight], dtype).reshape(()))
        for own, weights in zip(terms, combination.squares, strict=True):
            if of := [k for k, weight in enumerate(weights) if weight]:  # 0 times what is undefined is undefined
                first, end = of[0], of[-1] + 1
                rows = jacobian[first:end] if end - first == len(of) else jacobian[np.array(of)]
                own.append(jnp.tensordot(array_of_weights([weights[k] for k in of], dtype), rows * rows, 1))
        zero = jnp.zeros(laplacians.shape[1:], dtype)
        totals = [functools.reduce(operator.add, own) if own else zero for own in terms]
        return totals[0] if combination.axis is None else jnp.stack(totals, combination.axis)

    def _jets(self, raising: Raising, environment: Mapping[Value, Any]) -> tuple[dict[Value, Any], Any, Any]:
        """The values of the cone, the Laplacian of the output [*walkers] and its derivatives [K, *walkers].

        Of sums with channels, the Laplacians [parts, *walkers] with respect to the coordinates of each of the parts.
        """
        found = self.found
        if found.channels:
            return self._jets_of_channels(raising, environment)
        state, jet = self._pushed(self._state(raising, self.coordinates(environment)), environment)
        if not self.options.adjoint:
            return state.environment, jet.laplacian, jet.jacobian
        weighted = weighted_sources(state, self.cone, found.output, found.axes)
        return state.environment, weighted, jet.jacobian

    def _state(self, raising: Raising, of: Coordinates, seeds: Any = None) -> State:
        found = self.found
        return State(
            found.x, of, found.walker_axes, raising, found.one, self.options, found.stop_gradient, found.subgradients,
            seeds,
        )  # fmt: skip

    def _pushed(self, state: State, environment: Mapping[Value, Any]) -> tuple[State, Jet]:
        """``state`` after the run, and the dense jet of the output."""
        [jet] = forward_laplacian(state, not_computed(self.cone, environment), environment, [self.found.output])
        return state, densify(jet, state.coordinates)

    def _jets_of_channels(
        self, raising: Raising, environment: Mapping[Value, Any]
    ) -> tuple[dict[Value, Any], Any, Any]:
        """As ``_jets``: from second derivatives by every coordinate, else by one run with the coordinates of each part
        as directions."""
        found, coordinates = self.found, self.found.coordinates
        state = self._state(raising, coordinates)
        if found.by_adjoint:
            seconds, rows = second_derivatives(state, self.flat, self.cone, found.output, environment, found.marks)
            known = dict(environment)
            raising.run(not_computed(self.cone, environment), known)
            sums = [jnp.sum(seconds[..., np.array(of)], -1) for *_, of in self.parts]
            return known, jnp.stack(sums), jnp.moveaxis(rows, -1, 0)
        if self.options.adjoint:
            reason = "sums with weights of their own are not taken by the adjoint"
            raise Refusal(Ground.WEIGHTS_BY_ADJOINT, reason, self.producer)
        most = max(len(of) for *_, of in self.parts)
        seeds = np.zeros((len(self.parts), most, coordinates.count))
        for own, (*_, of) in zip(seeds, self.parts, strict=True):
            own[range(len(of)), of] = 1
        state, jet = self._pushed(state, environment)

        def laplacian(rows: Any) -> Any:
            return self._pushed(self._state(raising, Coordinates(most, 1), rows), environment)[1].laplacian

        return state.environment, jax.vmap(laplacian)(seeds), jet.jacobian

    def _in_parts(self, environment: Mapping[Value, Any]) -> tuple[Any, Any, Any]:
        """(value, Laplacian, derivatives) of the output, computed for one part of the walkers after another."""
        found, along = self.found, self.found.longest
        walkers = found.output.type.shape
        shapes = resized_shapes(found.marks[along], walkers[along], walkers[along] // self.chunks)
        part = replace(self.raising, shapes=shapes)
        shared = shared_values(self.flat, self.cone, found.x, environment, self.raising, part)

        def one(x: Any) -> tuple[Any, Any, Any]:
            values, laplacian, jacobian = self._jets(part, {**shared, found.x: x})
            return values[found.output], laplacian, jacobian

        x = environment[found.x]
        with self.raising.scope(self.producer):
            # Other leading axes are of extent 1, so that no elements move.
            parts = x.reshape(self.chunks, *(-1 if n > 1 else 1 for n in walkers), *x.shape[len(walkers) :])
            value, laplacian, jacobian = lax.map(one, parts)
            jacobian = jnp.moveaxis(jacobian, 1, 0)
            jacobian = jacobian.reshape(len(jacobian), *walkers)
            if not found.channels:
                return value.reshape(walkers), laplacian.reshape(walkers), jacobian
            laplacian = jnp.moveaxis(laplacian, 1, 0)
            return value.reshape(walkers), laplacian.reshape(len(laplacian), *walkers), jacobian


class JointEntry:
    """The whole entry without several sums over directions, of which the jets are shared where it ``is_one_pass``.

        sum_k d^2 F / d x_k^2,  sum_k d^2 G / d x_k^2       -->      one forward pass of F and G

    Real and imaginary part of log psi, or states of shared layers, cost little more than one of them.
    """

    def __init__(self, entries: Sequence[RewrittenEntry]) -> None:
        self.entries, first = entries, entries[0]
        self.flat, self.raising, self.producer = first.flat, first.raising, first.producer
        self.stopped = {value for entry in entries for value in entry.found.stop_gradient}
        self.subgradients = {value: side for entry in entries for value, side in entry.found.subgradients.items()}
        self.outputs = [entry.found.output for entry in entries]
        flat, given = self.flat, [*self.flat.arguments, first.found.x]
        self.cone = live_nodes(flat.nodes, given, self.outputs)
        known = [value for entry in entries for value in (*entry.found.every_sum, *entry.found.gradients)]
        self.rest = live_nodes(flat.nodes, [*flat.arguments, *known], flat.returns)

    @property
    def is_one_pass(self) -> bool:
        """True if the jets are the same, and no sum needs another."""
        needed = {*self.cone, *self.rest, *(node for entry in self.entries for node in entry.beside)}
        apart = all(entry.producer not in needed for entry in self.entries if entry.has_loop)
        return apart and all(map(self._agrees, self.entries))

    def _agrees(self, entry: RewrittenEntry) -> bool:
        """True if all jets of ``entry`` are those of the others, too."""
        found, first = entry.found, self.entries[0].found
        own = {value for node in entry.cone for value in node.results}
        alike = entry.options == self.entries[0].options and not entry.options.adjoint
        plain = entry.chunks == 1 and not found.channels and alike
        same = (entry.flat, found.x, found.coordinates, found.weights, found.trip_weights, found.output.type.shape) == (
            self.flat, first.x, first.coordinates, first.weights, first.trip_weights, first.output.type.shape,
        )  # fmt: skip
        sides = all(self.subgradients[value] == side for value, side in found.subgradients.items())
        return plain and same and sides and self.stopped & own == {*found.stop_gradient}

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        first, raising = self.entries[0], self.raising
        environment: dict[Value, Any] = dict(zip(self.flat.arguments, arrays, strict=True))
        raising.run(first.first, environment)
        found = first.found
        of = first.coordinates(environment)
        state = State(
            found.x, of, found.walker_axes, raising, found.one, first.options, self.stopped, self.subgradients
        )
        jets = forward_laplacian(state, not_computed(self.cone, environment), environment, self.outputs)
        environment = state.environment
        for entry, jet in zip(self.entries, jets, strict=True):
            dense = densify(jet, of)
            entry.add_sums(environment, dense.laplacian, dense.jacobian)
        raising.run(not_computed(self.rest, environment), environment)
        return tuple(environment[value] for value in self.flat.returns)


def _times(array: Any, factor: float) -> Any:
    return array if factor == 1 else array * np.asarray(factor, array.dtype)
