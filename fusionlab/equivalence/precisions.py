"""What no run on the CPU can show: contractions at a lower precision, which a GPU computes in TF32 or bfloat16."""

from __future__ import annotations

from jax import lax

from fusionlab.codegen.raising.rules.contraction import laxest_precision
from fusionlab.hlo import ops
from fusionlab.hlo.program import Program
from fusionlab.hlo.view import view_of

_CONTRACTIONS = (ops.DOT_GENERAL, ops.DOT, ops.CONVOLUTION)


def why_less_precise(original: Program, rewritten: Program) -> str | None:
    """Where ``rewritten`` contracts at a lower precision than ``original`` does anywhere, in words; None if nowhere.

    What contracts nothing multiplies at full precision.
    """
    least, where = _least(original)
    found, at = _least(rewritten)
    if found.value >= least.value:
        return None
    theirs = f"at {least.name} or above" if where is not None else "nothing"
    return f"it contracts at precision {found.name} (at {at or 'no scope'}), the original {theirs}"


def _least(program: Program) -> tuple[lax.Precision, str | None]:
    """The lowest precision of the contractions of ``program``, and the scope of the first that has it."""
    contractions = [node for node in view_of(program.parse()).walk() if node.op in _CONTRACTIONS]
    found = [(laxest_precision(node), node.scope) for node in contractions]
    return min(found, key=lambda one: one[0].value, default=(lax.Precision.HIGHEST, None))
