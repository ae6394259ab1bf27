"""Raising rules for slices, gather and scatter. Out-of-range behaviour is StableHLO's.

StableHLO clamps the start indices of dynamic_slice, dynamic_update_slice and gather, and drops the out-of-range
updates of scatter (StableHLO specification, sections of these ops); JAX's CLIP and FILL_OR_DROP modes say the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising.rules.known_scatter import placed_updates
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.codegen.raising.rules.rule import RaiseError, Rule, in_jax, integers
from fusionlab.hlo.view import Node


def _slice(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    start, limit, strides = (integers(node.attributes[name]) for name in ("start_indices", "limit_indices", "strides"))
    return [in_jax(node, lax.slice, operands[0], start, raising.resized(node.operands[0], limit), strides)]


def _dynamic_slice(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    sizes = raising.resized(node.operands[0], integers(node.attributes["slice_sizes"]))
    return [in_jax(node, lax.dynamic_slice, operands[0], operands[1:], sizes, allow_negative_indices=False)]


def _dynamic_update_slice(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    return [
        in_jax(node, lax.dynamic_update_slice, operands[0], operands[1], operands[2:], allow_negative_indices=False)
    ]


def _gather(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    numbers = stablehlo.GatherDimensionNumbers(node.attributes["dimension_numbers"])
    _require_trailing_index_vector(node, numbers.index_vector_dim, operands[1])
    dimensions = lax.GatherDimensionNumbers(
        offset_dims=tuple(numbers.offset_dims),
        collapsed_slice_dims=tuple(numbers.collapsed_slice_dims),
        start_index_map=tuple(numbers.start_index_map),
        operand_batching_dims=tuple(numbers.operand_batching_dims),
        start_indices_batching_dims=tuple(numbers.start_indices_batching_dims),
    )
    return [
        in_jax(
            node,
            lax.gather,
            operands[0],
            operands[1],
            dimensions,
            raising.resized(node.operands[0], integers(node.attributes["slice_sizes"])),
            indices_are_sorted=_flag(node, "indices_are_sorted"),
            mode=lax.GatherScatterMode.CLIP,
        )
    ]


_SCATTERS: dict[str, Callable[..., Any]] = {
    "add": lax.scatter_add,
    "multiply": lax.scatter_mul,
    "minimum": lax.scatter_min,
    "maximum": lax.scatter_max,
    "second": lax.scatter,
}


def _scatter(node: Node, operands: list[Any], raising: Any, environment: Any) -> list[Any]:
    if len(operands) != 3:
        raise RaiseError("scatter of several operands", node)
    name = combiner(node.regions[0])
    if name not in _SCATTERS:
        raise RaiseError(f"scatter combined by {name}", node)
    numbers = stablehlo.ScatterDimensionNumbers(node.attributes["scatter_dimension_numbers"])
    _require_trailing_index_vector(node, numbers.index_vector_dim, operands[1])
    if raising.fold and (placed := placed_updates(node, name, numbers, operands)) is not None:
        return [placed]
    dimensions = lax.ScatterDimensionNumbers(
        update_window_dims=tuple(numbers.update_window_dims),
        inserted_window_dims=tuple(numbers.inserted_window_dims),
        scatter_dims_to_operand_dims=tuple(numbers.scattered_dims_to_operand_dims),
        operand_batching_dims=tuple(numbers.input_batching_dims),
        scatter_indices_batching_dims=tuple(numbers.scatter_indices_batching_dims),
    )
    return [
        in_jax(
            node,
            _SCATTERS[name],
            operands[0],
            operands[1],
            operands[2],
            dimensions,
            indices_are_sorted=_flag(node, "indices_are_sorted"),
            unique_indices=_flag(node, "unique_indices"),
            mode=lax.GatherScatterMode.FILL_OR_DROP,
        )
    ]


def _flag(node: Node, name: str) -> bool:
    return bool(node.attributes[name].value) if name in node.attributes else False


def _require_trailing_index_vector(node: Node, dimension: int, indices: Any) -> None:
    if dimension != indices.ndim - 1:
        raise RaiseError(f"index_vector_dim {dimension} is not the last axis of the indices", node)


RULES: dict[str, Rule] = {
    "stablehlo.dynamic_slice": _dynamic_slice,
    "stablehlo.dynamic_update_slice": _dynamic_update_slice,
    "stablehlo.gather": _gather,
    "stablehlo.scatter": _scatter,
    "stablehlo.slice": _slice,
}
