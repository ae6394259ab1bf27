"""The subject of a study: a JAX function, its inputs and the circumstances in which it is lowered."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Workload:
    """One program of one ansatz on one molecule, ready to be lowered or run.

    ``function(*arguments)`` is plain JAX and may be jitted. ``inputs(seed)`` makes the concrete arguments (pytrees of
    arrays of ``dtype``; electron positions in bohr with shape ``[walkers, electrons, 3]``); it is itself traceable, so
    ``jax.eval_shape(inputs, 0)`` returns the abstract arguments at no cost. Float64 workloads must be built, lowered
    and run under ``jax.enable_x64(True)``.
    """

    name: str
    molecule: str
    electrons: int
    program: str
    laplacian: str
    walkers: int
    dtype: str
    function: Callable[..., Any]
    inputs: Callable[[int], tuple[Any, ...]]
    argument_names: tuple[str, ...]
    rebuild: Callable[..., Workload]
    """``rebuild(walkers=16, dtype="float64")``: the same workload in other circumstances."""
    nuclei: tuple[tuple[float, float, float], ...] = ()
    """Positions of the nuclei, bohr; with ``charges``, used by checks to place electrons near them."""
    charges: tuple[float, ...] = ()
    spin: int = 0
    """Electrons with spin up minus those with spin down: two molecules may differ in this alone."""

    variant: tuple[str, ...] = ()
    """Settings other than the ansatz's own: a Laplacian, a size, a dtype."""

    @property
    def title(self) -> str:
        """A name for logs and file names, e.g. ``paulinet-CH4-local-energy-w1024``, ``...-forward-w1024``."""
        return "-".join((self.name.replace(":", "-"), self.molecule, self.program, *self.variant, f"w{self.walkers}"))
