"""FLOPs and bytes of StableHLO operations by rule; the model that XLA's own figures are completed with.

Conventions:

- ``flops``: dot_general 2 per multiply-add (2 M N K per batch entry); an elementwise op 1 per output element, whatever
  the function (tanh counts 1); a reduction 1 per input element and arithmetic op of its region; triangular_solve n^2
  per right-hand side; LU 2/3 n^3 (m x n: n^2 (m - n/3)), Cholesky 1/3 n^3 (LAPACK Working Note 41); scatter 1 per
  update element and arithmetic op of its region. Layout, indexing, sorting and arithmetic on integers count 0.
- ``transcendentals``: output elements of exp, log, tanh, sqrt, power and the like. They are *also* in ``flops``
  (XLA keeps them apart: its ``flops`` plus its ``transcendentals`` compare with these ``flops``; it counts n - 1 for
  a reduction of n elements).
- ``bytes``: operands plus results of every op, as if none were fused and each distinct operand read once. Views
  (reshape, bitcast) and constants move nothing; slices and gathers read what they return; updates in place touch
  what they update.
- A loop counts its body times its trips. A loop whose trips are unknown counts one trip and is *unmodelled*, as is
  every op without a rule: unmodelled is never free, it is listed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from jaxlib.mlir.dialects import stablehlo

from fusionlab.hlo.families import family
from fusionlab.hlo.flat import Node, Region, Value, flatten
from fusionlab.hlo.loops import Loop, analyse
from fusionlab.hlo.program import Program, TensorType

_TRANSCENDENTALS = {
    "stablehlo": (
        "atan2 cbrt cosine exponential exponential_minus_one log log_plus_one logistic power rsqrt sine sqrt tan tanh"
    ),
    "chlo": ("acos acosh asin asinh atan atanh bessel_i1e cosh digamma erf erf_inv erfc lgamma polygamma sinh zeta"),
}
TRANSCENDENTALS = frozenset(f"{dialect}.{op}" for dialect, ops in _TRANSCENDENTALS.items() for op in ops.split())
"""Ops that a GPU evaluates by a special function unit or a polynomial."""

_FLOATS = frozenset(("f16", "bf16", "f32", "f64"))
_COMPLEX_BITS = {"complex<f32>": 64, "complex<f64>": 128}
_VIEWS = ("reshape", "bitcast_convert", "constant", "optimization_barrier", "tuple", "get_tuple_element", "after_all")
_READS_RESULT = ("slice", "dynamic_slice", "gather")
_NO_FLOPS = ("layout", "constant", "sort")


@dataclass(frozen=True)
class Cost:
    """FLOPs, transcendental evaluations (part of the FLOPs), bytes moved; ``unmodelled``: op or call to count."""

    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0
    unmodelled: Mapping[str, int] = field(default_factory=dict)

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes + other.bytes,
            dict(Counter(self.unmodelled) + Counter(other.unmodelled)),
        )

    def times(self, trips: int) -> Cost:
        """This cost paid ``trips`` times."""
        unmodelled = {name: count * trips for name, count in self.unmodelled.items() if trips}
        return Cost(self.flops * trips, self.transcendentals * trips, self.bytes * trips, unmodelled)

    @property
    def intensity(self) -> float:
        """FLOPs per byte; 0 when nothing moves."""
        return self.flops / self.bytes if self.bytes else 0.0


def program_cost(program: Program | Region) -> Cost:
    """The cost of running ``program`` (or the nodes of a region) once, loops multiplied by their trips."""
    region = flatten(program.parse()) if isinstance(program, Program) else program
    return sum((node_cost(node) for node in region.nodes), Cost())


def node_cost(node: Node, loop: Loop | None = None) -> Cost:
    """The cost of one operation with its regions; ``loop`` saves analysing a ``stablehlo.while`` again."""
    if node.name == "stablehlo.while":
        loop = loop or analyse(node)
        once = program_cost(node.regions[0]) + program_cost(node.regions[1])
        if loop.trips is None:
            return once + Cost(unmodelled={"stablehlo.while with unknown trips": 1})
        return once.times(loop.trips)
    if node.name in ("stablehlo.case", "stablehlo.if"):
        return max((program_cost(region) for region in node.regions), key=lambda cost: (cost.flops, cost.bytes))
    try:
        moved = _bytes(node)
        flops = _flops(node)
    except ValueError:  # a token, tuple or dynamic shape
        moved, flops = 0, None
    if flops is None:
        return Cost(bytes=moved, unmodelled={_label(node): 1})
    return Cost(flops, flops if node.name in TRANSCENDENTALS else 0, moved)


def size_bytes(type_: TensorType) -> int:
    """Bytes that a value of ``type_`` takes in memory (a boolean takes one)."""
    bits = _COMPLEX_BITS.get(type_.dtype)
    if bits is None:
        number = re.search(r"\d+", type_.dtype)
        if number is None:
            raise ValueError(f"element type {type_.dtype} has no size")
        bits = max(8, int(number[0]))
    return math.prod(type_.shape) * bits // 8


def array_bytes(value: Value) -> int:
    """Bytes that an array takes in memory; 0 for what is none (a token, a tuple) or has a dynamic shape."""
    try:
        return size_bytes(value.type)
    except ValueError:
        return 0


def _flops(node: Node) -> int | None:
    """FLOPs of an op without control flow, or None when there is no rule for it."""
    kind = "layout" if node.name.removeprefix("stablehlo.") in _VIEWS else family(node)
    if any(value.type.dtype.startswith("complex") for value in (*node.operands, *node.results)):
        return 0 if kind in _NO_FLOPS else None
    if node.name in _RULES:
        return _RULES[node.name](node)
    if node.name == "stablehlo.custom_call":
        return next((rule(node) for part, rule in _CALL_RULES.items() if part in _target(node)), None)
    if kind == "elementwise" and node.name != "stablehlo.map":
        floating = any(value.type.dtype in _FLOATS for value in (*node.operands, *node.results))
        return _elements(node.results[0].type) if floating else 0
    return 0 if kind in _NO_FLOPS else None


def _bytes(node: Node) -> int:
    op = node.name.removeprefix("stablehlo.")
    if op in _VIEWS or (node.name == "stablehlo.custom_call" and _target(node) == "Sharding"):
        return 0
    results = sum(size_bytes(value.type) for value in node.results)
    if op in _READS_RESULT:
        return 2 * results + sum(size_bytes(value.type) for value in node.operands[1:])
    if op == "dynamic_update_slice":
        return 2 * size_bytes(node.operands[1].type)
    if op == "scatter":
        inputs = len(node.results)
        indices, *updates = node.operands[inputs:]
        return size_bytes(indices.type) + 3 * sum(size_bytes(value.type) for value in updates)
    return results + sum(size_bytes(value.type) for value in dict.fromkeys(node.operands))


def _dot_general(node: Node) -> int:
    numbers = stablehlo.DotDimensionNumbers(node.attributes["dot_dimension_numbers"])
    left = node.operands[0].type.shape
    contracted = math.prod(left[int(axis)] for axis in numbers.lhs_contracting_dimensions)
    return 2 * _elements(node.results[0].type) * contracted


def _reduce(node: Node) -> int:
    return _elements(node.operands[0].type) * _region_flops(node)


def _reduce_window(node: Node) -> int:
    window = math.prod(int(extent) for extent in node.attributes["window_dimensions"])
    return _elements(node.results[0].type) * window * _region_flops(node)


def _scatter(node: Node) -> int:
    return _elements(node.operands[-1].type) * _region_flops(node)


def _region_flops(node: Node) -> int:
    """FLOPs of one application of a combiner region (1 for a sum of floats, 0 for a logical and)."""
    return sum(_flops(inner) or 0 for inner in node.regions[0].nodes)


def _triangular_solve(node: Node) -> int:
    order = node.operands[0].type.shape[-1]
    return _elements(node.operands[1].type) * order


def _getrf(node: Node) -> int:
    *batch, rows, columns = node.operands[0].type.shape
    long, short = max(rows, columns), min(rows, columns)
    return round(math.prod(batch) * short**2 * (long - short / 3))


def _cholesky(node: Node) -> int:
    *batch, _, order = node.operands[0].type.shape
    return round(math.prod(batch) * order**3 / 3)


def _free(node: Node) -> int:
    return 0


_RULES: dict[str, Callable[[Node], int]] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.dynamic_slice": _free,
    "stablehlo.dynamic_update_slice": _free,
    "stablehlo.gather": _free,
    "stablehlo.reduce": _reduce,
    "stablehlo.reduce_window": _reduce_window,
    "stablehlo.rng_bit_generator": _free,
    "stablehlo.scatter": _scatter,
    "stablehlo.triangular_solve": _triangular_solve,
}

_CALL_RULES: dict[str, Callable[[Node], int]] = {
    "getrf": _getrf,
    "potrf": _cholesky,
    "trsm": _triangular_solve,
    "lu_pivots_to_permutation": _free,
    "Sharding": _free,
    "threefry2x32": _free,
}
"""Part of a custom call's target to its rule."""


def _elements(type_: TensorType) -> int:
    return math.prod(type_.shape)


def _target(node: Node) -> str:
    return str(node.attributes["call_target_name"].value)


def _label(node: Node) -> str:
    return f"custom call @{_target(node)}" if node.name == "stablehlo.custom_call" else node.name
