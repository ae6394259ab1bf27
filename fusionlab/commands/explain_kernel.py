"""``fusionlab explain --kernel``: what is inside one kernel, and why its neighbours are not."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from fusionlab.commands.facts import Made
from fusionlab.errors import unknown
from fusionlab.hlo.optimized import HloModule
from fusionlab.hlo.stages import attribute
from fusionlab.ledger.launch_rows import LaunchRow
from fusionlab.ledger.origins import members
from fusionlab.ledger.refusals import Refusal
from fusionlab.report.tables import milliseconds, print_rows

_SHOWN_MEMBERS = 40


def explain_kernel(
    made: Made,
    name: str,
    rows: Sequence[LaunchRow],
    found: Sequence[Refusal],
    ops: Mapping[str, str],
    console: Console,
) -> dict[str, Any]:
    """Print and give the story of the launch ``name``; InputError with the nearest names when there is none.

    ``ops`` maps a JAX name stack to the StableHLO op lowered under it.
    """
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
    _print(row, inside, before, after, console)
    for note in made.notes:
        console.print(note, style="dim", soft_wrap=True)
    return document


def xla_times(one: Refusal) -> str:
    """XLA's estimates in words, with a space before them; "" where it made none."""
    if one.us_unfused is None or one.us_fused is None:
        return ""
    return f" ({one.us_fused:,.1f} us fused against {one.us_unfused:,.1f} us, per run)"


def _members(module: HloModule, name: str, ops: Mapping[str, str]) -> list[dict[str, str]]:
    """What runs in the launch ``name``; nothing for a launch that is no instruction of the module."""
    every = (one for part in module.computations.values() for one in part.instructions if one.name == name)
    instruction = next(every, None)
    inside = []
    for member in members(module, instruction) if instruction is not None else ():
        if member.opcode in ("parameter", "constant", "bitcast", "get-tuple-element", "tuple"):
            continue
        place, origin = module.source_of(member), attribute(member.op_name)
        inside.append(
            {
                "opcode": member.opcode,
                "shape": str(member.shape),
                "stage": origin.stage,
                "role": origin.role if origin.stage or origin.phase else "",
                "stablehlo_op": ops.get(member.op_name, ""),
                "op_name": member.op_name,
                "source": f"{place[0].rpartition('/')[2]}:{place[1]}" if place else "",
            }
        )
    return inside


def _to_json(one: Refusal, ops: Mapping[str, str]) -> dict[str, Any]:
    return {**dataclasses.asdict(one), "stablehlo_op": ops.get(one.op_name, "")}


def _print(
    row: LaunchRow,
    inside: Sequence[Mapping[str, str]],
    before: Sequence[Refusal],
    after: Sequence[Refusal],
    console: Console,
) -> None:
    time = "-" if row.model_us is None else f"{milliseconds(row.model_us)} ms ({row.model_source})"
    console.print(
        f"{row.name}: {row.family}, {row.dynamic_launches} launches, {row.flops / 1e9:,.3f} GFLOP, "
        f"{row.bytes / 2**20:,.1f} MiB, {row.intensity_flop_per_byte:,.2f} FLOP/byte, {time}",
        style="bold",
        soft_wrap=True,
    )
    shown = [[m["opcode"], m["shape"], f"{m['stage']} {m['role']}", m["source"]] for m in inside[:_SHOWN_MEMBERS]]
    print_rows(f"inside: {len(inside)} ops", ("op", "shape", "stage and role", "source"), shown, console, words=4)
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
