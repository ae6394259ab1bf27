"""What no evaluation at a few walkers can show: reasons not to take one value's Laplacian for a sum over directions.

Each function gives the reason in words, or None.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence

import numpy as np

from fusionlab.codegen.raising.rules.contraction import laxest_precision
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo.constants import least_of, number_of
from fusionlab.hlo.replay import reached
from fusionlab.hlo.view import FunctionView, Node, Value, constant_array, direction_of, reads
from fusionlab.passes.sums_over_directions import is_float

_WIDTH = {"bf16": 16, "f16": 16, "f32": 32, "f64": 64}
_MAKES_INTEGERS = ("stablehlo.sort", "stablehlo.bitcast_convert")
_INTEGERS = ("i8", "i16", "i32", "i64", "ui8", "ui16", "ui32", "ui64")
_INTEGRAL = tuple(f"stablehlo.{name}" for name in ("ceil", "floor", "round_nearest_afz", "round_nearest_even", "sign"))
_INDEX_ARITHMETIC = frozenset(
    f"stablehlo.{name}"
    for name in [
        "broadcast_in_dim",
        "reshape",
        "transpose",
        "concatenate",
        "convert",
        "add",
        "compare",
        "select",
        "slice",
    ]
)


def less_precise(cone: Iterable[Node], own: Iterable[Node]) -> str | None:
    """Whether what computes the value is less precise than what computes the sum: its Laplacian would be, too."""
    both = (list(cone), list(own))
    widths, others = (_widths(nodes) for nodes in both)
    if widths and others and min(widths) < min(others):
        return f"its value is computed in {min(widths)} bits, the sum in {min(others)}"
    precisions = [[laxest_precision(n) for n in nodes if n.name == "stablehlo.dot_general"] for nodes in both]
    if all(precisions):
        ours, theirs = (min(each, key=lambda precision: precision.value) for each in precisions)
        if ours.value < theirs.value:
            return f"its value contracts at precision {ours.name}, the sum at {theirs.name}"
    return None


def _widths(nodes: Iterable[Node]) -> list[int]:
    return [_WIDTH[v.type.dtype] for node in nodes for v in node.results if v.type.dtype in _WIDTH]


def rounded(cone: Iterable[Node], own: Iterable[Node]) -> str | None:
    """Whether the sum alone converts floats to fewer bits than its value has: a residue has as many as it needs."""
    least = min(_widths(cone), default=0)
    for node in own:
        if node.name == "stablehlo.reduce_precision":
            return f"rounds what its value does not (reduce_precision at {node.scope})"
        if node.name == "stablehlo.convert" and is_float(node.operands[0]):
            before, after = (_WIDTH.get(v.type.dtype, 64) for v in (node.operands[0], node.results[0]))
            if after < min(before, least):
                return f"rounds what its value does not (convert to {node.results[0].type.dtype} at {node.scope})"
    return None


def discrete_predicates(summed: Iterable[Node], own: Collection[Node], arguments: Collection[Value]) -> str | None:
    """Whether the sum alone compares integers that vary, or floats that are integral, or makes integers of floats.

    Few draws of integers are like any other: ``floor(x) == 1`` or a count of 7 may never occur in them. Indices below
    zero, parities, the exchanges of rows of a factorisation and the counters of loops are compared all the same.
    """
    fixed: set[Value] = set()
    integers = {value for value in arguments if _is_integer(value)}
    integral: set[Value] = set()
    exchanges: set[Value] = set()
    for node in summed:
        varying = [value for value in reads(node) if value not in fixed]
        if not varying:
            fixed.update(node.results)
            continue
        if node.name == "stablehlo.custom_call":
            exchanges.update(filter(_is_integer, node.results))
        elif exchanges.issuperset(varying):
            exchanges.update(node.results)
            continue
        own_convert = node.name == "stablehlo.convert" and not _is_integer(node.operands[0])
        made = own_convert or node.name in _MAKES_INTEGERS
        if node in own and own_convert and _is_integer(node.results[0]) and is_float(node.operands[0]):
            return f"makes integers of floats as its value does not (at {node.scope})"
        if node in own and node.name == "stablehlo.compare":
            below_zero = direction_of(node) == "LT" and number_of(node.operands[1], _INTEGERS) == 0
            if not below_zero and not integers.isdisjoint(node.operands):
                return f"compares integers as its value does not (at {node.scope})"
            if _is_equality_of_floats(node) and integral.issuperset(varying):
                return f"compares integral values as its value does not (at {node.scope})"
        for value in node.results:
            parity = node.name == "stablehlo.remainder" and number_of(node.operands[1], _INTEGERS) == 2
            odd = parity or value in exchanges  # both occur in few draws
            if _is_integer(value) and not odd and (made or not integers.isdisjoint(varying)):
                integers.add(value)
            from_integers = node.name == "stablehlo.convert" and not integers.isdisjoint(varying)
            if is_float(value) and (node.name in _INTEGRAL or from_integers or integral.issuperset(varying)):
                integral.add(value)
    return None


def _is_integer(value: Value) -> bool:
    return value.type.dtype in _INTEGERS


def own_choices(flat: FunctionView, x: Value, own: Iterable[Node], read_by_value: Collection[Value]) -> str | None:
    """Whether the sum alone compares parameters for equality, or reads integer arguments.

    Equality of what depends on the positions holds on a surface at most; of parameters it may hold everywhere.
    """
    arguments = set(flat.arguments) - {x}
    parameters = reached(flat, list(arguments)) - reached(flat, [x])
    for node in own:
        if _is_equality_of_floats(node) and not parameters.isdisjoint(node.operands):
            return f"compares parameters as its value does not (at {node.scope})"
        for value in reads(node):
            if value in arguments and value.type.dtype.startswith(("i", "ui")) and value not in read_by_value:
                return f"reads the {value.type} argument %{value.id}, which its value does not"
    return None


def _is_equality_of_floats(node: Node) -> bool:
    return node.name == "stablehlo.compare" and is_float(node.operands[0]) and direction_of(node) in ("EQ", "NE")


def told_apart(nodes: Iterable[Node], axes: Mapping[Value, set[int]]) -> str | None:
    """Whether a constant or index of ``nodes`` gives one walker another program than the next: a few are not all then.

    ``nodes`` are those that are evaluated, with those of their regions; random numbers of a sampling before are none.
    """
    nodes = list(nodes)
    users: dict[Value, list[Node]] = {}
    for node in nodes:
        for value in node.operands:
            users.setdefault(value, []).append(node)
    for node in nodes:
        for value in node.results:
            for axis in axes.get(value, ()):
                if _varies(node, axis) and not _only_an_index(value, users):
                    return f"a {node.name.removeprefix('stablehlo.')} tells walkers apart ({node.scope})"
    return None


def _varies(node: Node, axis: int) -> bool:
    """Whether a constant or iota differs along ``axis``."""
    if node.name == "stablehlo.iota":
        return bool(node.attributes["iota_dimension"].value == axis)
    if node.name != "stablehlo.constant":
        return False
    array = constant_array(node)
    return bool((array != array.take([0], axis)).any()) and not bool(np.isnan(array).all())


def _only_an_index(value: Value, users: Mapping[Value, Sequence[Node]]) -> bool:
    """Whether ``value`` ends, through arithmetic of indices, in indices of gathers and scatters alone."""
    pending, seen = [value], {value}
    while pending:
        known = pending.pop()
        for node in users.get(known, ()):
            if node.name in ("stablehlo.gather", "stablehlo.scatter") and node.operands[1] is known:
                continue
            if node.name not in _INDEX_ARITHMETIC or any(is_float(result) for result in node.results):
                return False
            fresh = [result for result in node.results if result not in seen]
            seen.update(fresh)
            pending += fresh
    return True


def mixed(flat: FunctionView, cone: Iterable[Node], x: Value, axes: Mapping[Value, set[int]]) -> str | None:
    """Whether a value depends on other walkers too: it cannot be computed for some of them."""
    dependent = reached(flat, [x])
    for node in cone:
        moving = [value for value in reads(node) if value in dependent]
        if not moving:
            continue
        kept = all(axes.get(value) for value in node.results if value in dependent and is_float(value))
        if not kept or any(axis in axes.get(value, ()) for value in moving for axis in _reordered(node)):
            return f"{node.name.removeprefix('stablehlo.')} at {node.scope} mixes walkers"
    return None


def _reordered(node: Node) -> Iterator[int]:
    """Axes along which ``node`` mixes or moves elements although their extent stays."""
    if node.name == "stablehlo.reverse":
        yield from (int(axis) for axis in node.attributes["dimensions"])
    elif node.name == "stablehlo.sort":
        yield node.attributes["dimension"].value
    elif node.name == "stablehlo.reduce_window":
        yield from (axis for axis, n in enumerate(node.attributes["window_dimensions"]) if int(n) > 1)


def is_shift(node: Node) -> bool:
    """Whether ``node`` is the largest or the smallest element of one array along some axes: it may drop out."""
    if node.name != "stablehlo.reduce" or len(node.operands) != 2:
        return False
    return least_of(combiner(node.regions[0]), node.operands[1])
