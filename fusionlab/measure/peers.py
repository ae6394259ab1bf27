"""The peers: other ways to compute the same local energy of the same JAX function, each named by one word.

All become a Program, and are compiled, placed and timed on the same path as our own rewrite: the same function, inputs,
precision and flags. Enzyme-JAX's optimiser (``enzyme-ad``, where it is installed) is given text: its own entry point,
``optimize_module``, needs MLIR objects of the bindings it was built with, and runs the same passes.
"""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from fusionlab.errors import InputError, unknown
from fusionlab.hlo.lowering import lower
from fusionlab.hlo.program import Program
from fusionlab.workload import Workload

_LAST = "tensor-empty-raise,drop-unsupported-attributes"
"""The passes that Enzyme-JAX itself runs last; without them its own attributes stay in the module."""


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
    except Exception as error:  # whatever a foreign compiler raises fails the peer, not the run
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


@dataclass(frozen=True)
class Peer:
    """``laplacian`` is the variant of the workload; ``rewrite`` the transformation of the lowered program, if any."""

    what: str
    laplacian: str
    rewrite: Callable[[Program], Program] | None = None

    def program(self, workload: Workload, platform: str) -> Program:
        """The peer's program of ``workload`` (as it stands: walkers, dtype). InputError where it cannot be made."""
        program = lower(workload.rebuild(laplacian=self.laplacian), platform)
        return self.rewrite(program) if self.rewrite else program


PEERS: dict[str, Peer] = {
    "replay": Peer("the loop over 3N directions, as DeepQMC writes it", "replay"),
    "vmap": Peer("all directions under plain vmap", "vmap"),
    "folx": Peer("folx's forward Laplacian, dense (sparsity_threshold 0)", "forward"),
    "folx-sparse": Peer("folx's forward Laplacian, sparsity_threshold 0.6", "forward-sparse"),
    "jet": Peer("jax.experimental.jet along every direction", "jet"),
    "enzyme": Peer("the replay after Enzyme-JAX's optimiser", "replay", optimised),
}
"""Peers by their name in ``--against``."""

DEFAULT_PEERS = ("vmap", "folx", "folx-sparse", "jet", "enzyme")


def peers_of(names: str) -> dict[str, Peer]:
    """The peers of a comma-separated list, in its order; InputError for one that is not known."""
    chosen = [name.strip() for name in names.split(",") if name.strip() not in ("", "none")]
    for name in chosen:
        if name not in PEERS:
            raise unknown("peer", name, PEERS)
    return {name: PEERS[name] for name in dict.fromkeys(chosen)}
