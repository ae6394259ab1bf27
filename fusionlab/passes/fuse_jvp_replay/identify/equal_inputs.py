"""Ties, inputs with equal values: the subgradients of a program there, and draws of such inputs.

    maximum(x, 0)      slope at 0:  1/2 (jnp.maximum)      0 (jax.nn.relu)

The value does not say which; the program's derivative does. JAX's rule of a maximum compares its operands with it for
equality, that of ``relu`` compares x > 0. Whatever subgradient is taken for the program's, it is compared with the
program's where electrons are at the origin, at one place, in a plane or on lines of symmetry, and parameters vanish:
few random points have equal values, and symmetric molecules, starts of sampling and networks set to zero do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import numpy as np

from fusionlab.codegen.laplacian.chains import EXTREMES
from fusionlab.hlo import ops
from fusionlab.hlo.constants import number_of
from fusionlab.hlo.ops import FLOATS
from fusionlab.hlo.view import Node, Value, direction_of

DIFFERS = (
    "differs from the derivative of its value where two values are exactly equal (electrons at one place or at the "
    "origin, coordinates or parameters of 0)"
)
"""What is wrong with a sum that is another function there."""
_STATES = 4
"""States of the parameters: as they come, without biases, and with one or the other half of them vanishing."""


def subgradients(nodes: Iterable[Node], extremes: Iterable[Node], numbers: Mapping[Value, int]) -> dict[Value, int]:
    """The operand (0 or 1) whose slope each elementwise maximum or minimum of ``extremes`` has where both are equal.

    ``nodes`` are all nodes of the program, with those of their regions. What is left out has half of each.
    """
    equal: set[Hashable] = set()
    exceeds: set[Hashable] = set()

    def name(value: Value) -> Hashable:
        number = number_of(value, FLOATS)
        return ("value", numbers.get(value)) if number is None else number

    for node in nodes:
        if node.op is not ops.COMPARE or node.operands[0].type.dtype not in FLOATS:
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
        left, right = ([name(v), *map(name, _operands_of_extreme(v))] for v in node.operands)
        if node.op is ops.MINIMUM:
            left, right = right, left
        above = any((a, b) in exceeds for a in left for b in right)
        if above != any((b, a) in exceeds for a in left for b in right):
            found[node.results[0]] = int(above)
    return found


def _operands_of_extreme(value: Value) -> tuple[Value, ...]:
    """The values that ``value`` is the larger or smaller one of, as of x and 0 in min(max(x, 0), 6)."""
    node = value.producer
    return node.operands if node is not None and node.name in EXTREMES else ()


def coincident(number: int, array: np.ndarray, electrons: int, each: int, walkers_alike: bool) -> np.ndarray:
    """Residues [draws, ...] of the argument ``number`` (0: the positions) with equal values among them.

    Positions are of walkers one after another in memory, ``electrons`` times ``each`` coordinates of each. All draws
    but the last three have the parameters as they come. In these each pattern of ties occurs in some walker, or in
    every one unless ``walkers_alike``.
    """
    if array.dtype.kind not in "fc":
        return array
    array = array.copy()
    if number == 0:
        by_draw = array.reshape(len(array), -1, electrons, each)
        for draw, walkers in enumerate(by_draw):
            first = draw * len(walkers) if walkers_alike else draw
            for at, walker in enumerate(walkers, first):
                walker[...] = _PATTERNS[at % len(_PATTERNS)](walker)
    else:
        vanishing = (array.ndim <= 2, number % 2 == 0, number % 2 == 1)
        array[[*[False] * (len(array) - len(vanishing)), *vanishing]] = 0
    return array


def draws(walkers: int, walkers_alike: bool) -> range:
    """The draws in which so many ``walkers`` have all patterns with the parameters as they come, and some in each other
    state; in which each of them has, unless they are alike."""
    return range(-(-len(_PATTERNS) // (walkers if walkers_alike else 1)) + _STATES - 1)


def _with(x: np.ndarray, at: Any, elements: Any) -> np.ndarray:
    x = x.copy()
    x[at] = elements
    return x


_PATTERNS: tuple[Callable[[np.ndarray], np.ndarray], ...] = (
    lambda x: _with(x, 0, 0),  # an electron at the origin
    lambda x: _with(x, -1, x[0]),  # two at one place
    np.zeros_like,  # all at the origin
    lambda x: _with(x, np.s_[:, -1], 0),  # in a plane
    lambda x: _with(x, np.s_[:, 1:], 0),  # on an axis
    lambda x: _with(x, -1, -x[0]),  # mirrored
    lambda x: _with(x, -1, x[0, ::-1]),  # with coordinates exchanged
    lambda x: np.broadcast_to(x[0], x.shape),  # all at one place
    lambda x: np.round(x) % 8 - 4,  # on a lattice
    lambda x: np.where(x < 0, -1, 1),  # at the corners of a cube
    lambda x: np.broadcast_to(x[:, :1], x.shape),  # on a diagonal
    lambda x: _with(x, [0, -1], 0),  # two at the origin
    lambda x: _with(x, -1, 0),  # the last at the origin, as padding
    lambda x: _with(x, np.s_[-(len(x) // 2) :], 0),  # so is half of them
    lambda x: _with(x, np.s_[1:], 0),  # all but the first
)
"""Positions [electrons, each] of one walker with equal values among them."""
