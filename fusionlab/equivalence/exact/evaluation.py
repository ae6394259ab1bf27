"""Evaluate the nodes of a program over an arithmetic: of a prime field, or of float64 to test the rules themselves."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from fusionlab.equivalence.exact.field import PrimeField
from fusionlab.equivalence.exact.fusion import Fusion, Unit, fused
from fusionlab.equivalence.exact.integers import Integers
from fusionlab.equivalence.exact.rules import RULES
from fusionlab.equivalence.exact.rules.elementwise import rare_comparison
from fusionlab.equivalence.exact.rules.rule import ByNode, Formula, uninterpreted
from fusionlab.equivalence.exact.values import (
    Array,
    Drawn,
    Environment,
    Held,
    Known,
    Step,
    Uncovered,
    aligned,
    dtype_of,
    is_float,
)
from fusionlab.hlo.arithmetic import NoOneMeaning
from fusionlab.hlo.loops import has_effect
from fusionlab.hlo.view import FunctionView, Node, Region, Value, free_values, reads


@dataclass
class Prepared:
    """What is read from nodes and regions once: formulas, captured values, attributes as text, constants, and the units
    of regions, fused or not.

    ``unguarded`` are comparisons that are evaluated without random guards, ``rare`` those with random outcomes in some
    draws (``field.FieldWithGuards``)."""

    formulas: dict[Node, tuple[Formula, list[Any], bool]] = field(default_factory=dict)
    free: dict[Region, list[Value]] = field(default_factory=dict)
    texts: dict[Node, str] = field(default_factory=dict)
    unguarded: set[Node] = field(default_factory=set)
    rare: set[Node] = field(default_factory=set)
    _folded: dict[tuple[Node, int], tuple[Sequence[Held], list[Held]]] = field(default_factory=dict)
    _integers: dict[tuple[FunctionView, ...], Integers] = field(default_factory=dict)
    _units: dict[tuple[Region, bool], tuple[list[Unit], dict[Unit, list[Value]]]] = field(default_factory=dict)

    def integers_of(self, *functions: FunctionView) -> Integers:
        """Those that are drawn for ``functions``."""
        if functions not in self._integers:
            self._integers[functions] = Integers.of(functions)
        return self._integers[functions]

    def folded(
        self, node: Node, arithmetic: Any, operands: Sequence[Held], fold: Callable[[], list[Held]]
    ) -> list[Held]:
        """What ``fold`` makes of the constant ``operands`` of ``node``, once for all evaluations modulo a prime."""
        if not isinstance(arithmetic, PrimeField):
            return fold()
        before, found = self._folded.get((node, arithmetic.p), ((), None))
        if found is None or any(a is not b for a, b in zip(before, operands, strict=True)):
            found = fold()
            if all(isinstance(held, Known) for held in found):
                self._folded[node, arithmetic.p] = operands, found
        return found

    def units_of(self, region: Region, fuses: bool) -> tuple[Sequence[Unit], Mapping[Unit, Sequence[Value]]]:
        """The units of ``region`` in order, and by unit the values that nothing after it needs."""
        if (region, fuses) not in self._units:
            units = fused(region) if fuses else list[Unit](region.nodes)
            self._units[region, fuses] = units, _last_reads(region, units)
        return self._units[region, fuses]


class Evaluator:
    """Runs nodes by ``RULES``, one per op; attributes of a node are read at its first run.

    An op without a rule is an uninterpreted function of its whole operands: two programs with equal calls of it agree.
    ``uncovered`` names such ops. ``left_out`` are the draws in which a loop goes on after its most trips.
    ``watch``, if given, is called with each node and its results: then nothing is fused,
    as over another arithmetic than a prime field.
    ``tick``, if set, is called after each unit. ``prepared`` is shared with other evaluators of the same programs.
    """

    def __init__(
        self,
        arithmetic: Any,
        prepared: Prepared | None = None,
        watch: Callable[[Node, Sequence[Held]], None] | None = None,
    ) -> None:
        self.arithmetic, self.watch = arithmetic, watch
        self.tick: Callable[[], None] | None = None
        self.prepared = Prepared() if prepared is None else prepared
        self.uncovered: set[tuple[str, str]] = set()
        self.left_out: set[int] = set()
        self._steps: dict[Node, Step] = {}

    def outputs(self, function: FunctionView, arguments: Sequence[Held]) -> list[Array]:
        """The results of ``function`` [draws or 1, ...], residues where they are floats."""
        return [held.array for held in self.region(function, arguments, {})]

    def run(self, units: Sequence[Unit], dying: Mapping[Unit, Sequence[Value]], environment: dict[Value, Held]) -> None:
        """Evaluate ``units`` in order, adding results to ``environment``; forget what is ``dying`` at each."""
        for unit in units:
            if isinstance(unit, Fusion):
                self._run_fusion(unit, environment)
            else:
                self._run_node(unit, environment)
            for value in dying.get(unit, ()):
                del environment[value]
            if self.tick is not None:
                self.tick()

    def _run_node(self, node: Node, environment: dict[Value, Held]) -> None:
        step = self._steps.get(node)
        try:
            if step is None:
                step = self._steps[node] = self._step(node)
            results = step([environment[value] for value in node.operands], environment)
        except NoOneMeaning as error:
            raise Uncovered(str(error), node.scope) from error
        environment.update(zip(node.results, results, strict=True))
        if self.watch is not None:
            self.watch(node, results)

    def _run_fusion(self, fusion: Fusion, environment: dict[Value, Held]) -> None:
        """At once, or node by node where there is more to an operand than residues."""
        operands = [environment[value] for value in fusion.operands]
        if any(held.parts for held in operands) or all(isinstance(held, Known) for held in operands):
            self.run(fusion.nodes, fusion.dying, environment)
        else:
            found = self.arithmetic.polynomial(fusion.code, aligned(*(held.array for held in operands)))
            environment[fusion.results[0]] = Drawn(found)

    def leave_out(self, draws: Array, node: Node) -> None:
        """Note the ``draws`` (booleans) in which the loop ``node`` is not evaluated to its end; Uncovered for all."""
        self.left_out.update(np.flatnonzero(draws).tolist() if len(draws) > 1 else range(len(self.arithmetic.seeds)))
        if len(self.left_out) == len(self.arithmetic.seeds):
            raise Uncovered("a loop that ends by what it computes", node.scope)

    def captured(self, region: Region) -> list[Value]:
        """The free values of ``region``."""
        free = self.prepared.free
        if region not in free:
            free[region] = free_values(region)
        return free[region]

    def region(self, region: Region, arguments: Sequence[Held], environment: Environment) -> list[Held]:
        """The results of ``region``; values that it captures are those of ``environment``."""
        inner = {value: environment[value] for value in self.captured(region)}
        inner.update(zip(region.arguments, arguments, strict=True))
        fuses = self.watch is None and isinstance(self.arithmetic, PrimeField)
        self.run(*self.prepared.units_of(region, fuses), inner)
        return [inner[value] for value in region.returns]

    def known(self, constant: Any) -> Known:
        return Known(np.asarray(constant), self.arithmetic)

    def drawn(self, value: Value, seed: int, random: np.random.Generator) -> Array:
        """A random array of the type of ``value``: residues of floats, integers and booleans of the draw ``seed``."""
        dtype, shape = dtype_of(value), value.type.shape
        if not is_float(dtype):
            words = random.integers(2**64, size=shape, dtype=np.uint64)
            return np.asarray(self.arithmetic.integers.drawn(np.asarray(words), seed, dtype))
        half = self.arithmetic.half
        parts = random.integers(-half, half + 1, (1 + (dtype.kind == "c"), *shape)).astype(np.float64)
        return np.asarray(parts[0] + 1j * parts[1] if dtype.kind == "c" else parts[0])

    def drawn_arguments(self, function: FunctionView) -> list[Drawn]:
        """One value per argument and draw, by the draw's seed."""
        found = []
        for at, value in enumerate(function.arguments):
            randoms = ((seed, np.random.default_rng([self.arithmetic.p, seed, at])) for seed in self.arithmetic.seeds)
            found.append(Drawn(np.stack([self.drawn(value, seed, random) for seed, random in randoms])))
        return found

    def _for(self, node: Node) -> Evaluator:
        if node not in self.prepared.unguarded:
            return self
        other = copy.copy(self)
        other.arithmetic = self.arithmetic.unguarded
        return other

    def _step(self, node: Node) -> Step:
        if not node.regions and has_effect(node):
            raise Uncovered(f"{node.label}, which has an effect,", node.scope)
        rule = rare_comparison if node in self.prepared.rare else RULES.get(node.name, uninterpreted)
        step = functools.partial(rule.choose(node) if isinstance(rule, ByNode) else rule, node, self._for(node))
        if node.operands or node.regions:
            return step
        constants = self.prepared.folded(node, self.arithmetic, (), lambda: step([], {}))
        return lambda operands, environment: constants


def _last_reads(region: Region, units: Sequence[Unit]) -> dict[Unit, list[Value]]:
    last: dict[Value, Unit] = {}
    for unit in units:
        read = unit.operands if isinstance(unit, Fusion) else reads(unit)
        last.update(dict.fromkeys((*read, *unit.results), unit))
    dying: dict[Unit, list[Value]] = {}
    for value in last.keys() - region.returns:
        dying.setdefault(last[value], []).append(value)
    return dying
