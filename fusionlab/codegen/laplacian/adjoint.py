"""The Laplacian of a function as the sum of its second-order sources, each weighted by the adjoint of its value.

lap F = sum over values v of <dF/dv, q_v>,    q_v = sum_k H_v[a_k, a_k], a_k the derivatives of the operands of v
"""

from __future__ import annotations

import math
from collections import ChainMap
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax

from fusionlab.codegen.laplacian.chains import differentiable
from fusionlab.codegen.laplacian.state import State
from fusionlab.hlo.view import Node, Value


def weighted_sources(state: State, cone: Sequence[Node], output: Value, axes: Mapping[Value, set[int]]) -> Any:
    """[*walkers], by one reverse pass of ``output`` through all nodes of ``cone``, which ``state`` has run.

    ``axes`` are the axes of values that count walkers, of which there is one at most that is longer than 1. Of a single
    walker, they are not needed. NotImplementedError where there is no adjoint, or walkers are merged with another axis.
    """
    sources, nodes = state.sources, set(cone)
    known = {v: array for v, array in state.environment.items() if v is state.x or v.producer not in nodes}

    def evaluated(injections: Sequence[Any]) -> Any:
        inner, injected = dict(known), dict(zip(sources, injections, strict=True))
        for node in cone:
            inner.update(zip(node.results, differentiable(state, node, inner), strict=True))
            for value in node.results:
                if value in state.chains:
                    inner[value] = _at_the_end_of_its_chain(state, value, inner)
                if value in state.stop_gradient:
                    inner[value] = lax.stop_gradient(inner[value])
                if value in injected:
                    inner[value] = inner[value] + injected[value]
        return inner[output]

    value, adjoint = _with_adjoint(evaluated, [jnp.zeros_like(array) for array in sources.values()])
    total = None
    for (source, array), weight in zip(sources.items(), adjoint, strict=True):
        own = axes.get(source, set()) if value.size > 1 else set()
        if math.prod(array.shape[a] for a in own) != value.size:
            raise NotImplementedError(f"{source.type} has its walkers merged with another axis")
        weighted = jnp.real(array * weight)
        term = jnp.sum(weighted, tuple(a for a in range(array.ndim) if a not in own)).reshape(value.shape)
        total = term if total is None else total + term
    return jnp.zeros_like(jnp.real(value)) if total is None else total


def _at_the_end_of_its_chain(state: State, value: Value, known: dict[Value, Any]) -> Any:
    """The array of ``value`` as its source was made: of the root alone, whatever is injected on the way from there."""
    root, chain = state.chains[value]
    way = ChainMap({root: known[root]}, known)
    for step in chain:
        [way[step.results[0]]] = differentiable(state, step, way)
    return way[value]


def _with_adjoint(function: Callable[[Sequence[Any]], Any], at: Sequence[Any]) -> tuple[Any, Any]:
    """The value of ``function`` and its adjoint; NotImplementedError where there is none."""
    try:
        value, pull = jax.vjp(function, at)
        [adjoint] = pull(jnp.ones_like(value))
    except ValueError as error:
        said = str(error).partition("\n")[0]
        if "Reverse-mode" not in said:
            raise
        raise NotImplementedError(f"there is no adjoint: {said}") from error  # of a loop that JAX cannot transpose
    return value, adjoint
