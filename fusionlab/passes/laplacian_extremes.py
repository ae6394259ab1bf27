"""Maxima and minima that the Laplacian of a value does not depend on.

    m = max_j x_j                                        lap F, with m taken for a constant:
    F = log sum_j exp(x_j - m) + m             -->           no comparison with m, no share of each x_j in m,
                                                             no sum of the rows of x by these shares

A logarithm of a sum of exponentials, and a softmax, are shifted by their maximum against overflow; the shift drops out
of the result and of all its derivatives. Codes say so (``stop_gradient``), compiled programs do not. Here it is found
as the value itself is (``laplacian_search``): the Laplacian and the gradient are evaluated without derivatives through
the extremes too, at the points where the value was found. Between the places where a comparison changes its outcome
both are analytic, and agree everywhere if they agree at random points.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.forward_laplacian.interpret import ForwardLaplacian
from fusionlab.codegen.forward_laplacian.jet import densify
from fusionlab.codegen.raising import RaiseError
from fusionlab.codegen.raising_rules.reduction import combiner
from fusionlab.hlo.flat import Value, walk
from fusionlab.passes.laplacian_trial import OPTIONS, Laplacian, Trial, common_factor, nearly_equal

_MOST = 16
"""Extremes that are tried one by one where not all of them together drop out."""


def without_extremes(trial: Trial, found: Laplacian) -> Laplacian:
    """``found``, with those extremes ``still`` through which no derivative has to pass."""
    extremes = [
        node.results[0]
        for node in walk(trial.cone)
        if node.name == "stablehlo.reduce"
        and len(node.operands) == 2
        and combiner(node.regions[0]) in ("maximum", "minimum")
    ]
    if not extremes:
        return found
    if _drop_out(trial, found, extremes):
        return replace(found, still=tuple(extremes))
    if len(extremes) == 1:
        return found
    some = [extreme for extreme in extremes[:_MOST] if _drop_out(trial, found, [extreme])]
    return replace(found, still=tuple(some)) if some and _drop_out(trial, found, some) else found


def _drop_out(trial: Trial, found: Laplacian, extremes: Sequence[Value]) -> bool:
    """Whether the Laplacian and the gradient are the same when ``extremes`` are taken for constants."""

    def evaluate(turn: Any, *arrays: Any) -> tuple[Any, Any]:
        trial.raising.turn[:] = [turn]
        engine = ForwardLaplacian(trial.x, trial.coordinates, trial.walkers, trial.raising, trial.one, still=extremes)
        [jet] = engine.run(trial.cone, dict(zip(trial.inputs, arrays, strict=True)), [found.output])
        jet = densify(jet, trial.coordinates)
        return jnp.zeros(jet.shape) if jet.lap is None else jet.lap, jet.rows

    with jax.enable_x64(True):
        first = trial.points[0]
        try:
            compiled = jax.jit(evaluate, compiler_options=OPTIONS).lower(first.turn, *first.inputs).compile()
        except (RaiseError, NotImplementedError, TypeError, ValueError):
            return False
        found_there = [jax.tree.map(np.asarray, compiled(point.turn, *point.inputs)) for point in trial.points]
    laplacians = np.stack([laplacian for laplacian, _ in found_there])
    if common_factor(np.stack([point.laplacian for point in trial.points]), laplacians) != 1:
        return False
    pairs = zip(trial.points, found_there, strict=True)
    return all(nearly_equal(point.derivatives, derivatives) for point, (_, derivatives) in pairs)
