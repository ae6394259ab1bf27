"""``fusionlab dump``: lower and compile one program, and write down everything the compiler made of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from rich.console import Console

from fusionlab.hlo.lowering import jaxpr_text
from fusionlab.hlo.program import Program
from fusionlab.output import require_writable, write_whole
from fusionlab.report.tables.programs import print_footprint
from fusionlab.study import Circumstances, compiled, lower, measure
from fusionlab.workload import Workload


def dump(source: Workload | Program, out: str | None, given: Circumstances, console: Console) -> dict[str, Any]:
    """Write jaxpr (of a model), StableHLO, optimised HLO, launch list and figures; print the table; give the document.

    The folder is ``out`` or ``fusionlab-dump/<program>-<target>``.
    """
    name = source.title if isinstance(source, Workload) else source.name
    folder = Path(out) if out else Path("fusionlab-dump") / f"{name}-{given.target.name}"
    require_writable(folder)
    program = lower(source, given)
    found = measure(source, program, given)
    made = compiled(program, given)
    files = {
        "stablehlo.mlir": program.text,
        f"optimized-{given.target.name}.hlo.txt": made.optimized_hlo,
        f"launches-{given.target.name}.txt": made.thunk_sequence,
        f"figures-{given.target.name}.json": json.dumps(found.to_json(), indent=2) + "\n",
    }
    if isinstance(source, Workload):
        given.progress("dump: writing the jaxpr")
        files["jaxpr.txt"] = jaxpr_text(source)
    files = {name: content for name, content in files.items() if content}
    for name, content in files.items():
        write_whole(folder / name, content)
    print_footprint(found, console)
    console.print(f"written to {folder}: {', '.join(sorted(files))}", soft_wrap=True)
    return {**found.to_json(), "files": [str(folder / name) for name in sorted(files)]}
