"""Ops that JAX differentiates as a whole, over all coordinates: the rule of every op that no table names."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.laplacian.chains import differentiable, jets_of
from fusionlab.codegen.laplacian.jet import Jet, densify
from fusionlab.codegen.laplacian.state import Rule, State
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo.dependence import reached
from fusionlab.hlo.ops import INEXACT
from fusionlab.hlo.view import Node, Value


def second_order(state: State, node: Node) -> list[Jet | None]:
    """y_k = J x_k, lap y = J lap x + sum_k H[x_k, x_k], by jvp and jvp of jvp over all coordinates."""
    return _derived(state, node, False)


def linear(state: State, node: Node) -> list[Jet | None]:
    """An op that is affine, piecewise at most, in all its floating-point operands together: H = 0."""
    return _derived(state, node, True)


def combined(state: State, node: Node) -> list[Jet | None]:
    """An op that is linear if its combiner is."""
    return _derived(state, node, combiner(node.regions[0]) in ("add", "second", "minimum", "maximum"))


def _derived(state: State, node: Node, is_linear: bool) -> list[Jet | None]:
    varying = state.varying(node)
    jets = [densify(jet, state.coordinates) for jet in jets_of(state, node)]
    results = set(node.results) if node in state.composites else varying_results(node, varying)
    kept = [i for i, value in enumerate(node.results) if value.type.dtype in INEXACT and value in results]

    def function(*arrays: Any) -> list[Any]:
        given = dict(zip(varying, arrays, strict=True))
        found = differentiable(state, node, ChainMap(given, state.environment))
        return [found[i] for i in kept]

    values = tuple(jet.value for jet in jets)

    def along(*rows: Any) -> Any:
        return jax.jvp(function, values, rows)[1]

    def along_twice(*rows: Any) -> tuple[Any, Any]:
        first, second = jax.jvp(lambda *arrays: jax.jvp(function, arrays, rows)[1], values, rows)
        return first, second

    rows = [jet.jacobian for jet in jets]
    laplacians = [
        jnp.zeros(jet.shape, np.result_type(jet.value)) if jet.laplacian is None else jet.laplacian for jet in jets
    ]
    arrays = state.raising.node(node, state.environment)
    state.environment.update(zip(node.results, arrays, strict=True))
    found: list[Jet | None] = [None] * len(node.results)
    if is_linear:
        stacks = (jnp.concatenate([one[None], row]) for one, row in zip(laplacians, rows, strict=True))
        for i, moved in zip(kept, jax.vmap(along)(*stacks), strict=True):
            found[i] = Jet.of_derivatives(arrays[i], moved, True, None)
        return found
    first, second = jax.vmap(along_twice)(*rows)
    for i, through, slopes, curvatures in zip(kept, along(*laplacians), first, second, strict=True):
        found[i] = Jet(arrays[i], through + jnp.sum(state.coordinates.weigh(curvatures), 0), slopes, None)
    return found


def varying_results(node: Node, varying: Sequence[Value]) -> set[Value]:
    """Results of ``node`` that depend on ``varying``, which it reads; of a loop, not what is carried unchanged."""
    return reached(node, varying).intersection(node.results)


def bilinear(state: State, node: Node) -> list[Jet | None]:
    """An op that is linear in each of its two operands."""
    return _derived(state, node, len(state.varying(node)) == 1)


RULES: dict[str, Rule] = {
    "chlo.top_k": linear,
    "stablehlo.convolution": bilinear,
    "stablehlo.fft": linear,
    "stablehlo.reduce_window": combined,
    "stablehlo.scatter": combined,
    "stablehlo.sort": linear,
}
