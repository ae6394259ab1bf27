"""``fusionlab models``: the models that can be lowered by name, with their StableHLO op counts."""

from __future__ import annotations

import importlib.resources
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.errors import InputError, unknown

if TYPE_CHECKING:
    from rich.console import Console

TABLE = "stablehlo_ops.json"
"""Beside this module; written by ``benchmarks/stablehlo_ops.py``."""


@click.command("models")
@click.option("--model", help="Only this model.")
@click.option("--molecule", help="Only this molecule: a name or an XYZ file.")
@click.option("--charge", type=int, help="Charge of the molecules, if not their own.")
@click.option("--spin", type=int, help="n_up - n_down, if not the molecules' own.")
@click.option("--ops", is_flag=True, help="Count the StableHLO ops now (minutes), not from the stored table.")
@options.verb
def command(
    model: str | None,
    molecule: str | None,
    charge: int | None,
    spin: int | None,
    ops: bool,
    console: Console,
    where: dict[str, Any],
) -> list[dict[str, Any]]:
    """List the models that can be lowered by name. Ops are StableHLO ops per molecule and program."""
    # Op counts come from the stored table, which records the JAX version; they are counted afresh with --ops,
    # and for one model on one molecule that the table lacks. A model that cannot be built has its reason in "missing".
    from fusionlab.workloads.catalogue import ANSATZE
    from fusionlab.workloads.molecules import MOLECULES, find_molecule

    if model is not None and model not in ANSATZE:
        raise unknown("model", model, ANSATZE)
    molecules = list(MOLECULES) if molecule is None else [molecule]
    for one in molecules:
        find_molecule(one, charge, spin)
    counted = True if ops else None if model and molecule else False
    listed = []
    for name in [model] if model else ANSATZE:
        if model is None:
            where["progress"](f"models: {name}")
        listed += [_entry(name, one, charge, spin, counted, where["progress"]) for one in molecules]
    missing = [entry["missing"] for entry in listed if "missing" in entry]
    if model and missing:
        raise InputError(missing[0])
    _print(listed, console)
    return listed


def _entry(
    name: str,
    molecule: str,
    charge: int | None,
    spin: int | None,
    counted: bool | None,
    progress: Callable[[str], None],
) -> dict[str, Any]:
    """``counted`` lowers the programs: always, only if the table lacks them (None), or never."""
    import jax

    from fusionlab.workloads.catalogue import PROGRAMS, build
    from fusionlab.workloads.molecules import MOLECULES, find_molecule

    entry: dict[str, Any] = {"name": name, "molecule": molecule, "programs": list(PROGRAMS)}
    stored = stored_counts()
    is_own = find_molecule(molecule, charge, spin) == MOLECULES.get(molecule)
    ops, version = stored.of(name, molecule) if is_own else None, stored.jax_version
    try:
        workload = build(name, molecule=molecule, walkers=1, charge=charge, spin=spin)
        if counted or (counted is None and ops is None):
            ops, version = count_ops(name, molecule, charge, spin, progress), jax.__version__
    except InputError as error:
        not_known = dict.fromkeys(("electrons", "parameters", "stablehlo_ops", "stablehlo_ops_jax"))
        return {**entry, **not_known, "missing": str(error)}
    parameters = jax.eval_shape(workload.inputs, 0)[workload.argument_names.index("parameters")]
    return {
        **entry,
        "molecule": workload.molecule,
        "electrons": workload.electrons,
        "parameters": sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(parameters)),
        "stablehlo_ops": ops,
        "stablehlo_ops_jax": version if ops else None,
    }


def _print(listed: list[dict[str, Any]], console: Console) -> None:
    from fusionlab.report.tables import Cell, Table, field, number, shown

    def ops(program: str) -> Cell:
        return lambda entry: shown((entry["stablehlo_ops"] or {}).get(program))

    columns = {
        "model": field("name"),
        "molecule": field("molecule"),
        "electrons": number("electrons"),
        "parameters": number("parameters"),
        **{program: ops(program) for program in listed[0]["programs"]},
    }
    Table.of("models, and StableHLO ops by program", listed, columns).print(console)
    for line in _notes(listed):
        console.print(line, soft_wrap=True)


def _notes(listed: list[dict[str, Any]]) -> list[str]:
    """Notes: the origin of op counts, the models without any, and why a model is missing."""
    import jax

    versions = {entry["stablehlo_ops_jax"] for entry in listed if entry["stablehlo_ops_jax"]}
    notes = (
        [f"ops at 1,024 walkers, float32, each model's own Laplacian, JAX {', '.join(versions)}"] if versions else []
    )
    if versions - {jax.__version__}:
        notes.append(f"this is JAX {jax.__version__}: --ops counts them again (minutes)")
    if any(not entry["stablehlo_ops"] and "missing" not in entry for entry in listed):
        notes.append("not counted for such molecules; --ops counts them, as do --model and --molecule together")
    reasons: dict[str, list[str]] = {}
    for entry in listed:
        if "missing" in entry:
            reasons.setdefault(entry["missing"], []).append(f"{entry['name']} {entry['molecule']}")
    return [*notes, *(f"not available: {', '.join(who)}: {reason}" for reason, who in reasons.items())]


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
    content = json.loads((importlib.resources.files("fusionlab.cli") / TABLE).read_text())
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
    from fusionlab.workloads.catalogue import PROGRAMS, build

    counts = {}
    for program in PROGRAMS:
        progress(f"models: lowering {model} {molecule} {program}")
        counts[program] = lower(build(model, molecule, program, charge=charge, spin=spin), "cuda").ops
    return counts
