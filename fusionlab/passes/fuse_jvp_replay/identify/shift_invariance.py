"""Maxima that a function does not depend on, as those that a log-sum-exp is shifted by.

    m = max(h);  F = m + log(sum(exp(h - m)))         dF/dm = 0 for every m, with h held

Derivatives through such a value cancel to all orders: they are left out, and where several elements are the largest,
no rule decides between them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.equivalence.exact.field import FieldWithGuards, primes
from fusionlab.equivalence.exact.identity import evaluators
from fusionlab.hlo import ops
from fusionlab.hlo.constants import least_of
from fusionlab.hlo.dependence import reached
from fusionlab.hlo.view import FunctionView, Node, Value
from fusionlab.passes.fuse_jvp_replay.identify.evaluating import DRAWS, DRAWS_OF_INTEGERS, DRAWS_OF_RARE
from fusionlab.passes.fuse_jvp_replay.identify.trial import ProductTrial


def may_shift(node: Node) -> bool:
    """True for the largest or smallest element of an array along some axes."""
    if node.op is not ops.REDUCE or len(node.operands) != 2:
        return False
    return least_of(combiner(node.regions[0]), node.operands[1])


def extremes(trial: ProductTrial) -> list[Value]:
    """The maxima and minima in the cone of ``trial`` that depend on x: others have no derivatives anyway."""
    dependent = reached(trial.flat, [trial.x])
    return [node.results[0] for node in trial.cone if may_shift(node) and node.results[0] in dependent]


def invariant_shifts(trial: ProductTrial) -> dict[Value, set[Value]]:
    """For the ``extremes`` of ``trial`` the outputs that do not depend on the value.

    Each is moved by a random array, and the derivative along another is zero in all draws.
    """
    shifts, outputs = extremes(trial), trial.outputs
    if not shifts:
        return {}
    lowered = _slopes(trial, shifts)
    pairs = [(shift, output) for shift in shifts for output in outputs]
    left = set(pairs)
    of_integers = any(value.dtype in ops.INTEGERS for value in trial.inputs)
    more = DRAWS_OF_INTEGERS if of_integers else DRAWS_OF_RARE if trial.prepared.rare else ()
    for p, draws in zip(primes(len(DRAWS)), DRAWS, strict=True):
        share = dict((*draws, *more))
        for part, arguments in trial.batches(lowered, FieldWithGuards(p, list(share))):
            shares = [share[seed] for seed in part.seeds]
            for [evaluator] in evaluators(part, shares, trial.prepared, 1, trial.rounds):
                found = trial.evaluated(lowered, evaluator, arguments)
                left -= {pair for pair, slope in zip(pairs, found, strict=True) if slope.any()}
    return {shift: own for shift in shifts if (own := {output for of, output in left if of is shift})}


def _slopes(trial: ProductTrial, shifts: Sequence[Value]) -> FunctionView:
    """The derivatives of each output along an array of each of ``shifts``: of the inputs, how far each is moved, and
    these arrays. They are pushed: a loop behind an extreme has no transpose."""
    raising, inputs, outputs = trial.raising, trial.inputs, trial.outputs
    shapes = [raising.shape(shift) for shift in shifts]

    def moved(given: Mapping[Value, Any], by: Sequence[Any]) -> list[Any]:
        environment = dict(given)
        for node in trial.cone:
            raising.run([node], environment)
            if node.results[0] in shifts:
                value = node.results[0]
                environment[value] = environment[value] + by[shifts.index(value)].astype(raising.dtype(value.type))
        return [environment[output] for output in outputs]

    def slopes(*arrays: Any) -> list[Any]:
        given = dict(zip(inputs, arrays, strict=False))
        by, along = arrays[len(inputs) : len(inputs) + len(shifts)], arrays[len(inputs) + len(shifts) :]
        _, push = jax.linearize(lambda by: moved(given, by), list(by))
        none = [jnp.zeros_like(array) for array in along]
        return [slope for i, own in enumerate(along) for slope in push([*none[:i], own, *none[i + 1 :]])]

    return trial.view_of(slopes, [*shapes, *shapes])
