"""A jet layer as one Pallas kernel for Triton: an instance has all rows of a few walkers and electrons, and a block of
columns.

The weights are read a few features at a time, once for all rows of an instance. Rows are padded to a power of two, as
Triton requires; rows that are summed are masked, so that padding may hold anything.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from fusionlab.codegen.kernels.dot_chains.chain import Interval, Part, Rows, TileLoad, TileStore
from fusionlab.codegen.kernels.jet_layers.layer import JetLayer, RowSource
from fusionlab.codegen.kernels.triton_tiles import applied, dot, flat_call, indices, padded
from fusionlab.codegen.raising.rules.contraction import TF32X3, strictest_precision
from fusionlab.codegen.raising.rules.three_products import by_three_products
from fusionlab.hlo.view import Node

_ELEMENTS = 4096
"""Elements of the rows of one walker and electron, padded, by an instance's columns."""


@dataclass(frozen=True)
class Tiling:
    """The walkers and electrons whose rows an instance has together, which read the weights once; its warps; and the
    features that are contracted at a time."""

    together: int
    warps: int
    features: int


_IN_FLOAT32, _IN_TF32X3, _IN_TF32 = Tiling(2, 4, 16), Tiling(2, 8, 16), Tiling(4, 8, 32)
"""The best of each by the model of time (H100, 32 rows, 256 to 256 or 320 to 256 features); none spills. In TF32 there
are fewer instructions, and the weights that all instances read from the L2 count for more."""

_LEAST_WORK = 120
"""FLOPs of a contraction for each element of its rows and of its result from which it takes three products of TF32. By
the model of time (PauliNet, H100) the two widest layers, 128 columns, gain 13 %; of narrower ones four gain 15 % and
spill, one gains nothing, and 19 lose 27 to 90 %."""

Multiply = Callable[[Any, Any], Any]
"""The product of two blocks."""


def columns_of(layer: JetLayer) -> int:
    """The columns of an instance: a power of two."""
    return max(16, min(padded(layer.extents[layer.columns]), _ELEMENTS // padded(layer.rows)))


def is_in_float32(layer: JetLayer) -> bool:
    """True if the contraction of ``layer`` is asked for in float32: there are three products in its place to choose."""
    return strictest_precision(layer.node) is lax.Precision.HIGHEST


def pays_in_tf32x3(layer: JetLayer) -> bool:
    """True if three products of TF32 take less time in ``layer`` than one in float32, by its shapes.

    Its contraction is asked for in float32, and its matrix [features, columns] has at least ``_LEAST_WORK`` FLOPs for
    each element of rows and results.
    """
    columns = layer.extents[layer.columns]
    features = math.prod(layer.node.operands[1].type.shape) // columns
    return is_in_float32(layer) and 2 * features * columns >= _LEAST_WORK * (features + columns)


def layer_kernel(
    layer: JetLayer, *, in_tf32x3: bool = False, interpret: bool = False
) -> Callable[..., tuple[Any, ...]]:
    """``layer`` as a callable of ``layer.arrays``; ``interpret`` runs the kernel on any device.

    ``in_tf32x3``: a contraction in float32 is three of TF32, on tensor cores (``_in_tf32x3``).
    """
    width = columns_of(layer)
    blocks = pl.cdiv(layer.extents[layer.columns], width)
    multiply: Multiply = partial(dot, precision=strictest_precision(layer.node))
    tiling = _IN_FLOAT32 if is_in_float32(layer) else _IN_TF32
    if in_tf32x3 and is_in_float32(layer):
        multiply, tiling = _in_tf32x3 if interpret else _in_tf32x3_by_triton, _IN_TF32X3
    grid, warps = (blocks * pl.cdiv(layer.instances, tiling.together),), tiling.warps
    kernel = partial(_run, layer, width, blocks, tiling, multiply)
    return flat_call(kernel, layer.arrays, layer.outputs, grid, warps=warps, interpret=interpret, name="jet_layer")


def _run(layer: JetLayer, width: int, blocks: int, tiling: Tiling, multiply: Multiply, *refs: Any) -> None:
    """The kernel: ``refs`` are those of the arrays and of the outputs, all flat. Blocks of columns of the same rows are
    neighbours."""
    arrays = layer.arrays
    held, results = dict(zip(arrays, refs, strict=False)), refs[len(arrays) :]
    columns = lax.rem(pl.program_id(0), jnp.int32(blocks)) * width + jnp.arange(width, dtype=jnp.int32)
    first = lax.div(pl.program_id(0), jnp.int32(blocks)) * tiling.together
    ragged = layer.instances % tiling.together > 0
    instances = [_LayerInstance(layer, held, first + each, columns, ragged) for each in range(tiling.together)]
    totals = tuple(jnp.zeros((padded(layer.rows), width), jnp.float32) for _ in instances)
    for source in layer.sources:
        totals = _contracted(source, instances, tiling.features, multiply, totals)
    for instance, total in zip(instances, totals, strict=True):
        instance.finish(total, results)


def _contracted(
    source: RowSource, instances: Sequence[_LayerInstance], most: int, multiply: Multiply, totals: tuple[Any, ...]
) -> tuple[Any, ...]:
    """``totals`` and the product of a source with its weights, at ``most`` so many features at a time."""
    many = min(most, padded(source.extent))
    weights = instances[0].layer.weights

    def add(at: Any, totals: tuple[Any, ...]) -> tuple[Any, ...]:
        features = at * many + jnp.arange(many, dtype=jnp.int32)
        there = None if source.extent % many == 0 else features < source.extent
        columns = instances[0].columns
        where = (
            weights.offset
            + (features[:, None] + source.first) * weights.strides[0]
            + columns[None, :] * weights.strides[1]
        )
        block = _load(
            instances[0].refs[weights.base],
            where,
            _both(None if there is None else there[:, None], instances[0].has_column),
        )
        rows = [instance.rows_of(source, features, there) for instance in instances]
        return tuple(total + multiply(row, block) for total, row in zip(totals, rows, strict=True))

    found: tuple[Any, ...] = lax.fori_loop(0, pl.cdiv(source.extent, many), add, totals)
    return found


def _in_tf32x3(left: Any, right: Any) -> Any:
    """The product of two blocks by three of TF32, for interpreted kernels; Triton may split otherwise."""
    return by_three_products(partial(dot, precision=lax.Precision.HIGHEST), left, right)


def _in_tf32x3_by_triton(left: Any, right: Any) -> Any:
    """``_in_tf32x3``, split where Triton does it."""
    axes = (((1,), (0,)), ((), ()))
    return lax.dot_general(left, right, axes, precision=TF32X3, preferred_element_type=jnp.float32)


class _LayerInstance:
    """The rows of one walker and electron: every array is ``[rows, columns]``, or has 1 in place of either.

    ``ragged``: the last program instance has fewer of them.
    """

    def __init__(self, layer: JetLayer, refs: Mapping[Any, Any], index: Any, columns: Any, ragged: bool) -> None:
        self.layer, self.refs, self.columns = layer, refs, columns
        self.row = jnp.arange(padded(layer.rows), dtype=jnp.int32)[:, None]
        self.exists = jnp.reshape(index < layer.instances, (1, 1)) if ragged else None
        extent = layer.extents[layer.columns]
        self.has_column = None if extent % columns.shape[0] == 0 else (columns < extent)[None, :]
        self.grid = indices(layer.grid, layer.extents, index)
        self.made: dict[Part, Any] = {}
        self.product: Any = None

    def rows_of(self, source: RowSource, features: Any, there: Any) -> Any:
        """``features`` of all rows of a source; zeros where there are none."""
        at = self._places(source.load) + features[None, :] * source.step
        mask = _both(self._mask(source.load, (0, self.layer.rows)), None if there is None else there[None, :])
        return _load(self.refs[source.load.base], at, mask)

    def finish(self, product: Any, results: Sequence[Any]) -> None:
        """Compute what follows the contraction, and write it."""
        self.product = product
        for number, ref in enumerate(results):
            stores = [store for store in self.layer.stores if store.output == number]
            tall = [store for store in stores if store.interval is not None]
            if tall:
                self._store_rows(ref, stores, tall[0].place)
                continue
            for store in stores:
                self._store(ref, store.place, self.value(store.part), None)

    def _store_rows(self, ref: Any, stores: Sequence[TileStore], place: TileLoad) -> None:
        """Write all rows of a result at once: ``place`` is that of row 0 and its steps."""
        step = dict(place.steps)[self.layer.stream or 0]
        intervals = [store.interval or _row(store, place, step) for store in stores]
        shape = (padded(self.layer.rows), self.columns.shape[0])
        value = jnp.broadcast_to(self.value(stores[-1].part), shape)
        for store, interval in zip(stores[:-1], intervals[:-1], strict=True):
            value = jnp.where(self._is_in(interval), self.value(store.part), value)
        self._store(ref, place, value, (intervals[0][0], intervals[-1][1]))

    def _store(self, ref: Any, place: TileLoad, value: Any, interval: Interval | None) -> None:
        at = self._places(place)
        mask = self._mask(place, interval)
        value = jnp.broadcast_to(value, at.shape)
        if mask is None:
            triton.store(ref.at[at], value)
            return
        mask = jnp.broadcast_to(mask, at.shape)
        # Pallas' interpreter writes masked places back unchanged: these must not be another element's.
        triton.store(ref.at[jnp.where(mask, at, ref.shape[0])], value, mask=mask)

    def value(self, part: Part) -> Any:
        """The array of ``part``."""
        if part not in self.made:
            self.made[part] = self._make(part)
        return self.made[part]

    def _make(self, part: Part) -> Any:
        match part.of:
            case None:
                return sum(self._term(term) for term in part.operands)
            case float(number):
                return jnp.full((1, 1), number, jnp.float32)
            case TileLoad() as load:
                return _load(self.refs[load.base], self._places(load), self._mask(load, part.interval))
            case Rows() as rows:
                return self.product if part.interval else self._summed(self.product, rows.interval)
            case Node() as node:
                return applied(node, jnp.broadcast_arrays(*map(self.value, part.operands)))

    def _term(self, term: Part) -> Any:
        """A term of a sum over rows."""
        return self.value(term) if term.interval is None else self._summed(self.value(term), term.interval)

    def _summed(self, array: Any, interval: Interval) -> Any:
        """The sum of the rows of ``interval``, ``[1, columns]``."""
        shape = (padded(self.layer.rows), self.columns.shape[0])
        array = jnp.broadcast_to(array, shape)
        if interval != (0, padded(self.layer.rows)):
            array = jnp.where(self._is_in(interval), array, jnp.float32(0.0))
        return jnp.sum(array, axis=0)[None, :]

    # Places.

    def _is_in(self, interval: Interval) -> Any:
        """Which rows are of ``interval``, as ``[rows, columns]``."""
        start, end = interval
        there = self.row == start if end - start == 1 else (self.row >= start) & (self.row < end)
        return jnp.broadcast_to(there, (padded(self.layer.rows), self.columns.shape[0]))

    def _mask(self, place: TileLoad, interval: Interval | None) -> Any:
        """Which elements of a tile there are; None if all."""
        labels = [label for label, _ in place.steps]
        has_row = None
        if self.layer.stream in labels and interval is not None and interval != (0, padded(self.layer.rows)):
            has_row = (self.row >= interval[0]) & (self.row < interval[1])
        return _both(has_row, self.has_column if self.layer.columns in labels else None, self.exists)

    def _places(self, place: TileLoad) -> Any:
        """The offsets of a tile: ``[rows, columns]``, or 1 in place of either."""
        at = jnp.full((1, 1), place.offset, jnp.int32)
        for label, step in place.steps:
            if label == self.layer.stream:
                at = at + self.row * step
            elif label == self.layer.columns:
                at = at + self.columns[None, :] * step
            else:
                at = at + self.grid[label] * step
        return at


def _row(store: TileStore, place: TileLoad, step: int) -> Interval:
    """The row that ``store`` writes."""
    row = (store.place.offset - place.offset) // step
    return row, row + 1


def _load(ref: Any, at: Any, mask: Any) -> Any:
    """The elements of ``ref`` there, zeros where masked."""
    if mask is None:
        return triton.load(ref.at[at])
    return triton.load(ref.at[at], mask=jnp.broadcast_to(mask, at.shape), other=0.0)


def _both(*masks: Any) -> Any:
    """Where all ``masks`` hold, of which None is true everywhere."""
    known = [mask for mask in masks if mask is not None]
    return reduce(operator.and_, known) if known else None
