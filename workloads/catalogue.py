"""The catalogue: names of ansätze and programs, and the one function that builds a Workload from names.

Importing this module imports no JAX; the modules of the tables are imported when a workload is built.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

from fusionlab.errors import InputError, unknown
from fusionlab.workload import Workload
from fusionlab.workloads.molecules import find_molecule

ANSATZE = {
    "paulinet": "fusionlab.workloads.ansatze.paulinet",
    "ferminet": "fusionlab.workloads.ansatze.ferminet",
    "psiformer": "fusionlab.workloads.ansatze.psiformer",
    "orbformer": "fusionlab.workloads.ansatze.orbformer",
    "orbformer-flash": "fusionlab.workloads.ansatze.orbformer_flash",
    "psiformer-deepqmc": "fusionlab.workloads.ansatze.psiformer_deepqmc",
    "deepqmc:paulinet": "fusionlab.workloads.adapters.deepqmc",
    "deepqmc:ferminet": "fusionlab.workloads.adapters.deepqmc",
    "deepqmc:psiformer": "fusionlab.workloads.adapters.deepqmc",
    "deepqmc:deeperwin": "fusionlab.workloads.adapters.deepqmc",
}
"""Name of an ansatz to the module whose ``build(molecule, size)`` makes it (adapters take the name as well)."""

PROGRAMS = {
    "log-psi": "fusionlab.workloads.programs.log_psi",
    "local-energy": "fusionlab.workloads.programs.local_energy",
    "mcmc": "fusionlab.workloads.programs.mcmc",
    "inference-step": "fusionlab.workloads.programs.inference_step",
    "train-step": "fusionlab.workloads.programs.train_step",
}
"""Name of a program to the module whose ``build(ansatz, laplacian)`` makes its function."""

MOST_WALKERS = 2**31 - 1
"""XLA counts along an axis in 32 bits, and aborts the process far beyond."""
DTYPES = ("float32", "float64")
SIZES = ("full", "tiny")


def build(
    name: str,
    molecule: str = "CH4",
    program: str = "local-energy",
    walkers: int = 1024,
    dtype: str = "float32",
    laplacian: str | None = None,
    size: str = "full",
    charge: int | None = None,
    spin: int | None = None,
) -> Workload:
    """The workload ``program`` of ansatz ``name`` on ``molecule``; no array is computed before ``inputs`` is called.

    ``molecule`` is a name or an XYZ file, ``charge`` and ``spin`` (n_up - n_down) are its own unless given.
    ``laplacian=None`` takes the ansatz's own. ``size="tiny"`` is a narrow variant for tests. ``InputError`` names the
    nearest valid names for an unknown one. Float64 workloads are traced and run under ``jax.enable_x64(True)``.
    """
    from fusionlab.workloads.ansatz import at_precision
    from fusionlab.workloads.programs.laplacians import LAPLACIANS

    given: dict[str, Any] = {
        "name": name,
        "molecule": molecule,
        "program": program,
        "walkers": walkers,
        "dtype": dtype,
        "laplacian": laplacian,
        "size": size,
        "charge": charge,
        "spin": spin,
    }
    _check("model", name, ANSATZE)
    _check("program", program, PROGRAMS)
    _check("dtype", dtype, DTYPES)
    _check("size", size, SIZES)
    if laplacian is not None:
        _check("laplacian", laplacian, LAPLACIANS)
    if walkers < 1:
        raise InputError(f"walkers must be at least 1, not {walkers}")
    if walkers > MOST_WALKERS:
        raise InputError(f"walkers must be at most {MOST_WALKERS}, not {walkers}")
    system = find_molecule(molecule, charge, spin)
    ansatz_module, program_module = (importlib.import_module(path) for path in (ANSATZE[name], PROGRAMS[program]))
    adapted = name.startswith("deepqmc:")
    ansatz = ansatz_module.build(name, system, size) if adapted else ansatz_module.build(system, size)
    method = (laplacian or ansatz.upstream.laplacian) if program_module.USES_LAPLACIAN else "none"
    own = {ansatz.upstream.laplacian, "none", "full", DTYPES[0]}
    variant = tuple(asked for asked in (method, size, dtype) if asked not in own)
    argument_names = program_module.argument_names(method)
    function = at_precision(ansatz.upstream.matmul_precision, program_module.build(ansatz, method))

    def inputs(seed: int) -> tuple[Any, ...]:
        return _inputs(ansatz, argument_names, walkers, dtype, seed)

    def rebuild(**changes: Any) -> Workload:
        return build(**{**given, **changes})

    return Workload(
        name=name,
        molecule=system.name,
        electrons=system.electrons,
        program=program,
        laplacian=method,
        walkers=walkers,
        dtype=dtype,
        function=function,
        inputs=inputs,
        argument_names=argument_names,
        rebuild=rebuild,
        variant=variant,
        nuclei=system.positions,
        charges=tuple(map(float, system.charges)),
        spin=system.spin,
    )


def _check(kind: str, given: str, known: Any) -> None:
    if given not in known:
        raise unknown(kind, given, known)


def _inputs(ansatz: Any, argument_names: tuple[str, ...], walkers: int, dtype: str, seed: int) -> tuple[Any, ...]:
    """The arguments by name, each from its own stream of ``seed``."""
    import jax
    import jax.numpy as jnp

    from fusionlab.workloads.programs.mcmc import initial_step
    from fusionlab.workloads.programs.train_step import initial_optimiser
    from fusionlab.workloads.programs.walkers import initial_walkers

    parameters_key, walkers_key, other_key = jax.random.split(jax.random.PRNGKey(seed), 3)
    parameters = ansatz.init(parameters_key, jnp.dtype(dtype))
    make: dict[str, Callable[[], Any]] = {
        "parameters": lambda: parameters,
        "optimiser": lambda: initial_optimiser(parameters),
        "step": lambda: initial_step(ansatz, jnp.dtype(dtype)),
        "walkers": lambda: initial_walkers(walkers_key, ansatz.molecule, walkers, jnp.dtype(dtype)),
        "key": lambda: other_key,
    }
    return tuple(make[argument]() for argument in argument_names)
