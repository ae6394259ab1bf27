"""Where two values of a program are exactly equal: which derivative it has there, and positions to see it at.

    maximum(x, 0)      slope at 0:  1/2 (jnp.maximum)      0 (jax.nn.relu)

The value does not say which; the program's derivative does. JAX's rule of a maximum asks which operands are equal to
it, that of ``relu`` whether x > 0. Whatever derivative is taken for the program's, it is compared with the program's at
positions where electrons are at the origin, at one place, in a plane or on lines of symmetry, and parameters vanish:
few random points have no such ties, and symmetric molecules, starts of sampling and networks set to zero do.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from fusionlab.codegen.forward_laplacian.extremes import NAMES
from fusionlab.hlo.constants import FLOATS, number_of
from fusionlab.hlo.enumerations import direction_of
from fusionlab.hlo.flat import Node, Value

Arrays = Sequence[np.ndarray]
_TOLERANCE = 1e-6
_JITTERS = (1, 2)
"""Seeds of the changes by rounding that tell what is ill-conditioned from what is wrong."""


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
        if node.name not in NAMES or any(frozenset(map(name, (v, node.results[0]))) in equal for v in node.operands):
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
    return node.operands if node is not None and node.name in NAMES else ()


Pairs = Sequence[tuple[np.ndarray, np.ndarray]]
"""Arrays that the program returns, each beside the array that is to replace it."""


DIFFERS = (
    "differs from the derivative of its value where two values are exactly equal "
    "(electrons at one place or at the origin, coordinates or parameters of 0)"
)


def paired(target: np.ndarray, laplacian: np.ndarray, gradients: Arrays, rows: np.ndarray) -> Pairs:
    """The program's Laplacian [*walkers] beside ours, then each of its gradients beside ``rows`` [K, *walkers].

    Gradients count where the Laplacian is finite.
    """
    ours = np.moveaxis(rows, 0, -1)
    finite = np.isfinite(target)[..., None]
    return [(target, laplacian), *((np.where(finite, one.reshape(ours.shape), np.nan), ours) for one in gradients)]


def differing_where_tied(
    evaluate: Callable[[Arrays], Pairs], draw: Callable[[], Arrays], particles: tuple[int, int], plain: Sequence[Pairs]
) -> set[int]:
    """The indices of those pairs returned by ``evaluate`` that differ at positions and parameters with ties.

    ``draw`` returns inputs: positions of walkers, ``particles`` (electrons, coordinates of each), then parameters.
    ``plain`` are pairs at other points, for their size. Only what is finite in the program counts, and stays the same
    when parameters change by roundings: at coalescence many programs are singular.
    """
    typical = [np.nanmedian([np.nanmedian(np.abs(pairs[i][0])) for pairs in plain]) for i in range(len(plain[0]))]
    found: set[int] = set()
    for arrays in tied_draws(draw, *particles):
        seen = [evaluate(arrays)]
        suspects = {i for i in range(len(typical)) if i not in found and _differs([seen[0][i]], typical[i])}
        if suspects:
            seen += [evaluate(_jittered(arrays, seed)) for seed in _JITTERS]
            found |= {i for i in suspects if _differs([pairs[i] for pairs in seen], typical[i])}
    return found


def _differs(pairs: Pairs, typical: float) -> bool:
    """Whether some element differs in all of ``pairs`` where the program's are finite and the same."""
    with np.errstate(all="ignore"):
        first = pairs[0][0]
        allowed = _TOLERANCE * np.maximum(np.abs(first), typical)
        known = np.isfinite(first)
        for theirs, ours in pairs:
            known &= (np.abs(theirs - first) <= allowed) & ~(np.abs(ours - theirs) <= allowed)
    return bool(known.any())


def tied_draws(draw: Callable[[], Arrays], electrons: int, each: int) -> Iterator[Arrays]:
    """Inputs with ties: the first array of ``draw`` is the positions, the others are parameters and integers.

    Positions are of walkers one after another in memory, ``electrons`` times ``each`` coordinates of each.
    """
    patterns = _patterns(electrons)
    for of_parameters in (_as_drawn, _without_biases, _rounded, _half(0), _half(1)):
        at = 0
        while at < len(patterns):
            x, *parameters = draw()
            walkers = x.reshape(-1, electrons, each)
            for walker in walkers:
                patterns[at % len(patterns)](walker)
                at += 1
            changed = [
                of_parameters(array, k) if np.issubdtype(array.dtype, np.inexact) else array
                for k, array in enumerate(parameters)
            ]
            yield [walkers.reshape(x.shape), *changed]


def _jittered(arrays: Arrays, seed: int) -> Arrays:
    """Parameters changed by a rounding or so; positions as they are, so that they are tied as before."""
    random = np.random.default_rng(seed)
    x, *parameters = arrays
    return [x, *(_changed(array, random) for array in parameters)]


def _changed(array: np.ndarray, random: np.random.Generator) -> np.ndarray:
    if not np.issubdtype(array.dtype, np.inexact):
        return array
    return np.asarray(array * (1 + 1e-13 * random.standard_normal(array.shape))).astype(array.dtype)


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
        x[:] = np.round(x)

    def at_corners(x: np.ndarray) -> None:
        x[:] = np.sign(x)

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
        mirrored,
        in_a_plane,
        on_an_axis,
        on_a_diagonal,
        on_a_lattice,
        at_corners,
        exchanged,
        all_at_origin,
        all_at_one_place,
        two_at_origin,
    ]


def _as_drawn(array: np.ndarray, number: int) -> np.ndarray:
    return array


def _without_biases(array: np.ndarray, number: int) -> np.ndarray:
    return np.zeros_like(array) if array.ndim <= 1 else array


def _rounded(array: np.ndarray, number: int) -> np.ndarray:
    """Halves of integers, sums of which are exact."""
    return np.asarray(np.round(2 * array) / 2).astype(array.dtype)


def _half(which: int) -> Callable[[np.ndarray, int], np.ndarray]:
    return lambda array, number: np.zeros_like(array) if number % 2 == which else array
