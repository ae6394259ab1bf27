"""Evaluate a program with some of its questions answered the other way.

Where two programs ask the same, derivatives do not ask what the answer was: what holds of them holds with any other
answer, and what was answered alike wherever a few random points were tried is tried otherwise here. A comparison, a
maximum and an absolute value of the same floats are turned together; so that nothing becomes undefined, the logarithm
of a negative number is that of its size, which has the same derivatives.
"""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.forward_laplacian import extremes
from fusionlab.codegen.forward_laplacian.interpret import ForwardLaplacian
from fusionlab.codegen.raising import Raising
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.flat import Node, Value
from fusionlab.passes.branch_forms import is_equality
from fusionlab.passes.sums_over_directions import is_float

TURNS = 2
"""Ways in which questions are turned around: a random half of all elements, and the other half."""

_TWO = ("stablehlo.maximum", "stablehlo.minimum")
_ZERO = ("stablehlo.abs", "stablehlo.sign")


def keys_of(node: Node, numbers: Mapping[Value, int]) -> tuple[Hashable, ...]:
    """What ``node`` asks, the same for all nodes that ask it; of a clamp two things."""

    def order(first: Value, second: Value | None) -> Hashable:
        """Whether ``first`` is above ``second``; a difference above zero is its first operand above its second."""
        if second is None or number_of(second) == 0:
            made = first.producer
            if made is not None and made.name == "stablehlo.subtract":
                return order(*made.operands)
        return frozenset({_name(first, numbers), 0.0 if second is None else _name(second, numbers)})

    of_floats = bool(node.operands) and is_float(node.operands[0])
    if of_floats and node.name in _ZERO:
        return (order(node.operands[0], None),)
    if of_floats and node.name in _TWO:
        return (order(*node.operands),)
    if of_floats and node.name == "stablehlo.clamp":
        least, value, most = node.operands
        return (order(value, least), order(value, most))
    if of_floats and node.name == "stablehlo.compare":
        first, second = node.operands
        if not is_equality(node):
            return (order(first, second),)
        for one, other in ((first, second), (second, first)):
            made = one.producer
            if made is not None and made.name in _TWO and numbers[other] in [numbers[v] for v in made.operands]:
                return keys_of(made, numbers)
    return (numbers[node.results[0]],)


def asking(nodes: Iterable[Node], asked: Collection[Hashable], numbers: Mapping[Value, int]) -> frozenset[int]:
    """The numbers of the results of ``nodes`` that ask of the same floats what is ``asked``, by whatever operation."""
    return frozenset(
        numbers[node.results[0]]
        for node in nodes
        if len(node.results) == 1
        for key in keys_of(node, numbers)
        if isinstance(key, frozenset) and key in asked
    )


def _name(value: Value, numbers: Mapping[Value, int]) -> Hashable:
    number = number_of(value)
    return ("value", numbers[value]) if number is None else number


@dataclass(frozen=True)
class Turning(Raising):
    """Answers question ``key`` the other way, at random elements, where ``turn[0][slots[key]]`` is not 0.

    ``turn`` holds one traced array of integers while a function is traced, up to ``TURNS``: each turns other elements.
    ``turned`` are the numbers of the results that are turned.
    """

    numbers: Mapping[Value, int] = field(default_factory=dict)
    slots: Mapping[Hashable, int] = field(default_factory=dict)
    turned: frozenset[int] = frozenset()
    turn: list[Any] = field(default_factory=list)

    def node(self, node: Node, environment: Mapping[Value, Any]) -> Sequence[Any]:
        """As Raising's, answers turned."""
        if node.name == "stablehlo.log" and self.slots:
            value = environment[node.operands[0]]
            if not isinstance(value, np.ndarray):
                environment = {node.operands[0]: jnp.where(self.turn[0].any(), jnp.abs(value), value)}
        results = super().node(node, environment)
        if not (keys := self.turned_keys(node)):
            return results
        return [self._turned(node, results[0], keys, [environment[value] for value in node.operands])]

    def turned_keys(self, node: Node) -> list[Hashable]:
        """What is turned of ``node``; equality with a maximum is not, as that is turned already."""
        if len(node.results) != 1 or self.numbers.get(node.results[0]) not in self.turned:
            return []
        keys = [key for key in keys_of(node, self.numbers) if key in self.slots]
        equality = node.name == "stablehlo.compare" and is_float(node.operands[0]) and is_equality(node)
        return [] if equality and any(isinstance(key, frozenset) for key in keys) else keys

    def _turned(self, node: Node, result: Any, keys: Sequence[Hashable], operands: Sequence[Any]) -> Any:
        if node.name in (*_ZERO, *_TWO, "stablehlo.clamp"):
            return self.side(node, keys, operands, result)
        bits = self.bits(keys[0], np.shape(result))
        if result.dtype == np.bool_:
            return result ^ bits
        if jnp.issubdtype(result.dtype, jnp.floating):  # analytic in it: any number will do
            noise = 0.1 + np.abs(np.random.default_rng(self.slots[keys[0]]).standard_normal(np.shape(result)))
            turn = self.turn[0][self.slots[keys[0]]]
            return result + noise * turn.astype(result.dtype)
        return result + bits.astype(result.dtype)

    def side(self, node: Node, keys: Sequence[Hashable], operands: Sequence[Any], result: Any) -> Any:
        """A maximum where it is turned a minimum, and so on; ``result`` is what it is otherwise."""
        bits = self.bits(keys[0], np.shape(result))
        if node.name in _ZERO:
            return jnp.where(bits, -result, result)
        if node.name in _TWO:
            other = "minimum" if node.name == "stablehlo.maximum" else "maximum"
            return jnp.where(bits, extremes.RULES[f"stablehlo.{other}", None](*operands), result)
        least, value, most = operands
        below = jnp.where(bits, jnp.minimum(value, least), jnp.maximum(value, least))
        bits_of_most = self.bits(keys[-1], np.shape(result))
        turned = jnp.where(bits_of_most, jnp.maximum(below, most), jnp.minimum(below, most))
        return jnp.where(bits | bits_of_most, turned, result)

    def bits(self, key: Hashable, shape: tuple[int, ...]) -> Any:
        """Which elements are turned, the same for all nodes of one key: in one way some, in the other all others."""
        slot = self.slots[key]
        some = np.random.default_rng(slot).integers(0, 2, shape).astype(bool)
        return jnp.asarray(np.stack([np.zeros(shape, bool), some, ~some]))[self.turn[0][slot]]


class TurnedLaplacian(ForwardLaplacian):
    """A forward Laplacian whose rules for maxima and minima follow what its raising turns."""

    raising: Turning

    def differentiable(self, node: Node, environment: MutableMapping[Value, Any]) -> Sequence[Any]:
        """As ForwardLaplacian's; a composite is evaluated step by step where a predicate in it is inverted."""
        results = super().differentiable(node, environment)
        if node not in self.composites or not any(map(self.raising.turned_keys, self.composites[node].steps)):
            return results
        inner: ChainMap[Value, Any] = ChainMap({}, environment)
        for step in self.composites[node].steps:
            inner.update(zip(step.results, self._by_itself(step, inner), strict=True))
        return [jnp.where(self.raising.turn[0].any(), inner[node.results[0]], results[0])]

    def _by_itself(self, node: Node, environment: MutableMapping[Value, Any]) -> Sequence[Any]:
        results = super()._by_itself(node, environment)
        if node.name not in extremes.NAMES or not (keys := self.raising.turned_keys(node)):
            return results
        return [self.raising.side(node, keys, [environment[value] for value in node.operands], results[0])]

    def _linear_scales(self, node: Node, name: str) -> list[Callable[[Any], Any]]:
        scales = super()._linear_scales(node, name)
        if name not in ("maximum", "minimum") or not (keys := self.raising.turned_keys(node)):
            return scales
        bits = self.raising.bits(keys[0], self.raising.shape(node.results[0]))
        kept, other = scales
        return [
            lambda part: jnp.where(bits, other(part), kept(part)),
            lambda part: jnp.where(bits, kept(part), other(part)),
        ]
