"""One fused attention kernel per walker and head ("mhsea"), written in Pallas for the Triton back end, and its twin.

Scores, mask, softmax and the sum over values of one head stay on chip; the electron axis is padded to a power of two,
at least 16, which is the smallest tile of Triton's matrix product. The twin is the same function in plain JAX. It is
what a platform without the kernel runs, and what is differentiated: a derivative of any order replaces the kernel by
the twin, so the kernel serves sampling and log|psi|. Differences from oneQMC's kernel of the same name (folx 0.2.30,
experimental/pallas/attention): no log-sum-exp output, and no kernels for the backward pass and the forward Laplacian.

Products of kernel and twin have the precision that is JAX's default when ``flash_attention`` is traced; in the kernel
"default" and "high" are TF32, as everywhere on such a GPU.

Kernel and twin are one primitive with a lowering for each, because a choice by ``lax.platform_dependent`` would leave
a ``case`` in every program. This is the one file of the workloads that touches JAX's extension interfaces.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import jax
import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton
from jax.extend.core import Primitive
from jax.interpreters import ad, batching, mlir

SMALLEST_TILE = 16


def flash_attention(query: Any, key: Any, value: Any, bias: Any, mask: Any) -> Any:
    """Masked attention ``[..., electrons, heads, width]`` with a bias on the logits.

    ``query``, ``key`` and ``value`` have that shape (the query already scaled), ``bias`` is ``[..., electrons, heads,
    electrons]`` with the key last, ``mask`` bool ``[..., electrons]``. Rows of masked electrons are unspecified but
    finite. The fused kernel is used where the program is lowered for CUDA, the twin elsewhere. On CUDA the width must
    be a power of two and at least 16.
    """
    # The kernel and the twin are traced when the program is lowered, so the default of now is kept as a parameter.
    precision = lax.Precision(jax.config.jax_default_matmul_precision or "default")
    return mhsea_p.bind(query, key, value, bias, mask, precision=precision)


def attention_twin(query: Any, key: Any, value: Any, bias: Any, mask: Any, *, precision: Any = None) -> Any:
    """The same function as ``flash_attention`` in plain JAX, differentiable any number of times."""
    logits = jnp.einsum("...qhc,...khc->...qhk", query, key, precision=precision) + bias
    pair_mask = mask[..., :, None] & mask[..., None, :]
    logits = jnp.where(pair_mask[..., None, :], logits, jnp.asarray(-1e20, logits.dtype))
    return jnp.einsum("...qhk,...khc->...qhc", jax.nn.softmax(logits, axis=-1), value, precision=precision)


def fused_attention(
    query: Any, key: Any, value: Any, bias: Any, mask: Any, *, precision: Any = None, interpret: bool = False
) -> Any:
    """``flash_attention`` by the kernel; ``interpret=True`` runs the kernel's body on any platform (slow)."""
    shape, (electrons, heads, width) = query.shape, query.shape[-3:]
    padded = max(SMALLEST_TILE, 1 << (electrons - 1).bit_length())
    keep, grow = (0, 0), (0, padded - electrons)
    query, key, value = (
        jnp.pad(x.reshape(-1, electrons, heads, width), (keep, grow, keep, keep)) for x in (query, key, value)
    )
    bias = jnp.pad(bias.reshape(-1, electrons, heads, electrons), (keep, grow, keep, grow))
    mask = jnp.pad(mask.reshape(-1, electrons), (keep, grow)).astype(jnp.int32)
    out = _kernel_call(query.shape, query.dtype, precision, interpret)(query, key, value, bias, mask)
    return out[:, :electrons].reshape(shape)


def _kernel_call(shape: tuple[int, ...], dtype: Any, precision: Any, interpret: bool) -> Callable[..., Any]:
    """The kernel over ``[walkers, heads]`` for queries of ``shape`` ``[walkers, electrons, heads, width]``."""
    walkers, electrons, heads, width = shape
    rows = pl.BlockSpec((None, electrons, None, width), lambda walker, head: (walker, 0, head, 0))
    pairs = pl.BlockSpec((None, electrons, None, electrons), lambda walker, head: (walker, 0, head, 0))
    every = pl.BlockSpec((None, electrons), lambda walker, head: (walker, 0))
    return pl.pallas_call(  # type: ignore[no-any-return]
        partial(_one_head, precision=precision),
        grid=(walkers, heads),
        in_specs=[rows, rows, rows, pairs, every],
        out_specs=rows,
        out_shape=jax.ShapeDtypeStruct(shape, dtype),
        compiler_params=triton.CompilerParams(num_warps=2, num_stages=2),
        interpret=interpret,
        name="mhsea",
    )


def _one_head(
    query_ref: Any, key_ref: Any, value_ref: Any, bias_ref: Any, mask_ref: Any, out_ref: Any, *, precision: Any
) -> None:
    """One head of one walker: blocks ``[electrons, width]`` and ``[electrons, electrons]``, all on chip."""
    active = mask_ref[...] != 0
    products = triton.dot(query_ref[...], key_ref[...], trans_b=True, precision=precision)
    logits = jnp.where(active[:, None] & active[None, :], products + bias_ref[...], -1e20)
    weights = jnp.exp(logits - jnp.max(logits, axis=1, keepdims=True))
    weights = weights / jnp.sum(weights, axis=1, keepdims=True)
    out_ref[...] = triton.dot(weights, value_ref[...], precision=precision).astype(out_ref.dtype)


def _batch(arguments: tuple[Any, ...], axes: tuple[Any, ...], *, precision: Any) -> tuple[Any, int]:
    """All arguments with the new axis in front, those without one repeated, as the kernel wants its mask."""
    size = next(x.shape[axis] for x, axis in zip(arguments, axes, strict=True) if axis is not None)
    moved = (
        jnp.broadcast_to(x, (size, *x.shape)) if axis is None else jnp.moveaxis(x, axis, 0)
        for x, axis in zip(arguments, axes, strict=True)
    )
    return mhsea_p.bind(*moved, precision=precision), 0


def _jvp(primals: tuple[Any, ...], tangents: tuple[Any, ...], *, precision: Any) -> Any:
    twin = partial(attention_twin, mask=primals[-1], precision=precision)
    return jax.jvp(twin, primals[:-1], tuple(ad.instantiate_zeros(tangent) for tangent in tangents[:-1]))


mhsea_p = Primitive("mhsea")
mhsea_p.def_impl(lambda *arguments, precision: jax.jit(partial(mhsea_p.bind, precision=precision))(*arguments))
mhsea_p.def_abstract_eval(lambda query, *_, precision: jax.core.ShapedArray(query.shape, query.dtype))
batching.primitive_batchers[mhsea_p] = _batch
ad.primitive_jvps[mhsea_p] = _jvp
mlir.register_lowering(mhsea_p, mlir.lower_fun(attention_twin, multiple_results=False))
mlir.register_lowering(mhsea_p, mlir.lower_fun(fused_attention, multiple_results=False), platform="cuda")
