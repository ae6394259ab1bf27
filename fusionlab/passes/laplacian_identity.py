"""Which value of a program a sum over directions is the Laplacian of, decided in a prime field.

    y = sum_k d^2 F / d x_k^2        identical to        forward Laplacian of F, for a candidate F
    y = sum_k (d F / d x_k)^2 + d^2 F / d x_k^2          the same and the squared gradient of F

The sum as it stands and the forward Laplacians of the candidates are lowered as one program of two walkers, and
evaluated exactly (``equivalence.exact``): at random points, under random predicates, and under predicates that are
steered so that conjunctions of many come true. What is equal there is the same expression on every branch: no point is
near or far, and no branch is rare. Where inputs are exactly tied (electrons at one place, parameters of zero) both are
evaluated once more, with every predicate as it is there.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.laplacian.interpreter import forward_laplacian
from fusionlab.codegen.laplacian.jet import Coordinates, Jet, densify
from fusionlab.codegen.laplacian.state import State
from fusionlab.codegen.raising import JaxRefusal, RaiseError, Raising, live_nodes
from fusionlab.codegen.raising.trips import batched_loop, raise_trips
from fusionlab.equivalence.exact.evaluation import Evaluator, Formula, same_draws
from fusionlab.equivalence.exact.field import PrimeField, primes
from fusionlab.equivalence.exact.identity import evaluators
from fusionlab.equivalence.exact.programs import RULES, drawn_arguments
from fusionlab.equivalence.exact.undefined import FieldWithGuards, FieldWithUndefined
from fusionlab.equivalence.exact.values import Array, Drawn, Uncovered
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.replay import reached
from fusionlab.hlo.value_numbers import ValueNumbers, merge_equal
from fusionlab.hlo.view import FunctionView, Node, Value, free_values, reads, view_of, walk
from fusionlab.hlo.walker_axes import resized_shapes, walker_axes
from fusionlab.passes.laplacian_finding import Laplacian
from fusionlab.passes.laplacian_guards import (
    discrete_predicates,
    is_shift,
    less_precise,
    own_choices,
    rounded,
    told_apart,
)
from fusionlab.passes.laplacian_ties import DIFFERS_WHERE_TIED, Change, tie_slopes, ties_of
from fusionlab.passes.sums_over_directions import DirectionSum, NoLaplacian, NotSeen, is_float

FEW_ENOUGH = 64
"""Walkers that can all be evaluated."""
_FEWEST_WALKERS, _MOST_WALKERS = 2, 16
_FLOPS = 1e8
"""Walkers that are evaluated: as many as have together about so many FLOPs in the program, within these limits."""
_DRAWS = (((0, 1.0), (1, 0.0), (2, 0.75)), ((1, 0.5),))
"""For each prime the draws: seed, and the probability with which it is steered to make a value of predicates non-zero.

Those of odd seeds have values that pass for NaN or infinity."""
_DENOMINATORS = (1, 2, 4, 8, 16)
_MOST_NUMERATOR = 64
"""Of a constant factor that is a fraction."""


def subject(question: DirectionSum) -> str:
    return "the loop" if question.replay else "the sum over directions"


class Identification:
    """A sum over directions beside the forward Laplacians of candidates, as one program of few walkers."""

    def __init__(
        self,
        question: DirectionSum,
        numbers: ValueNumbers,
        x: Value,
        walkers: int,
        outputs: Sequence[Value],
        resize: bool = True,
    ) -> None:
        self.question, self.flat, self.x, self.numbers = question, question.flat, x, numbers
        self.walkers, self.outputs = walkers, list(outputs)
        self.targets = [t for t in question.targets if t.type == question.targets[0].type]
        inner = x.type.shape[walkers:]
        each = 3 if inner[-1] == 3 or (len(inner) == 1 and inner[0] % 3 == 0) else 1
        self.coordinates = Coordinates(math.prod(inner) // each, each)
        self.gradients = self._possible_gradients()
        initial = [] if question.initial is None else [question.initial]
        wanted = [*self.targets, *self.gradients, *initial]
        live = live_nodes(self.flat.nodes, [*self.flat.arguments, x], [*wanted, *self.outputs])
        read = {value for node in live for value in reads(node)}
        self.inputs = [x, *(a for a in self.flat.arguments if a in read and a is not x)]
        self.nodes = live_nodes(self.flat.nodes, self.inputs, wanted)
        self.cone = live_nodes(self.flat.nodes, self.inputs, self.outputs)
        many = math.prod(x.type.shape[:walkers])
        if not many:
            raise NoLaplacian("there are no walkers, and nothing to evaluate")
        self.axes = self._walker_axes(many, resize)
        per_walker = program_cost(self.flat).flops / many
        few = int(np.clip(_FLOPS / max(per_walker, 1), _FEWEST_WALKERS, _MOST_WALKERS))
        self.rounds = 1 if few <= 2 else 2
        self.raising = Raising(shapes=resized_shapes(self.axes, many, min(many, few)), fold=True)
        self.one = Raising(shapes=resized_shapes(self.axes, many, 1))
        self.ties = tie_slopes(self.flat.walk(), walk(self.cone), numbers)

    def _walker_axes(self, many: int, resize: bool) -> Mapping[Value, set[int]]:
        """The axes that count walkers; none where the program keeps its own number of them."""
        axes = walker_axes(self.flat, [(self.x, 0)]) if self.walkers == 1 and resize else {}
        summed = live_nodes(self.flat.nodes, self.inputs, self.targets)
        if axes and (reason := told_apart(walk(summed), axes)) is not None:
            if many > FEW_ENOUGH:
                raise NoLaplacian(reason)
            return {}
        # As many walkers as coordinates may be taken for one another: then the program keeps its own number.
        axes = axes if axes.get(self.x) == {0} else {}
        if not axes and many > FEW_ENOUGH:
            raise NoLaplacian(
                f"{many} walkers are too many to evaluate, and a few of them cannot be told from their shapes"
            )
        return axes

    def _possible_gradients(self) -> list[Value]:
        """Values that have one number per coordinate and depend on them."""
        x = self.x
        shapes = (x.type.shape, (*x.type.shape[: self.walkers], self.coordinates.count))
        dependent = reached(self.flat, [x])
        return [
            value
            for node in self.flat.nodes
            for value in node.results
            if is_float(value)
            and value.type.dtype == x.type.dtype
            and value.type.shape in shapes
            and value in dependent
        ]

    def run(self) -> Laplacian | None:
        """The candidate whose Laplacian is identical to the sum, if there is one; NoLaplacian if it may not be used."""
        shifts = [node.results[0] for node in self.cone if is_shift(node)]
        refused: list[NoLaplacian] = []
        for still in (shifts, []) if shifts else ([],):
            function = self._lowered(still)
            for which, at, scale, squares, gradients in self._identical(function):
                cone = live_nodes(self.flat.nodes, self.inputs, [self.outputs[at]])
                own = [shift for shift in shifts if shift.producer in cone]
                dropped = own if still else [shift for shift in own if self._drops_out(shift, which, at)]
                try:
                    self._guard(which, at)
                    written = function if still or not dropped else self._lowered(dropped)
                    gradients = self._where_tied(written, which, at, (scale, squares), gradients)
                except NoLaplacian as reason:
                    refused.append(reason)
                    continue
                return Laplacian(
                    self.x,
                    self.coordinates,
                    self.walkers,
                    self.outputs[at],
                    self.targets[which],
                    scale,
                    tuple(self.gradients[i] for i in gradients if not self._is_guarded(self.gradients[i], at)),
                    dict(self.axes),
                    self.one,
                    tuple(dropped),
                    self.ties,
                    squares,
                )
            if refused:
                raise next((reason for reason in refused if isinstance(reason, NotSeen)), refused[0])
        return None

    def _lowered(self, still: Sequence[Value]) -> FunctionView:
        """Results: each target; of each output the Laplacian; each possible gradient; of each output the derivatives.

        These are [*walkers, coordinates], first without those through ``still``, as the Laplacian is, then with them.
        """

        def evaluate(*arrays: Any) -> Any:
            given = dict(zip(self.inputs, arrays, strict=True))
            environment = dict(given)
            for node in self.nodes:
                environment.update(zip(node.results, self._at_once(node, environment), strict=True))
            jets = self._jets(given, still)
            laps = [jnp.zeros(jet.shape) if jet.laplacian is None else jet.laplacian for jet in jets]
            jets = [*jets, *(self._jets(given) if still else jets)]
            rows = [jnp.moveaxis(jet.jacobian, 0, -1) for jet in jets]
            initial = self.question.initial
            sums = [environment[t] - (0 if initial is None else environment[initial]) for t in self.targets]
            return sums, laps, [environment[value] for value in self.gradients], rows

        types = [jax.ShapeDtypeStruct(self.raising.shape(v), self.raising.dtype(v.type)) for v in self.inputs]
        with jax.enable_x64(True):
            try:
                lowered = jax.jit(evaluate, keep_unused=True).trace(*types).lower(lowering_platforms=("cpu",))
            except (RaiseError, NotImplementedError, TypeError, ValueError) as error:
                if isinstance(error, TypeError | ValueError) and not self.axes:
                    raise  # shapes that do not fit are expected only where axes are taken for those of walkers
                raise RaiseError(
                    f"{subject(self.question)} cannot be evaluated: {str(error).splitlines()[0]}"
                ) from error
        function = view_of(lowered.compiler_ir("stablehlo"))
        merge_equal(function)
        return replace(function, nodes=live_nodes(function.nodes, function.arguments, function.returns))

    def _jets(self, given: Mapping[Value, Any], still: Sequence[Value] = ()) -> list[Jet]:
        state = State(
            self.x, self.coordinates, self.walkers, self.raising, self.one, stop_gradient=still, ties=self.ties
        )
        jets = forward_laplacian(state, self.cone, given, self.outputs)
        return [densify(jet, self.coordinates) for jet in jets]

    def _at_once(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        """The results of ``node``; of the loop with all its trips batched, where JAX can batch them."""
        replay = self.question.replay
        if replay is None or node is not replay.loop.node:
            return self.raising.node(node, environment)
        assert replay.trips is not None
        captured = list(dict.fromkeys(value for region in node.regions for value in free_values(region)))
        try:
            run = batched_loop(raise_trips(replay.loop, captured, self.raising), replay.trips)
            return run(*(jnp.asarray(environment[v]) for v in node.operands), *(environment[v] for v in captured))
        except (NotImplementedError, JaxRefusal):
            return self.raising.node(node, environment)

    def _identical(self, function: FunctionView) -> list[tuple[int, int, float, float, list[int]]]:
        """(target, output, factor of the Laplacian, factor of the squared gradient, gradients) of all pairs that are
        equal in all draws, plain Laplacians first.

        The gradients are indices of those values that are the derivatives of the output in all draws.
        """
        every = [(which, at) for which in range(len(self.targets)) for at in range(len(self.outputs))]
        factors: dict[tuple[int, int], dict[int, tuple[int, int]]] = {pair: {} for pair in every}
        unlike: set[tuple[int, int]] = set()
        formulas: dict[Node, Formula] = {}
        for p, draws in zip(primes(len(_DRAWS)), _DRAWS, strict=True):
            seeds, shares = zip(*draws, strict=True)
            for [evaluator] in evaluators(FieldWithGuards(p, seeds), shares, formulas, 1, self.rounds):
                results = self._results(function, evaluator)
                for which, at in list(factors):
                    pair = _factors(results.sums[which], results.laps[at], results.squares[at], p)
                    held = results.rows[at] != results.rows[len(self.outputs) + at]
                    if pair is None or held.any() or factors[which, at].setdefault(p, pair) != pair:
                        del factors[which, at]
                if not factors:
                    return []
                for at in {at for _, at in factors}:
                    unlike |= {(i, at) for i, value in enumerate(results.gradients) if _differ(value, results.rows[at])}
        found = []
        for (which, at), residues in factors.items():
            scale, squares = (self._scale({p: pair[i] for p, pair in residues.items()}) for i in range(2))
            if scale is not None and squares is not None:
                gradients = [i for i in range(len(self.gradients)) if (i, at) not in unlike]
                found.append((which, at, scale, squares, gradients))
        return sorted(found, key=lambda one: (one[3] != 0, one[2] != 1))

    def _results(self, function: FunctionView, evaluator: Evaluator, change: Change | None = None) -> _Results:
        try:
            arguments = drawn_arguments(function, evaluator)
            if change is not None:
                arguments = [Drawn(change(at, held.array)) for at, held in enumerate(arguments)]
            found = same_draws(evaluator.outputs(function, arguments))
        except Uncovered as error:
            raise RaiseError(f"{subject(self.question)} has no exact meaning: {error}") from error
        parts = iter(found)
        counts = (len(self.targets), len(self.outputs), len(self.gradients), 2 * len(self.outputs))
        sums, laps, gradients, rows = (list(islice(parts, count)) for count in counts)
        field = evaluator.arithmetic
        squares = [field.sum(field.multiply(each, each), (each.ndim - 1,)) for each in rows[: len(self.outputs)]]
        return _Results(sums, laps, gradients, rows, squares)

    def _scale(self, residues: Mapping[int, int]) -> float | None:
        """The real number with these residues by prime, if it is a fraction of small integers or a constant."""
        for denominator in _DENOMINATORS:
            found = {(residue * denominator + p // 2) % p - p // 2 for p, residue in residues.items()}
            if len(found) == 1 and abs(numerator := found.pop()) <= _MOST_NUMERATOR:
                return numerator / denominator
        constants = (node.results[0] for node in self.flat.walk() if node.name == "stablehlo.constant")
        for number in map(number_of, filter(is_float, constants)):
            if number is not None and math.isfinite(number):
                embedded = {p: int(PrimeField(p, (0,)).embedded(np.full(1, number)).item()) % p for p in residues}
                if embedded == residues:
                    return float(number)
        return None

    def _drops_out(self, shift: Value, which: int, at: int) -> bool:
        return any(found[:2] == (which, at) for found in self._identical(self._lowered((shift,))))

    def _where_tied(
        self, function: FunctionView, which: int, at: int, factors: tuple[float, float], gradients: Sequence[int]
    ) -> list[int]:
        """Those of ``gradients`` that are derivatives at ties, too; NotSeen if the sum is not the Laplacian there."""
        [p] = primes(1)
        draws, change = ties_of(self.coordinates.electrons, self.coordinates.each)
        field = FieldWithUndefined(p, range(draws))
        results = self._results(function, Evaluator(field, RULES), change)
        total, rows = results.sums[which], results.rows[at]
        known = ~np.isnan(total)
        scale, squares = (field.embedded(np.asarray(factor)) for factor in factors)
        lap = field.multiply(scale, results.laps[at])
        if factors[1]:
            lap = field.add(lap, field.multiply(squares, results.squares[at]))
        if (total[known] != lap[known]).any():
            raise NotSeen(f"{subject(self.question)} {DIFFERS_WHERE_TIED}")
        given = ((i, results.gradients[i].reshape(rows.shape)[known]) for i in gradients)
        return [i for i, gradient in given if not (~np.isnan(gradient) & (gradient != rows[known])).any()]

    def _guard(self, which: int, at: int) -> None:
        """NoLaplacian for what no exact evaluation shows of the sum and its value: see ``laplacian_guards``."""
        cone, _, own = nodes = self._nodes(self.targets[which], at)
        if (complaint := self._complaint(*nodes) or told_apart(cone, self.axes)) is not None:
            raise NotSeen(f"{subject(self.question)} {complaint}")
        if (reason := less_precise(cone, own)) is not None:
            raise NoLaplacian(f"{subject(self.question)} is not taken from its value: {reason}")

    def _is_guarded(self, gradient: Value, at: int) -> bool:
        """Whether what computes the gradient has what no exact evaluation shows, and the value has not."""
        nodes = self._nodes(gradient, at)
        return (self._complaint(*nodes) or told_apart(nodes[1], self.axes)) is not None

    def _complaint(self, cone: Sequence[Node], summed: Sequence[Node], own: Collection[Node]) -> str | None:
        read = {value for node in cone for value in reads(node)}
        complaint = own_choices(self.flat, self.x, own, read) or rounded(cone, own)
        return complaint or discrete_predicates(summed, own, self.inputs)

    def _nodes(self, value: Value, at: int) -> tuple[list[Node], list[Node], dict[Node, None]]:
        """Those that compute the output, those that compute ``value``, and those of these that the former lack."""
        cone = list(walk(live_nodes(self.flat.nodes, self.inputs, [self.outputs[at]])))
        summed = list(walk(live_nodes(self.flat.nodes, self.inputs, [value])))
        shared = {self.numbers.get(value) for node in cone for value in node.results}
        return (
            cone,
            summed,
            dict.fromkeys(n for n in summed if n.results and self.numbers.get(n.results[0]) not in shared),
        )


@dataclass(frozen=True)
class _Results:
    """Residues: [draws, *walkers] of sums, Laplacians and squared gradients, [draws, *walkers, ...] of others."""

    sums: list[Array]
    laps: list[Array]
    gradients: list[Array]
    rows: list[Array]
    squares: list[Array]


def _factors(total: Array, lap: Array, squares: Array, p: int) -> tuple[int, int] | None:
    """The c and d with ``total`` = c ``lap`` + d ``squares`` modulo p everywhere; None without them, or for c = 0."""
    t, u, v = (array.astype(np.int64).ravel() for array in (total, lap, squares))
    at = np.flatnonzero(u)
    if not at.size:
        return None
    found = [(int(t[at[0]]) * pow(int(u[at[0]]), -1, p) % p, 0)]
    independent = np.flatnonzero((u[at[0]] * v - u * v[at[0]]) % p)
    if independent.size:
        i, j = at[0], independent[0]
        inverse = pow(int(u[i] * v[j] - u[j] * v[i]), -1, p)
        found.append((int(t[i] * v[j] - t[j] * v[i]) * inverse % p, int(u[i] * t[j] - u[j] * t[i]) * inverse % p))
    for c, d in found:
        if c and not ((c * u + d * v - t) % p).any():
            return c, d
    return None


def _differ(gradient: Array, rows: Array) -> bool:
    """Whether a value is not the derivatives [draws, *walkers, coordinates], in whatever shape."""
    return gradient.size != rows.size or bool((gradient.reshape(rows.shape) != rows).any())
