"""fusionlab: a compiler-level fusion study tool for neural-network variational Monte Carlo programs in JAX.

The names below are the public interface; each is imported when it is first used, so that ``import fusionlab`` costs
nothing.
"""

from importlib import import_module as _import_module
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from fusionlab import quiet_start as _quiet_start  # sets what must be set before JAX starts; imports no JAX

if _TYPE_CHECKING:
    from fusionlab.errors import CompileError, InputError
    from fusionlab.hlo.program import Program
    from fusionlab.passes.contract import Applied, Declined, Pass, Result, Setting
    from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

__version__ = "0.1.0"

_EXPORTS = {
    "Applied": "fusionlab.passes.contract",
    "CompileError": "fusionlab.errors",
    "Declined": "fusionlab.passes.contract",
    "InputError": "fusionlab.errors",
    "Pass": "fusionlab.passes.contract",
    "Program": "fusionlab.hlo.program",
    "Result": "fusionlab.passes.contract",
    "Setting": "fusionlab.passes.contract",
    "parse_pipeline": "fusionlab.passes.pipeline",
    "run_pipeline": "fusionlab.passes.pipeline",
}
"""Public name to the module that has it."""

__all__ = [
    "Applied",
    "CompileError",
    "Declined",
    "InputError",
    "Pass",
    "Program",
    "Result",
    "Setting",
    "__version__",
    "parse_pipeline",
    "run_pipeline",
]

del _quiet_start


def __getattr__(name: str) -> _Any:
    if name not in _EXPORTS:
        raise AttributeError(f"module 'fusionlab' has no attribute {name!r}")
    return getattr(_import_module(_EXPORTS[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_EXPORTS})
