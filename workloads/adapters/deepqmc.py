"""The wavefunctions of the installed DeepQMC 1.2.0, unedited, as Ansatz records; an optional extra.

Importing DeepQMC sets JAX's default matmul precision to ``highest`` and ``NVIDIA_TF32_OVERRIDE=0`` for the whole
process. The first is confined here to DeepQMC's own functions, so that no other workload depends on whether it was
imported; the second must precede the first use of CUDA and stays. Float32 models must be traced with x64 off.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.resources
import importlib.util
import os
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import jax
import jax.numpy as jnp

from fusionlab.errors import InputError
from workloads.ansatz import Ansatz
from workloads.molecule import Molecule
from workloads.programs.laplacians import LAPLACIANS, STOCHASTIC

CONFIGURATIONS = {
    "deepqmc:paulinet": "default.yaml",
    "deepqmc:ferminet": "ferminet.yaml",
    "deepqmc:psiformer": "psiformer.yaml",
    "deepqmc:deeperwin": "deeperwin.yaml",
}
"""Name of a model to its file in DeepQMC's ``conf/ansatz``."""

SAMPLER_NAMES = {
    "deepqmc:paulinet": "langevin",
    "deepqmc:ferminet": "metropolis-deepqmc",
    "deepqmc:psiformer": "metropolis-deepqmc-psiformer",
    "deepqmc:deeperwin": "langevin",
}
"""Name of a model to the sampler of its training configuration (``conf/task/train*.yaml``)."""

MATMUL_PRECISION = "highest"


def require_deepqmc() -> None:
    """Raise ``InputError`` if DeepQMC is not installed; import it without its process-wide precision otherwise."""
    if importlib.util.find_spec("deepqmc") is None:
        raise InputError("deepqmc models need DeepQMC: pip install 'fusionlab[deepqmc]'")
    os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")
    precision = jax.config.jax_default_matmul_precision
    with _old_jax_names_allowed():
        for module in ("deepqmc", "deepqmc.wf", "kfac_jax"):
            importlib.import_module(module)
    jax.config.update("jax_default_matmul_precision", precision)


@contextlib.contextmanager
def _old_jax_names_allowed() -> Iterator[None]:
    """kfac_jax, on which DeepQMC depends, uses names that JAX deprecates; no release of it is free of them."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"jax\.core\.\w+ is deprecated", DeprecationWarning)
        yield


def build(name: str, molecule: Molecule, size: str = "full") -> Ansatz:
    """The model ``name`` (a key of ``CONFIGURATIONS``) on ``molecule``, at DeepQMC's own size only."""
    if size != "full":
        raise InputError(f"{name} has only its full size, not {size!r}")
    require_deepqmc()

    def init(key: Any, dtype: Any) -> Any:
        _, network = _model(name, molecule, "replay", jax.config.jax_enable_x64)
        electrons = jnp.linspace(-1.0, 1.0, 3 * molecule.electrons, dtype=dtype).reshape(-1, 3)
        with _old_jax_names_allowed():
            parameters = network.init(key, _configuration(molecule, electrons))
        return jax.tree.map(lambda array: array.astype(dtype), parameters)

    def log_psi(parameters: Any, r: Any) -> tuple[Any, Any]:
        _, network = _model(name, molecule, "replay", jax.config.jax_enable_x64)
        with jax.default_matmul_precision(MATMUL_PRECISION), _old_jax_names_allowed():
            psi = network.apply(parameters, _configuration(molecule, r))
        return psi.sign, psi.log

    return Ansatz(name, molecule, init, log_psi, laplacian="replay", sampler=SAMPLER_NAMES[name])


def local_energy(name: str, molecule: Molecule, laplacian: str) -> Callable[..., dict[str, Any]]:
    """DeepQMC's own local energy, ``(parameters, walkers) -> {"local_energy": [W]}``; see the local-energy program.

    ``replay`` is DeepQMC's own Laplacian, the other names are ours handed to its Hamiltonian.
    """
    if laplacian in STOCHASTIC:
        raise InputError(f"DeepQMC's local energy has no place for the random numbers of {laplacian}")

    def of_one_walker(parameters: Any, r: Any) -> Any:
        hamiltonian, network = _model(name, molecule, laplacian, jax.config.jax_enable_x64)
        return hamiltonian.local_energy(network.apply)(None, parameters, _configuration(molecule, r))[0]

    def batched(parameters: Any, walkers: Any) -> dict[str, Any]:
        with jax.default_matmul_precision(MATMUL_PRECISION), _old_jax_names_allowed():
            return {"local_energy": jax.vmap(of_one_walker, (None, 0))(parameters, walkers)}

    batched.__name__ = "local_energy"
    return batched


@functools.cache
def _model(name: str, molecule: Molecule, laplacian: str, x64: bool) -> tuple[Any, Any]:
    """DeepQMC's Hamiltonian and haiku network; ``x64`` is a key because DeepQMC's constants follow JAX's setting."""
    import deepqmc.molecule
    import haiku
    from deepqmc.hamil import MolecularHamiltonian
    from deepqmc.physics import laplacian as deepqmc_replay
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    configuration = importlib.resources.files("deepqmc") / "conf" / "ansatz" / CONFIGURATIONS[name]
    with jax.ensure_compile_time_eval():
        hamiltonian = MolecularHamiltonian(
            mol=deepqmc.molecule.Molecule(
                coords=molecule.nuclei, charges=molecule.charges, charge=molecule.charge, spin=molecule.spin
            ),
            laplacian_factory=deepqmc_replay if laplacian == "replay" else LAPLACIANS[laplacian],
        )
        ansatz = instantiate(OmegaConf.create(configuration.read_text()), _recursive_=True, _convert_="all")

    def wavefunction(configuration: Any, return_mos: bool = False) -> Any:
        return ansatz(hamiltonian)(configuration, return_mos)

    return hamiltonian, haiku.without_apply_rng(haiku.transform(wavefunction))


def _configuration(molecule: Molecule, r: Any) -> Any:
    """DeepQMC's record of nuclei and electrons for one walker."""
    from deepqmc.types import PhysicalConfiguration

    return PhysicalConfiguration(jnp.asarray(molecule.nuclei, r.dtype), r, jnp.array(0))
