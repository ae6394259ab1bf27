"""``fusionlab explain``: the fusions that XLA refused and why, and the content of one kernel."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import CompiledSource, load_facts, make
from fusionlab.errors import InputError, unknown

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.cli.sources import Source
    from fusionlab.facts.fusion_facts import FusionFacts
    from fusionlab.hlo.optimised.parser import HloModule
    from fusionlab.ledger.launch_rows import LaunchRow
    from fusionlab.ledger.refusals import FusionRefusal
    from fusionlab.study import Circumstances

_SHOWN_MEMBERS = 40


@click.command("explain")
@options.source
@options.targets
@click.option("--kernel", help="What is inside this kernel (its HLO name) and why its neighbours are not.")
@click.option("--refused", default=10, show_default=True, type=click.IntRange(min=0), help="How many refusals to list.")
@click.option("--over-fused", is_flag=True, help="What XLA fused at a loss: read from the code of kernels.")
@options.verbose
@options.cache
@options.verb
def command(
    source: dict[str, Any],
    kernel: str | None,
    refused: int,
    over_fused: bool,
    verbose: bool,
    console: Console,
    where: dict[str, Any],
) -> dict[str, Any]:
    """Show why XLA did not fuse: causes, source lines and costs."""
    if over_fused and kernel is not None:
        raise InputError("--over-fused lists the kernels of the whole program: leave out --kernel")
    loaded, given, _ = load_facts(source, **where)
    if over_fused:
        return explain_over_fused(loaded, given, console)
    return explain(loaded, kernel, refused, given, console, verbose=verbose)


def explain_over_fused(source: Source, given: Circumstances, console: Console) -> dict[str, Any]:
    """Print the kernels that would take less in two parts, by the model of time.

    InputError: there is no code of kernels, for the CPU and of HLO text.
    """
    from fusionlab.facts.kernel_facts import KernelFacts
    from fusionlab.report.tables import note

    made = make(source, given, ptx=True)
    found = KernelFacts.of(made.compiled, made.notes)
    console.print(found.over_fusion_verdict, style="bold", soft_wrap=True, markup=False)
    for line in found.over_fusion_lines:
        console.print(line, soft_wrap=True, markup=False, highlight=False)
    for line in found.notes:
        note(console, line)
    fields = found.fields()
    return {name: fields[name] for name in ("name", "target", "model_us", "model_error", "over_fusions", "notes")}


def explain(
    source: Source,
    kernel: str | None,
    refused: int,
    given: Circumstances,
    console: Console,
    *,
    verbose: bool = False,
) -> dict[str, Any]:
    """Print the refusals by cause and the ``refused`` costliest ones; or, with ``kernel``, the details of that kernel.

    InputError: XLA's text has no record of fusions, or there is no launch called ``kernel``.
    """
    from fusionlab.facts.fusion_facts import FusionFacts, no_record, ops_by_scope
    from fusionlab.hlo.optimised.saved import HloFile
    from fusionlab.ledger.launch_rows import launch_rows
    from fusionlab.ledger.refusals import refusals

    if kernel is None and isinstance(source, HloFile):
        raise no_record(source.name, given.target.name)
    made = make(source, given, fusions=True)
    if kernel is not None:
        rows = launch_rows(made.compiled)
        known = refusals(made.compiled, rows)
        return explain_kernel(made, kernel, rows, known.found if known else (), ops_by_scope(made.program), console)
    found = FusionFacts.of(made.compiled, made.program)
    document = found.to_dict()
    _print_causes(found, document if verbose else None, console)
    if refused:
        _print_refusals(found, refused, console)
    return document


def _print_causes(found: FusionFacts, document: dict[str, Any] | None, console: Console) -> None:
    """The verdict and the causes; with ``document``, the model and the coverage of XLA's record."""
    from fusionlab.report.tables import note
    from fusionlab.report.tables.refusals import cause_table, refusal_notes

    console.print(found.verdict, style="bold", soft_wrap=True, markup=False)
    if found.causes:
        cause_table(found.causes).print(console)
    for line in refusal_notes(document) if document else ():
        note(console, line)


def _print_refusals(found: FusionFacts, most: int, console: Console) -> None:
    from fusionlab.hlo.stages import LEGEND
    from fusionlab.report.tables import note
    from fusionlab.report.tables.refusals import refusal_lines

    shown, of = found.refusals.found[:most], len(found.refusals.found)
    if not of:
        return
    console.print(f"the {len(shown)} costliest of {of} boundaries", style="bold")
    for one in shown:
        for line in refusal_lines(one, found.ops, staged=found.staged):
            console.print(line, soft_wrap=True)
    if found.staged:
        note(console, LEGEND)


def explain_kernel(
    made: CompiledSource,
    name: str,
    rows: Sequence[LaunchRow],
    found: Sequence[FusionRefusal],
    ops: Mapping[str, str],
    console: Console,
) -> dict[str, Any]:
    """Print and return the details of the launch ``name``; InputError with the nearest names when there is none.

    ``ops`` maps a JAX name stack to the StableHLO op lowered under it.
    """
    from fusionlab.facts.fusion_facts import refusal_json
    from fusionlab.ledger.views import is_staged
    from fusionlab.report.tables import note

    row = next((one for one in rows if one.name == name), None)
    if row is None:
        raise unknown("kernel", name, sorted({one.name for one in rows}))
    inside = _members(made.compiled.module, name, ops)
    after = [one for one in found if one.kernel == name]
    before = [one for one in found if name in one.consumers]
    document = {
        "name": made.compiled.name,
        "target": made.compiled.target.name,
        "kernel": row.to_json(),
        "members": inside,
        "not_fused_with_readers": [refusal_json(one, ops) for one in after],
        "not_fused_with_producers": [refusal_json(one, ops) for one in before],
        "notes": list(made.notes),
    }
    _print_kernel(row, inside, before, after, is_staged(rows), console)
    for line in made.notes:
        note(console, line)
    return document


def _members(module: HloModule, name: str, ops: Mapping[str, str]) -> list[dict[str, str]]:
    """The instructions in the launch ``name``; empty if the launch is no instruction of the module."""
    from fusionlab.hlo.name_stacks import read_name
    from fusionlab.ledger.dataflow import members
    from fusionlab.ledger.origins import Origins

    every = (one for part in module.computations.values() for one in part.instructions if one.name == name)
    instruction, origins = next(every, None), Origins(module)
    inside = []
    for member in members(module, instruction) if instruction is not None else ():
        if member.opcode in ("parameter", "constant", "bitcast", "get-tuple-element", "tuple"):
            continue
        origin, stack = origins.of_members(member), read_name(member.op_name)
        inside.append(
            {
                "opcode": member.opcode,
                "shape": str(member.shape),
                "stage": origin.stage,
                "role": origin.role,
                "scope": stack.scope,
                "op": stack.op,
                "transform": stack.transform if member.op_name else "",
                "stablehlo_op": ops.get(member.op_name, ""),
                "op_name": member.op_name,
                "source": origin.source,
            }
        )
    return inside


def _print_kernel(
    row: LaunchRow,
    inside: Sequence[Mapping[str, str]],
    before: Sequence[FusionRefusal],
    after: Sequence[FusionRefusal],
    staged: bool,
    console: Console,
) -> None:
    from fusionlab.bytesize import size_words
    from fusionlab.hlo.stages import LEGEND
    from fusionlab.ledger.origins import BY
    from fusionlab.ledger.views import place
    from fusionlab.report.tables import note, print_rows
    from fusionlab.report.tables.refusals import xla_times
    from fusionlab.units import counted, flop_words, time_words

    time = "-" if row.model_us is None else f"{time_words(row.model_us)} ({row.model_source})"
    per_byte = row.intensity_flop_per_byte
    intensity = f"{per_byte:,.0f}" if per_byte >= 100 else f"{per_byte:.2g}"
    console.print(
        f"{row.name}: {row.family}, {counted(row.dynamic_launches, 'launch', 'launches')}, {flop_words(row.flops)}, "
        f"{size_words(row.bytes)}, {intensity} FLOP/byte, {time}",
        style="bold",
        soft_wrap=True,
    )
    if row.attributed_by:
        at = ", ".join(filter(None, (place(row, staged), row.transform, row.source)))
        of = f", {row.stage_share:.0%} of it" if row.attributed_by == "members" else ""
        console.print(f"from {at} (by {BY[row.attributed_by]}{of})", soft_wrap=True, markup=False)
    for what, every in (("scopes", row.scopes), ("source lines", row.sources)):
        if len(every) > 1:
            console.print(f"{what}, heaviest first: {', '.join(every)}", soft_wrap=True, markup=False)
    columns = ("stage", "role") if staged else ("scope", "transform")
    shown = [
        [m["opcode"], m["shape"], " ".join(m[one] for one in columns), m["source"]] for m in inside[:_SHOWN_MEMBERS]
    ]
    heads = ("op", "shape", " and ".join(columns), "source")
    print_rows(f"inside: {len(inside)} ops", heads, shown, console, words=4)
    if staged:
        note(console, LEGEND)
    if len(inside) > _SHOWN_MEMBERS:
        console.print(f"and {len(inside) - _SHOWN_MEMBERS} more (--json lists them)")
    for one in before:
        console.print(f"producer {one.kernel} is not in it: {one.cause}{xla_times(one)}", soft_wrap=True)
    for one in after:
        readers = ", ".join(one.consumers) or "nothing"
        merged = f"; {one.merged_readers} of its readers were merged into it later" * bool(one.merged_readers)
        console.print(f"it is not in its readers ({readers}){merged}: {one.cause}{xla_times(one)}", soft_wrap=True)
    if not before and not after:
        console.print("XLA's record says nothing about its neighbours")
