"""Sums and products of jets: the only places where derivatives of two values meet."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax

from fusionlab.codegen.forward_laplacian.jet import Coordinates, Jet, Owner, densify, row_products, same_owner

Scale = Callable[[Any], Any]
"""How one jet's lap and rows enter a linear combination; must broadcast over a leading axis."""


def combine(
    value: Any, jets: Sequence[Jet], scales: Sequence[Scale], coordinates: Coordinates, extra_lap: Any = None
) -> Jet:
    """The jet with ``value`` whose lap and rows are the sum of those of ``jets``, each through its scale."""
    laps = [scale(jet.lap) for jet, scale in zip(jets, scales, strict=True) if jet.lap is not None]
    laps += [] if extra_lap is None else [extra_lap]
    lap = _sum(laps) if laps else None
    owners = _union(jets, coordinates)
    if owners is None:
        rows = _sum([scale(densify(jet, coordinates).rows) for jet, scale in zip(jets, scales, strict=True)])
        return Jet(value, lap, rows, None)
    each = coordinates.each
    if all(len(jet.owners or ()) == len(owners) for jet in jets):
        ordered = all(all(map(same_owner, jet.owners or (), owners)) for jet in jets)
        if ordered:
            return Jet(value, lap, _sum([s(j.rows) for j, s in zip(jets, scales, strict=True)]), owners)
    blocks = []
    for owner in owners:
        parts = []
        for jet, scale in zip(jets, scales, strict=True):
            for i, other in enumerate(jet.owners or ()):
                if same_owner(owner, other):
                    parts.append(scale(jet.rows[i * each : (i + 1) * each]))
        blocks.append(_sum(parts))
    return Jet(value, lap, jnp.concatenate(blocks), owners)


def multiply(value: Any, left: Jet, right: Jet, coordinates: Coordinates) -> Jet:
    """The jet of the elementwise product: lap = u lap v + v lap u + 2 sum_k u_k v_k."""
    cross = row_products(left, right, coordinates)
    extra = None if cross is None else cross + cross
    scales = [lambda part: part * right.value, lambda part: part * left.value]
    return combine(value, [left, right], scales, coordinates, extra)


def divide(value: Any, top: Jet, bottom: Jet, coordinates: Coordinates) -> Jet:
    """The jet of y = u / v: y_k = (u_k - y v_k) / v and lap y = (lap u - y lap v - 2 sum_k y_k v_k) / v."""
    inverse = 1 / bottom.value
    ratio = value * inverse
    scales = [lambda part: part * inverse, lambda part: -(part * ratio)]
    quotient = combine(value, [top, bottom], scales, coordinates)
    cross = row_products(quotient, bottom, coordinates)
    if cross is None:
        return quotient
    extra = -(cross + cross) * inverse
    return Jet(value, extra if quotient.lap is None else quotient.lap + extra, quotient.rows, quotient.owners)


def contract(value_of: Callable[[Any, Any], Any], left: Jet, right: Jet, coordinates: Coordinates) -> Jet:
    """The jet of a contraction of two jets; ``value_of(u, v)`` is bilinear."""
    left, right = densify(left, coordinates), densify(right, coordinates)
    through_right = jax.vmap(lambda part: value_of(left.value, part))(right.stacked)
    front = 1 if right.lap is None else 2
    value, rows = through_right[0], through_right[front:]
    laps = [] if right.lap is None else [through_right[1]]
    through_left = jax.vmap(lambda part: value_of(part, right.value))(left.moving)
    if left.lap is not None:
        laps.append(through_left[0])
        through_left = through_left[1:]
    products = jax.vmap(value_of)(left.rows, right.rows)
    cross = lax.reduce(products, np.zeros((), products.dtype), lax.add, (0,))
    laps.append(cross + cross)
    return Jet(value, _sum(laps), rows + through_left, None)


def _union(jets: Sequence[Jet], coordinates: Coordinates) -> tuple[Owner, ...] | None:
    if any(jet.owners is None for jet in jets):
        return None
    owners: list[Owner] = []
    for jet in jets:
        for owner in jet.owners or ():
            if not any(same_owner(owner, other) for other in owners):
                owners.append(owner)
    return None if len(owners) * coordinates.each >= coordinates.count else tuple(owners)


def _sum(parts: Sequence[Any]) -> Any:
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    return total
