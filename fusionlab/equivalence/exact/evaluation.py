"""Evaluate the nodes of a program over an arithmetic: of a prime field, or of float64 to test the rules themselves."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from fusionlab.equivalence.exact.field import integer_range
from fusionlab.equivalence.exact.rules import RULES
from fusionlab.equivalence.exact.rules.rule import Formula, step_of, uninterpreted
from fusionlab.equivalence.exact.values import (
    Array,
    Drawn,
    Environment,
    Held,
    Known,
    Step,
    Uncovered,
    dtype_of,
    is_float,
)
from fusionlab.hlo.loops import has_effect
from fusionlab.hlo.view import FunctionView, Node, Region, Value, free_values, reads


class Evaluator:
    """Runs nodes by ``RULES``, one per op; attributes of a node are read at its first run.

    An op without a rule is an uninterpreted function of its whole operands: two programs with equal calls of it agree.
    ``uncovered`` names such ops. ``watch``, if given, is called with each node and its results. ``formulas`` are shared
    with other evaluators of the same programs.
    """

    def __init__(
        self,
        arithmetic: Any,
        formulas: dict[Node, Formula] | None = None,
        watch: Callable[[Node, Sequence[Held]], None] | None = None,
    ) -> None:
        self.arithmetic, self.watch = arithmetic, watch
        self.formulas = {} if formulas is None else formulas
        self.uncovered: set[str] = set()
        self._steps: dict[Node, Step] = {}
        self._free: dict[Region, list[Value]] = {}
        self._dying: dict[Region, dict[Node, list[Value]]] = {}

    def outputs(self, function: FunctionView, arguments: Sequence[Held]) -> list[Array]:
        """The results of ``function`` [draws or 1, ...], residues where they are floats."""
        return [held.array for held in self.region(function, arguments, {})]

    def run(self, nodes: Sequence[Node], environment: dict[Value, Held], dying: Mapping[Node, Sequence[Value]]) -> None:
        """Evaluate ``nodes`` in order, adding results to ``environment``; forget what is ``dying`` at each."""
        for node in nodes:
            step = self._steps.get(node)
            if step is None:
                step = self._steps[node] = self._step(node)
            results = step([environment[value] for value in node.operands], environment)
            environment.update(zip(node.results, results, strict=True))
            if self.watch is not None:
                self.watch(node, results)
            for value in dying.get(node, ()):
                del environment[value]

    def captured(self, region: Region) -> list[Value]:
        """The free values of ``region``."""
        if region not in self._free:
            self._free[region] = free_values(region)
        return self._free[region]

    def region(self, region: Region, arguments: Sequence[Held], environment: Environment) -> list[Held]:
        """The results of ``region``; values that it captures are those of ``environment``."""
        inner = {value: environment[value] for value in self.captured(region)}
        inner.update(zip(region.arguments, arguments, strict=True))
        if region not in self._dying:
            self._dying[region] = last_reads(region)
        self.run(region.nodes, inner, self._dying[region])
        return [inner[value] for value in region.returns]

    def known(self, constant: Any) -> Known:
        return Known(np.asarray(constant), self.arithmetic)

    def drawn(self, value: Value, draw: int, random: np.random.Generator) -> Array:
        """A random array of the type of ``value``: residues of floats, integers and booleans of the draw's range."""
        dtype, shape = dtype_of(value), value.type.shape
        if not is_float(dtype):
            return np.asarray(random.integers(*integer_range(draw, dtype), shape)).astype(dtype)
        half = self.arithmetic.half
        real, imaginary = random.integers(-half, half + 1, (2, *shape)).astype(np.float64)
        return np.asarray(real + 1j * imaginary if dtype.kind == "c" else real)

    def drawn_arguments(self, function: FunctionView) -> list[Drawn]:
        """One value per argument and draw, by the draw's seed."""
        found = []
        for at, value in enumerate(function.arguments):
            randoms = (np.random.default_rng([self.arithmetic.p, seed, at]) for seed in self.arithmetic.seeds)
            found.append(Drawn(np.stack([self.drawn(value, draw, one) for draw, one in enumerate(randoms)])))
        return found

    def _step(self, node: Node) -> Step:
        if not node.regions and has_effect(node):
            raise Uncovered(f"{node.label}, which has an effect,", node.scope)
        step = step_of(RULES.get(node.name, uninterpreted), node, self)
        if node.operands or node.regions:
            return step
        constants = step([], {})
        return lambda operands, environment: constants


def last_reads(region: Region) -> dict[Node, list[Value]]:
    """By node of ``region``, the values that nothing after it needs."""
    last = {value: node for node in region.nodes for value in (*reads(node), *node.results)}
    dying: dict[Node, list[Value]] = {}
    for value in last.keys() - region.returns:
        dying.setdefault(last[value], []).append(value)
    return dying
