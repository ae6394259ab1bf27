"""Which values depend on which: one graph of values, in which loops and branches are followed precisely.

    while       initial value i and what the body returns for it    -->    its arguments and result i
                the condition                                       -->    those of every value that a trip changes
    case, if    what a branch returns for result i, the predicate   -->    result i
    barrier     operand i                                           -->    result i
    others      the operands, what regions return                   -->    all results

A value that a trip returns reaches the next trip, so the graph has cycles. Each edge is followed once, however deep
loops are nested.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence

import networkx as nx

from fusionlab.hlo import ops
from fusionlab.hlo.view import Node, Region, Value, reads

_Edges = dict[Value, list[Value]]


def reached(region: Region | Node, sources: Iterable[Value]) -> set[Value]:
    """The values of ``region`` and the regions in it that depend on ``sources``, and these; ``region`` may be one op.

    A value inside a loop depends on what an earlier trip computes for it.
    """
    edges, found = _edges(region), set(sources)
    pending = list(found)
    while pending:
        new = [value for value in edges.get(pending.pop(), ()) if value not in found]
        found.update(new)
        pending += new
    return found


def sources_of(region: Region | Node, sources: Sequence[Value]) -> dict[Value, int]:
    """For values of ``region`` and the regions in it that depend on some of ``sources``, bit i for source i."""
    edges, bits = _edges(region), dict[Value, int]()
    for i, source in enumerate(sources):
        bits[source] = bits.get(source, 0) | 1 << i
    grown = True
    while grown:  # in program order: a second time for what loops carry, and as often as it passes from one to another
        grown = False
        for value, nexts in edges.items():
            own = bits.get(value, 0)
            for each in nexts if own else ():
                if own & ~(before := bits.get(each, 0)):
                    bits[each] = before | own
                    grown = True
    return bits


def _edges(region: Region | Node) -> _Edges:
    """The values that each value reaches directly. The keys are in program order: but for what loops carry, a value
    comes after all that it is computed from."""
    edges: _Edges = defaultdict(list)

    def follow(nodes: Iterable[Node]) -> None:
        for node in nodes:
            ends = _ENDS.get(node.name, _combining if node.regions else None)
            if ends is None:
                for value in node.operands:
                    edges[value] += node.results
                continue
            entered, left = ends(node)
            for value, nexts in entered:
                edges[value] += nexts
            for inner in node.regions:
                follow(inner.nodes)
            for value, nexts in left:
                edges[value] += nexts

    follow(region.nodes if isinstance(region, Region) else [region])
    return edges


_Ends = tuple[Iterable[tuple[Value, Sequence[Value]]], Iterable[tuple[Value, Sequence[Value]]]]
"""The edges that enter the regions of an op or lead past them, and those that leave them."""


def _combining(node: Node) -> _Ends:
    """A combiner or a comparator runs many times, on elements of all operands."""
    inside = [*node.results, *(value for region in node.regions for value in region.arguments)]
    returned = ((value, node.results) for region in node.regions for value in region.returns)
    return ((value, inside) for value in node.operands), returned


def _while(node: Node) -> _Ends:
    condition, body = node.regions
    entered, left, changing = [], list[tuple[Value, Sequence[Value]]](), list[Value]()
    rows = (node.operands, condition.arguments, body.arguments, body.returns, node.results)
    for given, asked, argument, returned, result in zip(*rows, strict=True):
        carried = (asked, argument, result)
        entered.append((given, carried))
        if returned is not argument:
            left.append((returned, carried))
            changing += carried
    return entered, [*left, *((value, changing) for value in condition.returns)]


def _branch(node: Node) -> _Ends:
    chosen = [(node.operands[0], node.results)]
    return chosen, (pair for region in node.regions for pair in _one_to_one(region.returns, node.results))


def _manual(node: Node) -> _Ends:
    [region] = node.regions
    return _one_to_one(node.operands, region.arguments), _one_to_one(region.returns, node.results)


def _barrier(node: Node) -> _Ends:
    return _one_to_one(node.operands, node.results), ()


def _one_to_one(values: Sequence[Value], nexts: Sequence[Value]) -> Iterator[tuple[Value, Sequence[Value]]]:
    return ((value, (each,)) for value, each in zip(values, nexts, strict=True))


_ENDS: dict[str, Callable[[Node], _Ends]] = {
    ops.WHILE.name: _while,
    ops.CASE.name: _branch,
    ops.IF.name: _branch,
    ops.MANUAL: _manual,
    ops.OPTIMIZATION_BARRIER.name: _barrier,
}


def live_nodes(nodes: Sequence[Node], inputs: Sequence[Value], outputs: Sequence[Value]) -> list[Node]:
    """The ``nodes`` (in order) that ``outputs`` need when ``inputs`` are given, loops and branches whole.

    ValueError if they need a value that is neither among ``inputs`` nor computed by ``nodes``.
    """
    available = set(inputs)
    wanted = {value for value in outputs if value not in available}
    kept: list[Node] = []
    for node in reversed(nodes):
        if wanted.isdisjoint(node.results):
            continue
        kept.append(node)
        wanted.difference_update(node.results)
        wanted.update(value for value in reads(node) if value not in available)
    if wanted:
        raise ValueError(f"{len(wanted)} values come from outside")
    return kept[::-1]


def on_every_way(region: Region, sources: Sequence[Value]) -> list[Value]:
    """The values through which all ways from ``sources`` to what ``region`` returns go, in order; none if none does."""
    directed = reached(region, sources)
    if directed.isdisjoint(region.returns):
        return []
    graph, start, end = nx.DiGraph(), "start", "end"
    graph.add_edges_from((start, value) for value in sources)
    graph.add_edges_from((value, end) for value in region.returns if value in directed)
    for node in region.nodes:
        graph.add_edges_from((read, result) for read in reads(node) if read in directed for result in node.results)
    above, ways = nx.immediate_dominators(graph, start), list[Value]()
    at = above[end]
    while at != start:
        ways.append(at)
        at = above[at]
    return ways[::-1]
