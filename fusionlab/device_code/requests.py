"""Memory requests: how the threads of a warp that access memory together use it.

A warp's access of global memory is one request; it moves sectors of 32 bytes, and neighbouring threads that access
neighbouring addresses share them (CUDA C++ Best Practices Guide, "Coalesced Access to Global Memory"). Shared memory
has 32 banks of 4 bytes; different words of one bank are served one after another (CUDA C++ Programming Guide, "Shared
Memory"). Accesses of 8 and 16 bytes per thread are served for half and for a quarter of a warp at a time.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from fusionlab.device_code.arithmetic import Bits, Known

WARP = 32
SECTOR_BYTES = 32
BANKS = 32
_NONE = np.iinfo(np.int64).max


@dataclass(frozen=True)
class Requests:
    """Counts over the requests of warps.

    ``lanes`` are the threads that took part; ``sectors`` what was moved, ``least_sectors`` what the distinct bytes take
    if they lie side by side. ``distinct_bytes``: threads of a warp with one address count once. ``wavefronts`` are the
    turns of shared memory, ``least_wavefronts`` those without bank conflicts. ``unknown`` requests have addresses that
    depend on data, and count nowhere else but in ``requests`` and ``lanes``.
    """

    requests: int = 0
    lanes: int = 0
    unknown: int = 0
    distinct_bytes: int = 0
    sectors: int = 0
    least_sectors: int = 0
    wavefronts: int = 0
    least_wavefronts: int = 0

    def __add__(self, other: Requests) -> Requests:
        return Requests(*(getattr(self, one.name) + getattr(other, one.name) for one in fields(self)))

    @property
    def sectors_over_least(self) -> float:
        """How many times the sectors that the bytes need; 1 is coalesced."""
        return self.sectors / self.least_sectors if self.least_sectors else 1.0

    @property
    def conflict_ways(self) -> float:
        """Turns of shared memory for each that is needed; 1 is free of bank conflicts."""
        return self.wavefronts / self.least_wavefronts if self.least_wavefronts else 1.0


def of_global(addresses: Bits, known: Known, active: Known, width: int) -> Requests:
    """The requests of warps (threads in rows of 32) to global memory, ``width`` bytes per thread."""
    rows, counted = _rows(addresses, active & known), _counts(active, known)
    sectors = _distinct(np.where(rows == _NONE, _NONE, rows // SECTOR_BYTES))
    distinct = _distinct(rows)
    per_lane = max(1, width // SECTOR_BYTES)
    return counted + Requests(
        distinct_bytes=int(distinct.sum()) * width,
        sectors=int(sectors.sum()) * per_lane,
        least_sectors=int((-(-distinct * width // SECTOR_BYTES)).sum()),
    )


def of_shared(addresses: Bits, known: Known, active: Known, width: int) -> Requests:
    """The requests of warps to shared memory, ``width`` bytes per thread."""
    words = max(1, min(width, 16) // 4)
    rows = np.where(active & known, addresses // 4, _NONE).reshape(-1, WARP // words)
    each = rows[:, :, None] + np.where(rows == _NONE, 0, 1)[:, :, None] * np.arange(words)
    ordered = np.sort(each.reshape(len(rows), -1), axis=1)
    new = np.ones(ordered.shape, np.bool_)
    new[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    row, column = np.nonzero(new & (ordered != _NONE))
    bank = ordered[row, column] % BANKS
    turns = np.bincount(row * BANKS + bank, minlength=len(rows) * BANKS).reshape(-1, BANKS).max(axis=1)
    return _counts(active, known) + Requests(
        distinct_bytes=len(row) * 4, wavefronts=int(turns.sum()), least_wavefronts=int((turns > 0).sum())
    )


def stride_of(addresses: Bits, known: Known, active: Known) -> int | None:
    """The most frequent distance of the addresses of neighbouring threads, bytes; None where there is none."""
    usable = (active & known).reshape(-1, WARP)
    steps = np.diff(addresses.reshape(-1, WARP), axis=1)[usable[:, 1:] & usable[:, :-1]]
    if not len(steps):
        return None
    values, counts = np.unique(steps, return_counts=True)
    return int(values[np.argmax(counts)])


def _counts(active: Known, known: Known) -> Requests:
    warps = active.reshape(-1, WARP)
    unknown = (warps & ~known.reshape(-1, WARP)).any(axis=1)
    return Requests(requests=int(warps.any(axis=1).sum()), lanes=int(active.sum()), unknown=int(unknown.sum()))


def _rows(addresses: Bits, usable: Known) -> Bits:
    return np.where(usable, addresses, _NONE).reshape(-1, WARP)


def _distinct(rows: Bits) -> NDArray[np.int64]:
    """Distinct values of each row, without the sentinel."""
    ordered = np.sort(rows, axis=1)
    new = (ordered[:, 1:] != ordered[:, :-1]).sum(axis=1) + 1
    found: NDArray[np.int64] = new - (ordered[:, -1] == _NONE)
    return found
