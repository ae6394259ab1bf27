"""Step 2, cuts: the values of a program that may be products H d, slopes g . d, or second derivatives d . H d.

They have as many elements as one of these, and are polynomials of the rows of one seed, op by op (``degrees``).
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.raising.trips import accumulated
from fusionlab.equivalence.exact.field import PrimeField
from fusionlab.equivalence.exact.values import Array
from fusionlab.hlo import ops
from fusionlab.hlo.dependence import live_nodes
from fusionlab.hlo.view import Node, Region, Value, free_values, reads
from fusionlab.passes.fuse_jvp_replay.directions import Place, UnitRows
from fusionlab.passes.fuse_jvp_replay.identify.degrees import TOO_HIGH, degrees


@dataclass(frozen=True, eq=False)
class Cut:
    """``value`` is ``scale`` times a derivative of ``output`` along the rows of ``seed``, in ``place``.

    order 2, axes (i, j)   H d, whose axes i to j count coordinates          order 1    g . d
    order 2, axes None     d . H d

    ``rows`` are the axes, without those of coordinates, that count the rows of the seed. ``orders`` are those that it
    may have by its degree: d . H d is no linear function of d.
    """

    value: Value
    place: Place
    seed: UnitRows
    axes: tuple[int, int] | None
    rows: tuple[int, int]
    orders: tuple[int, ...] = (2,)
    order: int = 2
    output: Value | None = None
    scale: float = 1.0

    @property
    def of(self) -> Value:
        """The output that it is a derivative of, once this is decided."""
        assert self.output is not None
        return self.output

    def placed(self, rows: Any, shape: Sequence[int]) -> Any:
        """``rows`` [T, R, *F, K] (without K for scalars) as arrays [T, *shape] of the value."""
        (i, j), (first, end) = self.rows, self.axes or (0, 0)
        rest, inner = [*shape[:first], *shape[end:]], shape[first:end]
        array = rows.reshape(len(rows), *rest[i:j], *rest[:i], *rest[j:], *inner)
        array = jnp.moveaxis(array, range(1, 1 + j - i), range(1 + i, 1 + j))
        return jnp.moveaxis(array, range(1 + len(rest), array.ndim), range(1 + first, 1 + end))

    def contracted(
        self, field: PrimeField, array: Array, by: Array, output: Sequence[int], some: bool = False
    ) -> Array | None:
        """[draws, R, *output] from the residues of the value: of rows their products with ``by`` [draws, K].

        ``some``: only elements that are not multiplied by 0 count; the others may be undefined.
        """
        (i, j), (first, end) = self.rows, self.axes or (0, 0)
        if self.axes is not None:
            if math.prod(array.shape[first + 1 : end + 1]) != by.shape[-1]:
                return None  # of fewer walkers: the axes are theirs
            array = np.moveaxis(array, range(first + 1, end + 1), range(array.ndim - (end - first), array.ndim))
            array = array.reshape(*array.shape[: array.ndim - (end - first)], -1)
            by = by.reshape(len(by), *(1,) * (array.ndim - 2), -1)
            array = np.where(by == 0, 0, array) if some else array
            array = field.sum(field.multiply(array, by), (array.ndim - 1,))
        array = np.moveaxis(array, range(i + 1, j + 1), range(1, j - i + 1))
        if array.size != len(array) * self.seed.rows * math.prod(output):
            return None
        return array.reshape(len(array), self.seed.rows, *output)


def candidates(
    places: Sequence[Place], outputs: Sequence[Value], count: int, directed: Collection[Value],
    dependent: Collection[Value],
) -> tuple[list[Cut], set[UnitRows]]:  # fmt: skip
    """The values of ``places`` that may be derivatives of ``outputs`` by ``count`` coordinates, and the seeds of which
    a value as large as a product has several.

    ``directed`` are the values of the function that depend on its own seeds, ``dependent`` those that depend on x.
    """
    found, together = list[Cut](), set[UnitRows]()
    sizes = {math.prod(output.type.shape) for output in outputs}
    shapes = {tuple(n for n in output.type.shape if n > 1) for output in outputs}
    for place in places:
        apart = _telling_trips_apart(place, directed)
        if place.loop is None:
            apart |= _squares(place.region, dependent)
        for value, degree, alike in _polynomials(place):
            if degree == TOO_HIGH or value.dtype not in ops.WIDE_FLOATS or value in apart:
                continue
            seed, size = alike[0][0], math.prod(value.type.shape)
            several = [each for seeds in alike for each in seeds]
            if len(several) > 1 and any(size in (seed.rows * n * count, seed.rows * n) for n in sizes):
                together.update(several)
            for axes, rows in _axes_of(value.type.shape, seed.rows, count, shapes) if len(alike) == 1 else ():
                if axes is None:
                    found.append(Cut(value, place, seed, axes, rows, (2, 1) if degree == 2 else (1,)))
                elif degree == 1:
                    found.append(Cut(value, place, seed, axes, rows))
    return found, together


def _polynomials(place: Place) -> Iterator[tuple[Value, int, list[list[UnitRows]]]]:
    """The values of ``place`` that depend on seeds, their degrees, and these seeds, the same directions together."""
    by: dict[Value, list[list[UnitRows]]] = {}
    degree: dict[Value, int] = {}
    for alike in _alike(place.seeds):
        of_seeds = degrees(place.region.nodes, {seed.value: 1 for seed in alike})
        for value, n in of_seeds.items():
            by.setdefault(value, []).append(alike)
            degree[value] = max(n, degree.get(value, 0))
    for node in towards_results(place):
        for value in node.results:
            if value in by:
                yield value, degree[value], by[value]


def _axes_of(
    shape: tuple[int, ...], rows: int, count: int, outputs: Collection[tuple[int, ...]]
) -> Iterator[tuple[tuple[int, int] | None, tuple[int, int]]]:
    """The axes of a value of ``shape`` that may count coordinates, or None, and among the others ``rows``, where those
    that are left are those of one of ``outputs``."""
    for axes in (None, *_intervals(shape, count)):
        first, end = axes or (0, 0)
        rest = (*shape[:first], *shape[end:])
        for i, j in [(0, 0)] if rows == 1 else _intervals(rest, rows):
            if tuple(n for n in (*rest[:i], *rest[j:]) if n > 1) in outputs:
                yield axes, (i, j)


def towards_results(place: Place) -> list[Node]:
    """The nodes of a place that compute what a loop accumulates; all of those of a function."""
    loop, region = place.loop, place.region
    if loop is None:
        return region.nodes
    return live_nodes(region.nodes, [*region.arguments, *free_values(region)], accumulated(loop))


def _alike(seeds: Sequence[UnitRows]) -> list[list[UnitRows]]:
    """Those that are the same directions: an identity that is made twice."""
    found: list[list[UnitRows]] = []
    for seed in seeds:
        own = next((each for each in found if np.array_equal(each[0].places, seed.places)), None)
        if own is None:
            found.append([seed])
        else:
            own.append(seed)
    return found


def _telling_trips_apart(place: Place, directed: Collection[Value]) -> set[Value]:
    """The values of a loop's body that differ between trips by more than their directions, or depend on ``directed``
    values from outside, which are other directions."""
    if place.loop is None:
        return set()
    body, seeds = place.region, {seed.value for seed in place.seeds}
    fixed = place.loop.unchanged
    found = {a for a in body.arguments if a not in fixed or fixed[a] in directed}
    found |= {value for value in free_values(body) if value in directed}
    for node in body.nodes:
        if not found.isdisjoint(reads(node)):
            found.update(value for value in node.results if value not in seeds)
    return found


def _squares(region: Region, dependent: Collection[Value]) -> set[Value]:
    """The squares of one value that depends on x, and moves of these.

    A forward Laplacian, which has no loop, squares the slope of each value that it pushes. (g . d)^2 is d . H d where
    H = g g^T, as of -log(a . x): a sum that is written as such squares, without a loop, is missed.
    """
    found = set[Value]()
    for node in region.nodes:
        if node.op is ops.MULTIPLY:
            is_square = node.operands[0] is node.operands[1] and node.operands[0] in dependent
        else:
            is_square = node.op in (ops.RESHAPE, ops.TRANSPOSE, ops.BROADCAST_IN_DIM) and node.operands[0] in found
        if is_square:
            found.update(node.results)
    return found


def _intervals(shape: tuple[int, ...], count: int) -> list[tuple[int, int]]:
    """The first and end of the axes of ``shape`` that have ``count`` elements together, at neither side one of 1."""
    pairs = ((i, j) for i in range(len(shape)) for j in range(i + 1, len(shape) + 1))
    found = [(i, j) for i, j in pairs if math.prod(shape[i:j]) == count]
    return [(i, j) for i, j in found if j - i == 1 or (shape[i] > 1 and shape[j - 1] > 1)]


def read_by(place: Place, values: Sequence[Value]) -> list[Value]:
    """What ``values`` of a loop's body are computed from outside it, beside directions."""
    loop, body = place.loop, place.region
    assert loop is not None
    invariant, captured = loop.unchanged, free_values(body)
    seeds = [seed.value for seed in place.seeds]
    nodes = live_nodes(body.nodes, [*seeds, *invariant, *captured], values)
    used = {value for node in nodes for value in reads(node)}
    return [*(v for v in captured if v in used), *(outer for inner, outer in invariant.items() if inner in used)]
