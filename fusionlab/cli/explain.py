"""``fusionlab explain``: the fusions that XLA refused and why, and the content of one kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from fusionlab.cli import options
from fusionlab.cli.sources import CompiledSource, load_facts, make
from fusionlab.errors import InputError, unknown

if TYPE_CHECKING:
    from rich.console import Console

    from fusionlab.cli.sources import Source
    from fusionlab.hlo.optimised.parser import HloModule
    from fusionlab.hlo.program import Program
    from fusionlab.ledger.launch_rows import LaunchRow
    from fusionlab.ledger.refusals import FusionRefusal
    from fusionlab.study import Circumstances

_SHOWN_MEMBERS = 40


@click.command("explain")
@options.source
@options.targets
@click.option("--kernel", help="What is inside this kernel (its HLO name) and why its neighbours are not.")
@click.option("--refused", default=10, show_default=True, type=click.IntRange(min=0), help="How many refusals to list.")
@options.cache
@options.verb
def command(
    source: dict[str, Any], kernel: str | None, refused: int, console: Console, where: dict[str, Any]
) -> dict[str, Any]:
    """Why XLA did not fuse: refusals by cause, with scope, source line and what the boundary costs."""
    loaded, given, _ = load_facts(source, **where)
    return explain(loaded, kernel, refused, given, console)


def explain(source: Source, kernel: str | None, refused: int, given: Circumstances, console: Console) -> dict[str, Any]:
    """Print the refusals by cause and the ``refused`` costliest ones; or, with ``kernel``, the details of that kernel.

    InputError: XLA wrote no fusion dump (a CPU target, HLO text), or there is no launch called ``kernel``.
    """
    from fusionlab.hlo.optimised.saved import HloFile
    from fusionlab.ledger.launch_rows import launch_rows
    from fusionlab.ledger.refusals import by_cause, launches_refused, refusals, xla_estimates
    from fusionlab.ledger.views import is_staged

    if kernel is None and (given.target.kind == "cpu" or isinstance(source, HloFile)):
        raise _no_record(source.name, given)
    made = make(source, given)
    rows = launch_rows(made.compiled)
    found = refusals(made.compiled, rows)
    ops = _ops_by_scope(made.program)
    if kernel is not None:
        return explain_kernel(made, kernel, rows, found.found if found else (), ops, console)
    if found is None:
        raise _no_record(made.compiled.name, given)
    document: dict[str, Any] = {
        "name": made.compiled.name,
        "target": made.compiled.target.name,
        "join": {
            **dataclasses.asdict(found.coverage),
            "with_stablehlo_op": sum(one.op_name in ops for one in found.found),
            "with_scope": sum(bool(one.op_name) for one in found.found),
            "with_source": sum(bool(one.source) for one in found.found),
            "with_stage": sum(bool(one.stage) for one in found.found),
        },
        "staged": is_staged(rows),
        "xla_estimates": xla_estimates(found.found),
        "dynamic_launches": launches_refused(found.found),
        "causes": by_cause(found.found),
        "refusals": [_to_json(one, ops) for one in found.found],
    }
    _print_causes(document, console)
    if refused:
        _print_refusals(found.found[:refused], len(found.found), ops, document["staged"], console)
    return document


def _no_record(name: str, given: Circumstances) -> InputError:
    return InputError(
        f"{name} on {given.target.name}: XLA kept no record of its fusion decisions here; name a model or a StableHLO "
        "file and a GPU target"
    )


def _ops_by_scope(program: Program | None) -> dict[str, str]:
    """JAX name stack to the StableHLO op lowered under it (the last one, which makes the primitive's result)."""
    from fusionlab.hlo.program import program_view

    if program is None:
        return {}
    return {node.scope: node.name for node in program_view(program).walk()}


def _print_causes(document: dict[str, Any], console: Console) -> None:
    from fusionlab.report.tables import milliseconds, note

    title = f"{document['name']} on {document['target']}: what XLA refused to fuse, by cause"
    console.print(title, style="bold", soft_wrap=True)
    console.print("boundary ms  refusals  launches  cause", style="bold")
    for group in document["causes"]:
        numbers = f"{milliseconds(group['boundary_us']):>11}  {group['refusals']:>8,}  {group['dynamic_launches']:>8,}"
        console.print(f"{numbers}  {group['cause']}{_weighed(group['xla'])}", soft_wrap=True)
    known = [group["boundary_us"] for group in document["causes"] if group["boundary_us"] is not None]
    join, xla = document["join"], document["xla_estimates"]
    stages = f", {join['with_stage']} to a stage" if document["staged"] else ""
    note(
        console,
        f"boundaries: {milliseconds(sum(known) if known else None)} ms in all, of {document['dynamic_launches']:,} "
        "launches (model: 1 us per launch, and the producer's result written and read once at the target's bandwidth)",
    )
    note(
        console,
        f"XLA's own estimates: it weighed {xla['refusals_with']} of {join['joined']} refusals"
        f"{_weighed(xla)}; of the other {xla['refusals_without']} it says nothing about time",
    )
    note(
        console,
        f"joined: {join['joined']} of {join['producers']} refused producers to a launch ({join['merged']} were merged "
        f"with all their readers later, {join['idle']} never run, {join['not_joined']} are not found again); of these "
        f"{join['with_stablehlo_op']} to a StableHLO op, {join['with_scope']} to a scope, {join['with_source']} to a "
        f"source line{stages}; {join['launches_refused']} of {join['launches']} launch sites "
        "have a refusal on record",
    )


def _weighed(xla: Mapping[str, Any]) -> str:
    from fusionlab.report.tables import milliseconds

    if xla["us_lost"] is None:
        return ""
    lost = f"{milliseconds(abs(xla['us_lost']))} ms {'lost' if xla['us_lost'] > 0 else 'saved'} by refusing"
    return f" (XLA: {milliseconds(xla['us_fused'])} ms fused, {milliseconds(xla['us_unfused'])} ms unfused: {lost})"


def _print_refusals(
    shown: Sequence[FusionRefusal], of: int, ops: Mapping[str, str], staged: bool, console: Console
) -> None:
    from fusionlab.hlo.stages import LEGEND
    from fusionlab.report.tables import milliseconds, note

    console.print(f"the {len(shown)} costliest of {of} boundaries", style="bold")
    for one in shown:
        op = ops.get(one.op_name, "") or one.op or "?"
        where = f"stage {one.stage or '?'} {one.role}" if staged else f"{one.scope or '?'}, {one.transform or '?'}"
        cost = "-" if one.boundary_us is None else f"{milliseconds(one.boundary_us)} ms"
        size = f"{one.result_bytes / 2**20:,.1f} MiB"
        readers = ", ".join(one.consumers[:3]) + (f" and {len(one.consumers) - 3} more" * (len(one.consumers) > 3))
        console.print(
            f"  {cost}  {one.kernel} ({one.dynamic_launches} x {size}) -> {readers or 'nothing'}\n"
            f"      {op} at {one.source or '?'}, {where}: {one.op_name}\n"
            f"      {one.cause}{xla_times(one)}",
            soft_wrap=True,
        )
    if staged:
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
        "not_fused_with_readers": [_to_json(one, ops) for one in after],
        "not_fused_with_producers": [_to_json(one, ops) for one in before],
        "notes": list(made.notes),
    }
    _print_kernel(row, inside, before, after, is_staged(rows), console)
    for line in made.notes:
        note(console, line)
    return document


def xla_times(one: FusionRefusal) -> str:
    """XLA's estimates in words, with a space before them; "" where it made none."""
    if one.us_unfused is None or one.us_fused is None:
        return ""
    return f" ({one.us_fused:,.1f} us fused against {one.us_unfused:,.1f} us, per run)"


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


def _to_json(one: FusionRefusal, ops: Mapping[str, str]) -> dict[str, Any]:
    return {**dataclasses.asdict(one), "stablehlo_op": ops.get(one.op_name, "")}


def _print_kernel(
    row: LaunchRow,
    inside: Sequence[Mapping[str, str]],
    before: Sequence[FusionRefusal],
    after: Sequence[FusionRefusal],
    staged: bool,
    console: Console,
) -> None:
    from fusionlab.hlo.stages import LEGEND
    from fusionlab.ledger.origins import BY
    from fusionlab.ledger.views import place
    from fusionlab.report.tables import milliseconds, note, print_rows

    time = "-" if row.model_us is None else f"{milliseconds(row.model_us)} ms ({row.model_source})"
    console.print(
        f"{row.name}: {row.family}, {row.dynamic_launches} launches, {row.flops / 1e9:,.3f} GFLOP, "
        f"{row.bytes / 2**20:,.1f} MiB, {row.intensity_flop_per_byte:,.2f} FLOP/byte, {time}",
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
