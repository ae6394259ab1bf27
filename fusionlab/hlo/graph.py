"""A read-only networkx view of a Program: operations and dataflow, with attributes of each.

The StableHLO module stays the record; nothing is ever rebuilt from this graph. Private calls are inlined, and the
regions of loops and branches are nested: their nodes carry the id of the operation they belong to as prefix.

Node ids are paths that depend on the module alone: ``main/argument.0``, ``main/17``, ``main/2533/body/argument.4``,
``main/2533/body/12``, ``main/return``. The combiner of a reduce, sort or scatter is part of its op.
"""

from __future__ import annotations

from collections.abc import Iterator

import networkx as nx

from fusionlab.hlo import ops
from fusionlab.hlo.cost import Cost, array_bytes, node_cost
from fusionlab.hlo.program import Program, program_view
from fusionlab.hlo.stages import Attribution, attribute_nodes
from fusionlab.hlo.view import FunctionView, Node, Region, Value, free_values

_REGION_NAMES = {ops.WHILE: ("condition", "body"), ops.IF: ("true", "false")}


def graph(program: Program | FunctionView, region: Region | None = None) -> nx.DiGraph:
    """The graph of ``program``, or of ``region``, one of its regions (for example a loop body).

    Node attributes: ``kind`` (``op``, ``argument``, ``return``), ``name`` (``stablehlo.add``), ``type`` (result types,
    ``1024x30xf32``), ``shape_bytes`` (of the results), ``scope`` (JAX name stack), ``phase``, ``stage``, ``role``
    (as in ``stages``), ``family``, ``flops``, ``transcendentals``, ``bytes`` (as in ``cost``, one execution; a loop's
    node holds its body times its trips), ``unmodelled`` (0 or more ops without a rule), ``region`` (path of the
    region), ``parent`` (id of the op that owns the region, '' at the top), ``order`` (position in program order).

    Edge attributes: ``bytes`` (of the distinct values that flow), ``values`` (their number).

    With ``region``, values from outside of it appear as nodes of kind ``captured``.
    """
    flat = program_view(program) if isinstance(program, Program) else program
    builder = _Builder(attribute_nodes(flat))
    builder.add_region(flat, flat.name, "", region)
    return builder.graph


def nodes_by_id(region: Region, path: str) -> dict[str, Node]:
    """The operations of ``region`` (``path`` is its name: ``main``) and of its nested regions, by their ids."""
    found: dict[str, Node] = {}
    for position, node in enumerate(region.nodes):
        own = f"{path}/{position}"
        found[own] = node
        if node.op.control_flow:
            for name, inner in zip(_region_names(node), node.regions, strict=True):
                found |= nodes_by_id(inner, f"{own}/{name}")
    return found


class _Builder:
    def __init__(self, attributions: dict[Node, Attribution]) -> None:
        self.graph = nx.DiGraph()
        self.attributions = attributions
        self.ids: dict[Value, str] = {}
        self.outside = 0

    def add_region(self, region: Region, path: str, parent: str, wanted: Region | None) -> None:
        """Add the nodes and edges of ``region``; while ``wanted`` has not been met, only look for it."""
        draw = wanted is None or wanted is region
        if draw:
            self._nodes(region, path, parent)
        for position, node in enumerate(region.nodes):
            if node.op.control_flow:
                for name, inner in zip(_region_names(node), node.regions, strict=True):
                    own = f"{path}/{position}"
                    self.add_region(inner, f"{own}/{name}", own if draw else "", None if draw else wanted)

    def _nodes(self, region: Region, path: str, parent: str) -> None:
        place: dict[str, object] = {"region": path, "parent": parent}
        for i, argument in enumerate(region.arguments):
            self.ids[argument] = f"{path}/argument.{i}"
            self._add(self.ids[argument], "argument", f"argument.{i}", (argument,), place)
        for position, node in enumerate(region.nodes):
            own = f"{path}/{position}"
            cost = node_cost(node)
            facts = {**place, **_facts(cost), "family": node.family, "scope": node.scope}
            attribution = self.attributions[node]
            facts |= {"phase": attribution.phase, "stage": attribution.stage, "role": attribution.role}
            self._add(own, "op", node.name, node.results, facts)
            self.ids.update((value, own) for value in node.results)
            self._edges(_reads(node), own)
        self._add(f"{path}/return", "return", "return", (), place)
        self._edges(region.returns, f"{path}/return")

    def _add(self, own: str, kind: str, name: str, values: tuple[Value, ...], facts: dict[str, object]) -> None:
        unknown = {"scope": "", "phase": "", "stage": "", "role": "", "family": ""}
        self.graph.add_node(
            own,
            kind=kind,
            name=name,
            type=", ".join(value.type_text for value in values),
            shape_bytes=sum(map(array_bytes, values)),
            order=self.graph.number_of_nodes(),
            **{**unknown, **_facts(Cost()), **facts},
        )

    def _edges(self, values: tuple[Value, ...], target: str) -> None:
        for value in dict.fromkeys(values):
            if value not in self.ids:
                self.ids[value] = f"captured.{self.outside}"
                self.outside += 1
                self._add(self.ids[value], "captured", "captured", (value,), {"region": "", "parent": ""})
            source = self.ids[value]
            known = self.graph.get_edge_data(source, target, {"bytes": 0, "values": 0})
            self.graph.add_edge(source, target, bytes=known["bytes"] + array_bytes(value), values=known["values"] + 1)


def _reads(node: Node) -> tuple[Value, ...]:
    """The values that an op reads, and those that its combiner or its regions capture from outside."""
    if node.op.control_flow:
        return node.operands  # captures are edges to the ops inside that read them
    return (*node.operands, *(value for region in node.regions for value in free_values(region)))


def _region_names(node: Node) -> Iterator[str]:
    names = _REGION_NAMES.get(node.op, ())
    for i in range(len(node.regions)):
        yield names[i] if i < len(names) else f"region.{i}"


def _facts(cost: Cost) -> dict[str, object]:
    return {
        "flops": cost.flops,
        "transcendentals": cost.transcendentals,
        "bytes": cost.bytes,
        "unmodelled": sum(cost.unmodelled.values()),
    }
