"""The launches of a compiled program as a networkx graph: who reads what of whom, and what each costs."""

from __future__ import annotations

import networkx as nx

from fusionlab.codegen.compile import Compiled
from fusionlab.hlo.optimized import Computation, HloModule
from fusionlab.ledger.launch_rows import LaunchRow, launch_rows
from fusionlab.ledger.traffic import reads_of

_VIEWS = ("bitcast", "get-tuple-element", "reshape", "tuple", "copy", "copy-start", "copy-done", "opt-barrier")


def launch_graph(compiled: Compiled, rows: tuple[LaunchRow, ...] | None = None) -> nx.DiGraph:
    """One node per launch site that runs, by the name of its HLO instruction, in XLA's order.

    Node attributes: ``kind`` (``launch``), ``name``, ``computation``, ``loop``, ``phase``, ``stage``, ``role``,
    ``family``, ``launches`` (of all trips), ``trips``, ``flops``, ``bytes``, ``model_us`` (of all trips; -1.0: not
    known), ``scope``, ``source``, ``order``. Edge attribute ``bytes``: what one run reads of the other's result, times
    the reader's trips. Edges are those within one computation, through views and copies.
    """
    found = nx.DiGraph()
    known = [row for row in (launch_rows(compiled) if rows is None else rows) if row.dynamic_launches]
    by_name: dict[str, LaunchRow] = {}
    for row in known:
        by_name.setdefault(row.name, row)
    places = _places(compiled.module)
    for row in by_name.values():
        computation = places[row.name].name if row.name in places else ""
        _add(found, row, computation)
    for name, row in by_name.items():
        if name in places:
            _read(found, compiled.module, places[name], name, row)
    return found


def _add(found: nx.DiGraph, row: LaunchRow, computation: str) -> None:
    found.add_node(
        row.name,
        kind="launch",
        name=row.name,
        computation=computation,
        loop=row.loop,
        phase=row.phase,
        stage=row.stage,
        role=row.role,
        family=row.family,
        launches=row.dynamic_launches,
        trips=row.trip_count,
        flops=row.flops,
        bytes=row.bytes,
        model_us=-1.0 if row.model_us is None else row.model_us,
        scope=row.op_name,
        source=row.source,
        order=found.number_of_nodes(),
    )


def _read(found: nx.DiGraph, module: HloModule, computation: Computation, name: str, row: LaunchRow) -> None:
    for operand, size in reads_of(module, computation, computation.by_name[name]).items():
        for maker in _makers(computation, operand):
            if maker in found and maker != name:
                before = found.get_edge_data(maker, name, {"bytes": 0})["bytes"]
                found.add_edge(maker, name, bytes=before + size * row.trip_count)


def _makers(computation: Computation, name: str) -> list[str]:
    """The instructions that ``name`` is a view or a copy of."""
    pending, made, seen = [name], [], set[str]()
    while pending:
        one = computation.by_name.get(pending.pop())
        if one is None or one.name in seen:
            continue
        seen.add(one.name)
        if one.opcode == "get-tuple-element" and one.operands:
            inner = computation.by_name.get(one.operands[0])
            index = int(one.attributes.get("index", "0"))
            if inner is not None and inner.opcode == "tuple" and index < len(inner.operands):
                pending.append(inner.operands[index])
                continue
        if one.opcode in _VIEWS:
            pending += one.operands
        else:
            made.append(one.name)
    return made


def _places(module: HloModule) -> dict[str, Computation]:
    return {one.name: part for part in module.computations.values() for one in part.instructions}
