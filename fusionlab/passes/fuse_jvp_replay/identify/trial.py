"""A trial: what is compared of a program for one choice of directions, positions x and functions F, its ``outputs``.

Everything is one program, of few walkers where they stand for all (``ProductTrial.lowered``): the candidates for
derivatives, along one or two random directions in place of the unit vectors, and beside them F, F along these
directions, and possible gradients.
"""

from __future__ import annotations

import copy
import functools
import math
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from fusionlab.codegen.laplacian.state import Options
from fusionlab.codegen.raising import Raising
from fusionlab.equivalence.exact.values import Array, Drawn
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Marks, united
from fusionlab.hlo.dependence import live_nodes, reached
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.view import FunctionView, Node, Value, free_values, reads, walk
from fusionlab.passes.fuse_jvp_replay.directions import Place, UnitRows, constant_seeds, subject_of
from fusionlab.passes.fuse_jvp_replay.identify import equal_inputs
from fusionlab.passes.fuse_jvp_replay.identify.cuts import Cut, candidates, read_by
from fusionlab.passes.fuse_jvp_replay.identify.derivatives import Derivatives, along
from fusionlab.passes.fuse_jvp_replay.identify.evaluating import Evaluation, not_computed
from fusionlab.passes.fuse_jvp_replay.identify.few_walkers import resized, walker_marks, walkers_to_evaluate
from fusionlab.passes.fuse_jvp_replay.identify.positions import coordinates_of

_IN_QUADRATICS = (ops.POWER, ops.SQRT)
"""Transcendental ops that a quadratic function may be made of; second derivatives of others are taken to vary."""


class ProductTrial(Evaluation):
    """The candidates for derivatives along directions of the ``places`` of a function, and for F: ``outputs`` of ``x``.

    ``is_likely``: F is expected among the outputs. Everything is evaluated at a few walkers. The seeds of the places
    are replaced by directions; other unit vectors stay what they are.
    """

    lowered: Callable[[tuple[Value, ...], Options], FunctionView]

    def __init__(
        self,
        flat: FunctionView,
        places: Sequence[Place],
        x: Value,
        leading: int,
        outputs: Sequence[Value],
        numbers: ValueNumbers,
        deadline: float,
        resize: bool = True,
        of_several: bool = False,
        is_likely: bool = False,
    ) -> None:
        super().__init__(subject_of(places), deadline, x, leading, coordinates_of(flat, x, leading), of_several)
        self.flat, self.places, self.outputs, self.numbers = flat, places, list(outputs), numbers
        dependent, directed = reached(flat, [x]), reached(flat, self.constants)
        self.candidates, self.together = candidates(places, self.outputs, self.coordinates.count, directed, dependent)
        seconds = [cut.value for cut in self.candidates if 2 in cut.orders]
        if not is_likely and dependent.isdisjoint(seconds):  # H is constant
            curved = (node for node in flat.walk() if node.op.transcendental and node.op not in _IN_QUADRATICS)
            beyond = reached(flat, [value for node in curved for value in node.results if value in dependent])
            self.outputs = [output for output in self.outputs if output not in beyond]
            self.candidates = self.candidates if self.outputs else []
        self.gradients = self._possible_gradients(dependent, directed) if self.has_products else []
        self._resize, self.is_likely = resize, is_likely
        if self.has_products:
            self._few = walkers_to_evaluate(flat, math.prod(x.type.shape[:leading]))
            self._take_walkers()

    @property
    def constants(self) -> list[Value]:
        """The seeds that no loop has."""
        return constant_seeds(self.places)

    @property
    def axes(self) -> Marks:
        """The axes of values that count walkers."""
        return united(self.marks)

    @property
    def rounds(self) -> int:
        """The evaluations under a steered order."""
        return 1 if self._few <= 2 else 2

    @property
    def has_products(self) -> bool:
        """True if a candidate may be of second order."""
        return any(2 in cut.orders for cut in self.candidates)

    def narrowed(self, outputs: list[Value], cuts: list[Cut], gradients: list[Value]) -> ProductTrial:
        """The same for some of the candidates."""
        trial = copy.copy(self)
        trial.outputs, trial.candidates, trial.gradients = outputs, cuts, gradients
        trial._take_walkers()
        return trial

    def take_part_of(self, whole: ProductTrial, stopped: Collection[Value], constant: tuple[Value, ...]) -> None:
        """Where derivatives through ``stopped`` are left out, evaluate what is needed of the program of ``whole``, of
        which this is narrowed, in which those through ``constant`` are; if inputs are the same."""
        if self.inputs == whole.inputs and self.raising.shapes == whole.raising.shapes:
            lowered = self.lowered

            def part(left_out: tuple[Value, ...], options: Options) -> FunctionView:
                if set(left_out) != set(stopped):
                    return lowered(left_out, options)
                view = whole.lowered(constant, options)
                results = dict(zip(whole._results(), view.returns, strict=True))
                returns = tuple(results[key] for key in self._results())
                return replace(view, nodes=live_nodes(view.nodes, view.arguments, returns), returns=returns)

            self.lowered = functools.cache(part)

    def _take_walkers(self) -> None:
        """What computes the candidates and outputs, and the axes along which few walkers stand for all."""
        x, flat = self.x, self.flat
        read = [cut.value for cut in self.candidates if cut.place.loop is None]
        for place in self.places:
            if place.loop is not None and any(cut.place is place for cut in self.candidates):
                read += read_by(place, [cut.value for cut in self.candidates if cut.place is place])
        wanted = list(dict.fromkeys([*read, *self.gradients]))
        used = self._live([*wanted, *self.outputs], [x, *self.constants])
        inputs = [x, *(a for a in flat.arguments if a is not x and (a in used[1] or a in wanted))]
        self.nodes = self._live(wanted, [x, *self.constants])[0]
        self.cone = live_nodes(flat.nodes, inputs, self.outputs)
        inside = [place.region for place in self.places if place.loop is not None]
        computing = [*self.nodes, *self.cone]
        marks = walker_marks(flat, x, self.walkers, computing, inside, self.marks) if self._resize else {}
        few = Raising(shapes=resized(marks, x.type.shape, self._few), fold=True)
        one = Raising(shapes=resized(marks, x.type.shape, 1))
        self.take(inputs, marks, few, one, equal_inputs.subgradients(flat.walk(), walk(self.cone), self.numbers))
        self.lowered = functools.cache(self._lowered)

    def _live(self, wanted: Sequence[Value], known: Sequence[Value]) -> tuple[list[Node], set[Value]]:
        nodes = live_nodes(self.flat.nodes, [*self.flat.arguments, *known], wanted)
        return nodes, {value for node in nodes for value in reads(node)}

    def _possible_gradients(self, dependent: Collection[Value], directed: set[Value]) -> list[Value]:
        """Values that have one number per coordinate of some output, and depend on x but on no direction."""
        count = self.coordinates.count
        inner = self.x.type.shape[self.walkers :]
        shapes = {(*v.type.shape, *each) for v in self.outputs for each in (inner, (count,))} | {self.x.type.shape}
        for place in self.places:
            if place.loop is not None:
                directed = directed | reached(self.flat, place.loop.node.results)
        values = (v for node in self.flat.nodes for v in node.results if v in dependent and v not in directed)
        return [v for v in values if v.dtype == self.x.dtype and v.type.shape in shapes]

    def _lowered(self, stopped: tuple[Value, ...], options: Options) -> FunctionView:
        """One program of few walkers: ``Derivatives``, of the inputs, directions d and e [K], and scalars u and v [R].

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
            replaced = reached(self.flat, self.constants)
            known = {value: array for value, array in environment.items() if value not in replaced}
            pushed = functools.partial(along, self, given, self.outputs, self.cone, stopped, options, known=known)
            forms = [pushed(direction) for direction in directions]
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
        u, v = u[: seed.rows], v[: seed.rows]
        rows = d if seed.rows == 1 else u[:, None] * d + v[:, None] * e
        return seed.placed(rows, self.raising.shape(seed.value)).astype(self.raising.dtype(seed.value.type))

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

    def _results(self) -> list[Hashable]:
        """Names of the results of ``lowered``, in order."""
        forms, slopes = (3, 2) if self.has_rows else (1, 1)
        of = [(name, at, output) for name, count in (("value", 1), ("second", forms), ("slope", slopes))
              for at in range(count) for output in self.outputs]  # fmt: skip
        return [*of, *(("gradient", value) for value in self.gradients), *self.candidates]

    def results(self, arrays: Sequence[Array], arguments: Sequence[Drawn]) -> Derivatives:
        count, forms = len(self.outputs), 3 if self.has_rows else 1
        rest = iter(arrays)

        def some(number: int) -> list[Array]:
            return [next(rest) for _ in range(number)]

        values, seconds, slopes = some(count), some(forms * count), some((2 if forms == 3 else 1) * count)
        gradients, own = some(len(self.gradients)), some(len(self.candidates))
        directions = [held.array for held in arguments[-4:]]
        cuts = {cut.value: array for cut, array in zip(self.candidates, own, strict=True)}
        return Derivatives(values, seconds, slopes, gradients, cuts, directions)
