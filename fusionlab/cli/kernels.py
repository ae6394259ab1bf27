"""``fusionlab kernels``: what the code of each kernel takes and does, for a GPU that may be absent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import load_facts, make

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.facts.kernel_facts import KernelFacts


@click.command("kernels")
@options.source
@options.target
@click.option("--kernel", help="All facts of this kernel (its HLO or PTX name), with its code.")
@click.option("--top", default=12, show_default=True, type=click.IntRange(min=0), help="How many to list; 0: all.")
@options.cache
@options.verb
def command(
    source: dict[str, Any], kernel: str | None, top: int, console: Console, where: dict[str, Any]
) -> dict[str, Any]:
    """Show which kernels hold the distance from the floor."""
    from fusionlab.facts.kernel_facts import KernelFacts

    loaded, given, _ = load_facts(source, **where)
    made = make(loaded, given, ptx=True)
    found = KernelFacts.of(made.compiled, made.notes)
    return _print_all(found, top, console) if kernel is None else _print_one(found, kernel, console)


def _print_all(found: KernelFacts, top: int, console: Console) -> dict[str, Any]:
    from fusionlab.report.tables import note

    console.print(found.verdict, style="bold", soft_wrap=True, markup=False)
    console.print(found.limit, soft_wrap=True, markup=False)
    found.table(top).print(console)
    for line in found.over_fusion_lines[: top or None]:
        console.print(f"over-fused: {line}", soft_wrap=True, markup=False, highlight=False)
    if top and len(found.launches) > top:
        note(console, f"{len(found.launches) - top} more; --top 0 shows all, --kernel NAME one with its code")
    for line in found.notes:
        note(console, line)
    return found.to_dict()


def _print_one(found: KernelFacts, name: str, console: Console) -> dict[str, Any]:
    from fusionlab.facts.kernel_facts import figures
    from fusionlab.report.tables import note, print_rows

    row = found.kernel(name)
    console.print(
        f"{row.name} on {found.target}, from {row.launch.op} at {row.launch.source}", style="bold", markup=False
    )
    for one in found.findings[row.name]:
        place = f" ({one.place})" if one.place else ""
        console.print(f"{one.kind}: {one.words}{place}", soft_wrap=True, markup=False)
    print_rows("", ("fact", "value"), figures(row), console, words=2)
    code, sass = found.code(name), found.sass(name)
    console.print("PTX", style="bold")
    console.print(code, soft_wrap=True, markup=False, highlight=False)
    if sass is not None:
        console.print("SASS", style="bold")
        console.print(sass, soft_wrap=True, markup=False, highlight=False)
    for line in found.notes:
        note(console, line)
    return {**found.record(row), "ptx": code, "sass": sass, "notes": list(found.notes)}
