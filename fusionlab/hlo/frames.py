"""The frames of an op's location that are the user's.

JAX takes the innermost frame that is not its own. Of an op that JAX makes in a function of its own (a vmapped `cond`),
that is the frame that traced: this project's, which is no line of the user's.
"""

from __future__ import annotations

from pathlib import Path

_TRACING = str(Path(__file__).with_name("lowering.py"))


def is_of_user(path: str) -> bool:
    """False for a frame of the module that traces and lowers functions."""
    return path != _TRACING
