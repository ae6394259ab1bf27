"""How long a launch takes, by model: XLA's own estimate where it made one, else the roofline of the target.

XLA's estimate is ``reification_cost.exec_time_us`` of a fusion (its GpuPerformanceModel; times are in microseconds and
leave out the launch). Library calls have none: they get the larger of FLOPs over peak and bytes over bandwidth. To
both comes the launch itself, for which XLA assumes 1 us (``kKernelLaunchOverhead`` of
``xla/service/gpu/model/gpu_performance_model_base.h``). A real launch costs several; launches in a CUDA graph less.
"""

from __future__ import annotations

from dataclasses import dataclass

from fusionlab.codegen.targets.target import Peaks
from fusionlab.hlo.optimized import Instruction

LAUNCH_US = 1.0
XLA, ROOFLINE = "xla", "roofline"


@dataclass(frozen=True)
class ModelTime:
    """Microseconds of one run with its launch; ``source`` is ``xla`` or ``roofline``."""

    us: float
    source: str


def model_time(instruction: Instruction, flops: int, moved_bytes: int, peaks: Peaks | None) -> ModelTime | None:
    """The time of one run of ``instruction``; None when neither XLA nor a spec of the target says anything."""
    estimates = instruction.backend_config.get("reification_cost") or []
    if estimates and "exec_time_us" in estimates[0]:
        return ModelTime(sum(float(one["exec_time_us"]) for one in estimates[:1]) + LAUNCH_US, XLA)
    if peaks is None:
        return None
    return ModelTime(roofline_us(flops, moved_bytes, peaks) + LAUNCH_US, ROOFLINE)


def roofline_us(flops: float, moved_bytes: float, peaks: Peaks) -> float:
    """The least microseconds that the target's peaks allow for that work, without any launch."""
    return 1e6 * max(flops / peaks.fp32_flops_per_s, moved_bytes / peaks.memory_bytes_per_s)
