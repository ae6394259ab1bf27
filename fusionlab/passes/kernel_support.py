"""Where kernels of our own can stand."""

from __future__ import annotations

from jaxlib.mlir import ir

from fusionlab.hlo.contents import is_sharded
from fusionlab.hlo.program import Program
from fusionlab.passes.contract import Declined, Setting, platform_for


def no_kernels(pass_name: str, program: Program, module: ir.Module, setting: Setting) -> Declined | None:
    """Why ``program``, parsed as ``module``, can have no kernels for Triton; None if it can."""
    platform = platform_for(program, setting)
    reason = None if platform == "cuda" else f"the program is for {platform}, and the kernels are for CUDA"
    if reason is None and is_sharded(module):
        reason = "the program is sharded: a kernel would need all of its operands on every device"
    return None if reason is None else Declined(pass_name, "unsupported", reason, "")
