"""The constants of the models of time, fitted to kernels that were measured on an H100.

The table is ``studies/time-model.json`` (``benchmarks/time_model.py``), the fit ``benchmarks/time_model_fit.py``, which
prints these values; ``docs/time-model.md`` has their errors, each program left out of its own fit. Rates are those of a
target's spec: the constants are shares of them, and are taken to be the same on other GPUs, where nothing was measured.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class KernelConstants:
    """Of kernels whose code is known (``device_code.kernel_time``).

    Microseconds of a launch, the power of the norm that joins the terms, and the factor of each term: bytes of memory,
    sectors of the L2 beyond these, requests to memory over the occupancy, instructions issued.
    """

    launch_us: float
    power: float
    memory: float
    l2: float
    requests: float
    issue: float


@dataclass(frozen=True)
class ProductConstants:
    """Of a library's matrix products (``time.products``).

    Microseconds of a launch, the factor of bytes of memory, the shares of the peaks in FP32, in TF32, and in TF32 of
    unaligned operands, and the least microseconds of a tile on an SM.
    """

    launch_us: float
    memory: float
    simt: float
    tf32: float
    unaligned: float
    tile_us: float


KERNELS = KernelConstants(launch_us=2.5, power=1.3, memory=1.04, l2=1.26, requests=2.18, issue=0.745)
PRODUCTS = ProductConstants(launch_us=3.0, memory=1.1, simt=0.782, tf32=0.997, unaligned=0.233, tile_us=0.369)
PROGRAM_ERROR = 0.14
"""The error of a whole program by the code of its kernels: the largest of those that were left out of their own fit."""
PAIR_ERROR = 0.03
"""Two variants of one program whose times by the code of kernels differ by less, as a share of the smaller, have no
order: all 19 pairs of the table that differ by more are in the right one."""
ESTIMATED_FAMILIES: Mapping[str, tuple[float, float]] = {
    "elementwise": (0.81, 2.08),
    "factorisation": (5.8, 7.28),
    "gather-scatter": (0.51, 1.47),
    "gemm": (1.55, 1.9),
    "layout": (0.14, 0.43),
    "reduction": (0.51, 2.17),
}
"""Measured over modelled time by XLA's estimates and rooflines, of all launches of a family in a program: the least and
the most of the programs of the table."""
