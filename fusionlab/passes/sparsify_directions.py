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
from fusionlab.passes.collapse_replay import CollapseReplay


@dataclass(frozen=True)
class SparsifyDirections(CollapseReplay):
    """As collapse-replay, sparsely; see the module's docstring."""

    name: ClassVar[str] = "sparsify-directions"
    options: ClassVar[Options] = Options(sparse=True)
