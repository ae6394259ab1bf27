"""The local energy of DeepQMC 1.3.0 and the kinetic energy of NetKet 3.23, as these codes compute them, as Programs.

DeepQMC: ``compute_local_energy`` of its loss, unedited: its own ansatz from its configuration, its Hamiltonian, and its
``vmap`` over [molecule, state, walker] = [1, 1, W]; float32. Its Hamiltonian takes the Laplacian as an argument. folx
is called as in its ``conf/hamil/qc_forward_laplacian.yaml``; importing its networks registers its own rule of folx for
LapNet's attention (``folxext.py``), so that both of folx's sides have it.

NetKet: ``KineticEnergy`` with masses 1 to 2 of the system of ``examples/netket_kinetic.py``, ``vmap`` over [W],
float64. It has no other Laplacian, so that folx and ``fusionlab.laplacian`` are applied to its log psi: its operator
with another ``_expect_kernel_single``.
"""

from __future__ import annotations

import functools
import importlib.metadata
import importlib.resources
import os
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

import fusionlab
from fusionlab.errors import InputError
from fusionlab.hlo.program import Program
from fusionlab.testing.lowered import program_of
from fusionlab.workloads.molecules import find_molecule
from fusionlab.workloads.programs.walkers import initial_walkers

DEEPQMC = {name: f"deepqmc-1.3:{name}" for name in ("psiformer", "default", "ferminet", "lapnet", "deeperwin")}
"""File in DeepQMC's ``conf/ansatz`` to the name of the model here. Its command takes ``psiformer`` by default."""

NETKET = "netket:deep-set"

THRESHOLDS = {"folx-dense": 0, "folx-sparse": 0.6}
"""folx's sparsity thresholds, as in ``fusionlab.workloads.programs.laplacians``; DeepQMC's configuration has 0."""

SIDES = ("own", *THRESHOLDS, "laplacian", "log-psi")
"""The programs of a model: with the code's own Laplacian, folx's, ``fusionlab.laplacian``, and none."""

_OURS = functools.partial(fusionlab.laplacian, check="never", cache=False)


def lowered(model: str, system: str, side: str, walkers: int, platform: str = "cuda") -> Program:
    """The program ``side`` of ``model``; ``system`` is a molecule's name, of NetKet's the number of particles.

    InputError for a side that is none of ``SIDES``, or where the code is not installed.
    """
    if side not in SIDES:
        raise InputError(f"no side {side!r}: {', '.join(SIDES)}")
    try:
        function, arguments = (_netket if model == NETKET else _deepqmc)(model, system, side, walkers)
    except ModuleNotFoundError as error:
        raise InputError(f"{model} needs {error.name} in this environment: see docs/deepqmc.md") from error
    return program_of(jax.jit(function, keep_unused=True), arguments, platform)


def code_version(model: str) -> str:
    """The version of the code that ``model`` is of, and of folx."""
    names = ("netket" if model == NETKET else "deepqmc", "folx")
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)


def _folx(threshold: float) -> Callable[[Any], Any]:
    import folx

    operator: Callable[[Any], Any] = folx.ForwardLaplacianOperator(threshold)
    return operator


def _deepqmc(model: str, system: str, side: str, walkers: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """(function, abstract arguments): parameters of one state [1, ...] and electrons [1, 1, W, N, 3] (bohr)."""
    os.environ.setdefault("NVIDIA_TF32_OVERRIDE", "0")  # DeepQMC sets it, and warns if JAX was imported before
    import deepqmc.molecule
    from deepqmc.app import instantiate_ansatz
    from deepqmc.hamil import MolecularHamiltonian
    from deepqmc.loss.energy import compute_local_energy
    from deepqmc.physics import reverse_forward_laplacian
    from deepqmc.types import PhysicalConfiguration
    from hydra.utils import instantiate
    from omegaconf import OmegaConf

    molecule = find_molecule(system)
    factory = {"own": reverse_forward_laplacian, "log-psi": reverse_forward_laplacian, "laplacian": _OURS}.get(side)
    nuclei = molecule.nuclei.astype("float32")
    hamiltonian = MolecularHamiltonian(
        mol=deepqmc.molecule.Molecule(
            coords=nuclei, charges=molecule.charges, charge=molecule.charge, spin=molecule.spin
        ),
        laplacian_factory=factory or _folx(THRESHOLDS[side]),
    )
    name = next(name for name, of in DEEPQMC.items() if of == model)
    configuration = importlib.resources.files("deepqmc") / "conf" / "ansatz" / f"{name}.yaml"
    ansatz = instantiate_ansatz(
        hamiltonian, instantiate(OmegaConf.create(configuration.read_text()), _recursive_=True, _convert_="all")
    )

    def inputs(key: Any) -> tuple[Any, ...]:
        one = initial_walkers(key, molecule, walkers, jnp.float32)
        parameters = ansatz.init(key, PhysicalConfiguration(jnp.asarray(nuclei), one[0], jnp.array(0)))
        return jax.tree.map(lambda array: array[None], parameters), one[None, None], key

    def configurations(electrons: Any) -> Any:
        batch = electrons.shape[:3]
        return PhysicalConfiguration(
            jnp.broadcast_to(nuclei, (*batch, *nuclei.shape)), electrons, jnp.zeros(batch, jnp.int32)
        )

    def local_energy(parameters: Any, electrons: Any, key: Any) -> Any:
        return compute_local_energy(key, hamiltonian, ansatz.apply, parameters, configurations(electrons))[0]

    def log_psi(parameters: Any, electrons: Any, key: Any) -> Any:
        of_states = jax.vmap(jax.vmap(ansatz.apply, (None, 0)))
        return jax.vmap(of_states, (None, 0))(parameters, configurations(electrons)).log

    return (log_psi if side == "log-psi" else local_energy), jax.eval_shape(inputs, jax.random.PRNGKey(0))


def _netket(model: str, system: str, side: str, walkers: int) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """(function, abstract arguments): parameters and samples [W, 3 N]."""
    import netket as nk

    particles = int(system)
    cell = nk.experimental.geometry.Cell(d=3, L=6.0)
    hilbert = nk.experimental.hilbert.Particle(particles, geometry=cell)
    network = nk.models.DeepSetRelDistance(
        hilbert=hilbert, layers_phi=2, layers_rho=3, features_phi=(128, 128), features_rho=(128, 128, 1)
    )
    mass = jnp.repeat(jnp.linspace(1.0, 2.0, particles), 3)

    def log_psi(parameters: Any, x: Any) -> Any:
        """The network takes samples [samples, coordinates] only, and NetKet's operator has one."""
        return network.apply(parameters, jnp.atleast_2d(x)).reshape(x.shape[:-1])

    class ByAnotherLaplacian(nk.operator.KineticEnergy):  # type: ignore[misc,name-defined]
        def _expect_kernel_single(self, logpsi: Any, params: Any, x: Any) -> Any:
            if side == "laplacian":
                laplacian, gradient = _OURS(lambda y: logpsi(params, y), 1 / self.mass)(x)
                return -0.5 * (laplacian + jnp.sum(gradient**2 / self.mass))
            scale = 1 / jnp.sqrt(self.mass)  # x = y * scale: derivatives by y have the weights of the inverse masses
            laplacian, gradient = _folx(THRESHOLDS[side])(lambda y: logpsi(params, y * scale))(x / scale)
            return -0.5 * (laplacian + jnp.sum(gradient**2))

    operator = (nk.operator.KineticEnergy if side == "own" else ByAnotherLaplacian)(hilbert, mass)
    samples = jax.eval_shape(lambda key: hilbert.random_state(key, walkers), jax.random.key(0))
    parameters = jax.eval_shape(
        network.init, jax.random.key(1), jax.ShapeDtypeStruct((1, 3 * particles), samples.dtype)
    )

    def kinetic_energy(parameters: Any, x: Any) -> Any:
        return operator._expect_kernel(log_psi, parameters, x)

    return (jax.vmap(log_psi, (None, 0)) if side == "log-psi" else kinetic_energy), (parameters, samples)
