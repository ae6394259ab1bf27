"""Jets of elementwise ops: a chain of ops of one variable is differentiated as one function, by JAX."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, MutableMapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.forward_laplacian import extremes, products
from fusionlab.codegen.forward_laplacian.families import AFFINE, CHEAP, PIECEWISE_LINEAR
from fusionlab.codegen.forward_laplacian.generic import Generic
from fusionlab.codegen.forward_laplacian.jet import Jet, row_products, scaled_stack, select_first, with_first
from fusionlab.hlo.view import Node, Value


class Elementwise(Generic):
    """Elementwise ops are put off until something else needs their jet, so that chains grow as long as they can."""

    def _elementwise(self, node: Node) -> None:
        result = node.results[0]
        moving = [value for value in dict.fromkeys(self._arguments(node)) if self._moves(value)]
        common = set.intersection(*(self._candidates(value) for value in moving))
        if common:
            self.roots[result] = min(common, key=lambda value: -value.id)
            return
        self._set(result, self._several(node, moving))

    def _candidates(self, value: Value) -> set[Value]:
        found = {value} if value in self.jets else set()
        if value in self.roots:
            found.add(self.roots[value])
        return found

    def _chain(self, value: Value, root: Value) -> list[Node]:
        """The elementwise nodes from ``root`` to ``value``, in order."""
        found: dict[Node, None] = {}
        stack = [value]
        while stack:
            current = stack.pop()
            node = current.producer
            if current is root or node is None or node in found or not self._moves(current):
                continue
            found[node] = None
            stack += self._arguments(node)
        return sorted(found, key=lambda node: node.id)

    def _jet(self, value: Value) -> Jet:
        """The jet of ``value``, made now if it was put off."""
        if value not in self.jets:
            root = self.roots[value]
            self.functions[value] = root, self._chain(value, root)
            self._set(value, self._composite(value, root))
        return self.jets[value]

    def _composite(self, value: Value, root: Value) -> Jet:
        chain = self._chain(value, root)
        jet = self._jet(root)
        first = chain[0]
        biased = first.name in ("stablehlo.add", "stablehlo.subtract") and first.operands[0] is root
        if len(chain) == 1 and biased and not self._moves(first.operands[1]):
            shifted = self.raising.node(first, self.environment)[0]
            return jet.with_value(shifted)

        def function(array: Any) -> Any:
            inner = ChainMap({root: array}, self.environment)
            for node in chain:
                [inner[node.results[0]]] = self.differentiable(node, inner)
            return inner[value]

        ones = jnp.ones(jet.shape, np.result_type(jet.value))
        if jet.stack is not None and self._homogeneous(chain, root):
            return Jet.of_stack(jax.vmap(function)(jet.stack), jet.lap is not None, jet.owners)
        if self._affine(chain, root):
            result, slope = jax.jvp(function, (jet.value,), (ones,))
            if jet.dense:
                return scaled_stack(jet, result, slope, None, self.how.lean, self._cheap(chain))
            lap = None if jet.lap is None else slope * jet.lap
            return Jet(result, lap, slope * jet.rows, jet.owners)
        (result, slope), (_, curvature) = jax.jvp(
            lambda array: jax.jvp(function, (array,), (ones,)), (jet.value,), (ones,)
        )
        squares = row_products(jet, jet, self.coordinates)
        if jet.dense:
            return scaled_stack(jet, result, slope, curvature * squares, self.how.lean, self._cheap(chain))
        laps = [] if jet.lap is None else [slope * jet.lap]
        laps += [] if squares is None else [curvature * squares]  # None where all slots belong to nobody
        return Jet(result, sum(laps[1:], laps[0]) if laps else None, slope * jet.rows, jet.owners)

    def differentiable(self, node: Node, environment: MutableMapping[Value, Any]) -> Sequence[Any]:
        """The results of ``node``, with the derivatives that they have in the program and that survive fusion."""
        if (composite := self.composites.get(node)) is not None:
            return [composite.of(environment)]
        return self._by_itself(node, environment)

    def _by_itself(self, node: Node, environment: MutableMapping[Value, Any]) -> Sequence[Any]:
        """The results of ``node`` as a function of its operands."""
        if node.name in extremes.NAMES:
            extreme = extremes.RULES[node.name, self.ties.get(node.results[0])]
            return [extreme(*(environment[value] for value in node.operands))]
        return self.raising.node(node, environment)

    def _affine(self, chain: Sequence[Node], root: Value) -> bool:
        """Whether the chain has no second derivative."""
        varying = {root}
        for node in chain:
            if node in self.composites:
                return False
            count = sum(operand in varying for operand in node.operands)
            if node.name == "stablehlo.multiply" and count > 1:
                return False
            if node.name == "stablehlo.divide" and node.operands[1] in varying:
                return False
            if node.name not in AFFINE | PIECEWISE_LINEAR and node.name not in (
                "stablehlo.multiply",
                "stablehlo.divide",
            ):
                return False
            varying.update(node.results)
        return True

    def _cheap(self, chain: Sequence[Node]) -> bool:
        return all(node.name in CHEAP and node not in self.composites for node in chain)

    def _homogeneous(self, chain: Sequence[Node], root: Value) -> bool:
        """Whether the chain only scales, so that it can be applied to values and derivatives alike."""
        names = ("stablehlo.negate", "stablehlo.convert", "stablehlo.multiply", "stablehlo.divide")
        return all(node.name in names for node in chain) and self._affine(chain, root) and len(chain) == 1

    @property
    def _front(self) -> products.Front:
        """How value and Laplacian get in front of the rows of a product."""
        return with_first if self.how.for_cpu else select_first

    def _several(self, node: Node, moving: Sequence[Value]) -> Jet:
        """An elementwise op of several independent jets."""
        jets = [self._jet(value) for value in moving]
        value = self.raising.node(node, self.environment)[0]
        name = "composite" if node in self.composites else node.name.removeprefix("stablehlo.")
        if name == "multiply":
            return products.multiply(value, jets[0], jets[1], self.coordinates, self._front)
        if name == "divide":
            return products.divide(value, jets[0], jets[1], self.coordinates, self._front)
        if name in ("add", "subtract", "select", "maximum", "minimum"):
            scales = self._linear_scales(node, name)
            return products.combine(value, jets, scales, self.coordinates, linear=True)
        self._generic(node)
        return self.jets[node.results[0]]

    def _linear_scales(self, node: Node, name: str) -> list[Callable[[Any], Any]]:
        if name == "add":
            return [lambda part: part, lambda part: part]
        if name == "subtract":
            return [lambda part: part, lambda part: -part]
        if name == "select":
            return _of_chosen(self.environment[node.operands[0]])
        first, second = (self.environment[value] for value in node.operands)
        chosen = first > second if name == "maximum" else first < second
        tie = self.ties.get(node.results[0])
        if tie is not None:
            return _of_chosen(chosen | (first == second) if tie == 0 else chosen)
        half = first == second

        def by_halves(scale: Callable[[Any], Any]) -> Callable[[Any], Any]:
            return lambda part: jnp.where(half, part * np.asarray(0.5, part.dtype), scale(part))

        return [by_halves(scale) for scale in _of_chosen(chosen)]

    def _put_off(self, value: Value) -> Any:
        """The plain value of what was put off."""
        if value not in self.roots:
            raise KeyError(value)
        inner: ChainMap[Value, Any] = ChainMap({}, self.environment)
        for node in self._chain(value, self.roots[value]):
            if node.results[0] not in dict.keys(self.environment):
                inner[node.results[0]] = self.raising.node(node, inner)[0]
        self.environment.update(inner.maps[0])
        return self.environment[value]


def _of_chosen(first: Any) -> list[Callable[[Any], Any]]:
    """The scales of two jets of which one is taken, the first where ``first``."""
    return [
        lambda part: jnp.where(first, part, np.zeros((), part.dtype)),
        lambda part: jnp.where(first, np.zeros((), part.dtype), part),
    ]
