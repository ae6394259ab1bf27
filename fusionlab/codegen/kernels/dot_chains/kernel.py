"""A dot chain as one Pallas kernel for Triton: an instance computes all of it for one batch element.

Matrices are held in registers, padded to powers of two as Triton requires; what is contracted or reduced is masked, so
that padding may hold anything. What does not change along the stream is computed before the loops that read it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterable, Sequence
from functools import partial
from typing import Any

import jax.numpy as jnp
from jax import lax
from jax.experimental import pallas as pl
from jax.experimental.pallas import triton

from fusionlab.codegen.kernels.dot_chains.axes import REDUCTIONS
from fusionlab.codegen.kernels.dot_chains.chain import DotChain, Exchanged, Interval, Part, TileLoad, TileStore
from fusionlab.codegen.kernels.triton_tiles import applied, dot, flat_call, indices, padded
from fusionlab.codegen.raising.rules.contraction import strictest_precision
from fusionlab.codegen.raising.rules.reduction import combiner
from fusionlab.hlo import ops
from fusionlab.hlo.view import Node, Value

_REDUCE: dict[str, Callable[[Any, int], Any]] = {"add": jnp.sum, "maximum": jnp.max, "minimum": jnp.min}
_FEW_ELEMENTS = 1024
"""Elements of the largest matrix, padded, that two warps hold: the forward Laplacian of an attention between ten
electrons (64 features a head) takes 233 registers a thread with two warps, 227 with four, and spills with one (ptxas,
sm_80)."""


def chain_kernel(
    chain: DotChain, *, dead: Collection[Value] = (), interpret: bool = False
) -> Callable[..., tuple[Any, ...]]:
    """``chain`` as a callable of ``chain.arrays``; ``interpret`` runs the kernel on any device.

    A result may be written over one of the ``dead`` arrays, which nothing reads afterwards.
    """
    overwrites = chain.overwrites(dead)
    elements = max(math.prod(padded(chain.extents[label]) for label in part.labels) for part in chain.parts)
    return flat_call(
        partial(_run, chain, waits=bool(overwrites) and not interpret),
        chain.arrays,
        chain.outputs,
        (chain.instances,),
        warps=2 if elements <= _FEW_ELEMENTS else 4,
        interpret=interpret,
        name="dot_chain",
        overwrites=overwrites,
    )


def _run(chain: DotChain, *refs: Any, waits: bool) -> None:
    """The kernel: ``refs`` are those of the arrays and of the outputs, all flat.

    With ``waits``, all threads of an instance have read before any of them writes.
    """
    arrays = chain.arrays
    body = _Instance(chain, dict(zip(arrays, refs, strict=False)), refs[len(arrays) :], waits)
    for phase, interval in chain.loops:
        body.loop(phase, interval)
    last = [store for store in chain.stores if store.interval is None]
    values = [body.value(store.part) for store in last]  # all of them before the first is written
    body.write(last, values, {})


class _Instance:
    """One batch element: the parts that are made, and what is summed over the stream so far."""

    def __init__(self, chain: DotChain, refs: Any, results: Sequence[Any], waits: bool) -> None:
        self.chain, self.refs, self.results, self.waits = chain, refs, results, waits
        self.made: dict[Part, Any] = {}
        self.sums: dict[Part, Any] = {}
        self.grid = indices(chain.grid, chain.extents, pl.program_id(0))

    def loop(self, phase: int, interval: Interval) -> None:
        """Run through ``interval``: add to the sums and write what the loops of ``phase`` make there."""
        inside = [part for part in self.chain.parts if part.interval == interval and part.phase == phase]
        held = set(inside)
        sums = [part for part in self.chain.parts if part.of is None and not held.isdisjoint(part.operands)]
        stores = [s for s in self.chain.stores if s.interval == interval and s.part.phase == phase]
        if not sums and not stores:
            return
        ends = [*(store.part for store in stores), *(term for part in sums for term in part.operands if term in held)]
        for part in _reads_of(ends):
            self.value(part)

        def step(at: Any, totals: tuple[Any, ...]) -> tuple[Any, ...]:
            made: dict[Part, Any] = {}
            values = [self.value(store.part, made, at) for store in stores]
            terms = [
                sum(
                    self._shaped(self.value(term, made, at), term.labels, part.labels)
                    for term in part.operands
                    if term in held
                )
                for part in sums
            ]
            self.write(stores, values, {self.chain.stream: at})
            return tuple(total + term for total, term in zip(totals, terms, strict=True))

        start = tuple(self.sums[part] if part in self.sums else self._zeros(part) for part in sums)
        self.sums.update(
            zip(sums, lax.fori_loop(jnp.int32(interval[0]), jnp.int32(interval[1]), step, start), strict=True)
        )

    def value(self, part: Part, made: dict[Part, Any] | None = None, at: Any = None) -> Any:
        """The matrix of ``part``; of one inside a loop that of coordinate ``at``, kept in ``made``."""
        where = self.made if part.interval is None else made
        assert where is not None, "a part of a loop is read outside of it"
        if part not in where:
            operands = [] if part.of is None else [self.value(operand, made, at) for operand in part.operands]
            where[part] = self._make(part, operands, at)
        return where[part]

    def write(self, stores: Sequence[TileStore], values: Sequence[Any], at: dict[int | None, Any]) -> None:
        """Write ``values`` to the places of ``stores``."""
        if self.waits and stores:
            triton.debug_barrier()
        for store, value in zip(stores, values, strict=True):
            self._store(store, value, at)

    def _store(self, store: TileStore, value: Any, at: dict[int | None, Any]) -> None:
        """Write ``value`` to its places in an output."""
        ref = self.results[store.output]
        labels = tuple(
            label for label, _ in store.place.steps if label not in self.chain.grid and label != self.chain.stream
        )
        places, there = self._places(store.place, labels, at)
        size = math.prod(self.chain.outputs[store.output].type.shape)
        # Pallas' interpreter writes masked places back unchanged: these must not be another element's.
        places = places if there is None else jnp.where(there, places, size)
        triton.store(ref.at[places], self._shaped(value, store.part.labels, labels), mask=there)

    def _make(self, part: Part, operands: list[Any], at: Any) -> Any:
        match part.of:
            case None:
                return self._sum(part)
            case float(number):
                return jnp.float32(number)
            case TileLoad() as load:
                places, there = self._places(load, part.labels, {self.chain.stream: at})
                masked = {} if there is None else {"mask": there, "other": 0.0}
                return triton.load(self.refs[load.base].at[places], **masked)
            case Exchanged(classes=classes):
                becomes = dict(classes)
                return self._shaped(operands[0], [becomes[label] for label in part.operands[0].labels], part.labels)
            case Node(op=ops.DOT_GENERAL) as node:
                return self._dot(node, part, operands)
            case Node(op=ops.REDUCE) as node:
                return self._reduced(node, part, operands[0])
            case Node() as node:
                pairs = zip(operands, part.operands, strict=True)
                return applied(node, [self._shaped(array, one.labels, part.labels) for array, one in pairs])

    def _sum(self, part: Part) -> Any:
        """What is summed over the stream: terms outside of loops, and those of the loops before."""
        terms = [
            self._shaped(self.value(term), term.labels, part.labels) for term in part.operands if term.interval is None
        ]
        return sum([*terms, self.sums[part]] if part in self.sums else terms)

    def _dot(self, node: Node, part: Part, operands: list[Any]) -> Any:
        (left, right), (over,) = part.operands, part.over or (None,)
        ours, theirs = (tuple(label for label in one.labels if label != over) for one in (left, right))
        if over is None or len({*ours, *theirs, over}) < 3:
            both = tuple(sorted({*left.labels, *right.labels}))
            one, other = (self._shaped(a, p.labels, both) for a, p in zip(operands, (left, right), strict=True))
            product = one * other
            return product if over is None else jnp.sum(self._masked(product, both, over, 0.0), both.index(over))
        one = self._masked(self._shaped(operands[0], left.labels, (*ours, over)), (*ours, over), over, 0.0)
        other = self._masked(self._shaped(operands[1], right.labels, (over, *theirs)), (over, *theirs), over, 0.0)
        product = dot(one, other, precision=strictest_precision(node))
        return self._shaped(product, (*ours, *theirs), part.labels)

    def _reduced(self, node: Node, part: Part, array: Any) -> Any:
        kind = combiner(node.regions[0])
        labels = part.operands[0].labels
        for over in part.over:
            array = self._masked(array, labels, over, REDUCTIONS[kind])
            array = _REDUCE[kind](array, labels.index(over))
            labels = tuple(label for label in labels if label != over)
        return array

    # Shapes.

    def _extent(self, label: int) -> int:
        return padded(self.chain.extents[label])

    def _zeros(self, part: Part) -> Any:
        return jnp.zeros([self._extent(label) for label in part.labels], jnp.float32)

    def _shaped(self, array: Any, labels: Sequence[int], wanted: Sequence[int]) -> Any:
        """``array`` with axes ``labels`` as one with axes ``wanted``, at least the same."""
        order = [label for label in wanted if label in labels]
        if list(labels) != order:
            array = jnp.transpose(array, [labels.index(label) for label in order])
        for at, label in enumerate(wanted):
            if label not in labels:
                array = jnp.expand_dims(array, at)
        shape = tuple(map(self._extent, wanted))
        return array if array.shape == shape else jnp.broadcast_to(array, shape)

    def _masked(self, array: Any, labels: Sequence[int], label: int, other: float) -> Any:
        """``array`` with ``other`` in the padding along ``label``."""
        if self._extent(label) == self.chain.extents[label]:
            return array
        there = self._numbers(label, labels) < self.chain.extents[label]
        return jnp.where(jnp.broadcast_to(there, array.shape), array, jnp.float32(other))

    def _numbers(self, label: int, labels: Sequence[int]) -> Any:
        """0, 1, 2, ... along ``label``, as one of the axes ``labels``."""
        numbers = jnp.arange(self._extent(label), dtype=jnp.int32)
        shape = [self._extent(label) if one == label else 1 for one in labels]
        return numbers.reshape(shape) if len(shape) != 1 else numbers

    def _places(self, load: TileLoad, labels: Sequence[int], at: dict[int | None, Any]) -> tuple[Any, Any]:
        """The offsets of a tile with axes ``labels``, and which of them are no padding (None: all)."""
        steps = dict(load.steps)
        places = jnp.int32(load.offset)
        for label, step in steps.items():
            if label not in labels:
                places = places + (self.grid[label] if label in self.grid else at[label]) * step
        there = None
        shape = tuple(map(self._extent, labels))
        for label in labels:
            places = places + self._numbers(label, labels) * steps[label]
            if self._extent(label) != self.chain.extents[label]:
                inside = jnp.broadcast_to(self._numbers(label, labels) < self.chain.extents[label], shape)
                there = inside if there is None else there & inside
        return jnp.broadcast_to(places, shape) if labels else places, there


def _reads_of(ends: Iterable[Part]) -> list[Part]:
    """The parts outside of loops that parts of a loop read, directly or through others of the loop."""
    found: dict[Part, None] = {}
    waiting, seen = [*ends], set[Part]()
    while waiting:
        part = waiting.pop()
        if part in seen:
            continue
        seen.add(part)
        if part.interval is None:
            found[part] = None
        else:
            waiting += part.operands
    return list(found)
