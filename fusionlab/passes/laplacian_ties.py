"""Where two values of a program are exactly equal: which derivative it has there, and positions to see it at.

    maximum(x, 0)      slope at 0:  1/2 (jnp.maximum)      0 (jax.nn.relu)

The value does not say which; the program's derivative does. JAX's rule of a maximum asks which operands are equal to
it, that of ``relu`` whether x > 0. Whatever derivative is taken for the program's, it is compared with the program's at
positions where electrons are at the origin, at one place, in a plane or on lines of symmetry, and parameters vanish:
few random points have no such ties, and symmetric molecules, starts of sampling and networks set to zero do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping

import numpy as np

from fusionlab.codegen.laplacian.chains import EXTREMES
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.element_types import FLOATS
from fusionlab.hlo.view import Node, Value, direction_of


def tie_slopes(nodes: Iterable[Node], extremes: Iterable[Node], numbers: Mapping[Value, int]) -> dict[Value, int]:
    """Which operand's slope each elementwise maximum or minimum of ``extremes`` has where both are equal.

    ``nodes`` are all nodes of the program, with those of their regions. What is left out has half of each.
    """
    equal: set[Hashable] = set()
    exceeds: set[Hashable] = set()

    def name(value: Value) -> Hashable:
        number = number_of(value, FLOATS)
        return ("value", numbers.get(value)) if number is None else number

    for node in nodes:
        if node.name != "stablehlo.compare" or node.operands[0].type.dtype not in FLOATS:
            continue
        first, second = map(name, node.operands)
        direction = direction_of(node)
        if direction == "EQ":
            equal.add(frozenset((first, second)))
        elif direction in ("GT", "LT"):
            exceeds.add((first, second) if direction == "GT" else (second, first))
    found: dict[Value, int] = {}
    for node in extremes:
        if node.name not in EXTREMES or any(frozenset(map(name, (v, node.results[0]))) in equal for v in node.operands):
            continue
        left, right = ([name(v), *map(name, _within(v))] for v in node.operands)
        if node.name == "stablehlo.minimum":
            left, right = right, left
        above = any((a, b) in exceeds for a in left for b in right)
        below = any((b, a) in exceeds for a in left for b in right)
        if above != below:
            found[node.results[0]] = int(above)
    return found


def _within(value: Value) -> tuple[Value, ...]:
    """What ``value`` is the larger or smaller one of, as of x and 0 in min(max(x, 0), 6)."""
    node = value.producer
    return node.operands if node is not None and node.name in EXTREMES else ()


DIFFERS_WHERE_TIED = (
    "differs from the derivative of its value where two values are exactly equal "
    "(electrons at one place or at the origin, coordinates or parameters of 0)"
)
Change = Callable[[int, np.ndarray], np.ndarray]
"""What makes arguments tied: their number (0: the positions) and [draws, ...] residues of them."""


def ties_of(electrons: int, each: int) -> tuple[int, Change]:
    """The number of draws, and what makes them tied; with three walkers each they have all ties of positions.

    Positions are of walkers one after another in memory, ``electrons`` times ``each`` coordinates of each.
    """
    patterns = _patterns(electrons)

    def change(number: int, array: np.ndarray) -> np.ndarray:
        if array.dtype.kind not in "fc":
            return array
        array = array.copy()
        if number == 0:
            for at, walker in enumerate(array.reshape(-1, electrons, each)):
                patterns[at % len(patterns)](walker)
        else:
            vanishing = (False, array.ndim <= 2, number % 2 == 0, number % 2 == 1)
            for draw in range(len(array)):
                if vanishing[draw % len(vanishing)]:
                    array[draw] = 0
        return array

    return _DRAWS, change


_DRAWS = 4
"""Draws of parameters: as they come, without biases, and with one or the other half of them vanishing."""


def _patterns(electrons: int) -> list[Callable[[np.ndarray], None]]:
    """What make positions [electrons, each] of one walker tied, in place."""
    last = electrons - 1

    def at_origin(x: np.ndarray) -> None:
        x[0] = 0

    def coalescent(x: np.ndarray) -> None:
        x[last] = x[0]

    def mirrored(x: np.ndarray) -> None:
        x[last] = -x[0]

    def in_a_plane(x: np.ndarray) -> None:
        x[:, -1] = 0

    def on_an_axis(x: np.ndarray) -> None:
        x[:, 1:] = 0

    def on_a_diagonal(x: np.ndarray) -> None:
        x[:] = x[:, :1]

    def on_a_lattice(x: np.ndarray) -> None:
        x[:] = np.round(x) % 8 - 4

    def at_corners(x: np.ndarray) -> None:
        x[:] = np.where(x < 0, -1, 1)

    def exchanged(x: np.ndarray) -> None:
        x[last] = x[0, ::-1]

    def all_at_origin(x: np.ndarray) -> None:
        x[:] = 0

    def all_at_one_place(x: np.ndarray) -> None:
        x[:] = x[0]

    def two_at_origin(x: np.ndarray) -> None:
        x[[0, last]] = 0

    return [
        at_origin,
        coalescent,
        all_at_origin,
        in_a_plane,
        on_an_axis,
        mirrored,
        exchanged,
        all_at_one_place,
        on_a_lattice,
        at_corners,
        on_a_diagonal,
        two_at_origin,
    ]
