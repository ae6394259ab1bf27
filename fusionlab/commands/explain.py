"""``fusionlab explain``: which fusions XLA refused and why, and what is inside one kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from fusionlab.commands.facts import Made, Source, make
from fusionlab.errors import InputError, unknown
from fusionlab.hlo.flat import flatten
from fusionlab.hlo.program import Program
from fusionlab.hlo.stages import attribute
from fusionlab.measure.launch_rows import LaunchRow, launch_rows
from fusionlab.measure.origins import members
from fusionlab.measure.refusals import Refusal, refusals
from fusionlab.report.tables import print_rows
from fusionlab.study import Circumstances

_SHOWN_MEMBERS = 40


def explain(source: Source, kernel: str | None, refused: int, given: Circumstances, console: Console) -> dict[str, Any]:
    """Print the refusals by cause and the ``refused`` costliest ones; or, with ``kernel``, that kernel's story.

    InputError: XLA wrote no fusion dump (a CPU target, HLO text), or there is no launch called ``kernel``.
    """
    made = make(source, given)
    rows = launch_rows(made.compiled)
    found = refusals(made.compiled, rows)
    ops = _ops_by_scope(made.program)
    if kernel is not None:
        return _one_kernel(made, kernel, rows, found, ops, console)
    if not made.compiled.priority_fusion:
        raise InputError(
            f"{made.compiled.name} on {given.target.name}: XLA kept no record of its fusion decisions here; name a "
            "model or a StableHLO file and a GPU target"
        )
    groups = _groups(found)
    document = {
        "name": made.compiled.name,
        "target": made.compiled.target.name,
        "causes": groups,
        "refusals": [_refusal_json(one, ops) for one in found],
    }
    _print_causes(document, console)
    if refused:
        _print_refusals(found[:refused], len(found), ops, console)
    return document


def _groups(found: Sequence[Refusal]) -> list[dict[str, Any]]:
    causes: dict[str, list[Refusal]] = {}
    for one in found:
        causes.setdefault(one.cause, []).append(one)
    groups = [
        {
            "cause": cause,
            "kernels": len(same),
            "dynamic_launches": sum(one.dynamic_launches for one in same),
            "boundary_us": sum(one.boundary_us or 0.0 for one in same),
            "xla_us_unfused": _weighed([(one.us_unfused, one.dynamic_launches) for one in same]),
            "xla_us_fused": _weighed([(one.us_fused, one.dynamic_launches) for one in same]),
        }
        for cause, same in causes.items()
    ]
    return sorted(groups, key=lambda group: -float(group["boundary_us"]))


def _weighed(pairs: Sequence[tuple[float | None, int]]) -> float | None:
    known = [us * runs for us, runs in pairs if us is not None]
    return sum(known) if known else None


def _refusal_json(one: Refusal, ops: Mapping[str, str]) -> dict[str, Any]:
    return {**dataclasses.asdict(one), "stablehlo_op": ops.get(one.op_name, "")}


def _ops_by_scope(program: Program | None) -> dict[str, str]:
    """JAX name stack to the StableHLO op lowered under it (the last one: what the primitive's result is)."""
    if program is None:
        return {}
    return {node.scope: node.name for node in flatten(program.parse()).walk()}


def _print_causes(document: dict[str, Any], console: Console) -> None:
    total = sum(group["boundary_us"] for group in document["causes"])
    title = f"{document['name']} on {document['target']}: what XLA refused to fuse, by cause"
    console.print(title, style="bold", soft_wrap=True)
    console.print("boundary ms  kernels  launches  cause", style="bold")
    for group in document["causes"]:
        numbers = f"{group['boundary_us'] / 1e3:>11,.2f}  {group['kernels']:>7,}  {group['dynamic_launches']:>8,}"
        weighed = ""
        if group["xla_us_fused"] is not None:
            weighed = f" (XLA: {_ms(group['xla_us_fused'])} ms fused against {_ms(group['xla_us_unfused'])} ms)"
        console.print(f"{numbers}  {group['cause']}{weighed}", soft_wrap=True)
    console.print(
        f"boundaries: {total / 1e3:,.2f} ms in all (model: 1 us per launch, and the producer's result written and read "
        "once at the target's bandwidth); XLA's own estimates, of producer with readers, where it weighed a fusion",
        style="dim",
        soft_wrap=True,
    )


def _print_refusals(shown: Sequence[Refusal], of: int, ops: Mapping[str, str], console: Console) -> None:
    console.print(f"the {len(shown)} costliest of {of} boundaries", style="bold")
    for one in shown:
        op = ops.get(one.op_name, "") or "?"
        cost = "-" if one.boundary_us is None else f"{one.boundary_us / 1e3:,.2f} ms"
        size = f"{one.result_bytes / 2**20:,.1f} MiB"
        readers = ", ".join(one.consumers[:3]) + (f" and {len(one.consumers) - 3} more" * (len(one.consumers) > 3))
        console.print(
            f"  {cost}  {one.kernel} ({one.dynamic_launches} x {size}) -> {readers or 'nothing'}\n"
            f"      {op} at {one.source or '?'}, stage {one.stage or '?'} {one.role}: {one.op_name}\n"
            f"      {one.cause}{_weights(one)}",
            soft_wrap=True,
        )


def _one_kernel(
    made: Made,
    name: str,
    rows: Sequence[LaunchRow],
    found: Sequence[Refusal],
    ops: Mapping[str, str],
    console: Console,
) -> dict[str, Any]:
    row = next((one for one in rows if one.name == name), None)
    if row is None:
        raise unknown("kernel", name, sorted({one.name for one in rows}))
    module = made.compiled.module
    instruction = next(one for part in module.computations.values() for one in part.instructions if one.name == name)
    inside = []
    for member in members(module, instruction):
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
    after = [one for one in found if one.kernel == name]
    before = [one for one in found if name in one.consumers]
    document = {
        "name": made.compiled.name,
        "target": made.compiled.target.name,
        "kernel": row.to_json(),
        "members": inside,
        "not_fused_with_readers": [_refusal_json(one, ops) for one in after],
        "not_fused_with_producers": [_refusal_json(one, ops) for one in before],
    }
    _print_kernel(row, inside, before, after, console)
    return document


def _print_kernel(
    row: LaunchRow,
    inside: Sequence[Mapping[str, str]],
    before: Sequence[Refusal],
    after: Sequence[Refusal],
    console: Console,
) -> None:
    time = "-" if row.model_us is None else f"{row.model_us / 1e3:,.3f} ms ({row.model_source})"
    console.print(
        f"{row.name}: {row.family}, {row.dynamic_launches} launches, {row.flops / 1e9:,.3f} GFLOP, "
        f"{row.bytes / 2**20:,.1f} MiB, {row.intensity_flop_per_byte:,.2f} FLOP/byte, {time}",
        style="bold",
        soft_wrap=True,
    )
    shown = [[m["opcode"], m["shape"], f"{m['stage']} {m['role']}", m["source"]] for m in inside[:_SHOWN_MEMBERS]]
    print_rows(f"inside: {len(inside)} ops", ("op", "shape", "stage and role", "source"), shown, console)
    if len(inside) > _SHOWN_MEMBERS:
        console.print(f"and {len(inside) - _SHOWN_MEMBERS} more (--json lists them)")
    for one in before:
        console.print(f"producer {one.kernel} is not in it: {one.cause}{_weights(one)}", soft_wrap=True)
    for one in after:
        readers = ", ".join(one.consumers) or "nothing"
        console.print(f"it is not in its readers ({readers}): {one.cause}{_weights(one)}", soft_wrap=True)
    if not before and not after:
        console.print("XLA's record says nothing about its neighbours")


def _weights(one: Refusal) -> str:
    if one.us_unfused is None or one.us_fused is None:
        return ""
    return f" ({one.us_fused:,.1f} us fused against {one.us_unfused:,.1f} us, per run)"


def _ms(us: float | None) -> str:
    return "-" if us is None else f"{us / 1e3:,.2f}"
