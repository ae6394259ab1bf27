"""Walkers at the edges of configuration space, where a wrong derivative that is small elsewhere becomes large."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

NEAR_BOHR = 1e-2
"""Distance of two particles near their coalescence."""
FAR_BOHR = 8.0
"""How far an electron is taken from where it was."""

_X = np.array([0.6, -0.48, 0.64])
"""A unit vector in no special direction."""


def edge_walkers(walkers: np.ndarray, nuclei: Sequence[Sequence[float]]) -> tuple[np.ndarray, tuple[str, ...]]:
    """``walkers`` [W, electrons, 3] (bohr), each taken to one edge in turn, and what each of them is.

    ``nuclei`` are positions in bohr; without any the origin stands for one.
    """
    found = np.array(walkers)
    kinds = []
    for number in range(len(found)):
        name, move = EDGES[number % len(EDGES)]
        found[number] = move(np.array(found[number], np.float64), np.asarray(nuclei or [(0.0, 0.0, 0.0)]))
        kinds.append(name)
    return found, tuple(kinds)


def _same_spin_pair(r: np.ndarray, nuclei: np.ndarray) -> np.ndarray:
    if len(r) > 1:
        r[1] = r[0] + NEAR_BOHR * _X
    return r


def _opposite_spin_pair(r: np.ndarray, nuclei: np.ndarray) -> np.ndarray:
    if len(r) > 1:
        r[-1] = r[0] + NEAR_BOHR * _X
    return r


def _near_nucleus(r: np.ndarray, nuclei: np.ndarray) -> np.ndarray:
    r[0] = nuclei[0] + NEAR_BOHR * _X
    return r


def _last_near_last_nucleus(r: np.ndarray, nuclei: np.ndarray) -> np.ndarray:
    r[-1] = nuclei[-1] - NEAR_BOHR * _X
    return r


def _one_far(r: np.ndarray, nuclei: np.ndarray) -> np.ndarray:
    r[-1] = r[-1] + FAR_BOHR * _X
    return r


def _spread_out(r: np.ndarray, nuclei: np.ndarray) -> np.ndarray:
    centre: np.ndarray = nuclei.mean(0)
    return np.asarray(centre + 2.5 * (r - centre))


def _exchanged(r: np.ndarray, nuclei: np.ndarray) -> np.ndarray:
    if len(r) > 1:
        r[[0, 1]] = r[[1, 0]]
    return r


EDGES: tuple[tuple[str, Callable[[np.ndarray, np.ndarray], np.ndarray]], ...] = (
    ("first two electrons near each other", _same_spin_pair),
    ("first and last electron near each other", _opposite_spin_pair),
    ("first electron near the first nucleus", _near_nucleus),
    ("last electron near the last nucleus", _last_near_last_nucleus),
    ("last electron far away", _one_far),
    ("all electrons far apart", _spread_out),
    ("first two electrons exchanged", _exchanged),
)
