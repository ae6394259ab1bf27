"""Programs with one thing in excess each, and the op that it comes from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton


def array(*shape: int, dtype: Any = np.float32) -> jax.ShapeDtypeStruct:
    """An argument without values."""
    return jax.ShapeDtypeStruct(shape, dtype)


@dataclass(frozen=True)
class Planted:
    """A function whose kernel has a finding of ``kind``, from ``op`` at the line of ``marked``."""

    kind: str
    function: Callable[..., Any]
    arguments: tuple[jax.ShapeDtypeStruct, ...]
    op: str
    marked: str
    least: float = 1.0
    most: float = float("inf")


def normalised(block: int) -> Callable[[Any], Any]:
    """Blocks of ``block`` numbers over the sum of their squares, each by one warp that holds it in registers."""

    def body(x: Any, out: Any) -> None:
        value = x[...]
        out[...] = value / jnp.sum(value * value)

    def call(x: Any) -> Any:
        spec = pl.BlockSpec((block,), lambda i: (i,))
        return pl.pallas_call(  # one warp
            body,
            grid=(x.size // block,),
            in_specs=[spec],
            out_specs=spec,
            out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype),
            compiler_params=triton.CompilerParams(num_warps=1, num_stages=1),
            name="normalised",
        )(x)

    return call


def strided(x: Any) -> Any:
    """A column of a matrix."""
    column = x[:, 3]  # strided
    return jnp.tanh(column)


def recomputed(h: Any) -> Any:
    """A mean that every electron subtracts: in one kernel, each computes it again."""
    total = h.sum(1, keepdims=True)  # recomputed
    return jnp.tanh(h - total)


def windowed(x: Any) -> Any:
    """Sums of 64 neighbours: each number is read 64 times."""
    return jax.lax.reduce_window(x, 0.0, jax.lax.add, (1, 64), (1, 1), "SAME")  # windowed


def scattered(x: Any, at: Any, values: Any) -> Any:
    """A scatter-add of floats."""
    return x.at[at].add(values)  # scattered


def turned(x: Any) -> Any:
    """A transposition of 8-byte elements, whose tile in shared memory has rows of 33 of them."""
    return jnp.transpose(x) + 1  # turned


def few(x: Any) -> Any:
    """Sums of 32 columns: XLA gives one block to each 64."""
    return x.sum(0)  # few


def elementwise(x: Any) -> Any:
    """2,048 blocks where 1,728 are resident."""
    return jnp.tanh(x)  # elementwise


PLANTED = {
    "spill": Planted("spill", normalised(8192), (array(1 << 18),), "pallas_call", "# one warp"),
    "low-occupancy": Planted("low-occupancy", normalised(4096), (array(1 << 20),), "pallas_call", "# one warp"),
    "strided-read": Planted("strided-read", strided, (array(1 << 16, 64),), "slice", "# strided", 8.0, 8.0),
    "recomputation": Planted(
        "recomputation", recomputed, (array(4096, 4, 64),), "reduce_sum", "# recomputed", 2.0, 5.0
    ),
    "repeated-read": Planted(
        "repeated-read", windowed, (array(512, 512),), "reduce_window_sum", "# windowed", 60.0, 64.0
    ),
    "cas": Planted(
        "cas", scattered, (array(64), array(10000, dtype=np.int32), array(10000)), "scatter-add", "# scattered"
    ),
    "bank-conflict": Planted(
        "bank-conflict", turned, (array(512, 512, dtype=np.complex64),), "transpose", "# turned", 2.0, 2.0
    ),
    "few-blocks": Planted("few-blocks", few, (array(4096, 64),), "reduce_sum", "# few", 108.0, 108.0),
    "tail-wave": Planted("tail-wave", elementwise, (array(1 << 20),), "tanh", "# elementwise", 1.5, 1.9),
}
