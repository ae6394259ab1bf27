"""A program as levels of detail: loops, stages, nested scopes and ops, each group with what is in it, and the flows.

The tree is what a view may fold and unfold; it says nothing about how that looks. Groups nest like this:

    program > loop (30 trips) > stage and role (``B tangent``) > scope (``interaction_0``) > op

Scopes whose names differ in a number alone and that stand side by side are put into one *repeat* group
(``interaction ×3``); layers without scopes get some (``part ×4``). A constant belongs where its first reader is;
numbers written in place of an operand are no ops. Flows go from op to op: what a loop carries unchanged comes from
where it was made, and a loop's result from the op in its body that made it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from fusionlab.hlo import ops
from fusionlab.hlo.cost import array_bytes, node_cost
from fusionlab.hlo.diff.numbering import is_literal
from fusionlab.hlo.families import family
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.stages import Attribution, attribute_nodes
from fusionlab.hlo.view import FunctionView, Node, Region, Value, reads
from fusionlab.report.scope_paths import Path, Step, scope_steps, with_parts, with_repeats


@dataclass(frozen=True)
class Leaf:
    """One op; ``group`` is the position of its group. FLOPs and bytes are of all ``runs`` (model, as in ``cost``).

    ``unmodelled`` says that no rule gives its FLOPs. ``attribution`` is where it comes from.
    """

    node: Node
    group: int
    family: str
    attribution: Attribution
    runs: int
    flops: int
    bytes: int
    unmodelled: bool


@dataclass
class Group:
    """``kind`` is ``program``, ``loop``, ``branch``, ``stage``, ``scope`` or ``repeat``; ``parent`` -1 for the program.

    Counts and costs are of everything below it. ``trips`` is a loop's (None: unknown); ``repeats`` how many scopes a
    repeat holds, which do exactly the same if ``identical``. ``node`` is the op that a loop or branch is.
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
class Flow:
    """A value that op ``target`` reads and op ``source`` made (positions of leaves; -1: an argument of the program).

    ``kind`` is ``data``, ``residual`` (made outside of the loop that reads it in every trip) or ``carried`` (made in
    the trip before).
    """

    source: int
    target: int
    bytes: int
    kind: str


@dataclass(frozen=True)
class ScopeTree:
    """``groups[0]`` is the program; parents come before their children, leaves are in program order."""

    groups: tuple[Group, ...]
    leaves: tuple[Leaf, ...]
    flows: tuple[Flow, ...]


def scope_tree(flat: FunctionView) -> ScopeTree:
    """The tree of a whole program, private calls inlined."""
    builder = _Builder(flat)
    builder.region(flat, (), 1)
    return builder.tree()


class _Builder:
    def __init__(self, flat: FunctionView) -> None:
        self._flat = flat
        self._attributions = attribute_nodes(flat)
        self._paths: dict[Node, Path] = {}
        self._runs: dict[Node, int] = {}
        self._readers: dict[Node, Node] = {}
        self._sources: dict[Value, Value] = {}
        self._depth: dict[Value, int] = {}
        self._carried: dict[Value, Value] = {}

    def region(self, region: Region, inside: Path, runs: int) -> None:
        """Give every op of ``region`` its path; constants that of their first reader."""
        own = [node for node in region.nodes if not is_literal(node)]
        for node in own:
            self._runs[node] = runs
            self._paths[node] = (*inside, *scope_steps(node.scope, self._attributions[node]))
        readers = _first_readers(own)
        self._readers |= readers
        for node in reversed(own):
            if family(node) == "constant" and node in readers:
                self._paths[node] = self._paths[readers[node]]
        for node in own:
            if node.op.control_flow:
                self._enter(node, inside, runs)

    def _enter(self, node: Node, inside: Path, runs: int) -> None:
        """What a loop or branch holds. One that belongs to no stage of the network stands beside the stages."""
        trips = analyse(node).trips if node.op is ops.WHILE else None
        beside = self._attributions[node].stage in ("", "E")
        before = inside if beside else self._paths[node]
        kind = "loop" if node.op is ops.WHILE else "branch"
        label = node.op.mnemonic
        held = (*before, Step(kind, label, self._attributions[node].stage, node=node))
        self._paths[node] = held
        if node.op is ops.WHILE:
            self._carry(node)
        else:
            for result, given in zip(node.results, node.regions[0].returns if node.regions else (), strict=False):
                self._sources[result] = given
        for position, region in enumerate(node.regions):
            condition = node.op is ops.WHILE and position == 0
            part = (Step("scope", "condition"),) if condition else ()
            part = (Step("scope", f"branch {position}"),) if kind == "branch" else part
            self.region(region, (*held, *part), runs * (trips or 1))

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
        nodes = list(self._paths)
        order = {node: i for i, node in enumerate(node for node in self._flat.walk() if node in self._paths)}
        nodes.sort(key=order.__getitem__)
        paths = with_repeats(self._divided({node: self._paths[node] for node in nodes}))
        groups, at = _groups(paths)
        leaves = [self._leaf(node, at[paths[node]]) for node in nodes if not node.op.control_flow]
        _count(groups, leaves)
        _compare_repeats(groups, leaves)
        places = {leaf.node: i for i, leaf in enumerate(leaves)}
        return ScopeTree(tuple(groups), tuple(leaves), tuple(self._flows(leaves, places)))

    def _divided(self, paths: Mapping[Node, Path]) -> dict[Node, Path]:
        """The paths with the parts of stages that have no scopes for them; constants go with their first reader."""
        found = with_parts(paths, {node: _done(node) for node in paths if family(node) != "constant"})
        for node in reversed(list(found)):
            reader = self._readers.get(node)
            if family(node) == "constant" and reader is not None and paths[node] == paths[reader]:
                found[node] = found[reader]
        return found

    def _leaf(self, node: Node, group: int) -> Leaf:
        cost, runs = node_cost(node), self._runs[node]
        return Leaf(
            node, group, family(node), self._attributions[node], runs, cost.flops * runs, cost.bytes * runs,
            bool(cost.unmodelled),
        )  # fmt: skip

    def _flows(self, leaves: Sequence[Leaf], places: Mapping[Node, int]) -> list[Flow]:
        found = []
        for target, leaf in enumerate(leaves):
            for value in dict.fromkeys(reads(leaf.node)):
                found += self._of_value(value, target, leaf, places, leaves)
        return found

    def _of_value(
        self, value: Value, target: int, leaf: Leaf, places: Mapping[Node, int], leaves: Sequence[Leaf]
    ) -> list[Flow]:
        found = []
        if value in self._carried and (before := self._made(self._carried[value])) is not None and before in places:
            found.append(Flow(places[before], target, array_bytes(value), "carried"))
        producer = self._made(value)
        if producer is None:
            return [*found, Flow(-1, target, array_bytes(value), "data")]
        if producer in places:
            kind = "residual" if leaves[places[producer]].runs < leaf.runs else "data"
            found.append(Flow(places[producer], target, array_bytes(value), kind))
        return found

    def _made(self, value: Value) -> Node | None:
        """The op that made ``value``, through loops and branches; None for an argument of the program."""
        while value in self._sources:
            value = self._sources[value]
        return value.producer


def _first_readers(nodes: Sequence[Node]) -> dict[Node, Node]:
    first: dict[Node, Node] = {}
    for node in nodes:
        for value in reads(node):
            if value.producer is not None:
                first.setdefault(value.producer, node)
    return first


def _groups(paths: Mapping[Node, Path]) -> tuple[list[Group], dict[Path, int]]:
    """A group per path and per beginning of one, in the order of their first op."""
    groups = [Group("program", "program", -1)]
    at: dict[Path, int] = {(): 0}
    for path in paths.values():
        for depth in range(1, len(path) + 1):
            if path[:depth] not in at:
                step = path[depth - 1]
                at[path[:depth]] = len(groups)
                trips = analyse(step.node).trips if step.kind == "loop" and step.node is not None else None
                groups.append(
                    Group(step.label, step.kind, at[path[: depth - 1]], step.stage, step.role, step.node, trips)
                )
    return groups, at


def _count(groups: Sequence[Group], leaves: Sequence[Leaf]) -> None:
    for leaf in leaves:
        at = leaf.group
        while at >= 0:
            group = groups[at]
            group.ops += 1
            group.flops += leaf.flops
            group.bytes += leaf.bytes
            group.unmodelled += leaf.unmodelled
            group.family_bytes[leaf.family] = group.family_bytes.get(leaf.family, 0) + leaf.bytes
            at = group.parent


def _compare_repeats(groups: Sequence[Group], leaves: Sequence[Leaf]) -> None:
    """How many scopes each repeat holds, and whether they do the same on values of the same shapes."""
    for at, group in enumerate(groups):
        if group.kind != "repeat":
            continue
        members = [i for i, one in enumerate(groups) if one.parent == at]
        group.repeats = len(members)
        done = [
            tuple(_done(leaf.node) for leaf in leaves if _below(groups, leaf.group, member))
            for member in members
        ]  # fmt: skip
        group.identical = len(set(done)) == 1


def _done(node: Node) -> tuple[str, ...]:
    """What an op does: its name and the types of its results."""
    return (node.name, *(str(value.handle.type) for value in node.results))


def _below(groups: Sequence[Group], at: int, ancestor: int) -> bool:
    while at > ancestor:
        at = groups[at].parent
    return at == ancestor
