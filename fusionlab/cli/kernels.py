"""``fusionlab kernels``: what the code of each kernel takes and does, for a GPU that may be absent."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import load_facts, make
from fusionlab.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.codegen.compile import Compiled
    from fusionlab.facts.kernel_facts import KernelFacts
    from fusionlab.measure.calibration import WhatIf


@click.command("kernels")
@options.source
@options.target
@click.option("--kernel", help="All facts of this kernel (its HLO or PTX name), with its code.")
@click.option("--what-if", help="The same kernels at other rates: bandwidth_gb_s=4800,sms=144,clock_ghz=2.")
@click.option("--top", default=12, show_default=True, type=click.IntRange(min=0), help="How many to list; 0: all.")
@options.cache
@options.verb
def command(
    source: dict[str, Any], kernel: str | None, what_if: str | None, top: int, console: Console, where: dict[str, Any]
) -> dict[str, Any]:
    """Show which kernels hold the distance from the floor."""
    from fusionlab.facts.kernel_facts import KernelFacts

    other = None if what_if is None else _rates(what_if)
    loaded, given, _ = load_facts(source, **where)
    made = make(loaded, given, ptx=True)
    found = KernelFacts.of(made.compiled, made.notes)
    document = _print_all(found, top, console) if kernel is None else _print_one(found, kernel, console)
    return document if other is None else {**document, "what_if": _print_what_if(made.compiled, other, console)}


def _rates(text: str) -> WhatIf:
    """Figures of other hardware that the model by the code takes; InputError for others."""
    from fusionlab.measure.calibration import parse_what_if

    other = parse_what_if(text)
    if other.target is not None:
        raise InputError(f"--what-if {text}: another GPU has other code; compile for it: --target {other.target.name}")
    if other.tflops is not None or other.launch_us is not None:
        raise InputError(f"--what-if {text}: the rates of kernels are bandwidth_gb_s, sms and clock_ghz")
    return other


def _print_what_if(compiled: Compiled, other: WhatIf, console: Console) -> dict[str, Any]:
    from fusionlab.codegen.targets import with_rates
    from fusionlab.facts.kernel_facts import KernelFacts, what_if_words

    target = with_rates(
        compiled.target,
        f"{compiled.target.name} with {other.label}",
        bandwidth_gb_s=other.bandwidth_gb_s,
        sms=other.sms,
        clock_ghz=other.clock_ghz,
    )
    plain = replace(compiled, estimates_are_of_target=False)  # XLA's estimates are of the target's own rates alone
    now, then = (KernelFacts.of(one) for one in (plain, replace(plain, target=target)))
    console.print(what_if_words(now, then), soft_wrap=True, markup=False)
    order = now.with_other(then)
    return {
        "label": other.label,
        "now_us": now.model_us,
        "model_us": then.model_us,
        "model_error": then.model_error,
        "order": order.order if order else None,
        "apart": order.apart if order else None,
        "needed": order.needed if order else None,
    }


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
