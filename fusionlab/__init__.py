"""fusionlab: a compiler-level fusion study tool for neural-network variational Monte Carlo programs in JAX."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from fusionlab import quiet_start as _quiet_start  # sets what must be set before JAX starts; imports no JAX

if _TYPE_CHECKING:
    from fusionlab.errors import InputError, NotEquivalentError, NotOptimizedWarning
    from fusionlab.optimizing.optimize import optimize

__version__ = "0.1.0"
__all__ = ["InputError", "NotEquivalentError", "NotOptimizedWarning", "__version__", "optimize"]

_HOMES = {
    "InputError": "fusionlab.errors",
    "NotEquivalentError": "fusionlab.errors",
    "NotOptimizedWarning": "fusionlab.errors",
    "optimize": "fusionlab.optimizing.optimize",
}
"""Public names are imported when they are asked for: ``import fusionlab`` and ``fusionlab --help`` import no JAX."""

del _quiet_start


def __getattr__(name: str) -> _Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'fusionlab' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
