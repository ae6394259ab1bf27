"""``fusionlab dump``: lower and compile one program, and write all compiler output to files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import circumstances, load_source
from fusionlab.files import require_writable, write_whole
from fusionlab.workload import Workload

if TYPE_CHECKING:
    from rich.console import Console


@click.command("dump")
@options.source
@options.target
@click.option("--out", help="Folder to write into.  [default: fusionlab-dump/<program>-<target>]")
@options.cache
@options.verb
def command(source: dict[str, Any], out: str | None, console: Console, where: dict[str, Any]) -> dict[str, Any]:
    """Compile a program, and write all that the compiler saw."""
    from fusionlab.hlo.lowering import jaxpr_text
    from fusionlab.ledger.ledger import thunk_text
    from fusionlab.report.tables.programs import print_footprint
    from fusionlab.study import compiled, lower, measure

    loaded = load_source(**source, target=where["target"])
    given = circumstances(loaded, **where)
    name = loaded.title if isinstance(loaded, Workload) else loaded.name
    folder = Path(out) if out else Path("fusionlab-dump") / f"{name}-{given.target.name}"
    require_writable(folder)
    program = lower(loaded, given)
    found = measure(loaded, program, given)
    made = compiled(program, given)
    files = {
        "stablehlo.mlir": program.text,
        f"optimized-{given.target.name}.hlo.txt": made.optimized_hlo,
        f"launches-{given.target.name}.txt": thunk_text(made),
        f"figures-{given.target.name}.json": json.dumps(found.to_json(), indent=2) + "\n",
    }
    if isinstance(loaded, Workload):
        given.progress("dump: writing the jaxpr")
        files["jaxpr.txt"] = jaxpr_text(loaded)
    files = {name: content for name, content in files.items() if content}
    for name, content in files.items():
        write_whole(folder / name, content)
    print_footprint(found, console)
    console.print(f"written to {folder}: {', '.join(sorted(files))}", soft_wrap=True)
    return {**found.to_json(), "files": [str(folder / name) for name in sorted(files)]}
