"""Evaluation rules for elementwise ops.

An op that is not named here is an uninterpreted function of its elements. One identity is kept by what a value
carries: exp(u + log v) = exp(u) v. log(1 + exp(x)) (softplus, logaddexp, log_sigmoid, log-sum-exp) is differentiated to
exp(x - log(1 + exp(x))); a logarithm is therefore kept with its argument, through sums, differences and moves.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusionlab.codegen.raising_rules.elementwise import RULES as RAISED
from fusionlab.equivalence.exact.evaluation import Evaluator, Formula, Rule, computed, dtype_of, moving, uninterpreted
from fusionlab.equivalence.exact.machine import METHODS
from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, Known, Step, Uncovered, is_float, part
from fusionlab.hlo.enumerations import direction_of, keyword
from fusionlab.hlo.flat import Node


def aligned(*arrays: Array) -> Sequence[Array]:
    """Scalars [draws] beside arrays [draws, ...] get axes of extent 1."""
    rank = max(array.ndim for array in arrays)
    return [a if a.ndim == rank else a.reshape(*a.shape, *(1,) * (rank - a.ndim)) for a in arrays]


def _elementwise(formula: Formula, folds: bool = True) -> Rule:
    return computed(lambda node: lambda arithmetic, *arrays: formula(arithmetic, *aligned(*arrays)), folds)


def _method(name: str, folds: bool = True) -> Rule:
    return _elementwise(lambda arithmetic, *arrays: getattr(arithmetic, name)(*arrays), folds)


def _function(node: Node) -> Formula:
    name = node.name.partition(".")[2]
    if len(node.operands) == 1:
        return lambda arithmetic, x: arithmetic.function(name, x)
    return lambda arithmetic, x, y: arithmetic.function_of_two(name, *aligned(x, y))


def _log(node: Node, evaluator: Evaluator) -> Step:
    function = computed(_function, folds=False)(node, evaluator)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [found], x = function(operands, environment), operands[0].array
        argument = x if node.name == "stablehlo.log" else evaluator.arithmetic.add(x, np.ones(1))
        return [
            found
            if isinstance(operands[0], Known)
            else Drawn(found.array, {"logarithm": found.array, "argument": argument})
        ]

    return step


def _exponential(node: Node, evaluator: Evaluator) -> Step:
    function, arithmetic = computed(_function, folds=False)(node, evaluator), evaluator.arithmetic

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [x] = operands
        if "logarithm" not in x.parts:
            return function(operands, environment)
        [rest] = function([Drawn(arithmetic.subtract(x.array, x.parts["logarithm"]))], environment)
        return [Drawn(arithmetic.multiply(rest.array, x.parts["argument"]))]

    return step


def _linear(name: str, of_arguments: str) -> Rule:
    """Sums and differences: what is added in logarithms is multiplied in their arguments."""

    def rule(node: Node, evaluator: Evaluator) -> Step:
        plain, arithmetic = _method(name)(node, evaluator), evaluator.arithmetic

        def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
            [found] = plain(operands, environment)
            if not any("logarithm" in operand.parts for operand in operands):
                return [found]
            parts = {
                key: getattr(arithmetic, method)(*aligned(*(part(operand, key) for operand in operands)))
                for key, method in (("logarithm", name), ("argument", of_arguments))
            }
            return [Drawn(found.array, parts)]

        return step

    return rule


def _power(node: Node, evaluator: Evaluator) -> Step:
    if not is_float(dtype_of(node.operands[0])):
        return _method("power")(node, evaluator)
    arithmetic = evaluator.arithmetic

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        x, y = aligned(*(operand.array for operand in operands))
        exponents = operands[1].constant.astype(np.complex128) if isinstance(operands[1], Known) else np.full(1, np.nan)
        if not np.isfinite(exponents).all() or exponents.imag.any():
            return [Drawn(arithmetic.function_of_two("power", x, y))]
        found = np.zeros(())
        for constant in np.unique(exponents.real):
            found = np.where(exponents == constant, arithmetic.power(x, float(constant)), found)
        return [Drawn(found)]

    return step


def _compare(node: Node) -> Formula:
    direction = direction_of(node)
    if "compare_type" in node.attributes and keyword(node.attributes["compare_type"]) == "TOTALORDER":
        raise Uncovered("a comparison in total order", node.scope)
    return lambda arithmetic, x, y: arithmetic.compare(direction, *aligned(x, y))


def _select(node: Node, evaluator: Evaluator) -> Step:
    plain = moving(lambda node: lambda arithmetic, *arrays: np.where(*aligned(*arrays)), slice(1, 3))(node, evaluator)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        predicate = operands[0]
        if isinstance(predicate, Known) and (predicate.constant.all() or not predicate.constant.any()):
            return [operands[1] if predicate.constant.all() else operands[2]]
        return plain(operands, environment)

    return step


def _convert(node: Node, evaluator: Evaluator) -> Step:
    dtype, arithmetic = dtype_of(node.results[0]), evaluator.arithmetic
    source, target = is_float(dtype_of(node.operands[0])), is_float(dtype)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [held] = operands
        if isinstance(held, Known):
            with np.errstate(all="ignore"):
                return [evaluator.known(held.constant != 0 if dtype == np.bool_ else held.constant.astype(dtype))]
        if source and target:  # rounding is not seen
            return [held if dtype.kind == "c" or not np.iscomplexobj(held.array) else Drawn(held.array.real)]
        if dtype == np.bool_:
            return [Drawn(held.array != 0)]
        if source:
            return [Drawn(arithmetic.integers_of(held.array, dtype))]
        return [Drawn(arithmetic.of_integers(held.array) if target else held.array.astype(dtype))]

    return step


def _bitcast(node: Node, evaluator: Evaluator) -> Step:
    dtype, shape, arithmetic = dtype_of(node.results[0]), node.results[0].type.shape, evaluator.arithmetic
    source, target = is_float(dtype_of(node.operands[0])), is_float(dtype)
    if len(node.operands[0].type.shape) != len(shape) and (source or target):
        return uninterpreted(node, evaluator)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        [held] = operands
        if isinstance(held, Known):
            return [evaluator.known(np.ascontiguousarray(held.constant).view(dtype).reshape(shape))]
        if source:  # a sign bit by the order, and bits that are a random function of the magnitude
            bits = arithmetic.function("bits", arithmetic.absolute(held.array)).astype(np.int64) & 0x7FFFFF
            sign = (arithmetic.sign(held.array) < 0).astype(np.uint64) << np.uint64(8 * dtype.itemsize - 1)
            return [Drawn((bits.astype(np.uint64) | sign).astype(f"u{dtype.itemsize}").view(dtype))]
        if target:
            return [Drawn(arithmetic.function("of bits", arithmetic.of_integers(held.array)))]
        return [Drawn(np.ascontiguousarray(held.array).view(dtype).reshape(len(held.array), *shape))]

    return step


def unchanged(node: Node, evaluator: Evaluator) -> Step:
    return lambda operands, environment: list(operands)


RULES: dict[str, Rule] = {
    **dict.fromkeys(RAISED, computed(_function, folds=False)),
    **{f"stablehlo.{name}": _method(method) for name, method in METHODS.items()},
    "stablehlo.add": _linear("add", "multiply"),
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.clamp": _elementwise(lambda a, low, x, high: a.minimum(a.maximum(x, low), high)),
    "stablehlo.compare": computed(_compare),
    "stablehlo.complex": _elementwise(lambda arithmetic, x, y: x + 1j * y, folds=False),
    "stablehlo.convert": _convert,
    "stablehlo.divide": _method("divide", folds=False),
    "stablehlo.exponential": _exponential,
    "stablehlo.imag": _elementwise(lambda arithmetic, x: x.imag, folds=False),
    "stablehlo.is_finite": _method("is_finite"),
    "stablehlo.log": _log,
    "stablehlo.log_plus_one": _log,
    "stablehlo.negate": _linear("negate", "inverse"),
    "stablehlo.optimization_barrier": unchanged,
    "stablehlo.power": _power,
    "stablehlo.real": _elementwise(lambda arithmetic, x: x.real, folds=False),
    "stablehlo.reduce_precision": unchanged,
    "stablehlo.select": _select,
    "stablehlo.subtract": _linear("subtract", "divide"),
    "chlo.square": _elementwise(lambda arithmetic, x: arithmetic.multiply(x, x)),
    "sdy.sharding_constraint": unchanged,
}
