"""collapse-replay: replace a replay by the forward Laplacian of the value that it differentiates.

rewrite:
    F = f(x);  g, jvp_g = linearize(grad(f), x)          (F, lap F, dF) = f pushed forward from (x, 0, eye),
    for k in range(3 N):                          -->        layer by layer: lap' = J lap + sum_k H[a_k, a_k]
        lap += jvp_g(eye[k])[k]                          lap = lap F;  g = dF

The value F and the positions x are found by five steps (``fuse_jvp_replay``). Other uses of the gradient read the
forward derivatives, so that the reverse pass is dead, and so is every residual of the replay. All 3N directions are
carried everywhere; ``sparsify-directions`` carries those that are not known to be zero.

requires: a replay of 3N trips whose sum over directions is, at every point tried, a constant times the Laplacian of one
    value that the program computes before the loop; ops that raise to JAX.
exact: reassociates (another algorithm for the same derivatives).
hopes: one widened forward pass instead of 3N forward and reverse passes; memory of a few layers of directions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fusionlab.codegen.laplacian.state import Options
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.passes.fuse_jvp_replay.rewrite import rewrite_replays
from fusionlab.passes.interface import Pass, Result, Setting


@dataclass(frozen=True)
class CollapseReplay(Pass):
    """Option: ``chunks``, parts of the walkers that are processed one after another."""

    chunks: int = 1

    name: ClassVar[str] = "collapse-replay"
    options: ClassVar[Options] = Options(sparse=False)

    def __post_init__(self) -> None:
        if self.chunks < 1:
            raise InputError(f"{self.name}: chunks must be at least 1, not {self.chunks}")

    def run(self, program: Program, setting: Setting) -> Result:
        """Collapse every replay of the program's entry; see the module's docstring."""
        return rewrite_replays(program, self, self.options, self.chunks, setting)
