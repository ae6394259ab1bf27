"""Dependence of values on others, of what loops carry each value by itself."""

from __future__ import annotations

from collections.abc import Iterable

from fusionlab.hlo import ops
from fusionlab.hlo.view import Region, Value, reads


def depending_on(region: Region, sources: Iterable[Value]) -> set[Value]:
    """The values of ``region`` and the regions in it that depend on ``sources``, and these.

    What a loop carries depends on what its body returns for it, and on its condition; the result of a branch on its
    predicate.
    """
    found, before = set(sources), -1
    while len(found) > before:
        before = len(found)
        for node in region.walk():
            if node.op is ops.WHILE:
                condition, body = node.regions
                parts = (node.operands, condition.arguments, body.arguments, body.returns, node.results)
                for given, asked, argument, returned, result in zip(*parts, strict=True):
                    changes = returned is not argument and (returned in found or condition.returns[0] in found)
                    if given in found or changes:
                        found |= {asked, argument, result}
            elif node.op in (ops.CASE, ops.IF):
                chosen = node.operands[0] in found
                returns = zip(*(inner.returns for inner in node.regions), strict=True)
                for result, each in zip(node.results, returns, strict=True):
                    if chosen or not found.isdisjoint(each):
                        found.add(result)
            elif not found.isdisjoint(reads(node)):
                found.update(node.results)
    return found
