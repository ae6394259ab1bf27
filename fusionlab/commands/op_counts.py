"""How many StableHLO ops the named programs have: counted now, or read from the table that was counted once."""

from __future__ import annotations

import importlib.resources
import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

TABLE = "stablehlo_ops.json"
"""Beside this module; written by ``benchmarks/stablehlo_ops.py``."""


@dataclass(frozen=True)
class StoredCounts:
    """``ops[model][molecule][program]`` StableHLO ops, counted under JAX ``jax_version``; see ``count_ops``."""

    jax_version: str
    ops: dict[str, dict[str, dict[str, int]]]

    def of(self, model: str, molecule: str) -> dict[str, int] | None:
        """Ops by program of a model on a molecule of the table; None if they were not counted."""
        return self.ops.get(model, {}).get(molecule)


def stored_counts() -> StoredCounts:
    """The table that this version of fusionlab ships."""
    content = json.loads((importlib.resources.files("fusionlab.commands") / TABLE).read_text())
    return StoredCounts(content["jax"], content["ops"])


def count_ops(
    model: str,
    molecule: str,
    charge: int | None = None,
    spin: int | None = None,
    progress: Callable[[str], None] = lambda line: None,
) -> dict[str, int]:
    """StableHLO ops by program, at 1,024 walkers in float32 with the ansatz's own Laplacian, lowered for CUDA.

    Lowers every program: one to thirty seconds per model and molecule.
    """
    from fusionlab.hlo.lowering import lower
    from workloads.catalogue import PROGRAMS, build

    counts: dict[str, Any] = {}
    for program in PROGRAMS:
        progress(f"models: lowering {model} {molecule} {program}")
        counts[program] = lower(build(model, molecule, program, charge=charge, spin=spin), "cuda").ops
    return counts
