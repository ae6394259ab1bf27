"""scatter-to-gather: a scatter by indices that are known at compile time becomes gathers, which XLA fuses.

rewrite:
    %r = scatter(%x, [1, 0, 1], %u), add    -->    %r = %x + gather(%u, [1, 0]) + [0, 1] * gather(%u, [-, 2])

The reverse pass of ``a[indices]`` is a scatter-add into zeros. XLA makes a kernel of it, another that fills the zeros,
often a copy, and fuses readers into neither. Where the indices are known, so are the updates of each element: a gather
per term of the longest sum, masked where a sum is shorter. Gathers are ordinary members of a fusion.

requires: one operand and one update, combined by add, or replaced where no index occurs twice; every window is the
    whole extent of its axes; indices that follow from constants, also through a loop that carries them unchanged.
exact: reassociates sums of several updates to one element (a scatter's own order is not defined).
hopes: the launch of the scatter, of its zeros and its copies; the elementwise kernels before and after it become one.

Option ``terms`` is the most updates to one element: each is one more gather.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import jax.numpy as jnp
import numpy as np
from jax import lax
from jaxlib.mlir.dialects import stablehlo

from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.constants import fold, splat_number
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import FunctionView, Node, Value, constant_array
from fusionlab.passes.interface import Pass, Result, Setting
from fusionlab.passes.refusals import Ground, Refusal
from fusionlab.passes.rewriting import Decide, OpRewrite, rewrite_ops


@dataclass(frozen=True)
class ScatterToGather(Pass):
    """Option: ``terms``; see the module's docstring."""

    terms: int = 8

    name: ClassVar[str] = "scatter-to-gather"

    def run(self, program: Program, setting: Setting) -> Result:
        """Rewrite every scatter that qualifies, in any block."""
        return rewrite_ops(program, self, ops.SCATTER, self._decide_with, setting, what="scatters became gathers")

    def _decide_with(self, flat: FunctionView) -> Decide:
        carried = _Carried.of(flat)
        return lambda node: self._decide(node, carried)

    def _decide(self, node: Node, carried: _Carried) -> OpRewrite:
        if len(node.operands) != 3:
            raise Refusal(Ground.SCATTER_FORM, "it has several operands")
        combined = combiner(node.regions[0])
        if combined not in ("add", "second"):
            raise Refusal(Ground.SCATTER_FORM, f"its updates are combined by {combined}")
        numbers = stablehlo.ScatterDimensionNumbers(node.attributes["scatter_dimension_numbers"])
        indices = fold(node.operands[1], carried.integers)
        if indices is None:
            raise Refusal(Ground.INDICES_UNKNOWN, "its indices are not known at compile time")
        places = Places.of(numbers, indices, node.operands[0].type.shape, node.operands[2].type.shape)
        if len(places.sources) > (self.terms if combined == "add" else 1):
            if combined == "add":
                raise Refusal(Ground.NO_GAIN, "more updates go to one place than there may be gathers")
            raise Refusal(
                Ground.UPDATE_ORDER, "several updates replace the same place, in an order that is not defined"
            )
        if combined == "second":
            return OpRewrite(lambda x, updates: (places.chosen(updates, x),), (0, 2), (places.key, "second"))
        if carried.splat(node.operands[0]) == 0:
            return OpRewrite(lambda updates: (places.sum(updates),), (2,), (places.key, "zero"))
        return OpRewrite(lambda x, updates: (x + places.sum(updates),), (0, 2), (places.key, "add"))


@dataclass(frozen=True, eq=False)
class Places:
    """The origin in the updates of each element of the result.

    ``sources`` are, per term of the sums, the indices ``[..., n]`` into the ``axes`` (n of them) of the updates, one
    for every position along the scattered axes of the result; -1 where a sum has no such term. ``windows`` are the
    result's axes that are taken whole, ``sizes`` the slice of the updates that one gather takes.
    """

    sources: tuple[np.ndarray, ...]
    axes: tuple[int, ...]
    windows: tuple[int, ...]
    scattered: tuple[int, ...]
    sizes: tuple[int, ...]
    shape: tuple[int, ...]

    @staticmethod
    def of(numbers: Any, indices: np.ndarray, shape: tuple[int, ...], updates: tuple[int, ...]) -> Places:
        """From the scatter's dimension numbers; Refusal for windows that are a part of their axes."""
        scattered = tuple(numbers.scattered_dims_to_operand_dims)
        windows = tuple(axis for axis in range(len(shape)) if axis not in scattered)
        plain = sorted(numbers.inserted_window_dims) == sorted(scattered) and not list(numbers.input_batching_dims)
        window_axes = sorted(numbers.update_window_dims)
        if not plain or [updates[a] for a in window_axes] != [shape[a] for a in windows]:
            raise Refusal(Ground.SCATTER_FORM, "its windows are not whole axes")
        if numbers.index_vector_dim == indices.ndim:
            indices = indices[..., None]
        elif numbers.index_vector_dim != indices.ndim - 1:
            raise Refusal(Ground.SCATTER_FORM, "the index vector is not the last axis of its indices")
        axes = tuple(axis for axis in range(len(updates)) if axis not in window_axes)
        order = tuple(sorted(scattered))
        extents = tuple(shape[axis] for axis in order)
        hits: dict[tuple[int, ...], list[tuple[int, ...]]] = {}
        for source in np.ndindex(*indices.shape[:-1]):
            index = dict(zip(scattered, (int(i) for i in indices[source]), strict=True))
            place = tuple(index[axis] for axis in order)
            if all(0 <= i < extent for i, extent in zip(place, extents, strict=True)):
                hits.setdefault(place, []).append(source)
        longest = max(map(len, hits.values()), default=0)
        sources = tuple(np.full((*extents, len(axes)), -1, np.int32) for _ in range(longest))
        for place, found in hits.items():
            for term, source in enumerate(found):
                sources[term][place] = source
        sizes = tuple(1 if axis in axes else updates[axis] for axis in range(len(updates)))
        return Places(sources, axes, windows, order, sizes, shape)

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for equal places."""
        return (tuple(source.tobytes() for source in self.sources), self.axes, self.windows, self.sizes, self.shape)

    def sum(self, updates: Any) -> Any:
        """The sum of the updates that go to each place, ``[shape]``."""
        terms = [self._masked(updates, source, jnp.zeros(self.shape, updates.dtype)) for source in self.sources]
        return sum(terms[1:], terms[0]) if terms else jnp.zeros(self.shape, updates.dtype)

    def chosen(self, updates: Any, otherwise: Any) -> Any:
        """The update that goes to each place, at most one, ``otherwise`` where there is none."""
        return self._masked(updates, self.sources[0], otherwise) if self.sources else otherwise

    def _masked(self, updates: Any, source: np.ndarray, otherwise: Any) -> Any:
        numbers = lax.GatherDimensionNumbers(
            offset_dims=self.windows, collapsed_slice_dims=self.axes, start_index_map=self.axes
        )
        taken = lax.gather(
            updates,
            np.maximum(source, 0),
            numbers,
            self.sizes,
            indices_are_sorted=False,
            mode=lax.GatherScatterMode.PROMISE_IN_BOUNDS,
        )
        there = source[..., 0] >= 0
        if there.all():
            return taken
        return lax.select(lax.broadcast_in_dim(there, self.shape, self.scattered), taken, otherwise)


@dataclass(frozen=True)
class _Carried:
    """Values that loops carry unchanged.

    ``origin``: region argument to the value outside of it; ``integers``: arguments whose array is known.
    """

    origin: Mapping[Value, Value]
    integers: Mapping[Value, np.ndarray]

    @staticmethod
    def of(flat: FunctionView) -> _Carried:
        """For all loops of ``flat``, outer ones first."""
        origin: dict[Value, Value] = {}
        integers: dict[Value, np.ndarray] = {}
        for node in flat.walk():
            if node.op is not ops.WHILE:
                continue
            body = node.regions[1]
            for at, given in enumerate(node.operands):
                if body.returns[at] is not body.arguments[at]:
                    continue
                known = fold(given, integers)
                for region in node.regions:
                    origin[region.arguments[at]] = given
                    if known is not None:
                        integers[region.arguments[at]] = known
        return _Carried(origin, integers)

    def splat(self, value: Value) -> complex | None:
        """The number that all elements of ``value`` equal, if it is known."""
        while True:
            node = value.producer
            if value in self.origin:
                value = self.origin[value]
            elif node is not None and node.op.strided:
                value = node.operands[0]
            elif node is not None and node.op is ops.CONSTANT:
                return splat_number(constant_array(node))
            else:
                return None
