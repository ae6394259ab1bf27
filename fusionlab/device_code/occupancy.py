"""How many warps of a kernel an SM holds, and in how many waves its blocks run.

The rules are those of NVIDIA's occupancy calculator (CUDA C++ Best Practices Guide, "Calculating Occupancy"): a block
is resident with all its warps; registers are given to a warp in units of 256, shared memory to a block in units of 128
bytes with 1 KiB for the system; the scarcest of warps, blocks, registers and shared memory is the limit. The limits of
a target are ``codegen.targets.Limits``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from fusionlab.codegen.targets import Limits

_REGISTER_UNIT, _SHARED_UNIT, _SHARED_OF_SYSTEM = 256, 128, 1024
_WARP_UNIT = 4
"""The four partitions of an SM have registers of their own: warps are counted in fours."""


@dataclass(frozen=True)
class Occupancy:
    """``blocks_per_sm`` are resident together; ``share`` is the part of an SM's warps that they are, ``limit`` the
    scarce resource (``warps``, ``blocks``, ``registers``, ``shared memory``). ``waves`` are the blocks of the grid over
    those of the whole GPU; ``busy_sms`` is the share of the SMs that have a block in the first wave."""

    blocks_per_sm: int
    share: float
    limit: str
    waves: float
    busy_sms: float

    @property
    def tail(self) -> float:
        """Time over the time without a partly filled last wave; 1 for whole waves, and within the first one."""
        return math.ceil(self.waves) / self.waves if self.waves > 1 else 1.0


def occupancy(limits: Limits, blocks: int, threads: int, registers: int | None, shared_bytes: int) -> Occupancy | None:
    """The occupancy of ``blocks`` blocks of ``threads`` threads; without ``registers``, that of the other limits.

    None where no block fits.
    """
    warps = math.ceil(threads / 32)
    shared = math.ceil((shared_bytes + _SHARED_OF_SYSTEM) / _SHARED_UNIT) * _SHARED_UNIT
    fits = {
        "warps": limits.warps // warps,
        "blocks": limits.blocks,
        "shared memory": limits.shared_bytes // shared,
    }
    if registers:
        of_warp = math.ceil(registers * 32 / _REGISTER_UNIT) * _REGISTER_UNIT
        fits["registers"] = limits.registers // of_warp // _WARP_UNIT * _WARP_UNIT // warps
    limit = min(fits, key=lambda name: fits[name])
    resident = fits[limit]
    if not resident:
        return None
    return Occupancy(
        blocks_per_sm=resident,
        share=resident * warps / limits.warps,
        limit=limit,
        waves=blocks / (resident * limits.sms),
        busy_sms=min(1.0, blocks / limits.sms),
    )
