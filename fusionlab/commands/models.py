"""``fusionlab models``: what can be lowered by name."""

from __future__ import annotations

import math
from typing import Any

from rich.console import Console

from fusionlab.errors import InputError, unknown
from fusionlab.report.tables import print_rows


def models(model: str | None, molecule: str | None, console: Console) -> list[dict[str, Any]]:
    """List models and molecules with electrons, parameters and programs; models whose package is missing say so.

    With ``model`` given, each program is lowered and its StableHLO ops are counted (a few seconds per molecule).
    """
    import jax

    from fusionlab.hlo.lowering import lower
    from workloads.catalogue import ANSATZE, PROGRAMS, build
    from workloads.molecules import MOLECULES

    if model is not None and model not in ANSATZE:
        raise unknown("model", model, ANSATZE)
    listed = []
    for name in [model] if model else ANSATZE:
        for system in [molecule] if molecule else MOLECULES:
            entry: dict[str, Any] = {"name": name, "molecule": system, "programs": list(PROGRAMS)}
            try:
                workload = build(name, molecule=system, walkers=1)
            except InputError as error:
                if model or not name.startswith("deepqmc:"):
                    raise
                listed.append({**entry, "electrons": None, "parameters": None, "missing": str(error)})
                continue
            parameters = jax.eval_shape(workload.inputs, 0)[workload.argument_names.index("parameters")]
            count = sum(math.prod(leaf.shape) for leaf in jax.tree.leaves(parameters))
            listed.append({**entry, "electrons": workload.electrons, "parameters": count})
            if model:
                listed[-1]["stablehlo_ops"] = {
                    program: lower(build(name, molecule=system, program=program), "cuda").ops for program in PROGRAMS
                }
    programs = list(PROGRAMS) if model else []
    rows = [
        [
            entry["name"],
            entry["molecule"],
            _number(entry["electrons"]),
            _number(entry["parameters"]),
            *(_number(entry["stablehlo_ops"][program]) for program in programs),
        ]
        for entry in listed
    ]
    columns = ("model", "molecule", "electrons", "parameters", *programs)
    print_rows("models, and StableHLO ops by program" if model else "models", columns, rows, console)
    if not model:
        console.print(f"programs: {', '.join(PROGRAMS)}; --model NAME counts the StableHLO ops of each")
    return listed


def _number(value: int | None) -> str:
    return "not installed" if value is None else f"{value:,}"
