"""A program in the study document: its ops by group, the flows between them, and what each pass changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from fusionlab.hlo.clusters import op_clusters
from fusionlab.hlo.diff.lines import Names
from fusionlab.hlo.diff.numbering import Digests
from fusionlab.hlo.diff.records import Hunk, ModuleDiff, OpLine
from fusionlab.hlo.program import Program
from fusionlab.report.document.lines import Lines
from fusionlab.report.scope_tree import Group, ScopeTree, scope_tree

OP_COLUMNS = ("line", "group", "family", "phase", "stage", "role", "runs", "flops", "bytes", "unmodelled")
FLOW_KINDS = ("data", "residual", "carried")
_MOST_CLUSTERS = 30


@dataclass(frozen=True)
class Viewed:
    """A program with its view, and the names that its values have in the diffs."""

    program: Program
    view: Digests
    names: Names

    @cached_property
    def tree(self) -> ScopeTree:
        """Its levels of detail."""
        return scope_tree(self.view.flat)

    @cached_property
    def ops_of_scopes(self) -> dict[str, list[int]]:
        """Name stack to the positions of its ops among the program's, as ``program_document`` counts them."""
        found: dict[str, list[int]] = {}
        for position, leaf in enumerate(self.tree.leaves):
            if leaf.node.scope:
                found.setdefault(leaf.node.scope, []).append(position)
        return found


def program_document(viewed: Viewed, lines: Lines) -> dict[str, Any]:
    """``groups``, ``ops`` (rows of OP_COLUMNS) and ``flows`` ([source op, target op, bytes, kind], -1: an argument).

    FLOPs and bytes are of all runs (model, nothing fused); private calls are inlined.
    """
    program, tree = viewed.program, viewed.tree
    ops = [
        [
            lines.of_node(leaf.node, viewed.view, viewed.names),
            leaf.group,
            leaf.family,
            leaf.attribution.phase,
            leaf.attribution.stage,
            leaf.attribution.role,
            leaf.runs,
            leaf.flops,
            leaf.bytes,
            int(leaf.unmodelled),
        ]
        for leaf in tree.leaves
    ]
    return {
        "name": program.name,
        "stablehlo_ops": program.ops,
        "platform": program.platform,
        "inputs": [str(type_) for type_ in program.inputs],
        "outputs": [str(type_) for type_ in program.outputs],
        "groups": [_group(group, viewed, lines) for group in tree.groups],
        "ops": {"columns": list(OP_COLUMNS), "rows": ops},
        "flow_kinds": list(FLOW_KINDS),
        "flows": [[flow.source, flow.target, flow.bytes, FLOW_KINDS.index(flow.kind)] for flow in tree.flows],
        "returns": _returns(viewed),
        "clusters": _clusters(viewed),
    }


def _group(group: Group, viewed: Viewed, lines: Lines) -> dict[str, Any]:
    found: dict[str, Any] = {
        "label": group.label,
        "kind": group.kind,
        "parent": group.parent,
        "stage": group.stage,
        "role": group.role,
        "ops": group.ops,
        "flops": group.flops,
        "bytes": group.bytes,
        "unmodelled": group.unmodelled,
        "families": dict(sorted(group.family_bytes.items(), key=lambda item: -item[1])),
    }
    if group.kind == "loop":
        found["trips"] = group.trips
    if group.kind == "repeat":
        found |= {"repeats": group.repeats, "identical": group.identical}
    if group.node is not None:
        found["line"] = lines.of_node(group.node, viewed.view, viewed.names)
    return found


def _returns(viewed: Viewed) -> list[int]:
    """Of every result of the program the op that makes it; -1 for an argument, or what a loop or branch gives."""
    places = {leaf.node: i for i, leaf in enumerate(viewed.tree.leaves)}
    return [places.get(value.producer, -1) if value.producer else -1 for value in viewed.view.flat.returns]


def _clusters(viewed: Viewed) -> list[dict[str, Any]]:
    """Clusters of StableHLO ops, those that could save most bytes; ``ops`` are positions among the program's."""
    nodes = {str(node.id): node for node in viewed.view.flat.walk()}
    places = {leaf.node: i for i, leaf in enumerate(viewed.tree.leaves)}
    found = []
    for one in op_clusters(viewed.program)[:_MOST_CLUSTERS]:
        inside = [nodes[unit.rpartition("%")[2]] for unit in one.units]
        ops = [places[node] for node in inside if node in places]
        found.append({**one.to_json(), "units": len(one.units), "ops": ops})
    return found


def diff_document(name: str, diff: ModuleDiff, lines: Lines) -> dict[str, Any]:
    """What the pass ``name`` changed: counts, and hunks whose ops are positions in ``lines``."""
    counts = {what: diff.count(what) for what in ("removed", "added", "moved", "rewired")}
    return {
        "pass": name,
        **counts,
        "unchanged": diff.unchanged,
        "hunks": [_hunk(hunk, lines) for hunk in diff.hunks],
    }


def _hunk(hunk: Hunk, lines: Lines) -> dict[str, Any]:
    def positions(of: Sequence[OpLine]) -> list[int]:
        return [lines.of_line(line) for line in of]

    return {
        "scope": hunk.scope,
        "loop": hunk.loop,
        "reads": positions(hunk.reads),
        "removed": positions(hunk.removed),
        "added": positions(hunk.added),
        "moved": [{"line": lines.of_line(one.op), "to": one.to} for one in hunk.moved],
        "rewired": [{"line": lines.of_line(one.op), "text": one.text} for one in hunk.rewired],
    }
