"""Steps 2 and 3, products: the values T = H d of a program, and the F of which H is the Hessian.

    T(d) = H_F(x) d          reached from a seed d by ops that are polynomials of it
    d . T(d) = d . H_F d     for random d, the right side by the forward Laplacian of F along d; of several rows at once
    e . T(D) = e . H_F D     for D = u d + v e (Freivalds), the right side from the forms along d, e and d + e

One trip, and one or three directions, whatever the number of coordinates. What holds for all d holds for the unit
vectors of the program. Of a single row the symmetric part of T is compared: only diagonal elements of T are summed.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.laplacian.interpreter import forward_laplacian
from fusionlab.codegen.laplacian.jet import Coordinates, densify
from fusionlab.codegen.laplacian.state import Options, State
from fusionlab.codegen.raising import Raising
from fusionlab.codegen.raising.trips import accumulated
from fusionlab.equivalence.exact.evaluation import Evaluator, Prepared
from fusionlab.equivalence.exact.field import FieldWithGuards, PrimeField, primes
from fusionlab.equivalence.exact.identity import evaluators
from fusionlab.equivalence.exact.values import Array, Drawn
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Marks, united, walker_axes
from fusionlab.hlo.cost import program_cost
from fusionlab.hlo.dependence import live_nodes, reached
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Node, Value, free_values, reads, walk
from fusionlab.passes.fuse_jvp_replay import equal_inputs
from fusionlab.passes.fuse_jvp_replay.degrees import TOO_HIGH, degrees
from fusionlab.passes.fuse_jvp_replay.directions import Place, UnitRows, subject_of
from fusionlab.passes.fuse_jvp_replay.evaluating import (
    DRAWS,
    DRAWS_OF_INTEGERS,
    Evaluation,
    not_computed,
    resizable,
    resized,
    walkers_to_evaluate,
)
from fusionlab.passes.fuse_jvp_replay.guards import Complaint, along_matrices, told_apart
from fusionlab.passes.fuse_jvp_replay.no_laplacian import NotALaplacian
from fusionlab.passes.fuse_jvp_replay.rationals import small_fraction
from fusionlab.passes.refusals import Ground

_FIRST = 3
"""The draw that is evaluated first, without steering."""


@dataclass(frozen=True, eq=False)
class Cut:
    """``value`` is ``scale`` times a derivative of ``output`` along the rows of ``seed``, in ``place``.

    order 2, axes (i, j)   H d, whose axes i to j count coordinates          order 1    g . d
    order 2, axes None     d . H d

    ``rows`` are the axes, without those of coordinates, that count the rows of the seed.
    """

    value: Value
    place: Place
    seed: UnitRows
    axes: tuple[int, int] | None
    rows: tuple[int, int]
    order: int = 2
    output: Value | None = None
    scale: float = 1.0

    @property
    def of(self) -> Value:
        """The output that it is a derivative of, once this is decided."""
        assert self.output is not None
        return self.output

    def placed(self, rows: Any, shape: Sequence[int]) -> Any:
        """``rows`` [T, R, *F, K] (without K for scalars) as arrays [T, *shape] of the value."""
        (i, j), (first, end) = self.rows, self.axes or (0, 0)
        rest, inner = [*shape[:first], *shape[end:]], shape[first:end]
        array = rows.reshape(len(rows), *rest[i:j], *rest[:i], *rest[j:], *inner)
        array = jnp.moveaxis(array, range(1, 1 + j - i), range(1 + i, 1 + j))
        return jnp.moveaxis(array, range(1 + len(rest), array.ndim), range(1 + first, 1 + end))

    def contracted(
        self, field: PrimeField, array: Array, by: Array, output: Sequence[int], some: bool = False
    ) -> Array | None:
        """[draws, R, *output] from the residues of the value: of rows their products with ``by`` [draws, K].

        ``some``: only elements that are not multiplied by 0 count; the others may be undefined.
        """
        (i, j), (first, end) = self.rows, self.axes or (0, 0)
        if self.axes is not None:
            if math.prod(array.shape[first + 1 : end + 1]) != by.shape[-1]:
                return None  # of fewer walkers: the axes are theirs
            array = np.moveaxis(array, range(first + 1, end + 1), range(array.ndim - (end - first), array.ndim))
            array = array.reshape(*array.shape[: array.ndim - (end - first)], -1)
            by = by.reshape(len(by), *(1,) * (array.ndim - 2), -1)
            array = np.where(by == 0, 0, array) if some else array
            array = field.sum(field.multiply(array, by), (array.ndim - 1,))
        array = np.moveaxis(array, range(i + 1, j + 1), range(1, j - i + 1))
        if array.size != len(array) * self.seed.rows * math.prod(output):
            return None
        return array.reshape(len(array), self.seed.rows, *output)


class ProductTrial(Evaluation):
    """The candidates for products of directions of the ``places`` of a function, and for F, the ``outputs`` of ``x``.

    Everything is evaluated at a few walkers. The seeds of the places are replaced by directions; other unit vectors
    stay what they are.
    """

    def __init__(
        self,
        flat: FunctionView,
        places: Sequence[Place],
        x: Value,
        leading: int,
        outputs: Sequence[Value],
        numbers: ValueNumbers,
        deadline: float = math.inf,
        resize: bool = True,
    ) -> None:
        self.subject = subject_of(places)
        self.flat, self.places, self.x, self.walkers, self.outputs = flat, places, x, leading, list(outputs)
        self.deadline, self.prepared = deadline, Prepared()
        self.coordinates = coordinates_of(flat, x, leading)
        self.constants = [seed.value for place in places if place.loop is None for seed in place.seeds]
        self.gradients = self._possible_gradients()
        self.together = set[UnitRows]()
        """Seeds of which a value as large as a product has several."""
        self.candidates = list(self._candidates())
        many = math.prod(x.type.shape[:leading])
        if not many:
            raise NotALaplacian(Ground.NO_WALKERS, "there are no walkers, and nothing to evaluate")
        few = self._few = walkers_to_evaluate(program_cost(flat).flops / many)
        self.rounds = 1 if few <= 2 else 2
        self._numbers, self._resize = numbers, resize
        self._take_walkers()

    def _take_walkers(self) -> None:
        """What computes the candidates and outputs, and the axes along which few walkers stand for all."""
        x, flat = self.x, self.flat
        read = [cut.value for cut in self.candidates if cut.place.loop is None]
        for place in self.places:
            if place.loop is not None and any(cut.place is place for cut in self.candidates):
                read += _read_by(place, [cut.value for cut in self.candidates if cut.place is place])
        wanted = list(dict.fromkeys([*read, *self.gradients]))
        used = self._live([*wanted, *self.outputs], [x, *self.constants])
        self.inputs = [x, *(a for a in flat.arguments if a is not x and (a in used[1] or a in wanted))]
        self.nodes = self._live(wanted, [x, *self.constants])[0]
        self.cone = live_nodes(flat.nodes, self.inputs, self.outputs)
        self.marks = self._walker_marks(self._resize)
        self.axes = united(self.marks)
        self.raising = Raising(shapes=resized(self.marks, x.type.shape, self._few), fold=True)
        self.one = Raising(shapes=resized(self.marks, x.type.shape, 1))
        self.subgradients = equal_inputs.subgradients(flat.walk(), walk(self.cone), self._numbers)
        self.lowered = functools.cache(self._lowered)

    def _live(self, wanted: Sequence[Value], known: Sequence[Value]) -> tuple[list[Node], set[Value]]:
        nodes = live_nodes(self.flat.nodes, [*self.flat.arguments, *known], wanted)
        return nodes, {value for node in nodes for value in reads(node)}

    def _walker_marks(self, resize: bool) -> dict[int, Marks]:
        """The axes that count walkers, along each leading axis of x that can be resized."""
        nodes = list(walk([*self.nodes, *self.cone]))
        inside = [n for p in self.places if p.loop is not None for n in walk(p.region.nodes)]

        def marks_of(axis: int) -> Marks | Complaint | None:
            found = walker_axes(self.flat, [(self.x, axis)]) if resize else Marks({})
            complaint = told_apart(nodes, found) or along_matrices([*nodes, *inside], found)
            return found if complaint is None and found.get(self.x) == {axis} else complaint

        return resizable(self.x.type.shape[: self.walkers], marks_of)

    def _possible_gradients(self) -> list[Value]:
        """Values that have one number per coordinate of some output, and depend on x but on no direction."""
        dependent, count = reached(self.flat, [self.x]), self.coordinates.count
        inner = self.x.type.shape[self.walkers :]
        shapes = {(*v.type.shape, *each) for v in self.outputs for each in (inner, (count,))} | {self.x.type.shape}
        directed = reached(self.flat, self.constants)
        for place in self.places:
            if place.loop is not None:
                directed |= reached(self.flat, place.loop.node.results)
        values = (v for node in self.flat.nodes for v in node.results if v in dependent and v not in directed)
        return [v for v in values if v.dtype == self.x.dtype and v.type.shape in shapes]

    def _candidates(self) -> Iterator[Cut]:
        """Values of the sizes of products that are polynomials of the rows of one seed, the others as they are."""
        count, counts = self.coordinates.count, {math.prod(v.type.shape) for v in self.outputs}
        for place in self.places:
            by: dict[Value, set[int]] = {}
            degree: dict[Value, int] = {}
            alike = _alike(place.seeds)
            for at, seeds_alike in enumerate(alike):
                of_seeds = degrees(place.region.nodes, {seed.value: 1 for seed in seeds_alike})
                for value in of_seeds:
                    by.setdefault(value, set()).add(at)
                degree.update({value: max(n, degree.get(value, 0)) for value, n in of_seeds.items()})
            apart = _telling_trips_apart(place, reached(self.flat, self.constants))
            for node in towards_results(place):
                for value in node.results:
                    seeds = by.get(value, set())
                    if not seeds or degree[value] == TOO_HIGH or value.dtype not in ops.WIDE_FLOATS or value in apart:
                        continue
                    seed, size = alike[min(seeds)][0], math.prod(value.type.shape)
                    several = [each for at in seeds for each in alike[at]]
                    if len(several) > 1 and any(size in (seed.rows * n * count, seed.rows * n) for n in counts):
                        self.together.update(several)
                    if len(seeds) > 1:
                        continue
                    for axes, rows in self._axes_of(value.type.shape, seed.rows):
                        if axes is None or degree[value] == 1:
                            yield Cut(value, place, seed, axes, rows)

    def _axes_of(self, shape: tuple[int, ...], rows: int) -> Iterator[tuple[tuple[int, int] | None, tuple[int, int]]]:
        """The axes of a value of ``shape`` that may count coordinates, or None, and among the others ``rows``, where
        those that are left are those of an output."""
        outputs = {tuple(n for n in v.type.shape if n > 1) for v in self.outputs}
        for axes in (None, *_intervals(shape, self.coordinates.count)):
            first, end = axes or (0, 0)
            rest = (*shape[:first], *shape[end:])
            for i, j in [(0, 0)] if rows == 1 else _intervals(rest, rows):
                if tuple(n for n in (*rest[:i], *rest[j:]) if n > 1) in outputs:
                    yield axes, (i, j)

    def _lowered(self, stopped: tuple[Value, ...], options: Options) -> FunctionView:
        """One program of few walkers: ``_Derivatives``, of the inputs, directions d and e [K], and scalars u and v [R].

        Rows of a seed are u_r d + v_r e; the row of a seed with one row is d.
        """

        def results(*arrays: Any) -> list[Any]:
            *inputs, d, e, u, v = arrays
            given = dict(zip(self.inputs, inputs, strict=True))
            environment = dict(given)
            for place in self.places:
                if place.loop is None:
                    environment.update({seed.value: self._seeded(seed, d, e, u, v) for seed in place.seeds})
            self.raising.run(not_computed(self.nodes, environment), environment)
            found: dict[Cut, Any] = {}
            for place in self.places:
                own = [cut for cut in self.candidates if cut.place is place]
                if place.loop is None:
                    found |= {cut: environment[cut.value] for cut in own}
                elif own:
                    inner = self._one_trip(place, environment, [cut.value for cut in own], d, e, u, v)
                    found |= {cut: inner[cut.value] for cut in own}
            directions = (d, e, d + e) if self.has_rows else (d,)
            forms = [
                self.along(given, self.outputs, self.cone, stopped, options, direction) for direction in directions
            ]
            values, _, slopes = forms[0]
            seconds = [lap for _, laps, _ in forms for lap in laps]
            slopes = [*slopes, *(forms[1][2] if self.has_rows else ())]
            gradients = [environment[value] for value in self.gradients]
            return [*values, *seconds, *slopes, *gradients, *(found[cut] for cut in self.candidates)]

        count = self.coordinates.count
        most = max(seed.rows for place in self.places for seed in place.seeds)
        return self.view_of(results, [(count,), (count,), (most,), (most,)])

    @property
    def has_rows(self) -> bool:
        """True if one trip of some place pushes several directions."""
        return any(cut.seed.rows > 1 for cut in self.candidates)

    def _seeded(self, seed: UnitRows, d: Any, e: Any, u: Any, v: Any) -> Any:
        """Directions in the place of the unit vectors of ``seed``."""
        shape, kept = self.raising.shape(seed.value), seed.places.shape[1:]
        u, v = u[: seed.rows], v[: seed.rows]
        rows = d if seed.rows == 1 else u[:, None] * d + v[:, None] * e
        rest = (*shape[: seed.first], *shape[seed.end :])
        if any(n not in (1, m) for n, m in zip(kept, rest, strict=True)):
            raise NotALaplacian(Ground.AXES_MISTAKEN, "rows of unit vectors are merged with walkers")
        placed = rows.reshape(*kept, *shape[seed.first : seed.end])
        placed = jnp.moveaxis(placed, range(len(kept), placed.ndim), range(seed.first, seed.end))
        return jnp.broadcast_to(placed, shape).astype(self.raising.dtype(seed.value.type))

    def _one_trip(
        self, place: Place, environment: Mapping[Value, Any], values: Sequence[Value], *directions: Any
    ) -> dict[Value, Any]:
        """``values`` of the body in one trip, which nothing but the direction tells from others."""
        loop, body = place.loop, place.region
        assert loop is not None
        known = {value: environment[value] for value in free_values(body) if value in environment}
        known |= {inner: environment[outer] for inner, outer in loop.unchanged.items() if outer in environment}
        known |= {seed.value: self._seeded(seed, *directions) for seed in place.seeds}
        self.raising.run(not_computed(live_nodes(body.nodes, list(known), values), known), known)
        return known

    def along(
        self,
        given: Mapping[Value, Any],
        outputs: Sequence[Value],
        cone: Sequence[Node],
        stopped: tuple[Value, ...],
        options: Options,
        direction: Any,
    ) -> tuple[list[Any], list[Any], list[Any]]:
        """(values, d . H d, g . d) of ``outputs``, which ``cone`` computes, along ``direction`` [K]."""
        of = Coordinates(1, 1)
        state = State(
            self.x, of, self.walkers, self.raising, self.one, options, stopped, self.subgradients, direction[None]
        )
        jets = [densify(jet, of) for jet in forward_laplacian(state, cone, given, outputs)]
        laps = [jnp.zeros(jet.shape) if jet.laplacian is None else jet.laplacian for jet in jets]
        return [jet.value for jet in jets], laps, [jet.jacobian[0] for jet in jets]

    def narrowed(self, options: Options) -> ProductTrial | None:
        """The same for the candidates and outputs that one draw leaves; None if it leaves no second derivative.

        Most are none, and what is asked of the others depends on which they are.
        """
        alive, gradients = self._alive()
        lowered = self.lowered((), options)
        for part, arguments in self.batches(lowered, FieldWithGuards(primes(1)[0], [_FIRST])):
            self._compare(lowered, Evaluator(part, self.prepared), arguments, alive, gradients)
        seconds = {f for _, f, order in alive if order == 2}
        if not seconds:
            return None
        trial = copy.copy(self)
        trial.outputs = [output for f, output in enumerate(self.outputs) if f in seconds]
        trial.candidates = list(dict.fromkeys(cut for cut, f, _ in alive if f in seconds))
        left = {i for i, f in gradients if f in seconds}
        trial.gradients = [value for i, value in enumerate(self.gradients) if i in left]
        trial._take_walkers()
        return trial

    def _alive(self) -> tuple[dict[tuple[Cut, int, int], dict[int, int]], set[tuple[int, int]]]:
        """By candidate, output and order the ratios by prime, none yet; possible gradients with outputs."""
        count = len(self.outputs)
        pairs = [(cut, f, order) for cut in self.candidates for f in range(count)
                 for order in ((2,) if cut.axes is not None else (2, 1))]  # fmt: skip
        return {pair: {} for pair in pairs}, {(i, f) for i in range(len(self.gradients)) for f in range(count)}

    def _compare(
        self,
        lowered: FunctionView,
        evaluator: Evaluator,
        arguments: list[Drawn],
        alive: dict[tuple[Cut, int, int], dict[int, int]],
        gradients: set[tuple[int, int]],
    ) -> None:
        """Leave in ``alive`` and ``gradients`` what agrees in the draws of ``evaluator``."""
        field = evaluator.arithmetic
        found = self.results(self.evaluated(lowered, evaluator, arguments), arguments)
        for pair in list(alive):
            ours, expected = found.both(field, *pair)
            if ours is None or expected is None:
                del alive[pair]
            elif ours.any() or expected.any():  # else integers at which the value is constant
                scale = _ratio(ours, expected, field.p)
                if scale is None or alive[pair].setdefault(field.p, scale) != scale:
                    del alive[pair]
        gradients -= {(i, f) for i, f in gradients if not found.is_gradient(field, i, f)}

    def matches(self, stopped: tuple[Value, ...], options: Options) -> tuple[list[Cut], set[tuple[Value, Value]]]:
        """The cuts that are derivatives of an output in all draws, and pairs of a gradient and its output."""
        lowered = self.lowered(stopped, options)
        alive, gradients = self._alive()
        rounds = [*zip(primes(len(DRAWS)), DRAWS, strict=True)]
        if any(value.dtype in ops.INTEGERS for value in self.inputs):
            rounds += [(p, DRAWS_OF_INTEGERS) for p in primes(len(DRAWS))]
        for p, draws in rounds:
            if draws is DRAWS_OF_INTEGERS and all(p in residues for residues in alive.values()):
                continue
            share = dict(draws)
            for part, arguments in self.batches(lowered, FieldWithGuards(p, list(share))):
                shares = [share[seed] for seed in part.seeds]
                for [evaluator] in evaluators(part, shares, self.prepared, 1, self.rounds):
                    self._compare(lowered, evaluator, arguments, alive, gradients)
                    if not any(order == 2 for *_, order in alive):
                        return [], set()
        cuts = []
        for (cut, f, order), residues in alive.items():
            if len(residues) == len(DRAWS) and (factor := small_fraction(residues)) is not None:
                cuts.append(replace(cut, order=order, output=self.outputs[f], scale=factor))
        return cuts, {(self.gradients[i], self.outputs[f]) for i, f in gradients}

    def results(self, arrays: Sequence[Array], arguments: Sequence[Drawn]) -> _Derivatives:
        count, forms = len(self.outputs), 3 if self.has_rows else 1
        rest = iter(arrays)

        def some(number: int) -> list[Array]:
            return [next(rest) for _ in range(number)]

        values, seconds, slopes = some(count), some(forms * count), some((2 if forms == 3 else 1) * count)
        gradients, own = some(len(self.gradients)), some(len(self.candidates))
        directions = [held.array for held in arguments[-4:]]
        cuts = {cut.value: array for cut, array in zip(self.candidates, own, strict=True)}
        return _Derivatives(values, seconds, slopes, gradients, cuts, directions)


@dataclass(frozen=True)
class _Derivatives:
    """Arrays [draws, *F] of each output: ``values``, d . H d (and e . H e, and along d + e), and g . d (and g . e); the
    possible ``gradients``, the ``cuts``, and the ``directions`` d, e, u, v."""

    values: list[Array]
    seconds: list[Array]
    slopes: list[Array]
    gradients: list[Array]
    cuts: Mapping[Value, Array]
    directions: list[Array]

    def both(
        self, field: PrimeField, cut: Cut, f: int, order: int, some: bool = False
    ) -> tuple[Array | None, Array | None]:
        """[draws, R, *F] of a cut and of the derivative of output ``f`` that it may be; ``some``: as there."""
        d, e, u, v = self.directions
        count, rows = len(self.values), cut.seed.rows
        shape = self.values[f].shape[1:]
        ours = cut.contracted(field, self.cuts[cut.value], d if rows == 1 else e, shape, some)
        if ours is None:
            return None, None
        if order == 1:
            expected = self.slopes[f][:, None]
            if rows > 1:
                expected = field.add(
                    _scaled(field, u, rows, self.slopes[f]), _scaled(field, v, rows, self.slopes[count + f])
                )
            return ours, expected
        if rows == 1:
            return ours, self.seconds[f][:, None]
        q, r, both = (self.seconds[i * count + f] for i in range(3))
        mixed = field.multiply(field.subtract(field.subtract(both, q), r), field.embedded(np.asarray(0.5)))
        right = field.add(_scaled(field, u, rows, mixed), _scaled(field, v, rows, r))
        if cut.axes is not None:
            return ours, right
        left = field.add(_scaled(field, u, rows, q), _scaled(field, v, rows, mixed))
        return ours, field.add(_times(field, u, left), _times(field, v, right))

    def is_gradient(self, field: PrimeField, i: int, f: int, where_known: bool = False) -> bool:
        """True if possible gradient ``i`` is that of output ``f``, ``where_known`` where it has no NaN."""
        shape, d = self.values[f].shape[1:], self.directions[0]
        array = self.gradients[i]
        if array.size != math.prod(shape) * len(array) * d.shape[-1]:
            return False
        array = array.reshape(len(array), *shape, -1)
        along = field.sum(field.multiply(array, d.reshape(len(d), *(1,) * len(shape), -1)), (array.ndim - 1,))
        differ = along != self.slopes[f]
        return not (differ & ~(np.isnan(along) | np.isnan(self.values[f]))).any() if where_known else not differ.any()


def _scaled(field: PrimeField, rows: Array, count: int, array: Array) -> Array:
    """[draws, R, ...]: ``array`` [draws, ...] times the numbers of the rows [draws, most]."""
    numbers = rows[:, :count]
    return field.multiply(numbers.reshape(*numbers.shape, *(1,) * (array.ndim - 1)), array[:, None])


def _times(field: PrimeField, rows: Array, array: Array) -> Array:
    numbers = rows[:, : array.shape[1]]
    return field.multiply(numbers.reshape(*numbers.shape, *(1,) * (array.ndim - 2)), array)


def _ratio(ours: Array, expected: Array, p: int) -> int | None:
    """The number with ``ours`` = number times ``expected`` modulo p everywhere, not 0; None without it."""
    if ours.shape != expected.shape:
        return None
    a, b = ours.astype(np.int64).ravel() % p, expected.astype(np.int64).ravel() % p
    at = np.flatnonzero(b)
    if not at.size:
        return None
    number = int(a[at[0]]) * pow(int(b[at[0]]), -1, p) % p
    return number if number and not ((a - number * b) % p).any() else None


def coordinates_of(flat: FunctionView, x: Value, walkers: int) -> Coordinates:
    """Those of ``x`` [*walkers, ...], one to three of each electron by its last axis, or by the longest of a reshape's.

    Of a vector that is not reshaped, 3 if it can be divided by 3. What is grouped in another way than in the program
    has fewer directions that are known to be zero, and ties of other coordinates.
    """
    count = math.prod(x.type.shape[walkers:])
    reshaped = [node.results[0] for node in flat.nodes if node.op is ops.RESHAPE and node.operands[0] is x]
    for values in ([x], reshaped):
        inner = [value.type.shape[walkers:] for value in values]
        fitting = [e[-1] for e in inner if len(e) > 1 and math.prod(e) == count and e[-2] > 1 and e[-1] <= 3]
        if fitting:
            return Coordinates(count // max(fitting), max(fitting))
    each = 1 if count % 3 else 3
    return Coordinates(count // each, each)


def towards_results(place: Place) -> list[Node]:
    """The nodes of a place that compute what a loop accumulates; all of those of a function."""
    loop, region = place.loop, place.region
    if loop is None:
        return region.nodes
    return live_nodes(region.nodes, [*region.arguments, *free_values(region)], accumulated(loop))


def _alike(seeds: Sequence[UnitRows]) -> list[list[UnitRows]]:
    """Those that are the same directions: an identity that is made twice."""
    found: list[list[UnitRows]] = []
    for seed in seeds:
        own = next((each for each in found if np.array_equal(each[0].places, seed.places)), None)
        if own is None:
            found.append([seed])
        else:
            own.append(seed)
    return found


def _telling_trips_apart(place: Place, directed: Collection[Value]) -> set[Value]:
    """The values of a loop's body that differ between trips by more than their directions, or depend on ``directed``
    values from outside, which are other directions."""
    if place.loop is None:
        return set()
    body, seeds = place.region, {seed.value for seed in place.seeds}
    fixed = place.loop.unchanged
    found = {a for a in body.arguments if a not in fixed or fixed[a] in directed}
    found |= {value for value in free_values(body) if value in directed}
    for node in body.nodes:
        if not found.isdisjoint(reads(node)):
            found.update(value for value in node.results if value not in seeds)
    return found


def _read_by(place: Place, values: Sequence[Value]) -> list[Value]:
    """What ``values`` of a loop's body are computed from outside it, beside directions."""
    loop, body = place.loop, place.region
    assert loop is not None
    invariant, captured = loop.unchanged, free_values(body)
    seeds = [seed.value for seed in place.seeds]
    nodes = live_nodes(body.nodes, [*seeds, *invariant, *captured], values)
    used = {value for node in nodes for value in reads(node)}
    return [*(v for v in captured if v in used), *(outer for inner, outer in invariant.items() if inner in used)]


def _intervals(shape: tuple[int, ...], count: int) -> list[tuple[int, int]]:
    """The first and end of the axes of ``shape`` that have ``count`` elements together, at neither side one of 1."""
    pairs = ((i, j) for i in range(len(shape)) for j in range(i + 1, len(shape) + 1))
    found = [(i, j) for i, j in pairs if math.prod(shape[i:j]) == count]
    return [(i, j) for i, j in found if j - i == 1 or (shape[i] > 1 and shape[j - 1] > 1)]
