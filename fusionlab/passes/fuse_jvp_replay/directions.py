"""Step 1, directions: the values whose rows are unit vectors, made of constants and of a loop's counters alone.

    eye[k]            dynamic_slice of an identity at the counter             one row of K coordinates in each trip
    one_hot(k, K)     compare the counter with an iota                        the same
    jnp.eye(K)        compare two iotas, or a constant                        K rows
    x.at[k].set(1.)   scatter or dynamic_update_slice of a one into zeros     one row
    repeated          any of them broadcast or concatenated along walkers     equal rows along that axis

How a unit vector is made does not matter: what follows from constants and counters is evaluated, and its array is
looked at.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.equivalence.exact.evaluation import Evaluator
from fusionlab.equivalence.exact.field import PrimeField, primes
from fusionlab.equivalence.exact.values import Array, Drawn, Held, Known, Uncovered
from fusionlab.hlo import ops
from fusionlab.hlo.constants import splat_number
from fusionlab.hlo.loops import Counter, Loop, Recurrent, Stacked, Sum, analyse, has_effect
from fusionlab.hlo.ops import WIDE_FLOATS
from fusionlab.hlo.replay import identity_extent
from fusionlab.hlo.view import FunctionView, Node, Region, Value, constant_array, free_values, reads
from fusionlab.passes.refusals import Ground, Refusal

_MOST_ELEMENTS = 2**22
"""Of the arrays of one value in all trips that are looked at."""


@dataclass(frozen=True, eq=False)
class UnitRows:
    """A value whose axes ``first`` to ``end`` (excluded) count coordinates: every row is a unit vector.

    ``places`` [trips or 1, *rows] are the coordinates in which they are 1; its axes but the first are those of the
    value that are no coordinates, of extent 1 where all rows along them are equal (walkers).
    """

    value: Value
    first: int
    end: int
    places: Array

    @property
    def extent(self) -> int:
        """The number of coordinates."""
        return math.prod(self.value.type.shape[self.first : self.end])

    @property
    def rows(self) -> int:
        """The different rows of one trip."""
        return math.prod(self.places.shape[1:])

    def placed(self, rows: Any, shape: Sequence[int]) -> Any:
        """The directions ``rows`` [R, K], or [K] of one row, as an array of ``shape`` in the place of the unit
        vectors."""
        kept, rest = self.places.shape[1:], (*shape[: self.first], *shape[self.end :])
        if any(n not in (1, m) for n, m in zip(kept, rest, strict=True)):
            raise Refusal(Ground.AXES_MISTAKEN, "rows of unit vectors are merged with walkers")
        array = rows.reshape(*kept, *shape[self.first : self.end])
        array = jnp.moveaxis(array, range(len(kept), array.ndim), range(self.first, self.end))
        return jnp.broadcast_to(array, shape)


def identities(region: Region) -> list[Value]:
    """The identity matrices of floats that nodes of ``region`` itself make, of two rows or more."""
    made = (value for node in region.nodes for value in node.results)
    return [value for value in made if value.dtype in WIDE_FLOATS and identity_extent(value, {}) > 1]


def made_values(region_nodes: Sequence[Node], given: Collection[Value]) -> list[Node]:
    """The nodes that compute something from constants and ``given`` values alone, without effects or loops."""
    made, nodes = set(given), list[Node]()
    for node in region_nodes:
        if node.op.control_flow or has_effect(node) or not _is_exact(node):
            continue
        if node.op.source or (node.operands and made.issuperset(reads(node))):
            made.update(node.results)
            nodes.append(node)
    return nodes


_OF_FLOATS = (
    ops.ADD, ops.SUBTRACT, ops.MULTIPLY, ops.CONVERT, ops.SELECT, ops.SCATTER, ops.DYNAMIC_UPDATE_SLICE,
    ops.DYNAMIC_SLICE, ops.GATHER, ops.PAD, ops.CONCATENATE, ops.BROADCAST_IN_DIM, ops.RESHAPE, ops.TRANSPOSE,
    ops.SLICE, ops.REVERSE,
)  # fmt: skip
"""Ops of which a prime field has the same results as floating point where these are 0 and 1."""


def _is_exact(node: Node) -> bool:
    """True for integers and for moves of floats: not for comparisons and functions of floats."""
    if node.op is ops.CUSTOM_CALL or any(not value.is_array for value in (*node.operands, *node.results)):
        return False
    inexact = any(value.dtype in ops.INEXACT for value in (*node.operands, *node.results))
    return node.op.source or not inexact or node.op in _OF_FLOATS


def seeds_of_loop(flat: FunctionView, loop: Loop) -> list[UnitRows]:
    """The unit vectors that the body of ``loop`` makes, the first of each chain of ops that only moves them."""
    body, trips = loop.body, loop.trips
    assert trips is not None
    outside = made_values(flat.nodes, ())
    constant = {value for node in outside for value in node.results}
    carried = loop.unchanged
    counters = [body.arguments[i] for i in loop.indices(Counter)]
    fixed = [inner for inner, outer in carried.items() if outer in constant]
    captured = [value for value in free_values(body) if value in constant]
    inside = made_values(body.nodes, [*counters, *fixed, *captured])
    candidates = _that_vary(inside, counters)
    if not candidates:
        return []
    instead = {inner: carried[inner] for inner in fixed}
    nodes = [*outside, *(replace(n, operands=tuple(instead.get(v, v) for v in n.operands)) for n in inside)]
    by_trip = {
        body.arguments[i]: role.at(np.arange(trips)) for i, role in enumerate(loop.roles) if isinstance(role, Counter)
    }
    return _first_of_each(inside, _arrays(nodes, candidates, by_trip, trips), body.nodes)


def seeds_of_constants(flat: FunctionView) -> list[UnitRows]:
    """The unit vectors that ``flat`` makes of constants, those first from which others are made; without those that
    loops alone read."""
    nodes = made_values(flat.nodes, ())
    candidates = _that_vary(nodes, [v for node in nodes if _counts(node) for v in node.results])
    used, made = set(flat.returns), set(nodes)
    for node in reversed(flat.nodes):
        if node.op is not ops.WHILE and (node not in made or not used.isdisjoint(node.results)):
            used.update(reads(node))
    return [seed for seed in _first_of_each(nodes, _arrays(nodes, candidates, {}, 1), flat.nodes) if seed.value in used]


def _counts(node: Node) -> bool:
    """True for what is not the same everywhere: an iota, a constant of several numbers, a one written into zeros."""
    if node.op is ops.CONSTANT:
        return splat_number(constant_array(node)) is None
    return node.op in (ops.IOTA, ops.SCATTER, ops.DYNAMIC_UPDATE_SLICE, ops.PAD, ops.CONCATENATE)


def _that_vary(nodes: Sequence[Node], sources: Collection[Value]) -> list[Value]:
    """The arrays of floats that ``nodes`` compute from ``sources``."""
    varying, found = set(sources), [v for v in sources if v.dtype in WIDE_FLOATS and v.type.shape]
    for node in nodes:
        if not varying.isdisjoint(reads(node)):
            varying.update(node.results)
            found += [v for v in node.results if v.dtype in WIDE_FLOATS and v.type.shape and v not in sources]
    return found


def _arrays(
    nodes: Sequence[Node], values: Sequence[Value], by_trip: Mapping[Value, Array], trips: int
) -> Iterator[tuple[Value, Array]]:
    """The arrays [trips or 1, *shape] of ``values``, which ``nodes`` make, but for those too large."""
    [p] = primes(1)
    evaluator = Evaluator(PrimeField(p, range(trips)))
    known: dict[Value, Held] = {value: Drawn(array) for value, array in by_trip.items()}
    wanted = set(values)
    needed = list[Node]()
    for node in reversed(nodes):
        if not wanted.isdisjoint(node.results):
            needed.append(node)
            wanted.update(reads(node))
    for node in reversed(needed):
        if not all(value in known for value in reads(node)):
            continue
        if any(not v.is_array or trips * math.prod(v.type.shape) > _MOST_ELEMENTS for v in node.results):
            continue
        with contextlib.suppress(Uncovered):
            evaluator.run([node], {}, known)
    for value in values:
        if value in known and math.prod(value.type.shape) > 1:
            held = known[value]
            yield value, held.constant[None] if isinstance(held, Known) else held.array


def _first_of_each(
    nodes: Sequence[Node], arrays: Iterator[tuple[Value, Array]], readers: Collection[Node]
) -> list[UnitRows]:
    """The seeds among ``arrays`` from which no other of as many coordinates comes before.

    Of a table that ``readers`` only take rows of, these are the seeds: rows of an identity in a Python loop.
    """
    seeds: dict[Value, UnitRows] = {}
    known = dict(arrays)
    above: dict[Value, set[int]] = {}
    found: dict[Value, UnitRows] = {}
    for node in nodes:
        over = set().union(*(above.get(value, set()) for value in reads(node)))
        for value in node.results:
            above[value] = over
            if value in known and (seed := _seed(value, known[value])) is not None:
                seeds[value] = seed
                if seed.extent not in over:
                    found[value] = seed
                    above[value] = over | {seed.extent}
    using: dict[Value, list[Node]] = {}
    for node in readers:
        for value in reads(node):
            using.setdefault(value, []).append(node)

    def rows_of(seed: UnitRows) -> list[UnitRows]:
        users = using.get(seed.value, [])
        of = [seeds.get(node.results[0]) for node in users if node.op is not ops.WHILE]
        if of and all(each is not None and each.extent == seed.extent and each.rows < seed.rows for each in of):
            return [row for each in of if each is not None for row in rows_of(each)]
        return [seed]

    return [row for seed in found.values() for row in rows_of(seed)]


def _seed(value: Value, array: Array) -> UnitRows | None:
    """``value`` as unit vectors along as many of its axes as possible; None if it has others."""
    shape, ones = value.type.shape, int(np.count_nonzero(array))
    if not ones or 2 * ones > array.size or (array[array != 0] != 1).any():
        return None
    for count in sorted({math.prod(shape[i:j]) for i in range(len(shape)) for j in range(i + 1, len(shape) + 1)})[::-1]:
        if count < 2 or ones * count != array.size:
            continue
        for first in reversed(range(len(shape))):  # rows first, as JAX has them
            for end in range(first + 1, len(shape) + 1):
                if math.prod(shape[first:end]) != count or (shape[first] == 1 and end - first > 1):
                    continue
                rows = np.moveaxis(array, range(first + 1, end + 1), range(array.ndim - (end - first), array.ndim))
                rows = rows.reshape(*rows.shape[: rows.ndim - (end - first)], count)
                if (rows.sum(-1) == 1).all():
                    return UnitRows(value, first, end, _merged(rows.argmax(-1)))
    return None


def _merged(places: Array) -> Array:
    """``places`` with extent 1 along the axes, but the first, along which all are equal."""
    for axis in range(1, places.ndim):
        if (places == places.take([0], axis)).all():
            places = places.take([0], axis)
    return places


@dataclass(frozen=True, eq=False)
class Place:
    """Where directions are pushed: the body of ``loop``, or (None) the function itself, with its ``seeds``; those
    ``beside`` them stay what they are."""

    loop: Loop | None
    seeds: tuple[UnitRows, ...]
    region: Region
    beside: tuple[UnitRows, ...] = ()


def subject_of(places: Sequence[Place]) -> str:
    """The name in messages of what adds up the products of ``places``."""
    return "the loop" if any(place.loop is not None for place in places) else "the sum over directions"


def constant_seeds(places: Sequence[Place]) -> list[Value]:
    """The seeds that no loop has."""
    return [seed.value for place in places if place.loop is None for seed in place.seeds]


def places_of(flat: FunctionView) -> dict[int, list[Place]]:
    """By number of coordinates, the most first, the places where so many directions are pushed."""
    found: dict[int, list[Place]] = {}
    by: dict[int, list[UnitRows]] = {}
    for seed in seeds_of_constants(flat):
        by.setdefault(seed.extent, []).append(seed)
    for extent, seeds in by.items():
        whole = tuple(seed for seed in seeds if seed.rows == extent)
        rows = tuple(seed for seed in seeds if seed.rows != extent)
        found.setdefault(extent, []).extend(Place(None, some, flat) for some in (whole, rows) if some)
    for node in flat.nodes:
        if node.op is not ops.WHILE:
            continue
        loop = analyse(node)
        if not loop.trips or loop.indices(Recurrent) or not loop.indices(Sum, Stacked):
            continue
        of: dict[int, list[UnitRows]] = {}
        for seed in seeds_of_loop(flat, loop):
            of.setdefault(seed.extent, []).append(seed)
        for extent, seeds in of.items():
            found.setdefault(extent, []).append(Place(loop, tuple(seeds), loop.body))
    return {extent: found[extent] for extent in sorted(found, reverse=True)}
