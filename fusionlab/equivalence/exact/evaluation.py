"""Evaluate the nodes of a program over an arithmetic: of a prime field, or of float64 to test the rules themselves."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Union

import numpy as np

from fusionlab.codegen.executable import numpy_dtype
from fusionlab.equivalence.exact.field import integer_range
from fusionlab.equivalence.exact.machine import MACHINE
from fusionlab.equivalence.exact.values import (
    Array,
    Drawn,
    Environment,
    Held,
    Known,
    Step,
    Uncovered,
    carried,
    is_float,
    part,
)
from fusionlab.hlo.loops import has_effect
from fusionlab.hlo.view import FunctionView, Node, Region, Value, free_values, reads

Formula = Callable[..., Any]
"""``formula(arithmetic, *arrays)``: the result of an op, a list if it has several; arrays [draws or 1, ...]."""
Rule = Union["Computed", Callable[[Node, "Evaluator", Sequence[Held], Environment], list[Held]]]


class Evaluator:
    """Runs nodes by ``rules``, one per op; attributes of a node are read at its first run.

    An op without a rule is an uninterpreted function of its whole operands: two programs with equal calls of it agree.
    ``uncovered`` names such ops. ``watch``, if given, is called with each node and its results. ``formulas`` are shared
    with other evaluators of the same programs.
    """

    def __init__(
        self,
        arithmetic: Any,
        rules: Mapping[str, Rule],
        watch: Callable[[Node, Sequence[Held]], None] | None = None,
        formulas: dict[Node, Formula] | None = None,
    ) -> None:
        self.arithmetic, self.rules, self.watch = arithmetic, rules, watch
        self.formulas = {} if formulas is None else formulas
        self.uncovered: set[str] = set()
        self._steps: dict[Node, Step] = {}
        self._free: dict[Region, list[Value]] = {}
        self._dying: dict[Region, dict[Node, list[Value]]] = {}

    def outputs(self, function: FunctionView, arguments: Sequence[Held]) -> list[Array]:
        """The results of ``function`` [draws or 1, ...], residues where they are floats."""
        return [held.array for held in self.region(function, arguments, {})]

    def run(
        self, nodes: Sequence[Node], environment: dict[Value, Held], dying: Mapping[Node, Sequence[Value]] | None = None
    ) -> None:
        """Evaluate ``nodes`` in order, adding results to ``environment``; forget what is ``dying`` at each."""
        for node in nodes:
            step = self._steps.get(node)
            if step is None:
                step = self._steps[node] = self._step(node)
            results = step([environment[value] for value in node.operands], environment)
            environment.update(zip(node.results, results, strict=True))
            if self.watch is not None:
                self.watch(node, results)
            for value in dying.get(node, ()) if dying else ():
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
            last = {value: node for node in region.nodes for value in (*reads(node), *node.results)}
            self._dying[region] = {node: [] for node in region.nodes}
            for value in last.keys() - region.returns:
                self._dying[region][last[value]].append(value)
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

    def _step(self, node: Node) -> Step:
        if not node.regions and has_effect(node):
            raise Uncovered(f"{node.label}, which has an effect,", node.scope)
        step = step_of(self.rules.get(node.name, uninterpreted), node, self)
        if node.operands or node.regions:
            return step
        constants = step([], {})
        return lambda operands, environment: constants


def step_of(rule: Rule, node: Node, evaluator: Evaluator) -> Step:
    return rule.step(node, evaluator) if isinstance(rule, Computed) else functools.partial(rule, node, evaluator)


def dtype_of(value: Value) -> np.dtype[Any]:
    """The NumPy type of ``value``; Uncovered where it has none here (quantised numbers)."""
    try:
        return numpy_dtype(value.type)
    except ValueError as error:
        scope = value.producer.scope if value.producer else ""
        raise Uncovered(f"the element type {value.type.dtype}", scope) from error


@dataclass(frozen=True)
class Computed:
    """The rule of an op that is a formula of its operands' arrays, which ``read`` takes from the node once.

    It is evaluated over the evaluator's arithmetic where the first operand is a float; in the program's own types for
    integers and booleans and, where the op ``folds``, for constants: as constant folding in rewrites does.
    A ``ring`` operation of constants that rounds is evaluated over the arithmetic after all. The result carries the
    parts of the operands ``carrying`` (a range): by the same formula, arguments of logarithms by the method
    ``of_arguments`` if there is one.
    """

    read: Callable[[Node], Formula]
    folds: bool = True
    carrying: tuple[int, int | None] = (0, 0)
    of_arguments: str = ""
    ring: bool = False

    def step(self, node: Node, evaluator: Evaluator) -> Step:
        if node not in evaluator.formulas:
            evaluator.formulas[node] = self.read(node)
        formula, dtypes = evaluator.formulas[node], [dtype_of(value) for value in node.results]
        floats = is_float(dtype_of(node.operands[0]))
        arithmetic = evaluator.arithmetic if floats else MACHINE
        folds, places = self.folds or not floats, range(len(node.operands))[slice(*self.carrying)]

        def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
            if folds and all(isinstance(operand, Known) for operand in operands):
                with np.errstate(all="ignore"):
                    each = _listed(formula(MACHINE, *(o.constant[None] for o in operands)))  # type: ignore[union-attr]
                found: list[Held] = [
                    evaluator.known(a[0].astype(t, copy=False)) for a, t in zip(each, dtypes, strict=True)
                ]
                if not (self.ring and floats):
                    return found
                [exact] = _listed(formula(arithmetic, *(operand.array for operand in operands)))
                return found if np.array_equal(found[0].array, exact) else [Drawn(exact)]
            each = _listed(formula(arithmetic, *(operand.array for operand in operands)))
            parts = {}
            for name in carried([operands[at] for at in places]):
                given = (part(o, name) if at in places else o.array for at, o in enumerate(operands))
                own = self.of_arguments if name == "argument" else ""
                parts[name] = getattr(arithmetic, own)(*given) if own else formula(arithmetic, *given)
            pairs = zip(each, dtypes, strict=True)
            return [Drawn(a if is_float(t) else a.astype(t, copy=False), parts) for a, t in pairs]

        return step


def _listed(found: Any) -> list[Array]:
    return found if isinstance(found, list) else [found]


def uninterpreted(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """The results as a random function of the op, its attributes and its whole operands, draw by draw."""
    if node.regions:
        raise Uncovered(node.name, node.scope)
    evaluator.uncovered.add(node.label)
    text = " ".join(f"{name}={node.attributes[name]}" for name in sorted(node.attributes))
    arrays = same_draws([operand.array for operand in operands])
    found: list[Held] = []
    for index, result in enumerate(node.results):
        parts = []
        for draw, each in enumerate(zip(*arrays, strict=True) if arrays else [()]):
            digest = hashlib.sha256(f"{node.name} {text} {index}".encode())
            for one in each:
                digest.update(f"{one.dtype} {one.shape}".encode())
                digest.update((one + np.zeros((), one.dtype)).tobytes())  # 0 and -0 are one residue
            random = np.random.default_rng(list(digest.digest()))
            dtype = dtype_of(result)
            if dtype.kind in "iu":  # every bit is random
                parts.append(
                    random.integers(0, 256, (*result.type.shape, dtype.itemsize), np.uint8).view(dtype)[..., 0]
                )
            else:
                parts.append(evaluator.drawn(result, draw, random))
        found.append(Drawn(np.stack(parts)))
    return found


def same_draws(arrays: Sequence[Array]) -> list[Array]:
    """``arrays`` with as many draws each: those of one draw are repeated."""
    draws = max(map(len, arrays), default=1)
    return [array if len(array) == draws else np.broadcast_to(array, (draws, *array.shape[1:])) for array in arrays]
