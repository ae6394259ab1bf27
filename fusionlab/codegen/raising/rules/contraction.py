"""Raising rules for contractions and dense linear algebra that StableHLO has as ops."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising.rules.rule import RaisedOp, RaiseError, Rule, UnnamedAlgorithm, integers
from fusionlab.codegen.raising.rules.three_products import by_three_products
from fusionlab.hlo import ops
from fusionlab.hlo.dot_axes import DotAxes
from fusionlab.hlo.view import Node, keyword

TF32X3 = lax.DotAlgorithmPreset.TF32_TF32_F32_X3
"""Three products of TF32 for one in float32."""


def _dot_general(op: RaisedOp) -> list[Any]:
    axes = DotAxes.of(op.node)
    keeps = op.raising.marks is not None
    types = {"precision": precision_of(op.node, with_algorithm=keeps), "preferred_element_type": op.dtype}

    def multiply(left: Any, right: Any) -> Any:
        return op.jax(lax.dot_general, left, right, (axes.contracted, axes.batch), **types)

    if not keeps and _is_emulated(op):
        return [by_three_products(multiply, *op.operands)]
    return [multiply(*op.operands)]


def _is_emulated(op: RaisedOp) -> bool:
    """True for three products of TF32, whose rounding is computed where the program runs in its own float32."""
    in_float32 = all(jnp.result_type(array) == jnp.float32 for array in op.operands)  # else it was widened
    return in_float32 and op.dtype == jnp.float32 and is_in_tf32x3(op.node)


def is_in_tf32x3(node: Node) -> bool:
    """True for a ``dot_general`` of float32 to float32 that asks for three products of TF32.

    In other types a raised program computes it in full, which says nothing of its rounding.
    """
    types = {value.type.dtype for value in (*node.operands, *node.results)}
    return types == {"f32"} and algorithm_of(node) is TF32X3


def ask_for_tf32x3(operation: Any) -> None:
    """Let ``operation``, a ``stablehlo.dot_general`` of float32 to float32, ask for three products of TF32.

    Its attribute ``algorithm`` is set or replaced. The others stay: ``precision_config``, which an algorithm overrules,
    and the axes. Operands and types are not verified here.
    """
    text = (
        "#stablehlo.dot_algorithm<lhs_precision_type = tf32, rhs_precision_type = tf32, accumulation_type = f32, "
        "lhs_component_count = 1, rhs_component_count = 1, num_primitive_operations = 3, "
        "allow_imprecise_accumulation = false>"
    )
    operation.attributes["algorithm"] = ir.Attribute.parse(text, operation.context)


def precision_of(
    node: Node, *, with_algorithm: bool = False
) -> tuple[lax.Precision, ...] | lax.DotAlgorithmPreset | None:
    """The precision of a contraction per operand; None (no or an empty ``precision_config``): the library's choice.

    ``with_algorithm``: its explicit algorithm, if it has one, as a program that is lowered again for its own platform
    needs it. The CPU has few of them; what runs there computes in the declared types.
    """
    if with_algorithm and (algorithm := algorithm_of(node)) is not None:
        return algorithm
    precision = node.attributes.get("precision_config") or ()
    return tuple(lax.Precision[keyword(entry)] for entry in precision) or None


def algorithm_of(node: Node) -> lax.DotAlgorithmPreset | None:
    """The explicit algorithm of a ``dot_general``, as BF16_BF16_F32_X3; UnnamedAlgorithm for one JAX does not name."""
    if "algorithm" not in node.attributes:
        return None
    found = stablehlo.DotAlgorithm(node.attributes["algorithm"])
    types = (found.lhs_precision_type, found.rhs_precision_type, found.accumulation_type)
    name = "_".join(str(type_).upper() for type_ in types)
    name += f"_X{found.num_primitive_operations}" if found.num_primitive_operations > 1 else ""
    named = getattr(lax.DotAlgorithmPreset, name, None)
    if named is None or found.allow_imprecise_accumulation:
        raise UnnamedAlgorithm(f"dot_general with the algorithm {name}, which JAX does not name", node)
    return named


_CONTRACTIONS = (ops.DOT_GENERAL, ops.DOT, ops.CONVOLUTION)
_OF_ALGORITHMS = {"X3": lax.Precision.HIGH, "X6": lax.Precision.HIGHEST, "X9": lax.Precision.HIGHEST}
"""The precision that an algorithm stands for by the end of its name; of another, that of the operands' types."""


def _precisions(node: Node, *, tf32x3: lax.Precision) -> tuple[lax.Precision, ...]:
    algorithm = algorithm_of(node)
    if algorithm is TF32X3 and is_in_tf32x3(node):
        return (tf32x3,)
    if algorithm is None:
        known = precision_of(node)
        return known if isinstance(known, tuple) else (lax.Precision.DEFAULT,)
    exact = algorithm.name in ("F32_F32_F32", "F64_F64_F64")
    end = lax.Precision.HIGHEST if exact else lax.Precision.DEFAULT
    return (_OF_ALGORITHMS.get(algorithm.name.rpartition("_")[2], end),)


def strictest_precision(node: Node) -> lax.Precision:
    """The precision in which XLA computes a ``dot_general``: the higher of its operands' two.

    Of three products of TF32 in float32 it is HIGHEST: a kernel in their place is no less precise.
    """
    return max(_precisions(node, tf32x3=lax.Precision.HIGHEST), key=lambda precision: precision.value)


def least_precise(
    nodes: Iterable[Node], *, tf32x3: lax.Precision = lax.Precision.HIGH
) -> tuple[lax.Precision, Node] | None:
    """The lowest precision of the contractions among ``nodes``, and the first that has it; None if there are none.

    Of a contraction it is the lower of its operands' two; the library's own choice counts as DEFAULT.
    ``tf32x3`` is that of three products of TF32 in float32: HIGHEST where their rounding is computed, so that the
    errors of the results judge it.
    """
    contractions = (node for node in nodes if node.op in _CONTRACTIONS)
    found = [(precision, node) for node in contractions for precision in _precisions(node, tf32x3=tf32x3)]
    return min(found, key=lambda one: one[0].value, default=None)


def solved(op: RaisedOp, transpose: str, *, left_side: bool, lower: bool, unit_diagonal: bool) -> list[Any]:
    """A triangular solve; of ``transpose`` the first letter decides: Not, Transposed or its Conjugate or Adjoint."""
    how = {"transpose_a": transpose[0] != "N", "conjugate_a": transpose[0] in "AC"}
    how |= {"left_side": left_side, "lower": lower, "unit_diagonal": unit_diagonal}
    return [op.jax(lax.linalg.triangular_solve, *op.operands[:2], **how)]


def _triangular_solve(op: RaisedOp) -> list[Any]:
    flags = {name: op.flag(name) for name in ("left_side", "lower", "unit_diagonal")}
    return solved(op, keyword(op.node.attributes["transpose_a"]), **flags)


def _cholesky(op: RaisedOp) -> list[Any]:
    if not op.flag("lower"):
        raise RaiseError("upper Cholesky factor", op.node)
    return [op.jax(lax.linalg.cholesky, op.operands[0], symmetrize_input=False)]


def convolution_axes(node: Node) -> lax.ConvDimensionNumbers:
    """The axes of input, kernel and result: (batch, feature, *spatial), (output, input, *spatial), (as the input)."""
    numbers = stablehlo.ConvDimensionNumbers(node.attributes["dimension_numbers"])
    return lax.ConvDimensionNumbers(
        (numbers.input_batch_dimension, numbers.input_feature_dimension, *numbers.input_spatial_dimensions),
        (
            numbers.kernel_output_feature_dimension,
            numbers.kernel_input_feature_dimension,
            *numbers.kernel_spatial_dimensions,
        ),
        (numbers.output_batch_dimension, numbers.output_feature_dimension, *numbers.output_spatial_dimensions),
    )


@dataclass(frozen=True)
class Window:
    """The window of a convolution, per spatial axis, and its numbers of groups."""

    strides: tuple[int, ...]
    padding: tuple[tuple[int, int], ...]
    base_dilation: tuple[int, ...]
    dilation: tuple[int, ...]
    reversed_axes: tuple[int, ...]
    feature_groups: int
    batch_groups: int

    @staticmethod
    def of(node: Node) -> Window:
        """That of a ``convolution``; ``reversed_axes`` are those of the kernel along which it is reversed."""
        attributes, kernel = node.attributes, convolution_axes(node).rhs_spec[2:]
        strides, base, dilation = (
            integers(attributes[name]) if name in attributes else (1,) * len(kernel)
            for name in ("window_strides", "lhs_dilation", "rhs_dilation")
        )
        padding = np.array(attributes["padding"]).reshape(-1, 2) if "padding" in attributes else [(0, 0)] * len(kernel)
        flags = list(attributes["window_reversal"]) if "window_reversal" in attributes else [False] * len(kernel)
        return Window(
            strides,
            tuple((int(low), int(high)) for low, high in padding),
            base,
            dilation,
            tuple(axis for axis, flag in zip(kernel, flags, strict=True) if flag),
            int(attributes["feature_group_count"].value),
            int(attributes["batch_group_count"].value),
        )


def _convolution(op: RaisedOp) -> list[Any]:
    window, (base, kernel) = Window.of(op.node), op.operands
    if window.reversed_axes:
        kernel = op.jax(lax.rev, kernel, window.reversed_axes)
    return [
        op.jax(
            lax.conv_general_dilated,
            base,
            kernel,
            window.strides,
            window.padding,
            window.base_dilation,
            window.dilation,
            dimension_numbers=convolution_axes(op.node),
            feature_group_count=window.feature_groups,
            batch_group_count=window.batch_groups,
            precision=precision_of(op.node),
            preferred_element_type=op.dtype,
        )
    ]


def _fft(op: RaisedOp) -> list[Any]:
    return [op.jax(lax.fft, op.operands[0], fft_kind(op.node), integers(op.node.attributes["fft_length"]))]


def fft_kind(node: Node) -> str:
    """FFT, IFFT, RFFT or IRFFT."""
    return keyword(node.attributes["fft_type"])


RULES: dict[str, Rule] = {
    "stablehlo.cholesky": _cholesky,
    "stablehlo.convolution": _convolution,
    "stablehlo.dot_general": _dot_general,
    "stablehlo.fft": _fft,
    "stablehlo.triangular_solve": _triangular_solve,
}
