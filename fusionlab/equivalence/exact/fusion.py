"""Elementwise sums and products as one op, which is evaluated block by block without arrays in between.

    a = multiply(x, y)
    b = multiply(z, w)          ->          c = fusion(x, y, z, w)
    c = add(a, b)

The results of ``a`` and ``b`` are read by ``c`` alone. Most elements of a program of derivatives are computed so.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from fusionlab.equivalence.exact.field import RING, Code
from fusionlab.equivalence.exact.values import dtype_of, is_float
from fusionlab.hlo.view import Node, Region, Value, reads

MOST_NODES = 16
"""The most nodes of a fusion: all of its operands are held until it is evaluated."""


@dataclass(frozen=True, eq=False)
class Fusion:
    """``nodes`` in order, of which the last has the result; ``code`` computes it from ``operands``.

    ``dying``, by node, are the results in between that no later node reads.
    """

    nodes: tuple[Node, ...]
    operands: tuple[Value, ...]
    code: Code
    dying: Mapping[Unit, Sequence[Value]]

    @property
    def results(self) -> tuple[Value, ...]:
        return self.nodes[-1].results


Unit = Node | Fusion


def fused(region: Region) -> list[Unit]:
    """The nodes of ``region`` in order; a fusion stands for two nodes or more, in the place of the last of them."""
    last: dict[Node, Node] = {}  # by node of a fusion
    sizes: dict[Node, int] = {}
    into: dict[Value, set[Node | None]] = {value: {None} for value in region.returns}
    for node in reversed(region.nodes):
        fuses = node.name in _METHODS and is_float(dtype_of(node.results[0]))
        if fuses:
            readers = into.get(node.results[0], {None})
            root = next(iter(readers)) if len(readers) == 1 else None
            root = root if root is not None and sizes[root] < MOST_NODES else node
            last[node] = root
            sizes[root] = sizes.get(root, 0) + 1
        for value in reads(node):
            into.setdefault(value, set()).add(last[node] if fuses else None)
    members: dict[Node, list[Node]] = {}
    found: list[Unit] = []
    for node in region.nodes:
        if node not in last:
            found.append(node)
            continue
        members.setdefault(last[node], []).append(node)
        if last[node] is node:
            group = members.pop(node)
            found.append(_fusion(group) if len(group) > 1 else node)
    return found


def _fusion(nodes: list[Node]) -> Fusion:
    computed = {node.results[0] for node in nodes}
    operands = tuple(dict.fromkeys(v for node in nodes for v in node.operands if v not in computed))
    places = {value: at for at, value in enumerate(operands)}
    code = []
    for node in nodes:
        code.append((_METHODS[node.name], *(places[value] for value in node.operands)))
        places[node.results[0]] = len(places)
    readers = {value: node for node in nodes for value in node.operands if value in computed}
    dying: dict[Unit, list[Value]] = {}
    for value, node in readers.items():
        dying.setdefault(node, []).append(value)
    return Fusion(tuple(nodes), operands, tuple(code), dying)


_METHODS = {f"stablehlo.{name}": name for name in RING}
