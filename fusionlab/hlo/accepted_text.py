"""Which bytes may be handed to MLIR's text parser: it ends the process on what is nested too deeply."""

from __future__ import annotations

import re

import numpy as np

MOST_NESTED = 256
"""Brackets within brackets. What JAX lowers nests about twenty deep."""

# Possessive, so that a constant of 50 MB in one string costs no memory of alternatives to go back to.
_UNREAD = re.compile(rb'"(?:[^"\\\n]++|\\.)*+"|//[^\n]*+')
_STEPS = np.zeros(256, np.int8)
_STEPS[list(b"([{<")] = 1
_STEPS[list(b")]}>")] = -1
_PART = 1 << 20


def why_text_refused(content: bytes) -> str | None:
    """What is wrong with ``content`` as MLIR text, in words; None where the parser may see it. Linear in its size."""
    if (at := content.find(b"\0")) >= 0:
        return f"there is a NUL byte in line {content.count(bytes([10]), 0, at) + 1}: neither text nor MLIR bytecode"
    bare = _UNREAD.sub(b" ", content).replace(b"->", b"")
    depth = 0
    for start in range(0, len(bare), _PART):
        steps = np.cumsum(_STEPS[np.frombuffer(bare[start : start + _PART], np.uint8)], dtype=np.int64)
        depths = depth + steps
        depths -= np.minimum.accumulate(np.minimum(depths, 0))  # closing what was never opened opens nothing
        if int(depths.max()) > MOST_NESTED:
            return f"brackets nest deeper than {MOST_NESTED}"
        depth = int(depths[-1])
    return None
