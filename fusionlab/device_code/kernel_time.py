"""A model of the time of a kernel, from counts of its executed code.

    t = launch + (m^p + l^p + r^p + i^p)^(1/p)

m are the bytes of its operands and results over the bandwidth of the memory; l the sectors that warps load beyond them
over that of the L2; r the memory requests of warps, one per SM and clock, over the occupancy; i the warp instructions
over what the schedulers issue; each with a fitted factor (``ledger.time.constants``). The executed PTX of sampled warps
gives all but m (``warps``).
"""

from __future__ import annotations

from dataclasses import dataclass

from fusionlab.codegen.targets import Target
from fusionlab.device_code.requests import SECTOR_BYTES, WARP
from fusionlab.ledger.time.constants import KERNELS, KernelConstants

_LEAST_OCCUPANCY = 0.05


@dataclass(frozen=True)
class KernelDemand:
    """What one run of a kernel asks of the units: bytes of operands and results, each once; bytes of the sectors that
    warps load beyond the operands, a sector once for each warp; requests of warps; their instructions; and the share of
    its warps that an SM holds."""

    moved_bytes: int
    surplus_bytes: int
    requests: int
    issued: float
    occupancy: float

    @staticmethod
    def of(
        needed_bytes: int, result_bytes: int, warp_sectors: int, requests: int, executed: int, occupancy: float | None
    ) -> KernelDemand:
        """The demand of a kernel: ``executed`` are instructions of threads."""
        surplus = max(0, warp_sectors * SECTOR_BYTES - needed_bytes)
        held = 1.0 if occupancy is None else occupancy
        return KernelDemand(needed_bytes + result_bytes, surplus, requests, executed / WARP, held)


@dataclass(frozen=True)
class Terms:
    """Microseconds of each unit at its full rate."""

    memory: float
    l2: float
    requests: float
    issue: float


def terms_of(target: Target, demand: KernelDemand) -> Terms | None:
    """The terms of ``demand`` on ``target``; None without its rates."""
    peaks, rates = target.peaks, target.unit_rates
    if peaks is None or rates is None:
        return None
    return Terms(
        memory=1e6 * demand.moved_bytes / peaks.memory_bytes_per_s,
        l2=1e6 * demand.surplus_bytes / rates.l2_bytes_per_s,
        requests=1e6 * demand.requests / rates.requests_per_s / max(_LEAST_OCCUPANCY, demand.occupancy),
        issue=1e6 * demand.issued / rates.issued_per_s,
    )


def kernel_us(terms: Terms, constants: KernelConstants = KERNELS) -> float:
    """Microseconds of one run with its launch."""
    weighed = (
        constants.memory * terms.memory,
        constants.l2 * terms.l2,
        constants.requests * terms.requests,
        constants.issue * terms.issue,
    )
    together: float = sum(each**constants.power for each in weighed) ** (1 / constants.power)
    return constants.launch_us + together


def streaming_us(target: Target, moved_bytes: int, constants: KernelConstants = KERNELS) -> float | None:
    """Microseconds of a kernel that only moves those bytes, with its launch; None without rates of the target."""
    if (terms := terms_of(target, KernelDemand(moved_bytes, 0, 0, 0.0, 1.0))) is None:
        return None
    return kernel_us(terms, constants)
