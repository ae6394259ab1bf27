"""What no run on the CPU can show: contractions at a lower precision, which a GPU computes in TF32 or bfloat16."""

from __future__ import annotations

import re

from fusionlab.hlo.flat import Node, flatten
from fusionlab.hlo.program import Program

_PRECISIONS = ("DEFAULT", "HIGH", "HIGHEST")
_CONTRACTIONS = ("stablehlo.dot_general", "stablehlo.dot", "stablehlo.convolution")


def why_less_precise(original: Program, rewritten: Program) -> str | None:
    """Where ``rewritten`` contracts at a lower precision than ``original`` does anywhere, in words; None if nowhere.

    What contracts nothing multiplies at full precision.
    """
    least, where = _least(original)
    found, at = _least(rewritten)
    if found >= least:
        return None
    theirs = f"at {_PRECISIONS[least]} or above" if where is not None else "nothing"
    return f"it contracts at precision {_PRECISIONS[found]} (at {at or 'no scope'}), the original {theirs}"


def _least(program: Program) -> tuple[int, str | None]:
    """The lowest precision of the contractions of ``program``, and the scope of the first that has it."""
    best = len(_PRECISIONS) - 1, None
    found = [(_precision(node), node.scope) for node in flatten(program.parse()).walk() if node.name in _CONTRACTIONS]
    return min(found, key=lambda one: one[0], default=best)


def _precision(node: Node) -> int:
    """The lower of the two operands' precisions; the library's own choice counts as DEFAULT."""
    words = re.findall(r"\b(DEFAULT|HIGHEST|HIGH)\b", str(node.attributes.get("precision_config", "DEFAULT")))
    return min((_PRECISIONS.index(word) for word in words), default=0)
