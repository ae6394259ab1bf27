"""Evaluation rules for reductions, windowed and cumulative ones, and sorting."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fusionlab.codegen.raising_rules.reduction import ascending_keys, combiner
from fusionlab.codegen.raising_rules.rule import integers
from fusionlab.equivalence.exact.evaluation import Evaluator, Rule
from fusionlab.equivalence.exact.values import Array, Drawn, Environment, Held, Known, Step, Uncovered
from fusionlab.hlo.flat import Node

_NATIVE: dict[str, Callable[[Array, Array], Any]] = {
    "add": np.add,
    "multiply": np.multiply,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "and": np.bitwise_and,
    "or": np.bitwise_or,
    "xor": np.bitwise_xor,
}


def _combining(name: str, boolean: bool, arithmetic: Any | None) -> Callable[[Array, Array], Array]:
    """What combines two elements: a method of ``arithmetic``, natively where it is None."""
    if arithmetic is not None:
        return getattr(arithmetic, name)  # type: ignore[no-any-return]
    if boolean:
        name = {"add": "or", "multiply": "and", "maximum": "or", "minimum": "and"}.get(name, name)
    return _NATIVE[name]


def _reduce(node: Node, evaluator: Evaluator) -> Step:
    half = len(node.operands) // 2
    name = combiner(node.regions[0]) if half == 1 else "custom"
    axes = tuple(axis + 1 for axis in integers(node.attributes["dimensions"]))
    shape = node.results[0].type.shape
    given = node.operands[0].type.shape
    kept = [axis for axis in range(len(given) + 1) if axis not in axes]
    count = math.prod(given[axis - 1] for axis in axes)
    boolean, floats = node.operands[0].type.dtype == "i1", evaluator.is_float(node.operands[0])
    exact = _combining(name, boolean, evaluator.arithmetic if floats else None) if name in _NATIVE else None

    def last(x: Array) -> Array:
        """The reduced axes as one, the last."""
        return x.transpose(*kept, *axes).reshape(len(x), *shape, count)

    def combined(x: Array, initial: Array, function: Callable[[Array, Array], Array]) -> Array:
        found = initial.reshape(len(initial), *(1,) * len(shape))
        parts = last(x)
        for at in range(count):
            found = function(found, parts[..., at])
        # A maximum of residues that are the same in all draws is not, under an order of each draw's own.
        return np.broadcast_to(found, (max(len(x), len(initial), len(found)), *shape))

    def by_region(operands: Sequence[Held], environment: Environment) -> list[Held]:
        arrays = [last(evaluator.lifted(o, v)) for o, v in zip(operands[:half], node.operands[:half], strict=True)]
        found: list[Held] = []
        for operand, value in zip(operands[half:], node.operands[half:], strict=True):
            initial = evaluator.lifted(operand, value)
            found.append(Drawn(initial.reshape(len(initial), *(1,) * len(shape))))
        captured = {value: _widened(environment[value], len(shape)) for value in evaluator.captured(node.regions[0])}
        for at in range(count):
            found = evaluator.region(node.regions[0], [*found, *(Drawn(a[..., at]) for a in arrays)], captured)
        return [Drawn(np.broadcast_to(held.array, (len(held.array), *shape))) for held in found]

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        if exact is None:
            return by_region(operands, environment)
        known = all(isinstance(operand, Known) for operand in operands)
        if known:
            x, initial = (operand.array[None] for operand in operands)
            with np.errstate(all="ignore"):
                found = combined(x, initial, _combining(name, boolean, None))
            return [Known(np.asarray(found[0]).astype(x.dtype))]
        x, initial = (evaluator.lifted(o, v) for o, v in zip(operands, node.operands, strict=True))
        if name == "add" and floats:
            total = evaluator.arithmetic.sum(x, axes)
            return [Drawn(evaluator.arithmetic.add(total, initial.reshape(len(initial), *(1,) * len(shape))))]
        if not floats and count:
            dtype, function = x.dtype, _combining(name, boolean, None)
            total = function.reduce(x, axis=axes, dtype=dtype)  # type: ignore[attr-defined]
            return [Drawn(np.asarray(function(total, initial.reshape(len(initial), *(1,) * len(shape)))).astype(dtype))]
        return [Drawn(np.asarray(combined(x, initial, exact)).astype(x.dtype))]

    return step


def _widened(held: Held, rank: int) -> Held:
    """A drawn scalar with ``rank`` axes of extent 1."""
    return Drawn(held.array.reshape(-1, *(1,) * rank)) if isinstance(held, Drawn) and held.array.ndim == 1 else held


def _reduce_window(node: Node, evaluator: Evaluator) -> Step:
    name = combiner(node.regions[0])
    if len(node.operands) != 2 or name not in _NATIVE:
        raise Uncovered(f"a windowed reduction that combines by {name}", node.scope)
    attributes, shape = node.attributes, node.results[0].type.shape
    rank = len(shape)
    padding = np.array(attributes["padding"]).reshape(rank, 2).tolist() if "padding" in attributes else [(0, 0)] * rank
    strides, base, dilations = (
        integers(attributes[key]) if key in attributes else (1,) * rank
        for key in ("window_strides", "base_dilations", "window_dilations")
    )
    window = integers(attributes["window_dimensions"])
    boolean, floats = node.operands[0].type.dtype == "i1", evaluator.is_float(node.operands[0])

    def reduced(x: Array, initial: Array, function: Callable[[Array, Array], Array]) -> Array:
        draws = max(len(x), len(initial))
        start = initial.reshape(len(initial), *(1,) * rank)
        extents = [(n - 1) * b + 1 for n, b in zip(x.shape[1:], base, strict=True)]
        spread = np.empty((draws, *extents), x.dtype)
        spread[...] = start
        spread[(slice(None), *(slice(None, None, b) for b in base))] = x
        inside = tuple(slice(max(-low, 0), n + min(high, 0)) for n, (low, high) in zip(extents, padding, strict=True))
        large = np.empty((draws, *(n + low + high for n, (low, high) in zip(extents, padding, strict=True))), x.dtype)
        large[...] = start
        into = tuple(slice(max(low, 0), low + s.stop) for s, (low, _) in zip(inside, padding, strict=True))
        large[(slice(None), *into)] = spread[(slice(None), *inside)]
        found = np.broadcast_to(start, (draws, *shape))
        for at in np.ndindex(*window):
            places = (
                slice(o * d, o * d + (n - 1) * s + 1, s)
                for o, d, n, s in zip(at, dilations, shape, strides, strict=True)
            )
            found = function(found, large[(slice(None), *places)])
        return found

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        if all(isinstance(operand, Known) for operand in operands):
            x, initial = (operand.array[None] for operand in operands)
            return [Known(reduced(x, initial, _combining(name, boolean, None))[0].astype(x.dtype))]
        x, initial = (evaluator.lifted(o, v) for o, v in zip(operands, node.operands, strict=True))
        found = reduced(x, initial, _combining(name, boolean, evaluator.arithmetic if floats else None))
        return [Drawn(np.asarray(found).astype(x.dtype))]

    return step


def _sort(node: Node, evaluator: Evaluator) -> Step:
    keys, axis = ascending_keys(node), node.attributes["dimension"].value + 1

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        known = all(isinstance(operand, Known) for operand in operands)
        arrays, ordered = [], []
        for operand, value in zip(operands, node.operands, strict=True):
            array = operand.array[None] if known else evaluator.lifted(operand, value)
            arrays.append(array)
            ordered.append(evaluator.arithmetic.key(array) if evaluator.is_float(value) and not known else array)
        draws = max(map(len, [*arrays, *ordered]))
        ordered = [np.broadcast_to(key, (draws, *key.shape[1:])) for key in ordered[:keys]]
        places = np.lexsort(ordered[::-1], axis=axis)
        found = [np.take_along_axis(np.broadcast_to(a, (draws, *a.shape[1:])), places, axis) for a in arrays]
        return [Known(array[0]) if known else Drawn(array) for array in found]

    return step


def _scan(node: Node, evaluator: Evaluator) -> Step:
    """``(outputs, carries) = chlo.scan(inputs, initial carries)`` along one axis."""
    region, attributes = node.regions[0], node.attributes
    axis = int(attributes["dimension"].value) + 1
    reverse = bool(attributes["is_reverse"].value) if "is_reverse" in attributes else False
    rank = len(node.results[-1].type.shape)
    carries = sum(len(value.type.shape) == rank for value in node.results)

    def step(operands: Sequence[Held], environment: Environment) -> list[Held]:
        inputs = [evaluator.lifted(o, v) for o, v in zip(operands, node.operands, strict=True)][
            : len(operands) - carries
        ]
        carried = list(operands[len(operands) - carries :])
        outputs: list[list[Array]] = []
        places = range(inputs[0].shape[axis])
        for at in reversed(places) if reverse else places:
            results = evaluator.region(region, [*(Drawn(x.take(at, axis)) for x in inputs), *carried], environment)
            given = results[: len(results) - carries]
            outputs.append([evaluator.lifted(h, v) for h, v in zip(given, region.returns, strict=False)])
            carried = results[len(results) - carries :]
        if reverse:
            outputs.reverse()
        stacked: list[Held] = [Drawn(np.stack(each, axis)) for each in zip(*outputs, strict=True)]
        return [*stacked, *carried]

    return step


RULES: dict[str, Rule] = {
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.sort": _sort,
    "chlo.scan": _scan,
}
