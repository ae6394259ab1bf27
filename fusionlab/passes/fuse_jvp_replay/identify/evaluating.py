"""A program of few walkers, evaluated in prime fields: what every identification does, whatever it compares."""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import jax

from fusionlab.codegen.laplacian.jet import Coordinates
from fusionlab.codegen.raising import RaiseError, Raising
from fusionlab.equivalence.exact.coverage import rare_comparisons
from fusionlab.equivalence.exact.evaluation import Evaluator, Prepared
from fusionlab.equivalence.exact.field import FieldWithUndefined, PrimeField, primes
from fusionlab.equivalence.exact.integers import KINDS
from fusionlab.equivalence.exact.singularity import singularity_tests
from fusionlab.equivalence.exact.values import Array, Drawn, Held, same_draws
from fusionlab.equivalence.exact.values import Uncovered as NoExactMeaning
from fusionlab.hlo import ops
from fusionlab.hlo.batch_axes import Marks
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.value_numbers import simplified_view
from fusionlab.hlo.view import FunctionView, Node, Value, reads
from fusionlab.passes.fuse_jvp_replay.identify import equal_inputs
from fusionlab.passes.refusals import Ground, Refusal, refused

MOST_SECONDS = 600.0
"""The limit for all decisions of one pass on a program."""
AT_ONCE, MOST_ELEMENTS = 2**26, 2**28
"""The most residues of draws that are evaluated together, if several, and of one draw."""
DRAWS = (((0, 1.0), (1, 0.0), (2, 0.75)), ((1, 0.5),))
"""For each prime the draws: seed, and the probability with which it is steered to make a value of predicates non-zero.

Those of odd seeds have values that pass for NaN or infinity."""

DRAWS_OF_INTEGERS = tuple((seed, 0.5) for seed in range(4 * KINDS))
"""Those beside them of each kind of integers, at some of which a value may be constant."""
DRAWS_OF_RARE = tuple((seed, 0.5) for seed in range(1, 2 * KINDS, 2))
"""Those beside them in which rare comparisons have any outcome."""


def end_of_search() -> float:
    """The deadline for decisions that begin now."""
    return time.monotonic() + MOST_SECONDS


class Evaluation:
    """The walkers that are evaluated, and how: what identifications of a sum share.

    ``subject`` is the name of the sum in messages, ``walkers`` the number of leading axes of ``x``. ``marks`` are the
    axes that count walkers along each leading axis that can be resized. ``of_several`` groups of outputs: what is too
    large for all together is not for each.
    """

    def __init__(
        self, subject: str, deadline: float, x: Value, walkers: int, coordinates: Coordinates, of_several: bool
    ) -> None:
        self.subject, self.deadline, self.prepared, self.of_several = subject, deadline, Prepared(), of_several
        self.x, self.walkers, self.coordinates = x, walkers, coordinates
        self.marks: dict[int, Marks] = {}

    def take(
        self, inputs: list[Value], marks: dict[int, Marks], few: Raising, one: Raising,
        subgradients: Mapping[Value, int],
    ) -> None:  # fmt: skip
        """Evaluate functions of ``inputs``, raised at a few walkers, or at one."""
        self.inputs, self.marks, self.raising, self.one, self.subgradients = inputs, marks, few, one, subgradients

    def view_of(
        self, results: Callable[..., Any], more: Sequence[tuple[int, ...]] = (), inputs: Sequence[Value] | None = None
    ) -> FunctionView:
        """``results`` of the inputs and of ``more`` floats; Refusal where it cannot be lowered."""
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
                    raise Refusal(Ground.AXES_MISTAKEN, reason) from error
                raise Refusal(said.ground, reason, said.op) from error
        view = simplified_view(lowered.compiler_ir("stablehlo"))
        found = replace(view, nodes=live_nodes(view.nodes, view.arguments, view.returns))
        self.prepared.unguarded |= singularity_tests(found)
        self.prepared.rare |= rare_comparisons(found)
        return found

    def batches(
        self, lowered: FunctionView, field: PrimeField, change: Callable[[int, Array], Array] = lambda _, array: array,
        size: int | None = None,
    ) -> Iterator[tuple[PrimeField, list[Drawn]]]:  # fmt: skip
        """``field`` for the draws that are evaluated together, all or as many as memory allows, and their arguments.

        ``size``: as many elements are held at once of one draw; by default those of ``lowered`` as a whole."""
        size = elements_at_once(lowered, self.prepared) if size is None else size
        if size > MOST_ELEMENTS:
            held = f"{size:,} numbers are held at once, more than {MOST_ELEMENTS:,}"
            reason = f"{self.subject} is too large to be identified: {held}"
            raise Refusal(Ground.TOO_LARGE, reason, is_final=not self.of_several)
        draws = len(field.seeds)
        some = -(-draws // -(-draws // max(AT_ONCE // max(size, 1), 1)))  # in parts of about one length
        integers = self.prepared.integers_of(lowered)
        field = type(field)(field.p, field.seeds, integers)
        arrays = [change(i, held.array) for i, held in enumerate(Evaluator(field).drawn_arguments(lowered))]
        for at in range(0, draws, some):
            part = type(field)(field.p, field.seeds[at : at + some], integers)
            yield part, [Drawn(array[at : at + some]) for array in arrays]

    def batches_at_equal_inputs(
        self, lowered: FunctionView, inputs: Sequence[Value], size: int | None = None
    ) -> Iterator[tuple[PrimeField, list[Drawn]]]:
        """As ``batches``, with equal values among the ``inputs``, the first arguments, where 1 / 0 is undefined.

        Each tie comes with each kind of integers, where the program has integers as arguments.
        """
        [p], of, whole, tied_ones = primes(1), self.coordinates, self.x.type.shape[: self.walkers], len(inputs)
        walkers = math.prod(self.raising.shape(self.x)[: self.walkers])
        alike = all(extent == 1 or axis in self.marks for axis, extent in enumerate(whole))

        def tied(number: int, array: Array) -> Array:
            return equal_inputs.coincident(number, array, of.electrons, of.each, alike) if number < tied_ones else array

        for kind in range(KINDS if any(value.dtype in ops.INTEGERS for value in inputs) else 1):
            seeds = [seed + kind for seed in equal_inputs.draws(walkers, alike)]
            yield from self.batches(lowered, FieldWithUndefined(p, seeds), tied, size)

    def evaluated(self, lowered: FunctionView, evaluator: Evaluator, arguments: Sequence[Held]) -> list[Array]:
        """The results of ``lowered``; Refusal after the deadline, Refusal without exact meaning."""
        with self._limited(evaluator):
            return same_draws(evaluator.outputs(lowered, arguments))

    def held(self, lowered: FunctionView, evaluator: Evaluator, arguments: Sequence[Held]) -> list[Held]:
        """``evaluated``, with what values carry along with residues."""
        with self._limited(evaluator):
            return evaluator.region(lowered, arguments, {})

    @contextlib.contextmanager
    def _limited(self, evaluator: Evaluator) -> Iterator[None]:
        def tick() -> None:
            if time.monotonic() > self.deadline:
                reason = f"{self.subject} was not identified within {MOST_SECONDS:g} s"
                raise Refusal(Ground.TOO_LONG, reason, is_final=True)

        evaluator.tick = tick
        try:
            yield
        except NoExactMeaning as error:
            reason = f"{self.subject} has no exact meaning: {error}"
            raise Refusal(Ground.NO_EXACT_MEANING, reason) from error


def not_computed(nodes: Sequence[Node], environment: Collection[Value]) -> list[Node]:
    """The ``nodes`` with results that are not in ``environment``."""
    return [node for node in nodes if not all(value in environment for value in node.results)]


_VIEWS = (ops.BROADCAST_IN_DIM, ops.RESHAPE)
"""Ops whose results are views in evaluation."""
_TOGETHER = 4
"""The draws that can be evaluated together where a program is evaluated in two parts, at least."""


def in_two_parts(
    function: FunctionView, changing: Sequence[Value], prepared: Prepared
) -> tuple[FunctionView, FunctionView, int]:
    """What of ``function`` is the same for all values of the arguments ``changing``, the rest, and the elements of one
    draw that either holds at once.

    The rest has the arguments of the function, then the results of the first part. It computes constants itself, and
    views that it alone reads. The first part is empty where all arguments change, or where its results need too much
    memory.
    """
    changed, constant = set(changing), set[Value]()
    for node in function.nodes:
        if not changed.isdisjoint(reads(node)):
            changed.update(node.results)  # all of a loop's, which is evaluated as a whole
        if not node.op.control_flow and constant.issuperset(reads(node)):
            constant.update(node.results)
    first, second = list[Node](), list[Node]()
    by_first, by_second = set[Value](), set(function.returns)
    for node in reversed(function.nodes):
        here, later = not by_first.isdisjoint(node.results), not by_second.isdisjoint(node.results)
        if constant.issuperset(node.results):
            is_first, is_second = here, later
        else:
            is_second = not changed.isdisjoint(node.results) or (later and not here and node.op in _VIEWS)
            is_first = not is_second
        for nodes, read in [(first, by_first)] * is_first + [(second, by_second)] * is_second:
            nodes.append(node)
            read.update(reads(node))
    shared = tuple(v for node in first[::-1] for v in node.results if v in by_second and v not in constant)
    same = replace(function, nodes=first[::-1], returns=shared)
    rest = replace(function, arguments=(*function.arguments, *shared), nodes=second[::-1])
    size = max(elements_at_once(same, prepared), elements_at_once(rest, prepared, keeps_arguments=True))
    if not shared or size > AT_ONCE // _TOGETHER:
        return replace(function, nodes=[], returns=()), function, elements_at_once(function, prepared)
    return same, rest, size


def elements_at_once(function: FunctionView, prepared: Prepared, keeps_arguments: bool = False) -> int:
    """The peak number of elements of live values of ``function``, without those inside its loops.

    A broadcast is a view in evaluation: it counts as its operand, which it keeps. ``keeps_arguments``: they are read
    again when it ends.
    """

    def held(value: Value) -> int:
        node = value.producer
        source = node.operands[0] if node is not None and node.op is ops.BROADCAST_IN_DIM else value
        return math.prod(source.type.shape)

    def elements(values: Iterable[Value]) -> int:
        return sum(map(held, values))

    units, dying = prepared.units_of(function, fuses=True)
    most = alive = elements(function.arguments)
    kept = set(function.arguments) if keeps_arguments else set[Value]()
    for unit in units:
        alive += elements(unit.results)
        most = max(most, alive)
        alive -= elements(value for value in dying.get(unit, ()) if value not in kept)
    return most
