"""fusionlab: a compiler-level fusion study tool for neural-network variational Monte Carlo programs in JAX."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _TYPE_CHECKING:
    from fusionlab.errors import CompileError, InputError, NotEquivalentError, NotOptimizedWarning
    from fusionlab.facts.of_functions import diff, explain, kernels, launches, memory
    from fusionlab.hlo.program import Program
    from fusionlab.optimizing.laplacian import laplacian
    from fusionlab.optimizing.optimize import optimize
    from fusionlab.passes.interface import Applied, Declined, Pass, Result, Setting
    from fusionlab.passes.pipeline import parse_pipeline, run_pipeline

__version__ = "0.1.0"
__all__ = [
    "Applied",
    "CompileError",
    "Declined",
    "InputError",
    "NotEquivalentError",
    "NotOptimizedWarning",
    "Pass",
    "Program",
    "Result",
    "Setting",
    "__version__",
    "diff",
    "explain",
    "kernels",
    "laplacian",
    "launches",
    "memory",
    "optimize",
    "parse_pipeline",
    "run_pipeline",
]

_HOMES = {
    "Applied": "fusionlab.passes.interface",
    "CompileError": "fusionlab.errors",
    "Declined": "fusionlab.passes.interface",
    "InputError": "fusionlab.errors",
    "NotEquivalentError": "fusionlab.errors",
    "NotOptimizedWarning": "fusionlab.errors",
    "Pass": "fusionlab.passes.interface",
    "Program": "fusionlab.hlo.program",
    "Result": "fusionlab.passes.interface",
    "Setting": "fusionlab.passes.interface",
    "diff": "fusionlab.facts.of_functions",
    "explain": "fusionlab.facts.of_functions",
    "kernels": "fusionlab.facts.of_functions",
    "laplacian": "fusionlab.optimizing.laplacian",
    "launches": "fusionlab.facts.of_functions",
    "memory": "fusionlab.facts.of_functions",
    "optimize": "fusionlab.optimizing.optimize",
    "parse_pipeline": "fusionlab.passes.pipeline",
    "run_pipeline": "fusionlab.passes.pipeline",
}
"""Public names are imported lazily: ``import fusionlab`` and ``fusionlab --help`` import no JAX."""


def __getattr__(name: str) -> _Any:
    import importlib

    if name not in _HOMES:
        raise AttributeError(f"module 'fusionlab' has no attribute {name!r}")
    if (home := _HOMES[name]) != "fusionlab.errors":
        from fusionlab.jax_setup import load_jax

        load_jax()  # its plugins are noisy where no GPU is attached, and so are modules of Pallas
    return getattr(importlib.import_module(home), name)


def __dir__() -> list[str]:
    return sorted(__all__)
