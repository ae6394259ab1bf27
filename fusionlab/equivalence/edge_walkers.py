"""Walkers at the edges of configuration space, where a wrong derivative that is small elsewhere becomes large.

Near and far walkers are two samples: the float32 loss at a coalescence would otherwise be the tolerance of the far
walkers, too.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import numpy as np

NEAR_BOHR = (2e-4, 3e-3, 0.01, 0.05)
"""Distances of two particles near their coalescence: a floor of 0.005 bohr under lengths shows at the first two, a cap
of 1/r at 1,000 at the first, also where the dtype's epsilon (1.2e-7 bohr^2) is added to the squared length. A term that
is wrong within a shell between coalescence and usual distances shows at the last two."""
FAR_BOHR = (24.0, 17.0, 50.0, 8.0, 12.0)
"""Distances of a far electron from the centre of the nuclei. At 50 bohr psi may underflow, at 17 a network that
saturates may not have done so yet; 8 and 12 lie between the electrons of a molecule and these."""
ALL_FAR_BOHR = 50.0
"""At this distance log|psi| of a few electrons is below the range of exp in float32 (-88), and no orbital is."""

_X = np.array([0.6, -0.48, 0.64])
"""A unit vector in a generic direction."""

Move = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""``move(r, nuclei)``: the walker ``r`` [electrons, 3] moved to an edge, given ``nuclei`` [nuclei, 3]; in bohr."""
Edges = Sequence[tuple[str, Move]]


def edge_walkers(
    walkers: np.ndarray, nuclei: Sequence[Sequence[float]], edges: Edges, first: int = 0
) -> tuple[np.ndarray, tuple[str, ...]]:
    """``walkers`` [W, electrons, 3] (bohr), each moved to one of ``edges`` in turn from number ``first`` on, and their
    descriptions.

    ``nuclei`` are positions in bohr; without any the origin stands for one.
    """
    found = np.array(walkers)
    positions = np.asarray(nuclei if len(nuclei) else [(0.0, 0.0, 0.0)], np.float64)
    kinds = []
    for number in range(len(found)):
        name, move = edges[(first + number) % len(edges)]
        found[number] = move(np.array(found[number], np.float64), positions)
        kinds.append(name)
    return found, tuple(kinds)


def _pair(r: np.ndarray, nuclei: np.ndarray, *, one: int, other: int, bohr: float) -> np.ndarray:
    if len(r) > 1:
        r[other] = r[one] + bohr * _X
    return r


def _near_nucleus(r: np.ndarray, nuclei: np.ndarray, *, which: int, bohr: float) -> np.ndarray:
    r[which] = nuclei[which] + bohr * _X
    return r


def _far(r: np.ndarray, nuclei: np.ndarray, *, which: int, bohr: float) -> np.ndarray:
    r[which] = nuclei.mean(0) + bohr * _X
    return r


def _all_far(r: np.ndarray, nuclei: np.ndarray, *, bohr: float) -> np.ndarray:
    """Each electron in its own direction from the centre, so that no two of them meet."""
    centre: np.ndarray = nuclei.mean(0)
    lengths = np.linalg.norm(r - centre, axis=-1, keepdims=True)
    return np.asarray(centre + bohr * np.where(lengths > 0, (r - centre) / np.maximum(lengths, 1e-30), _X))


def _exchanged(r: np.ndarray, nuclei: np.ndarray) -> np.ndarray:
    if len(r) > 1:
        r[[0, 1]] = r[[1, 0]]
    return r


def _near(bohr: float) -> Edges:
    pair, to_nucleus = functools.partial(_pair, bohr=bohr), functools.partial(_near_nucleus, bohr=bohr)
    return (
        (f"first two electrons {bohr:g} bohr from each other", functools.partial(pair, one=0, other=1)),
        (f"first and last electron {bohr:g} bohr from each other", functools.partial(pair, one=0, other=-1)),
        (f"last two electrons {bohr:g} bohr from each other", functools.partial(pair, one=-2, other=-1)),
        (f"first electron {bohr:g} bohr from the first nucleus", functools.partial(to_nucleus, which=0)),
        (f"last electron {bohr:g} bohr from the last nucleus", functools.partial(to_nucleus, which=-1)),
    )


def _far_away(bohr: float) -> Edges:
    return (
        (f"last electron {bohr:g} bohr away", functools.partial(_far, which=-1, bohr=bohr)),
        (f"first electron {bohr:g} bohr away", functools.partial(_far, which=0, bohr=bohr)),
    )


_ALL_PAIRS = 2
"""The first distances of ``NEAR_BOHR``, which occur with every pair of particles; the others with three of the five."""
NEAR: Edges = (
    *(edge for bohr in NEAR_BOHR[:_ALL_PAIRS] for edge in _near(bohr)),
    *(_near(bohr)[which] for bohr in NEAR_BOHR[_ALL_PAIRS:] for which in (0, 1, 3)),
)
"""16 kinds, as many as a check has walkers: one sample of walkers."""
FAR: Edges = (
    *_far_away(FAR_BOHR[0]),
    (f"every electron {ALL_FAR_BOHR:g} bohr away", functools.partial(_all_far, bohr=ALL_FAR_BOHR)),
    *(edge for bohr in FAR_BOHR[1:] for edge in _far_away(bohr)),
    ("first two electrons exchanged", _exchanged),
)
