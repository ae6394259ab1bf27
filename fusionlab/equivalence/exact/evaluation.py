"""Evaluate the nodes of a program over an arithmetic: of a prime field, or of float64 to test the rules themselves."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.equivalence.exact.field import integer_range
from fusionlab.equivalence.exact.logarithms import with_logarithms
from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, Step, Uncovered
from fusionlab.hlo.flat import FlatFunction, Node, Region, Value, free_values, reads
from fusionlab.hlo.invariants import has_effect

Rule = Callable[[Node, "Evaluator"], Step]

_DTYPES: dict[str, Any] = {
    "i1": np.bool_,
    "i8": np.int8,
    "i16": np.int16,
    "i32": np.int32,
    "i64": np.int64,
    "ui8": np.uint8,
    "ui16": np.uint16,
    "ui32": np.uint32,
    "ui64": np.uint64,
    "f16": np.float16,
    "bf16": jnp.bfloat16,
    "f32": np.float32,
    "f64": np.float64,
    "complex<f32>": np.complex64,
    "complex<f64>": np.complex128,
}
_FLOATS = frozenset(("f16", "bf16", "f32", "f64", "complex<f32>", "complex<f64>"))


class Evaluator:
    """Runs nodes by ``rules``, one per op; what a node's attributes say is read at its first run.

    An op without a rule is an uninterpreted function of its whole operands: two programs that call it alike agree.
    ``uncovered`` names such ops. ``watch``, if given, is called with each node and its results.
    """

    def __init__(
        self,
        arithmetic: Any,
        rules: Mapping[str, Rule],
        watch: Callable[[Node, Sequence[Held]], None] | None = None,
    ) -> None:
        self.arithmetic, self.rules, self.watch = arithmetic, rules, watch
        self.uncovered: set[str] = set()
        self._steps: dict[Node, Step] = {}
        self._free: dict[Region, list[Value]] = {}

    def outputs(self, function: FlatFunction, arguments: Sequence[Held]) -> list[Array]:
        """The results of ``function`` [draws, ...], residues where they are floats."""
        environment = dict(zip(function.arguments, arguments, strict=True))
        last = {value: node for node in function.nodes for value in (*node.results, *reads(node))}
        ended: dict[Node, list[Value]] = {}
        for value in set(last).difference(function.returns):
            ended.setdefault(last[value], []).append(value)
        for node in function.nodes:
            self.run([node], environment)
            for value in ended.get(node, ()):
                del environment[value]
        return [self.lifted(environment[value], value) for value in function.returns]

    def run(self, nodes: Iterable[Node], environment: dict[Value, Held]) -> None:
        """Evaluate ``nodes`` in order, adding their results to ``environment``."""
        for node in nodes:
            step = self._steps.get(node)
            if step is None:
                step = self._steps[node] = self._step(node)
            results = step([environment[value] for value in node.operands], environment)
            environment.update(zip(node.results, results, strict=True))
            if self.watch is not None:
                self.watch(node, results)

    def is_float(self, value: Value) -> bool:
        """True for floating-point and complex element types; Uncovered for types without rules."""
        self.dtype(value)
        return value.type.dtype in _FLOATS

    def dtype(self, value: Value) -> np.dtype[Any]:
        """The NumPy type of ``value``; Uncovered where it has none here (quantised numbers)."""
        found = _DTYPES.get(value.type.dtype)
        if found is None:
            raise Uncovered(f"the element type {value.type.dtype}", value.producer.scope if value.producer else "")
        dtype: np.dtype[Any] = np.dtype(found)
        return dtype

    def lifted(self, held: Held, value: Value) -> Array:
        """The array of ``held`` with the axis of draws: residues where ``value`` is a float."""
        if isinstance(held, Drawn):
            return held.array
        if value.type.dtype not in _FLOATS:
            return held.array[None]
        if held.embedded is None:
            held.embedded = self.arithmetic.embedded(held.array)
        return held.embedded

    def drawn(self, value: Value, draw: int, random: np.random.Generator) -> Array:
        """A random array of the type of ``value``: residues of floats, integers and booleans of the draw's range."""
        dtype, shape = self.dtype(value), value.type.shape
        if not self.is_float(value):
            return np.asarray(random.integers(*integer_range(draw, dtype), shape)).astype(dtype)
        half = self.arithmetic.half
        real, imaginary = random.integers(-half, half + 1, (2, *shape)).astype(np.float64)
        return np.asarray(real + 1j * imaginary if dtype.kind == "c" else real)

    def captured(self, region: Region) -> list[Value]:
        """The values that ``region`` reads and does not define."""
        if region not in self._free:
            self._free[region] = free_values(region)
        return self._free[region]

    def region(self, region: Region, arguments: Sequence[Held], environment: Environment) -> list[Held]:
        """The results of ``region``; values that it captures are those of ``environment``."""
        inner = {value: environment[value] for value in self.captured(region)}
        inner.update(zip(region.arguments, arguments, strict=True))
        self.run(region.nodes, inner)
        return [inner[value] for value in region.returns]

    def _step(self, node: Node) -> Step:
        if not node.regions and has_effect(node):
            raise Uncovered(f"{_called(node)}, which has an effect,", node.scope)
        rule = self.rules.get(node.name)
        step = rule(node, self) if rule is not None else self.uninterpreted(node)
        return with_logarithms(node, step, self.arithmetic)

    def uninterpreted(self, node: Node) -> Step:
        """The results as a random function of the op, its attributes and its whole operands, draw by draw."""
        if node.regions:
            raise Uncovered(node.name, node.scope)
        self.uncovered.add(_called(node))
        text = " ".join(f"{name}={node.attributes[name]}" for name in sorted(node.attributes))

        def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
            arrays = [self.lifted(operand, value) for operand, value in zip(operands, node.operands, strict=True)]
            draws = max((len(array) for array in arrays), default=1)
            found: list[Held] = []
            for index, result in enumerate(node.results):
                parts = []
                for draw in range(draws):
                    digest = hashlib.sha256(f"{node.name} {text} {index}".encode())
                    for array in arrays:
                        one = np.ascontiguousarray(array[draw if len(array) > 1 else 0])
                        digest.update(f"{one.dtype} {one.shape}".encode())
                        digest.update((one + np.zeros((), one.dtype)).tobytes())  # 0 and -0 are one residue
                    parts.append(self.drawn(result, draw, np.random.default_rng(list(digest.digest()))))
                found.append(Drawn(np.stack(parts)))
            return found

        return step


def _called(node: Node) -> str:
    target = node.attributes.get("call_target_name")
    return node.name if target is None else f"custom call @{target.value}"
