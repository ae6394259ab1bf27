"""Evaluation rules for ops with regions: control flow, reductions, sorts, scans.

Loops run trip by trip; where draws differ, each keeps its own values.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from fusionlab.codegen.raising.rules.reduction import SortKey, combiner, sort_keys
from fusionlab.codegen.raising.rules.rule import integers
from fusionlab.equivalence.exact.machine import COMMUTATIVE, MACHINE, METHODS
from fusionlab.equivalence.exact.rules.moves import padded, put
from fusionlab.equivalence.exact.rules.rule import ByNode, Computed, Formula, Rule
from fusionlab.equivalence.exact.values import (
    Array,
    Drawn,
    Environment,
    Held,
    Known,
    Uncovered,
    dtype_of,
    is_float,
    same_draws,
)
from fusionlab.hlo.view import Node

if TYPE_CHECKING:
    from fusionlab.equivalence.exact.evaluation import Evaluator

MOST_TRIPS = 1024
"""The most trips of a loop whose condition depends on the arguments; draws in which it goes on are left out."""


def _while(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    condition, body = node.regions
    carried, active, trips = list(operands), np.ones(1, bool), 0
    while True:
        [going] = evaluator.region(condition, carried, environment)
        active = active & going.array
        if not active.any():
            return carried
        trips += not isinstance(going, Known)
        if trips > MOST_TRIPS:
            evaluator.leave_out(active, node)
            return carried
        after = evaluator.region(body, carried, environment)
        carried = [_chosen(active, new, old) for new, old in zip(after, carried, strict=True)]


def _chosen(where: Array, new: Held, old: Held) -> Held:
    """``new`` in the draws ``where``, ``old`` in the others."""
    if new is old or where.all():
        return new
    return Drawn(np.where(where.reshape(-1, *(1,) * (new.array.ndim - 1)), new.array, old.array))


def _branches(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """``case``: the last branch for an index out of range; ``if``: the first for true."""
    index, last = operands[0].array, len(node.regions) - 1
    index = 1 - index.astype(int) if index.dtype == np.bool_ else np.where((index < 0) | (index > last), last, index)
    numbers = np.unique(index)
    found = evaluator.region(node.regions[numbers[0]], [], environment)
    for number in numbers[1:]:
        results = evaluator.region(node.regions[number], [], environment)
        found = [_chosen(index == number, new, old) for new, old in zip(results, found, strict=True)]
    if isinstance(operands[0], Known):
        return found
    return [Drawn(held.array, held.parts) for held in found]  # an argument decides, even between constants


def _combined(arithmetic: Any, how: str, x: Array, initial: Array, rank: int) -> Array:
    """x [draws, ...] combined with ``initial`` [draws] from left to right along the axes from ``rank`` on."""
    function, axes = getattr(arithmetic, METHODS[how]), tuple(range(rank, x.ndim))
    found = initial.reshape(-1, *(1,) * (rank - 1))
    if how == "add" and axes and x.dtype != np.bool_:
        found = function(arithmetic.sum(x, axes), found)
    elif isinstance(function, np.ufunc) and 0 not in x.shape:
        found = function(function.reduce(x, axes, x.dtype), found)
    else:
        for at in np.ndindex(*x.shape[rank:]):
            found = function(found, x[(..., *at)])
    return np.broadcast_to(found, (max(len(x), len(initial), len(found)), *x.shape[1:rank]))


def reduced_last(node: Node) -> list[int]:
    """The permutation of the axes of [draws, *operand] that puts the reduced ones last."""
    axes = [axis + 1 for axis in integers(node.attributes["dimensions"])]
    return [axis for axis in range(len(node.operands[0].type.shape) + 1) if axis not in axes] + axes


def _reduce(node: Node) -> Rule:
    how = combiner(node.regions[0]) if len(node.operands) == 2 else ""
    if how == "add" and is_float(dtype_of(node.operands[0])):
        return _sum
    return _REDUCTION if how in COMMUTATIVE else _folded


def _sum(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """A sum; of logarithms that of the product of their arguments."""
    found = _REDUCTION(node, evaluator, operands, environment)
    x, arithmetic = operands[0], evaluator.arithmetic
    if "logarithm" not in x.parts:
        return found
    order, rank = reduced_last(node), len(node.results[0].type.shape) + 1
    logarithm, argument = (x.parts[name].transpose(order) for name in ("logarithm", "argument"))
    total = _combined(arithmetic, "add", logarithm, np.zeros(1), rank)
    return [Drawn(found[0].array, {"logarithm": total, "argument": _product(arithmetic, argument, rank)})]


def _product(arithmetic: Any, x: Array, rank: int) -> Array:
    """The product of x [draws, ...] along the axes from ``rank`` on, by halves."""
    factors = x.reshape(*x.shape[:rank], -1)
    if not factors.shape[-1]:
        return np.ones(x.shape[:rank])
    while (half := factors.shape[-1] // 2) > 0:
        product = arithmetic.multiply(factors[..., :half], factors[..., half : 2 * half])
        factors = np.concatenate([product, factors[..., 2 * half :]], -1)
    return factors[..., 0]


def _folded(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """A reduction by any region, element after element."""
    half, shape, order = len(node.operands) // 2, node.results[0].type.shape, reduced_last(node)

    def widened(held: Held) -> Held:
        """A drawn scalar with axes of extent 1."""
        array = held.array
        return Drawn(array.reshape(-1, *(1,) * len(shape))) if isinstance(held, Drawn) and array.ndim == 1 else held

    arrays = [operand.array.transpose(order) for operand in operands[:half]]
    found: list[Held] = [widened(Drawn(operand.array)) for operand in operands[half:]]
    captured = {value: widened(environment[value]) for value in evaluator.captured(node.regions[0])}
    for at in np.ndindex(*arrays[0].shape[len(shape) + 1 :]):
        found = evaluator.region(node.regions[0], [*found, *(Drawn(a[(..., *at)]) for a in arrays)], captured)
    return [Drawn(np.broadcast_to(held.array, (len(held.array), *shape))) for held in found]


def _map(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """A region of scalars on whole arrays, element by element."""
    shape = node.results[0].type.shape
    [found] = _on_arrays(node, 0, evaluator, [operand.array for operand in operands], environment)
    return [Drawn(np.broadcast_to(found, (len(found), *shape)))]


def _on_arrays(
    node: Node, number: int, evaluator: Evaluator, arrays: Sequence[Array], environment: Environment
) -> list[Array]:
    """The results of a region of scalars for arrays [draws, ...] of one rank in their place."""
    region, rank = node.regions[number], arrays[0].ndim
    other = next((n for n in region.nodes if n.family not in ("elementwise", "constant")), None)
    if other is not None:
        raise Uncovered(f"{node.name} of a region with {other.label}", node.scope)

    def widened(held: Held) -> Held:
        return Drawn(held.array.reshape(-1, *(1,) * (rank - 1))) if isinstance(held, Drawn) else held

    captured = {value: widened(environment[value]) for value in evaluator.captured(region)}
    found = evaluator.region(region, [Drawn(array) for array in arrays], captured)
    return [
        array if array.ndim == rank else array.reshape(-1, *(1,) * (rank - 1)) for array in (h.array for h in found)
    ]


def _select_and_scatter(
    node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment
) -> list[Held]:
    """Each element of the source, combined into the element of its window that the first region selects.

    The elements of a window are compared in order, the selected one of the earlier with the next; padding is none.
    """
    x, source, initial = (operand.array for operand in operands)
    how, rank = combiner(node.regions[1]), x.ndim - 1
    if how not in COMMUTATIVE:
        raise Uncovered(f"a select_and_scatter that combines by {how}", node.scope)
    numbers = np.arange(math.prod(x.shape[1:])).reshape(1, *x.shape[1:])
    places = _windows(node, numbers, np.full(1, -1), rank)  # [1, *source, *window], -1 in the padding
    places = places.reshape(1, *places.shape[1 : rank + 1], -1)
    x, initial = same_draws([x, initial])
    flat = x.reshape(len(x), -1)
    best = np.full((len(x), *places.shape[1:-1]), -1)
    for at in range(places.shape[-1]):
        here = np.broadcast_to(places[..., at], best.shape)
        pair = [
            np.take_along_axis(flat, np.maximum(p, 0).reshape(len(x), -1), 1).reshape(p.shape) for p in (best, here)
        ]
        [kept] = _on_arrays(node, 0, evaluator, pair, environment)
        best = np.where((here >= 0) & ((best < 0) | ~np.broadcast_to(kept, best.shape)), here, best)
    filled = np.broadcast_to(initial.reshape(-1, *(1,) * rank), x.shape)
    arithmetic = evaluator.arithmetic if is_float(dtype_of(node.operands[0])) else MACHINE
    return [
        Drawn(put(arithmetic, filled, best, best >= 0, np.broadcast_to(source, (len(source), *best.shape[1:])), how))
    ]


def _reduction(node: Node) -> Formula:
    how, order, rank = combiner(node.regions[0]), reduced_last(node), len(node.results[0].type.shape) + 1
    return lambda arithmetic, x, initial: _combined(arithmetic, how, x.transpose(order), initial, rank)


_REDUCTION = Computed(_reduction)


def _reduce_window(node: Node) -> Formula:
    how, rank = combiner(node.regions[0]), len(node.results[0].type.shape)
    if len(node.operands) != 2 or how not in COMMUTATIVE:
        raise Uncovered(f"a windowed reduction that combines by {how}", node.scope)

    def formula(arithmetic: Any, x: Array, initial: Array) -> Array:
        return _combined(arithmetic, how, _windows(node, x, initial, rank), initial, rank + 1)

    return formula


def _windows(node: Node, x: Array, filling: Array, rank: int) -> Array:
    """[draws, *places, *window]: the windows of x [draws, ...] by the attributes of ``node``, ``filling`` around x."""
    attributes = node.attributes
    padding = np.array(attributes["padding"]) if "padding" in attributes else np.zeros(2 * rank, np.int64)
    low, high = padding.reshape(rank, 2).T.tolist()
    ones = (1,) * rank
    strides, base, dilations, window = (
        integers(attributes[key]) if key in attributes else ones
        for key in ("window_strides", "base_dilations", "window_dilations", "window_dimensions")
    )
    extents = [(n - 1) * d + 1 for n, d in zip(window, dilations, strict=True)]
    every = (slice(None), *(slice(None, None, n) for n in (*strides, *dilations)))
    whole = padded(x, filling, low, high, [n - 1 for n in base])
    return np.lib.stride_tricks.sliding_window_view(whole, extents, tuple(range(1, rank + 1)))[every]


def _sort(node: Node) -> Formula:
    keys, axis = sort_keys(node), node.attributes["dimension"].value + 1
    if keys is None:
        raise Uncovered("a sort by another comparator than an order of its operands", node.scope)

    def ranked(arithmetic: Any, x: Array, key: SortKey) -> Array:
        if is_float(x.dtype):
            x = (arithmetic.total_key if key.total else arithmetic.key)(x)
        if not key.descending:
            return x
        return np.invert(x) if x.dtype.kind in "iub" else -x

    def formula(arithmetic: Any, *arrays: Array) -> list[Array]:
        pairs = zip(arrays, keys, strict=False)
        ordered = same_draws([ranked(arithmetic, array, key) for array, key in pairs])
        places = np.lexsort(ordered[::-1], axis=axis)
        return [np.take_along_axis(a, each, axis) for a, each in (same_draws([a, places]) for a in arrays)]

    return formula


def _scan(node: Node, evaluator: Evaluator, operands: Sequence[Held], environment: Environment) -> list[Held]:
    """``(outputs, carries) = chlo.scan(inputs, initial carries)`` along one axis."""
    axis, reverse = int(node.attributes["dimension"].value) + 1, node.attributes.get("is_reverse")
    carries = sum(len(value.type.shape) == len(node.results[-1].type.shape) for value in node.results)
    inputs, carried = [held.array for held in operands[:-carries]], list(operands[-carries:])
    order = slice(None, None, -1 if reverse is not None and reverse.value else 1)
    outputs: list[list[Array]] = []
    for at in range(inputs[0].shape[axis])[order]:
        given = [*(Drawn(x.take(at, axis)) for x in inputs), *carried]
        results = evaluator.region(node.regions[0], given, environment)
        outputs.append([held.array for held in results[:-carries]])
        carried = results[-carries:]
    each = zip(*outputs[order], strict=True)
    return [*(Drawn(np.stack(same_draws(arrays), axis)) for arrays in each), *carried]


RULES: dict[str, Rule | ByNode] = {
    "stablehlo.case": _branches,
    "stablehlo.if": _branches,
    "stablehlo.map": _map,
    "stablehlo.reduce": ByNode(_reduce),
    "stablehlo.reduce_window": Computed(_reduce_window),
    "stablehlo.select_and_scatter": _select_and_scatter,
    "stablehlo.sort": Computed(_sort),
    "stablehlo.while": _while,
    "chlo.scan": _scan,
}
