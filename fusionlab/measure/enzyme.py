"""Enzyme-JAX's optimiser of StableHLO modules as a peer, where its package (``enzyme-ad``) is installed.

Its own Python door (``optimize_module``) wants MLIR objects of the bindings that it was built with; its text door does
not, and runs the same passes (``full_optimization_pass_pipeline``).
"""

from __future__ import annotations

import dataclasses
import tempfile
from pathlib import Path

from fusionlab.errors import InputError
from fusionlab.hlo.program import Program

_LAST = "tensor-empty-raise,drop-unsupported-attributes"
"""What Enzyme-JAX itself runs last: without them its own attributes stay in the module."""


def optimised(program: Program) -> Program:
    """``program`` after all of Enzyme-JAX's optimisation passes.

    InputError: the package is not installed, a pass fails, or the result has operations that XLA does not know.
    """
    try:
        from enzyme_ad.jax import primitives
    except ImportError as error:
        raise InputError(f"not available: the package enzyme-ad cannot be imported ({error})") from None
    pipeline = f"{primitives.full_optimization_pass_pipeline()},{_LAST}"
    try:
        entry, text = primitives.enzyme_call.run_pass_pipeline([], program.text, pipeline)
    except Exception as error:  # whatever a foreign compiler throws, the peer has failed and not the run
        raise InputError(f"Enzyme-JAX's passes failed: {' '.join(str(error).split())[:300]}") from None
    return _read(text, entry, program)


def _read(text: str, entry: str, original: Program) -> Program:
    """The module that the passes printed; they leave its entry private."""
    with tempfile.TemporaryDirectory(prefix="fusionlab-enzyme-") as folder:
        path = Path(folder) / "enzyme.mlir"
        path.write_text(text.replace(f"func.func private @{entry}(", f"func.func public @{entry}(", 1))
        found = Program.from_file(path)
    return dataclasses.replace(
        found, name=original.name, provenance=f"{original.provenance}, Enzyme-JAX", platform=original.platform
    )
