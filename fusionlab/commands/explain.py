"""``fusionlab explain``: which fusions XLA refused and why, and what is inside one kernel."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console

from fusionlab.commands.explain_kernel import explain_kernel, xla_times
from fusionlab.commands.facts import Source, make
from fusionlab.errors import InputError
from fusionlab.hlo.flat import flatten
from fusionlab.hlo.program import Program
from fusionlab.hlo.saved import HloFile
from fusionlab.ledger.launch_rows import launch_rows
from fusionlab.ledger.refusals import Refusal, Refusals, by_cause, launches_refused, refusals, xla_estimates
from fusionlab.report.tables import milliseconds
from fusionlab.study import Circumstances


def explain(source: Source, kernel: str | None, refused: int, given: Circumstances, console: Console) -> dict[str, Any]:
    """Print the refusals by cause and the ``refused`` costliest ones; or, with ``kernel``, that kernel's story.

    InputError: XLA wrote no fusion dump (a CPU target, HLO text), or there is no launch called ``kernel``.
    """
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
    document = {
        "name": made.compiled.name,
        "target": made.compiled.target.name,
        "join": _joined(found, ops),
        "xla_estimates": xla_estimates(found.found),
        "dynamic_launches": launches_refused(found.found),
        "causes": by_cause(found.found),
        "refusals": [{**dataclasses.asdict(one), "stablehlo_op": ops.get(one.op_name, "")} for one in found.found],
    }
    _print_causes(document, console)
    if refused:
        _print_refusals(found.found[:refused], len(found.found), ops, console)
    return document


def _no_record(name: str, given: Circumstances) -> InputError:
    return InputError(
        f"{name} on {given.target.name}: XLA kept no record of its fusion decisions here; name a model or a StableHLO "
        "file and a GPU target"
    )


def _ops_by_scope(program: Program | None) -> dict[str, str]:
    """JAX name stack to the StableHLO op lowered under it (the last one: what the primitive's result is)."""
    if program is None:
        return {}
    return {node.scope: node.name for node in flatten(program.parse()).walk()}


def _joined(found: Refusals, ops: Mapping[str, str]) -> dict[str, int]:
    """How much of XLA's record is in the list, and how many refusals name their op, scope and line."""
    return {
        **dataclasses.asdict(found.coverage),
        "with_stablehlo_op": sum(one.op_name in ops for one in found.found),
        "with_scope": sum(bool(one.op_name) for one in found.found),
        "with_source": sum(bool(one.source) for one in found.found),
        "with_stage": sum(bool(one.stage) for one in found.found),
    }


def _print_causes(document: dict[str, Any], console: Console) -> None:
    title = f"{document['name']} on {document['target']}: what XLA refused to fuse, by cause"
    console.print(title, style="bold", soft_wrap=True)
    console.print("boundary ms  refusals  launches  cause", style="bold")
    for group in document["causes"]:
        numbers = f"{milliseconds(group['boundary_us']):>11}  {group['refusals']:>8,}  {group['dynamic_launches']:>8,}"
        console.print(f"{numbers}  {group['cause']}{_weighed(group['xla'])}", soft_wrap=True)
    known = [group["boundary_us"] for group in document["causes"] if group["boundary_us"] is not None]
    join, xla = document["join"], document["xla_estimates"]
    console.print(
        f"boundaries: {milliseconds(sum(known) if known else None)} ms in all, of {document['dynamic_launches']:,} "
        "launches (model: 1 us per launch, and the producer's result written and read once at the target's bandwidth)",
        style="dim",
        soft_wrap=True,
    )
    console.print(
        f"XLA's own estimates: it weighed {xla['refusals_with']} of {join['joined']} refusals"
        f"{_weighed(xla)}; of the other {xla['refusals_without']} it says nothing about time",
        style="dim",
        soft_wrap=True,
    )
    console.print(
        f"joined: {join['joined']} of {join['producers']} refused producers to a launch ({join['merged']} were merged "
        f"with all their readers later, {join['idle']} never run, {join['not_joined']} are not found again); of these "
        f"{join['with_stablehlo_op']} to a StableHLO op, {join['with_scope']} to a scope, {join['with_source']} to a "
        f"source line, {join['with_stage']} to a stage; {join['launches_refused']} of {join['launches']} launch sites "
        "have a refusal on record",
        style="dim",
        soft_wrap=True,
    )


def _weighed(xla: Mapping[str, Any]) -> str:
    if xla["us_lost"] is None:
        return ""
    lost = f"{milliseconds(abs(xla['us_lost']))} ms {'lost' if xla['us_lost'] > 0 else 'saved'} by refusing"
    return f" (XLA: {milliseconds(xla['us_fused'])} ms fused, {milliseconds(xla['us_unfused'])} ms unfused: {lost})"


def _print_refusals(shown: Sequence[Refusal], of: int, ops: Mapping[str, str], console: Console) -> None:
    console.print(f"the {len(shown)} costliest of {of} boundaries", style="bold")
    for one in shown:
        op = ops.get(one.op_name, "") or "?"
        cost = "-" if one.boundary_us is None else f"{milliseconds(one.boundary_us)} ms"
        size = f"{one.result_bytes / 2**20:,.1f} MiB"
        readers = ", ".join(one.consumers[:3]) + (f" and {len(one.consumers) - 3} more" * (len(one.consumers) > 3))
        console.print(
            f"  {cost}  {one.kernel} ({one.dynamic_launches} x {size}) -> {readers or 'nothing'}\n"
            f"      {op} at {one.source or '?'}, stage {one.stage or '?'} {one.role}: {one.op_name}\n"
            f"      {one.cause}{xla_times(one)}",
            soft_wrap=True,
        )
