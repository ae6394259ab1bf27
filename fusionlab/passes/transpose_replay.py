"""transpose-replay: weight second-order sources by the adjoint instead of running the reverse chain per direction.

rewrite:
    for k in range(3 N):                                 a_k  = f pushed forward from (x, eye): directions only
        lap += jvp_g(eye[k])[k]                   -->    q_v  = sum_k H_v[a_k, a_k] at every non-linear value v
                                                         lap  = sum_v <dF/dv, q_v>, by one reverse pass of F

The cotangents of the replay's reverse chain are the tangents of its forward chain, because the Hessian is symmetric:
<e_k, B A e_k> = <B^T e_k, A e_k>. So the reverse chain of every direction is dead, and one adjoint serves all of them.
``collapse-replay`` is the same sum, transposed once more: the sources are pushed forward.

requires: what collapse-replay requires; walkers on an axis of their own in every non-linear value.
exact: reassociates (another algorithm for the same derivatives).
hopes: one reverse pass instead of 3N; no Laplacian has to be carried, but the adjoint needs every layer's source.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fusionlab.codegen.laplacian.state import Options
from fusionlab.hlo.program import Program
from fusionlab.passes.fuse_jvp_replay.rewrite import rewrite_replays
from fusionlab.passes.interface import Pass, Result, Setting


@dataclass(frozen=True)
class TransposeReplay(Pass):
    """No options."""

    name: ClassVar[str] = "transpose-replay"

    def run(self, program: Program, setting: Setting) -> Result:
        """Transpose every replay of the program's entry; see the module's docstring."""
        return rewrite_replays(program, self, Options(sparse=False, adjoint=True), 1, setting)
