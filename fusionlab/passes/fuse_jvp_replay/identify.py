"""The value of a program of which a sum over directions is the Laplacian, decided in a prime field.

    y = sum_k d^2 F / d x_k^2        identical to        forward Laplacian of F, for a candidate F
    y = sum_k (d F / d x_k)^2 + d^2 F / d x_k^2          the same and the squared gradient of F
    y = sum_k a_k d^2 F / d x_k^2                        one with weights (``combinations``)

The sum and the derivatives of the candidates are lowered as one program of few walkers, and evaluated exactly
(``equivalence.exact``): at random points, under random predicates, and under predicates that are steered so that
conjunctions of many come true. What is equal there is the same expression on every branch: no point is near or far, and
no branch is rare.

Of a loop whose terms are polynomials of its directions, one trip in a random direction is compared with the derivatives
along it (``trips.in_one_direction``); of other sums, and at equal inputs (electrons at one place, parameters of zero)
with every predicate as it is there, all directions with the forward Laplacians.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.laplacian.interpreter import forward_laplacian
from fusionlab.codegen.laplacian.jet import Coordinates, densify
from fusionlab.codegen.laplacian.state import Options, State
from fusionlab.codegen.raising import RaiseError, Raising
from fusionlab.codegen.raising.trips import at_once, in_one_direction, is_polynomial, terms_of
from fusionlab.equivalence.exact.evaluation import Evaluator, Prepared
from fusionlab.equivalence.exact.field import FieldWithGuards, PrimeField, primes
from fusionlab.equivalence.exact.identity import evaluators
from fusionlab.equivalence.exact.values import Array, Drawn
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Marks, united, walker_axes
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.dependence import live_nodes, reached
from fusionlab.hlo.loops import Sum
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Node, Value, reads, walk
from fusionlab.passes.fuse_jvp_replay import combinations, equal_inputs
from fusionlab.passes.fuse_jvp_replay.combinations import Combination
from fusionlab.passes.fuse_jvp_replay.evaluating import (
    DRAWS,
    MOST_SECONDS,
    Evaluation,
    resizable,
    resized,
    walkers_to_evaluate,
)
from fusionlab.passes.fuse_jvp_replay.guards import (
    Complaint,
    DiscreteValues,
    TextGuards,
    along_matrices,
    told_apart,
)
from fusionlab.passes.fuse_jvp_replay.no_laplacian import NotALaplacian, UncoveredMatch, Unevaluated
from fusionlab.passes.fuse_jvp_replay.one_by_one import adjoint_is_defined, second_derivatives
from fusionlab.passes.fuse_jvp_replay.products import coordinates_of
from fusionlab.passes.fuse_jvp_replay.rationals import small_fraction
from fusionlab.passes.fuse_jvp_replay.recognise import CoordinateWeights, TraceCandidate, TripWeights, is_float
from fusionlab.passes.fuse_jvp_replay.shift_invariance import may_shift
from fusionlab.passes.refusals import Ground

FLOPS_OF_ONE_DIRECTION = 1e7
"""FLOPs (model) of the few walkers from which on one direction is evaluated first: below, it does not pay for another
lowering."""
MOST_SECONDS_WITH_WEIGHTS = 120.0
"""The limit for the identification of one sum as a sum with weights, which needs many more samples."""
_SAMPLES_OF_TERMS = 6
"""The number of samples at which the terms of trips are compared: three decide, and the next three again."""


@dataclass(frozen=True)
class Laplacian:
    """``target`` = ``scale`` times the Laplacian of ``output`` with respect to ``x``, plus ``squares`` times the square
    of its gradient.

    ``sums`` are other sums of the same loop, with their multiples of both, of which one may be 0. ``gradients`` are
    values of the program that hold the gradient of ``output``, electron by electron. ``marks`` are
    the axes of values that count walkers along each leading axis of ``x`` that can be resized; ``one`` raises the
    program with one walker. Derivatives through
    ``stop_gradient`` cancel. ``subgradients`` are those of its maxima and minima where operands are equal.

    ``trip_weights``, values of the program, or ``weights`` of the coordinates, if there are any, multiply both.
    ``combinations`` are the exact weights of sums that have them; where no ``weights`` serve all of these, ``channels``
    is true, and each is computed with its own. ``by_adjoint``: all second derivatives are by
    ``one_by_one.second_derivatives``, as the sum was compared with; else with one direction after another as seeds.
    ``powers_by_base`` as in ``Options``.
    """

    x: Value
    coordinates: Coordinates
    output: Value
    target: Value
    scale: float
    gradients: tuple[Value, ...]
    marks: Mapping[int, Marks]
    one: Raising
    stop_gradient: tuple[Value, ...] = ()
    subgradients: Mapping[Value, int] = field(default_factory=dict)
    squares: float = 0.0
    sums: Mapping[Value, tuple[float, float]] = field(default_factory=dict)
    weights: tuple[Fraction, ...] = ()
    combinations: Mapping[Value, Combination] = field(default_factory=dict)
    by_adjoint: bool = False
    trip_weights: TripWeights | CoordinateWeights | None = None
    powers_by_base: bool = False

    @property
    def channels(self) -> bool:
        """True if sums have weights that are no multiples of ``weights``."""
        return bool(self.combinations) and not self.weights

    @property
    def every_sum(self) -> Mapping[Value, tuple[float, float]]:
        """The multiples of the Laplacian and of the squared gradient in ``target`` and in each of ``sums``."""
        return {self.target: (self.scale, self.squares), **self.sums}

    @property
    def walker_axes(self) -> int:
        """The number of leading axes of ``x`` that count walkers: those of ``output``, or 0 if ``x`` is shared."""
        return leading_axes(self.x, self.output.type.shape, self.coordinates.count)

    @property
    def axes(self) -> Marks:
        """The axes of values that count walkers, along any leading axis."""
        return united(self.marks)

    @property
    def longest(self) -> int:
        """The leading axis of ``x`` along which the walkers can be taken in parts; NotALaplacian if there is none."""
        shape = self.output.type.shape
        if self.walker_axes < len(shape):
            raise NotALaplacian(Ground.NOT_IN_PARTS, "walkers that share the coordinates cannot be taken in parts")
        longer = [axis for axis, extent in enumerate(shape) if extent > 1]
        if len(longer) != 1 or longer[0] not in self.marks:
            raise NotALaplacian(Ground.NOT_IN_PARTS, f"{list(shape)} walkers cannot be taken in parts")
        return longer[0]


class _Results(NamedTuple):
    """Arrays [*walkers] of each target and of each output and its Laplacian; [*walkers, ...] of each possible gradient,
    and [*walkers, coordinates] of each output's derivatives. As residues with an axis of draws first. Of a weighted
    candidate, targets are [*walkers, channels], ``laps`` the second derivatives [*walkers, coordinates], and there are
    no ``values``. ``weights`` [coordinates], if there are any, are values of the program, which ``laps`` have."""

    sums: list[Any]
    values: list[Any]
    laps: list[Any]
    gradients: list[Any]
    weights: list[Any]
    rows: list[Any]

    def squares(self, at: int, field: PrimeField) -> Array:
        """The squared gradient of an output, with the weights."""
        rows = self.rows[at]
        squares = field.multiply(rows, rows)
        for weights in self.weights:
            squares = field.multiply(squares, weights.reshape(len(weights), *(1,) * (rows.ndim - 2), -1))
        return field.sum(squares, (rows.ndim - 1,))


class Identification(Evaluation):
    """A sum over directions and the forward Laplacians of candidates, as one program of few walkers."""

    def __init__(
        self,
        candidate: TraceCandidate,
        numbers: ValueNumbers,
        x: Value,
        outputs: Sequence[Value],
        deadline: float = math.inf,
        resize: bool = True,
    ) -> None:
        self.candidate, self.flat, self.x, self.numbers = candidate, candidate.flat, x, numbers
        self.outputs, self.deadline = list(outputs), deadline
        self.subject, self.seconds = candidate.subject, seconds_for(candidate)
        self.walkers = walkers = leading_axes(x, candidate.walkers, candidate.directions)
        self.targets = [t for t in candidate.targets if t.type == candidate.targets[0].type]
        self.coordinates = coordinates_of(self.flat, x, walkers)
        self.gradients = self._possible_gradients()
        self.initial = {t: candidate.initial[t] for t in self.targets if t in candidate.initial}
        self.factors = {t: candidate.factors[t] for t in self.targets if t in candidate.factors}
        wanted = [*self.targets, *self.gradients, *self.initial.values(), *self.factors.values()]
        wanted += candidate.weights.reads if candidate.weights is not None else []
        live = live_nodes(self.flat.nodes, [*self.flat.arguments, x], [*wanted, *self.outputs])
        read = {value for node in live for value in reads(node)}
        self.inputs = [x, *(a for a in self.flat.arguments if a in read and a is not x)]
        self.nodes, self.cone = self._computing(wanted), self._computing(self.outputs)
        many = math.prod(candidate.walkers)
        if not many:
            raise NotALaplacian(Ground.NO_WALKERS, "there are no walkers, and nothing to evaluate")
        self.marks = self._walker_marks(resize)
        self.axes = united(self.marks)
        per_walker = program_cost(self.flat).flops / many
        few = walkers_to_evaluate(per_walker)
        self.rounds = 1 if few <= 2 else 2
        self.raising = Raising(shapes=resized(self.marks, candidate.walkers, few), fold=True)
        # As many samples modulo each prime as there are equations, and one more for the two factors of one walker.
        samples = math.prod(self._few())
        equations = 2 * self.coordinates.count + combinations.SURPLUS if candidate.weighted else 3 * (samples == 1)
        more = tuple((len(DRAWS[0]) + seed, 0.0) for seed in range(-(-equations // samples)))
        own_draws = (*DRAWS, DRAWS[-1]) if candidate.weighted else DRAWS
        self.draws = tuple(own + more[len(own) :] for own in own_draws)
        self.one = Raising(shapes=resized(self.marks, candidate.walkers, 1))
        self.subgradients = equal_inputs.subgradients(self.flat.walk(), walk(self.cone), numbers)
        self.prepared = Prepared()
        self.lowered = functools.cache(self._lower)
        by_walkers = candidate.weighted and walkers == len(candidate.walkers)
        self.may_be_by_adjoint = by_walkers and adjoint_is_defined(
            self.flat, x, self._computing(self.targets), self.cone, numbers
        )
        self.by_adjoint, self.every_adjoint = False, True
        self.options = Options()
        self.directional = samples * per_walker >= FLOPS_OF_ONE_DIRECTION and self._may_be_directional()

    def _computing(self, values: Sequence[Value]) -> list[Node]:
        return live_nodes(self.flat.nodes, self.inputs, values)

    def _few(self) -> tuple[int, ...]:
        """The extents of the walkers that are evaluated."""
        return self.raising.shape(self.x)[: self.walkers] if self.walkers else self.raising.shape(self.outputs[0])

    def _walker_marks(self, resize: bool) -> dict[int, Marks]:
        """For each leading axis that can be resized the axes that count walkers along it; NotALaplacian where the
        others have too many."""
        nodes = list(walk(self._computing(self.targets)))
        raised = list(walk([*self.nodes, *self.cone]))
        counting = self.x if self.walkers else self.outputs[0]

        def marks_of(axis: int) -> Marks | Complaint | None:
            found = walker_axes(self.flat, [(counting, axis)]) if resize else Marks({})
            # As many walkers as coordinates may be taken for one another: then the program keeps its own number.
            apart = found.get(counting) == {axis} and (counting is self.x or self.x not in found)
            complaint = told_apart(nodes, found) or along_matrices(raised, found)
            return found if complaint is None and apart else complaint

        return resizable(self.candidate.walkers, marks_of)

    def _possible_gradients(self) -> list[Value]:
        """Values that have one number per coordinate and depend on them."""
        inner, dtype, dependent = self.x.type.shape[self.walkers :], self.x.type.dtype, reached(self.flat, [self.x])
        shapes = [(*self.candidate.walkers, *each) for each in (inner, (self.coordinates.count,))]
        values = (value for node in self.flat.nodes for value in node.results if value in dependent and is_float(value))
        return [value for value in values if value.type.dtype == dtype and value.type.shape in shapes]

    def run(self) -> Laplacian | None:
        """The candidate whose Laplacian is identical to the sum, if there is one; NotALaplacian if it may not be used.

        Second derivatives by the adjoint may be undefined at equal inputs where those by directions are not, and those
        of magnitudes of complex values are another expression: there the directions decide. So may those of powers be.
        """
        refused: NotALaplacian | None = None
        try:
            found = self._found()
        except UncoveredMatch as reason:
            found, refused = None, reason
        is_complex = any(value.dtype in ops.COMPLEX for node in self.cone for value in node.results)
        if found is None and self.by_adjoint and (is_complex or refused is not None or not self.every_adjoint):
            self.may_be_by_adjoint = self.by_adjoint = False
            found = self._found_again()
        if found is None and refused is None and self._has_powers():
            self.options = replace(self.options, powers_by_base=True)
            with contextlib.suppress(Unevaluated):  # then there is no match, as before
                found = self._found_again()
        if found is None and refused is not None:
            raise refused
        return found

    def fitting(self) -> list[Value]:
        """The outputs whose weighted derivatives the trips of the loop, which has sums alone, may add:

            t_j = a d^2 F / d x_k^2 + b (d F / d x_k)^2        for some coordinate k, in the first, middle and last trip

        Far fewer samples show that it is not so than that a sum has weights. All outputs, where terms cannot be had.
        """
        replay = self.candidate.replay
        assert replay is not None
        assert replay.trips
        loop, nodes = replay.loop, self.nodes[: self.nodes.index(replay.loop.node)]
        sums = [value for i in loop.indices(Sum) if is_float(value := loop.node.results[i])]
        trips = sorted({0, replay.trips // 2, replay.trips - 1})
        variants = list(dict.fromkeys((tuple(node.results[0] for node in self.cone if may_shift(node)), ())))

        def results(*arrays: Any) -> list[Any]:
            given = dict(zip(self.inputs, arrays, strict=True))
            environment = dict(given)
            self.raising.run(nodes, environment)
            added, terms = terms_of(loop, trips, self.raising, environment), []
            for value in sums:
                factor = environment[self.candidate.factors[value]] if value in self.candidate.factors else 1
                each = [self._by_channel(value, term / factor) for term in added[value]]
                terms.append(jnp.concatenate(each, -1))
            derivatives = [self._one_by_one(given, stopped) for stopped in variants]
            return [jnp.concatenate(terms, -1), *(array for both in derivatives for each in both for array in each)]

        if not all(map(self._counts_walkers, sums)):
            return self.outputs
        lowered = self.view_of(results)
        [p], draws = primes(1), range(-(-_SAMPLES_OF_TERMS // math.prod(self._few())))
        batches = self.batches(lowered, FieldWithGuards(p, draws))
        samples = [self.evaluated(lowered, Evaluator(part, self.prepared), arguments) for part, arguments in batches]
        terms, *derivatives = map(_rows, zip(*samples, strict=True))
        count = len(self.outputs)

        def fits(at: int) -> bool:
            each = (derivatives[2 * count * variant + at :: count][:2] for variant in range(len(variants)))
            return any(combinations.may_be_combinations(p, terms, second, rows) for second, rows in each)

        return [output for at, output in enumerate(self.outputs) if fits(at)]

    def _found_again(self) -> Laplacian | None:
        self.lowered = functools.cache(self._lower)
        return self._found()

    def _has_powers(self) -> bool:
        """True if the program has powers, and the candidates powers or roots."""
        roots = any(node.op in (ops.SQRT, ops.POWER) for node in walk(self.cone))
        return roots and any(node.op is ops.POWER for node in walk(self.nodes))

    def _found(self) -> Laplacian | None:
        """As ``run``, by the adjoint if that is possible.

        Derivatives through a shift, as of a log-sum-exp by its maximum, are left out where all agree without them.
        """
        shifts = tuple(node.results[0] for node in self.cone if may_shift(node))
        refused: list[NotALaplacian] = []
        for stopped in (shifts, ()) if shifts else ((),):
            for match in self._matches(stopped):
                cone = self._computing([match.output])
                dropped = tuple(shift for shift in shifts if shift.producer in cone)
                if not stopped:
                    dropped = tuple(shift for shift in dropped if self._drops_out(shift, match))
                try:
                    guarded = self._guarded(match, list(walk(cone)))
                    gradients = self._at_equal_inputs(self.lowered(stopped or dropped, False), match, guarded)
                    by_base = self.options.powers_by_base
                    return replace(match, gradients=gradients, stop_gradient=dropped, powers_by_base=by_base)
                except NotALaplacian as reason:
                    refused.append(reason)
            if refused:
                raise next((reason for reason in refused if isinstance(reason, UncoveredMatch)), refused[0])
        return None

    def _matches(self, stopped: tuple[Value, ...]) -> list[Laplacian]:
        """The matches without derivatives through ``stopped``, where these are no part of the gradient either."""
        matches: list[Laplacian] = []
        if self.directional:
            try:
                found = self._identical(self.lowered(stopped, True))
            except Unevaluated:  # JAX cannot batch one of the ops
                self.directional = False
            else:
                matches = [match for match in found if len(match.every_sum) == len(self.targets)]
        if not matches and (matches := self._identical(self.lowered(stopped, False))):
            self.directional = False
        return [m for m in matches if not stopped or m.gradients or self._has_derivatives(stopped, m.output)]

    def _may_be_directional(self) -> bool:
        """True if one trip in a random direction may stand for all: its terms are polynomials of the direction, and no
        possible gradient is computed from their sums."""
        replay = self.candidate.replay
        if replay is None or self.candidate.weighted or self.candidate.weights is not None:
            return False
        loop = replay.loop
        after = reached(self.flat, [loop.node.results[i] for i in loop.indices(Sum)])
        return loop.trips == self.coordinates.count and after.isdisjoint(self.gradients) and is_polynomial(loop)

    def _drops_out(self, shift: Value, match: Laplacian) -> bool:
        return any((m.target, m.output) == (match.target, match.output) for m in self._matches((shift,)))

    def _has_derivatives(self, stopped: tuple[Value, ...], output: Value) -> bool:
        """True if the derivatives of ``output`` are the same without those through ``stopped``, in all draws."""
        at = self.outputs.index(output) - len(self.outputs)  # the last results are the derivatives of the outputs
        both = [only_result(self.lowered(each, self.directional), at) for each in (stopped, ())]
        for p, draws in zip(primes(len(DRAWS)), DRAWS, strict=True):
            for part, arguments in self.batches(both[0], FieldWithGuards(p, [seed for seed, _ in draws])):
                [without], [whole] = (self.evaluated(each, Evaluator(part, self.prepared), arguments) for each in both)
                if _differ(without, whole):
                    return False
        return True

    def _lower(self, stopped: tuple[Value, ...], directional: bool) -> FunctionView:
        """A view whose results are those of ``_Results`` in order, without derivatives through ``stopped``.

        ``directional``: one trip in a direction stands for all, and ``laps``, ``rows`` and ``gradients`` are second and
        first derivatives along it. The direction is the last argument, [coordinates]. What is computed from the sums of
        the loop is then no value of the program.
        """

        def results(*arrays: Any) -> _Results:
            *inputs, direction = arrays if directional else (*arrays, None)
            given = dict(zip(self.inputs, inputs, strict=True))
            environment, initial, replay = dict(given), self.initial, self.candidate.replay
            loop = replay.loop if replay else None
            for node in self.nodes:
                made = None
                if loop and node is loop.node and direction is None:
                    made = at_once(loop, self.raising, environment)
                elif loop and node is loop.node:
                    made = in_one_direction(loop, direction, self.raising, environment)
                environment.update(zip(node.results, made or self.raising.node(node, environment), strict=True))
            sums = []
            for target in self.targets:
                added = environment[target] - (environment[initial[target]] if target in initial else 0)
                sums.append(added / environment[self.factors[target]] if target in self.factors else added)
            gradients = [environment[value] for value in self.gradients]
            source = self.candidate.weights
            weights = [] if source is None else [source.array(self.raising, environment)]

            if not self.candidate.weighted:
                values, laps, rows = self._jets(given, stopped, None if direction is None else direction[None], weights)
                if direction is not None:
                    shape = (*self._few(), self.coordinates.count)
                    size = math.prod(shape)
                    gradients = [g.reshape(shape) @ direction if g.size == size else g for g in gradients]
                return _Results(sums, values, laps, gradients, weights, [jnp.moveaxis(row, 0, -1) for row in rows])
            sums = [self._by_channel(target, array) for target, array in zip(self.targets, sums, strict=True)]
            seconds, rows = self._second_derivatives(given, stopped)
            if not self.by_adjoint:
                seconds, rows = self._one_by_one(given, stopped)
            return _Results(sums, [], seconds, gradients, weights, rows)

        return self.view_of(results, [(self.coordinates.count,)] if directional else [])

    def _jets(
        self, given: Mapping[Value, Any], stopped: tuple[Value, ...], seeds: Any, weights: Sequence[Any] = ()
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """(values [*walkers], Laplacians [*walkers], rows [K, *walkers]) of the outputs, in the directions ``seeds`` or
        in all."""
        of = self.coordinates if seeds is None else Coordinates(1, 1)
        of = replace(of, weights=weights[0]) if weights else of
        found = forward_laplacian(self._state(of, stopped, seeds), self.cone, given, self.outputs)
        found = [densify(jet, of) for jet in found]
        laps = [jnp.zeros(jet.shape) if jet.laplacian is None else jet.laplacian for jet in found]
        return [jet.value for jet in found], laps, [jet.jacobian for jet in found]

    def _one_by_one(self, given: Mapping[Value, Any], stopped: tuple[Value, ...]) -> tuple[list[Any], list[Any]]:
        """Second and first derivatives [*walkers, K] of the outputs, direction by direction."""
        every = np.eye(self.coordinates.count)[:, None]  # [K, 1, K]
        _, laps, rows = jax.vmap(functools.partial(self._jets, given, stopped))(every)
        return [jnp.moveaxis(lap, 0, -1) for lap in laps], [jnp.moveaxis(row[:, 0], 0, -1) for row in rows]

    def _state(self, of: Coordinates, stopped: tuple[Value, ...], seeds: Any = None) -> State:
        return State(self.x, of, self.walkers, self.raising, self.one, self.options, stopped, self.subgradients, seeds)

    def _second_derivatives(
        self, given: Mapping[Value, Any], stopped: tuple[Value, ...]
    ) -> tuple[list[Any], list[Any]]:
        """Second and first derivatives [*walkers, K] of the outputs by the adjoint, if ``by_adjoint`` is then true; of
        outputs without an adjoint, zeros."""
        found: dict[Value, tuple[Any, Any]] = {}
        state = self._state(self.coordinates, stopped)
        for output in self.outputs if self.may_be_by_adjoint else ():
            with contextlib.suppress(NotALaplacian, NotImplementedError, RaiseError):
                cone = self._computing([output])
                found[output] = second_derivatives(state, self.flat, cone, output, given, self.marks)
        self.by_adjoint, self.every_adjoint = bool(found), len(found) == len(self.outputs)
        if not found:
            return [], []
        zeros = jax.tree.map(jnp.zeros_like, next(iter(found.values())))
        seconds, rows = zip(*(found.get(output, zeros) for output in self.outputs), strict=True)
        return list(seconds), list(rows)

    def _channel_axis(self, target: Value) -> int | None:
        """The axis of ``target`` that counts no walkers, if it has one."""
        if len(target.type.shape) == len(self.candidate.walkers):
            return None
        own = self.axes.get(target, set())
        shape, walkers = target.type.shape, self.candidate.walkers
        fits = [i for i in range(len(shape)) if (*shape[:i], *shape[i + 1 :]) == walkers]
        return next((i for i in fits if i not in own), fits[0])

    def _counts_walkers(self, target: Value) -> bool:
        """True if the axes of ``target`` beside that of channels are those of the walkers, also of few."""
        axis, shape = self._channel_axis(target), self.raising.shape(target)
        left = shape if axis is None else (*shape[:axis], *shape[axis + 1 :])
        return left == self._few()

    def _by_channel(self, target: Value, array: Any) -> Any:
        """``array`` of ``target`` as [*walkers, channels]."""
        axis = self._channel_axis(target)
        return array[..., None] if axis is None else jnp.moveaxis(array, axis, -1)

    def _weighted(self, lowered: FunctionView) -> list[Laplacian]:
        """Matches of the sums with weights that are equal in all draws."""
        samples: dict[int, list[_Results]] = {}
        fitting = [which for which, target in enumerate(self.targets) if self._counts_walkers(target)]
        pairs = list(itertools.product(range(len(self.outputs)), fitting))
        for p, draws in zip(primes(combinations.PRIMES), self.draws, strict=True):
            share = dict(draws)
            for part, arguments in self.batches(lowered, FieldWithGuards(p, list(share))):
                shares = [share[seed] for seed in part.seeds]
                for [evaluator] in evaluators(part, shares, self.prepared, 1, self.rounds):
                    samples.setdefault(p, []).append(self._results(lowered, evaluator, arguments))
            if not any(combinations.solvable(p, *self._equations(samples[p], *pair)) for pair in pairs):
                return []
        matches = []
        for at, output in enumerate(self.outputs):
            found: dict[Value, Combination] = {}
            for which in fitting:
                target = self.targets[which]
                equations = {p: self._equations(every, at, which) for p, every in samples.items()}
                if (combination := combinations.solved(equations, self._channel_axis(target))) is not None:
                    found[target] = combination
            if any(any(map(any, each.second)) for each in found.values()):
                every = [results for of in samples.values() for results in of]
                gradients = tuple(
                    value
                    for i, value in enumerate(self.gradients)
                    if not any(_differ(results.gradients[i], results.rows[at]) for results in every)
                )
                matches.append(self._with_weights(output, found, gradients))
        return matches

    def _equations(self, every: Sequence[_Results], at: int, which: int) -> tuple[Array, Array, Array]:
        """The sums of a target, second and first derivatives of an output, of all samples one below the other."""
        return (
            _rows([results.sums[which] for results in every]),
            _rows([results.laps[at] for results in every]),
            _rows([results.rows[at] for results in every]),
        )

    def _with_weights(
        self, output: Value, found: Mapping[Value, Combination], gradients: tuple[Value, ...]
    ) -> Laplacian:
        target, first = next((t, each) for t, each in found.items() if any(map(any, each.second)))
        match = Laplacian(
            self.x, self.coordinates, output, target, 1.0, gradients, self.marks, self.one,
            subgradients=self.subgradients, sums={t: (1.0, 0.0) for t in found if t is not target}, combinations=found,
            by_adjoint=self.by_adjoint,
        )  # fmt: skip
        weights = tuple(map(abs, first.second[0]))
        equal = len(set(weights)) == 1
        multiples = {
            t: each.multiples_of((Fraction(1),) * len(weights) if equal else weights) for t, each in found.items()
        }
        exact = {t: (float(both[0]), float(both[1])) for t, both in multiples.items() if both is not None}
        if any(both is None or tuple(map(Fraction, exact[t])) != both for t, both in multiples.items()):
            return match  # a factor that is no float, or several channels
        scale, squares = exact.pop(target)
        match = replace(match, scale=scale, squares=squares, sums=exact)
        return replace(match, combinations={}) if equal else replace(match, weights=weights)

    def _identical(self, lowered: FunctionView) -> list[Laplacian]:
        """All pairs of a target and an output that are equal in all draws, plain Laplacians first."""
        if self.candidate.weighted:
            return self._weighted(lowered)
        every = [(which, at) for which in range(len(self.targets)) for at in range(len(self.outputs))]
        factors: dict[tuple[int, int], dict[int, tuple[int, int]]] = {pair: {} for pair in every}
        unlike: set[tuple[int, int]] = set()
        for p, draws in zip(primes(len(self.draws)), self.draws, strict=True):
            share = dict(draws)
            for part, arguments in self.batches(lowered, FieldWithGuards(p, list(share))):
                shares = [share[seed] for seed in part.seeds]
                for [evaluator] in evaluators(part, shares, self.prepared, 1, self.rounds):
                    results = self._results(lowered, evaluator, arguments)
                    for which, at in list(factors):
                        squares = results.squares(at, evaluator.arithmetic)
                        if not (results.sums[which].any() or results.laps[at].any() or squares.any()):
                            continue  # integers at which the value is constant
                        pair = _factors(results.sums[which], results.laps[at], squares, p)
                        if pair is None or factors[which, at].setdefault(p, pair) != pair:
                            del factors[which, at]
                    if not factors:
                        return []
                    for i, gradient in enumerate(results.gradients):
                        unlike |= {(i, at) for _, at in factors if _differ(gradient, results.rows[at])}
        found = []
        known: dict[tuple[int, int], tuple[float, float]] = {}
        for pair, residues in factors.items():
            if not residues:
                continue
            scale, squared = (self._scale({p: both[i] for p, both in residues.items()}) for i in range(2))
            if scale is not None and squared is not None:
                known[pair] = scale, squared
        for (which, at), (scale, squared) in known.items():
            if not scale:
                continue
            gradients = tuple(g for i, g in enumerate(self.gradients) if (i, at) not in unlike)
            match = (self.outputs[at], self.targets[which], scale, gradients, self.marks, self.one)
            sums = {self.targets[i]: both for (i, of), both in known.items() if of == at and i != which}
            sums = {} if self.candidate.replay is None else sums
            laplacian = Laplacian(self.x, self.coordinates, *match, (), self.subgradients, squared, sums)
            found.append(replace(laplacian, trip_weights=self.candidate.weights))
        return sorted(found, key=lambda match: (match.squares != 0, match.scale != 1))

    def _results(self, lowered: FunctionView, evaluator: Evaluator, arguments: list[Drawn]) -> _Results:
        parts = iter(self.evaluated(lowered, evaluator, arguments))
        weights = 0 if self.candidate.weights is None else 1
        outputs = len(self.outputs)
        values = 0 if self.candidate.weighted else outputs
        counts = (len(self.targets), values, outputs, len(self.gradients), weights, outputs)
        return _Results(*([next(parts) for _ in range(count)] for count in counts))

    def _scale(self, residues: Mapping[int, int]) -> float | None:
        """The real number with these residues by prime, if it is a fraction of small integers or a constant."""
        if (fraction := small_fraction(residues)) is not None:
            return fraction
        constants = (node.results[0] for node in self.flat.walk() if node.op is ops.CONSTANT)
        for number in map(number_of, filter(is_float, constants)):
            if number is not None and math.isfinite(number):
                embedded = {p: int(PrimeField(p, (0,)).embedded(np.full(1, number)).item()) % p for p in residues}
                if embedded == residues:
                    return float(number)
        return None

    def _at_equal_inputs(
        self, lowered: FunctionView, match: Laplacian, gradients: Sequence[Value]
    ) -> tuple[Value, ...]:
        """The ``gradients`` that are derivatives at equal inputs; UncoveredMatch if the sum is no Laplacian there."""
        at = self.outputs.index(match.output)
        sets = math.prod(self._few()) if self.walkers else 1
        for part, arguments in self.batches_at_equal_inputs(lowered, self.inputs, sets):
            results = self._results(lowered, Evaluator(part, self.prepared), arguments)
            rows, undefined = results.rows[at], False
            if results.values:  # as the logarithm of a wave function without amplitude: it has no derivatives
                undefined = np.isnan(results.values[at])
            for target in match.every_sum:
                total = results.sums[self.targets.index(target)]
                known = ~(np.isnan(total) | undefined)
                if (total[known] != self._expected(match, target, results, at, part)[known]).any():
                    raise UncoveredMatch(Ground.TIES, f"{self.subject} {equal_inputs.DIFFERS}")
            known = ~(np.isnan(results.sums[self.targets.index(match.target)]) | undefined)
            known = known.all(-1) if self.candidate.weighted else known
            given = ((g, results.gradients[self.gradients.index(g)].reshape(rows.shape)[known]) for g in gradients)
            gradients = [g for g, array in given if not (~np.isnan(array) & (array != rows[known])).any()]
        return tuple(gradients)

    def _expected(self, match: Laplacian, target: Value, results: _Results, at: int, arithmetic: PrimeField) -> Array:
        """What ``target`` is by ``match``, as ``results.sums`` has it."""
        laps, (scale, squared) = results.laps[at], match.every_sum[target]
        if not self.candidate.weighted:
            total = arithmetic.multiply(arithmetic.embedded(np.asarray(scale)), laps)
            if squared:
                squares = arithmetic.multiply(arithmetic.embedded(np.asarray(squared)), results.squares(at, arithmetic))
                total = arithmetic.add(total, squares)
            return total
        combination = match.combinations.get(target)
        if combination is None:  # all weights are equal
            count = laps.shape[-1]
            combination = Combination(((Fraction(scale),) * count,), ((Fraction(squared),) * count,), None)
        squares = arithmetic.multiply(results.rows[at], results.rows[at])
        channels = []
        for weights in zip(*combination.residues(arithmetic.p), strict=True):
            total = np.zeros(laps.shape[:-1])
            for own, arrays in zip(weights, (laps, squares), strict=True):
                for k in np.flatnonzero(own):  # a weight of 0 has no NaN
                    total = arithmetic.add(total, arithmetic.multiply(own[k], arrays[..., k]))
            channels.append(total)
        return np.stack(channels, -1)

    def _guarded(self, match: Laplacian, cone: Collection[Node]) -> list[Value]:
        """The gradients of ``match`` that pass the guards; NotALaplacian if its sum does not.

        ``cone`` are the nodes that compute the output, with those of their regions. See ``guards``.
        """
        discrete = DiscreteValues(self.flat, self._computing([match.output]), self.x, self.inputs)
        guards = TextGuards(self.flat, self.x, self.inputs, list(cone), self.numbers, self.axes, discrete)
        guards.require(match.every_sum, self.subject)
        return [gradient for gradient in match.gradients if guards.passes(gradient)]


def leading_axes(x: Value, walkers: tuple[int, ...], count: int) -> int:
    """The number of leading axes of ``x`` that count walkers: those of ``walkers``, each with ``count`` elements, or 0
    if ``x`` has these for all walkers together."""
    axes, shape = len(walkers), x.type.shape
    return axes if shape[:axes] == walkers and math.prod(shape[axes:]) == count else 0


def seconds_for(candidate: TraceCandidate) -> float:
    """The limit for the identification of ``candidate``."""
    return MOST_SECONDS_WITH_WEIGHTS if candidate.weighs else MOST_SECONDS


def only_result(function: FunctionView, at: int) -> FunctionView:
    """``function`` with its result number ``at`` alone."""
    returns = (function.returns[at],)
    return replace(function, returns=returns, nodes=live_nodes(function.nodes, function.arguments, returns))


def _rows(arrays: Sequence[Array]) -> Array:
    """Arrays [..., n] one below the other: [S, n]."""
    return np.concatenate([array.reshape(-1, array.shape[-1]) for array in arrays])


def _factors(total: Array, lap: Array, squares: Array, p: int) -> tuple[int, int] | None:
    """The c and d with ``total`` = c ``lap`` + d ``squares`` modulo p everywhere, not both 0; None without them."""
    t, u, v = (array.astype(np.int64).ravel() for array in (total, lap, squares))
    at = np.flatnonzero(u)
    if not at.size or total.shape != lap.shape:  # a target whose axes are not those of the walkers keeps its extents
        return None
    found = [(int(t[at[0]]) * pow(int(u[at[0]]), -1, p) % p, 0)]
    independent = np.flatnonzero((u[at[0]] * v - u * v[at[0]]) % p)
    if independent.size:
        i, j = at[0], independent[0]
        inverse = pow(int(u[i] * v[j] - u[j] * v[i]), -1, p)
        found.append((int(t[i] * v[j] - t[j] * v[i]) * inverse % p, int(u[i] * t[j] - u[j] * t[i]) * inverse % p))
    return next(((c, d) for c, d in found if (c or d) and not ((c * u + d * v - t) % p).any()), None)


def _differ(gradient: Array, rows: Array) -> bool:
    """True if a value differs from the derivatives [draws, *walkers, coordinates], in any shape."""
    return gradient.size != rows.size or bool((gradient.reshape(rows.shape) != rows).any())
