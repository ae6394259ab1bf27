"""Ansatz: what every ansatz file provides, so that programs are written once for all of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import jax

from fusionlab.errors import unknown
from fusionlab.workloads.layers.initial import drawing
from fusionlab.workloads.molecule import Molecule
from fusionlab.workloads.upstream import UPSTREAM, Upstream


@dataclass(frozen=True)
class Ansatz:
    """A wavefunction on one molecule.

    ``init(key, dtype)`` makes the parameters (a pytree of arrays of ``dtype``; traceable). ``log_psi(parameters, r)``
    takes one walker ``r`` (``[electrons, 3]``, bohr, spin-up first) and returns ``(sign, log|psi|)``, two scalars of
    r's dtype; ``sign`` carries no gradient. Stages A to D are marked with ``jax.named_scope("stage_a")`` to
    ``"stage_d"``. ``upstream`` names the defaults of the code that the ansatz comes from.

    An adapter to a code that has programs of its own gives them here, and they are used instead of ours:
    ``local_energy(laplacian)`` is ``(parameters, walkers) -> {"local_energy": [W]}``, and ``mcmc`` the program of
    ``fusionlab.workloads.programs.mcmc``.
    """

    name: str
    molecule: Molecule
    init: Callable[[Any, Any], Any]
    log_psi: Callable[[Any, Any], tuple[Any, Any]]
    upstream: Upstream
    local_energy: Callable[[str], Callable[..., dict[str, Any]]] | None = None
    mcmc: Callable[..., dict[str, Any]] | None = None


def assemble(
    name: str,
    molecule: Molecule,
    size: str,
    sizes: Mapping[str, Any],
    initial: Callable[[Molecule, Any], Any],
    log_psi: Callable[[Any, Any, Molecule, Any], tuple[Any, Any]],
) -> Ansatz:
    """The ansatz ``name`` (a key of ``UPSTREAM``) of ``size``, a key of ``sizes``; InputError if it is none.

    ``initial(molecule, size)`` describes the parameters, ``log_psi(parameters, r, molecule, size)`` is the wavefunction
    of one walker; both take the entry of ``sizes``.
    """
    chosen = find_size(size, sizes)
    return Ansatz(
        name=name,
        molecule=molecule,
        init=drawing(initial(molecule, chosen)),
        log_psi=at_precision(
            UPSTREAM[name].matmul_precision, lambda parameters, r: log_psi(parameters, r, molecule, chosen)
        ),
        upstream=UPSTREAM[name],
    )


def find_size(size: str, sizes: Mapping[str, Any]) -> Any:
    """The entry of ``sizes`` called ``size``; InputError with the nearest names if there is none."""
    if size not in sizes:
        raise unknown("size", size, sizes)
    return sizes[size]


def at_precision(precision: str | None, function: Callable[..., Any]) -> Callable[..., Any]:
    """``function`` traced with matmul ``precision`` as JAX's default; None leaves the default alone.

    A matrix product keeps the precision that it was traced with through every derivative and batching. What a
    derivative rule adds by itself follows the default of the moment, so whole programs are wrapped as well.
    """
    if precision is None:
        return function

    @functools.wraps(function)
    def at(*arguments: Any) -> Any:
        with jax.default_matmul_precision(precision):
            return function(*arguments)

    return at
