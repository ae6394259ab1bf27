"""The modelled time of a launch: XLA's own estimate where it made one, else a model of the target.

XLA's estimate is ``reification_cost.exec_time_us`` of a fusion (its GpuPerformanceModel; times are in microseconds and
leave out the launch). A Triton fusion has two, and that of the model XLA decided by (``indexing-cost-model``) counts:
the other assumes that every element of a softmax recomputes its row, 113 seconds for a kernel of 439 us (Orbformer's
local energy on the A100). Library calls have none: they get the larger of FLOPs over peak and bytes over bandwidth,
products in float32 below HIGHEST over the peak of TF32, which XLA lets the library use. Where the code of kernels is
read, their time is that of ``device_code.kernel_time``, and that of products that of their tiles (``time.products``).

XLA's estimates and rooflines are increased by the launch itself, for which XLA assumes 1 us
(``kKernelLaunchOverhead`` of ``xla/service/gpu/model/gpu_performance_model_base.h``). A real launch costs several;
launches in a CUDA graph less.

XLA's estimates assume the peaks of the spec. With measured ceilings every launch therefore gets their roofline, and is
labelled ``measured``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from fusionlab.codegen.compile import Compiled
from fusionlab.codegen.targets import Target
from fusionlab.hlo.cost import Cost
from fusionlab.hlo.ops import family_of_target
from fusionlab.hlo.optimised.device import estimates
from fusionlab.hlo.optimised.kernel_cost import Work
from fusionlab.hlo.optimised.parser import Instruction
from fusionlab.hlo.optimised.products import MatrixProduct
from fusionlab.ledger.time.constants import KERNELS, PAIR_ERROR, PRODUCTS, PROGRAM_ERROR
from fusionlab.ledger.time.products import product_us
from fusionlab.time_order import ESTIMATED_PAIR_ERROR

LAUNCH_US = 1.0
_TRITON_MODEL = "indexing-cost-model"
_LU = ("getrf", "lu_pivots_to_permutation")
XLA, ROOFLINE, MEASURED, PRODUCT, CODE = "xla", "roofline", "measured", "product", "code"
AT_LEAST = "at-least"
"""The models: XLA's estimate, the roofline of the spec or of measured ceilings, tiles of a library's product, and what
the code of a kernel does (``device_code.kernel_time``). A roofline is ``AT_LEAST`` of a library's factorisation but
LU and its permutation (the tested programs have both), and of a call without a rule for its FLOPs: their steps wait for
each other."""


@dataclass(frozen=True)
class Ceilings:
    """The roofs and their origin: ``spec of a100``, or measured. ``tf32_flops_per_s`` is that of products that may use
    TF32, None if it is no other."""

    flops_per_s: float
    bytes_per_s: float
    source: str
    measured: bool = False
    tf32_flops_per_s: float | None = None

    @property
    def ridge_flop_per_byte(self) -> float:
        """The intensity at which the roofs meet."""
        return self.flops_per_s / self.bytes_per_s

    def compute_us(self, flops: float, tf32_flops: float = 0) -> float:
        """Microseconds of ``flops``, of which ``tf32_flops`` may use TF32, at the peaks."""
        in_tf32 = self.tf32_flops_per_s or self.flops_per_s
        return 1e6 * ((flops - tf32_flops) / self.flops_per_s + tf32_flops / in_tf32)

    def memory_us(self, moved_bytes: float) -> float:
        """Microseconds of moving that many bytes."""
        return 1e6 * moved_bytes / self.bytes_per_s

    def least_us(self, flops: float, moved_bytes: float, tf32_flops: float = 0) -> float:
        """The lower bound in microseconds that the roofs allow for that work, without any launch.

        It is no bound of three products of TF32 (TF32_TF32_F32_X3), whose FLOPs count in float32 (``hlo.cost.Cost``):
        at a third of the peak of TF32 they may take less.
        """
        return max(self.compute_us(flops, tf32_flops), self.memory_us(moved_bytes))


@dataclass(frozen=True)
class TimeModel:
    """The choice of model: ``ceilings`` (None for a target without a spec); ``trust_xla`` if XLA's estimates count;
    ``tiles_on`` is the target if products of a library are modelled by tiles."""

    ceilings: Ceilings | None
    trust_xla: bool
    tiles_on: Target | None = None

    def time(
        self, instruction: Instruction, work: Work, moved_bytes: int, product: MatrixProduct | None = None
    ) -> tuple[float | None, str]:
        """Microseconds of one run of ``instruction`` with its launch, and their source (``xla``, ``product``,
        ``roofline``, ``at-least`` or ``measured``); (None, "") without an estimate of XLA's or ceilings."""
        us = _estimate_us(instruction) if self.trust_xla else None
        if us is not None:
            return us + LAUNCH_US, XLA
        if product is not None and self.tiles_on is not None and self.ceilings is not None:
            in_tf32 = self.ceilings.tf32_flops_per_s != self.ceilings.flops_per_s
            if (us := product_us(self.tiles_on, product, moved_bytes, tf32=in_tf32)) is not None:
                return us, PRODUCT
        if self.ceilings is None:
            return None, ""
        source = MEASURED if self.ceilings.measured else AT_LEAST if _is_lower_bound(instruction, work) else ROOFLINE
        return self.ceilings.least_us(work.flops, moved_bytes, work.tf32_flops) + LAUNCH_US, source


def _is_lower_bound(instruction: Instruction, work: Work) -> bool:
    """True for a library's call whose time may have little to do with its bytes and FLOPs."""
    target = instruction.custom_call_target
    if not target:
        return False
    of_lu = any(name in target for name in _LU)
    return bool(work.unmodelled) or (family_of_target(target) == "factorisation" and not of_lu)


def _estimate_us(instruction: Instruction) -> float | None:
    found = estimates(instruction)
    decided = [one for one in found if one.model == _TRITON_MODEL]
    return next((one.us for one in (*decided, *found)), None)


def ceilings_of(target: Target, tf32: bool | None = None) -> Ceilings | None:
    """The ceilings of the target's spec; None when it has no spec.

    ``tf32``: whether products that may use TF32 do. By default they do, but on an attached GPU in a process with
    ``NVIDIA_TF32_OVERRIDE=0``: an absent target does not depend on the environment, which importing DeepQMC changes.
    """
    if (peaks := target.peaks) is None:
        return None
    source = f"spec of {target.name}"
    if tf32 is None:
        tf32 = not (target.attached and os.environ.get("NVIDIA_TF32_OVERRIDE") == "0")
    in_tf32 = peaks.tf32_flops_per_s if tf32 else peaks.fp32_flops_per_s
    return Ceilings(peaks.fp32_flops_per_s, peaks.memory_bytes_per_s, source, tf32_flops_per_s=in_tf32)


def time_model(compiled: Compiled, measured: Ceilings | None = None, *, tiles: bool = False) -> TimeModel:
    """XLA's estimates if they are for this target, else its spec, of products by ``tiles`` where that is asked for; or
    ``measured`` ceilings for everything."""
    if measured is not None:
        return TimeModel(measured, trust_xla=False)
    on = compiled.target if tiles else None
    return TimeModel(ceilings_of(compiled.target), compiled.estimates_are_of_target, on)


class ModelledLaunch(Protocol):
    """A launch site with the time of all its runs, the source of this time, and its family."""

    @property
    def model_us(self) -> float | None: ...
    @property
    def dynamic_launches(self) -> int: ...
    @property
    def model_source(self) -> str: ...
    @property
    def family(self) -> str: ...


_TESTED_ROOFLINES = ("factorisation", "triangular-solve")
"""The families whose rooflines are part of the tested programs (``studies/time-model.json``): LU and its solves."""


def _is_tested(launch: ModelledLaunch) -> bool:
    """True for a time whose error is known: of code, of tiles, and of the roofline of LU and of triangular solves."""
    if launch.model_source == ROOFLINE:
        return launch.family in _TESTED_ROOFLINES
    return launch.model_source in (CODE, PRODUCT)


def is_mostly_launching(launches: Iterable[ModelledLaunch]) -> bool:
    """True if launching, whose constants were not tested, is more than half of the modelled time."""
    constants, launching, us = {PRODUCT: PRODUCTS.launch_us, CODE: KERNELS.launch_us}, 0.0, 0.0
    for one in launches:
        launching += one.dynamic_launches * constants.get(one.model_source, LAUNCH_US)
        us += one.model_us or 0.0
    return 2 * launching > us


def _are_tested(launches: Sequence[ModelledLaunch]) -> bool:
    return all(map(_is_tested, launches)) and not is_mostly_launching(launches)


def error_of(launches: Iterable[ModelledLaunch]) -> float | None:
    """The tested error of the sum of the times of ``launches``, as a share; None where it was not tested.

    As of an estimate of XLA's, of a lower bound, and where launching is more than half of the sum.
    """
    return PROGRAM_ERROR if _are_tested([*launches]) else None


def pair_error_of(launches: Iterable[ModelledLaunch]) -> float:
    """The least difference, as a share, by which the times of two variants with such ``launches`` tell the faster."""
    return PAIR_ERROR if _are_tested([*launches]) else ESTIMATED_PAIR_ERROR


def error_words(error: float | None) -> str:
    """`` ± 14%``; "" where the error is not known."""
    return "" if error is None else f" ± {error:.0%}"


def roofline_us(target: Target, cost: Cost, bytes_accessed: int, launches: int) -> float | None:
    """A whole program with the FLOPs of ``cost`` on the roof of the target's spec, in microseconds (model); None
    without a spec.

    The longer of arithmetic at peak and traffic at memory bandwidth, and ``LAUNCH_US`` per launch.
    """
    if (ceilings := ceilings_of(target)) is None:
        return None
    return ceilings.least_us(cost.flops, bytes_accessed, cost.tf32_flops) + launches * LAUNCH_US


def time_by_rows(target: Target) -> Callable[[Cost], float | None]:
    """Microseconds of directions counted by rows, on the roof of the target's spec: no launch, nothing fused. This
    model has no tested error. None without a spec."""
    ceilings = ceilings_of(target)
    return lambda cost: None if ceilings is None else ceilings.least_us(cost.flops, cost.bytes, cost.tf32_flops)
