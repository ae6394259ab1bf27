"""How long fuse-jvp-replay itself takes: process seconds without any compile, so that a busy machine does not matter.

The pass finds what the replay differentiates, then rewrites the program sparsely and densely. The search compiles a
trial program for the CPU; XLA's part of that is counted apart, tracing, lowering and running it is not.
"""

from __future__ import annotations

import time

import jax
from rows import Row

from fusionlab.hlo.program import Program
from fusionlab.passes.collapse_replay import CollapseReplay
from fusionlab.passes.contract import Setting
from fusionlab.passes.sparsify_directions import SparsifyDirections

_LOWERED = "/jax/core/compile/jaxpr_to_mlir_module_duration"
_COMPILED = "/jax/core/compile/backend_compile_duration"


class CompileClock:
    """Seconds of XLA's compiles by ``jax.jit`` while inside: of the wall, and of this process.

    JAX reports when a program has been lowered and when it has been compiled, one right after the other.
    """

    def __enter__(self) -> CompileClock:
        self.wall_s = self.process_s = 0.0
        self._started = time.process_time()
        jax.monitoring.register_event_duration_secs_listener(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        jax.monitoring.unregister_event_duration_listener(self._listen)

    def _listen(self, event: str, duration: float, **_: str | int | float) -> None:
        if event == _COMPILED:
            self.wall_s += duration
            self.process_s += time.process_time() - self._started
        if event in (_LOWERED, _COMPILED):
            self._started = time.process_time()


def pass_seconds(program: Program) -> Row:
    """Process seconds of the search and the sparse rewrite, then of the dense rewrite, which is told what was found."""
    seconds: Row = {"ops_before": program.ops}
    setting = Setting(platform=program.platform)
    for name, one in (("sparse", SparsifyDirections()), ("dense", CollapseReplay())):
        started = time.process_time()
        with CompileClock() as clock:
            applied = one.run(program, setting).applied
        seconds[f"{name}_process_s"] = round(time.process_time() - started - clock.process_s, 2)
        if name == "sparse":
            seconds["trial_compile_process_s"] = round(clock.process_s, 2)
        seconds[f"{name}_applied"] = len(applied)
    seconds["pass_process_s"] = round(seconds["sparse_process_s"] + seconds["dense_process_s"], 2)
    return seconds
