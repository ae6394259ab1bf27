"""Program ``log-psi``: the wavefunction of every walker (stages A to D)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

from fusionlab.workloads.ansatz import Ansatz

USES_LAPLACIAN = False


def argument_names(laplacian: str) -> tuple[str, ...]:
    """The names of the function's arguments."""
    return ("parameters", "walkers")


def build(ansatz: Ansatz, laplacian: str) -> Callable[..., dict[str, Any]]:
    """``(parameters, walkers) -> {"log_psi": [W], "sign": [W]}`` for walkers ``[W, electrons, 3]``."""

    def log_psi(parameters: Any, walkers: Any) -> dict[str, Any]:
        sign, log = jax.vmap(ansatz.log_psi, (None, 0))(parameters, walkers)
        return {"log_psi": log, "sign": sign}

    return log_psi
