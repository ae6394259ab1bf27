"""The passes by name: one literal table; a pass is imported when it is first used."""

from __future__ import annotations

import importlib
import re
from typing import TYPE_CHECKING

from fusionlab.errors import unknown

if TYPE_CHECKING:
    from fusionlab.passes.interface import Pass

PASSES: dict[str, tuple[str, str]] = {
    "batch-replay": ("fusionlab.passes.batch_replay", "BatchReplay"),
    "sink-broadcast-through-dot": ("fusionlab.passes.sink_broadcast_through_dot", "SinkBroadcastThroughDot"),
    "hoist-reduce-through-dot": ("fusionlab.passes.hoist_reduce_through_dot", "HoistReduceThroughDot"),
    "expand-small-dots": ("fusionlab.passes.expand_small_dots", "ExpandSmallDots"),
    "batched-dot-kernels": ("fusionlab.passes.batched_dot_kernels", "BatchedDotKernels"),
    "dot-chain-kernels": ("fusionlab.passes.dot_chain_kernels", "DotChainKernels"),
    "jet-layer-kernels": ("fusionlab.passes.jet_layer_kernels", "JetLayerKernels"),
    "collapse-replay": ("fusionlab.passes.collapse_replay", "CollapseReplay"),
    "fold-constant-loops": ("fusionlab.passes.fold_constant_loops", "FoldConstantLoops"),
    "dot-epilogue-kernels": ("fusionlab.passes.dot_epilogue_kernels", "DotEpilogueKernels"),
    "fuse-jvp-replay": ("fusionlab.passes.fuse_jvp_replay.choose", "FuseJvpReplay"),
    "sparsify-directions": ("fusionlab.passes.sparsify_directions", "SparsifyDirections"),
    "transpose-replay": ("fusionlab.passes.transpose_replay", "TransposeReplay"),
    "scatter-to-gather": ("fusionlab.passes.scatter_to_gather", "ScatterToGather"),
    "merge-dots": ("fusionlab.passes.merge_dots", "MergeDots"),
    "pack-isomorphic-slices": ("fusionlab.passes.pack_isomorphic_slices", "PackIsomorphicSlices"),
    "swap-dot-operands": ("fusionlab.passes.swap_dot_operands", "SwapDotOperands"),
    "split-fusions": ("fusionlab.passes.split_fusions", "SplitFusions"),
    "unroll-loops": ("fusionlab.passes.unroll_loops", "UnrollLoops"),
    "licm": ("fusionlab.passes.licm", "LoopInvariantCodeMotion"),
}

ALIASES: dict[str, str] = {
    "hoist-loop-invariants": "licm",
    "merge-equal-slices": "pack-isomorphic-slices",
    "merge-layers-in-loops": "merge-dots",
    "contract-before-broadcast": "sink-broadcast-through-dot",
    "sum-before-contract": "hoist-reduce-through-dot",
    "contract-in-fusions": "expand-small-dots",
    "contract-in-kernels": "batched-dot-kernels",
    "fuse-layers": "dot-epilogue-kernels",
}
"""Former names of passes, in pipelines and records, for one release; output has the present ones."""

FORWARD_LAPLACIANS = ("collapse-replay", "fuse-jvp-replay", "sparsify-directions", "transpose-replay")
"""The passes that take a sum for the Laplacian of a value that they look for."""

_LAYOUT = "pack-isomorphic-slices,scatter-to-gather,expand-small-dots,merge-dots,licm"
PIPELINES: dict[str, str] = {
    "layout": _LAYOUT,
    "kernels": f"{_LAYOUT},dot-chain-kernels,batched-dot-kernels,dot-epilogue-kernels{{widest=256}}",
}
"""Presets: names of pipelines. ``layout`` are the passes that pay outside the replay, in the order in which they were
measured (docs/layout-passes.md); ``kernels`` adds those that write Pallas kernels, for CUDA."""

SEARCHED = "best"
"""The objectives that ``apply`` searches pipelines for, instead of a preset (fusionlab.search)."""


def present_names(pipeline: str) -> str:
    """The text of ``pipeline``, as a record has it, with aliases replaced."""
    return re.sub(r"(?<![\w./-])[\w-]+(?=[{,]|$)", lambda found: ALIASES.get(found[0], found[0]), pipeline)


def is_own(pass_: Pass) -> bool:
    """True if ``pass_`` is of the table."""
    return PASSES.get(pass_.name) == (type(pass_).__module__, type(pass_).__name__)


def find_pass(name: str) -> type[Pass]:
    """The pass class called ``name``: of the table, an alias, of a file (``path.py:Name``) or of an installed package.

    InputError with the nearest names when there is none; errors of user passes are those of ``passes.plugins``.
    """
    name = ALIASES.get(name, name)
    if name in PASSES:
        module, attribute = PASSES[name]
        found: type[Pass] = getattr(importlib.import_module(module), attribute)
        return found
    from fusionlab.passes.plugins import from_entry_point, from_file, installed, is_reference

    if is_reference(name):
        return from_file(name)
    points = installed()
    if name in points:
        return from_entry_point(points[name])
    raise unknown("pass", name, [*PASSES, *PIPELINES, *points])
