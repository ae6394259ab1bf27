"""Jets of any op that JAX can differentiate, over all coordinates."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import MutableMapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.forward_laplacian.families import linear
from fusionlab.codegen.forward_laplacian.jet import Jet, densify
from fusionlab.codegen.forward_laplacian.known import Known
from fusionlab.hlo.element_types import FLOATS
from fusionlab.hlo.replay import reached
from fusionlab.hlo.view import Node, Value


class Generic(Known):
    """The rule for ops without one of their own."""

    def _jet(self, value: Value) -> Jet:
        raise NotImplementedError

    def differentiable(self, node: Node, environment: MutableMapping[Value, Any]) -> Sequence[Any]:
        """The results of ``node``, with the derivatives that they have in the program and that survive fusion."""
        raise NotImplementedError

    def _generic(self, node: Node) -> None:
        """y_k = J x_k, lap y = J lap x + sum_k H[x_k, x_k], by jvp and jvp of jvp over all coordinates."""
        moving = [value for value in dict.fromkeys(self._arguments(node)) if self._moves(value)]
        jets = [densify(self._jet(value), self.coordinates) for value in moving]
        varying = _varying_results(node, moving)
        kept = [i for i, value in enumerate(node.results) if value.type.dtype in FLOATS and value in varying]

        def function(*arrays: Any) -> list[Any]:
            results = self.differentiable(node, ChainMap(dict(zip(moving, arrays, strict=True)), self.environment))
            return [results[i] for i in kept]

        values = tuple(jet.value for jet in jets)

        def along(*rows: Any) -> Any:
            return jax.jvp(function, values, rows)[1]

        def along_twice(*rows: Any) -> tuple[Any, Any]:
            first, second = jax.jvp(lambda *arrays: jax.jvp(function, arrays, rows)[1], values, rows)
            return first, second

        rows = [jet.rows for jet in jets]
        laps = [jnp.zeros(jet.shape, np.result_type(jet.value)) if jet.lap is None else jet.lap for jet in jets]
        results = self.raising.node(node, self.environment)
        self.environment.update(zip(node.results, results, strict=True))
        if linear(node):
            moved = jax.vmap(along)(*(jnp.concatenate([lap[None], row]) for lap, row in zip(laps, rows, strict=True)))
            for at, i in enumerate(kept):
                self._set(node.results[i], Jet.of_moving(results[i], moved[at], True, None))
            return
        first, second = jax.vmap(along_twice)(*rows)
        through = along(*laps)
        for at, i in enumerate(kept):
            self._set(node.results[i], Jet(results[i], through[at] + jnp.sum(second[at], 0), first[at], None))


def _varying_results(node: Node, moving: Sequence[Value]) -> set[Value]:
    """Results of ``node`` that depend on ``moving``: of a loop not those that are carried along unchanged."""
    if node.name != "stablehlo.while":
        return set(node.results)
    body = node.regions[1]
    carried = {i for i, value in enumerate(node.operands) if value in moving}
    while True:
        after = reached(body, [*moving, *(body.arguments[i] for i in carried)])
        found = carried | {i for i, value in enumerate(body.returns) if value in after}
        if found == carried:
            return {node.results[i] for i in carried}
        carried = found
