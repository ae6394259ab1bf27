"""``fusionlab models``: what can be lowered by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rich.console import Console

from fusionlab.commands.op_counts import count_ops, stored_counts
from fusionlab.errors import InputError, unknown
from fusionlab.report.tables import print_rows


@dataclass(frozen=True)
class ModelsOptions:
    """What to list: one model or all, one molecule (a name or an XYZ file) or all; ``recount`` lowers everything."""

    model: str | None = None
    molecule: str | None = None
    charge: int | None = None
    spin: int | None = None
    recount: bool = False


def models(options: ModelsOptions, progress: Callable[[str], None], console: Console) -> list[dict[str, Any]]:
    """List models and molecules with electrons, parameters and StableHLO ops by program.

    The ops come from the stored table, which says under which JAX they were counted. They are counted now with
    ``recount``, and for one model on one molecule that the table does not have (None otherwise). A model that cannot
    be made says why in ``missing``; InputError if that model was asked for by name.
    """
    from workloads.catalogue import ANSATZE
    from workloads.molecules import MOLECULES, find_molecule

    if options.model is not None and options.model not in ANSATZE:
        raise unknown("model", options.model, ANSATZE)
    molecules = list(MOLECULES) if options.molecule is None else [options.molecule]
    for molecule in molecules:
        find_molecule(molecule, options.charge, options.spin)
    listed = []
    for name in [options.model] if options.model else ANSATZE:
        if options.model is None:
            progress(f"models: {name}")
        for molecule in molecules:
            try:
                listed.append(_entry(name, molecule, options, progress))
            except InputError as error:
                if options.model:
                    raise
                listed.append({**_nothing(name, molecule), "missing": str(error)})
    _print(listed, console)
    return listed


def _nothing(name: str, molecule: str) -> dict[str, Any]:
    from workloads.catalogue import PROGRAMS

    known = {"name": name, "molecule": molecule, "programs": list(PROGRAMS)}
    return {**known, "electrons": None, "parameters": None, "stablehlo_ops": None, "stablehlo_ops_jax": None}


def _entry(name: str, molecule: str, options: ModelsOptions, progress: Callable[[str], None]) -> dict[str, Any]:
    import jax

    from workloads.catalogue import build
    from workloads.molecules import MOLECULES, find_molecule

    workload = build(name, molecule=molecule, walkers=1, charge=options.charge, spin=options.spin)
    parameters = jax.eval_shape(workload.inputs, 0)[workload.argument_names.index("parameters")]
    entry = {
        **_nothing(name, molecule),
        "molecule": workload.molecule,
        "electrons": workload.electrons,
        "parameters": sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(parameters)),
    }
    stored = stored_counts()
    is_own = find_molecule(molecule, options.charge, options.spin) == MOLECULES.get(molecule)
    as_stored = stored.of(name, molecule) if is_own else None
    if options.recount or (as_stored is None and options.model and options.molecule):
        ops = count_ops(name, molecule, options.charge, options.spin, progress)
        return {**entry, "stablehlo_ops": ops, "stablehlo_ops_jax": jax.__version__}
    return {**entry, "stablehlo_ops": as_stored, "stablehlo_ops_jax": stored.jax_version if as_stored else None}


def _print(listed: list[dict[str, Any]], console: Console) -> None:
    programs = listed[0]["programs"]
    rows = [
        [
            entry["name"],
            entry["molecule"],
            _number(entry["electrons"]),
            _number(entry["parameters"]),
            *(_number((entry["stablehlo_ops"] or {}).get(program)) for program in programs),
        ]
        for entry in listed
    ]
    columns = ("model", "molecule", "electrons", "parameters", *programs)
    print_rows("models, and StableHLO ops by program", columns, rows, console)
    for line in _notes(listed):
        console.print(line, soft_wrap=True)


def _notes(listed: list[dict[str, Any]]) -> list[str]:
    """Where the ops come from, what has none, and why a model is missing."""
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


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
