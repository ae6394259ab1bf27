"""Step 5, emit: a function as a JAX callable whose sums over directions come from one forward Laplacian.

y = tail(0) + sum_k a_k d^2 F / d x_k^2         all F in one pass, weighted by a, or by parts of equal weights
"""

from __future__ import annotations

import functools
import operator
from collections import ChainMap
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
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
from fusionlab.hlo.batch_axes import resized_shapes, united
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.view import FunctionView, Node, Value
from fusionlab.passes.fuse_jvp_replay.decide import Derivation
from fusionlab.passes.fuse_jvp_replay.identify.evaluating import not_computed
from fusionlab.passes.fuse_jvp_replay.parts import axis_of_parts, no_adjoint_of_each, shared_values
from fusionlab.passes.fuse_jvp_replay.second_derivatives import second_derivatives
from fusionlab.passes.fuse_jvp_replay.tail import array_of
from fusionlab.passes.fuse_jvp_replay.weights import (
    Row,
    WeightedTarget,
    Weights,
    array_of_weights,
    common_weights,
    rows_of,
)
from fusionlab.passes.refusals import Ground, Refusal

Jets = Mapping[Value, Sequence[Any]]
"""By output its Laplacian (or one by group of coordinates), its derivatives and, by the adjoint, second derivatives."""


class Emission:
    """The whole function without the sums of ``found``; Refusal if something else needs its loops.

    ``chunks``: the walkers in so many parts, one after another. ``runs`` are those of the engine, once it is traced.
    """

    def __init__(self, found: Derivation, raising: Raising, options: Options, chunks: int) -> None:
        self.found, self.raising, self.chunks = found, raising, chunks
        self.runs: list[State] = []
        self.options = replace(options, powers_by_base=found.powers_by_base)
        if gone := {loop.node for loop in found.loops}.intersection(self.rest):
            raise Refusal(Ground.TERMS_USED, "single second derivatives are used elsewhere", next(iter(gone)))
        if chunks > 1:
            _ = self.along  # Refusal if there is none
            if self.weights is None:
                raise Refusal(Ground.NOT_IN_PARTS, "sums with weights of their own are not taken in parts")
        if options.adjoint:
            self._require_adjoint()

    @functools.cached_property
    def along(self) -> int:
        """The axis of x that is taken in parts."""
        found = self.found
        return axis_of_parts(self.flat, self.cone, found.x, found.marks, found.walkers, self.outputs, self.chunks)

    @property
    def flat(self) -> FunctionView:
        return self.found.flat

    @functools.cached_property
    def outputs(self) -> list[Value]:
        """The values that are differentiated."""
        return self.found.outputs

    @property
    def producer(self) -> Node:
        """The op at whose place the Laplacian is computed."""
        loops = self.found.loops
        return loops[0].node if loops else _producer(self.found.targets[0].value)

    @functools.cached_property
    def first(self) -> list[Node]:
        """The nodes that compute x."""
        return live_nodes(self.flat.nodes, self.flat.arguments, [self.found.x])

    @functools.cached_property
    def cone(self) -> list[Node]:
        """The nodes that compute the outputs of x."""
        return live_nodes(self.flat.nodes, [*self.flat.arguments, self.found.x], self.outputs)

    @functools.cached_property
    def rest(self) -> list[Node]:
        """The nodes that compute the results, where the targets and gradients are given."""
        given = [*self.flat.arguments, *(target.value for target in self.found.targets), *self.found.gradients]
        return live_nodes(self.flat.nodes, given, self.flat.returns)

    @functools.cached_property
    def rows(self) -> list[Row]:
        """The different weights."""
        terms = [term for target in self.found.targets for term in target.terms]
        return list(dict.fromkeys(row for term in terms for row in rows_of(term)))

    @functools.cached_property
    def weights(self) -> Row | None:
        """Those of which all are multiples; None where there are none."""
        return None if self.found.by_adjoint else common_weights(self.rows)

    @functools.cached_property
    def groups(self) -> list[tuple[int, ...]]:
        """The sets of coordinates of which sums of second derivatives are needed, where weights differ."""
        return list(dict.fromkeys(of for row in self.rows for _, of in _parts(row)))

    def __call__(self, *arrays: Any) -> tuple[Any, ...]:
        raising = self.raising
        environment: dict[Value, Any] = dict(zip(self.flat.arguments, arrays, strict=True))
        raising.run(self.first, environment)
        weights = self._weights(environment)
        if self.chunks > 1:
            made = self._in_parts(environment, weights)
            environment.update({output: value for output, (value, *_) in made.items()})
            jets: dict[Value, Sequence[Any]] = {output: both for output, (_, *both) in made.items()}
        else:
            # Of this environment, values that are not needed yet are computed when they are read.
            environment, jets = self._jets(raising, environment, weights)
        self._add_targets(environment, jets)
        done = {*self.first, *(self.cone if self.chunks == 1 else ())}
        raising.run(not_computed([node for node in self.rest if node not in done], environment), environment)
        return tuple(environment[value] for value in self.flat.returns)

    def _add_targets(self, environment: dict[Value, Any], jets: Jets) -> None:
        found, raising = self.found, self.raising
        with raising.scope(self.producer):
            for value, output in found.gradients.items():
                if output in jets:
                    environment[value] = jnp.moveaxis(jets[output][1], 0, -1).reshape(value.type.shape)
            offsets: dict[Value, Any] = {}
            if any(target.offset == "tail" for target in found.targets):
                raising.run(not_computed(found.tail.before(self._known(environment)), environment), environment)
                given = {**self._zeros(), **self._slopes(jets)}
                offsets = found.tail.run(raising, environment, given, self._known(environment))
            elif begun := [target.value for target in found.targets if target.offset == "initial"]:
                starts = {value: found.tail.starts[value] for value in begun}
                known = [*self.flat.arguments, *self._known(environment)]
                beside = live_nodes(self.flat.nodes, known, list(starts.values()))
                raising.run(not_computed(beside, environment), environment)
                offsets = {value: environment[start] for value, start in starts.items()}
            environment.update(self._of_diagonal(environment, jets))
            for target in (target for target in found.targets if not target.of_diagonal):
                total = self._total(target, environment, jets) if target.terms else None
                start = offsets.get(target.value)
                if total is None:
                    environment[target.value] = start
                else:
                    environment[target.value] = total if start is None else start + total

    def _of_diagonal(self, environment: dict[Value, Any], jets: Jets) -> dict[Value, Any]:
        """The targets that are the tail of all second derivatives."""
        found, raising = self.found, self.raising
        targets = [target.value for target in found.targets if target.of_diagonal]
        if not targets:
            return {}
        raising.run(not_computed(found.tail.before(self._known(environment)), environment), environment)
        cuts = [cut for cut in found.tail.cuts if cut.order == 2]
        arrays = {cut.value: array_of(cut, raising, jets[cut.of][2]) for cut in cuts}
        made = found.tail.run(raising, environment, {**arrays, **self._slopes(jets)}, self._known(environment))
        return {target: made[target] for target in targets}

    def _known(self, environment: Mapping[Value, Any]) -> set[Value]:
        """The values of ``environment``, with those of the cone that it computes when they are read."""
        made = {value for node in (self.cone if self.chunks == 1 else ()) for value in node.results}
        return made | set(environment)

    def _slopes(self, jets: Jets) -> dict[Value, Any]:
        """Arrays for the cuts that are first derivatives."""
        found = {}
        for cut in self.found.tail.cuts:
            if cut.order == 1:
                found[cut.value] = array_of(cut, self.raising, jnp.moveaxis(jets[cut.of][1], 0, -1))
        return found

    def _zeros(self) -> dict[Value, Any]:
        """Zeros for the products."""
        found = {}
        for cut in self.found.tail.cuts:
            if cut.order == 2:
                trips = () if cut.place.loop is None else (cut.place.loop.trips or 0,)
                shape = (*trips, *self.raising.shape(cut.value))
                found[cut.value] = np.zeros(shape, self.raising.dtype(cut.value.type))
        return found

    def _total(self, target: WeightedTarget, environment: Mapping[Value, Any], jets: Jets) -> Any:
        shape, dtype = self.raising.shape(target.value), self.raising.dtype(target.value.type)
        parts, real = [], dtype.type(0).real.dtype
        for part in ("real", "imaginary") if np.issubdtype(dtype, np.complexfloating) else ("real",):
            terms = []
            for term in target.terms:
                rows = getattr(term, part)
                if any(map(any, rows)):
                    channels = [self._of_row(row, jets[term.output][0]) for row in rows]
                    total = channels[0] if term.axis is None else jnp.stack(channels, term.axis)
                    if term.unit is not None:
                        total = self._factor(term, environment, jets, target).reshape(total.shape) * total
                    total = total.reshape(shape) if total.shape != shape else total
                    terms.append(total if total.dtype == real else total.astype(real))
            parts.append(functools.reduce(operator.add, terms) if terms else None)
        if len(parts) == 1:
            return parts[0]
        return lax.complex(*(jnp.zeros(shape, real) if part is None else part for part in parts))

    def _of_row(self, row: Row, laplacians: Any) -> Any:
        """sum_k row_k d^2 F / d x_k^2 of an output, from its Laplacian by the common weights, or [groups, *F]."""
        if self.weights is not None:
            at = next((k for k, number in enumerate(self.weights) if number), 0)
            return _times(laplacians, row[at] / self.weights[at])
        terms = [_times(laplacians[self.groups.index(of)], number) for number, of in _parts(row)]
        return functools.reduce(operator.add, terms) if terms else jnp.zeros_like(laplacians[0])

    def _factor(self, term: Weights, environment: Mapping[Value, Any], jets: Jets, target: WeightedTarget) -> Any:
        """What the tail multiplies the second derivatives by, of the coordinate that has the weight 1."""
        known = self._known(environment)
        push, unit = self._tail_along(term.output, target.value, environment, known, self._slopes(jets))
        return push(unit(term.unit))

    def _tail_along(
        self,
        output: Value,
        target: Value,
        environment: Mapping[Value, Any],
        values: Collection[Value],
        slopes: Mapping[Value, Any],
    ) -> tuple[Callable[[Any], Any], Callable[[Any], Any]]:
        """What ``target`` changes by with arrays of the products of second order, and these arrays where the second
        derivative of ``output`` by one coordinate is 1. ``values`` are those that ``environment`` has."""
        found, raising = self.found, self.raising
        known: Any = ChainMap({}, environment)  # type: ignore[arg-type]
        raising.run(not_computed(found.tail.before(values), environment), known)
        given = [*values, *known.maps[0]]
        cuts = [cut for cut in found.tail.cuts if cut.order == 2]

        def unit(coordinate: Any) -> list[Any]:
            one = jnp.arange(found.coordinates.count) == coordinate
            arrays = []
            for cut in cuts:
                of = jnp.broadcast_to(one & (cut.of is output), (*raising.shape(cut.of), found.coordinates.count))
                arrays.append(array_of(cut, raising, of.astype(raising.dtype(cut.value.type))))
            return arrays

        def tail(arrays: Sequence[Any]) -> Any:
            products = {cut.value: array for cut, array in zip(cuts, arrays, strict=True)}
            return found.tail.run(raising, known, {**slopes, **products}, given)[target]

        zeros = [jnp.zeros_like(array) for array in unit(0)]
        return lambda along: jax.jvp(tail, (zeros,), (along,))[1], unit

    def _weights(self, environment: Mapping[Value, Any]) -> Any:
        """The weights [K] of a weighted Laplacian, None for a plain one, or one by groups."""
        terms = ((target, term) for target in self.found.targets for term in target.terms)
        of_program = next((each for each in terms if each[1].of_program), None)
        if of_program is not None:
            target, term = of_program
            count = self.found.coordinates.count
            none = {
                cut.of: (None, jnp.zeros((count, *self.raising.shape(cut.of)), self.raising.dtype(cut.of.type)))
                for cut in self.found.tail.cuts
            }
            slopes = self._slopes(none)  # the weights do not depend on them
            push, unit = self._tail_along(term.output, target.value, environment, list(environment), slopes)
            every = jax.vmap(lambda coordinate: push(unit(coordinate)))(jnp.arange(count))
            return every.reshape(len(every), -1)[:, 0]
        every = self.found.every_direction
        weights = None if self.weights is None else [number for number in self.weights if every or number]
        if weights is None or set(weights) == {1}:
            return None
        return array_of_weights(weights, np.result_type(environment[self.found.x]))

    # Jets.

    def _state(self, raising: Raising, of: Coordinates, seeds: Any = None) -> State:
        found = self.found
        return State(
            found.x, of, found.walkers, raising, found.one, self.options, found.stop_gradient, found.subgradients, seeds
        )

    def _jets(
        self, raising: Raising, environment: Mapping[Value, Any], weights: Any
    ) -> tuple[dict[Value, Any], dict[Value, Sequence[Any]]]:
        """The values of the cone, and by output its Laplacian [*F] (or [groups, *F]) and its derivatives [K, *F]."""
        found = self.found
        if found.by_adjoint:
            return self._by_adjoint(raising, environment)
        of, seeds = replace(found.coordinates, weights=weights), None
        if self.weights is not None and not found.every_direction:
            seeds = np.eye(found.coordinates.count)[[bool(number) for number in self.weights]]
            of = Coordinates(len(seeds), 1, weights)
        state, jets = self._pushed(self._state(raising, of, seeds), environment)
        rows = {output: jet.jacobian for output, jet in jets.items()}
        if seeds is not None and (found.gradients or any(cut.order == 1 for cut in found.tail.cuts)):
            whole = self._pushed(self._state(raising, found.coordinates), environment)[1]
            rows = {output: jet.jacobian for output, jet in whole.items()}
        if self.weights is None:
            return state.environment, self._by_groups(raising, environment, rows)
        if not self.options.adjoint:
            return state.environment, {output: (jet.laplacian, rows[output]) for output, jet in jets.items()}
        [output] = jets
        weighted = weighted_sources(state, self.cone, output, united(found.marks))
        return state.environment, {output: (weighted, rows[output])}

    def _pushed(self, state: State, environment: Mapping[Value, Any]) -> tuple[State, dict[Value, Jet]]:
        jets = forward_laplacian(state, not_computed(self.cone, environment), environment, self.outputs)
        self.runs.append(state)
        return state, {o: densify(jet, state.coordinates) for o, jet in zip(self.outputs, jets, strict=True)}

    def _by_adjoint(
        self, raising: Raising, environment: Mapping[Value, Any]
    ) -> tuple[dict[Value, Any], dict[Value, Sequence[Any]]]:
        """As ``_jets``, from all second derivatives."""
        found, known = self.found, dict(environment)
        state, made = self._state(raising, found.coordinates), dict[Value, Sequence[Any]]()
        raising.run(not_computed(self.cone, environment), known)
        for output in self.outputs:
            seconds, rows = second_derivatives(state, self.flat, self.cone, output, environment, found.marks)
            sums = [jnp.sum(seconds[..., np.array(of)], -1) for of in self.groups]
            made[output] = jnp.stack(sums) if sums else None, jnp.moveaxis(rows, -1, 0), seconds
        return known, made

    def _by_groups(
        self, raising: Raising, environment: Mapping[Value, Any], jacobians: Mapping[Value, Any]
    ) -> dict[Value, Sequence[Any]]:
        """One run with the coordinates of each group as directions."""
        groups, most = self.groups, max(map(len, self.groups))
        seeds = np.zeros((len(groups), most, self.found.coordinates.count))
        for own, of in zip(seeds, groups, strict=True):
            own[range(len(of)), of] = 1

        def laplacians(rows: Any) -> list[Any]:
            own = self._pushed(self._state(raising, Coordinates(most, 1), rows), environment)[1]
            return [own[output].laplacian for output in self.outputs]

        every = jax.vmap(laplacians)(seeds)
        return {o: (laps, jacobians[o]) for o, laps in zip(self.outputs, every, strict=True)}

    # Parts of the walkers.

    def _in_parts(self, environment: Mapping[Value, Any], weights: Any) -> dict[Value, Sequence[Any]]:
        """By output (value, Laplacian, derivatives), computed for one part of the walkers after another."""
        found, along = self.found, self.along
        walkers = found.x.type.shape[: found.walkers]
        shapes = resized_shapes(found.marks[along], walkers[along], walkers[along] // self.chunks)
        part = replace(self.raising, shapes=shapes)
        shared = shared_values(self.flat, self.cone, found.x, environment, self.raising, part)

        def one(x: Any) -> list[tuple[Any, Any, Any]]:
            values, jets = self._jets(part, {**shared, found.x: x}, weights)
            return [(values[output], *jets[output]) for output in self.outputs]

        x = environment[found.x]
        with self.raising.scope(self.producer):
            # Other leading axes are of extent 1, so that no elements move.
            parts = x.reshape(self.chunks, *(-1 if n > 1 else 1 for n in walkers), *x.shape[len(walkers) :])
            every = lax.map(one, parts)
            made: dict[Value, Sequence[Any]] = {}
            for output, (value, laplacian, jacobian) in zip(self.outputs, every, strict=True):
                jacobian = jnp.moveaxis(jacobian, 1, 0)
                made[output] = (
                    value.reshape(walkers), laplacian.reshape(walkers), jacobian.reshape(len(jacobian), *walkers)
                )  # fmt: skip
            return made

    def _require_adjoint(self) -> None:
        """One reverse pass of all walkers is that of each; Refusal if it adds up what one value is to several."""
        found = self.found
        if len(self.outputs) > 1 or self.weights is None:
            reason = "sums with weights of their own are not taken by the adjoint"
            raise Refusal(Ground.WEIGHTS_BY_ADJOINT, reason, self.producer)
        why = no_adjoint_of_each(self.flat, self.cone, found.x, found.marks, found.walkers, self.outputs[0])
        if why is not None:
            raise why


def _producer(value: Value) -> Node:
    assert value.producer is not None
    return value.producer


def _parts(row: Row) -> list[tuple[Fraction, tuple[int, ...]]]:
    """The numbers of ``row``, each with the coordinates that have it."""
    numbers = dict.fromkeys(filter(None, row))
    return [(number, tuple(k for k, own in enumerate(row) if own == number)) for number in numbers]


def _times(array: Any, factor: Fraction) -> Any:
    if factor == 1:
        return array
    exact = Fraction(float(factor)) == factor
    return array * (
        np.asarray(float(factor), array.dtype) if exact else array_of_weights([factor], array.dtype).reshape(())
    )
