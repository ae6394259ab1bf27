"""A program as levels of detail: loops, stages, nested scopes and ops, each group with its members, and the flows.

The tree is what a view may fold and unfold, independent of its appearance. Groups nest like this:

    program > loop (30 trips) > stage and role (``B tangent``) > scope (``interaction_0``) > op

Neighbouring scopes whose names differ in a number alone form one *repeat* group (``interaction ×3``); layers without
scopes get some (``part ×4``). A constant belongs to its first reader; inline literals are no ops. Flows go from op to
op: a value that a loop carries unchanged comes from the op that made it, and a loop's result from the op in its body
that made it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from fusionlab.hlo import ops
from fusionlab.hlo.cost import array_bytes, node_cost
from fusionlab.hlo.diff.numbering import is_literal
from fusionlab.hlo.loops import analyse
from fusionlab.hlo.stages import Attribution, attribute_nodes
from fusionlab.hlo.view import FunctionView, Node, Region, Value, reads
from fusionlab.report.pictures.scopes import parts_of_stages, scope_path, unnumbered

_LOOP_PARTS = frozenset(("while", "body", "cond", "closed_call", ""))
_ONE_FLOW = frozenset(("laplacian", "wavefunction", ""))
"""Phases whose stages are siblings; the others (sampling, optimiser, potential) contain their own."""


@dataclass(frozen=True)
class PathStep:
    """One part of a path: ``kind`` is ``loop``, ``branch``, ``stage``, ``scope`` or ``repeat``.

    ``node`` is the op that a loop or branch is.
    """

    kind: str
    label: str
    stage: str = ""
    role: str = ""
    node: Node | None = None


Steps = tuple[PathStep, ...]


@dataclass(frozen=True)
class Leaf:
    """One op; ``group`` is the position of its group. FLOPs and bytes are of all ``runs`` (model, as in ``cost``).

    ``unmodelled`` means that it has no FLOP rule. ``attribution`` is its origin.
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
class ScopeGroup:
    """``kind`` is ``program``, ``loop``, ``branch``, ``stage``, ``scope`` or ``repeat``; ``parent`` -1 for the program.

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
        self._flat = flat
        self._attributions = attribute_nodes(flat)
        self._paths: dict[Node, Steps] = {}
        self._runs: dict[Node, int] = {}
        self._readers: dict[Node, Node] = {}
        self._sources: dict[Value, Value] = {}
        self._carried: dict[Value, Value] = {}
        self._assign(flat, (), 1)

    def _assign(self, region: Region, inside: Steps, runs: int) -> None:
        """Assign every op of ``region`` its path; constants that of their first reader."""
        own = [node for node in region.nodes if not is_literal(node)]
        for node in own:
            self._runs[node] = runs
            self._paths[node] = (*inside, *_scope_steps(node.scope, self._attributions[node]))
        readers: dict[Node, Node] = {}
        for node in own:
            for value in reads(node):
                if value.producer is not None:
                    readers.setdefault(value.producer, node)
        self._readers |= readers
        for node in reversed(own):
            if node.family == "constant" and node in readers:
                self._paths[node] = self._paths[readers[node]]
        for node in own:
            if node.op.control_flow:
                self._enter(node, inside, runs)

    def _enter(self, node: Node, inside: Steps, runs: int) -> None:
        """Descend into a loop or branch. One without a stage of the network is a sibling of the stages."""
        is_loop = node.op is ops.WHILE
        trips = analyse(node).trips if is_loop else None
        stage = self._attributions[node].stage
        before = inside if stage in ("", "E") else self._paths[node]
        held = (*before, PathStep("loop" if is_loop else "branch", node.op.mnemonic, stage, node=node))
        self._paths[node] = held
        if is_loop:
            self._carry(node)
        elif node.regions:
            self._sources |= dict(zip(node.results, node.regions[0].returns, strict=False))
        for position, region in enumerate(node.regions):
            label = f"branch {position}" if not is_loop else "condition" if position == 0 else ""
            self._assign(region, (*held, PathStep("scope", label)) if label else held, runs * (trips or 1))

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
        nodes = [node for node in self._flat.walk() if node in self._paths]
        paths = _with_repeats(_with_parts({node: self._paths[node] for node in nodes}, self._readers))
        groups, at = _groups(paths)
        leaves = [self._leaf(node, at[paths[node]]) for node in nodes if not node.op.control_flow]
        _count(groups, leaves)
        places = {leaf.node: i for i, leaf in enumerate(leaves)}
        flows = (flow for target in range(len(leaves)) for flow in self._flows(target, leaves, places))
        return ScopeTree(tuple(groups), tuple(leaves), tuple(flows))

    def _leaf(self, node: Node, group: int) -> Leaf:
        cost, runs = node_cost(node), self._runs[node]
        where, unmodelled = self._attributions[node], bool(cost.unmodelled)
        return Leaf(node, group, node.family, where, runs, cost.flops * runs, cost.bytes * runs, unmodelled)

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


def _scope_steps(scope: str, found: Attribution) -> Steps:
    """Stage and scopes of an op with name stack ``scope``, the parts that loops add to names left out."""
    names = [name for name in scope_path(scope) if name not in _LOOP_PARTS]
    steps = []
    if found.phase not in _ONE_FLOW:
        steps.append(PathStep("stage", found.phase))
        names = [name for name in names if name != found.phase]
    if found.stage:
        names = [name for name in names if not re.fullmatch(r"stage_[a-e]", name)]
        steps.append(PathStep("stage", f"{found.stage} {found.role}", found.stage, found.role))
    if not steps:
        steps.append(PathStep("stage", "outside of every stage"))
    distinct = [name for i, name in enumerate(names) if i == 0 or names[i - 1] != name]
    return (*steps, *(PathStep("scope", name, found.stage, found.role) for name in distinct))


def _with_parts(paths: Mapping[Node, Steps], readers: Mapping[Node, Node]) -> dict[Node, Steps]:
    """The paths, in program order, with a scope ``part_1``, ``part_2``, ... in stages whose layers have none.

    Constants go with their first of ``readers``.
    """
    stages: dict[Steps, list[tuple[Node, Hashable, tuple[str, ...]]]] = defaultdict(list)
    for node, path in paths.items():
        stage = path[: max((i for i, step in enumerate(path, 1) if step.kind == "stage"), default=0)]
        if stage and stage[-1].stage and node.family != "constant":
            stages[stage].append((node, _done(node), tuple(step.label for step in path[len(stage) :])))
    parts = parts_of_stages(stages.values())
    found = dict(paths)
    for stage, members in stages.items():
        for node in (node for node, *_ in members if node in parts):
            step = PathStep("scope", f"part_{parts[node]}", stage[-1].stage, stage[-1].role)
            found[node] = (*stage, step, *paths[node][len(stage) :])
    for node in reversed(list(found)):
        reader = readers.get(node)
        if node.family == "constant" and reader is not None and paths[node] == paths[reader]:
            found[node] = found[reader]
    return found


def _with_repeats(paths: Mapping[Node, Steps]) -> dict[Node, Steps]:
    """The paths with a ``repeat`` step before every scope that has numbered neighbours of the same name."""
    neighbours: dict[tuple[Steps, str], set[str]] = defaultdict(set)
    for path in set(paths.values()):
        for depth, step in enumerate(path):
            if step.kind == "scope" and unnumbered(step.label) != step.label:
                neighbours[path[:depth], unnumbered(step.label)].add(step.label)

    def widened(path: Steps) -> Iterator[PathStep]:
        for depth, step in enumerate(path):
            stem = unnumbered(step.label)
            same = neighbours.get((path[:depth], stem), ()) if step.kind == "scope" else ()
            if step.label in same and len(same) > 1:
                yield PathStep("repeat", f"{stem} ×{len(same)}", step.stage, step.role)
            yield step

    known = {path: tuple(widened(path)) for path in set(paths.values())}
    return {node: known[path] for node, path in paths.items()}


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
    done: dict[int, list[tuple[str, ...]]] = defaultdict(list)
    for leaf in leaves:
        at, said = leaf.group, _done(leaf.node)
        while at >= 0:
            group = groups[at]
            done[at].append(said)
            group.ops += 1
            group.flops += leaf.flops
            group.bytes += leaf.bytes
            group.unmodelled += leaf.unmodelled
            group.family_bytes[leaf.family] = group.family_bytes.get(leaf.family, 0) + leaf.bytes
            at = group.parent
    for at, group in enumerate(groups):
        if group.kind == "repeat":
            members = [done[i] for i, one in enumerate(groups) if one.parent == at]
            group.repeats, group.identical = len(members), all(one == members[0] for one in members)


def _done(node: Node) -> tuple[str, ...]:
    """The name of an op and the types of its results: ops for which these are equal compute the same."""
    return (node.name, *(str(value.handle.type) for value in node.results))
