"""FLOPs and bytes of StableHLO operations by rule; the model that complements XLA's own figures.

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
  only what they update.
- A loop counts its body times its trips. A loop whose trips are unknown counts one trip and is *unmodelled*, as is
  every op without a rule: unmodelled is never free, it is listed.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from jaxlib.mlir.dialects import stablehlo

from fusionlab.hlo import ops
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.loops import Loop, analyse
from fusionlab.hlo.ops import FLOATS, NUMPY
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.view import Node, Region, TensorType, Value, keyword, reads


@dataclass(frozen=True)
class Cost:
    """FLOPs, transcendental evaluations (part of the FLOPs), bytes moved; ``unmodelled``: op or call to count.

    ``tf32_flops`` is the part of the FLOPs that a GPU's library may compute in TF32 (``may_use_tf32``). Three products
    of TF32 count once and in float32: they may take less than the time of these FLOPs at the peak of float32.
    """

    flops: int = 0
    transcendentals: int = 0
    bytes: int = 0
    unmodelled: Mapping[str, int] = field(default_factory=dict)
    tf32_flops: int = 0

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            self.flops + other.flops,
            self.transcendentals + other.transcendentals,
            self.bytes + other.bytes,
            dict(Counter(self.unmodelled) + Counter(other.unmodelled)),
            self.tf32_flops + other.tf32_flops,
        )

    def times(self, trips: int) -> Cost:
        """This cost times ``trips``."""
        unmodelled = {name: count * trips for name, count in self.unmodelled.items() if trips}
        counts = (self.flops * trips, self.transcendentals * trips, self.bytes * trips)
        return Cost(*counts, unmodelled, self.tf32_flops * trips)

    @property
    def intensity(self) -> float:
        """FLOPs per byte; 0 when nothing moves."""
        return self.flops / self.bytes if self.bytes else 0.0


def program_cost(program: Program | Region) -> Cost:
    """The cost of running ``program`` (or the nodes of a region) once, loops multiplied by their trips."""
    region = program_view(program) if isinstance(program, Program) else program
    return sum((node_cost(node) for node in region.nodes), Cost())


def node_cost(node: Node, loop: Loop | None = None) -> Cost:
    """The cost of one operation with its regions; ``loop`` is the analysis of a ``stablehlo.while``, if known."""
    if node.op is ops.WHILE:
        loop = loop or analyse(node)
        once = program_cost(node.regions[0]) + program_cost(node.regions[1])
        if loop.trips is None:
            return once + Cost(unmodelled={f"{node.name} with unknown trips": 1})
        return once.times(loop.trips)
    if node.op.control_flow:
        return max((program_cost(region) for region in node.regions), key=lambda cost: (cost.flops, cost.bytes))
    try:
        moved = _bytes(node)
        flops = _flops(node)
    except ValueError:  # a token, tuple or dynamic shape
        moved, flops = 0, None
    if flops is None:
        return Cost(bytes=moved, unmodelled={node.label: 1})
    in_tf32 = flops if node.op is ops.DOT_GENERAL and _may_use_tf32(node) else 0
    return Cost(flops, flops if node.op.transcendental else 0, moved, tf32_flops=in_tf32)


def may_use_tf32(dtypes: Iterable[str], precisions: Iterable[str]) -> bool:
    """True if XLA lets a GPU's library compute such a product in TF32: float32, and no operand's precision is HIGHEST
    (XLA, ``stream_executor/gpu/gpu_blas_lt.cc``: a compute precision of at most 1, which is HIGH)."""
    return set(dtypes) == {"f32"} and "HIGHEST" not in precisions


def _may_use_tf32(node: Node) -> bool:
    if "algorithm" in node.attributes:
        algorithm = stablehlo.DotAlgorithm(node.attributes["algorithm"])
        return str(algorithm.lhs_precision_type) == "tf32" and algorithm.num_primitive_operations == 1
    precisions = [keyword(one) for one in node.attributes.get("precision_config") or ()]
    return may_use_tf32((value.type.dtype for value in (*node.operands, *node.results)), precisions)


def live_bytes(region: Region) -> int:
    """The most bytes of computed values that are alive at once, in program order: temp memory without fusion.

    On the local energies of ``workloads`` it orders programs as XLA's buffer assignment does, and the ratio of a
    forward Laplacian to its replay is 1.1 to 2 times XLA's.
    """
    last = {value: index for index, node in enumerate(region.nodes) for value in reads(node)}
    last |= dict.fromkeys(region.returns, len(region.nodes))
    alive = most = 0
    ending: dict[int, int] = {}
    for index, node in enumerate(region.nodes):
        for value in node.results:
            if value.is_array and value in last:
                alive += array_bytes(value)
                ending[last[value]] = ending.get(last[value], 0) + array_bytes(value)
        inner = max(map(live_bytes, node.regions), default=0) if node.op.control_flow else 0
        most = max(most, alive + inner)
        alive -= ending.pop(index, 0)
    return most


def size_bytes(type_: TensorType) -> int:
    """Bytes that a value of ``type_`` takes in memory (a boolean takes one)."""
    if type_.dtype in NUMPY:
        return math.prod(type_.shape) * NUMPY[type_.dtype].itemsize
    number = re.search(r"\d+", type_.dtype)
    if number is None:
        raise ValueError(f"element type {type_.dtype} has no size")
    return math.prod(type_.shape) * max(8, int(number[0])) // 8


def array_bytes(value: Value) -> int:
    """Bytes that an array takes in memory; 0 for a token, a tuple or a dynamic shape."""
    try:
        return size_bytes(value.type)
    except ValueError:
        return 0


def _flops(node: Node) -> int | None:
    """FLOPs of an op without control flow, or None when there is no rule for it."""
    types = [value.type.dtype for value in (*node.operands, *node.results)]
    if node.op.flops != "none" and any(type_.startswith("complex") for type_ in types):
        return None
    match node.op.flops:
        case "":
            return None
        case "none":
            return 0
        case "elements":
            return _elements(node.results[0].type) if any(type_ in FLOATS for type_ in types) else 0
        case "call":
            return call_flops(node.call_target, [value.type.shape for value in node.operands])
        case rule:
            return _RULES[rule](node)


def _bytes(node: Node) -> int:
    if node.op.free or node.call_target == "Sharding":
        return 0
    results = sum(size_bytes(value.type) for value in node.results)
    if node.op.partial:
        return 2 * results + sum(size_bytes(value.type) for value in dict.fromkeys(node.operands[1:]))
    if node.op is ops.DYNAMIC_UPDATE_SLICE:
        return 2 * size_bytes(node.operands[1].type)
    if node.op is ops.SCATTER:
        inputs = len(node.results)
        indices, *updates = node.operands[inputs:]
        return size_bytes(indices.type) + 3 * sum(size_bytes(value.type) for value in updates)
    return results + sum(size_bytes(value.type) for value in dict.fromkeys(node.operands))


def call_flops(target: str, operands: Sequence[tuple[int, ...]]) -> int | None:
    """FLOPs of a call of the library function ``target`` on arrays of these shapes; None when there is no rule for it.

    LU of m x n: n^2 (m - n/3), Cholesky n^3 / 3, a triangular solve n^2 per right-hand side.
    """
    if "getrf" in target:
        *batch, rows, columns = operands[0]
        long, short = max(rows, columns), min(rows, columns)
        return round(math.prod(batch) * short**2 * (long - short / 3))
    if "potrf" in target:
        return round(math.prod(operands[0]) * operands[0][-1] / 3)
    if re.search(r"trsm|triangularSolve", target):
        return math.prod(operands[1]) * operands[0][-1]
    if re.search(r"lu_pivots_to_permutation|Sharding|threefry|__cub\$|[Tt]op_?[Kk]", target):
        return 0
    return None


def _dot_general(node: Node) -> int:
    return 2 * _elements(node.results[0].type) * DotAxes.of(node).extents[2]


def _convolution(node: Node) -> int:
    """A multiplication and an addition for each element of the kernel that an element of the result reads."""
    kernel = node.operands[1].type.shape
    numbers = stablehlo.ConvDimensionNumbers(node.attributes["dimension_numbers"])
    features = int(kernel[numbers.kernel_output_feature_dimension])
    return 2 * _elements(node.results[0].type) * math.prod(kernel) // max(features, 1)


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


def _as_call(target: str) -> Callable[[Node], int]:
    return lambda node: call_flops(target, [value.type.shape for value in node.operands]) or 0


_RULES: dict[str, Callable[[Node], int]] = {
    "cholesky": _as_call("potrf"),
    "convolution": _convolution,
    "dot_general": _dot_general,
    "reduce": _reduce,
    "reduce_window": _reduce_window,
    "scatter": _scatter,
    "triangular_solve": _as_call("trsm"),
}
"""``flops`` of ``hlo.ops`` to its rule."""


def _elements(type_: TensorType) -> int:
    return math.prod(type_.shape)
