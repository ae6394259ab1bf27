"""A program of few walkers, evaluated in prime fields: what every identification does, whatever it compares."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax
import numpy as np

from fusionlab.codegen.laplacian.jet import Coordinates
from fusionlab.codegen.raising import RaiseError, Raising
from fusionlab.equivalence.exact.evaluation import Evaluator, Prepared
from fusionlab.equivalence.exact.field import FieldWithUndefined, PrimeField, primes
from fusionlab.equivalence.exact.integers import KINDS
from fusionlab.equivalence.exact.values import Array, Drawn, same_draws
from fusionlab.equivalence.exact.values import Uncovered as NoExactMeaning
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Marks, resized_shapes
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.value_numbers import simplified_view
from fusionlab.hlo.view import FunctionView, Node, Value
from fusionlab.passes.fuse_jvp_replay import equal_inputs
from fusionlab.passes.fuse_jvp_replay.guards import FEWEST_WALKERS, Complaint
from fusionlab.passes.fuse_jvp_replay.no_laplacian import LimitReached, NotALaplacian, Unevaluated
from fusionlab.passes.fuse_jvp_replay.singularity import singularity_tests
from fusionlab.passes.refusals import Ground, refused

MOST_SECONDS = 600.0
"""The limit for all decisions of one pass on a program."""
FEW_ENOUGH = 64
"""The largest number of walkers of which all are evaluated."""
_MOST_WALKERS = 16
_FLOPS = 1e8
"""The number of walkers that are evaluated: of about so many FLOPs together in the program, within these limits."""
AT_ONCE, MOST_ELEMENTS = 2**26, 2**28
"""The most residues of draws that are evaluated together, if several, and of one draw."""
DRAWS = (((0, 1.0), (1, 0.0), (2, 0.75)), ((1, 0.5),))
"""For each prime the draws: seed, and the probability with which it is steered to make a value of predicates non-zero.

Those of odd seeds have values that pass for NaN or infinity."""

DRAWS_OF_INTEGERS = tuple((seed, 0.5) for seed in range(4 * KINDS))
"""Those beside them of each kind of integers, at some of which a value may be constant."""


def end_of_search() -> float:
    """The deadline for decisions that begin now."""
    return time.monotonic() + MOST_SECONDS


class Evaluation:
    """The walkers that are evaluated, and how: what identifications of a sum share.

    ``subject`` is the name of the sum in messages. ``marks`` are the axes that count walkers along each leading axis
    that can be resized.
    """

    subject: str
    deadline: float
    coordinates: Coordinates
    inputs: list[Value]
    marks: dict[int, Marks]
    raising: Raising
    prepared: Prepared

    def view_of(
        self, results: Callable[..., Any], more: Sequence[tuple[int, ...]] = (), inputs: Sequence[Value] | None = None
    ) -> FunctionView:
        """``results`` of the inputs and of ``more`` floats; Unevaluated where it cannot be lowered."""
        inputs = self.inputs if inputs is None else inputs
        types = [jax.ShapeDtypeStruct(self.raising.shape(v), self.raising.dtype(v.type)) for v in inputs]
        types += [jax.ShapeDtypeStruct(shape, types[0].dtype) for shape in more]
        with jax.enable_x64(True):
            try:
                lowered = jax.jit(results, keep_unused=True).trace(*types).lower(lowering_platforms=("cpu",))
            except (RaiseError, NotImplementedError, TypeError, ValueError) as error:
                if isinstance(error, TypeError | ValueError) and not self.marks:
                    raise  # shapes that do not fit are expected only where axes are taken for those of walkers
                said = refused(error) if isinstance(error, RaiseError | NotImplementedError) else None
                why = said.reason if said is not None else str(error).splitlines()[0]
                reason = f"{self.subject} cannot be evaluated: {why}"
                if said is None:
                    raise Unevaluated(Ground.AXES_MISTAKEN, reason) from error
                raise Unevaluated(said.ground, reason, said.op) from error
        view = simplified_view(lowered.compiler_ir("stablehlo"))
        found = replace(view, nodes=live_nodes(view.nodes, view.arguments, view.returns))
        self.prepared.unguarded |= singularity_tests(found)
        return found

    def batches(
        self, lowered: FunctionView, field: PrimeField, change: Callable[[int, Array], Array] = lambda _, array: array
    ) -> Iterator[tuple[PrimeField, list[Drawn]]]:
        """``field`` for the draws that are evaluated together, all or as many as memory allows, and their arguments."""
        size = elements_at_once(lowered, self.prepared)
        if size > MOST_ELEMENTS:
            held = f"{size:,} numbers are held at once, more than {MOST_ELEMENTS:,}"
            raise LimitReached(Ground.TOO_LARGE, f"{self.subject} is too large to be identified: {held}")
        draws, some = len(field.seeds), max(AT_ONCE // max(size, 1), 1)
        integers = self.prepared.integers_of(lowered)
        field = type(field)(field.p, field.seeds, integers)
        arrays = [change(i, held.array) for i, held in enumerate(Evaluator(field).drawn_arguments(lowered))]
        for at in range(0, draws, some):
            part = type(field)(field.p, field.seeds[at : at + some], integers)
            yield part, [Drawn(array[at : at + some]) for array in arrays]

    def batches_at_equal_inputs(
        self, lowered: FunctionView, inputs: Sequence[Value], walkers: int,
        change: Callable[[int, Array], Array] = lambda _, array: array,
    ) -> Iterator[tuple[PrimeField, list[Drawn]]]:  # fmt: skip
        """As ``batches``, with equal values among the ``inputs``, the first arguments, of so many ``walkers``, where
        1 / 0 is undefined; ``change`` is of the arguments after them.

        Each tie comes with each kind of integers, where the program has integers as arguments.
        """
        [p], of = primes(1), self.coordinates

        def tied(number: int, array: Array) -> Array:
            if number < len(inputs):
                return equal_inputs.coincident(number, array, of.electrons, of.each)
            return change(number, array)

        for kind in range(KINDS if any(value.dtype in ops.INTEGERS for value in inputs) else 1):
            seeds = [seed + kind for seed in equal_inputs.draws(walkers)]
            yield from self.batches(lowered, FieldWithUndefined(p, seeds), tied)

    def evaluated(self, lowered: FunctionView, evaluator: Evaluator, arguments: list[Drawn]) -> list[Array]:
        """The results of ``lowered``; LimitReached after the deadline, Unevaluated without exact meaning."""

        def tick() -> None:
            if time.monotonic() > self.deadline:
                reason = f"{self.subject} was not identified within {MOST_SECONDS:g} s"
                raise LimitReached(Ground.TOO_LONG, reason)

        evaluator.tick = tick
        try:
            return same_draws(evaluator.outputs(lowered, arguments))
        except NoExactMeaning as error:
            reason = f"{self.subject} has no exact meaning: {error}"
            raise Unevaluated(Ground.NO_EXACT_MEANING, reason) from error


def walkers_to_evaluate(per_walker: float) -> int:
    """The number of walkers that are evaluated, of so many FLOPs each."""
    return int(np.clip(_FLOPS / max(per_walker, 1), FEWEST_WALKERS, _MOST_WALKERS))


def resized(marks: Mapping[int, Marks], walkers: Sequence[int], few: int) -> dict[Value, tuple[int, ...]]:
    """The shapes of values at ``few`` of the ``walkers`` along the longest axis that can be resized, and at two at most
    along others."""
    longest = max(marks, key=lambda axis: walkers[axis], default=None)
    shapes: dict[Value, tuple[int, ...]] = {}
    for axis, of_axis in marks.items():
        to = min(walkers[axis], few if axis == longest else min(few, FEWEST_WALKERS))
        shapes = resized_shapes(of_axis, walkers[axis], to, shapes)
    return shapes


def resizable(walkers: Sequence[int], marks_of: Callable[[int], Marks | Complaint | None]) -> dict[int, Marks]:
    """The axes that count walkers along each leading axis of the extents ``walkers`` that can be resized, as
    ``marks_of`` has them; NotALaplacian where the others, for which it has a complaint or None, have too many."""
    marks: dict[int, Marks] = {}
    kept, because = 1, None
    for axis, extent in enumerate(walkers):
        if extent == 1 and len(walkers) > 1:
            continue
        found = marks_of(axis)
        if isinstance(found, dict):
            marks[axis] = found
        else:
            kept *= extent
            because = found or because
    if kept > FEW_ENOUGH:
        unknown = Complaint(Ground.WALKERS_UNKNOWN, "their shapes do not show which axes count them")
        ground, why, node = because or unknown
        raise NotALaplacian(ground, f"{kept} walkers are too many to evaluate, and {why}", node)
    return marks


def not_computed(nodes: Sequence[Node], environment: Collection[Value]) -> list[Node]:
    """The ``nodes`` with results that are not in ``environment``."""
    return [node for node in nodes if not all(value in environment for value in node.results)]


def elements_at_once(function: FunctionView, prepared: Prepared) -> int:
    """The peak number of elements of live values of ``function``, without those inside its loops.

    A broadcast is a view in evaluation: it counts as its operand, which it keeps.
    """

    def held(value: Value) -> int:
        node = value.producer
        kept = node.operands[0] if node is not None and node.op is ops.BROADCAST_IN_DIM else value
        return math.prod(kept.type.shape)

    def elements(values: Iterable[Value]) -> int:
        return sum(map(held, values))

    units, dying = prepared.units_of(function, fuses=True)
    most = alive = elements(function.arguments)
    for unit in units:
        alive += elements(unit.results)
        most = max(most, alive)
        alive -= elements(dying.get(unit, ()))
    return most
