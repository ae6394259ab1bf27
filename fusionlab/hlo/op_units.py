"""The ops of a Program as units for ``clusters``: nothing fused, loops multiplied by their trips."""

from __future__ import annotations

from collections.abc import Hashable

from fusionlab.hlo import ops
from fusionlab.hlo.clusters import Cluster, Unit, find_clusters
from fusionlab.hlo.cost import array_bytes, node_cost
from fusionlab.hlo.families import family
from fusionlab.hlo.flat import Node, Region, flatten, free_values
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.program import Program
from fusionlab.hlo.stages import Attribution, attribute_nodes

_CONVERSIONS = (
    ops.BROADCAST_IN_DIM, ops.CONCATENATE, ops.GATHER, ops.PAD, ops.REVERSE, ops.SLICE, ops.TRANSPOSE
)  # fmt: skip


def op_clusters(program: Program) -> list[Cluster]:
    """The clusters of the StableHLO of ``program``, in every region; those that save most bytes first."""
    flat = flatten(program.parse())
    attributions = attribute_nodes(flat)
    found: list[Cluster] = []
    pending: list[tuple[Region, str, int]] = [(flat, "main", 1)]
    while pending:
        region, path, runs = pending.pop()
        units = [_unit(node, attributions[node], path, runs) for node in region.nodes]
        values = [value for node in region.nodes for value in (*node.operands, *node.results)]
        sizes: dict[Hashable, int] = {value: array_bytes(value) for value in values}
        found += find_clusters(units, sizes, escaping=region.returns)
        for node in region.nodes:
            if node.op.control_flow:
                trips = analyse(node).trips if node.op is ops.WHILE else 1
                inner = runs * (1 if trips is None else trips)
                pending += [(body, f"{path}/{node.scope}", inner) for body in node.regions]
    return sorted(found, key=lambda one: (-one.saved_bytes, one.units))


def _unit(node: Node, attribution: Attribution, region: str, runs: int) -> Unit:
    is_loop = node.op.control_flow
    cost = None if is_loop else node_cost(node)
    captured = [value for inner in node.regions for value in free_values(inner)]
    results = sum(map(array_bytes, node.results))
    reads: dict[Hashable, int] = {value: array_bytes(value) for value in (*node.operands, *captured)}
    if node.op.partial and node.operands:
        reads[node.operands[0]] = results
    return Unit(
        name=f"{node.op.mnemonic} %{node.id}",
        family="control" if is_loop else family(node),
        stage=attribution.stage,
        region=region,
        runs=runs,
        flops=cost.flops if cost else 0,
        bytes=cost.bytes if cost else 0,
        us=None,
        converts_layout=node.op in _CONVERSIONS,
        reads=reads,
        writes={value: array_bytes(value) for value in node.results},
    )
