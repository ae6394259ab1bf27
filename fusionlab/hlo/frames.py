"""The frames of an op's location that are the user's.

JAX takes the innermost frame that is not its own. Of an op that JAX makes in a function of its own (a vmapped `cond`),
that is the frame that traced: this project's, which is no line of the user's. Nor are those of ``fusionlab.optimize``.
"""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).parents[1]
_OWN = (str(_PACKAGE / "hlo" / "lowering.py"), str(_PACKAGE / "optimizing"))


def is_of_user(path: str) -> bool:
    """False for a frame of the modules that trace and lower functions, and call rewritten ones."""
    return not path.startswith(_OWN)
