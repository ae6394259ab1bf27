"""Blocks in Triton: their extents, powers of two, the offsets of their elements, and calls of kernels on them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from fusionlab.codegen.raising import Raising
from fusionlab.hlo.strided import Axis
from fusionlab.hlo.view import Node, Value

dot = getattr(triton, "dot", None) or pl.dot
"""The product of two blocks [m, k] and [k, n]; JAX before 0.10 has it in Pallas itself."""
FEWEST = 16
"""The shortest axis of Triton's matrix products."""


def fits_triton(values: Iterable[Value]) -> bool:
    """True if all values are float32: Triton has no matrix product of other types that is as precise."""
    return all(value.type.dtype == "f32" for value in values)


def is_addressable(values: Iterable[Value]) -> bool:
    """True if no array is empty and 32-bit offsets reach every element."""
    return all(0 < math.prod(value.type.shape) < 1 << 31 for value in values)


def padded(extent: int) -> int:
    """The extent of a block that holds ``extent`` elements and can be an operand of a product."""
    return int(max(FEWEST, 1 << (extent - 1).bit_length()))


def places(axes: Sequence[Axis], index: Any, arrays: int) -> list[Any]:
    """The offsets in each array of elements number ``index`` along ``axes``; past the last, arbitrary."""
    found = [jnp.zeros_like(index)] * arrays
    for position, axis in enumerate(reversed(axes)):
        outermost = position == len(axes) - 1
        here = index if outermost else lax.rem(index, jnp.int32(axis.extent))
        index = index if outermost else lax.div(index, jnp.int32(axis.extent))
        found = [place + here * step if step else place for place, step in zip(found, axis.steps, strict=True)]
    return found


def indices(grid: Sequence[int], extents: Mapping[int, int], index: Any) -> dict[int, Any]:
    """The index along each class of ``grid`` of an instance, the last class fastest; past the last one arbitrary."""
    found: dict[int, Any] = {}
    for label in reversed(grid):
        found[label] = lax.rem(index, jnp.int32(extents[label]))
        index = lax.div(index, jnp.int32(extents[label]))
    return found


def applied(node: Node, arrays: Sequence[Any]) -> Any:
    """An elementwise op on tiles of one shape; predicates that are numbers become predicates."""
    made = [
        array != 0 if value.type.dtype == "i1" and array.dtype != jnp.bool_ else array
        for value, array in zip(node.operands, arrays, strict=True)
    ]
    (result,) = Raising().node(node, dict(zip(node.operands, made, strict=True)))
    return result


def flat_call(
    kernel: Callable[..., None],
    inputs: Sequence[Value],
    outputs: Sequence[Value],
    grid: tuple[int, ...],
    *,
    warps: int,
    interpret: bool,
    name: str,
    overwrites: Mapping[int, int] | None = None,
) -> Callable[..., tuple[Any, ...]]:
    """``kernel``, of flat references to ``inputs`` and float32 ``outputs``, as a callable from arrays to arrays.

    Input i may lie where output ``overwrites[i]`` is written.
    """
    call = pl.pallas_call(
        kernel,
        grid=grid,
        in_specs=[pl.BlockSpec(memory_space=pl.ANY)] * len(inputs),
        out_specs=[pl.BlockSpec(memory_space=pl.ANY)] * len(outputs),
        out_shape=[jax.ShapeDtypeStruct((math.prod(value.type.shape),), np.float32) for value in outputs],
        compiler_params=triton.CompilerParams(num_warps=warps, num_stages=1),
        input_output_aliases=dict(overwrites or {}),
        interpret=interpret,
        name=name,
    )

    def run(*arrays: Any) -> tuple[Any, ...]:
        made = call(*(lax.reshape(array, (array.size,)) for array in arrays))
        return tuple(lax.reshape(array, value.type.shape) for array, value in zip(made, outputs, strict=True))

    return run
