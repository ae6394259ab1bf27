"""Sums of batched contractions of small matrices as one Pallas kernel for Triton that reads operands in place.

    result[b, i, j] = sum_p sum_k left_p[b, i, k] right_p[b, j, k]

Each letter stands for any number of axes, at any positions in the arrays that the operands are views of, and in the
array that the result is written to: an element's offset is a sum of indices times strides. Every program instance makes
a block of i by a block of j of one b, a block of k at a time, padded to powers of two as Triton requires.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from fusionlab.codegen.kernels.triton_tiles import dot, fits_triton, flat_call, padded, places
from fusionlab.hlo.strided import Axis, count
from fusionlab.hlo.view import Value

_TILE = 64
_TERMS = 32
"""The largest extents of i and j, and of k, in a block."""


@dataclass(frozen=True)
class Product:
    """One contraction: the arrays that its operands are views of, the offsets of these, and the axes of its terms, with
    strides in both arrays."""

    arrays: tuple[Value, Value]
    offsets: tuple[int, int]
    terms: tuple[Axis, ...]
    precision: Any


@dataclass(frozen=True)
class SumOfProducts:
    """The sum of ``products``, all ``batch`` by ``rows`` by ``columns``, written to ``out``.

    The strides of axes are in the arrays of each product in turn, and then in ``out``. Arrays and result are float32
    (or float64, for which no kernel is made), of less than 2^31 elements: offsets are 32-bit integers.
    """

    products: tuple[Product, ...]
    out: Value
    batch: tuple[Axis, ...]
    rows: tuple[Axis, ...]
    columns: tuple[Axis, ...]

    @property
    def arrays(self) -> list[Value]:
        """The arrays that are read, each once, in order of first use."""
        return list(dict.fromkeys(array for product in self.products for array in product.arrays))

    @property
    def fits_triton(self) -> bool:
        """True if Triton has products for all arrays."""
        return fits_triton((*self.arrays, self.out))

    @property
    def flops(self) -> int:
        """Floating-point operations, two per term."""
        each = math.prod(count(axes) for axes in (self.batch, self.rows, self.columns))
        return sum(2 * each * count(product.terms) for product in self.products)


def product_kernel(work: SumOfProducts, *, interpret: bool = False) -> Callable[..., tuple[Any, ...]]:
    """``work`` as a callable of ``work.arrays``; ``interpret`` runs the kernel on any device."""
    tiles = [min(_TILE, padded(count(axes))) for axes in (work.rows, work.columns)]
    blocks = [pl.cdiv(count(axes), tile) for axes, tile in zip((work.rows, work.columns), tiles, strict=True)]
    grid, warps = (count(work.batch), *blocks), 1 if math.prod(tiles) <= 512 else 4
    kernel = partial(_run, work, *tiles)
    return flat_call(kernel, work.arrays, [work.out], grid, warps=warps, interpret=interpret, name="batched_product")


def _run(work: SumOfProducts, tall: int, wide: int, *refs: Any) -> None:
    """The kernel: ``refs`` are those of the arrays and of the result, all flat."""
    held = dict(zip(work.arrays, refs, strict=False))
    i = pl.program_id(1) * tall + jnp.arange(tall, dtype=jnp.int32)
    j = pl.program_id(2) * wide + jnp.arange(wide, dtype=jnp.int32)
    batch = places(work.batch, pl.program_id(0), 2 * len(work.products) + 1)
    rows, columns = (places(axes, index, len(batch)) for axes, index in ((work.rows, i), (work.columns, j)))
    has_row, has_column = (i < count(work.rows))[:, None], (j < count(work.columns))[None, :]
    total = jnp.zeros((tall, wide), jnp.float32)
    for number, product in enumerate(work.products):
        ours, theirs = (held[array] for array in product.arrays)
        left, right = 2 * number, 2 * number + 1
        some = _Operand(ours, product.offsets[0] + batch[left] + rows[left][:, None], has_row)
        other = _Operand(theirs, product.offsets[1] + batch[right] + columns[right][None, :], has_column)
        total = _added(total, product, some, other)
    there = has_row & has_column
    # Pallas' interpreter writes masked places back unchanged: these must not be another element's.
    at = jnp.where(there, batch[-1] + rows[-1][:, None] + columns[-1][None, :], math.prod(work.out.type.shape))
    triton.store(refs[-1].at[at], total, mask=there)


@dataclass(frozen=True)
class _Operand:
    """One operand of a product in a block: the offsets of its rows (or columns) in ``ref``, and their mask."""

    ref: Any
    starts: Any
    there: Any

    def load(self, terms: Any, there: Any) -> Any:
        """Its elements at ``terms`` from the starts; zeros where masked."""
        return triton.load(self.ref.at[self.starts + terms], mask=self.there & there, other=0.0)


def _added(total: Any, product: Product, left: _Operand, right: _Operand) -> Any:
    """``total`` and the block of ``product``: ``left`` is ``[rows, 1]``, ``right`` ``[1, columns]``."""
    many = count(product.terms)
    long = min(_TERMS, padded(many))

    def add(at: Any, total: Any) -> Any:
        k = at * long + jnp.arange(long, dtype=jnp.int32)
        terms = places(product.terms, k, 2)
        some = left.load(terms[0][None, :], (k < many)[None, :])
        other = right.load(terms[1][:, None], (k < many)[:, None])
        return total + dot(some, other, precision=product.precision)

    steps = pl.cdiv(many, long)
    return add(0, total) if steps == 1 else lax.fori_loop(0, steps, add, total)
