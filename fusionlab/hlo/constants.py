"""Values known without running the program: constants, and integers that follow from a loop counter."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np

from fusionlab.hlo import arithmetic, ops
from fusionlab.hlo.ops import INTEGERS, NUMPY, WIDE_FLOATS
from fusionlab.hlo.view import Node, Region, Value, constant_array, direction_of, keyword

_MOST_ELEMENTS = 4096
WHOLE = ("i1", *INTEGERS)
"""The element types that are no floats."""

_FOLD: dict[ops.OpDef, Callable[..., Any]] = {
    ops.ADD: arithmetic.added,
    ops.SUBTRACT: np.subtract,
    ops.MULTIPLY: np.multiply,
    ops.NEGATE: np.negative,
    ops.MAXIMUM: np.maximum,
    ops.MINIMUM: np.minimum,
    ops.AND: np.bitwise_and,
    ops.OR: np.bitwise_or,
    ops.NOT: np.bitwise_not,
}
_COMPARE: dict[str, Callable[..., Any]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}
_TOTAL = "TOTALORDER"
"""The comparison of floats by their bits, which is not NumPy's."""
_LEAST = {"maximum": -np.inf, "minimum": np.inf}


def fold(
    value: Value, known: Mapping[Value, np.ndarray] | None = None, *, most_elements: int = _MOST_ELEMENTS
) -> np.ndarray | None:
    """The value as a NumPy array if it follows from constants and ``known`` values by integer ops of at most
    ``most_elements``, else None.

    Arithmetic wraps in the value's own type, as StableHLO's does.
    """
    found = dict(known or {})
    unknown: set[Value] = set()
    open_ = [value]  # an explicit stack: chains of thousands of ops are legal
    while open_:
        current = open_[-1]
        if current in found or current in unknown:
            open_.pop()
            continue
        operands = _needed(current, most_elements)
        if operands is None or not unknown.isdisjoint(operands):
            unknown.add(current)
        elif missing := [operand for operand in operands if operand not in found]:
            open_ += missing
        elif (array := _folded(current, [found[operand] for operand in operands])) is None:
            unknown.add(current)
        else:
            found[current] = array
    return found.get(value)


def filling(value: Value) -> np.ndarray | None:
    """The array of a constant before it was broadcast; None for other values."""
    return constant_behind(value, (ops.BROADCAST_IN_DIM,))


def number_of(value: Value, dtypes: Collection[str] = WIDE_FLOATS) -> float | None:
    """The number that all elements of ``value`` equal, if it is a constant of one of ``dtypes``; else None."""
    array = constant_behind(value, (ops.BROADCAST_IN_DIM, ops.RESHAPE))
    if array is None or value.type.dtype not in dtypes:
        return None
    number = splat_number(array)
    return None if number is None else float(number.real)


def splat_number(array: np.ndarray) -> complex | None:
    """The number that all elements of ``array`` equal, int, float, bool or complex; None if they differ."""
    if not array.size or (array != array.flat[0]).any():
        return None
    number: complex = array.flat[0].item()
    return number


def folded_number(value: Value) -> complex | None:
    """The number that all elements of ``value`` equal, if they follow from constants by integer ops; else None."""
    array = fold(value)
    return None if array is None else splat_number(array)


def constant_behind(value: Value, moves: tuple[ops.OpDef, ...]) -> np.ndarray | None:
    """The array of the constant from which ``value`` follows by ``moves`` alone."""
    while (node := value.producer) is not None and node.op in moves:
        value = node.operands[0]
    return constant_array(node) if node is not None and node.op is ops.CONSTANT else None


def least_of(name: str, value: Value) -> bool:
    """True if ``value`` is the identity of ``name`` (``maximum`` or ``minimum``)."""
    array = filling(value)
    return name in _LEAST and array is not None and bool((array == _LEAST[name]).all())


def taken_branch(node: Node) -> Region | None:
    """The region that a ``case`` runs, if its index follows from constants (and other such cases).

    JAX lowers platform-dependent code to such a case of two. An index out of range takes the last region.
    """
    if node.op is not ops.CASE:
        return None
    value = node.operands[0]
    while value.producer is not None and (region := taken_branch(value.producer)) is not None:
        value = region.returns[value.index]
    index = fold(value)
    if index is None:
        return None
    return node.regions[int(index) if 0 <= int(index) < len(node.regions) else -1]


def constant_divided_by_zero(flat: Region) -> Node | None:
    """The first quotient or remainder of integer constants by zero, which XLA's folding does not survive."""
    for node in flat.walk():
        if node.op in (ops.DIVIDE, ops.REMAINDER) and node.results[0].dtype in INTEGERS:
            by = fold(node.operands[1])
            if by is not None and not by.all() and fold(node.operands[0]) is not None:
                return node
    return None


def _needed(value: Value, most_elements: int) -> tuple[Value, ...] | None:
    """The values that ``value`` is computed from; None if it can never be folded."""
    node = value.producer
    if node is None or len(node.results) != 1 or not value.is_array:
        return None
    type_ = value.type
    if int(np.prod(type_.shape)) > most_elements:
        return None
    if node.op is ops.CONSTANT:
        return ()
    return node.operands if type_.dtype in WHOLE else None


def _folded(value: Value, operands: list[np.ndarray]) -> np.ndarray | None:
    node = value.producer
    assert node is not None
    if node.op is ops.CONSTANT:
        return constant_array(node)
    with np.errstate(over="ignore"):
        evaluated = evaluate(node, operands)
    return None if evaluated is None else np.asarray(evaluated).astype(NUMPY[value.type.dtype])


def evaluate(node: Node, operands: list[Any]) -> Any:
    """Evaluate one small integer op on NumPy arrays; None for an op without a rule here."""
    type_ = node.results[0].type
    match node.op:
        case ops.CONVERT:
            return arithmetic.converted(operands[0], NUMPY[type_.dtype]) if type_.dtype in WHOLE else operands[0]
        case ops.RESHAPE:
            return np.reshape(operands[0], type_.shape)
        case ops.BROADCAST_IN_DIM:
            return _broadcast(node, operands[0])
        case ops.CONCATENATE:
            return np.concatenate(operands, node.attributes["dimension"].value)
        case ops.IOTA:
            axis = node.attributes["iota_dimension"].value
            shape = [1] * len(type_.shape)
            shape[axis] = type_.shape[axis]
            return np.broadcast_to(np.arange(type_.shape[axis]).reshape(shape), type_.shape)
        case ops.REMAINDER:  # by zero it is platform-dependent
            return np.fmod(*operands) if np.all(operands[1]) else None
        case ops.DIVIDE if type_.dtype in INTEGERS and np.all(operands[1]):  # towards zero, as the remainder
            return arithmetic.divided(*operands)
        case ops.SELECT:
            return np.where(operands[0], operands[1], operands[2])
        case ops.COMPARE:
            return _compared(node, operands[0], operands[1])
        case _:
            return _applied(_FOLD.get(node.op), operands)


def _broadcast(node: Node, array: Any) -> Any:
    """The array with the axes that ``node`` adds or repeats along."""
    whole = node.results[0].type.shape
    shape = [1] * len(whole)
    for axis, dimension in enumerate(node.attributes["broadcast_dimensions"]):
        shape[int(dimension)] = array.shape[axis]
    return np.broadcast_to(np.reshape(array, shape), whole)


def _compared(node: Node, left: Any, right: Any) -> Any:
    """The predicates of a comparison; None for one of floats by their bits."""
    if "compare_type" in node.attributes and keyword(node.attributes["compare_type"]) == _TOTAL:
        return None
    return _COMPARE[direction_of(node)](left, right)


def _applied(function: Callable[..., Any] | None, operands: list[Any]) -> Any:
    """The value of ``function``; None without one, or where XLA has no one value."""
    try:
        return None if function is None else function(*operands)
    except arithmetic.NoOneMeaning:
        return None
