"""Derivatives of F along directions, by its forward Laplacian, beside the values of a program that may be the same.

``products._compare``, in the folder above, decides whether they are.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from fusionlab.codegen.laplacian.interpreter import forward_laplacian
from fusionlab.codegen.laplacian.jet import Coordinates, densify
from fusionlab.codegen.laplacian.state import Options, State
from fusionlab.equivalence.exact.field import PrimeField
from fusionlab.equivalence.exact.values import Array
from fusionlab.hlo.view import Node, Value
from fusionlab.passes.fuse_jvp_replay.identify.cuts import Cut
from fusionlab.passes.fuse_jvp_replay.identify.evaluating import Evaluation


def state_of(
    trial: Evaluation, of: Coordinates, stopped: tuple[Value, ...], options: Options, seeds: Any = None,
    known: Mapping[Value, Any] = MappingProxyType({}),
) -> State:  # fmt: skip
    """The state of a forward Laplacian by coordinates ``of`` of the positions, or along ``seeds`` [D, K], beside what
    computes ``known`` values."""
    given = trial.x, of, trial.walkers, trial.raising, trial.one, options, stopped, trial.subgradients
    return State(*given, seeds, known)


def laplacians(
    trial: Evaluation, of: Coordinates, given: Mapping[Value, Any], outputs: Sequence[Value], cone: Sequence[Node],
    stopped: tuple[Value, ...], options: Options,
) -> list[Any]:  # fmt: skip
    """[*F], the Laplacians by coordinates ``of`` of ``outputs``, which ``cone`` computes."""
    jets = forward_laplacian(state_of(trial, of, stopped, options), cone, given, outputs)
    return [jnp.zeros(jet.shape) if jet.laplacian is None else jet.laplacian for jet in jets]


def along(
    trial: Evaluation, given: Mapping[Value, Any], outputs: Sequence[Value], cone: Sequence[Node],
    stopped: tuple[Value, ...], options: Options, direction: Any, known: Mapping[Value, Any] = MappingProxyType({}),
) -> tuple[list[Any], list[Any], list[Any]]:  # fmt: skip
    """(values, d . H d, g . d) of ``outputs``, which ``cone`` computes, along ``direction`` [K], beside what computes
    ``known`` values."""
    of = Coordinates(1, 1)
    state = state_of(trial, of, stopped, options, direction[None], known)
    jets = [densify(jet, of) for jet in forward_laplacian(state, cone, given, outputs)]
    laps = [jnp.zeros(jet.shape) if jet.laplacian is None else jet.laplacian for jet in jets]
    return [jet.value for jet in jets], laps, [jet.jacobian[0] for jet in jets]


def along_each(
    trial: Evaluation, given: Mapping[Value, Any], outputs: Sequence[Value], cone: Sequence[Node],
    stopped: tuple[Value, ...], options: Options, directions: Array,
) -> list[Any]:  # fmt: skip
    """[D, *F], the second derivatives of each output along ``directions`` [D, K]."""
    each = jax.vmap(lambda direction: along(trial, given, outputs, cone, stopped, options, direction)[1])
    every: list[Any] = each(directions)
    return every


@dataclass(frozen=True)
class Derivatives:
    """Arrays [draws, *F] of each output: ``values``, d . H d (and e . H e, and along d + e), and g . d (and g . e); the
    possible ``gradients``, the ``cuts``, and the ``directions`` d, e, u, v."""

    values: list[Array]
    seconds: list[Array]
    slopes: list[Array]
    gradients: list[Array]
    cuts: Mapping[Value, Array]
    directions: list[Array]

    def both(
        self, field: PrimeField, cut: Cut, f: int, order: int, some: bool = False
    ) -> tuple[Array | None, Array | None]:
        """[draws, R, *F] of a cut and of the derivative of output ``f`` that it may be; ``some``: as there."""
        d, e, u, v = self.directions
        count, rows = len(self.values), cut.seed.rows
        shape = self.values[f].shape[1:]
        ours = cut.contracted(field, self.cuts[cut.value], d if rows == 1 else e, shape, some)
        if ours is None:
            return None, None
        if order == 1:
            expected = self.slopes[f][:, None]
            if rows > 1:
                expected = field.add(
                    _scaled(field, u, rows, self.slopes[f]), _scaled(field, v, rows, self.slopes[count + f])
                )
            return ours, expected
        if rows == 1:
            return ours, self.seconds[f][:, None]
        q, r, both = (self.seconds[i * count + f] for i in range(3))
        mixed = field.multiply(field.subtract(field.subtract(both, q), r), field.embedded(np.asarray(0.5)))
        right = field.add(_scaled(field, u, rows, mixed), _scaled(field, v, rows, r))
        if cut.axes is not None:
            return ours, right
        left = field.add(_scaled(field, u, rows, q), _scaled(field, v, rows, mixed))
        return ours, field.add(_times(field, u, left), _times(field, v, right))

    def is_gradient(self, field: PrimeField, i: int, f: int, where_known: bool = False) -> bool:
        """True if possible gradient ``i`` is that of output ``f``, ``where_known`` where it has no NaN."""
        shape, d = self.values[f].shape[1:], self.directions[0]
        array = self.gradients[i]
        if array.size != math.prod(shape) * len(array) * d.shape[-1]:
            return False
        array = array.reshape(len(array), *shape, -1)
        along = field.sum(field.multiply(array, d.reshape(len(d), *(1,) * len(shape), -1)), (array.ndim - 1,))
        differ = along != self.slopes[f]
        return not (differ & ~(np.isnan(along) | np.isnan(self.values[f]))).any() if where_known else not differ.any()


def _scaled(field: PrimeField, rows: Array, count: int, array: Array) -> Array:
    """[draws, R, ...]: ``array`` [draws, ...] times the numbers of the rows [draws, most]."""
    numbers = rows[:, :count]
    return field.multiply(numbers.reshape(*numbers.shape, *(1,) * (array.ndim - 1)), array[:, None])


def _times(field: PrimeField, rows: Array, array: Array) -> Array:
    numbers = rows[:, : array.shape[1]]
    return field.multiply(numbers.reshape(*numbers.shape, *(1,) * (array.ndim - 2)), array)
