"""A program as levels of detail: the groups of ``folding`` with their members and figures, and the flows between ops.

The tree is what a view may fold and unfold, independent of its appearance. Inline literals are no ops. Flows go from op
to op: a value that a loop carries unchanged comes from the op that made it, and a loop's result from the op in its body
that made it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fusionlab.hlo import ops
from fusionlab.hlo.cost import array_bytes, node_cost
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.stages import Attribution
from fusionlab.hlo.view import FunctionView, Node, Value, reads
from fusionlab.report.pictures.folding import Steps, done, fold, is_hidden


@dataclass(frozen=True)
class Leaf:
    """One op; ``group`` is the position of its group. FLOPs and bytes are of all ``runs`` (model, as in ``cost``).

    ``unmodelled`` means that it has no FLOP rule. ``attribution`` is its origin, empty in programs without stages.
    ``hidden``: a constant or a broadcast, drawn only on request.
    """

    node: Node
    group: int
    family: str
    attribution: Attribution
    runs: int
    flops: int
    bytes: int
    unmodelled: bool
    hidden: bool


@dataclass
class ScopeGroup:
    """``kind`` is ``program`` or that of a ``PathStep``; ``parent`` is -1 for the program.

    Counts and costs are of everything below it. ``trips`` is a loop's (None: unknown); ``repeats`` the number of scopes
    of a repeat, which compute the same if ``identical``. ``node`` is the op that a loop or branch is.
    """

    label: str
    kind: str
    parent: int
    stage: str = ""
    role: str = ""
    node: Node | None = None
    trips: int | None = None
    repeats: int = 1
    identical: bool = False
    ops: int = 0
    flops: int = 0
    bytes: int = 0
    unmodelled: int = 0
    family_bytes: dict[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class ValueFlow:
    """A value that op ``target`` reads and op ``source`` made (positions of leaves; -1: an argument of the program).

    ``kind`` is ``data``, ``residual`` (made outside the loop that reads it in every trip) or ``carried`` (made in the
    trip before).
    """

    source: int
    target: int
    bytes: int
    kind: str


@dataclass(frozen=True)
class ScopeTree:
    """``groups[0]`` is the program; parents come before their children, leaves are in program order."""

    groups: tuple[ScopeGroup, ...]
    leaves: tuple[Leaf, ...]
    flows: tuple[ValueFlow, ...]


def scope_tree(flat: FunctionView) -> ScopeTree:
    """The tree of a whole program, private calls inlined."""
    return _TreeBuilder(flat).tree()


class _TreeBuilder:
    def __init__(self, flat: FunctionView) -> None:
        self._folding = fold(flat)
        self._sources: dict[Value, Value] = {}
        self._carried: dict[Value, Value] = {}
        for node in self._folding.paths:
            if node.op is ops.WHILE:
                self._carry(node)
            elif node.op.control_flow and node.regions:
                self._sources |= dict(zip(node.results, node.regions[0].returns, strict=False))

    def _carry(self, node: Node) -> None:
        body = node.regions[1]
        for i, operand in enumerate(node.operands):
            unchanged = body.returns[i] is body.arguments[i]
            for region in node.regions:
                self._sources[region.arguments[i]] = operand
                if not unchanged:
                    self._carried[region.arguments[i]] = body.returns[i]
            self._sources[node.results[i]] = operand if unchanged else body.returns[i]

    def tree(self) -> ScopeTree:
        paths = self._folding.paths
        groups, at = _groups(paths)
        leaves = [self._leaf(node, at[path]) for node, path in paths.items() if not node.op.control_flow]
        _count(groups, leaves)
        places = {leaf.node: i for i, leaf in enumerate(leaves)}
        flows = (flow for target in range(len(leaves)) for flow in self._flows(target, leaves, places))
        return ScopeTree(tuple(groups), tuple(leaves), tuple(flows))

    def _leaf(self, node: Node, group: int) -> Leaf:
        cost, runs = node_cost(node), self._folding.runs[node]
        where, unmodelled = self._folding.attributions[node], bool(cost.unmodelled)
        moved = cost.bytes * runs
        return Leaf(node, group, node.family, where, runs, cost.flops * runs, moved, unmodelled, is_hidden(node))

    def _flows(self, target: int, leaves: Sequence[Leaf], places: Mapping[Node, int]) -> Iterator[ValueFlow]:
        """The flows into the op ``target``."""
        for value in dict.fromkeys(reads(leaves[target].node)):
            before = self._made(self._carried[value]) if value in self._carried else None
            if before is not None and before in places:
                yield ValueFlow(places[before], target, array_bytes(value), "carried")
            producer = self._made(value)
            if producer is None:
                yield ValueFlow(-1, target, array_bytes(value), "data")
            elif producer in places:
                source = places[producer]
                kind = "residual" if leaves[source].runs < leaves[target].runs else "data"
                yield ValueFlow(source, target, array_bytes(value), kind)

    def _made(self, value: Value) -> Node | None:
        """The op that made ``value``, through loops and branches; None for an argument of the program."""
        while value in self._sources:
            value = self._sources[value]
        return value.producer


def _groups(paths: Mapping[Node, Steps]) -> tuple[list[ScopeGroup], dict[Steps, int]]:
    """A group per path and per prefix of one, in the order of their first op."""
    groups = [ScopeGroup("program", "program", -1)]
    at: dict[Steps, int] = {(): 0}
    for path in paths.values():
        for depth, step in enumerate(path):
            if path[: depth + 1] not in at:
                at[path[: depth + 1]] = len(groups)
                trips = analyse(step.node).trips if step.kind == "loop" and step.node is not None else None
                groups.append(
                    ScopeGroup(step.label, step.kind, at[path[:depth]], step.stage, step.role, step.node, trips)
                )
    return groups, at


def _count(groups: Sequence[ScopeGroup], leaves: Sequence[Leaf]) -> None:
    """Compute the sums of every group; for a repeat also the number of its scopes, and if all compute the same."""
    computed: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    for leaf in leaves:
        at, said = leaf.group, done(leaf.node)
        while at >= 0:
            group = groups[at]
            computed[at].append(said)
            group.ops += 1
            group.flops += leaf.flops
            group.bytes += leaf.bytes
            group.unmodelled += leaf.unmodelled
            group.family_bytes[leaf.family] = group.family_bytes.get(leaf.family, 0) + leaf.bytes
            at = group.parent
    for at, group in enumerate(groups):
        if group.kind == "repeat":
            members = [computed[i] for i, one in enumerate(groups) if one.parent == at]
            group.repeats, group.identical = len(members), all(one == members[0] for one in members)
