"""What is known of a value without running the program: constants, and integers that follow a loop counter."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from fusionlab.hlo.flat import Node, Value, constant_array

_MOST_ELEMENTS = 4096

_FOLD: dict[str, Callable[..., Any]] = {
    "stablehlo.add": np.add,
    "stablehlo.subtract": np.subtract,
    "stablehlo.multiply": np.multiply,
    "stablehlo.negate": np.negative,
    "stablehlo.maximum": np.maximum,
    "stablehlo.minimum": np.minimum,
    "stablehlo.and": np.bitwise_and,
    "stablehlo.or": np.bitwise_or,
    "stablehlo.not": np.bitwise_not,
}
_COMPARE: dict[str, Callable[..., Any]] = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}
_NUMPY = {"i1": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "i64": "int64", "ui8": "uint8", "ui32": "uint32"}


def fold(value: Value, known: Mapping[Value, np.ndarray] | None = None) -> np.ndarray | None:
    """The value as a NumPy array if it follows from constants and ``known`` values by small integer ops, else None.

    Arithmetic wraps in the value's own type, as StableHLO's does.
    """
    known = dict(known or {})
    return _fold(value, known, set())


def _fold(value: Value, known: dict[Value, np.ndarray], open_: set[Value]) -> np.ndarray | None:
    if value in known:
        return known[value]
    node = value.producer
    if node is None or value in open_ or len(node.results) != 1:
        return None
    try:
        type_ = value.type
    except ValueError:
        return None
    if int(np.prod(type_.shape)) > _MOST_ELEMENTS:
        return None
    if node.name == "stablehlo.constant":
        return constant_array(node)
    if type_.dtype not in _NUMPY:
        return None
    open_.add(value)
    operands = [_fold(operand, known, open_) for operand in node.operands]
    if any(operand is None for operand in operands):
        return None
    with np.errstate(over="ignore"):
        evaluated = _evaluate(node, operands)
    if evaluated is None:
        return None
    result: np.ndarray = np.asarray(evaluated).astype(_NUMPY[type_.dtype])
    known[value] = result
    return result


def _evaluate(node: Node, operands: list[Any]) -> Any:
    type_ = node.results[0].type
    match node.name:
        case "stablehlo.convert":
            return operands[0]
        case "stablehlo.reshape":
            return np.reshape(operands[0], type_.shape)
        case "stablehlo.broadcast_in_dim":
            dimensions = [int(d) for d in node.attributes["broadcast_dimensions"]]
            shape = [1] * len(type_.shape)
            for axis, dimension in enumerate(dimensions):
                shape[dimension] = operands[0].shape[axis]
            return np.broadcast_to(np.reshape(operands[0], shape), type_.shape)
        case "stablehlo.iota":
            axis = node.attributes["iota_dimension"].value
            shape = [1] * len(type_.shape)
            shape[axis] = type_.shape[axis]
            return np.broadcast_to(np.arange(type_.shape[axis]).reshape(shape), type_.shape)
        case "stablehlo.remainder":  # by zero it is whatever the platform makes of it
            return np.fmod(*operands) if np.all(operands[1]) else None
        case "stablehlo.select":
            return np.where(operands[0], operands[1], operands[2])
        case "stablehlo.compare":
            direction = str(node.attributes["comparison_direction"]).rsplit(" ", 1)[-1].rstrip(">")
            return _COMPARE[direction](operands[0], operands[1])
        case _:
            function = _FOLD.get(node.name)
            return None if function is None else function(*operands)
