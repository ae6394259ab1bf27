"""The peers: other ways to compute the same local energy of the same JAX function, each named by one word.

All become a Program, and are compiled, placed and timed through the same door as our own rewrite: the same function,
inputs, precision and flags.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from fusionlab.errors import unknown
from fusionlab.hlo.lowering import lower
from fusionlab.hlo.program import Program
from fusionlab.measure.enzyme import optimised
from fusionlab.workload import Workload


@dataclass(frozen=True)
class Peer:
    """``laplacian`` is the variant of the workload; ``rewrite`` what is done to the lowered program, if anything."""

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
"""By the names of ``--against``."""

DEFAULT_PEERS = ("vmap", "folx", "folx-sparse", "jet", "enzyme")


def peers_of(names: str) -> dict[str, Peer]:
    """The peers of a comma-separated list, in its order; InputError for one that is not known."""
    chosen = [name.strip() for name in names.split(",") if name.strip() not in ("", "none")]
    for name in chosen:
        if name not in PEERS:
            raise unknown("peer", name, PEERS)
    return {name: PEERS[name] for name in dict.fromkeys(chosen)}
