"""How long fuse-jvp-replay itself takes: process seconds, so that a busy machine matters less; nothing is compiled.

The pass finds what the replay differentiates, then rewrites the program sparsely and densely.
"""

from __future__ import annotations

import time

from rows import Row

from fusionlab.hlo.program import Program
from fusionlab.passes.collapse_replay import CollapseReplay
from fusionlab.passes.interface import Setting
from fusionlab.passes.pipeline import run_pass
from fusionlab.passes.sparsify_directions import SparsifyDirections


def pass_seconds(program: Program) -> Row:
    """Process seconds of the search and the sparse rewrite, then of the search and the dense rewrite."""
    seconds: Row = {"ops_before": program.ops}
    setting = Setting(platform=program.platform)
    for name, one in (("sparse", SparsifyDirections()), ("dense", CollapseReplay())):
        started = time.process_time()
        applied = run_pass(one, program, setting).applied
        seconds[f"{name}_process_s"] = round(time.process_time() - started, 2)
        seconds[f"{name}_applied"] = len(applied)
    seconds["pass_process_s"] = round(seconds["sparse_process_s"] + seconds["dense_process_s"], 2)
    return seconds
