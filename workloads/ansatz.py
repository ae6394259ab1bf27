"""Ansatz: what every ansatz file provides, so that programs are written once for all of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from workloads.molecule import Molecule


@dataclass(frozen=True)
class Ansatz:
    """A wavefunction on one molecule.

    ``init(key, dtype)`` makes the parameters (a pytree of arrays of ``dtype``; traceable). ``log_psi(parameters, r)``
    takes one walker ``r`` (``[electrons, 3]``, bohr, spin-up first) and returns ``(sign, log|psi|)``, two scalars of
    r's dtype; ``sign`` carries no gradient. Stages A to D are marked with ``jax.named_scope("stage_a")`` to
    ``"stage_d"``. ``laplacian`` and ``sampler`` name the defaults of the code that the ansatz comes from.
    """

    name: str
    molecule: Molecule
    init: Callable[[Any, Any], Any]
    log_psi: Callable[[Any, Any], tuple[Any, Any]]
    laplacian: str
    sampler: str
