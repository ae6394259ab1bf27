"""One MLIR block as nodes and values, calls not inlined: the view for rewrites that regroup the ops of a block."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any

import networkx as nx

from fusionlab.hlo import ops
from fusionlab.hlo.view import TERMINATORS, Node, Value, callee_of, combining_regions, location_name

_FIRST_INNER = 1 << 30
"""The first id of what is in the regions of a block's reductions."""
_KEPT = {"collective", "control", "custom", "rng", "unknown"}
"""Families of ops that may do more than return results."""


@dataclass(eq=False)
class Block:
    """The nodes of a block in order (its terminator is not one), and the values that it returns.

    A node's operands are those of the operation; ``reads`` also has the values that its regions capture from the block.
    """

    nodes: list[Node]
    returns: tuple[Value, ...]
    reads: dict[Node, tuple[Value, ...]]

    @cached_property
    def users(self) -> dict[Value, list[Node]]:
        """The nodes that read each value, once each, in order."""
        found: dict[Value, list[Node]] = {}
        for node in self.nodes:
            for value in dict.fromkeys(self.reads[node]):
                found.setdefault(value, []).append(node)
        return found

    @cached_property
    def place(self) -> dict[Node, int]:
        """The position of each node."""
        return {node: at for at, node in enumerate(self.nodes)}

    @cached_property
    def _before(self) -> list[int]:
        """Bit sets of positions: the nodes that each node depends on, itself included."""
        sets: list[int] = []
        for at, node in enumerate(self.nodes):
            needs = 1 << at
            for value in self.reads[node]:
                if value.producer is not None:
                    needs |= sets[self.place[value.producer]]
            sets.append(needs)
        return sets

    @cached_property
    def _after(self) -> list[int]:
        """Bit sets of positions: the nodes that depend on each node, itself included."""
        sets = [1 << at for at in range(len(self.nodes))]
        for at in reversed(range(len(self.nodes))):
            for value in self.nodes[at].results:
                for user in self.users.get(value, ()):
                    sets[at] |= sets[self.place[user]]
        return sets

    def data_flow(self) -> Block:
        """A view of the block without optimization barriers, and without ops that nothing reads.

        Its nodes and values are others, of the same operations and handles.
        """
        instead: dict[Value, Value] = {}

        def read(values: Iterable[Value]) -> tuple[Value, ...]:
            return tuple(instead.get(value, value) for value in values)

        nodes: list[Node] = []
        reads: dict[Node, tuple[Value, ...]] = {}
        for node in self.nodes:
            if node.op is ops.OPTIMIZATION_BARRIER:
                instead.update(zip(node.results, read(node.operands), strict=True))
                continue
            copy = replace(node, operands=read(node.operands))
            copy.results = tuple(replace(value, producer=copy) for value in node.results)
            instead.update(zip(node.results, copy.results, strict=True))
            nodes.append(copy)
            reads[copy] = read(self.reads[node])
        returns = read(self.returns)
        wanted, kept = set(returns), list[Node]()
        for node in reversed(nodes):
            if node.op.family in _KEPT or not wanted.isdisjoint(node.results):
                wanted.update(reads[node])
                kept.append(node)
        return Block(kept[::-1], returns, {node: reads[node] for node in kept})

    def convex_hull(self, nodes: Iterable[Node]) -> set[Node]:
        """``nodes``, and all that depends on some of them and is needed by others."""
        _, hull = self._hull(nodes)
        return {node for at, node in enumerate(self.nodes) if hull >> at & 1}

    def is_convex(self, nodes: Iterable[Node]) -> bool:
        """True if no path leaves ``nodes`` and comes back: they can run as one."""
        inside, hull = self._hull(nodes)
        return inside == hull

    def _hull(self, nodes: Iterable[Node]) -> tuple[int, int]:
        """Bit sets of positions: ``nodes``, and their convex hull."""
        inside = before = after = 0
        for at in (self.place[node] for node in nodes):
            inside |= 1 << at
            before |= self._before[at]
            after |= self._after[at]
        return inside, before & after

    def depends(self, node: Node, on: Iterable[Node]) -> bool:
        """True if ``node`` depends on any of ``on``."""
        needs = self._before[self.place[node]]
        return any(needs >> self.place[other] & 1 for other in on)


def blocks_of(function: Any, module: Any) -> Iterator[Block]:
    """The blocks of a ``func.func`` and of the loops and branches in it, each before those nested in it."""
    for block in _mlir_blocks(function):
        yield _view(block, function.name.value, module)


def blocks_to_change(function: Any, module: Any) -> Iterator[Callable[[], Block]]:
    """For each of ``blocks_of`` a callable that returns it as it is now.

    The block may be changed until the next is requested; loops and branches left without readers may be erased.
    """
    waiting = [*_mlir_blocks(function)]
    while waiting:
        here = waiting[0]
        yield partial(_view, here, function.name.value, module)
        now = [*_mlir_blocks(function)]
        waiting = now[now.index(here) + 1 :]


def run_in_loops(functions: Sequence[Any]) -> set[str]:
    """The names of the functions that a loop calls, directly or through other functions."""
    calls: nx.DiGraph[str] = nx.DiGraph()
    looped: set[str] = set()
    for function in functions:
        name = str(function.name.value)
        for operation, in_loop in _walk(function.operation, False):
            if (callee := callee_of(operation)) is not None:
                calls.add_edge(name, callee)
                if in_loop:
                    looped.add(callee)
    return looped.union(*(nx.descendants(calls, name) for name in looped))


def _walk(operation: Any, in_loop: bool) -> Iterator[tuple[Any, bool]]:
    for region in operation.regions:
        for block in region:
            for wrapped in block.operations:
                inner = wrapped.operation
                yield inner, in_loop
                yield from _walk(inner, in_loop or inner.name == ops.WHILE.name)


def _mlir_blocks(function: Any) -> Iterator[Any]:
    for block in function.body.blocks:
        yield from _nested(block)


def _nested(block: Any) -> Iterator[Any]:
    yield block
    for wrapped in block.operations:
        if ops.op_of(wrapped.operation.name).control_flow:
            for region in wrapped.operation.regions:
                for inner in region.blocks:
                    yield from _nested(inner)


def _view(block: Any, function: str, module: Any) -> Block:
    values: dict[Any, Value] = {}

    def value_of(handle: Any) -> Value:
        return values.setdefault(handle, Value(len(values), handle, None, 0))

    nodes: list[Node] = []
    reads: dict[Node, tuple[Value, ...]] = {}
    for wrapped in block.operations:
        operation = wrapped.operation
        operands = tuple(value_of(handle) for handle in operation.operands)
        if operation.name in TERMINATORS:
            return Block(nodes, operands, reads)
        callers = (location_name(operation),) if operation.name in ops.CALLEES else ()
        node = Node(len(nodes), operation, operation.name, operands, callers, function, module)
        node.results = tuple(Value(len(values) + at, handle, node, at) for at, handle in enumerate(operation.results))
        values.update(zip(operation.results, node.results, strict=True))
        if node.op is ops.REDUCE:
            node.regions = combining_regions(operation, module, _FIRST_INNER + 100 * node.id)
        nodes.append(node)
        inner = (values[handle] for handle in _captured(operation) if handle in values)
        reads[node] = (*operands, *inner)
    raise ValueError(f"a block of @{function} has no terminator")


def _captured(operation: Any) -> list[Any]:
    """The handles that the regions of ``operation`` read, their own included."""
    found: list[Any] = []
    for region in operation.regions:
        for block in region:
            for inner in block.operations:
                found += [*inner.operation.operands, *_captured(inner.operation)]
    return found
