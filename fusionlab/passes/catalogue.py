"""The passes by name: one literal table; a pass is imported when it is first used."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from fusionlab.errors import unknown

if TYPE_CHECKING:
    from fusionlab.passes.interface import Pass

PASSES: dict[str, tuple[str, str]] = {
    "batch-replay": ("fusionlab.passes.batch_replay", "BatchReplay"),
    "contract-before-broadcast": ("fusionlab.passes.contract_before_broadcast", "ContractBeforeBroadcast"),
    "sum-before-contract": ("fusionlab.passes.sum_before_contract", "SumBeforeContract"),
    "contract-in-fusions": ("fusionlab.passes.contract_in_fusions", "ContractInFusions"),
    "contract-in-kernels": ("fusionlab.passes.contract_in_kernels", "ContractInKernels"),
    "collapse-replay": ("fusionlab.passes.collapse_replay", "CollapseReplay"),
    "fold-constant-loops": ("fusionlab.passes.fold_constant_loops", "FoldConstantLoops"),
    "fuse-layers": ("fusionlab.passes.fuse_layers", "FuseLayers"),
    "fuse-jvp-replay": ("fusionlab.passes.fuse_jvp_replay.choose", "FuseJvpReplay"),
    "sparsify-directions": ("fusionlab.passes.sparsify_directions", "SparsifyDirections"),
    "transpose-replay": ("fusionlab.passes.transpose_replay", "TransposeReplay"),
    "scatter-to-gather": ("fusionlab.passes.scatter_to_gather", "ScatterToGather"),
    "merge-layers-in-loops": ("fusionlab.passes.merge_layers_in_loops", "MergeLayersInLoops"),
    "merge-equal-slices": ("fusionlab.passes.merge_equal_slices", "MergeEqualSlices"),
    "hoist-loop-invariants": ("fusionlab.passes.hoist_loop_invariants", "HoistLoopInvariants"),
}

_LAYOUT = "merge-equal-slices,scatter-to-gather,contract-in-fusions,merge-layers-in-loops,hoist-loop-invariants"
PIPELINES: dict[str, str] = {
    "layout": _LAYOUT,
    "kernels": f"{_LAYOUT},contract-in-kernels,fuse-layers{{widest=256}}",
}
"""Presets: names of pipelines. ``layout`` are the passes that pay outside the replay, in the order in which they were
measured (docs/layout.md); ``kernels`` adds those that write Pallas kernels, for CUDA."""

SEARCHED = "best"
"""The objectives that ``apply`` searches pipelines for, instead of a preset (fusionlab.search)."""


def find_pass(name: str) -> type[Pass]:
    """The pass class called ``name``: of the table, of a file (``path.py:Name``), or of an installed package.

    InputError with the nearest names when there is none; errors of user passes are those of ``passes.plugins``.
    """
    if name not in PASSES:
        return _own(name)
    module, attribute = PASSES[name]
    found: type[Pass] = getattr(importlib.import_module(module), attribute)
    return found


def _own(name: str) -> type[Pass]:
    from fusionlab.passes.plugins import from_entry_point, from_file, installed, is_reference

    if is_reference(name):
        return from_file(name)
    points = installed()
    if name in points:
        return from_entry_point(points[name])
    raise unknown("pass", name, [*PASSES, *PIPELINES, *points])
