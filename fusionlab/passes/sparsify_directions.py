"""sparsify-directions: collapse a replay, carrying only the directions that a value can depend on.

rewrite:
    for k in range(3 N):                                 (F, lap F, dF) = f pushed forward from (x, 0, eye), where
        lap += jvp_g(eye[k])[k]                   -->        h_i = h(x_i)          carries 3 directions, not 3 N
                                                             p_ij = p(x_i, x_j)    carries 6
                                                             [a, b] . W            is a . W_a + b . W_b

e_k is a row of the identity, and the electron that an element of a value depends on is tracked through the program's
own slices, broadcasts and gathers, whatever the ansatz. Values become dense at the first op that mixes electrons. A
contraction of a concatenation is split where its parts carry different directions, or where one is a broadcast (a mean
over electrons), which is then contracted once and not once per electron.

requires: what collapse-replay requires.
exact: reassociates (another algorithm for the same derivatives; terms that are zero are left out).
hopes: the FLOPs and bytes of directions that are zero; GEMMs of repeated rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from fusionlab.codegen.laplacian.state import Options
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.passes.fuse_jvp_replay.rewrite import Findings, rewrite_replays
from fusionlab.passes.interface import Pass, Result, Setting


@dataclass(frozen=True)
class SparsifyDirections(Pass):
    """Option: ``chunks``, parts of the walkers that are processed one after another."""

    chunks: int = 1

    name: ClassVar[str] = "sparsify-directions"

    def __post_init__(self) -> None:
        if self.chunks < 1:
            raise InputError(f"{self.name}: chunks must be at least 1, not {self.chunks}")

    def run(self, program: Program, setting: Setting) -> Result:
        """Collapse every replay of the program's entry sparsely; see the module's docstring."""
        return self.rewrite(program, setting, Findings())

    def rewrite(self, program: Program, setting: Setting, findings: Findings) -> Result:
        """``run`` with the analysis of the program's sums cached in ``findings``."""
        return rewrite_replays(program, self, Options(sparse=True), self.chunks, setting, findings)
