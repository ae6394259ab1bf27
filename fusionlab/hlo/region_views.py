"""A region of a program, for example the body of an outer loop, as a function of its own."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from itertools import pairwise

from fusionlab.hlo import ops
from fusionlab.hlo.loops import constant_values
from fusionlab.hlo.value_numbers import substitute
from fusionlab.hlo.view import FunctionView, Node, Region, Value, free_values


def enclosing_regions(function: Region, node: Node) -> list[Region]:
    """The regions of ``function`` around ``node``, outer ones first; empty where ``function`` itself holds it."""
    if node in function.nodes:
        return []
    for outer in function.nodes:
        for region in outer.regions:
            if any(inner is node for inner in region.walk()):
                return [region, *enclosing_regions(region, node)]
    raise ValueError(f"{node} is not in the function")


def regions_around(function: Region, whole: Collection[Node]) -> Iterator[list[Region]]:
    """The bodies of loops and branches of ``function``, each after those around it; without those of ``whole``.

    A sum over directions may be in any of them: walkers are moved and measured in one loop.
    """
    for node in function.nodes:
        if node not in whole and node.op in (ops.WHILE, ops.CASE, ops.IF):
            for region in node.regions[1:] if node.op is ops.WHILE else node.regions:
                yield [region]
                yield from ([region, *inner] for inner in regions_around(region, whole))


def view_of_region(flat: FunctionView, regions: Sequence[Region]) -> FunctionView:
    """The innermost of ``regions`` as a function of its arguments and of the values it captures.

    Constants around it stay constants: their nodes are part of the view.
    """
    around = [flat, *regions[:-1]]
    known = [constant_values(outer.nodes) for outer in around]
    constants = [
        node
        for outer, found in zip(around, known, strict=True)
        for node in outer.nodes
        if node.results and found.issuperset(node.results)
    ]
    inner = regions[-1]
    captured = [value for value in free_values(inner) if not any(value in found for found in known)]
    return FunctionView(
        arguments=(*inner.arguments, *captured),
        nodes=[*constants, *inner.nodes],
        returns=inner.returns,
        name=flat.name,
        module=flat.module,
    )


def read_constants_directly(flat: FunctionView, regions: Sequence[Region]) -> None:
    """Let the innermost of ``regions`` read the constants that the loops around it carry to it unchanged.

    An edit of ``flat``, which stays equivalent: before anything else has it.
    """
    known: set[Value] = set()
    instead: dict[Value, Value] = {}
    for outer, region in pairwise([flat, *regions]):
        known |= constant_values(outer.nodes)
        node = next(node for node in outer.nodes if region in node.regions)
        if node.op is ops.WHILE and region is node.regions[1]:
            for given, argument, back in zip(node.operands, region.arguments, region.returns, strict=True):
                if argument is back and instead.get(given, given) in known:
                    instead[argument] = instead.get(given, given)
    inner = regions[-1]
    returns = inner.returns
    substitute(inner, instead)
    inner.returns = returns  # what it carries unchanged stays that
