"""The models of the installed DeepQMC 1.2.0, unedited, as Ansatz records; an optional extra.

What is DeepQMC's own: the wavefunction, the local energy (its Hamiltonian, which takes a Laplacian as an argument), and
the sampler (``deepqmc_sampler``). What is ours around them: the initial walkers, and in a training step the estimator
of the gradient, its clipping and the optimiser. Those follow DeepQMC's formulas but for walkers without a finite energy
(``programs/clipping.py``); DeepQMC's own loss is written for ``pmap``, and by default it trains with KFAC.

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
from fusionlab.workloads.adapters.deepqmc_sampler import sample
from fusionlab.workloads.ansatz import Ansatz
from fusionlab.workloads.molecule import Molecule
from fusionlab.workloads.programs.laplacians import LAPLACIANS, SPARSITY_THRESHOLDS, STOCHASTIC, require_folx
from fusionlab.workloads.upstream import UPSTREAM, Upstream

CONFIGURATIONS = {
    "deepqmc:paulinet": "default.yaml",
    "deepqmc:ferminet": "ferminet.yaml",
    "deepqmc:psiformer": "psiformer.yaml",
    "deepqmc:deeperwin": "deeperwin.yaml",
}
"""Name of a model to its file in DeepQMC's ``conf/ansatz``."""

SETTINGS: dict[str, Upstream] = {
    "deepqmc:paulinet": UPSTREAM["paulinet"],
    "deepqmc:ferminet": UPSTREAM["ferminet"],
    "deepqmc:psiformer": UPSTREAM["psiformer-deepqmc"],
    "deepqmc:deeperwin": UPSTREAM["paulinet"],
}
"""Name of a model to the settings of its training configuration; there is none for deeperwin, so the default's."""


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
    """The model ``name`` (a key of ``CONFIGURATIONS``) on ``molecule``, at DeepQMC's own size only.

    InputError without DeepQMC, and for what DeepQMC cannot do: another size, electrons of one spin only.
    """
    if size != "full":
        raise InputError(f"{name} has only its full size, not {size!r}")
    if min(molecule.n_up, molecule.n_down) < 1:
        raise InputError(
            f"{name} needs an electron of each spin; molecule {molecule.name} has {molecule.n_up} up and "
            f"{molecule.n_down} down"
        )
    require_deepqmc()
    settings = SETTINGS[name]

    def init(key: Any, dtype: Any) -> Any:
        _, network = _model(name, molecule, "replay", jax.config.jax_enable_x64)
        electrons = jnp.linspace(-1.0, 1.0, 3 * molecule.electrons, dtype=dtype).reshape(-1, 3)
        with _old_jax_names_allowed():
            parameters = network.init(key, _configuration(molecule, electrons))
        return jax.tree.map(lambda array: array.astype(dtype), parameters)

    @_as_in_deepqmc(settings)
    def log_psi(parameters: Any, r: Any) -> tuple[Any, Any]:
        _, network = _model(name, molecule, "replay", jax.config.jax_enable_x64)
        psi = network.apply(parameters, _configuration(molecule, r))
        return psi.sign, psi.log

    @_as_in_deepqmc(settings)
    def mcmc(parameters: Any, walkers: Any, key: Any, step: Any) -> dict[str, Any]:
        hamiltonian, network = _model(name, molecule, "replay", jax.config.jax_enable_x64)
        return sample(settings.sampler, hamiltonian, network.apply, parameters, walkers, key, step)

    def local_energy(laplacian: str) -> Callable[..., dict[str, Any]]:
        return _as_in_deepqmc(settings)(_local_energy(name, molecule, laplacian))

    return Ansatz(name, molecule, init, log_psi, settings, local_energy=local_energy, mcmc=mcmc)


def _as_in_deepqmc(settings: Upstream) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """A decorator: trace the function as DeepQMC's process would."""

    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def traced(*arguments: Any) -> Any:
            with jax.default_matmul_precision(settings.matmul_precision), _old_jax_names_allowed():
                return function(*arguments)

        return traced

    return decorate


def _local_energy(name: str, molecule: Molecule, laplacian: str) -> Callable[..., dict[str, Any]]:
    """The local energy of DeepQMC's Hamiltonian, ``(parameters, walkers) -> {"local_energy": [W]}``.

    Its Laplacian is DeepQMC's own for ``replay``, and for the forward ones folx's operator, as in DeepQMC's
    ``conf/hamil/qc_forward_laplacian.yaml``; ``scan`` and ``jvp-in-loop`` are ours.
    """
    if laplacian in STOCHASTIC:
        offered = ", ".join(known for known in LAPLACIANS if known not in STOCHASTIC)
        raise InputError(
            f"{name} has no Laplacian {laplacian!r}: DeepQMC's Hamiltonian hands its Laplacian no random numbers; "
            f"it takes {offered}"
        )
    if laplacian in SPARSITY_THRESHOLDS:
        require_folx()

    def of_one_walker(parameters: Any, r: Any) -> Any:
        hamiltonian, network = _model(name, molecule, laplacian, jax.config.jax_enable_x64)
        return hamiltonian.local_energy(network.apply)(None, parameters, _configuration(molecule, r))[0]

    def local_energy(parameters: Any, walkers: Any) -> dict[str, Any]:
        return {"local_energy": jax.vmap(of_one_walker, (None, 0))(parameters, walkers)}

    return local_energy


def _laplacian_factory(laplacian: str) -> Callable[[Any], Any]:
    """What DeepQMC's Hamiltonian makes a Laplacian of log|psi| with; its operations are marked ``stage_e``."""
    from deepqmc.physics import laplacian as deepqmc_replay

    if laplacian in SPARSITY_THRESHOLDS:
        import folx

        factory = folx.ForwardLaplacianOperator(SPARSITY_THRESHOLDS[laplacian])
    else:
        factory = deepqmc_replay if laplacian == "replay" else LAPLACIANS[laplacian]

    def marked(f: Any) -> Any:
        def laplacian_and_gradient(x: Any) -> Any:
            with jax.named_scope("stage_e"):
                return factory(f)(x)

        return laplacian_and_gradient

    return marked


@functools.cache
def _model(name: str, molecule: Molecule, laplacian: str, x64: bool) -> tuple[Any, Any]:
    """DeepQMC's Hamiltonian and haiku network; ``x64`` is a key because DeepQMC's constants follow JAX's setting."""
    import deepqmc.molecule
    import haiku
    from deepqmc.hamil import MolecularHamiltonian
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    configuration = importlib.resources.files("deepqmc") / "conf" / "ansatz" / CONFIGURATIONS[name]
    with jax.ensure_compile_time_eval():
        hamiltonian = MolecularHamiltonian(
            mol=deepqmc.molecule.Molecule(
                coords=molecule.nuclei, charges=molecule.charges, charge=molecule.charge, spin=molecule.spin
            ),
            laplacian_factory=_laplacian_factory(laplacian),
        )
        ansatz = instantiate(OmegaConf.create(configuration.read_text()), _recursive_=True, _convert_="all")

    def wavefunction(configuration: Any, return_mos: bool = False) -> Any:
        return ansatz(hamiltonian)(configuration, return_mos)

    return hamiltonian, haiku.without_apply_rng(haiku.transform(wavefunction))


def _configuration(molecule: Molecule, r: Any) -> Any:
    """DeepQMC's record of nuclei and electrons for one walker."""
    from deepqmc.types import PhysicalConfiguration

    return PhysicalConfiguration(jnp.asarray(molecule.nuclei, r.dtype), r, jnp.array(0))
