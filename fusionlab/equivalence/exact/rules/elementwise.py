"""Evaluation rules for elementwise ops.

An op that is not named here is an uninterpreted function of its elements. One identity is kept by the parts that a
value carries: exp(u + log v) = exp(u) v. log(1 + exp(x)) (softplus, logaddexp, log_sigmoid, log-sum-exp) has the
derivative exp(x - log(1 + exp(x))); a logarithm is therefore kept with its argument, through sums (also along axes, as
of the diagonal of a determinant), differences, moves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.raising.rules.elementwise import RULES as RAISED
from fusionlab.equivalence.exact.machine import METHODS
from fusionlab.equivalence.exact.rules.rule import ByNode, Computed, Formula, Rule, uninterpreted
from fusionlab.equivalence.exact.values import (
    Drawn,
    Environment,
    Held,
    Known,
    Uncovered,
    aligned,
    dtype_of,
    is_float,
)
from fusionlab.hlo.arithmetic import added, converted
from fusionlab.hlo.view import Node, direction_of, keyword

if TYPE_CHECKING:
    from fusionlab.equivalence.exact.evaluation import Evaluator


def _elementwise(formula: Formula, folds: bool = True, **carrying: Any) -> Rule:
    return Computed(lambda node: lambda arithmetic, *arrays: formula(arithmetic, *aligned(*arrays)), folds, **carrying)


def _method(name: str, folds: bool = True, **carrying: Any) -> Rule:
    return _elementwise(lambda arithmetic, *arrays: getattr(arithmetic, name)(*arrays), folds, **carrying)


def _linear(name: str, of_arguments: str) -> Rule:
    """The rule of sums and differences: logarithms are added, and their arguments multiplied."""
    return _method(name, carrying=(0, 2), of_arguments=of_arguments, ring=True)


def _add(node: Node) -> Rule:
    is_of_bits = node.results[0].dtype == "i1"
    return _elementwise(lambda arithmetic, x, y: added(x, y)) if is_of_bits else _linear("add", "multiply")


def _function(node: Node) -> Formula:
    name = node.name.partition(".")[2]
    if len(node.operands) == 1:
        return lambda arithmetic, x: arithmetic.function(name, x)
    return lambda arithmetic, x, y: arithmetic.function_of_two(name, *aligned(x, y))


def _leading_zeros(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """None of a negative number; of a negative constant of fewer than 64 bits XLA's folding has another number."""
    [held] = operands
    if isinstance(held, Known) and held.constant.dtype.itemsize < 8 and (held.constant < 0).any():
        raise Uncovered("a count_leading_zeros of a negative constant, which XLA folds otherwise", node.scope)
    return _FUNCTION(node, evaluator, operands, environment)


def _log(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    found = evaluator.arithmetic.function(node.name.removeprefix("stablehlo."), x := operands[0].array)
    argument = x if node.name == "stablehlo.log" else evaluator.arithmetic.add(x, np.ones(1))
    return [Drawn(found, {"logarithm": found, "argument": argument})]


def _log_gamma(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """lgamma(n) of constant positive integers n is log((n - 1)!), so that exp(lgamma(n)) is a factorial (``jet``)."""
    [held] = operands
    if isinstance(held, Known):
        constant = held.constant.astype(np.float64)
        if ((constant == np.rint(constant)) & (constant > 0) & (constant <= _MOST_FACTORIAL)).all():
            factorials = np.array([math.factorial(int(n) - 1) for n in constant.ravel()], np.int64)
            argument = evaluator.arithmetic.of_integers(factorials.reshape(1, *constant.shape))
            found = evaluator.arithmetic.function("log", argument)
            return [Drawn(found, {"logarithm": found, "argument": argument})]
    return _FUNCTION(node, evaluator, operands, environment)


def _exponential(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    [x], arithmetic = operands, evaluator.arithmetic
    if "logarithm" not in x.parts:
        return [Drawn(arithmetic.function("exponential", x.array))]
    rest = arithmetic.function("exponential", arithmetic.subtract(x.array, x.parts["logarithm"]))
    return [Drawn(arithmetic.multiply(rest, x.parts["argument"]))]


def _power(node: Node) -> Rule:
    return _power_of_floats if is_float(dtype_of(node.operands[0])) else _method("power")


def _power_of_floats(
    node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment
) -> list[Held]:
    x, y = aligned(*(operand.array for operand in operands))
    exponents = operands[1].constant.astype(np.complex128) if isinstance(operands[1], Known) else np.full(1, np.nan)
    if not np.isfinite(exponents).all() or exponents.imag.any():
        return [Drawn(evaluator.arithmetic.function_of_two("power", x, y))]
    found = np.zeros(())
    for constant in np.unique(exponents.real):
        found = np.where(exponents == constant, evaluator.arithmetic.power(x, float(constant)), found)
    return [Drawn(found)]


def _compare(node: Node) -> Formula:
    direction = direction_of(node)
    if "compare_type" in node.attributes and keyword(node.attributes["compare_type"]) == "TOTALORDER":
        return lambda arithmetic, x, y: arithmetic.compare(
            direction, *aligned(arithmetic.total_key(x), arithmetic.total_key(y))
        )
    return lambda arithmetic, x, y: arithmetic.compare(direction, *aligned(x, y))


_COMPARISON = Computed(_compare)


def rare_comparison(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """A comparison with an outcome that few points have: in some draws any, as the arithmetic has it."""
    [found] = _COMPARISON(node, evaluator, operands, environment)
    if isinstance(found, Known):
        return [found]
    x, y = aligned(*(operand.array for operand in operands))
    return [Drawn(evaluator.arithmetic.any_outcome(direction_of(node), x, y, found.array))]


def _convert(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    [held], dtype, arithmetic = operands, dtype_of(node.results[0]), evaluator.arithmetic
    x, source, target = held.array, is_float(dtype_of(node.operands[0])), is_float(dtype)
    if isinstance(held, Known):
        with np.errstate(all="ignore"):
            return [evaluator.known(converted(held.constant, dtype))]
    if source and target and (dtype.kind == "c") == np.iscomplexobj(x):  # rounding is ignored
        return [held]
    if dtype.kind == "c":
        return [Drawn((x if source else arithmetic.of_integers(x)).astype(np.complex128))]
    x = x.real  # what else is made of a complex number is made of its real part
    if source and target:
        return [Drawn(x)]
    if dtype == np.bool_:
        return [Drawn(x != 0)]
    if source:
        return [Drawn(arithmetic.integers_of(x, dtype))]
    return [Drawn(arithmetic.of_integers(x) if target else x.astype(dtype))]


def _bitcast(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """Integers of integers and what is constant bit by bit; drawn bits of a float; of the bits of a random number a
    float that is a random function of them."""
    [held], dtype, shape = operands, dtype_of(node.results[0]), node.results[0].type.shape
    x, arithmetic, source, target = held.array, evaluator.arithmetic, dtype_of(node.operands[0]), is_float(dtype)
    if np.bool_ in (source, dtype):
        if source == dtype:
            return [held]
        raise Uncovered("a bitcast_convert of i1, of which XLA takes eight bits", node.scope)
    if isinstance(held, Known):
        return [evaluator.known(np.ascontiguousarray(held.constant).view(dtype).reshape(shape))]
    if (is_float(source) or target) and len(node.operands[0].type.shape) != len(shape):
        return uninterpreted(node, evaluator, operands, environment)
    if is_float(source):
        format_ = jnp.finfo(source)
        bits = arithmetic.bits_of(x, format_.nexp, format_.nmant)
        return [Drawn(bits.astype(f"u{dtype.itemsize}").view(dtype))]
    if target:
        return [Drawn(arithmetic.function("of bits", arithmetic.of_integers(x)))]
    return [Drawn(np.ascontiguousarray(x).view(dtype).reshape(len(x), *shape))]


_ROUNDING: dict[str, Callable[..., Any]] = {
    "ceil": np.ceil, "floor": np.floor, "remainder": np.fmod, "round_nearest_even": np.rint,
    "round_nearest_afz": lambda x: np.where(np.mod(x, 1) == 0.5, x + np.copysign(0.5, x), np.rint(x)).astype(x.dtype),
}  # fmt: skip


def _rounded(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """Of constants the integral part or the remainder itself, as ``//`` and ``%`` of a counter are lowered; else an
    integer that is drawn, and x - y n for an integer n."""
    constants = [operand.constant for operand in operands if isinstance(operand, Known)]
    name = node.name.removeprefix("stablehlo.")
    if not is_float(dtype_of(node.operands[0])):
        return _FUNCTION(node, evaluator, operands, environment)
    if len(constants) < len(operands):
        arithmetic, (x, *divisor) = evaluator.arithmetic, aligned(*(operand.array for operand in operands))
        if not divisor:
            return [Drawn(arithmetic.integral(name, x))]
        whole = arithmetic.integral(name, arithmetic.divide(x, *divisor))
        return [Drawn(arithmetic.subtract(x, arithmetic.multiply(*divisor, whole)))]
    with np.errstate(all="ignore"):
        return [evaluator.known(_ROUNDING[name](*constants))]


def _divide(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """A quotient; of constants that divide without a remainder a constant."""
    if is_float(dtype_of(node.operands[0])) and all(isinstance(operand, Known) for operand in operands):
        x, y = (operand.constant for operand in operands if isinstance(operand, Known))
        if x.dtype.kind == "f" and np.isfinite(x).all() and y.all() and not np.fmod(x, y).any():
            quotient = x / y
            if (np.abs(quotient) < 2 ** np.finfo(x.dtype).nmant).all():  # an integer that is not rounded
                return [evaluator.known(quotient)]
    return _QUOTIENT(node, evaluator, operands, environment)


_MOST_FACTORIAL = 21
"""lgamma(21) is log 20!, the last factorial below 2^63."""
_FUNCTION, _QUOTIENT = Computed(_function, folds=False), _method("divide", folds=False)


def unchanged(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    return list(operands)


RULES: dict[str, Rule | ByNode] = {
    **dict.fromkeys(RAISED, _FUNCTION),
    **dict.fromkeys((f"stablehlo.{name}" for name in _ROUNDING), _rounded),
    **{f"stablehlo.{name}": _method(method) for name, method in METHODS.items()},
    "stablehlo.add": ByNode(_add),
    "stablehlo.bitcast_convert": _bitcast,
    "stablehlo.clamp": _elementwise(lambda a, low, x, high: a.minimum(a.maximum(x, low), high)),
    "stablehlo.compare": _COMPARISON,
    "stablehlo.complex": _elementwise(lambda arithmetic, x, y: x + 1j * y, folds=False),
    "stablehlo.convert": _convert,
    "stablehlo.count_leading_zeros": _leading_zeros,
    "stablehlo.divide": _divide,
    "stablehlo.exponential": _exponential,
    "stablehlo.imag": _elementwise(lambda arithmetic, x: x.imag, folds=False),
    "stablehlo.is_finite": _method("is_finite"),
    "stablehlo.log": _log,
    "stablehlo.log_plus_one": _log,
    "stablehlo.multiply": _method("multiply", ring=True),
    "stablehlo.negate": _linear("negate", "inverse"),
    "stablehlo.optimization_barrier": unchanged,
    "stablehlo.power": ByNode(_power),
    "stablehlo.real": _elementwise(lambda arithmetic, x: x.real, folds=False),
    "stablehlo.reduce_precision": unchanged,
    "stablehlo.select": _elementwise(lambda a, *arrays: np.where(*arrays), carrying=(1, 3)),
    "stablehlo.subtract": _linear("subtract", "divide"),
    "chlo.conj": _elementwise(lambda arithmetic, x: x.conj()),
    "chlo.lgamma": _log_gamma,
    "chlo.square": _elementwise(lambda arithmetic, x: arithmetic.multiply(x, x)),
    "sdy.sharding_constraint": unchanged,
}
