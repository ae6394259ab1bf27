"""What the codes that the ansätze come from do around a wavefunction, as literal settings by ansatz.

DeepQMC 1.2.0: ``deepqmc/__init__.py`` (precision), ``conf/hamil/qc.yaml`` (Laplacian) and ``conf/task/train.yaml``,
``train_ferminet.yaml``, ``train_psiformer.yaml`` with the sampler factories they name. oneQMC: ``scripts/args.py`` and
``scripts/transferable.py`` with their defaults.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Upstream:
    """Names of the defaults, each a key of a table in ``fusionlab.workloads.programs``.

    ``matmul_precision`` is what the code sets for its whole process (``jax_default_matmul_precision``; None: JAX's
    default). ``laplacian`` is a key of LAPLACIANS, ``sampler`` of SAMPLERS, ``clipping`` (of the local energies that
    weight the gradient) of CLIPPINGS, ``potential`` of POTENTIALS.
    """

    matmul_precision: str | None
    laplacian: str
    sampler: str
    clipping: str
    potential: str


UPSTREAM = {
    "paulinet": Upstream("highest", "replay", "langevin", "log-squeeze", "deepqmc"),
    "ferminet": Upstream("highest", "replay", "metropolis-deepqmc", "mean", "deepqmc"),
    "psiformer-deepqmc": Upstream("highest", "replay", "metropolis-deepqmc-psiformer", "median", "deepqmc"),
    "psiformer": Upstream("high", "forward", "metropolis-oneqmc", "median", "oneqmc"),
    "orbformer": Upstream("high", "forward", "metropolis-oneqmc", "median", "oneqmc"),
}
