"""Whether the derivatives of a decision are those of the program where inputs are equal: see ``equal_inputs``."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.laplacian.jet import Coordinates
from fusionlab.codegen.laplacian.state import Options
from fusionlab.codegen.raising import RaiseError
from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import FieldWithGuards, PrimeField, primes
from fusionlab.equivalence.exact.values import Array, Drawn
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.view import FunctionView, Value
from fusionlab.passes.fuse_jvp_replay.identify import equal_inputs
from fusionlab.passes.fuse_jvp_replay.identify.derivatives import along_each, laplacians, state_of
from fusionlab.passes.fuse_jvp_replay.identify.evaluating import DRAWS, in_two_parts
from fusionlab.passes.fuse_jvp_replay.identify.trial import ProductTrial
from fusionlab.passes.fuse_jvp_replay.second_derivatives import adjoint_is_defined, second_derivatives
from fusionlab.passes.fuse_jvp_replay.tail import Tail
from fusionlab.passes.refusals import Ground, Refusal


def gradients_at_ties(
    trial: ProductTrial,
    stopped: tuple[Value, ...],
    options: Options,
    tail: Tail,
    gradients: Mapping[Value, Value],
    some: Sequence[int],
) -> dict[Value, Value]:
    """The ``gradients`` that are derivatives at equal inputs; Refusal if a cut is no derivative there.

    ``some``: where weights leave coordinates out, by which there may be no derivative, the others, each for itself.
    """
    lowered, count, kept = trial.lowered(stopped, options), len(trial.inputs), dict(gradients)
    masks = _tied_directions(trial.coordinates, some)
    changing = lowered.arguments[count : count + 2] if len(masks) > 1 else lowered.arguments
    same, rest, size = in_two_parts(lowered, changing, trial.prepared)
    for part, arguments in trial.batches_at_equal_inputs(lowered, trial.inputs, size):
        evaluator = Evaluator(part, trial.prepared)
        shared = trial.held(same, evaluator, arguments)
        for at, along in masks:
            directions = [_masked(each, along) for each in arguments[count : count + 2]]
            given = [*arguments[:count], *directions, *arguments[count + 2 :]]
            found = trial.results(trial.evaluated(rest, evaluator, [*given, *shared]), given)
            for cut in tail.cuts:
                if cut.order == 2 and some and at not in some:
                    continue
                f = trial.outputs.index(cut.of)
                ours, expected = found.both(part, cut, f, cut.order, bool(some))
                assert ours is not None
                assert expected is not None
                scaled = part.multiply(part.embedded(np.asarray(cut.scale)), expected)
                known = ~(np.isnan(ours) | np.isnan(found.values[f])[:, None])
                if (ours[known] != scaled[known]).any():
                    raise Refusal(Ground.TIES, f"{trial.subject} {equal_inputs.DIFFERS}", is_final=True)
            for gradient, output in list(kept.items()):
                i, f = trial.gradients.index(gradient), trial.outputs.index(output)
                if not found.is_gradient(part, i, f, where_known=True):
                    del kept[gradient]
    return kept


def _masked(direction: Drawn, along: Array | None) -> Drawn:
    return direction if along is None else Drawn(direction.array * along)


def adjoint_holds(trial: ProductTrial, outputs: Sequence[Value], stopped: tuple[Value, ...], options: Options) -> bool:
    """True if second derivatives by the adjoint are those along each direction, also at equal inputs."""
    cone = live_nodes(trial.flat.nodes, trial.inputs, outputs)
    if not adjoint_is_defined(trial.flat, trial.x, trial.nodes, cone, trial.numbers):
        return False

    def results(*arrays: Any) -> list[Any]:
        given = dict(zip(trial.inputs, arrays, strict=True))
        state = state_of(trial, trial.coordinates, stopped, options)
        ours = [second_derivatives(state, trial.flat, cone, output, given, trial.marks)[0] for output in outputs]
        every = along_each(trial, given, outputs, cone, stopped, options, np.eye(trial.coordinates.count))
        return [*ours, *(jnp.moveaxis(each, 0, -1) for each in every)]

    return _agree(trial, results, len(outputs), ties_alone=False)


def weights_hold(
    trial: ProductTrial, outputs: Sequence[Value], weights: Sequence[Fraction], stopped: tuple[Value, ...],
    options: Options,
) -> bool:  # fmt: skip
    """True if one forward Laplacian with ``weights``, of which some are 0, is the sum along the other directions, at
    equal inputs: 0 times a derivative that is undefined is undefined."""
    cone = live_nodes(trial.flat.nodes, trial.inputs, outputs)
    numbers = np.array([float(weight) for weight in weights])

    def results(*arrays: Any) -> list[Any]:
        given = dict(zip(trial.inputs, arrays, strict=True))
        of = replace(trial.coordinates, weights=numbers)
        ours = laplacians(trial, of, given, outputs, cone, stopped, options)
        directions = np.eye(len(numbers))[numbers != 0]
        every = along_each(trial, given, outputs, cone, stopped, options, directions)
        return [*ours, *(jnp.tensordot(numbers[numbers != 0], each, 1) for each in every)]

    return _agree(trial, results, len(outputs), ties_alone=True)


def _agree(trial: ProductTrial, results: Callable[..., list[Any]], count: int, ties_alone: bool) -> bool:
    """True if the first ``count`` of ``results`` are the others, wherever these are defined, at equal inputs, and in
    draws unless ``ties_alone``."""

    def batches(lowered: FunctionView) -> Iterator[tuple[PrimeField, list[Drawn]]]:
        for p, draws in () if ties_alone else zip(primes(len(DRAWS)), DRAWS, strict=True):
            yield from trial.batches(lowered, FieldWithGuards(p, [seed for seed, _ in draws]))
        yield from trial.batches_at_equal_inputs(lowered, trial.inputs)

    try:
        lowered = trial.view_of(results)
        for part, arguments in batches(lowered):
            found = trial.evaluated(lowered, Evaluator(part, trial.prepared), arguments)
            for left, right in zip(found[:count], found[count:], strict=True):
                if (~np.isnan(right) & (left != right)).any():
                    return False
    except (Refusal, RaiseError, NotImplementedError):
        return False
    return True


def _tied_directions(of: Coordinates, some: Sequence[int]) -> list[tuple[int | None, Array | None]]:
    """Masks [K] of directions at equal inputs: all, and those of the first electron; where only ``some`` have weights,
    each coordinate alone, with its number."""
    if some:
        return [*enumerate(np.eye(of.count))]
    first = np.zeros(of.count)
    first[: of.each] = 1
    return [(None, None), (None, first)] if of.electrons > 1 else [(None, None)]
