"""One evaluation, in float64 on a few walkers, of a sum over directions beside the Laplacians of candidates."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.cpu_options import CPU_OPTIONS
from fusionlab.codegen.forward_laplacian.jet import Coordinates, densify
from fusionlab.codegen.raising import RaiseError, Raising, live_nodes
from fusionlab.hlo.flat import Value, reads, walk
from fusionlab.hlo.replay import reached
from fusionlab.hlo.value_numbers import ValueNumbers
from fusionlab.hlo.walker_axes import resized_shapes, walker_axes
from fusionlab.passes.branch_cover import BranchCover, equal_where_finite, place
from fusionlab.passes.branch_doors import closed, open_doors
from fusionlab.passes.branch_turns import TURNS, TurnedLaplacian, Turning, asking
from fusionlab.passes.laplacian_agreement import TOLERANCE, are_derivatives, common_factor
from fusionlab.passes.laplacian_finding import Laplacian
from fusionlab.passes.laplacian_guards import is_chosen, less_precise, nan_guards, own_choices, rounded, told_apart
from fusionlab.passes.laplacian_slopes import saturating, slopes, vanishing
from fusionlab.passes.laplacian_ties import DIFFERS, Pairs, differing_where_tied, paired, tie_slopes
from fusionlab.passes.sums_over_directions import DirectionSum, NoLaplacian, NotSeen, is_float

DRAWS = ((0, 1.0), (1, 0.3), (2, 2.0))
"""Seed, and the scale of the positions in units of their distribution, of each draw."""
TURNED_DRAWS = ((3, 1.0), (4, 0.5))
"""The same of draws in which comparisons are turned, each in another way."""
assert len(TURNED_DRAWS) == TURNS
_NEAREST_BOHR, _NEAR_BOHR, _FARTHEST_BOHR = 1e-3, 0.5, 50.0
_FAR_DRAWS = 2
_MOST_FAR_DRAWS = 64
"""Draws with electrons at all distances that walkers have: so many always, and so many until all slopes are seen."""
_FIRST_FAR_SEED = 100
_ROUNDINGS = 3
_SPREAD_FACTOR = 1e3
_NEGLIGIBLE = 1e-9
"""Where two results differ by more, in units of what a rounding of the inputs does to them, and of what is usual near
by, they are different."""

_WALKERS = 4
FEW_ENOUGH = 64
"""Walkers that can all be evaluated."""


def subject(question: DirectionSum) -> str:
    return "the loop" if question.replay else "the sum over directions"


class Trial:
    """One evaluation of a sum over directions beside the forward Laplacians of candidates."""

    def __init__(
        self,
        question: DirectionSum,
        numbers: ValueNumbers,
        x: Value,
        walkers: int,
        outputs: Sequence[Value],
        resize: bool = True,
    ) -> None:
        self.question, self.flat, self.x = question, question.flat, x
        self.walkers, self.outputs = walkers, list(outputs)
        self.targets = [t for t in question.targets if t.type == question.targets[0].type]
        inner = x.type.shape[walkers:]
        each = 3 if inner[-1] == 3 or (len(inner) == 1 and inner[0] % 3 == 0) else 1
        self.coordinates = Coordinates(math.prod(inner) // each, each)
        self.gradients = self._possible_gradients()
        self.inputs = self._inputs()
        self.nodes = live_nodes(self.flat.nodes, self.inputs, self._wanted())
        self.cone = live_nodes(self.flat.nodes, self.inputs, self.outputs)
        live = live_nodes(self.flat.nodes, self.inputs, [*self.targets, *self.outputs])
        self.saturating = saturating(live, reached(self.flat, [x]))
        self.cover = BranchCover(self.flat.nodes, self.inputs, self.targets, question.replay, numbers, outputs)
        many = math.prod(x.type.shape[:walkers])
        if not many:
            raise NoLaplacian("there are no walkers, and nothing to try")
        axes = walker_axes(self.flat, [(x, 0)]) if walkers == 1 and resize else {}
        summed = live_nodes(self.flat.nodes, self.inputs, self.targets)
        if axes and (reason := told_apart(walk(summed), axes)) is not None:
            if many > FEW_ENOUGH:
                raise NoLaplacian(reason)
            axes = {}
        # As many walkers as coordinates may be taken for one another: then the program keeps its own number.
        self.axes = axes = axes if axes.get(x) == {0} else {}
        if not axes and many > FEW_ENOUGH:
            raise NoLaplacian(f"{many} walkers are too many to try, and a few of them cannot be told from their shapes")
        self.raising = Turning(
            widen=True,
            shapes=resized_shapes(axes, many, min(many, _WALKERS)),
            fold=True,
            numbers=numbers,
            slots=self.cover.slots,
            turned=self.cover.turned | asking(self.cone, self.cover.slots, numbers),
        )
        self.one = Raising(shapes=resized_shapes(axes, many, 1))
        self.ties = tie_slopes(self.flat.walk(), walk(self.cone), numbers)

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

    def _wanted(self) -> list[Value]:
        initial = self.question.initial
        return [*self.targets, *self.gradients, *([initial] if initial is not None else [])]

    def _inputs(self) -> list[Value]:
        """``x``, and the arguments that are read when it is given."""
        nodes = live_nodes(self.flat.nodes, [*self.flat.arguments, self.x], [*self._wanted(), *self.outputs])
        read = {value for node in nodes for value in reads(node)}
        return [self.x, *(a for a in self.flat.arguments if a in read and a is not self.x)]

    def run(self) -> Laplacian | None:
        """The candidate that passes, if one does; NoLaplacian if one passes that was not seen on all its branches."""

        def evaluate(turn: Any, *arrays: Any) -> Any:
            self.raising.turn[:] = [turn]
            environment = dict(zip(self.inputs, arrays, strict=True))
            self.raising.run(self.nodes, environment)
            covered = self.cover.evaluate(self.raising, environment)
            engine = TurnedLaplacian(self.x, self.coordinates, self.walkers, self.raising, self.one, ties=self.ties)
            jets = engine.run(self.cone, dict(zip(self.inputs, arrays, strict=True)), self.outputs)
            jets = [densify(jet, self.coordinates) for jet in jets]
            laps = [jnp.zeros(jet.shape) if jet.lap is None else jet.lap for jet in jets]
            start = 0.0 if self.question.initial is None else environment[self.question.initial]
            sums = [environment[target] - start for target in self.targets]
            gradients, rows = [environment[value] for value in self.gradients], [jet.rows for jet in jets]
            return (
                sums,
                gradients,
                laps,
                rows,
                covered,
                slopes(self.saturating, self.flat.nodes, self.raising, environment),
            )

        with jax.enable_x64(True):
            draws = [self._draw(seed, scale) for seed, scale in DRAWS]
            try:
                compiled = (
                    jax.jit(evaluate, compiler_options=CPU_OPTIONS).lower(self.cover.turn(None), *draws[0]).compile()
                )
            except (RaiseError, NotImplementedError, TypeError, ValueError) as error:
                if isinstance(error, TypeError | ValueError) and not self.axes:
                    raise  # shapes that do not fit are expected only where axes are taken for those of walkers
                raise RaiseError(
                    f"{subject(self.question)} cannot be evaluated: {str(error).splitlines()[0]}"
                ) from error

            def results(turn: np.ndarray, draws: Sequence[Sequence[np.ndarray]]) -> list[Any]:
                return [jax.tree.map(np.asarray, compiled(turn, *draw)) for draw in draws]

            plain = results(self.cover.turn(None), draws)
            not_seen: NotSeen | None = None
            for which, at, scale in self._equal(plain):
                turn = self.cover.turn(self.outputs[at])
                turned = [
                    result
                    for number, how in enumerate(TURNED_DRAWS if turn.any() else (), start=1)
                    for result in results(number * turn, [self._draw(*how)])
                ]
                agree = [equal_where_finite(result[0][which], scale * result[2][at], TOLERANCE) for result in turned]
                if False in agree:
                    continue
                try:
                    if None in agree:
                        raise NotSeen(f"{subject(self.question)} is not finite where questions are answered otherwise")
                    found = self._found(which, at, scale, plain, turned)
                    self._require_open_doors(which, at, turn)
                    self._require_one_value(which, at, scale, plain, results)
                    self._require_everywhere(which, at, scale, plain, results)
                    return self._where_tied(found, which, at, plain, results)
                except NotSeen as reason:
                    not_seen = not_seen or reason
            if not_seen is not None:
                raise not_seen
        return None

    def _where_tied(
        self, found: Laplacian, which: int, at: int, plain: Sequence[Any], results: Callable[..., list[Any]]
    ) -> Laplacian:
        """``found`` with the gradients that are the program's at ties, too; NotSeen if its Laplacian is not."""
        gradients = [self.gradients.index(value) for value in found.gradients]

        def pairs(result: Any) -> Pairs:
            own = [result[1][i] for i in gradients]
            return paired(result[0][which], found.scale * result[2][at], own, result[3][at])

        differing = differing_where_tied(
            lambda draw: pairs(results(self.cover.turn(None), [draw])[0]),
            lambda: self._draw(*DRAWS[0]),
            (self.coordinates.electrons, self.coordinates.each),
            list(map(pairs, plain)),
        )
        if 0 in differing:
            raise NotSeen(f"{subject(self.question)} {DIFFERS}")
        kept = tuple(value for at, value in enumerate(found.gradients, start=1) if at not in differing)
        return replace(found, gradients=kept)

    def _require_open_doors(self, which: int, at: int, turn: np.ndarray) -> None:
        """NotSeen if something that the sum hides behind questions never came through."""
        found = self.cover.doors(self.outputs[at], self.targets[which])
        if not found:
            return
        evaluate = open_doors(found, self.raising, self.nodes, self.inputs, self.targets[which], self.question.replay)
        draws = [(0 * turn, how) for how in DRAWS]
        draws += [(number * turn, how) for number, how in enumerate(TURNED_DRAWS if turn.any() else (), start=1)]
        try:
            compiled = jax.jit(evaluate, compiler_options=CPU_OPTIONS).lower(turn, *self._draw(*DRAWS[0])).compile()
        except NotImplementedError as error:
            raise RaiseError(f"{subject(self.question)} has no adjoint: {str(error).splitlines()[0]}") from error
        seen = (compiled(number, *self._draw(*how)) for number, how in draws)
        if (door := closed(found, seen)) is not None:
            raise NotSeen(
                f"{subject(self.question)} lets through what several comparisons must let through together "
                f"({place(door.node)}), which no point tried has"
            )

    def _require_one_value(
        self, which: int, at: int, scale: float, plain: Sequence[Any], results: Callable[..., list[Any]]
    ) -> None:
        """NotSeen if the value asks what the sum does not, and neither was it seen both ways, nor has it with any
        answer the same Laplacian (as log|u| has)."""
        unseen = self.cover.asked_alone(self.outputs[at], [result[4] for result in plain])
        if not unseen:
            return
        question, was = next((each for each in unseen if each[1] is None), unseen[0])
        turn = self.cover.turn(self.outputs[at], alone=True)
        if was is not None and turn.any():
            turned = [
                result
                for number, how in enumerate(TURNED_DRAWS, start=1)
                for result in results(number * turn, [self._draw(*how)])
            ]
            if all(equal_where_finite(result[0][which], scale * result[2][at], TOLERANCE) for result in turned):
                return
        tried = "" if was is None else f", which was {was} wherever it was tried"
        raise NotSeen(
            f"{subject(self.question)} has a value that compares what it does not ({place(question.node)}){tried}"
        )

    def _require_everywhere(
        self, which: int, at: int, scale: float, plain: Sequence[Any], results: Callable[..., list[Any]]
    ) -> None:
        """NotSeen if the sum is another function at distances that walkers have, or if a function that saturates has no
        slope at any of these."""
        usual = float(np.median(np.abs([result[0][which] for result in plain])))
        cone = set(live_nodes(self.flat.nodes, self.inputs, [self.outputs[at], self.targets[which]]))
        kept = [i for i, node in enumerate(self.saturating) if node in cone]
        nodes = [self.saturating[i] for i in kept]
        seen = [[result[5][i] for i in kept] for result in plain]
        none = self.cover.turn(None)
        for number in range(_MOST_FAR_DRAWS):
            if number >= _FAR_DRAWS and vanishing(nodes, seen, self.axes) is None:
                return
            draw = self._far_draw(number)
            [result] = results(none, [draw])
            seen.append([result[5][i] for i in kept])
            roundings = [_rounded(draw, seed) for seed in range(_ROUNDINGS)]
            if not _agree(which, at, scale, [result], usual) and not _agree(
                which, at, scale, [result, *results(none, roundings)], usual
            ):
                raise NotSeen(
                    f"{subject(self.question)} is another function than its value at distances of "
                    f"{_NEAREST_BOHR:g} to {_FARTHEST_BOHR:g} bohr"
                )
        if (node := vanishing(nodes, seen, self.axes)) is not None:
            raise NotSeen(f"{subject(self.question)} has a value that saturates wherever it was tried ({place(node)})")

    def _far_draw(self, number: int) -> list[np.ndarray]:
        """As ``_draw``, but electrons at distances of their own from the origin: all of a walker, or one.

        The distances of all draws divide the logarithm of their range evenly, in random order.
        """
        arrays = self._draw(_FIRST_FAR_SEED + number, 1.0)
        x = arrays[0].reshape(-1, self.coordinates.electrons, self.coordinates.each)
        nearest, moved = (_NEAREST_BOHR, x) if number % 2 == 0 else (_NEAR_BOHR, x[:, [number // 2 % x.shape[1]]])
        each = moved.shape[0] * moved.shape[1]
        ordered = np.random.default_rng(0).permutation(_MOST_FAR_DRAWS // 2 * each).reshape(-1, *moved.shape[:2])
        distances = nearest * (_FARTHEST_BOHR / nearest) ** ((ordered[number // 2] + 0.5) / ordered.size)
        moved = moved * (distances / np.linalg.norm(moved, axis=-1))[..., None]
        if number % 2 == 0:
            x[:] = moved
        else:
            x[:, [number // 2 % x.shape[1]]] = moved
        return arrays

    def _draw(self, seed: int, scale: float) -> list[np.ndarray]:
        """Random values of the inputs; the last walker is the first with two electrons exchanged."""
        random = np.random.default_rng(seed)
        arrays = []
        for value in self.inputs:
            shape, dtype = self.raising.shape(value), self.raising.dtype(value.type)
            if np.issubdtype(dtype, np.bool_):
                arrays.append(random.integers(0, 2, shape).astype(bool) if shape else np.asarray(seed % 2 == 1))
                continue
            if not np.issubdtype(dtype, np.inexact):
                arrays.append(np.asarray(random.integers(0, 8, shape) if shape else seed).astype(dtype))
                continue
            spread = scale if value is self.x else 1 / math.sqrt(shape[0]) if len(shape) == 2 else 1.0
            arrays.append(np.asarray(spread * random.standard_normal(shape)).astype(dtype))
        x = arrays[0].reshape(-1, self.coordinates.electrons, self.coordinates.each)
        if len(x) > 1:
            x[-1] = x[0]
            x[-1, [0, -1]] = x[0, [-1, 0]]
        return arrays

    def _equal(self, results: Sequence[Any]) -> Iterator[tuple[int, int, float]]:
        """(target, output, constant factor) of those that agree."""
        for which in range(len(self.targets)):
            for at in range(len(self.outputs)):
                sums, laps = (np.stack([result[part][i] for result in results]) for part, i in ((0, which), (2, at)))
                if (scale := common_factor(sums, laps)) is not None:
                    yield which, at, scale

    def _found(self, which: int, at: int, scale: float, results: Sequence[Any], turned: Sequence[Any]) -> Laplacian:
        """The finding; NoLaplacian if what was seen does not cover all branches."""
        everywhere = [result for result in turned if np.isfinite(result[0][which]).all()]
        complaint = self.cover.complaint(self.outputs[at], [result[4] for result in (*results, *everywhere)])
        numbers = self.cover.numbers
        cone = list(walk(live_nodes(self.flat.nodes, self.inputs, [self.outputs[at]])))
        summed = list(walk(live_nodes(self.flat.nodes, self.inputs, [self.targets[which]])))
        shared = {numbers.get(value) for node in cone for value in node.results}
        own = [node for node in summed if node.results and numbers.get(node.results[0]) not in shared]
        read = {value for node in cone for value in reads(node)}
        complaint = complaint or own_choices(self.flat, self.x, own, read) or nan_guards(cone, summed, numbers)
        complaint = complaint or rounded(cone, own) or told_apart(cone, self.axes)
        if complaint is not None:
            raise NotSeen(f"{subject(self.question)} {complaint}")
        if (reason := less_precise(cone, own)) is not None:
            raise NoLaplacian(f"{subject(self.question)} is not taken from its value: {reason}")
        return Laplacian(
            self.x,
            self.coordinates,
            self.walkers,
            self.outputs[at],
            self.targets[which],
            scale,
            tuple(value for i, value in enumerate(self.gradients) if self._is_gradient(i, at, [*results, *everywhere])),
            self.axes,
            self.one,
            ties=self.ties,
        )

    def _is_gradient(self, i: int, at: int, results: Sequence[Any]) -> bool:
        """Whether a value is the gradient at every point tried, and asks nothing of its own that these may not show."""
        value = self.gradients[i]
        if is_chosen(value) or not are_derivatives((result[1][i], result[3][at]) for result in results):
            return False
        return self.cover.asks_as(value, self.outputs[at])


def _rounded(arrays: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """``arrays`` with every float moved by a rounding or not at all."""
    random = np.random.default_rng(seed)
    return [
        (array * (1 + np.finfo(array.dtype).eps * random.integers(-1, 2, array.shape))).astype(array.dtype)
        if np.issubdtype(array.dtype, np.inexact)
        else array
        for array in arrays
    ]


def _agree(which: int, at: int, scale: float, results: Sequence[Any], usual: float) -> bool:
    """Whether sum and Laplacian of the first of ``results`` agree where the sum is finite in all of them.

    The others are of other roundings of the same inputs: far away psi underflows, and electrons at very different
    distances make it ill-conditioned. ``usual`` is the size of the sum near by. A Laplacian that is not finite where
    the sum is differs.
    """
    sums = np.stack([result[0][which] for result in results])
    laps = np.stack([scale * result[2][at] for result in results])
    finite = np.isfinite(sums).all(0)
    if not np.isfinite(laps[:, finite]).all():
        return False
    found = np.stack([sums, laps], axis=1)[..., finite]
    first = found[0]
    spread = np.abs(found - first).max((0, 1))
    allowed = TOLERANCE * np.abs(first).max(0) + _SPREAD_FACTOR * spread + _NEGLIGIBLE * usual
    return bool((np.abs(first[0] - first[1]) <= allowed).all())
